"""Stored values as Arrow arrays.

`pyarrow.array` looks for what pandas has, and so imports pandas, which takes longer than small programs do. Here the memory of an array is written as Arrow lays it out.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa

_FIXED = {"BIGINT": ("q", pa.int64()), "DOUBLE": ("d", pa.float64())}


def array_of(kind: str, values: Sequence[Any]) -> pa.Array:
    """An array of values of which none is missing, for a column of one of DuckDB's types.

    >>> array_of("BIGINT", [1, -2]).to_pylist(), array_of("VARCHAR", ["", "é"]).to_pylist(), array_of("BLOB", [b"a"]).to_pylist()
    ([1, -2], ['', 'é'], [b'a'])
    """
    if kind in _FIXED:
        code, type_ = _FIXED[kind]
        return pa.Array.from_buffers(type_, len(values), [None, pa.py_buffer(array(code, values))])
    parts = values if kind == "BLOB" else [text.encode() for text in values]
    ends = array("q", accumulate(map(len, parts), initial=0))
    type_ = pa.large_binary() if kind == "BLOB" else pa.large_string()
    return pa.Array.from_buffers(type_, len(parts), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(parts))])
