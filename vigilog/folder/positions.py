"""How far those have come who have a name: a part of the database, so that it survives restarts and is in its backups."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vigilog.store.file import damage

if TYPE_CHECKING:
    from vigilog.folder.durable import Durable


@dataclass(frozen=True)
class Remembered:
    """A named subscription: what it follows, as it said that, and the last transaction that it acknowledged, if any."""

    spec: str
    tx: int | None


Key = tuple[str, str]  # whose, and its name


def remembered(db: Durable, owner: str) -> dict[str, Remembered]:
    """The named subscriptions of an owner; positions in another history of the database are none."""
    with db.reading() as state:
        rows = state.log.connection.execute(
            "SELECT name, spec, tx, history FROM vigilog_subscriptions WHERE owner = ? ORDER BY name", (owner,)
        ).fetchall()
    return {name: Remembered(spec, tx if history == db.file.history else None) for name, spec, tx, history in rows}


def begin(db: Durable, key: Key, position: Remembered) -> None:
    """A named subscription has begun: one that followed the same before is where it was."""
    row = *key, position.spec, db.file.history, position.tx, time.time()
    with db.lock, damage(db.file.path), db.writing():
        db.file.connection.execute(
            "INSERT INTO vigilog_subscriptions VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE"
            " SET spec = excluded.spec, history = excluded.history, tx = excluded.tx, at = excluded.at WHERE spec <> excluded.spec",
            row,
        )


def remember(db: Durable, positions: Mapping[Key, Remembered]) -> None:
    rows = [(owner, name, position.spec, db.file.history, position.tx, time.time()) for (owner, name), position in positions.items()]
    with db.lock, damage(db.file.path), db.writing():
        db.file.connection.executemany("INSERT OR REPLACE INTO vigilog_subscriptions VALUES (?, ?, ?, ?, ?, ?)", rows)


def following(db: Durable, views: Collection[str]) -> list[Key]:
    """The named subscriptions that follow queries of some views."""
    with db.lock, damage(db.file.path):
        rows = db.file.connection.execute("SELECT owner, name, spec FROM vigilog_subscriptions").fetchall()
        queries = {(owner, name): json.loads(spec).get("query") for owner, name, spec in rows}
        return [key for key, query in queries.items() if query is not None and db.queries.asks_for(query) in views]


def forget(db: Durable, owner: str, name: str) -> bool:
    """Whether there was such a subscription."""
    with db.lock, damage(db.file.path), db.writing():
        return bool(db.file.connection.execute("DELETE FROM vigilog_subscriptions WHERE owner = ? AND name = ?", (owner, name)).rowcount)
