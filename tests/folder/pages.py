"""What the bytes of a SQLite file are: https://www.sqlite.org/fileformat2.html, as far as a test needs it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

TABLE_LEAF, TABLE_INTERIOR, INDEX_INTERIOR = 13, 5, 2


def cells(path: Path) -> dict[str, list[range]]:
    """Where the cells of each table and index are, with what of them is on pages of its own: bytes that hold something."""
    data = path.read_bytes()
    with closing(sqlite3.connect(path)) as connection:
        roots = connection.execute("SELECT name, rootpage FROM sqlite_master WHERE rootpage > 0").fetchall()
    size = int.from_bytes(data[16:18]) % 65_535 or 65_536
    return {name: list(_of_page(data, size, root)) for name, root in [("sqlite_schema", 1), *roots]}


def _of_page(data: bytes, size: int, page: int) -> Iterator[range]:
    start = (page - 1) * size
    header = start + (100 if page == 1 else 0)
    kind, number = data[header], int.from_bytes(data[header + 3 : header + 5])
    interior = kind in (TABLE_INTERIOR, INDEX_INTERIOR)
    pointers = header + (12 if interior else 8)
    if interior:
        yield from _of_page(data, size, int.from_bytes(data[header + 8 : header + 12]))
    for pointer in range(pointers, pointers + 2 * number, 2):
        begin = place = start + int.from_bytes(data[pointer : pointer + 2])
        if interior:
            yield from _of_page(data, size, int.from_bytes(data[begin : begin + 4]))
            place += 4
        payload, place = _varint(data, place)
        if kind == TABLE_INTERIOR:
            yield range(begin, place)
            continue
        if kind == TABLE_LEAF:
            _, place = _varint(data, place)
        least = (size - 12) * 32 // 255 - 23
        most = size - 35 if kind == TABLE_LEAF else (size - 12) * 64 // 255 - 23
        here = payload if payload <= most else least + (payload - least) % (size - 4)
        here = least if here > most else here
        yield range(begin, place + here + (4 if here < payload else 0))
        if here < payload:
            yield from _overflow(data, size, int.from_bytes(data[place + here : place + here + 4]), payload - here)


def _overflow(data: bytes, size: int, page: int, left: int) -> Iterator[range]:
    while left > 0:
        start = (page - 1) * size
        yield range(start, start + 4 + min(left, size - 4))
        page, left = int.from_bytes(data[start : start + 4]), left - (size - 4)


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for count in range(9):
        byte = data[place + count]
        value = value << 8 | byte if count == 8 else value << 7 | byte & 0x7F
        if count == 8 or not byte & 0x80:
            return value, place + count + 1
    raise AssertionError("it ends above")
