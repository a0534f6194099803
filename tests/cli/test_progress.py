"""Long work is shown: which stages it has, how far they are, and where that is shown."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vigilog
from tests.golden import GRAPH
from vigilog.cli import progress as shown
from vigilog.engine.evaluate import run
from vigilog.executors.embedded import bulk
from vigilog.executors.spark import tasks
from vigilog.executors.watch import Stage, Watch
from vigilog.language.check import check
from vigilog.spark import session

pytestmark = pytest.mark.apart

COMMAND = str(Path(sys.executable).with_name("vigilog"))
DIVERGES = ".decl n(x: number)\n.output n\nn(0).\nn(x + 1) :- n(x).\n"
BACK = ".decl edge(x: number, y: number)\n.input edge\n.decl back(x: number, y: number)\n.output back\nback(y, x) :- edge(x, y).\n"
ROWS = 30_000
TEXT = "".join(f"{number}\t{number + 1}\n" for number in range(ROWS))


def of(stages: list[Stage], name: str) -> list[Stage]:
    return [stage for stage in stages if stage.name == name]


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    (tmp_path / "edge.facts").write_text(TEXT)
    (tmp_path / "back.dl").write_text(BACK)
    return tmp_path


# -- what is told


def test_a_run_tells_what_it_reads_derives_and_writes(edges: Path) -> None:
    stages: list[Stage] = []
    run(check(BACK).program, edges, edges / "out", "embedded", Watch(report=stages.append))
    assert list(dict.fromkeys(stage.name for stage in stages)) == ["reading edge", "back", "writing", "writing back"]
    reading, writing = of(stages, "reading edge")[1:], of(stages, "writing back")[1:]
    assert [(stage.rows, stage.total, stage.unit) for stage in reading] == [(rows, len(TEXT), "byte") for rows in (10_000, 20_000, 30_000)]
    assert 0 < reading[0].done < reading[1].done <= reading[-1].done == len(TEXT)
    assert [(stage.done, stage.total, stage.unit) for stage in writing] == [(rows, ROWS, "row") for rows in (10_000, 20_000, 30_000)]


def test_a_recursion_tells_its_rounds(tmp_path: Path) -> None:
    stages: list[Stage] = []
    text = DIVERGES.replace(":- n(x)", ":- n(x), x < 5")
    run(check(text).program, tmp_path, tmp_path / "out", "embedded", Watch(report=stages.append))
    assert [(stage.round, stage.rows) for stage in of(stages, "n")] == [(0, 0), *((round_, round_) for round_ in range(1, 7))]


def test_several_rules_are_counted(tmp_path: Path) -> None:
    stages: list[Stage] = []
    text = BACK + "back(x, y) :- edge(x, y).\nback(x, x) :- edge(x, _).\n"
    (tmp_path / "edge.facts").touch()
    run(check(text).program, tmp_path, tmp_path / "out", "embedded", Watch(report=stages.append))
    assert [stage.detail for stage in of(stages, "back")] == ["", "1 of 3 rules", "2 of 3 rules"]


def test_a_data_folder_tells_its_stages(edges: Path) -> None:
    stages: list[Stage] = []
    (edges / "more.facts").write_text(TEXT.replace("\t", "\t9"))
    with vigilog.open(edges / "back.dl", edges, data=edges / "data", strategy="materialized", report=stages.append) as db:
        assert of(stages, "reading edge")[-1] == Stage("reading edge", ROWS, 0, len(TEXT), len(TEXT), "byte")
        for change in (db.load, db.sync):
            stages.clear()
            change("edge", edges / "more.facts")
            assert of(stages, "reading edge")[1].unit == "byte" and of(stages, "maintaining views")
        stages.clear()
        assert db.verify("embedded").fine
        names = {stage.name for stage in stages}
        assert {"checking the log", "checking base relation edge", "reading edge", "back", "checking stored back"} <= names
        assert of(stages, "checking the log")[-1].detail == "2 of 2 transactions"
        stages.clear()
        assert len(db.view("back")) == ROWS
        assert of(stages, "reading back")[-1] == Stage("reading back", ROWS, 0, ROWS, ROWS, "row")
        stages.clear()
        db.backup(edges / "copy")
        assert of(stages, "copying the file")[-1].unit == "byte"
        copied = of(stages, "copying segments and snapshots")[-1]
        assert copied.done == copied.total and copied.unit == "byte", "there are segments"


def test_what_goes_to_duckdb_and_back_is_counted(edges: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "PATIENCE", 0.0)
    stages: list[Stage] = []
    with vigilog.open(edges / "back.dl", edges, data=edges / "data", strategy="materialized", report=stages.append):
        for name in ("reading edge", "storing back"):
            assert of(stages, name)[-1].detail == f"{ROWS:,} of {ROWS:,} rows"


def test_what_is_asked_tells_its_rounds(edges: Path) -> None:
    stages: list[Stage] = []
    with vigilog.open(edges / "back.dl", edges, strategy="external", report=stages.append) as db:
        assert of(stages, "reading edge")[-1].rows == ROWS
        stages.clear()
        db.ask("back(x, y)")
        assert of(stages, "answering")[-1].round and of(stages, "answering")[-1].rows >= ROWS


def test_a_pipe_has_rows_and_no_size(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "edge.facts")
    stages: list[Stage] = []
    with subprocess.Popen(["sh", "-c", f"yes '1\t2' | head -{ROWS} > {tmp_path / 'edge.facts'}"]):
        run(check(BACK).program, tmp_path, tmp_path / "out", "embedded", Watch(report=stages.append))
    assert of(stages, "reading edge")[-1].detail == "30,000 rows"


def test_spark_tells_its_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "SECONDS", 0.005)
    stages: list[Stage] = []
    (tmp_path / "lake").mkdir()
    for part in range(3):
        pq.write_table(pa.table({"x": list(range(ROWS)), "y": [part] * ROWS}), tmp_path / "lake" / f"part-{part}.parquet")
    program = BACK.replace(".input edge", '.input edge(IO=parquet, filename="lake")')
    run(check(program).program, tmp_path, tmp_path / "out", "auto", Watch(report=stages.append))
    assert of(stages, "starting Spark")
    reading = of(stages, "reading edge")
    assert reading[0].rows == 3 * ROWS, "Parquet knows"
    counted = [stage for stage in reading if stage.unit == "task"]
    assert counted and all(stage.total and 0 <= stage.done <= stage.total for stage in counted)
    assert of(stages, "writing back")[0].rows == 3 * ROWS


def test_a_large_relation_on_spark_tells_its_stages(tmp_path: Path) -> None:
    stages: list[Stage] = []
    pq.write_table(pa.table({"x": list(range(ROWS)), "y": [1] * ROWS}), tmp_path / "edge.parquet")
    program = BACK.replace(".input edge", ".input edge(IO=parquet)")
    session.stop()
    with vigilog.open(program, tmp_path, data=tmp_path / "data", memory=1000, report=stages.append) as db:
        names = [stage.name for stage in stages]
        assert names.index("starting Spark") < names.index("writing edge"), "it is read and written in one action"
        assert of(stages, "writing edge")[0].rows == ROWS
        stages.clear()
        db.apply({"insert": {"edge": [[-1, -1]]}})
        assert of(stages, "reading edge")[0].rows == ROWS and of(stages, "looking up") and of(stages, "maintaining")


# -- where it is shown


@dataclass(frozen=True)
class Seen:
    status: int
    out: bytes
    seen: str  # on the terminal, which is where errors go


@contextmanager
def terminal(folder: Path, *arguments: str, out: IO[bytes] | int = subprocess.PIPE) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A command whose standard error is a terminal, and what it shows there."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    command = [COMMAND, *arguments]
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=out, stderr=theirs, env=environment) as running:
        os.close(theirs)
        yield running, ours
    os.close(ours)


def on_terminal(folder: Path, *arguments: str) -> Seen:
    seen = b""
    with TemporaryFile() as out, terminal(folder, *arguments, out=out) as (running, ours):
        with pytest.raises(OSError, match="Input/output error"):  # the other side is closed
            while part := os.read(ours, 65536):
                seen += part
        running.wait(60)
        out.seek(0)
        return Seen(running.returncode, out.read(), re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode()))


def test_a_terminal_sees_rounds_and_rows(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(DIVERGES)
    ended = on_terminal(tmp_path, "run", "p.dl", "-D", "out", "--engine", "embedded", "--timeout", "2")
    assert (ended.status, ended.out) == (1, b"")
    assert re.search(r"n ━+ round [\d,]+, [\d,]+ rows 0:01", ended.seen)
    assert "error[timeout]" in ended.seen


def test_rows_go_to_standard_output_whoever_watches(tmp_path: Path) -> None:
    """Also those that are printed while something is shown."""
    (tmp_path / "n.dl").write_text(DIVERGES.replace(":- n(x)", ":- n(x), x < 100000"))
    assert on_terminal(tmp_path, "init", "n.dl", "--data", "data", "--strategy", "external").status == 0
    ended = on_terminal(tmp_path, "view", "data", "n")
    assert ended.out.decode().split() == [str(number) for number in range(100_001)]
    assert "answering" in ended.seen and "99999" not in ended.seen


def test_what_is_quick_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "graph.dl").write_text(GRAPH)
    (tmp_path / "edge.facts").write_text("a\tb\n")
    assert on_terminal(tmp_path, "run", "graph.dl", "-D", "-").seen == ""


def test_nothing_is_shown_while_a_line_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "graph.dl").write_text(GRAPH)
    vigilog.open(tmp_path / "graph.dl", data=tmp_path / "data").close()
    with terminal(tmp_path, "tell", "data") as (running, ours):
        assert running.stdin is not None and running.stdout is not None
        for edge in (b'["a","b"]', b'["b","c"]'):
            running.stdin.write(b'{"insert": {"edge": [' + edge + b"]}}\n")
            running.stdin.flush()
            assert b'"tx"' in running.stdout.readline()
            time.sleep(2 * shown.MOMENT)
        running.stdin.close()
        with pytest.raises(OSError, match="Input/output error"):
            assert os.read(ours, 65536) == b""


def test_plain_lines_for_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIGILOG_PROGRESS", "lines")
    monkeypatch.setattr(shown, "TICK", 0.01)
    monkeypatch.setattr(shown, "WHILE", 0.3)
    err = io.StringIO()
    with redirect_stderr(err), shown.progress() as told:
        watch = Watch(report=told.report)
        watch.begin("quick")
        watch.begin("reading edge", 40)
        time.sleep(0.8)
        watch.part(1, 2, "task")
        watch.begin("starting Spark")
        time.sleep(0.8)
        told.rest()
        time.sleep(0.1)
    assert err.getvalue() == "reading edge: 40 rows\nstarting Spark\n"


@pytest.mark.parametrize("wanted", ["", "none"])
def test_otherwise_nothing_is_reported(wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIGILOG_PROGRESS", wanted)
    with redirect_stderr(io.StringIO()), shown.progress() as told:
        assert told.report is None
