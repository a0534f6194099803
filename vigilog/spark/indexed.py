"""Rows in files of their own, found by the values of their columns: in this process, in a millisecond.

One file has batches of rows as Arrow has them in memory, not compressed, so that a row can be read by its position. An index of a column has the values of each batch in order, each with the position of its
row; it is made when a column is first asked by. Files are mapped into memory, not read: what nobody asks for stays on the disk. A file loses its name when it is open, so nothing is left of it when the process
ends, however it ends, and nobody reads what another process has made.

>>> from vigilog.core.values import NUMBER, SYMBOL
>>> table = pa.table({"i": [1, 2, 3], "n": ["a", "b", "a"]})
>>> rows = IndexedRows([NUMBER, SYMBOL], table.to_batches(), Path(tempfile.gettempdir()))
>>> sorted(rows.having((1,), {("a",)}, most=10))
[(1, 'a'), (3, 'a')]
>>> rows.having((0, 1), {(1, "a"), (2, "a")}, most=10)
[(1, 'a')]
>>> rows.having((1,), {("a",)}, most=1) is None  # that are too many
True
>>> sorted(rows.some((1,), {("a",), ("b",), ("c",)}, gone={(1, "a"), (2, "b")}, most=10))
[('a',)]
"""

from __future__ import annotations

import mmap
import os
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from vigilog.core.arrow import arrow_type, from_arrow, to_arrow
from vigilog.core.values import Row, Type

BATCH_ROWS, BATCH_BYTES = 2**20, 64 * 2**20  # of one batch, the larger the fewer there are to be searched
TAKEN = 32  # rows that are read at once
WIDER = 4  # how many times as many rows are looked at next, of a value all of whose rows so far were gone
SLACK = 1_000  # so many rows beside those that were asked for are no reason to make another index
INDEXED = ("number", "symbol", "date")  # kinds whose order is the same in Arrow

Found = list[tuple[int, pa.Array]]  # batches, and positions in them


class IndexedRows:
    """Distinct rows that never change."""

    def __init__(self, types: Sequence[Type], batches: Iterable[pa.RecordBatch], folder: Path) -> None:
        """Takes the rows of batches, in columns of these types, into a file in a folder. Raises OSError if it cannot be written."""
        self.types, self.folder, self.lock = list(types), folder, Lock()
        schema = pa.schema([(f"c{place}", arrow_type(type_)) for place, type_ in enumerate(types)])
        self.mapped = _Mapped(folder, schema, _gathered(schema, batches))
        self.rows = sum(batch.num_rows for batch in self.mapped.batches)
        self.indexes: dict[int, _Mapped] = {}
        self.seconds = 0.0  # that making indexes has taken

    def having(self, columns: Sequence[int], keys: Collection[Row], most: int) -> list[Row] | None:
        """The rows that have one of some keys in their columns. None if more than `most` rows would have to be looked at, or no column has an order."""
        places = self._found(columns, keys, most)
        if places is None:
            return None
        wanted, rows = keys if isinstance(keys, set | frozenset) else set(keys), list[Row]()
        for number, positions in places:
            rows += (row for row in self._rows(number, positions) if tuple([row[column] for column in columns]) in wanted)
        return rows

    def _rows(self, batch: int, positions: pa.Array) -> Iterator[Row]:
        """The rows at some positions of a batch, few at a time."""
        for start in range(0, len(positions), TAKEN):
            taken = self.mapped.batches[batch].take(positions.slice(start, TAKEN))
            yield from from_arrow(self.types, pa.Table.from_batches([taken]))
            self.mapped.forget()

    def some(self, columns: Sequence[int], keys: Collection[Row], gone: Collection[Row], most: int) -> set[Row] | None:
        """Those of some keys that a row has in its columns which is not `gone`. None if more than `most` rows would have to be looked at, or no column has an order.

        By one column, of each key only as many rows are looked at as are gone, and one more.
        """
        if len(columns) > 1 or not self.serves(columns):
            there = self.having(columns, keys, most)
            return None if there is None else {tuple([row[column] for column in columns]) for row in there if row not in gone}
        (column,), open_, width = columns, {key for (key,) in keys}, 1
        values = to_arrow(["value"], [self.types[column]], [(value,) for value in open_])["value"].combine_chunks()
        index = self._index(column)
        left = [(batch, first, last) for batch, part in enumerate(index.bounds(values)) for first, last in part]
        while left:
            for batch in sorted({batch for batch, _, _ in left}):
                places = index.batches[batch]["place"]
                some = pa.concat_arrays([places.slice(first, min(width, last - first)) for own, first, last in left if own == batch])
                open_ -= {row[column] for row in self._rows(batch, some) if row not in gone}
            left = [
                (batch, first + width, last)
                for batch, first, last in left
                if first + width < last and index.batches[batch]["value"][first].as_py() in open_
            ]
            index.forget()
            width *= WIDER
        return {key for key in keys if key[0] not in open_}

    def serves(self, columns: Sequence[int]) -> bool:
        """Whether one of some columns can have an index."""
        return any(self.types[column].kind in INDEXED for column in columns)

    def _found(self, columns: Sequence[int], keys: Collection[Row], most: int) -> Found | None:
        """Where the rows can be, by the column that leaves fewest."""
        best: tuple[int, Found] | None = None
        places = [place for place, column in enumerate(columns) if self.types[column].kind in INDEXED]
        for place in sorted(places, key=lambda place: (columns[place] not in self.indexes, place)):
            column = columns[place]
            values = to_arrow(["value"], [self.types[column]], [(value,) for value in {key[place] for key in keys}])["value"]
            index = self._index(column)
            bounds = index.bounds(values.combine_chunks())
            number = sum(last - first for part in bounds for first, last in part)
            if best is None or number < best[0]:
                parts = [(batch, part) for batch, part in enumerate(bounds if number <= most else []) if part]
                best = number, [(batch, index.positions(batch, part)) for batch, part in parts]
            if number <= len(keys) + SLACK:
                break
        return best[1] if best is not None and best[0] <= most else None

    def _index(self, column: int) -> _Mapped:
        """The index of a column: for each batch its values in order, each with its place."""
        with self.lock:
            if column not in self.indexes:
                began = time.perf_counter()
                schema = pa.schema([("value", arrow_type(self.types[column])), ("place", pa.uint32())])
                self.indexes[column] = _Mapped(self.folder, schema, self._ordered(schema, column))
                self.seconds += time.perf_counter() - began
            return self.indexes[column]

    def _ordered(self, schema: pa.Schema, column: int) -> Iterator[pa.RecordBatch]:
        """The index of each batch."""
        for batch in self.mapped.batches:
            places = pc.sort_indices(batch.column(column)).cast(pa.uint32())
            yield pa.RecordBatch.from_arrays([batch.column(column).take(places), places], schema=schema)
            self.mapped.forget()


class Lazily:
    """Indexed rows that are made when they are first needed, once. If that cannot be, because the disk is full or the rows are damaged, nothing is found in them, and whoever asks goes another way."""

    def __init__(self, make: Callable[[], IndexedRows]) -> None:
        self.make, self.lock = make, Lock()
        self.tried = False
        self.indexed: IndexedRows | None = None
        self._seconds = 0.0

    @property
    def seconds(self) -> float:
        """What making them, and their indexes, has taken: what is done once is no part of what a look-up costs."""
        return self._seconds + (0.0 if self.indexed is None else self.indexed.seconds)

    def serves(self, columns: Sequence[int]) -> bool:
        """See `IndexedRows`."""
        with self.lock:
            if not self.tried:
                self.tried, began = True, time.perf_counter()
                with suppress(OSError, pa.ArrowException):
                    self.indexed = self.make()
                self._seconds = time.perf_counter() - began
            return self.indexed is not None and self.indexed.serves(columns)

    def having(self, columns: Sequence[int], keys: Collection[Row], most: int) -> list[Row] | None:
        """See `IndexedRows`."""
        if not self.serves(columns):
            return None
        try:
            assert self.indexed is not None, "it serves"
            return self.indexed.having(columns, keys, most)
        except OSError:
            self.indexed = None
            return None

    def some(self, columns: Sequence[int], keys: Collection[Row], gone: Collection[Row], most: int) -> set[Row] | None:
        """See `IndexedRows`."""
        if not self.serves(columns):
            return None
        try:
            assert self.indexed is not None, "it serves"
            return self.indexed.some(columns, keys, gone, most)
        except OSError:
            self.indexed = None
            return None


def _gathered(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in as few batches as may be."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            part = batch.slice(start, BATCH_ROWS)
            if waiting and (rows + part.num_rows > BATCH_ROWS or size + part.nbytes > BATCH_BYTES):
                yield _together(schema, waiting)
                waiting, rows, size = [], 0, 0
            waiting.append(part)
            rows, size = rows + part.num_rows, size + part.nbytes
    if waiting:
        yield _together(schema, waiting)


def _together(schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    arrays = [
        pa.concat_arrays([column if column.type == type_ else column.cast(type_) for column in (batch.column(place) for batch in batches)])
        for place, type_ in enumerate(schema.types)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _bounds(ordered: pa.Array, values: pa.Array) -> list[tuple[int, int]]:
    """The ranges of an ordered column that have some values, none of which is empty."""
    first, last = (pc.search_sorted(ordered, values, side=side) for side in ("left", "right"))
    some = pc.less(first, last)
    return list(zip(first.filter(some).to_pylist(), last.filter(some).to_pylist(), strict=True))


class _Mapped:
    """Batches as a file has them that nobody else sees. What was looked at is a part of this process's memory until it is forgotten: its pages remain at hand, but they are the system's."""

    def __init__(self, folder: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        handle, name = tempfile.mkstemp(prefix="_index-", dir=folder)  # what begins so is not read by Spark
        path = Path(name)
        try:
            with pa.OSFile(name, "wb") as sink, pa.ipc.new_file(sink, schema) as file:
                for batch in batches:
                    file.write_batch(batch)
            self.view = mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
        finally:
            os.close(handle)
            path.unlink()
        reader: Any = pa.ipc.open_file(pa.BufferReader(pa.py_buffer(self.view)))
        self.batches: list[pa.RecordBatch] = [reader.get_batch(number) for number in range(reader.num_record_batches)]

    def bounds(self, values: pa.Array) -> list[list[tuple[int, int]]]:
        """Where some values are, in each batch that has values in order."""
        bounds = []
        for batch in self.batches:
            bounds.append(_bounds(batch["value"], values))
            self.forget()
        return bounds

    def positions(self, batch: int, parts: Sequence[tuple[int, int]]) -> pa.Array:
        """The positions that some parts of a batch have."""
        places = self.batches[batch]["place"]
        return pa.concat_arrays([*(places.slice(first, last - first) for first, last in parts), pa.array([], pa.uint32())])

    def forget(self) -> None:
        if hasattr(mmap, "MADV_DONTNEED"):
            self.view.madvise(mmap.MADV_DONTNEED)
