"""Random goals of random programs are followed: their answers, kept by changes alone, are the reference's after every transaction."""

from __future__ import annotations

from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from tests.properties.programs import changes, programs
from tests.properties.test_ask import atoms, bodies, relations
from tests.properties.test_maintenance import STRATEGY
from tests.treatments import examples
from vigilog import reference
from vigilog.core.values import Row
from vigilog.folder.durable import Durable
from vigilog.language.check import check
from vigilog.language.goal import Goal, parse_goal
from vigilog.language.program import Program


def answers(program: Program, goal: Goal, base: dict[str, set[Row]]) -> set[Row]:
    """By the meaning of the language."""
    return {row for _, row in reference.derive(goal.rule, reference.evaluate(program, base))}


@examples(5)
@given(st.data())
def test_followed_goals_are_kept_by_changes(data: st.DataObject) -> None:
    text, facts = data.draw(programs())
    program = check(text).program
    known = relations(program)
    single = atoms(known).map(lambda atom: f"{atom[0]}({', '.join(atom[1])})")
    texts = data.draw(st.lists(st.one_of(single, bodies(known)), min_size=1, max_size=3))
    goals = {text: parse_goal(program, text) for text in texts}
    with TemporaryDirectory() as folder, Durable(f"{folder}/data", program, facts, strategy=data.draw(STRATEGY)) as db:
        followed = {text: db.follow(text) for text in goals}

        def base() -> dict[str, set[Row]]:
            return {name: db.rows(name) for name in db.homes}

        def part(text: str, rows: set[Row]) -> set[Row]:
            found = followed[text]
            return {row[found.hidden :] for row in rows if all(row[column] == value for column, value in found.bound.items())}

        stated = program.with_rules(tuple(rule for rule in program.rules if rule.body))
        copies = {text: part(text, db.view(found.view)) for text, found in followed.items()}
        for text, goal in goals.items():
            assert copies[text] == answers(stated, goal, base()), text
        for transaction in data.draw(changes(facts)):
            deltas = db.apply(transaction)
            for text, goal in goals.items():
                if (delta := deltas.get(followed[text].view)) is not None:
                    gone, came = part(text, set(delta.minus)), part(text, set(delta.plus))
                    assert gone <= copies[text] and not came & copies[text]
                    copies[text] = (copies[text] - gone) | came
                assert copies[text] == answers(stated, goal, base()), text
        assert db.verify().problems == []
