"""What is done to many values at once is what would be done to each."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vigilog.core.arrow import from_arrow, narrowed, to_arrow
from vigilog.core.rows import json_rows, rows_from_json
from vigilog.core.values import BUILTIN, Row, Type, Value, decimal_type
from vigilog.planning.sqlite import decoder, encoder

TYPES = [*BUILTIN.values(), decimal_type(6, 2), decimal_type(18, 0), decimal_type(2, 2), decimal_type(18, 18)]
TEXTS = st.one_of(
    st.text(max_size=6),
    st.sampled_from(
        ["5", "-0", "-0.00", "0.5", "9.99", "00.10", "1e2", "2026-11-16", "2026-02-30", "20261116", "2026-W01-1", "0000-01-01"]
    ),
    st.sampled_from(["2026-11-16T08:30:00Z", "2026-11-16T08:30:00.000001Z", "2026-11-16 08:30:00+02:00", "2026-13-16T08:30:00.000000Z"]),
    st.dates().map(str),
    st.decimals(-100, 100, places=2).map(str),
)
SCALARS = st.one_of(TEXTS, st.integers(-(2**70), 2**70), st.integers(-5, 5), st.floats(), st.booleans(), st.none())
OF_TYPE: dict[str, st.SearchStrategy[Any]] = {
    "symbol": st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=5),
    "number": st.integers(-(2**63), 2**63 - 1),
    "unsigned": st.integers(0, 2**64 - 1),
    "float": st.floats(allow_nan=False, allow_infinity=False).map(lambda value: value + 0.0),
    "boolean": st.booleans(),
    "date": st.dates(),
    "timestamp": st.datetimes(timezones=st.just(datetime.UTC)).map(lambda moment: moment.replace(fold=0)),
}


def values(type_: Type) -> st.SearchStrategy[Value]:
    if type_.kind != "decimal":
        return OF_TYPE[type_.kind]
    most = 10**type_.precision - 1
    return st.integers(-most, most).map(lambda digits: Decimal(digits).scaleb(-type_.scale))


def outcome(work: Callable[[], Any]) -> Any:
    try:
        return [repr(value) for value in work()]  # -0 is not 0, nor is 1 true
    except ValueError as reason:
        return str(reason)


@pytest.mark.parametrize("type_", TYPES, ids=str)
@settings(deadline=None)
@given(data=st.data())
def test_a_column_is_read_as_its_cells_are(type_: Type, data: st.DataObject) -> None:
    one = st.one_of(SCALARS, values(type_).map(type_.to_json))
    given_ = data.draw(
        st.one_of(st.lists(one, min_size=1), st.lists(TEXTS, min_size=1), st.lists(values(type_).map(type_.to_json), min_size=1))
    )
    assert outcome(lambda: type_.column_from_json(given_)) == outcome(lambda: [type_.from_json(value) for value in given_])


@settings(deadline=None)
@given(data=st.data())
def test_rows_go_round(data: st.DataObject) -> None:
    """Through JSON, through Arrow, and through what SQLite stores."""
    types = tuple(data.draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=4)))
    rows: list[Row] = data.draw(st.lists(st.tuples(*map(values, types)), max_size=8))
    told = json_rows(types, rows)
    assert [tuple(row) for row in told] == [tuple(type_.to_json(cell) for type_, cell in zip(types, row, strict=True)) for row in rows]
    assert [*map(repr, rows_from_json(types, told))] == [*map(repr, rows)]
    table = to_arrow([f"c{number}" for number in range(len(types))], types, rows)
    assert [*map(repr, from_arrow(types, table))] == [*map(repr, rows)]
    for type_, cells in zip(types, zip(*rows, strict=True), strict=False):
        there, back = encoder(type_) or (lambda cell: cell), decoder(type_) or (lambda cell: cell)
        assert [repr(back(there(cell))) for cell in cells] == [*map(repr, cells)]
    if rows:
        wanted = data.draw(st.sampled_from(rows))
        column = data.draw(st.integers(0, len(types) - 1))
        assert list(from_arrow(types, narrowed(table, {column: wanted[column]}))) == [row for row in rows if row[column] == wanted[column]]


def test_rows_of_another_width_are_none() -> None:
    with pytest.raises(ValueError, match="another number of cells"):
        rows_from_json((BUILTIN["number"], BUILTIN["number"]), [[1, 2], [1, 2, 3]])
