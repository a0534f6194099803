"""The benchmarks: contenders agree on every small workload, and `bench watch` leaves what it promises."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from bench import options
from bench.__main__ import main
from bench.conditions import refuses
from bench.triggers import PostgresTriggers
from bench.watch.contenders import CONTENDERS
from bench.watch.session import Told, digest
from bench.watch.workloads import workloads
from tests.postgres import Postgres
from tests.treatments import taken
from vigilog.folder.opening import open_program

WORKLOADS = {workload.name: workload for workload in workloads(quick=True) if workload.files is None}


@pytest.mark.parametrize("name", taken(WORKLOADS, 1 / 3))
def test_contenders_agree(name: str) -> None:
    workload = WORKLOADS[name]
    facts = workload.facts()
    told: dict[str, object] = {}
    for contender in CONTENDERS:
        if contender.spark or contender.missing() or not contender.can(workload):
            continue
        with closing(contender.open(workload, facts)) as session:
            first = {name: digest(session.view(name)) for name in workload.program.views}
            told[contender.name] = (
                first,
                [Told.of(session.apply(change)) for series in workload.series(facts) for change in series.changes[:2]],
            )
    assert "duckdb" in told and "materialized" in told
    assert {name: answer == told["duckdb"] for name, answer in told.items()} == dict.fromkeys(told, True)


@pytest.mark.apart
def test_watch_writes_table_data_and_chart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(options, "RESULTS", tmp_path)
    chosen = ["--only", "closure", "--contender", "materialized", "--contender", "by-hand", "--contender", "duckdb"]
    assert main(["watch", "--quick", *chosen]) == 0
    assert "DuckDB ÷ materialized" in capsys.readouterr().out
    data = json.loads((tmp_path / "partial" / "watch.json").read_text(encoding="utf-8"))
    assert [measured["contender"] for measured in data["measured"]] == ["materialized", "by-hand", "duckdb"]
    assert (tmp_path / "partial" / "watch.md").read_text(encoding="utf-8").startswith("# Maintaining views")
    assert (tmp_path / "partial" / "watch.png").stat().st_size > 10_000


def test_watch_knows_its_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "--only", "nothing"]) == 2
    assert "there is closure, closure-large" in capsys.readouterr().err
    assert main(["watch", "--contender", "nobody"]) == 2
    assert "there is auto, materialized" in capsys.readouterr().err


@pytest.mark.apart
def test_triggers_of_postgres_check_the_same(database: Postgres) -> None:
    """What is measured beside each other refuses the same changes."""
    workload = WORKLOADS["integrity"]
    facts = workload.facts()
    (series,) = workload.series(facts)
    with (
        closing(PostgresTriggers(database, workload, facts)) as triggers,
        open_program(workload.program.text.replace(".output", ".constraint"), facts) as ours,
    ):
        verdicts = [(triggers.refuses(change), refuses(ours, change)) for change in series.changes[::2]]  # the others undo
    assert len(set(verdicts)) == 2 and all(theirs == own for theirs, own in verdicts)
