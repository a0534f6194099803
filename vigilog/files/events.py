"""Lines of JSON that say what is to be done with rows, in the order in which it is to be done: objects with an operation, and Debezium's change events.

An event of Debezium has an operation (`op`) and the row `before` and `after` it, perhaps within a `payload` beside a `schema`. By the relation's key it is an upsert or the deletion of a key, which do the same when an
event comes twice, as it may; without a key it deletes the whole row before and inserts the one after.
"""

from __future__ import annotations

import base64
import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Context, Decimal
from typing import Any

from vigilog.core.errors import DataError
from vigilog.core.values import Row, Type
from vigilog.files.place import Place
from vigilog.files.reader import bad_cell, json_object, null_error, opened, row_of

OPERATION = "op"
OPERATIONS = ("insert", "delete", "upsert", "delete_key")

Operation = tuple[str, Row]  # of a deletion by key, the row has nothing but the key
Line = tuple[str, str]  # where it is, and what it says


def lines(place: Place) -> Iterator[Line]:
    """The lines of a file."""
    with opened(place, place.path) as file:
        for number, line in enumerate(file, start=1):
            yield f"{place.path}:{number}", line


def operations(place: Place, key: Sequence[int], told: Iterable[Line]) -> Iterator[Operation]:
    """What lines say is to be done with the rows of a relation. Raises DataError for one that says nothing of the kind."""
    read = FORMATS[place.options["format"]]
    for where, line in told:
        if line.strip():
            yield from read(place, key, where, line)


# -- objects with an operation


def _of_object(place: Place, key: Sequence[int], where: str, line: str) -> Iterator[Operation]:
    record = json_object(where, line)
    stated = place.options.get(OPERATION)
    operation: Any = "insert"
    if stated is not None or OPERATION not in place.columns:
        column = stated or OPERATION
        operation = record.get(column, None if stated else operation)
    if operation not in OPERATIONS:
        raise DataError(f"{where}: there is no operation {str(operation)[:60]} (there are {', '.join(OPERATIONS)})", "operation")
    if operation == "delete_key":
        yield operation, _key_row(place, key, where, record)
    else:
        yield from _done(place, key, where, operation, record)


def _done(place: Place, key: Sequence[int], where: str, operation: str, record: Mapping[str, Any]) -> Iterator[Operation]:
    row = row_of(place, where, record)
    if row is not None:
        yield operation, row
    elif operation == "upsert" and place.absent:  # of a column that is null there is no row: the one that there was goes
        yield "delete_key", _key_row(place, key, where, record)


def _key_row(place: Place, key: Sequence[int], where: str, record: Mapping[str, Any]) -> Row:
    """The key that an object says, in a row that has nothing else."""
    cells: list[Any] = [None] * len(place.columns)
    for column in key:
        name, cell = place.columns[column], record.get(place.columns[column])
        if cell is None:
            raise null_error(where, place, name, missing=name not in record)
        with _naming(place, where, name):
            cells[column] = place.types[column].from_json(cell)
    return tuple(cells)


# -- Debezium


LEFT_OUT = "__debezium_unavailable_value"  # what PostgreSQL does not say of a large value that an update leaves alone
UNITS = {"ms": 1_000, "us": 1, "ns": None}  # of whole timestamps: in microseconds; of nanoseconds a thousand are one
_UNIT_OF = {
    "io.debezium.time.Timestamp": "ms",
    "io.debezium.time.MicroTimestamp": "us",
    "io.debezium.time.NanoTimestamp": "ns",
    "org.apache.kafka.connect.data.Timestamp": "ms",
}
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_EXACT = Context(prec=100)


def _of_event(place: Place, key: Sequence[int], where: str, line: str) -> Iterator[Operation]:
    if line.strip() == "null":  # a tombstone: the deletion was said before
        return
    event = json_object(where, line)
    schema: Any = None
    if "payload" in event and "op" not in event:
        schema, event = event.get("schema"), event["payload"]
        if event is None:
            return
    match event.get("op") if isinstance(event, dict) else None:
        case "c" | "r" | "u" if key:
            yield from _done(place, key, where, "upsert", _side(place, where, event, "after", schema))
        case "c" | "r":
            yield from _done(place, key, where, "insert", _side(place, where, event, "after", schema))
        case "u":
            yield from _done(place, key, where, "delete", _whole(place, where, event, schema))
            yield from _done(place, key, where, "insert", _side(place, where, event, "after", schema))
        case "d" if key:
            yield "delete_key", _key_row(place, key, where, _side(place, where, event, "before", schema))
        case "d":
            yield from _done(place, key, where, "delete", _whole(place, where, event, schema))
        case "t":
            raise DataError(
                f"{where}: the table was emptied at once, which is not followed: sync {place.relation}, and leave this out", "operation"
            )
        case other:
            raise DataError(f"{where}: is no change event of Debezium: its op is {str(other)[:60]}, not c, r, u or d", "operation")


def _side(place: Place, where: str, event: Mapping[str, Any], side: str, schema: Any) -> dict[str, Any]:
    """A row as one side of an event says it, in the words of JSON lines."""
    row = event.get(side)
    if not isinstance(row, dict):
        raise DataError(f"{where}: the event does not say the row {side} it", "columns")
    fields = _fields(schema, side)
    cells = dict(row)
    for column, type_ in zip(place.columns, place.types, strict=True):
        if cells.get(column) is not None:
            with _naming(place, where, column):
                cells[column] = _cell(type_, cells[column], fields.get(column, {}), place.options.get("timestamps"))
    return cells


def _whole(place: Place, where: str, event: Mapping[str, Any], schema: Any) -> dict[str, Any]:
    """The row before an event, all of it."""
    row = event.get("before") or {}
    if not place.skip_nulls and any(row.get(column) is None for column in place.columns if column not in place.lenient):
        way = f"declare a .key of {place.relation}, or have all of it said (PostgreSQL: ALTER TABLE … REPLICA IDENTITY FULL)"
        raise DataError(f"{where}: the event does not say the whole row before it; {way}", "columns")
    return _side(place, where, event, "before", schema)


def _fields(schema: Any, side: str) -> dict[str, Mapping[str, Any]]:
    """What an event's schema, if there is one, says of the columns."""
    for part in schema.get("fields", ()) if isinstance(schema, dict) else ():
        if part.get("field") == side:
            return {field["field"]: field for field in part.get("fields", ())}
    return {}


def _cell(type_: Type, cell: Any, field: Mapping[str, Any], unit: str | None) -> Any:
    """A cell as JSON lines have it: Debezium counts days and parts of seconds since 1970, and writes decimals as bytes."""
    name = field.get("name")
    if cell == LEFT_OUT:
        raise ValueError(
            "PostgreSQL has left it out, for it is large and did not change: ALTER TABLE … REPLICA IDENTITY FULL makes it say so"
        )
    if type_.kind == "date" and isinstance(cell, int):
        return _since(lambda: _EPOCH + datetime.timedelta(days=cell), type_, cell).date().isoformat()
    if type_.kind == "timestamp" and isinstance(cell, int):
        return _moment(type_, cell, _UNIT_OF.get(str(name), unit))
    if type_.kind in ("decimal", "number", "unsigned", "float"):
        if isinstance(cell, dict) and {"scale", "value"} <= cell.keys():  # a numeric without bounds
            return _number(type_, _decimal(cell["value"], int(cell["scale"])))
        if name == _DECIMAL and isinstance(cell, str):
            return _number(type_, _decimal(cell, int(field.get("parameters", {}).get("scale", 0))))
    return cell


def _moment(type_: Type, cell: int, unit: str | None) -> str:
    if unit is None:
        raise ValueError(
            f"{cell} is a number; say timestamps=ms, us or ns, as the connector counts them (time.precision.mode), or have it send schemas"
        )
    step = UNITS[unit]
    if step is None:
        if cell % 1_000:
            raise ValueError(f"{cell} ns has parts of a microsecond, which no timestamp has here")
        cell, step = cell // 1_000, 1
    return type_.text(_since(lambda: _EPOCH + datetime.timedelta(microseconds=cell * step), type_, cell))


def _since(moment: Callable[[], datetime.datetime], type_: Type, cell: int) -> datetime.datetime:
    try:
        return moment()
    except OverflowError:
        raise ValueError(f"{cell} is not a {type_}: {type_.form}") from None


def _decimal(text: Any, scale: int) -> Decimal:
    try:
        digits = base64.b64decode(text, validate=True)
    except (TypeError, ValueError):
        raise ValueError(f"{text} is no decimal as Kafka Connect writes it") from None
    return Decimal(int.from_bytes(digits, "big", signed=True)).scaleb(-scale, _EXACT)


def _number(type_: Type, value: Decimal) -> Any:
    """A decimal for a column of any type of numbers."""
    if type_.kind in ("number", "unsigned") and value == value.to_integral_value():
        return int(value)
    return value


@contextmanager
def _naming(place: Place, where: str, column: str) -> Iterator[None]:
    """What is wrong with a cell inside is told with its column."""
    try:
        yield
    except ValueError as reason:
        raise bad_cell(place, where, column, reason) from None


FORMATS: dict[str, Callable[[Place, Sequence[int], str, str], Iterator[Operation]]] = {"json": _of_object, "debezium": _of_event}
