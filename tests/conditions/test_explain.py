"""What `explain --show conditions` prints: each condition as written and unfolded, what it does, and what it is indexed by."""

from __future__ import annotations

import pytest

from tests.conditions.test_golden import WITH_CONDITIONS
from tests.golden import Case
from vigilog.explain.conditions import explain_conditions
from vigilog.language.check import check
from vigilog.language.parser import parse
from vigilog.language.printer import show_statement

FORMS = """
.decl a(x: number, y: number)
.decl big, other(x: number, y: number)
big(x, y), other(y, x) :- a(x, y), (x > 7 ; a(y, 3)).
.decl sized(x: number, n: number)
sized(x, n) :- big(x, _), setof(y, other(y, x), s), count(s, n).
.alert big(key=x, mode=resatisfiable, for=60)
.alert sized(name=size, key=x, mode=resatisfiable, unfold=true)
.constraint other(priority=2)
.trigger big(insert=a)
"""
SHOWN = """\
// big; alert big (resatisfiable, by x, for 60 seconds); trigger: insert a, priority 0
big(x, y) :- a(x, y), (x > 7 ; a(y, 3)).

// big, unfolded, is indexed by a, a(_, 3)
big_unfolded(x, y) :- a(x, y), x > 7.
big_unfolded(x, y) :- a(x, y), a(y, 3).

// big: keys that hold, and proofs
big_by_x(x) :- big(x, _).

// sized; alert size (resatisfiable, by x, unfolded)
sized(x, n) :- big(x, _), setof(y, other(y, x), s), count(s, n).

// sized, unfolded, is indexed by a, a(_, 3), other
sized_unfolded(x, n) :- a(x, y2), x > 7, setof(y, other(y, x), s), count(s, n).
sized_unfolded(x, n) :- a(x, y2), a(y2, 3), setof(y, other(y, x), s), count(s, n).

// sized: keys that hold, and proofs
sized_by_x(x) :- sized(x, _).
sized_unfolded_proof_1(x, n, y2, s) :- a(x, y2), x > 7, setof(y, other(y, x), s), count(s, n).
sized_unfolded_proof_2(x, n, y2, s) :- a(x, y2), a(y2, 3), setof(y, other(y, x), s), count(s, n).

// other; constraint (enforced, priority 2)
other(y, x) :- a(x, y), (x > 7 ; a(y, 3)).
"""


def test_conditions_are_printed_as_written_and_unfolded() -> None:
    said = explain_conditions(check(FORMS).program)
    assert SHOWN in said
    assert said.endswith(
        "// other, unfolded, is indexed by a, a(_, 3)\nother_unfolded(y, x) :- a(x, y), x > 7.\nother_unfolded(y, x) :- a(x, y), a(y, 3)."
    )


@pytest.mark.parametrize("case", WITH_CONDITIONS, ids=str)
def test_what_is_printed_parses_again(case: Case) -> None:
    program = check(case.program).program
    shown = parse(explain_conditions(program))
    printed = {show_statement(rule) for rule in shown.rules}
    for condition in {said.relation for kind in ("alert", "constraint", "trigger") for said in program.directed(kind)}:
        assert {show_statement(rule) for rule in program.rules if rule.body and rule.heads[0].relation == condition} <= printed
