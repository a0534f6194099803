"""What is done with the changes of views: `.alert`, `.constraint`, `.trigger`, read from a program's directives.

>>> from vigilog.language.check import check
>>> program = check(".decl low(item: symbol, n: number) .alert low(key=item, message=\\"{item} has {n}\\")").program
>>> alert, = alerts(program)
>>> alert.name, alert.key, told(alert.message, ("item", "n"), ("nut", "3"))
('low', (0,), 'nut has 3')
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from vigilog.core.errors import Findings, did_you_mean
from vigilog.core.spans import NOWHERE, Span
from vigilog.language.parts import aggregates, atoms, is_fact
from vigilog.language.program import Program
from vigilog.language.syntax import Directive, Rule

CONDITIONS = ("alert", "constraint", "trigger")
OPERATIONS = ("insert", "delete", "upsert", "delete_key")
ENFORCED, REPORT, DEFERRED = "enforced", "report", "deferred"
_COLUMN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")


@dataclass(frozen=True)
class Alert:
    """Tells when a key of a relation begins to hold, holds by new proofs (`resatisfiable`), or holds no more. Times are seconds."""

    name: str
    relation: str
    key: tuple[int, ...]
    resatisfiable: bool
    unfold: bool
    message: str
    severity: str
    every: int
    wait: int  # `for`
    keep: int
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def timed(self) -> bool:
        return bool(self.wait or self.keep)


@dataclass(frozen=True)
class Integrity:
    """An integrity constraint: the rows of its relation are violations."""

    name: str
    relation: str
    key: tuple[int, ...]
    mode: str
    priority: int
    message: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Trigger:
    """What enters a relation is inserted into a base relation, or deleted from it."""

    name: str
    relation: str
    operation: str
    target: str
    priority: int
    span: Span = field(default=NOWHERE, compare=False)


def alerts(program: Program) -> tuple[Alert, ...]:
    return tuple(
        Alert(
            directive.option.get("name", directive.relation),
            directive.relation,
            _key(program, directive),
            directive.option.get("mode") == "resatisfiable",
            directive.option.get("unfold") == "true",
            directive.option.get("message", ""),
            directive.option.get("severity", ""),
            _number(directive, "every"),
            _number(directive, "for"),
            _number(directive, "keep"),
            directive.span,
        )
        for directive in program.directed("alert")
    )


def constraints(program: Program) -> tuple[Integrity, ...]:
    """The integrity constraints, in the order in which they are told."""
    integrity = [
        Integrity(
            directive.relation,
            directive.relation,
            _key(program, directive),
            directive.option.get("mode", ENFORCED),
            _number(directive, "priority"),
            directive.option.get("message", ""),
            directive.span,
        )
        for directive in program.directed("constraint")
    ]
    return tuple(sorted(integrity, key=rank))


def rank(constraint: Integrity) -> tuple[int, str]:
    """In which order constraints are told: by priority, then by name."""
    return constraint.priority, constraint.name


def triggers(program: Program) -> tuple[Trigger, ...]:
    return tuple(
        Trigger(directive.relation, directive.relation, operation, target, _number(directive, "priority"), directive.span)
        for directive in program.directed("trigger")
        for operation, target in directive.options
        if operation in OPERATIONS
    )


def told(message: str, columns: Sequence[str], cells: Sequence[str]) -> str:
    """A message with a row's cells in the place of its columns' names; `{{` and `}}` are braces."""
    cell_of = dict(zip(columns, cells, strict=True))
    return _COLUMN.sub(lambda match: match[0][0] if match[1] is None else cell_of[match[1]], message)


def _number(directive: Directive, option: str) -> int:
    """What an option says; 0 if it is not there, or is refused."""
    value = directive.option.get(option, "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else 0


def _key(program: Program, directive: Directive) -> tuple[int, ...]:
    """The columns of a condition's key, in the order of the relation; all, unless it names some."""
    columns = program.relations[directive.relation].columns
    named = key_columns(directive)
    return tuple(place for place, column in enumerate(columns) if not named or column in named)


def key_columns(directive: Directive) -> list[str]:
    """The columns that a directive names as its key."""
    return [part.strip() for part in directive.option["key"].split(",")] if "key" in directive.option else []


# -- checks


def check_condition(program: Program, directive: Directive, findings: Findings) -> None:
    """Checks one directive, whose options are known to be ones that there are."""
    word = f".{directive.kind}"
    if directive.relation not in program.relations:
        hint = did_you_mean(directive.relation, program.relations) or f"declare it: .decl {directive.relation}(…)"
        rule = "a condition is a relation: a view, or a base relation"
        findings.error(
            "condition", f"{word} names a relation that there is not, {directive.relation}", directive.span, rule=rule, hint=hint
        )
        return
    if directive.relation in program.constrained | program.deferred:
        how = "constrained" if directive.relation in program.constrained else "deferred"
        rule = "a condition goes by the rows that it gains and loses"
        hint = (
            f"let another relation read {directive.relation}" if how == "constrained" else f"declare {directive.relation} without deferred"
        )
        findings.error("condition", f"{word} names {directive.relation}, which is declared {how}", directive.span, rule=rule, hint=hint)
        return
    columns = program.relations[directive.relation].columns
    shown = f"the columns of {directive.relation} are {', '.join(columns)}" if columns else f"{directive.relation} has no columns"
    for column in key_columns(directive):
        if column not in columns:
            message = f"the key of {word} {directive.relation} names {column}, which is no column"
            findings.error("condition", message, directive.span, rule=shown, hint=did_you_mean(column, columns))
    for match in _COLUMN.finditer(directive.option.get("message", "")):
        if match[1] is not None and match[1] not in columns:
            hint = did_you_mean(match[1], columns) or "a brace that is meant as it is, is written twice: {{"
            findings.error(
                "condition", f"the message of {word} {directive.relation} names {{{match[1]}}}", directive.span, rule=shown, hint=hint
            )
    if directive.kind == "trigger":
        _check_trigger(program, directive, findings)


def _check_trigger(program: Program, directive: Directive, findings: Findings) -> None:
    operations = [(key, target) for key, target in directive.options if key in OPERATIONS]
    rule = f"a trigger has one operation: {', '.join(OPERATIONS)}"
    if len(operations) != 1:
        what = "no operation" if not operations else "several operations"
        hint = f"write .trigger {directive.relation}(insert=r)" if not operations else "write one .trigger for each"
        findings.error("condition", f".trigger {directive.relation} has {what}", directive.span, rule=rule, hint=hint)
        return
    ((operation, target),) = operations
    if target not in program.relations:
        hint = did_you_mean(target, program.relations) or f"declare it: .decl {target}(…)"
        findings.error("condition", f".trigger {directive.relation} changes {target}, which there is not", directive.span, hint=hint)
    elif target in program.constrained:
        rule = "a trigger gives rows, and takes rows"
        findings.error(
            "condition", f".trigger {directive.relation} changes {target}, which is declared constrained", directive.span, rule=rule
        )
    elif target not in changeable(program):
        rule = "a trigger changes base relations; what follows from them is derived"
        hint = f"change a relation that {target} is derived from"
        findings.error(
            "condition", f".trigger {directive.relation} changes {target}, which is derived by rules", directive.span, rule=rule, hint=hint
        )
    elif operation in ("upsert", "delete_key") and target not in program.keys:
        columns = program.relations[target].columns
        hint = f"declare one: .key {target}({columns[0] if columns else ''})"
        findings.error("condition", f"{operation} of .trigger {directive.relation} needs a key of {target}", directive.span, hint=hint)


def check_conditions(program: Program, findings: Findings) -> None:
    """Checks what directives say together; and, when types are known, that what a trigger gives fits what it changes."""
    first: dict[str, Directive] = {}
    for directive in program.directed("alert"):
        name = directive.option.get("name", directive.relation)
        if name in first:
            rule = f"alerts have different names; the first {name} is at {first[name].span}"
            hint = f"name it: .alert {directive.relation}(name=…)"
            findings.error("condition", f"there are two alerts {name}", directive.span, rule=rule, hint=hint)
        first.setdefault(name, directive)
    constrained: dict[str, Directive] = {}
    for directive in program.directed("constraint"):
        if directive.relation in constrained:
            rule = f"a relation is one constraint; the first is at {constrained[directive.relation].span}"
            findings.error("condition", f"{directive.relation} has two .constraint directives", directive.span, rule=rule)
        constrained.setdefault(directive.relation, directive)


def check_fits(program: Program, findings: Findings) -> None:
    """Checks that what triggers give fits what they change; types are known."""
    counts = Counter(trigger.span for trigger in triggers(program))
    for trigger in triggers(program):
        if trigger.relation not in program.relations or trigger.target not in program.relations or counts[trigger.span] > 1:
            continue  # that is an error already
        given, target = program.relations[trigger.relation], program.relations[trigger.target]
        wanted = target.attributes
        if trigger.operation == "delete_key":
            if trigger.target not in program.keys:
                continue
            wanted = tuple(target.attributes[column] for column in program.keys[trigger.target])
        if [attribute.type for attribute in given.attributes] != [attribute.type for attribute in wanted]:
            of = "the key of " if trigger.operation == "delete_key" else ""
            shown = ", ".join(f"{attribute.name}: {attribute.type_name}" for attribute in wanted)
            message = f"{trigger.relation} does not have the columns of {of}{trigger.target}"
            rule = f"{trigger.operation} takes rows of {of}{trigger.target}: {shown or 'no columns'}"
            hint = "give the condition these columns, in this order"
            findings.error("condition", message, trigger.span, rule=rule, hint=hint)


def changeable(program: Program) -> set[str]:
    """The relations that a transaction may change: those without rules, and those with rows of their own."""
    derived = {head.relation for rule in program.rules if not is_fact(rule) for head in rule.heads}
    stated = {directive.relation for directive in program.directed("input")}
    stated |= {head.relation for rule in program.rules if is_fact(rule) for head in rule.heads}
    return {name for name in program.relations if name not in derived or name in stated}


# -- cycles


def warn_cycles(program: Program, findings: Findings) -> None:
    """Warns of triggers that may set each other off."""
    all_triggers = triggers(program)
    if not all_triggers:
        return
    reads = _reads(program)
    sets_off = {number: _set_off(all_triggers, trigger, reads) for number, trigger in enumerate(all_triggers)}
    warned: set[frozenset[int]] = set()
    for number in sets_off:
        cycle = _cycle(number, sets_off)
        if cycle and frozenset(cycle) not in warned:
            warned.add(frozenset(cycle))
            steps = [
                f"{all_triggers[place].name} ({all_triggers[place].operation} {all_triggers[place].target})" for place in (*cycle, cycle[0])
            ]
            message = f"triggers may set each other off: {' → '.join(steps)}"
            rule = "a trigger that follows from itself goes on until nothing enters its condition, or it is refused (cascade)"
            hint = "let the condition be false once the trigger has done its work: !done(x)"
            findings.warn("trigger-cycle", message, all_triggers[number].span, rule=rule, hint=hint)


Signed = tuple[str, bool]  # a relation, and whether it gains rows


def _reads(program: Program) -> dict[Signed, set[Signed]]:
    """What may gain or lose rows when a relation gains or loses some."""
    effects: dict[Signed, set[Signed]] = {}
    for rule in program.rules:
        for relation, sign in _signs(rule):
            for gains in (True, False):
                for effect in (True, False):
                    if sign is None or effect == (gains == sign):
                        effects.setdefault((relation, gains), set()).update((head.relation, effect) for head in rule.heads)
    return effects


def _signs(rule: Rule) -> Iterator[tuple[str, bool | None]]:
    """The relations that a rule reads: positively, negated, or, in an aggregate, either way."""
    inside = {atom.relation for aggregate in aggregates(rule) for atom, _ in atoms(aggregate.body)}
    yield from ((relation, None) for relation in sorted(inside))
    yield from ((atom.relation, sign) for atom, sign in atoms(rule.body) if atom.relation not in inside)


def _set_off(all_triggers: Sequence[Trigger], trigger: Trigger, reads: dict[Signed, set[Signed]]) -> list[int]:
    """The triggers whose conditions may gain rows by what a trigger does."""
    gains = {"insert": [True], "upsert": [True, False], "delete": [False], "delete_key": [False]}[trigger.operation]
    reached = {(trigger.target, gain) for gain in gains}
    queue = list(reached)
    for state in queue:
        new = reads.get(state, set()) - reached
        reached |= new
        queue.extend(sorted(new))
    return [number for number, other in enumerate(all_triggers) if (other.relation, True) in reached]


def _cycle(start: int, sets_off: dict[int, list[int]]) -> list[int]:
    """The shortest way from a trigger back to itself; nothing if there is none."""
    paths = [[start]]
    seen: set[int] = set()
    for path in paths:
        for number in sets_off[path[-1]]:
            if number == start:
                return path
            if number not in seen:
                seen.add(number)
                paths.append([*path, number])
    return []
