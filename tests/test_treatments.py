"""Which part of cases and treatments a run takes."""

from __future__ import annotations

import pytest

from tests.treatments import AMOUNTS, amount, taken, treated

CASES = [f"case-{number}" for number in range(60)]
TREATMENTS = ["auto", "external", "materialized", "counted", "recomputed"]
COMMITS = [f"{number:040x}" for number in range(100)]


def test_in_the_course_of_commits_every_case_meets_every_treatment() -> None:
    met = {pair for commit in COMMITS for pair in treated(CASES, TREATMENTS, part=1 / 2, size="usual", commit=commit)}
    assert met == {(case, treatment) for case in CASES for treatment in TREATMENTS}


@pytest.mark.parametrize("size", ["quick", "usual"])
def test_a_new_case_moves_no_other(size: str) -> None:
    for commit in COMMITS[:5]:
        before = treated(CASES, TREATMENTS, part=1 / 2, size=size, commit=commit)
        after = treated(["a-new-one", *CASES], TREATMENTS, part=1 / 2, size=size, commit=commit)
        assert [pair for pair in after if pair[0] != "a-new-one"] == before
        assert [case for case in taken(["a-new-one", *CASES], 1 / 3, size=size, commit=commit) if case != "a-new-one"] == taken(
            CASES, 1 / 3, size=size, commit=commit
        )


def test_a_new_treatment_takes_cases_from_others_and_moves_none_between_them() -> None:
    before = dict(treated(CASES, TREATMENTS, size="usual", commit=COMMITS[0]))
    after = dict(treated(CASES, [*TREATMENTS, "deferred"], size="usual", commit=COMMITS[0]))
    assert {case for case in CASES if after[case] != before[case]} == {case for case in CASES if after[case] == "deferred"} != set()


def test_parts_are_about_as_large_as_asked_for() -> None:
    numbers = [len(treated(CASES, TREATMENTS, part=1 / 3, size="usual", commit=commit)) for commit in COMMITS]
    assert 0.3 < sum(numbers) / len(numbers) / len(CASES) < 0.37
    assert min(numbers) > 5 and max(numbers) < 35


def test_sizes() -> None:
    whole = [(case, treatment) for case in CASES for treatment in TREATMENTS]
    assert treated(CASES, TREATMENTS, part=1 / 3, size="long", commit=COMMITS[0]) == whole
    assert [case for case, _ in treated(CASES, TREATMENTS, size="usual", commit=COMMITS[0])] == CASES
    assert taken(CASES, 1 / 3, size="usual") == taken(CASES, 1 / 3, size="long") == CASES
    assert set(taken(CASES, 1 / 3, size="quick", commit=COMMITS[0])) < set(CASES)
    assert [amount(9, size) for size in AMOUNTS] == [1, 9, 180] and amount(1, "quick") == 1
