"""Rows that are too many for a message, and are fetched: as an Arrow stream, or as JSON, if the client or the server has no Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from vigilog.client.calls import read
from vigilog.client.columns import ARROW, Columns
from vigilog.client.effects import Request, Response
from vigilog.core import extras
from vigilog.core.values import Row


class _Whole(msgspec.Struct):
    rows: list[list[Any]]


class _Sides(msgspec.Struct):
    plus: list[list[Any]] = []
    minus: list[list[Any]] = []


def fetching(place: str) -> Request:
    return Request("GET", place, headers={"Accept": ARROW if extras.ARROW.installed else "application/json"})


def whole(columns: Columns, response: Response) -> list[Row]:
    """The rows of a view."""
    return columns.read_arrow(response.body)[1] if response.kind == ARROW else columns.rows(read(response, _Whole).rows)


def sides(columns: Columns, response: Response) -> Mapping[str, frozenset[Row]]:
    """The rows that came, `plus`, and those that went, `minus`; in an Arrow stream the first column says which."""
    if response.kind != ARROW:
        said = read(response, _Sides)
        return {"plus": frozenset(columns.rows(said.plus)), "minus": frozenset(columns.rows(said.minus))}
    table, rows = columns.read_arrow(response.body, skip=1)
    kinds = table.column(0).to_pylist()
    return {side: frozenset(row for row, own in zip(rows, kinds, strict=True) if own == side) for side in ("plus", "minus")}
