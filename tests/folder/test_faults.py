"""Whatever fails: a transaction happens as a whole or not at all, the error says what is wrong, and the database goes on."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from traceback import walk_tb
from typing import Any

import pytest

from tests.folder.pages import cells
from tests.golden import GRAPH
from vigilog.core.delta import Delta
from vigilog.core.effect import Effect
from vigilog.core.errors import DataError, VigilogError
from vigilog.engine.outcome import Judge
from vigilog.folder import book as ledger
from vigilog.folder.backup import restore
from vigilog.folder.durable import Durable
from vigilog.folder.opening import open_program
from vigilog.store.file import FORMAT, NAME, DataFile

ROOT = Path(__file__).parents[2]
DEGREE = """\
.decl degree(x: symbol, n: number)
.output degree
degree(x, n) :- edge(x, _), n = count : { edge(x, _) }.
"""
PROGRAM = GRAPH + DEGREE
FACTS = {"edge": [("a", "b"), ("b", "c")]}
STRATEGIES = ["external", "materialized", "counted"]


def insertion(*rows: tuple[str, str]) -> dict[str, Any]:
    return {"insert": {"edge": list(rows)}}


def state(db: Durable) -> dict[str, Any]:
    """All that can be seen of a database."""
    views = {name: db.view(name) for name in db.program.outputs}
    return {
        "tx": db.tx,
        "edge": db.rows("edge"),
        **views,
        "log": list(db.book.log.entries(db.book.log.first)),
        "changes": list(db.changes(db.book.log.first)),
    }


@contextmanager
def unchanged(db: Durable) -> Iterator[None]:
    before = state(db)
    yield
    assert state(db) == before, "nothing has changed"


def goes_on(db: Durable) -> None:
    """The next transaction works, and all is as it should be."""
    tx = db.tx
    assert db.apply(insertion(("q", "r"), ("r", "s")))["closure"].plus == {("q", "r"), ("r", "s"), ("q", "s")}
    assert db.tx == tx + 1
    found = db.verify()
    assert found.fine, found.problems


def in_child(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in a process of its own."""
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code), *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


# -- the disk


def full_of(folder: Path) -> str:
    return f"the disk with {folder / 'data' / NAME} is full; nothing was changed"


@contextmanager
def full_disk(db: Durable) -> Iterator[None]:
    """The file cannot grow: SQLite says what it says of a full disk."""
    connection = db.file.connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count={pages}")
    try:
        yield
    finally:
        connection.execute("PRAGMA max_page_count=1000000000")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_full_disk(tmp_path: Path, strategy: str) -> None:
    with open_program(PROGRAM, FACTS, data=tmp_path / "data", strategy=strategy) as db:
        with full_disk(db), unchanged(db):
            with pytest.raises(VigilogError) as refused:
                db.apply(insertion(*((f"n{number}", f"m{number}") for number in range(3_000))))
            assert (refused.value.code, refused.value.message) == ("disk", full_of(tmp_path))
            assert db.view("closure") == {("a", "b"), ("b", "c"), ("a", "c")}, "reading goes on meanwhile"
        goes_on(db)


def test_full_disk_while_defining(tmp_path: Path) -> None:
    facts = {"edge": [(f"n{number}", f"n{number + 1}") for number in range(150)]}
    with open_program(PROGRAM, facts, data=tmp_path / "data", strategy="materialized") as db:
        text = ".decl wide(x: symbol, y: symbol, z: symbol) .output wide wide(x, y, z) :- closure(x, y), closure(y, z), x < z."
        with full_disk(db), unchanged(db):
            with pytest.raises(VigilogError) as refused:
                db.define(text)
            assert (refused.value.code, refused.value.message) == ("disk", full_of(tmp_path))
        assert "wide" not in db.program.relations
        db.define(".decl back(x: symbol, y: symbol) .output back back(y, x) :- edge(x, y).")
        assert len(db.view("back")) == 150
        goes_on(db)


@pytest.mark.apart
def test_file_that_may_not_grow(tmp_path: Path) -> None:
    """A quota, or a limit of the system: writing fails in the middle of the log ahead."""
    open_program(PROGRAM, FACTS, data=tmp_path / "data", strategy="materialized").close()
    done = in_child(
        """
        import resource, signal, sys
        from vigilog.core.errors import VigilogError
        from vigilog.folder.opening import open_program
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with open_program(data=sys.argv[1]) as db:
            before = db.rows("edge"), db.view("closure")
            resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
            try:
                db.apply({"insert": {"edge": [(f"n{number}", f"m{number}") for number in range(9_000)]}})
            except VigilogError as error:
                print(error.code)
            assert (db.rows("edge"), db.view("closure"), db.tx) == (*before, 0)
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            db.apply({"insert": {"edge": [("x", "y")]}})
            print(db.tx, db.verify().problems)
        """,
        str(tmp_path / "data"),
    )
    assert (done.returncode, done.stdout) == (0, "disk\n1 []\n"), done.stderr


def test_full_disk_after_the_commit_does_not_take_it_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "LOOK_EVERY", 1)
    with open_program(PROGRAM, FACTS, data=tmp_path / "data", retain={"transactions": 1}) as db:

        def fails(until: int) -> None:
            raise sqlite3.OperationalError("database or disk is full")

        with monkeypatch.context() as patched:
            patched.setattr(db.book.log, "forget", fails)
            for number in range(3):
                assert db.apply(insertion((f"n{number}", f"m{number}")))
        assert db.tx == 3 and db.book.log.first == 0
        goes_on(db)
        assert db.book.log.first == 3, "it is dropped later"


def test_segment_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "MANY_ROWS", 2)
    with open_program(PROGRAM, FACTS, data=tmp_path / "data") as db:
        (tmp_path / "data" / "segments").write_text("in the way")
        with unchanged(db), pytest.raises(DataError) as refused:
            db.apply(insertion(("x", "y"), ("y", "z")))
        assert refused.value.code == "disk"
        (tmp_path / "data" / "segments").unlink()
        goes_on(db)


def test_segments_are_removed_with_their_transactions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "MANY_ROWS", 2)
    monkeypatch.setattr(ledger, "LOOK_EVERY", 1)
    with open_program(PROGRAM, FACTS, data=tmp_path / "data", retain={"transactions": 2}) as db:
        for number in range(6):
            db.apply(insertion((f"n{number}", f"m{number}"), (f"m{number}", f"o{number}")))
        entries = [part["segment"] for said in db.book.log.said(db.tx) for part in said.values() if isinstance(part, dict)]
        assert {path.name for path in (tmp_path / "data" / "segments").iterdir()} == set(entries)
        (tmp_path / "data" / "segments" / "edge-left.parquet").write_bytes(b"of a transaction that was killed")
        db.book.sweep()
        assert {path.name for path in (tmp_path / "data" / "segments").iterdir()} == set(entries)
        assert db.verify().fine


def test_keys_of_requests_go_with_their_transactions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "LOOK_EVERY", 1)
    monkeypatch.setattr(ledger, "KNOWN_REQUESTS", 4)
    with open_program(PROGRAM, FACTS, data=tmp_path / "data", retain={"transactions": 2}) as db:
        for number in range(1, 11):
            assert db.take(insertion((f"n{number}", "m")), request=f"r{number}").tx == number
        assert db.book.log.first >= 8
        assert [number for number in range(1, 11) if db.book.answered(f"r{number}")] == [7, 8, 9, 10], "a retry may come late"
        assert db.take(insertion(("other", "m")), request="r9").tx == 9 and db.tx == 10


@contextmanager
def a_place_for_anybody() -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.apart
def test_read_only_folder() -> None:
    with a_place_for_anybody() as folder:
        open_program(PROGRAM, FACTS, data=folder / "data").close()
        (folder / "free").mkdir()
        (folder / "free").chmod(0o777)
        for path in [*(folder / "data").rglob("*"), folder / "data"]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        done = in_child(
            """
            import os, sys
            from vigilog.core.errors import VigilogError
            from vigilog.folder.backup import backup
            from vigilog.folder.opening import open_program
            if os.getuid() == 0:
                os.setuid(65534)
            try:
                open_program(data=sys.argv[1])
            except VigilogError as error:
                print(error.code, error)
            print(backup(sys.argv[1], sys.argv[2]))
            """,
            str(folder / "data"),
            str(folder / "free" / "copy"),
        )
        restore(folder / "free" / "copy", folder / "other")
        with open_program(data=folder / "other") as db:
            assert db.rows("edge") == {*FACTS["edge"]}
        for path in [folder / "data", *(folder / "data").rglob("*")]:
            path.chmod(0o755)
    assert done.returncode == 0, done.stderr
    why = "cannot be opened: Permission denied; a data folder must be writable, even to be read"
    assert done.stdout == f"folder {folder}/data {why}\n0\n", "it can be copied, though"


# -- another process


@pytest.mark.apart
def test_second_process_is_refused(tmp_path: Path) -> None:
    with open_program(PROGRAM, FACTS, data=tmp_path / "data") as db:
        command = [sys.executable, "-m", "vigilog.cli.main", "tell", str(tmp_path / "data"), '{"insert": {"edge": [["x", "y"]]}}']
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert done.stderr == (
            f"error[in-use]: {tmp_path / 'data'} is in use by process {os.getpid()}; one process at a time has a data folder\n"
        )
        with pytest.raises(DataError, match="in use"):
            open_program(data=tmp_path / "data")
        goes_on(db)
    with open_program(data=tmp_path / "data") as db:
        assert db.tx == 1, "it is free again"


@pytest.mark.apart
def test_backup_beside_a_process_that_works(tmp_path: Path) -> None:
    with open_program(PROGRAM, FACTS, data=tmp_path / "data") as db:
        db.apply(insertion(("x", "y")))
        command = [sys.executable, "-m", "vigilog.cli.main", "backup", str(tmp_path / "data"), str(tmp_path / "copy")]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        expected = state(db)
        goes_on(db)
    restore(tmp_path / "copy", tmp_path / "other")
    with open_program(data=tmp_path / "other") as db:
        assert state(db) == expected
        goes_on(db)


# -- damage


def flip(path: Path, needle: bytes, number: int = 0) -> None:
    """Changes one byte of the file, in an occurrence of some text."""
    data = bytearray(path.read_bytes())
    places = [place for place in range(len(data)) if data.startswith(needle, place)]
    assert places, "the text is in the file"
    data[places[number % len(places)]] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("number", range(3))
def test_damaged_log_is_never_served(tmp_path: Path, number: int) -> None:
    """One byte of what the log says, or of what the outbox says of one of the views."""
    with open_program(PROGRAM, FACTS, data=tmp_path / "data", strategy="external") as db:
        for index in range(5):
            db.apply(insertion((f"first{index}", f"second{index}")))
        expected = db.view("closure"), db.view("closure", at=0), list(db.changes(0))
    flip(tmp_path / "data" / NAME, b'"plus":[["first2"', number)
    with open_program(data=tmp_path / "data") as db:
        assert db.view("closure") == expected[0], "the present does not rest on the log"
        damaged = 0
        for read, right in ((lambda: db.view("closure", at=0), expected[1]), (lambda: list(db.changes(0)), expected[2])):
            try:
                assert read() == right
            except DataError as error:
                assert error.code == "damaged"
                damaged += 1
        assert damaged == 1
        found = db.verify()
        assert not found.fine and any("transaction 3" in problem for problem in found.problems)


def test_missing_log_entry_is_noticed(tmp_path: Path) -> None:
    with open_program(PROGRAM, FACTS, data=tmp_path / "data") as db:
        for number in range(5):
            db.apply(insertion((f"n{number}", f"m{number}")))
        for tx in (5, 3):
            db.file.connection.execute("DELETE FROM vigilog_log WHERE tx = ?", (tx,))
            with pytest.raises(DataError, match=f"transaction {tx} of the log is damaged"):
                db.view("closure", at=0)
        assert not db.verify().fine


@pytest.mark.parametrize("strategy", ["materialized", "counted"])
def test_verify_finds_a_flipped_byte_in_any_stored_view(tmp_path: Path, strategy: str) -> None:
    """Every place in the file that holds a value: views, numbers of proofs, base, indexes, log, outbox."""
    folder = tmp_path / "data"
    with open_program(PROGRAM, FACTS, data=folder, strategy=strategy) as db:
        db.apply(insertion(("c", "needle"), ("needle", "d")))
        assert db.verify().fine
        db.file.connection.execute("VACUUM")  # otherwise old copies of rows remain in free space
    whole = (folder / NAME).read_bytes()
    places = whole.count(b"needle")
    assert places > 10
    for number in range(places):
        flip(folder / NAME, b"needle", number)
        try:
            with open_program(data=folder) as db:
                assert not db.verify().fine, f"place {number}"
        except DataError as error:
            assert error.code == "damaged"
        (folder / NAME).write_bytes(whole)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["materialized", "counted"])
def test_verify_finds_a_flipped_bit_in_what_any_table_or_index_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    """Of each table and index some bits anywhere in its cells; free space, which nobody reads, is left out."""
    monkeypatch.setattr(ledger, "MANY_ROWS", 18)
    folder, chance = tmp_path / "data", random.Random(strategy)
    with open_program(PROGRAM, {"edge": [(f"a{number}", f"a{number + 1}") for number in range(20)]}, data=folder, strategy=strategy) as db:
        for number in range(20):
            db.apply(insertion((f"n{number}", f"a{number}"), (f"n{number}", "end")))
        db.apply({"delete": {"edge": [(f"n{number}", "end") for number in range(10)]}})
        db.ask('closure(x, "end")')
        assert db.verify().fine
    whole = (folder / NAME).read_bytes()
    found = cells(folder / NAME)
    empty = {"vigilog_snapshots", "vigilog_sources", "vigilog_requests", "vigilog_subscriptions", "vigilog_alerts"}
    assert {name for name, places in found.items() if not places} == empty
    assert {name for name in found if " by " in name} >= {"r_closure by 1"}, "there are indexes"
    for name, ranges in found.items():
        places = [place for range_ in ranges for place in range_]
        for place in chance.sample(places, 0 if name == "sqlite_schema" else min(8, len(places))):
            data = bytearray(whole)
            data[place] ^= 1 << chance.randrange(8)
            (folder / NAME).write_bytes(data)
            try:
                with open_program(data=folder) as db:
                    assert not db.verify().fine, f"{name}: {place}"
            except DataError as error:
                assert error.code in ("damaged", "format"), error
            for left in folder.glob(f"{NAME}-*"):
                left.unlink()
    (folder / NAME).write_bytes(whole)
    for segment in sorted((folder / "segments").iterdir()):
        kept = bytearray(segment.read_bytes())
        for place in chance.sample(range(len(kept)), 3):
            kept[place] ^= 1
            segment.write_bytes(kept)
            with open_program(data=folder) as db:
                assert not db.verify().fine, f"{segment.name}: {place}"
            kept[place] ^= 1
            segment.write_bytes(kept)
    with open_program(data=folder) as db:
        assert db.verify().fine, "all is as it was"


def test_verify_finds_a_wrong_number_of_proofs(tmp_path: Path) -> None:
    with open_program(PROGRAM, FACTS, data=tmp_path / "data", strategy="counted") as db:
        db.file.connection.execute("UPDATE r_degree_proofs SET n0 = n0 + 1")
        assert any("stored degree_proofs" in problem for problem in db.verify().problems)


@pytest.mark.parametrize("by", ["reference", "embedded", "duckdb"])
def test_verify_says_which_rows_are_wrong(tmp_path: Path, by: str) -> None:
    with open_program(PROGRAM, FACTS, data=tmp_path / "data", strategy="materialized") as db:
        db.file.connection.execute("UPDATE r_closure SET y = 'x' WHERE y = 'b'")
        assert db.verify(by).problems == ["stored closure: ('a', 'x') should not be there, ('a', 'b') should be there"]


def test_verify_finds_what_the_outbox_should_not_say(tmp_path: Path) -> None:
    with open_program(PROGRAM, FACTS, data=tmp_path / "data") as db:
        db.apply(insertion(("x", "y")))
        db.apply({"delete": {"edge": [("x", "y")]}})
        db.file.connection.execute("DELETE FROM vigilog_outbox WHERE tx = 2 AND view = 'closure'")
        assert any("changes of closure since 0" in problem for problem in db.verify().problems)


def test_damaged_segment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "MANY_ROWS", 2)
    with open_program(PROGRAM, FACTS, data=tmp_path / "data") as db:
        db.apply(insertion(("x", "y"), ("y", "z")))
        assert {view: delta for _, view, delta in db.changes(0)}["closure"] == Delta(frozenset({("x", "y"), ("y", "z"), ("x", "z")}))
        segment = next((tmp_path / "data" / "segments").glob("edge-*"))
        segment.write_bytes(segment.read_bytes()[:-1])
        with pytest.raises(DataError, match="is damaged"):
            db.view("closure", at=0)
        segment.unlink()
        assert any("is missing" in problem for problem in db.verify().problems)


@pytest.mark.parametrize("content", [b"", b"no database at all, but a long enough text" * 100, b"SQLite format 3\0" + b"\xff" * 4080])
def test_file_that_is_no_database(tmp_path: Path, content: bytes) -> None:
    open_program(PROGRAM, FACTS, data=tmp_path / "data").close()
    (tmp_path / "data" / NAME).write_bytes(content)
    with pytest.raises(DataError) as refused:
        open_program(data=tmp_path / "data")
    assert refused.value.code in ("damaged", "no-data")


def test_damaged_program(tmp_path: Path) -> None:
    open_program(PROGRAM, FACTS, data=tmp_path / "data").close()
    flip(tmp_path / "data" / NAME, b"edge(x, z), closure(z, y)")
    with pytest.raises(DataError, match=r"the program .* is damaged"):
        open_program(data=tmp_path / "data")


def test_later_format_is_refused(tmp_path: Path) -> None:
    with open_program(PROGRAM, FACTS, data=tmp_path / "data") as db:
        db.file.put("format", FORMAT + 1)
    with pytest.raises(DataError, match="made by a later Vigilog") as refused:
        open_program(data=tmp_path / "data")
    assert refused.value.code == "format"


# -- backups


def test_restore_begins_a_new_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "MANY_ROWS", 2)
    with open_program(PROGRAM, FACTS, data=tmp_path / "data") as db:
        db.apply(insertion(("x", "y"), ("y", "z")))
        assert db.backup(tmp_path / "copy") == 1
        history, expected = db.file.history, state(db)
    assert restore(tmp_path / "copy", tmp_path / "other") != history
    with open_program(data=tmp_path / "other") as db:
        assert db.file.history != history
        assert state(db) == expected
        assert db.verify().fine
        goes_on(db)
    with pytest.raises(DataError, match="is not empty"):
        restore(tmp_path / "copy", tmp_path / "data")
    with pytest.raises(DataError, match="is not a backup"):
        restore(tmp_path, tmp_path / "third")


def test_failed_backup_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_program(PROGRAM, FACTS, data=tmp_path / "data") as db:
        (tmp_path / "data" / "segments").mkdir()

        def fails(*_: Any, **__: Any) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(shutil, "copytree", fails)
            with pytest.raises(DataError, match="No space left"):
                db.backup(tmp_path / "copy")
        assert not (tmp_path / "copy").exists()
        db.backup(tmp_path / "copy")
        goes_on(db)


# -- refused transactions


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_refused_in_the_middle(tmp_path: Path, strategy: str) -> None:
    with open_program(PROGRAM, FACTS, data=tmp_path / "data", strategy=strategy) as db:

        class Refusing(Judge):
            def judge(self, net: Effect) -> None:
                raise DataError("no", "refused")

        db.add(Refusing())
        with unchanged(db), pytest.raises(DataError):
            db.apply(insertion(("x", "y")))
        db.step.judges.clear()
        with unchanged(db), pytest.raises(DataError):
            db.apply({"update": {"edge": [{"old": ["no", "row"], "new": ["x", "y"]}]}})
        with unchanged(db):
            assert db.what_if(insert={"edge": [("x", "y")]})
        goes_on(db)


def test_folder_without_a_program_and_folder_without_data(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no data folder"):
        open_program(data=tmp_path / "nowhere")
    with pytest.raises(DataError, match="is not a data folder"):
        open_program(data=tmp_path)
    assert not (tmp_path / NAME).exists()


def test_what_is_closed(tmp_path: Path) -> None:
    db = open_program(PROGRAM, FACTS, data=tmp_path / "data")
    db.close()
    db.close()
    calls: list[Callable[[], object]] = [
        lambda: db.view("closure"),
        lambda: db.rows("edge"),
        lambda: db.ask("closure(x, y)"),
        lambda: db.apply(insertion(("x", "y"))),
        lambda: db.define(DEGREE),
        db.status,
    ]
    for call in calls:
        with pytest.raises(DataError, match="is closed") as error:
            call()
        assert error.value.code == "closed"


def test_folder_that_was_begun_and_not_made(tmp_path: Path) -> None:
    """A process that was killed before it had written its program."""
    DataFile(tmp_path / "data", cache_kib=100, create=True).close()
    with pytest.raises(DataError, match="has no program yet"):
        open_program(data=tmp_path / "data")
    with pytest.raises(DataError, match="same key"):
        open_program(f"{PROGRAM}.key edge(x)\n", {"edge": [("a", "b"), ("a", "c")]}, data=tmp_path / "data")
    with open_program(PROGRAM, FACTS, data=tmp_path / "data") as db:
        goes_on(db)


def test_index_that_finds_no_place(tmp_path: Path) -> None:
    """A transaction that needs a new index on a full disk: refused, and the next one makes it."""
    edges = [(f"n{number}", f"m{number % 7}") for number in range(3_000)]
    text = PROGRAM + '.decl both(x: symbol, y: symbol)\n.output both\nboth(x, y) :- edge(x, z), edge(y, z), x < y, z = "m9".\n'
    with open_program(text, {"edge": edges}, data=tmp_path / "data", strategy="external") as db:
        with full_disk(db):
            for _ in range(2):
                with pytest.raises(VigilogError) as refused:
                    db.apply(insertion(*((f"x{number}", "m9") for number in range(2_000))))
                assert (refused.value.code, refused.value.message) == ("disk", full_of(tmp_path))
        assert db.tx == 0
        assert db.apply(insertion(("p", "m9"), ("q", "m9")))["both"].plus == {("p", "q")}


def test_a_file_that_cannot_be_used_is_not_held(tmp_path: Path) -> None:
    """While somebody remembers the error, too: a connection that lingers disturbs those that come after it."""
    open_program(PROGRAM, FACTS, data=tmp_path).close()
    with sqlite3.connect(tmp_path / NAME) as connection:
        connection.execute("UPDATE vigilog_about SET value = 'other' WHERE name = 'history'")
    connection.close()
    with pytest.raises(DataError) as caught:
        open_program(data=tmp_path)
    assert caught.value.code == "damaged"
    files = [frame.f_locals.get("self") for frame, _ in walk_tb(caught.value.__traceback__)]
    connections = [file.connection for file in files if isinstance(file, DataFile)]
    assert connections
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connections[0].execute("SELECT 1")
