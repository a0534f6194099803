"""Values of any type as bytes that sort as the values do, for sets and tuples in SQLite: as a column, in a key, in an index.

| type | bytes |
|---|---|
| number, unsigned, decimal, date, timestamp | the integer it is, moved above 0, the most significant byte first |
| float | its IEEE bits, moved likewise |
| boolean | one byte |
| symbol | UTF-8, then a 0: no symbol has the character U+0000 |
| tuple | the bytes of its components |
| set | for each element a 1 and its bytes, in order; then a 0 |

>>> from vigilog.core.values import NUMBER, SYMBOL, set_type, tuple_type
>>> pairs = set_type(tuple_type(SYMBOL, NUMBER))
>>> stored = to_bytes(pairs)(Set([("b", 1), ("a", -2)]))
>>> from_bytes(pairs)(stored)
Set([('a', -2), ('b', 1)])
>>> stored < to_bytes(pairs)(Set([("a", -2), ("b", 1), ("c", 0)])) < to_bytes(pairs)(Set([("a", -1)]))
True
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any, assert_never

from vigilog.core.sets import Set
from vigilog.core.values import Type

_OFFSET = 2**63
_WHOLE, _BITS = struct.Struct(">Q"), struct.Struct(">d")
_FIRST = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)


@cache
def to_bytes(type_: Type) -> Callable[[Any], bytes]:
    """From a value to its bytes."""
    match type_.kind:
        case "number":
            return lambda value: _WHOLE.pack(value + _OFFSET)
        case "unsigned":
            return _WHOLE.pack
        case "decimal":
            return lambda value: _WHOLE.pack(int(value.scaleb(type_.scale)) + _OFFSET)
        case "date":
            return lambda value: _WHOLE.pack(value.toordinal())
        case "timestamp":
            return lambda value: _WHOLE.pack((value - _FIRST) // _MICROSECOND + _OFFSET)
        case "float":
            return _float_bytes
        case "boolean":
            return lambda value: b"\1" if value else b"\0"
        case "symbol":
            return lambda value: value.encode() + b"\0"
        case "tuple":
            parts = [to_bytes(part) for part in type_.parts]
            return lambda value: b"".join(part(each) for part, each in zip(parts, value, strict=True))
        case "set":
            each = to_bytes(type_.parts[0])
            return lambda value: b"".join(b"\1" + each(element) for element in value.ordered) + b"\0"
        case _:
            assert_never(type_.kind)


@cache
def from_bytes(type_: Type) -> Callable[[bytes], Any]:
    """From the bytes of a value to the value."""
    read = reader(type_)
    return lambda stored: read(stored, 0)[0]


@cache
def reader(type_: Type) -> Callable[[bytes, int], tuple[Any, int]]:
    """From bytes and a place in them to the value there and the place behind it."""
    match type_.kind:
        case "number":
            return lambda stored, at: (_WHOLE.unpack_from(stored, at)[0] - _OFFSET, at + 8)
        case "unsigned":
            return lambda stored, at: (_WHOLE.unpack_from(stored, at)[0], at + 8)
        case "decimal":
            return lambda stored, at: (Decimal(_WHOLE.unpack_from(stored, at)[0] - _OFFSET).scaleb(-type_.scale), at + 8)
        case "date":
            return lambda stored, at: (datetime.date.fromordinal(_WHOLE.unpack_from(stored, at)[0]), at + 8)
        case "timestamp":
            return lambda stored, at: (_FIRST + (_WHOLE.unpack_from(stored, at)[0] - _OFFSET) * _MICROSECOND, at + 8)
        case "float":
            return lambda stored, at: (_float_of(stored, at), at + 8)
        case "boolean":
            return lambda stored, at: (stored[at] == 1, at + 1)
        case "symbol":
            return _symbol
        case "tuple":
            return _tuple_reader(tuple(reader(part) for part in type_.parts))
        case "set":
            return _set_reader(reader(type_.parts[0]))
        case _:
            assert_never(type_.kind)


def _float_bytes(value: float) -> bytes:
    (bits,) = _WHOLE.unpack(_BITS.pack(value))
    return _WHOLE.pack(bits ^ (2**64 - 1) if bits >> 63 else bits | _OFFSET)


def _float_of(stored: bytes, at: int) -> float:
    (bits,) = _WHOLE.unpack_from(stored, at)
    number: float = _BITS.unpack(_WHOLE.pack(bits ^ _OFFSET if bits >> 63 else bits ^ (2**64 - 1)))[0]
    return number


def _symbol(stored: bytes, at: int) -> tuple[str, int]:
    end = stored.index(b"\0", at)
    return stored[at:end].decode(), end + 1


def _tuple_reader(parts: tuple[Callable[[bytes, int], tuple[Any, int]], ...]) -> Callable[[bytes, int], tuple[Any, int]]:
    def read(stored: bytes, at: int) -> tuple[Any, int]:
        values = []
        for part in parts:
            value, at = part(stored, at)
            values.append(value)
        return tuple(values), at

    return read


def _set_reader(element: Callable[[bytes, int], tuple[Any, int]]) -> Callable[[bytes, int], tuple[Any, int]]:
    def read(stored: bytes, at: int) -> tuple[Any, int]:
        elements = []
        while stored[at]:
            value, at = element(stored, at + 1)
            elements.append(value)
        return Set(elements), at + 1

    return read
