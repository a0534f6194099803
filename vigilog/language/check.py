"""All checks of a program, in their order. What passes is typed, safe and stratified."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from vigilog.core.errors import Finding, Findings
from vigilog.language.names import check_names
from vigilog.language.parser import parse
from vigilog.language.safety import check_safety
from vigilog.language.scope import with_own_targets
from vigilog.language.strata import check_stratified, components, dependencies
from vigilog.language.syntax import Program, Rule, variables
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
    program = program.with_rules(tuple(map(with_own_targets, program.rules)))
    findings = Findings()
    typed = elaborate(check_names(program, findings), findings)
    for rule in program.rules:
        check_safety(rule, findings)
    check_stratified(program, findings)
    findings.raise_errors(program.texts)
    _warn(program, findings)
    warnings = sorted(findings.warnings, key=lambda found: (found.span.line, found.span.column))
    return Checked(typed, tuple(warnings))


def _warn(program: Program, findings: Findings) -> None:
    for part in program.ignored:
        word = part.text.partition(" ")[0]
        findings.warn("no-effect", f"{word} changes nothing here", part.span, hint=_INSTEAD[word])
    recursive = {name for component in components(program) if component.recursive for name in component.relations}
    for directive in program.directed("limitsize"):
        if directive.relation not in recursive:
            message = f"{directive.relation} is not recursive, so .limitsize changes nothing"
            findings.warn("no-effect", message, directive.span, hint="leave it out")
    used = {directive.relation for directive in program.directives}
    for rule in program.rules:
        used |= {atom.relation for atom, _ in dependencies(rule)} | {head.relation for head in rule.heads}
        _warn_single_variables(rule, findings)
    for declaration in program.declarations:
        if declaration.relation not in used:
            findings.warn(
                "unused-relation", f"nothing uses {declaration.relation}", declaration.span, hint="remove it, or give it an .output"
            )


_INSTEAD = {
    ".pragma": "leave it out; what may be set is an option of the command: vigilog run --help",
    ".plan": "leave it out; joins are ordered by the sizes of relations",
}


def _warn_single_variables(rule: Rule, findings: Findings) -> None:
    found = list(variables(rule, into_aggregates=True))
    count = Counter(variable.name for variable in found)
    for variable in found:
        if count[variable.name] == 1 and not variable.name.startswith("_"):
            findings.warn(
                "single-variable",
                f"{variable.name} occurs only once in this rule",
                variable.span,
                hint=f"write _ if its value does not matter, or _{variable.name.lstrip('?')} to keep the name",
            )
