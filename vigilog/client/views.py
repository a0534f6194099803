"""Views as their holders see them: sets that keep themselves equal to the server's views."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from vigilog.client.copies import Copy, OfRow
from vigilog.client.events import Snapshot
from vigilog.core.values import Row

if TYPE_CHECKING:
    import pandas
    import pyarrow

C = TypeVar("C", bound=Callable[..., Any])


class Feed(Protocol):
    """What keeps a copy equal to the server's views."""

    copy: Copy

    @property
    def connected(self) -> bool: ...


class CopyHandle:
    """What one view and several together have in common."""

    def __init__(self, feed: Feed) -> None:
        self._feed, self._copy = feed, feed.copy

    @property
    def position(self) -> int:
        """The transaction whose state this is."""
        return self._copy.position

    @property
    def live(self) -> bool:
        """Whether it is still kept; a lost connection does not end that."""
        return not self._copy.ended

    @property
    def connected(self) -> bool:
        """Whether there is a connection now."""
        return self._feed.connected

    @property
    def error(self) -> Exception | None:
        """Why it is kept no more, or the last error of a callback."""
        return self._copy.error

    def on_change(self, callback: C) -> C:
        """Calls back with the Change of each transaction, after callbacks for rows. May stand above a function as `@view.on_change`."""
        self._copy.change.append(callback)
        return callback

    def on_error(self, callback: C) -> C:
        """Calls back with what a callback raised, or with what ended the view."""
        self._copy.failed.append(callback)
        return callback


class OneView(CopyHandle, Set[Row]):
    """The rows of a view. It may be used like any set, from any thread. A constrained one has the facts that it was told, and `(7,) in view` says whether they cover a row."""

    def __init__(self, feed: Feed, name: str) -> None:
        super().__init__(feed)
        self.name = name

    @classmethod
    def _from_iterable(cls, rows: Iterable[Any]) -> Any:
        """What `&`, `|` and the like of two sets give."""
        return set(rows)

    @property
    def _rows(self) -> set[Row]:
        return self._copy.rows.get(self.name, set())

    def __len__(self) -> int:
        with self._copy.lock:
            return len(self._rows)

    def __contains__(self, row: object) -> bool:
        return isinstance(row, tuple) and self._copy.covers(self.name, row)

    def __iter__(self) -> Iterator[Row]:
        """Goes through the rows as they are when it begins."""
        return iter(self.snapshot().rows)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {len(self)} rows at {self.position}>"

    __hash__ = object.__hash__

    def on_plus(self, callback: C) -> C:
        """Calls back with each row that comes."""
        return _added(self._copy.plus, self.name, callback)

    def on_minus(self, callback: C) -> C:
        """Calls back with each row that goes."""
        return _added(self._copy.minus, self.name, callback)

    def snapshot(self) -> Snapshot:
        """All rows with their position; they stay as they are."""
        return self._copy.snapshot([self.name])

    def to_arrow(self) -> pyarrow.Table:
        return self._copy.columns[self.name].to_arrow(self.snapshot().rows)

    def to_pandas(self) -> pandas.DataFrame:
        return self._copy.columns[self.name].to_pandas(self.snapshot().rows)


V = TypeVar("V", bound=OneView)


class SeveralViews(CopyHandle, Mapping[str, V]):
    """Views that change together, by their names. A snapshot has all of them at one position."""

    def __init__(self, feed: Feed, views: Iterable[V]) -> None:
        super().__init__(feed)
        self._views = {view.name: view for view in views}

    def __getitem__(self, name: str) -> V:
        return self._views[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)

    def snapshot(self) -> Snapshot:
        return self._copy.snapshot(self._views)


def _added(callbacks: dict[str, list[OfRow]], view: str, callback: C) -> C:
    callbacks.setdefault(view, []).append(callback)
    return callback
