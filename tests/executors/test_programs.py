"""Every golden case under every treatment, with one expected result; on Spark a part of the cases, each in one way, which is another at another commit."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.conftest import compiled
from tests.golden import Case, cases
from tests.treatments import treated
from vigilog import reference
from vigilog.core.values import row_text, sorted_rows
from vigilog.engine.evaluate import run
from vigilog.engine.places import inputs, outputs
from vigilog.executors import growing
from vigilog.executors.spark import machine, near
from vigilog.executors.watch import Watch
from vigilog.files import reader
from vigilog.files.writer import line_writer
from vigilog.language.check import check
from vigilog.language.parser import parse
from vigilog.language.printer import show
from vigilog.language.program import Program
from vigilog.rewriting.passes import rewrite

CASES = cases()
ON_SPARK = treated(CASES, ["plain", "compiled", "many"], part=2 / 3)


def by_reference(program: Program, folder: Path) -> dict[str, list[str]]:
    facts = {name: list(reader.rows(place)) for name, place in inputs(program, folder).items()}
    state = reference.evaluate(program, facts)
    lines = {}
    for place in outputs(program, folder):
        line = line_writer(place)
        lines[place.relation] = [line(row_text(place.types, row))[:-1] for row in sorted_rows(state[place.relation])]
    return lines


def by_engine(program: Program, folder: Path, engine: str, undefined: bool | None = None) -> dict[str, list[str]]:
    """What an executor writes; `undefined` says, if it is to be checked, whether a functor in the program has no value somewhere."""
    finished = run(program, folder, folder / "out", engine, Watch(timeout=120))
    assert finished.stats.engine == engine
    assert undefined is None or (finished.stats.undefined > 0) == undefined
    return written(program, folder / "out")


def written(program: Program, folder: Path) -> dict[str, list[str]]:
    files = {place.relation: place.path for place in outputs(program, folder)}
    return {relation: path.read_text(encoding="utf-8").split("\n")[:-1] for relation, path in files.items()}


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("treatment", ["reference", "embedded", "duckdb"])
def test_result(case: Case, treatment: str, tmp_path: Path) -> None:
    case.write_facts(tmp_path)
    program = check(case.program, case.path.name).program
    result = by_reference(program, tmp_path) if treatment == "reference" else by_engine(program, tmp_path, treatment, case.undefined)
    assert result == case.expect


@pytest.mark.parametrize(("case", "patience"), treated(CASES, [0.0, 0.002]), ids=str)
def test_result_of_what_begins_on_sqlite(case: Case, patience: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB goes on from wherever SQLite was when its patience ended."""
    monkeypatch.setattr(growing, "PATIENCE", patience)
    case.write_facts(tmp_path)
    program = check(case.program, case.path.name).program
    finished = run(program, tmp_path, tmp_path / "out", "auto", Watch(timeout=120))
    assert finished.stats.engine == finished.chosen.engine
    assert ("SQLite had not come to an end" in finished.chosen.reason) == (finished.stats.engine == "duckdb")
    assert written(program, tmp_path / "out") == case.expect


@pytest.mark.parametrize(("case", "way"), ON_SPARK, ids=str)
def test_result_on_spark(case: Case, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With plans that are compiled, as for users, or not; or as if the rows were many."""
    case.write_facts(tmp_path)
    program = check(case.program, case.path.name).program
    if way == "many":
        monkeypatch.setattr(machine, "SMALL_ROWS", 0)
        monkeypatch.setattr(near, "READ_ROWS", -1)
    with compiled() if way == "compiled" else nullcontext():
        assert by_engine(program, tmp_path, "spark", case.undefined) == case.expect


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("treatment", ["printed", "normalized"])
def test_printed_program_means_the_same(case: Case, treatment: str, tmp_path: Path) -> None:
    case.write_facts(tmp_path)
    program = check(case.program).program
    again = check(show(rewrite(program) if treatment == "normalized" else program)).program
    assert by_engine(again, tmp_path, "embedded") == case.expect


@pytest.mark.parametrize("case", CASES, ids=str)
def test_printed_program_parses_to_itself(case: Case) -> None:
    program = parse(case.program)
    assert parse(show(program)) == program
