"""All checks of a program, in their order. What passes is typed, safe and stratified."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from vigilog.core.errors import Finding, Findings
from vigilog.language.calls import with_calls
from vigilog.language.classes import with_text
from vigilog.language.conditions import check_fits, triggers, warn_cycles
from vigilog.language.definitions import check_definitions, try_orders
from vigilog.language.frames.translate import translate
from vigilog.language.monotone import check_monotone
from vigilog.language.names import check_names
from vigilog.language.optional import check_nulls, with_optional
from vigilog.language.parser import parse
from vigilog.language.parts import names, variables
from vigilog.language.program import Program
from vigilog.language.resolve import resolved
from vigilog.language.safety import check_safety
from vigilog.language.scope import with_own_targets
from vigilog.language.slips import NO_NULLS, NULLS
from vigilog.language.strata import check_stratified, components, dependencies
from vigilog.language.syntax import Rule, SetOf
from vigilog.language.types import elaborate


@dataclass(frozen=True)
class Checked:
    """A program that passed, with types filled in, and what was doubtful in it."""

    program: Program
    warnings: tuple[Finding, ...]


def check(program: Program | str, name: str = "program") -> Checked:
    """The program, typed. Raises ProgramError with all errors that a stage found.

    >>> check(".decl p(x: number) .output p p(1).").program.rules[0].heads[0].args[0].type.kind
    'number'
    """
    if isinstance(program, str):
        program = parse(program, name)
    findings = Findings()
    program = written = translate(program, findings)
    program = with_calls(program, findings)
    findings.raise_errors(program.texts)
    program = resolved(program)
    program = program.with_rules(tuple(map(with_own_targets, program.rules)))
    program = with_optional(program, findings)
    program = replace(program, aggregates=tuple(with_text(definition, findings) for definition in program.aggregates))
    check_definitions(program, findings)
    sound = check_names(program, findings)
    if program.aggregates and findings.errors:  # what is wrong there may be wrong everywhere
        findings.raise_errors(program.texts)
    typed = elaborate(sound, findings)
    check_fits(typed, findings)
    for rule in program.rules:
        for read in {atom.relation for atom, _ in dependencies(rule)} & program.deferred:
            hint = f"leave the word deferred out of the declaration of {read}"
            findings.error("unsupported", f"{read} is deferred, so it is asked and not followed: no rule can read it", rule.span, hint=hint)
        check_safety(rule, findings, program.constrained)
    check_stratified(program, findings)
    if not findings.errors:
        check_monotone(typed, findings)
        check_nulls(typed, findings)
    findings.raise_errors(program.texts)
    try_orders(typed, findings)
    findings.raise_errors(program.texts)
    _warn(program, findings, resolved(written) if program.directed("domain") else program)
    warnings = sorted(findings.warnings, key=lambda warning: (warning.span.line, warning.span.column))
    return Checked(typed, tuple(warnings))


def _warn(program: Program, findings: Findings, written: Program) -> None:
    """What is doubtful; `written` is the program before calls of domains were resolved."""
    for part in program.ignored:
        word = part.text.partition(" ")[0]
        findings.warn("no-effect", f"{word} changes nothing here", part.span, hint=_INSTEAD[word])
    warn_cycles(program, findings)
    recursive = {name for component in components(program) if component.recursive for name in component.relations}
    for directive in program.directed("limitsize"):
        if directive.relation not in recursive:
            message = f"{directive.relation} is not recursive, so .limitsize changes nothing"
            findings.warn("no-effect", message, directive.span, hint="leave it out")
    used = {directive.relation for directive in program.directives} | {trigger.target for trigger in triggers(program)}
    for rule in written.rules:
        used |= {atom.relation for atom, _ in dependencies(rule)} | {head.relation for head in rule.heads}
        if not rule.frame:
            _warn_single_variables(rule, findings)
    for declaration in written.declarations:
        if declaration.relation not in used and not declaration.frame:
            findings.warn(
                "unused-relation", f"nothing uses {declaration.relation}", declaration.span, hint="remove it, or give it an .output"
            )


_INSTEAD = {
    ".pragma": "leave it out; what may be set is an option of the command: vigilog run --help",
    ".plan": "leave it out; joins are ordered by the sizes of relations",
}


def _warn_single_variables(rule: Rule, findings: Findings) -> None:
    uses = list(variables(rule, into_aggregates=True))
    count = Counter(part for variable in uses for part in {variable.name, variable.name.partition(".")[0]})  # a field names its row, too
    grouping = set[str]().union(*(names(literal) for literal in rule.body if isinstance(literal, SetOf)))
    for variable in uses:
        told = "." in variable.name or variable.name.startswith("_") or variable.name in grouping
        if count[variable.name] == 1 and not told:
            findings.warn(
                "single-variable",
                f"{variable.name} occurs only once in this rule",
                variable.span,
                hint=NO_NULLS
                if variable.name.lower() in NULLS
                else f"write _ if its value does not matter, or _{variable.name.lstrip('?')} to keep the name",
            )
