"""What a data folder holds, where, and how it is kept."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from vigilog.core.delta import Delta
from vigilog.engine.sources import SourceStatus
from vigilog.folder.residency import size
from vigilog.spark.snapshots import PLAIN
from vigilog.store.file import NAME

if TYPE_CHECKING:
    from vigilog.folder.durable import Durable

RESIDENT, ON_SPARK, NOT_KEPT = "resident", "on Spark", "not kept"


@dataclass(frozen=True)
class RelationStatus:
    """A base relation or a view. What is not kept has no number of rows that is known without deriving them."""

    name: str
    kind: str  # base, view
    rows: int | None
    residency: str
    snapshot: int | None = None  # the transaction at which it was taken
    snapshot_age: float | None = None  # seconds
    behind: int | None = None  # rows changed since
    strategy: str = ""
    reason: str = ""
    sorted_by: tuple[str, ...] = ()  # the columns in whose order what is on Spark is written,
    filtered_by: tuple[str, ...] = ()  # and others by which it can be looked up
    size: int | None = None  # about how many bytes a base relation takes, or would take, if it is resident


@dataclass(frozen=True)
class Status:
    folder: str
    format: int
    history: str
    tx: int
    oldest: int  # the oldest state that can be looked at
    program: int  # its version
    relations: tuple[RelationStatus, ...]
    outbox_changes: int
    outbox_bytes: int
    file_bytes: int
    warehouse: str
    memory: int  # bytes that all resident base relations together may take
    retain: Mapping[str, float]
    troubles: tuple[str, ...]
    sources: tuple[SourceStatus, ...] = ()  # that are asked

    def json(self) -> dict[str, Any]:
        return asdict(self)


def status(db: Durable) -> Status:
    """The state of an open database. Nothing is derived for it, and Spark does not start."""
    outbox_changes, outbox_bytes = db.book.log.size()
    (version,) = db.file.connection.execute("SELECT max(version) FROM vigilog_programs").fetchone()
    return Status(
        folder=str(db.folder),
        format=int(db.file.get("format")),
        history=db.file.history,
        tx=db.tx,
        oldest=db.oldest,
        program=version,
        relations=tuple([_base(db, name) for name in db.homes] + [_view(db, name) for name in db.program.outputs if name in db.strategies]),
        outbox_changes=outbox_changes,
        outbox_bytes=outbox_bytes,
        file_bytes=sum(path.stat().st_size for path in db.folder.glob(f"{NAME}*")),
        warehouse=db.store.warehouse,
        memory=db.store.memory,
        retain=db.book.retain,
        troubles=tuple(db.troubles),
        sources=tuple(db.sources.status()) if db.sources is not None else (),
    )


def _base(db: Durable, name: str) -> RelationStatus:
    snapshot, large = db.store.snapshot(name), name in db.large
    tail = db.book.since(snapshot[1], [name]).get(name, Delta()) if snapshot and snapshot[1] >= db.book.log.first else Delta()
    rows = db.store.rows_of(name)
    order, columns = db.store.order(name) if large else PLAIN, db.program.relations[name].columns
    return RelationStatus(
        name=name,
        kind="base",
        rows=rows,
        residency=ON_SPARK if large else RESIDENT,
        snapshot=snapshot and snapshot[1],
        snapshot_age=snapshot and round(time.time() - db.store.snapshot_taken(name), 3),
        behind=len(tail.plus) + len(tail.minus) if snapshot else None,
        sorted_by=tuple(columns[column] for column in order.columns),
        filtered_by=tuple(columns[column] for column in order.filtered),
        size=size(db.program.relations[name].types, rows),
    )


def _view(db: Durable, name: str) -> RelationStatus:
    far, chosen = db.store.is_far(name), db.strategies[name]
    kept = name in db.stored and not far
    return RelationStatus(
        name=name,
        kind="view",
        rows=db.kept_rows(name) if kept else None,
        residency=ON_SPARK if far else RESIDENT if kept else NOT_KEPT,
        strategy=chosen.name,
        reason=chosen.reason,
    )
