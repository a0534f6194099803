"""Questions about a region: which of its facts, or rows, fit an atom; whether all instances of a fact hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, product
from math import prod
from typing import assert_never

from vigilog.core.errors import DataError, ProgramError
from vigilog.core.values import Row, Type
from vigilog.language.parser import parse
from vigilog.language.parts import rename_literal
from vigilog.language.printer import show_body, show_term
from vigilog.language.syntax import Aggregate, Atom, Constant, Functor, Rule, Variable, Wildcard
from vigilog.mediators.conjunction import Conjunction
from vigilog.mediators.facts import parsed_where
from vigilog.mediators.regions import Region, common, minus
from vigilog.mediators.solver import Solver

MOST_ROWS = 10_000
MOST_TRIED = 1_000_000


def read_atom(text: str) -> Rule | None:
    """An atom, or one with a condition, `b(x) :- x >= 7.`; None if the text is something else."""
    bare = text.strip().removesuffix(".")
    try:
        rules = parse(f"{bare}." if ":-" in bare else f"answer() :- {bare}.", "goal").rules
    except ProgramError:
        return None
    if len(rules) != 1 or len(rules[0].heads) != 1:
        return None
    if ":-" in bare:
        return rules[0]
    return Rule((rules[0].body[0],)) if len(rules[0].body) == 1 and isinstance(rules[0].body[0], Atom) else None


def wanted(rule: Rule, columns: Mapping[str, Type]) -> list[Conjunction]:
    """The region that an atom with conditions stands for."""
    head = rule.head
    if len(head.args) != len(columns):
        raise DataError(f"{head.relation} has {len(columns)} columns, and {len(head.args)} stand here", "goal")
    seen: dict[str, str] = {}
    parts = []
    for column, arg in zip(columns, head.args, strict=True):
        match arg:
            case Variable():
                parts += [f"{column} = {seen[arg.name]}"] if arg.name in seen else []
                seen.setdefault(arg.name, column)
            case Constant() | Functor():
                parts.append(f"{column} = {show_term(arg)}")
            case Wildcard() | Aggregate():
                pass
            case _:
                assert_never(arg)
    if rule.body:
        named = {name: Variable(column) for name, column in seen.items()}
        parts.append(show_body(tuple(rename_literal(literal, named) for literal in rule.body)))
    return parsed_where(", ".join(parts) or "true", columns)


def answers(region: Region, rule: Rule, columns: Mapping[str, Type], solver: Solver) -> list[Conjunction]:
    """What a region has of an atom."""
    return common(region, wanted(rule, columns), solver)


def counterexample(region: Region, rule: Rule, columns: Mapping[str, Type], solver: Solver) -> Row | None:
    """An instance of an atom that does not hold; None if all of them do: then the atom is true in the view (2.3)."""
    for part in minus(wanted(rule, columns), region, solver):
        if (places := solver.instance(part)) is not None:
            return tuple(runs.axis.value(places[name]) for name, runs in part.runs.items())
    return None


def rows(region: Iterable[Conjunction]) -> set[Row]:
    """All rows of a region. Raises DataError if they are more than 10,000, or have no end."""
    all_rows: set[Row] = set()
    for part in region:
        sizes = [runs.size(MOST_TRIED) for runs in part.runs.values()]
        if any(size is None for size in sizes) or prod(size or 0 for size in sizes) > MOST_TRIED:
            raise DataError("the answers have no end, or are too many to be told one by one; ask for facts", "infinite")
        all_rows |= set(islice(_rows(part), MOST_ROWS + 1 - len(all_rows)))
        if len(all_rows) > MOST_ROWS:
            raise DataError(f"the answers are more than {MOST_ROWS} rows; ask for facts", "infinite")
    return all_rows


def _rows(part: Conjunction) -> Iterator[Row]:
    for places in product(*(list(runs.places()) for runs in part.runs.values())):
        fixed: Conjunction | None = part
        for (name, runs), place in zip(part.runs.items(), places, strict=True):
            fixed = fixed and fixed.limited(name, runs.axis.at(place))
        if fixed is not None and not fixed.tests:
            yield tuple(runs.axis.value(place) for runs, place in zip(part.runs.values(), places, strict=True))
