"""Random goals of random programs: the answers are the reference's rows, whatever is known in the goal and whatever is stored."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.properties.programs import CONSTANTS, TYPES, VARIABLES, Names, Relation, _body, programs
from tests.properties.test_maintenance import STRATEGY
from tests.treatments import examples
from vigilog import reference
from vigilog.engine.database import Database
from vigilog.language.check import check
from vigilog.language.goal import parse_goal
from vigilog.language.program import Program

LETTERS = {type_: letter for letter, type_ in TYPES.items()}
PATTERNS = {letter: [*VARIABLES[letter], "_", *CONSTANTS[letter]] for letter in TYPES}


def relations(program: Program) -> list[Relation]:
    return [Relation(name, "".join(LETTERS[str(type_)] for type_ in known.types)) for name, known in program.relations.items()]


@st.composite
def atoms(draw: DrawFn, known: list[Relation]) -> tuple[str, list[str]]:
    """A relation, and for each of its columns a constant, a variable (some of them twice) or `_`."""
    relation = draw(st.sampled_from(known))
    return relation.name, [draw(st.sampled_from(PATTERNS[column])) for column in relation.columns]


@st.composite
def bodies(draw: DrawFn, known: list[Relation]) -> str:
    """Several literals: joins, comparisons, negation, aggregates, computed values, disjunctions."""
    return ", ".join(draw(st.permutations(draw(_body(Names(), [], known)).literals)))


def matches(args: list[str], row: tuple[Any, ...]) -> bool:
    """Whether a row is an instance of an atom's arguments."""
    bound: dict[str, Any] = {}
    for arg, cell in zip(args, row, strict=True):
        if arg[0] == '"' or arg.isdigit():
            if cell != (arg[1:-1] if arg[0] == '"' else int(arg)):
                return False
        elif arg[0] == "{":
            if cell != {int(each) for each in arg[1:-1].split(", ") if each}:
                return False
        elif arg != "_" and bound.setdefault(arg, cell) != cell:
            return False
    return True


@examples(28)
@given(st.data())
def test_an_atoms_answers_are_its_rows(data: st.DataObject) -> None:
    text, facts = data.draw(programs())
    program = check(text).program
    state = reference.evaluate(program, facts)
    with Database(program, facts, data.draw(STRATEGY)) as database:
        for name, args in data.draw(st.lists(atoms(relations(program)), min_size=1, max_size=6)):
            goal = f"{name}({', '.join(args)})"
            assert database.ask(goal) == sorted(row for row in state[name] if matches(args, row)), goal


@examples(28)
@given(st.data())
def test_a_bodys_answers_are_its_bindings(data: st.DataObject) -> None:
    text, facts = data.draw(programs())
    program = check(text).program
    state = reference.evaluate(program, facts)
    with Database(program, facts, data.draw(STRATEGY)) as database:
        for body in data.draw(st.lists(bodies(relations(program)), min_size=1, max_size=4)):
            goal = parse_goal(program, body)
            assert database.ask(body) == sorted({row for _, row in reference.derive(goal.rule, state)}), body
