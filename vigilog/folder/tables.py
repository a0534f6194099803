"""Tables that have snapshots: a relation is made equal to one by reading only what has changed since it was made equal before.

The law: after it the relation is what the newest snapshot has, as if all of it had been read. What the position says of the snapshot before is that the relation was equal to it then; from that follows

    now = then - gone + came,

where `gone` and `came` are the rows of files that only one of both snapshots has, less what is in both. What somebody else has changed since then, the log knows, and it is undone. A row that went from one file may be in
another still: that cannot be where the relation had as many rows as the table, since then none was there twice. In all other cases the whole table is read and compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from vigilog.core.delta import Delta
from vigilog.core.errors import DataError
from vigilog.core.values import Row
from vigilog.engine.outcome import Outcome
from vigilog.executors.watch import Watch
from vigilog.files.place import Place
from vigilog.spark import direct
from vigilog.spark.session import session
from vigilog.spark.snapshots import Written, remove, write, write_table

if TYPE_CHECKING:
    from vigilog.folder.large import Large
    from vigilog.spark.iceberg import Change, Opened

HERE = 2_000_000  # rows of files that are compared in this process
LOADED = "load"  # what is in the warehouse for a while


class Sides(NamedTuple):
    """What came to a table and what went, each in files of its own, and by how much the table has grown."""

    came: Written
    gone: Written
    grown: int


def follow(large: Large, wanted: Place, name: str, *, kind: str, anew: bool) -> Outcome:
    """Makes a relation equal to the newest snapshot of an Iceberg table, in one transaction, with which the position of `name` is committed. What was known before does not count if it is to be `anew`."""
    from vigilog.spark.iceberg import Opened

    db, relation = large.db, wanted.relation
    table = Opened(wanted)
    position: dict[str, Any] = {"table": table.uuid, "read": _reading(table), "snapshot": table.newest, "tx": db.tx + 1}
    before: Any = None if anew else db.book.position(name)
    local = None if before is None else _since(large, relation, before, position)
    if local is not None and (change := table.since(before["snapshot"])) is not None:
        if not change.records and not local:
            return Outcome(db.tx)
        with _sides(large, table, change) as sides:
            then = large.rows_of(relation) - len(local.plus) + len(local.minus)
            if not sides.gone.rows or then == before["rows"]:
                position["rows"] = before["rows"] + sides.grown
                return _moved(large, wanted, sides, local, kind, (name, position))
    position["rows"] = table.rows
    pinned = {} if table.newest is None else {"snapshot": str(table.newest)}
    table.ensure_no_nulls()
    return large.equalize(relation, replace(wanted, options={**wanted.options, **pinned}), kind=kind, source=(name, position))


def _reading(table: Opened) -> str:
    """What is read of a table, and how: whatever is read otherwise is read as a whole."""
    place = table.place
    return repr((table.fields, place.columns, [str(type_) for type_ in place.types], place.skip_nulls, place.absent, dict(place.blanks)))


def _since(large: Large, relation: str, before: Any, position: dict[str, Any]) -> Delta | None:
    """What has changed in a relation since it was made equal to a table; None if that is not known."""
    db = large.db
    if any(before[key] != position[key] for key in ("table", "read")) or before["tx"] < db.oldest:
        return None
    if any(trigger.target == relation for trigger in db.conditions.triggers):  # which may have changed it in the same transaction
        return None
    return db.book.since(before["tx"], [relation]).get(relation, Delta())


@contextmanager
def _sides(large: Large, table: Opened, change: Change) -> Iterator[Sides]:
    """What came and what went, as files that Spark, wherever it is, and this process can read, for a while."""
    from vigilog.spark.iceberg import net

    watch, relation = Watch(report=large.db.report), table.place.relation
    watch.begin(f"reading changes of {relation}", change.records)
    if change.records <= HERE and table.flat:
        came, gone = table.arrow(change.came), table.arrow(change.gone)
        grown = came.num_rows - gone.num_rows
        kept = [write_table(side, large.warehouse, relation, LOADED) for side in net(came, gone)]
    else:
        spark = session()
        frames = [table.frame(spark, tasks) for tasks in (change.came, change.gone)]
        grown = frames[0].count() - frames[1].count()
        kept = [
            write(one.exceptAll(other), large.warehouse, relation, LOADED)
            for one, other in ((frames[0], frames[1]), (frames[1], frames[0]))
        ]
    try:
        yield Sides(kept[0], kept[1], grown)
    finally:
        for side in kept:
            remove(side.location)


def _moved(large: Large, wanted: Place, sides: Sides, local: Delta, kind: str, source: tuple[str, Any]) -> Outcome:
    db, relation = large.db, wanted.relation
    places = [replace(wanted, format="parquet", location=side.location, options={}) for side in (sides.came, sides.gone)]
    with _naming(wanted, places):
        if large.is_many(sides.came.rows + sides.gone.rows) and not local:
            return large.exchange(relation, *places, kind=kind, source=source)
        came, gone = (_rows(large, place, side) for place, side in zip(places, sides[:2], strict=True))
        wish = {"delete": {relation: list(gone | (local.plus - came))}, "insert": {relation: list(came | (local.minus - gone))}}
        return db.take(wish, kind=kind, source=source)


def _rows(large: Large, place: Place, side: Written) -> frozenset[Row]:
    """The rows of one side, here."""
    if not side.rows:
        return frozenset()
    rows = direct.rows(place, side.rows)
    return large.collected(place) if rows is None else frozenset(rows)


@contextmanager
def _naming(wanted: Place, places: list[Place]) -> Iterator[None]:
    """What is wrong with a row is told of the table, not of the files in which it was for a while."""
    try:
        yield
    except DataError as reason:
        text = str(reason)
        for place in places:
            text = text.replace(place.location, wanted.location)
        raise DataError(text, reason.code) from None
