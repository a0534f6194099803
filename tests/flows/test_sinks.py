"""Sinks: every change of a view, once, in order, across restarts; real files, a real database, a real web server."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import vigilog
from tests.postgres import PASSWORD, Postgres
from vigilog.core.errors import DataError, UsageError, VigilogError
from vigilog.core.values import Row
from vigilog.flows import deliveries, sinks
from vigilog.folder import backup, large
from vigilog.folder.durable import Durable
from vigilog.spark import feeds, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STOCK = """
.decl stock(item: symbol, level: number)
.key stock(item)
.decl low(item: symbol, level: number)
.output low
.key low(item)
low(i, n) :- stock(i, n), n < 10.
"""


def opened(tmp_path: Path, **settings: Any) -> Durable:
    if (tmp_path / "data").exists():
        return vigilog.open(data=tmp_path / "data")
    return vigilog.open(STOCK, {"stock": [("nail", 5), ("screw", 50)]}, data=tmp_path / "data", **settings)


def put(db: Durable, *rows: tuple[str, int]) -> int:
    return db.take({"upsert": {"stock": list(rows)}}).tx


def refused(code: str) -> pytest.RaisesExc[VigilogError]:
    return pytest.RaisesExc(DataError, check=lambda reason: reason.code == code and PASSWORD not in str(reason))


def failing(code: str) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise DataError("not now", code)

    return fail


# -- a change feed in Parquet


def feed(tmp_path: Path) -> list[tuple[Any, ...]]:
    """The feed as anybody reads it, in order."""
    table = pyarrow.dataset.dataset(tmp_path / "feed").to_table()
    return sorted((row["_tx"], row["_change"], row["item"], row["level"]) for row in table.to_pylist())


def replayed(changes: list[tuple[Any, ...]]) -> set[Row]:
    rows: set[Row] = set()
    for _, change, *row in changes:  # of one transaction the deletions come first
        assert (tuple(row) in rows) == (change == "delete"), "no idle insertion, no phantom deletion"
        rows = rows - {tuple(row)} if change == "delete" else rows | {tuple(row)}
    return rows


def test_a_change_feed(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        sink = db.sink("low", "parquet", tmp_path / "feed")
        sink.catch_up(30)
        assert feed(tmp_path) == [(0, "insert", "nail", 5)]
        put(db, ("nail", 6), ("bolt", 1))
        put(db, ("screw", 60))  # changes nothing of the view
        sink.catch_up(30)
        put(db, ("nail", 50))
        sink.catch_up(30)
        assert (db.sinks(), sink.active, sink.error) == ([sink], True, None)
        known = feed(tmp_path)
        assert [row[0] for row in known] == [0, 1, 1, 1, 3] and replayed(known) == db.view("low")
    assert not sink.active
    with opened(tmp_path) as db:
        put(db, ("rivet", 2))
        db.sink("low", "parquet", tmp_path / "feed").catch_up(30)
        assert feed(tmp_path) == [*known, (4, "insert", "rivet", 2)]
        db.sink("low", "parquet", tmp_path / "later", name="later", since=db.tx).catch_up(30)
        assert not (tmp_path / "later").exists(), "nothing happened since"


FEED_POINTS = {
    "before the file": (feeds.Feed, "write"),
    "before it shows": (feeds.Feed, "_publish"),
    "before the note": (deliveries.ParquetFeed, "_note"),
}


@pytest.mark.parametrize("first", [True, False], ids=["whole", "change"])
@pytest.mark.parametrize("point", FEED_POINTS)
def test_a_delivery_that_was_interrupted(point: str, first: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as db:
        if not first:
            db.sink("low", "parquet", tmp_path / "feed").catch_up(30)
            put(db, ("nail", 6))
        with monkeypatch.context() as patch:
            patch.setattr(*FEED_POINTS[point], failing("disk"))
            with refused("disk"):
                db.sink("low", "parquet", tmp_path / "feed").catch_up(30)
        put(db, ("nail", 7), ("bolt", 1))
    with opened(tmp_path) as db:
        db.sink("low", "parquet", tmp_path / "feed").catch_up(30)
        put(db, ("bolt", 2))
        db.sinks()[0].catch_up(30)
        assert replayed(feed(tmp_path)) == db.view("low")


def test_a_feed_that_cannot_go_on(tmp_path: Path) -> None:
    with opened(tmp_path, retain={"transactions": 2}) as db:
        db.sink("low", "parquet", tmp_path / "feed").catch_up(30)
        db.sinks()[0].stop()
        db.backup(tmp_path / "backup")
        for level in range(4):
            put(db, ("nail", level))
        db.book.prune()
        with refused("gap"):
            db.sink("low", "parquet", tmp_path / "feed").catch_up(30)
        with refused("future"):
            db.sink("low", "parquet", tmp_path / "other", name="other", since=99).catch_up(30)
    backup.restore(tmp_path / "backup", tmp_path / "restored")
    with vigilog.open(data=tmp_path / "restored") as db, refused("history"):
        db.sink("low", "parquet", tmp_path / "feed").catch_up(30)


def test_a_view_that_is_declared_anew(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        sink = db.sink("low", "parquet", tmp_path / "feed")
        sink.catch_up(30)
        db.define(
            ".decl low(item: symbol)\n.output low\nlow(i) :- stock(i, n), n < 20.\n.decl low2(item: symbol)\n.output low2\nlow2(i) :- low(i).\n"
        )
        with refused("columns"):
            sink.catch_up(30)


def test_a_sink_that_meets_what_nobody_expected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends, and says why."""
    with opened(tmp_path) as db:
        sink = db.sink("low", "parquet", tmp_path / "feed")
        sink.catch_up(30)
        monkeypatch.setattr(sink.delivery, "changes", lambda *_: 1 // 0)
        put(db, ("bolt", 1))
        with refused("internal"):
            sink.catch_up(30)
        assert not sink.active and "ZeroDivisionError" in str(sink.error)


def kept(database: Postgres) -> set[Row]:
    return {(item, int(level)) for item, level in (line.split("|") for line in database.run("SELECT item, level FROM low"))}


def test_a_large_change(spark: SparkSession, database: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that only Spark has go into a feed and into a table without coming here."""
    monkeypatch.setattr(large, "FEW_ROWS", 5)
    with opened(tmp_path, memory=1) as db:
        db.sink("low", "parquet", tmp_path / "feed")
        db.sink("low", "jdbc", database.url, **database.login)
        for sink in db.sinks():
            sink.catch_up(60)
        many = pa.table({"item": [f"item {number}" for number in range(40)], "level": list(range(40))})
        pq.write_table(many, tmp_path / "many.parquet")
        db.load("stock", tmp_path / "many.parquet")
        assert "location" in next(said for _, _, said in db.book.log.changes(0))["plus"]
        for sink in db.sinks():
            sink.catch_up(60)
        expected = {("nail", 5), *((f"item {number}", number) for number in range(10))}
        assert replayed(feed(tmp_path)) == expected == kept(database)
    database.run("DROP TABLE low; DROP TABLE vigilog_sinks")


# -- a table of a database


def test_a_table_kept_equal(spark: SparkSession, database: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database.run("CREATE TABLE low (level bigint, item text); INSERT INTO low VALUES (1, 'left over')")
    with opened(tmp_path) as db:
        sink = db.sink("low", "jdbc", database.url, **database.login)
        sink.catch_up(60)
        assert kept(database) == {("nail", 5)}
        put(db, ("nail", 6), ("bolt", 1), ('it\'s \\ "ü"', 2))
        put(db, ("nail", 7))
        sink.catch_up(60)
        assert kept(database) == db.view("low") and sink.position == db.tx == 2
        with monkeypatch.context() as patch:  # rows are written, and then the transaction that moves them is lost
            patch.setattr(tables.KeptTable, "_move", failing("disk"))
            put(db, ("nail", 8))
            with refused("disk"):
                sink.catch_up(60)
    with opened(tmp_path) as db:
        assert kept(database) != db.view("low")
        put(db, ("bolt", 50))
        db.sink("low", "jdbc", database.url, **database.login).catch_up(60)
        assert kept(database) == db.view("low")
        assert database.run("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'vigilog_stage%'") == ["0"]
    database.run("DROP TABLE low; DROP TABLE vigilog_sinks")


def test_a_database_that_does_not_take_it(spark: SparkSession, database: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinks, "LONGEST_PAUSE", 0.2)
    with opened(tmp_path) as db:
        wrong = db.sink("low", "jdbc", database.url, name="wrong", user="nobody", password=PASSWORD)
        with refused("unwritable"):
            wrong.catch_up(1)
        wrong.stop()
        sink = db.sink("low", "jdbc", database.url, dbtable="shelf", **database.login)
        sink.catch_up(60)
        database.run("ALTER TABLE shelf RENAME COLUMN level TO amount")
        put(db, ("nail", 6))
        with refused("unwritable"):
            sink.catch_up(2)
        assert database.run("SELECT amount FROM shelf") == ["5"]
        database.run("ALTER TABLE shelf RENAME COLUMN amount TO level")
        sink.catch_up(60)  # it is tried again
        assert database.run("SELECT level FROM shelf") == ["6"] and sink.error is None
        with pytest.raises(UsageError):
            db.sink("low", "jdbc", database.url, since=1, **database.login)
    database.run("DROP TABLE shelf; DROP TABLE vigilog_sinks")


# -- a webhook


@dataclass
class Hook:
    """A web server that writes down what it is sent, and answers as it is told."""

    url: str
    answers: list[int] = field(default_factory=list)  # the next ones; then 204
    heard: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


@contextmanager
def web_server() -> Iterator[Hook]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert self.headers["Authorization"] == f"Bearer {PASSWORD}" and self.path == "/changes?shop=1"
            status = hook.answers.pop(0) if hook.answers else 204
            if status < 300:
                hook.heard.append((self.headers["Idempotency-Key"], body))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hook = Hook(f"http://127.0.0.1:{server.server_port}/changes?shop=1")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield hook
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


HEADERS = {"Authorization": f"Bearer {PASSWORD}"}


def test_a_webhook_that_is_told_rows_by_name(tmp_path: Path) -> None:
    with web_server() as hook, opened(tmp_path) as db:
        put(db, ("bolt", 7))
        sink = db.sink("low", "webhook", hook.url, rows="objects", headers=HEADERS)
        sink.catch_up(30)
        columns = db.program.relations["low"].columns
        assert hook.heard[0][1]["snapshot"]["rows"] == [dict(zip(columns, row, strict=True)) for row in sorted(db.view("low"))]
        put(db, ("nail", 6))
        sink.catch_up(30)
        old, new = (dict(zip(columns, row, strict=True)) for row in (("nail", 5), ("nail", 6)))
        said = hook.heard[1][1]["change"]
        assert (said["plus"], said["minus"], said["modified"]) == ([new], [old], [{"old": old, "new": new}])
        with pytest.raises(UsageError, match="objects"):
            db.sink("low", "webhook", hook.url, name="other", rows="named", headers=HEADERS)


def test_a_webhook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinks, "LONGEST_PAUSE", 0.2)
    with web_server() as hook, opened(tmp_path) as db:
        sink = db.sink("low", "webhook", hook.url, headers=HEADERS)
        sink.catch_up(30)
        about = {"db": db.file.history, "view": "low"}
        assert hook.heard[0][1] == {"snapshot": {**about, "tx": 0, "rows": [["nail", 5]]}}
        hook.answers = [500, 429, 302]
        put(db, ("nail", 6))
        put(db, ("bolt", 1))
        sink.catch_up(30)
        assert [body["change"] for _, body in hook.heard[1:]] == [
            {**about, "tx": 1, "plus": [["nail", 6]], "minus": [["nail", 5]], "modified": [{"old": ["nail", 5], "new": ["nail", 6]}]},
            {**about, "tx": 2, "plus": [["bolt", 1]], "minus": [], "modified": []},
        ]
        assert sink.error is None and len({key for key, _ in hook.heard}) == 3
        hook.answers = [503] * 1000
        put(db, ("nail", 7))
        with refused("unwritable"):
            sink.catch_up(0.5)
    with opened(tmp_path) as db:
        put(db, ("nail", 8))
        with refused("unwritable"):  # nobody listens there any more
            db.sink("low", "webhook", hook.url, headers=HEADERS).catch_up(0.5)
    with web_server() as other, opened(tmp_path) as db:
        db.sink("low", "webhook", other.url, headers=HEADERS).catch_up(30)
        assert [body["change"]["tx"] for _, body in other.heard] == [3, 4]
        db.sinks()[0].catch_up(30)
        assert len(other.heard) == 2
    assert PASSWORD.encode() not in (tmp_path / "data" / "vigilog.db").read_bytes()


def test_an_answer_that_was_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The change comes again, under the same key."""
    with web_server() as hook, opened(tmp_path) as db:
        with monkeypatch.context() as patch:
            patch.setattr(deliveries.Webhook, "_note", failing("disk"))
            put(db, ("nail", 6))
            with refused("disk"):
                db.sink("low", "webhook", hook.url, since=0, headers=HEADERS).catch_up(30)
        db.sink("low", "webhook", hook.url, since=0, headers=HEADERS).catch_up(30)
        assert len(hook.heard) == 2 and hook.heard[0] == hook.heard[1]


def test_what_is_no_sink(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        with refused("unknown-relation"):
            db.sink("stock", "parquet", tmp_path / "feed")
        wrong: list[tuple[str, str, dict[str, Any]]] = [("file", "f", {}), ("webhook", "ftp://h", {}), ("parquet", "f", {"colour": "red"})]
        for kind, target, options in wrong:
            with pytest.raises(UsageError):
                db.sink("low", kind, target, **options)
