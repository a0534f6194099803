"""What is too large for one process, and what becomes of it: where relations are, what is left on the disk, what can be looked at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vigilog.core.delta import Delta
from vigilog.core.errors import DataError, UsageError
from vigilog.core.memory import machine_memory
from vigilog.engine.database import Database
from vigilog.executors.mixed import MixedViews
from vigilog.executors.spark import stored
from vigilog.folder import book as ledger
from vigilog.folder import large
from vigilog.folder.durable import Durable
from vigilog.folder.opening import open_program
from vigilog.folder.residency import fitting, size
from vigilog.language.check import check
from vigilog.language.parser import parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRAM = """
.decl item(i: number, n: number)
.decl other(i: number)
.decl some(i: number, n: number)
.output some
some(i, n) :- item(i, n), n > 2.
.decl near(i: number)
.output near
near(i) :- other(i), i > 1.
"""


def many(folder: Path, rows: int) -> Path:
    path = folder / f"{rows}.parquet"
    pq.write_table(pa.table({"i": list(range(rows)), "n": [number % 5 for number in range(rows)]}), path)
    return path


def left(db: Durable) -> set[str]:
    """What is in the warehouse, by the beginning of its name."""
    root = Path(db.store.warehouse)
    return {f"{folder.parent.name}/{folder.name.rpartition('-')[0]}" for folder in root.glob("*/*")}


def test_a_transaction_of_many_rows(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "FEW_ROWS", 5)
    with open_program(PROGRAM, data=tmp_path / "data", memory=0) as db:
        db.apply({"insert": {"other": [(1,), (2,)]}})
        assert db.load("item", many(tmp_path, 40)).tx == 2
        db.apply({"insert": {"item": [(99, 3)], "other": [(7,)]}, "delete": {"item": [(3, 3)]}})
        assert left(db) == {"item/snapshot-2", "item/plus", "some/plus"}, "nothing is written for rows that there are not"
        assert db.verify().problems == [], "rows that do not come here are no damage"
        assert db.status().oldest == 2
        assert db.view("near", at=2) == {(2,)} and (99, 3) not in db.view("some", at=2)
        with pytest.raises(DataError, match="the oldest is that after 2") as error:
            db.view("near", at=1)
        assert error.value.code == "gap"


def test_where_relations_are(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relation that grows over the budget leaves the file; one that fits again comes back with the next snapshot."""
    monkeypatch.setattr(large, "MANY_ROWS", 10)
    budget = size(open_program(PROGRAM).program.relations["item"].types, 30)
    with open_program(PROGRAM, data=tmp_path / "data", memory=budget, strategy="counted") as db:
        for start in range(0, 60, 12):
            db.apply({"insert": {"item": [(number, 3) for number in range(start, start + 12)]}})
            assert db.large == ({"item"} if start >= 24 else set())
        assert len(db.view("some")) == 60
        assert isinstance(db.views, MixedViews) and db.views.distant.stored == {"some", "some_proofs"}, "counted here and there"
        db.apply({"delete": {"item": [(number, 3) for number in range(10, 60)]}})
        assert db.compact(["item"]) == {"item": 10} and not db.large
        assert db.apply({"insert": {"item": [(100, 4)]}})["some"].plus == {(100, 4)}
        assert len(db.view("some")) == 11 and db.verify().problems == []
    with open_program(data=tmp_path / "data") as db:
        assert len(db.rows("item")) == 11


PLACED = """
.decl orders(i: number, n: number)
.input orders(IO=parquet)
.decl items(i: number, n: number)
.input items(IO=parquet)
.decl both(i: number)
.output both
both(i) :- orders(i, n), items(i, n).
"""


@pytest.mark.parametrize("most", [20, 1_000_000], ids=["in-parts", "at-once"])
@pytest.mark.parametrize(("room", "far"), [(130, set()), (129, {"orders"}), (29, {"items", "orders"})])
def test_the_smallest_are_resident(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, room: int, far: set[str]
) -> None:
    """All base relations have one budget together; what is read for the file leaves nothing in the warehouse."""
    monkeypatch.setattr(large, "MOST_ROWS", most)
    many(tmp_path, 100).rename(tmp_path / "orders.parquet")
    many(tmp_path, 30).rename(tmp_path / "items.parquet")
    types = check(parse(PLACED)).program.relations["orders"].types
    with open_program(f"{PLACED}\n", tmp_path, data=tmp_path / "data", memory=size(types, room)) as db:
        assert db.large == far and left(db) == {f"{name}/snapshot-0" for name in far}
        assert db.view("both") == {(number,) for number in range(30)}
        assert {relation.name: relation.size for relation in db.status().relations if relation.kind == "base"} == {
            "orders": size(types, 100),
            "items": size(types, 30),
        }
        assert db.apply({"delete": {"items": [(3, 3)]}})["both"].minus == {(3,)} and db.verify().problems == []


def test_the_budget_is_a_share_of_the_machine(tmp_path: Path) -> None:
    with open_program(PROGRAM, data=tmp_path / "data") as db:
        assert db.store.memory == machine_memory() // 4
    with open_program(data=tmp_path / "data", memory="50%") as db:
        assert db.store.memory == machine_memory() // 2
    with pytest.raises(UsageError, match="a share"):
        open_program(data=tmp_path / "data", memory="much")
    with open_program(data=tmp_path / "data") as db:
        assert db.store.memory == machine_memory() // 2, "it is remembered, and what was wrong is not"
    assert fitting({"one": 5, "two": 6, "three": 1}, 11) == {"one", "three"}


def test_what_nothing_names_is_removed(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "FEW_ROWS", 5)
    with open_program(PROGRAM, data=tmp_path / "data", memory=0, warehouse=str(tmp_path / "shared")) as db:
        strange = tmp_path / "shared" / "item" / "snapshot-0-of-others"
        strange.mkdir(parents=True)
        db.load("item", many(tmp_path, 40))
        (Path(db.store.warehouse) / "item" / "plus-killed").mkdir()
        db.drop("some")
        db.drop("item")
        db.compact()
        assert left(db) == {"item/plus", "some/plus", "some/minus", "other/snapshot-3"}, "what the log names stays as long as the log"
        assert strange.exists(), "others may have the same warehouse"


def test_a_warehouse_is_where_it_was(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_program(PROGRAM, {"item": [(1, 3)]}, data="data", warehouse="house", memory=0) as db:
        db.compact(["item"])
    monkeypatch.chdir(tmp_path.parent)
    with open_program(data=tmp_path / "data", warehouse=str(tmp_path / "house")) as db:
        assert db.view("some") == {(1, 3)}
    with pytest.raises(DataError, match="cannot be another") as error:
        open_program(data=tmp_path / "data", warehouse=str(tmp_path / "elsewhere"))
    assert error.value.code == "warehouse"


@pytest.mark.parametrize("few", [5, 100_000])
def test_rows_take_the_place_of_those_with_their_key(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(large, "FEW_ROWS", few)
    with open_program(f"{PROGRAM}.key item(i)\n", data=tmp_path / "data", memory=0) as db:
        db.apply({"insert": {"item": [(1, 9), (2, 2), (100, 7)]}})
        with pytest.raises(DataError, match="same key"):
            db.load("item", many(tmp_path, 40))
        db.load("item", many(tmp_path, 40), upsert=True)
        expected = {(number, number % 5) for number in range(40)} | {(100, 7)}
        assert set(map(tuple, db.frame("item").collect())) == expected and db.tx == 2
        (tmp_path / "more.csv").write_text("i,n\n3,8\n")
        assert db.load("item", tmp_path / "more.csv", upsert=True).deltas["some"].minus == {(3, 3)}
        (tmp_path / "twice.csv").write_text("i,n\n3,8\n3,9\n")
        with pytest.raises(DataError, match="same key"):
            db.load("item", tmp_path / "twice.csv", upsert=True)
        with pytest.raises(DataError, match="has no key"):
            db.load("other", many(tmp_path, 4), upsert=True)
        assert db.verify().problems == []


@pytest.mark.parametrize(("few", "memory"), [(5, 0), (100_000, 0), (100_000, 1 << 20)])
def test_rows_with_the_keys_of_a_source_go(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int, memory: int
) -> None:
    """On Spark with many rows, on Spark with few, and resident."""
    monkeypatch.setattr(large, "FEW_ROWS", few)
    with open_program(f"{PROGRAM}.key item(i)\n", data=tmp_path / "data", memory=memory) as db:
        db.load("item", many(tmp_path, 40))
        db.load("item", many(tmp_path, 30), delete_key=True)
        assert db.view("item") == {(number, number % 5) for number in range(30, 40)} and db.tx == 2
        (tmp_path / "keys.csv").write_text("i\n33\n34\n34\n999\n")
        assert db.load("item", tmp_path / "keys.csv", delete_key=True).deltas["some"].minus == {(33, 3), (34, 4)}
        assert db.load("item", tmp_path / "keys.csv", delete_key=True).tx == 3, "they are gone already"
        (tmp_path / "bad.csv").write_text("i\n35\nx\n")
        with pytest.raises(DataError, match=r"bad.csv:3: column i of the key of item: .*x"):
            db.load("item", tmp_path / "bad.csv", delete_key=True)
        (tmp_path / "rows.csv").write_text("i,n\n35,0\n")
        with pytest.raises(DataError, match=r"rows.csv:1: names the columns i, n, but the key of item has i"):
            db.load("item", tmp_path / "rows.csv", delete_key=True)
        with pytest.raises(DataError, match="has no key, which delete_key goes by"):
            db.load("other", tmp_path / "keys.csv", delete_key=True)
        assert db.tx == 3 and db.verify().problems == []


@pytest.mark.parametrize("memory", [0, 1 << 20])
def test_rows_of_a_file_say_what_is_to_be_done(spark: SparkSession, tmp_path: Path, memory: int) -> None:
    feed = tmp_path / "feed"
    feed.mkdir()
    (feed / "1.csv").write_text("kind,i,n\ninsert,1,3\ninsert,2,4\nupsert,3,3\n")
    (feed / "2.csv").write_text("i,kind,n\n1,delete_key,\n2,upsert,5\n3,delete,3\n")
    with open_program(f"{PROGRAM}.key item(i)\n", data=tmp_path / "data", memory=memory) as db:
        db.apply({"insert": {"item": [(1, 9)]}})
        with pytest.raises(DataError, match="there is no operation 7"):
            (tmp_path / "bad.csv").write_text("kind,i,n\n7,1,3\n")
            db.load("item", tmp_path / "bad.csv", op="kind")
        assert db.load("item", feed, IO="csv", op="kind").tx == 2
        assert db.view("item") == {(2, 5)} and db.verify().problems == []
        with pytest.raises(UsageError, match="one of them"):
            db.load("item", feed, upsert=True, op="kind")
        with pytest.raises(UsageError, match="files on this machine"):
            db.load("item", "jdbc:postgresql://nowhere/shop", op="kind")


def test_definitions_of_views_on_spark(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a definition changes in them is found on Spark, and stays there if it is much."""
    monkeypatch.setattr(large, "FEW_ROWS", 5)

    def said(db: Durable) -> dict[str, dict[str, int]]:
        return {
            view: {side: part["rows"] if isinstance(part, dict) else len(part) for side, part in parts.items()}
            for _, view, parts in db.book.log.changes(db.tx - 1)
        }

    heard = []
    with open_program(PROGRAM, data=tmp_path / "data", memory=0) as db:
        db.load("item", many(tmp_path, 40))
        db.step.listeners.append(lambda outcome: heard.append((outcome.tx, outcome.far, outcome.deltas)))
        assert db.define(".decl big(i: number)\n.output big\nbig(i) :- item(i, n), n > 0.") == {}
        assert heard.pop() == (2, ("big",), {}) and said(db) == {"big": {"plus": 32}}
        assert db.define("big(i) :- item(i, n), n > 0, i > 2.") == {"big": Delta(minus=frozenset({(1,), (2,)}))}
        assert heard.pop()[1] == () and said(db) == {"big": {"minus": 2}}
        db.define(".decl big(i: number, n: number)\nbig(i, n) :- item(i, n), i > 36.")
        assert heard.pop() == (4, (), {}), "nobody's copy can follow other columns"
        assert said(db) == {"big": {"plus": 3, "minus": 30}} and db.view("big") == {(37, 2), (38, 3), (39, 4)}
        assert db.define("some(i, n) :- other(i), n = i.") == {} and said(db) == {"some": {"minus": 16}}
        with pytest.raises(DataError, match="item has rows"):
            db.define(".decl item(i: symbol, n: number)\nbig(1, 2).")
        assert db.drop("big") == {"big": Delta(minus=frozenset({(37, 2), (38, 3), (39, 4)}))}
        assert db.verify().problems == []
    with open_program(data=tmp_path / "data") as db:
        assert db.view("some") == set() and db.tx == 6


def test_changes_that_are_in_the_warehouse(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are told like others, up to a bound; damaged ones are not."""
    monkeypatch.setattr(large, "FEW_ROWS", 5)
    with open_program(PROGRAM, data=tmp_path / "data", memory=0) as db:
        db.load("item", many(tmp_path, 40))
        some = frozenset((number, number % 5) for number in range(40) if number % 5 > 2)
        assert list(db.changes(0)) == [(1, "some", Delta(plus=some))]
        monkeypatch.setattr(ledger, "MOST_ROWS", 15)
        with pytest.raises(DataError, match=r"16 rows of some are in some/plus-.* more than are read at once") as refused:
            list(db.changes(0))
        assert refused.value.code == "large"
        monkeypatch.setattr(ledger, "MOST_ROWS", 16)
        assert db.verify().problems == []
        for name in ("some", "item"):
            part = next(Path(db.store.warehouse).glob(f"{name}/plus-*/*.parquet"))
            kept = bytearray(part.read_bytes())
            kept[len(kept) // 8] ^= 1
            part.write_bytes(kept)
        with pytest.raises(DataError, match="cannot be read") as refused:
            list(db.changes(0))
        assert refused.value.code == "damaged" and len(db.verify().problems) == 2


def test_a_table_is_looked_into_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether rows are there, and whether what is lost holds in another way, is asked together once it is known by which columns rules ask."""
    monkeypatch.setattr(stored, "LOCAL_ROWS", 3)
    program = ".decl o(i: number, c: number, n: number)\n.decl c(c: number)\n.decl due(i: number, c: number)\n.output due\ndue(i, c) :- o(i, c, n), c(c), n > 2.\n"
    rows = [(number, number % 2, number % 5) for number in range(20)] + [(4, 0, 3)]
    with Database(check(program).program, {"o": rows, "c": [(0,)]}, "external", "spark") as db:
        assert db.apply({"delete": {"o": [(8, 0, 3)]}})["due"].minus == {(8, 0)}
        assert db.apply({"delete": {"o": [(4, 0, 4), (77, 0, 9)]}}) == {}, "it holds by another row"
        assert db.stats.statements == 1
        assert db.apply({"insert": {"o": [(8, 0, 4), (4, 0, 4)]}})["due"].plus == {(8, 0)}
        assert db.stats.statements == 1
