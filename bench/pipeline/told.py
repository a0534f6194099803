"""What a contender tells of a change, to be compared with what others tell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from zlib import crc32

Told = tuple[int, int, int, int]


def told(plus: Iterable[Any], minus: Iterable[Any]) -> Told:
    """How many rows came and went, and numbers that are the same for the same rows in any order and process.

    >>> told([(1, "a")], []) == told([(1, "a")], ())
    True
    >>> told([(1, "a"), (2, "b")], [])[:2]
    (2, 0)
    """
    (came, one), (gone, other) = _digest(plus), _digest(minus)
    return came, gone, one, other


def _digest(rows: Iterable[Any]) -> tuple[int, int]:
    number = total = 0
    for row in rows:
        number += 1
        total = (total + crc32(repr(tuple(row)).encode())) % 2**32
    return number, total
