"""One cell of a source: its value in the relation's type, whether it has one, whether it is null."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never

from vigilog.core.values import Type, Value
from vigilog.spark.types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column

_WHOLE = ("tinyint", "smallint", "int", "bigint")


@dataclass(frozen=True)
class Cell:
    value: Column
    good: Column
    null: Column
    text: Column


def fits(type_: Type, kind: str) -> bool:
    """Whether a column of Spark type `kind` can hold values of a type; single values may still be refused."""
    decimal = kind.startswith("decimal")
    match type_.kind:
        case "symbol":
            return kind == "string" or re.match(r"(var)?char", kind) is not None
        case "number" | "unsigned":
            return kind in _WHOLE or (decimal and kind.endswith(",0)"))
        case "float":
            return kind in (*_WHOLE, "float", "double") or decimal
        case "decimal":
            return kind in _WHOLE or decimal
        case "timestamp":
            return kind in ("timestamp", "timestamp_ntz")
        case "boolean" | "date":
            return kind == type_.kind
        case "set":
            return kind.startswith("array<") and fits(type_.parts[0], kind[6:-1])
        case "tuple":
            inner = _fields(kind[7:-1]) if kind.startswith("struct<") else []
            return len(inner) == len(type_.parts) and all(map(fits, type_.parts, inner))
        case _:
            assert_never(type_.kind)


def _fields(kind: str) -> list[str]:
    """The kinds of a structure's fields.

    >>> _fields("a:string,b:array<struct<c:int,d:int>>,e:decimal(20,0)")
    ['string', 'array<struct<c:int,d:int>>', 'decimal(20,0)']
    """
    fields, depth = [""], 0
    for character in kind:
        depth += (character in "<(") - (character in ">)")
        if character == "," and not depth:
            fields.append("")
        else:
            fields[-1] += character
    return [field.partition(":")[2] for field in fields]


def _nested(type_: Type, raw: Column) -> tuple[Column, Column]:
    """A set or tuple of a typed column, in its canonical form, and whether all in it is good."""
    from pyspark.sql import functions as F

    if type_.kind == "set":
        element = type_.parts[0]
        value = F.array_sort(F.array_distinct(F.transform(raw, lambda each: from_column(element, each).value)))
        return value, raw.isNotNull() & F.forall(raw, lambda each: F.coalesce(from_column(element, each).good, F.lit(False)))
    return _tuple_of(raw, [from_column(part, field) for part, field in zip(type_.parts, _parts_of(type_, raw), strict=True)])


def _parts_of(type_: Type, raw: Column) -> list[Column]:
    names = [f"_{number}" for number in range(1, len(type_.parts) + 1)]
    positioned = raw.try_cast(f"struct<{', '.join(f'{name}: {spark_type(part)}' for name, part in zip(names, type_.parts, strict=True))}>")
    return [positioned.getField(name) for name in names]


def _tuple_of(raw: Column, cells: list[Cell]) -> tuple[Column, Column]:
    from functools import reduce

    from pyspark.sql import functions as F

    value = F.struct(*(cell.value.alias(f"_{number}") for number, cell in enumerate(cells, start=1)))
    return F.when(raw.isNotNull(), value), raw.isNotNull() & reduce(
        lambda a, b: a & b, (F.coalesce(cell.good, F.lit(False)) for cell in cells)
    )


def from_column(type_: Type, raw: Column) -> Cell:
    """A cell of a typed column that `fits`."""
    from pyspark.sql import functions as F

    if type_.parts:
        value, good = _nested(type_, raw)
        return Cell(value, good, raw.isNull(), F.coalesce(raw.cast("string"), F.lit("null")))

    value = raw.try_cast(spark_type(type_))
    good = value.isNotNull()
    if type_.kind == "decimal":
        good = good & (value == raw)
    if type_.kind == "symbol":
        good = good & F.is_valid_utf8(value)
    shown = F.make_valid_utf8(F.coalesce(raw.cast("string"), F.lit("null")))
    return Cell(_canonical(type_, value), good & _in_range(type_, value), raw.isNull(), shown)


def from_text(type_: Type, raw: Column) -> Cell:
    """A cell of a text file."""
    from pyspark.sql import functions as F

    if type_.kind == "symbol":
        return Cell(raw, ~F.contains(raw, F.lit("\x00")), raw.isNull(), raw)
    if type_.parts:
        value = F.udf(_reading(type_), spark_type(type_), useArrow=True)(raw)
        return Cell(value, value.isNotNull(), raw.isNull(), raw)
    match type_.kind:
        case "boolean":
            value = raw == "true"
        case "number" | "unsigned":
            value = F.when(raw.rlike("[xXbB]"), _spelled(raw).try_cast(spark_type(type_))).otherwise(raw.try_cast(spark_type(type_)))
        case _:
            value = raw.try_cast(spark_type(type_))
    good = raw.rlike(f"\\A(?:{type_.pattern})\\z") & value.isNotNull() & _in_range(type_, value)
    return Cell(_canonical(type_, value), good, raw.isNull(), raw)


def _reading(type_: Type) -> Callable[[str | None], Any]:
    """From the JSON text of a set or tuple to what Spark makes a cell of; None if it is none."""

    def read(text: str | None) -> Any:
        from vigilog.core.arrow import cell_of

        try:
            write = cell_of(type_)
            return None if text is None or write is None else write(type_.parse(text))
        except ValueError:
            return None

    return read


def _spelled(raw: Column) -> Column:
    """The integer that hexadecimal digits spell after 0x, or binary ones after 0b; null if it has more than 64 bits."""
    from pyspark.sql import functions as F

    digits = F.regexp_replace(raw, "\\A-?0[xXbB]0*(?=.)", "")
    hexadecimal, binary = (
        F.when(F.length(digits) <= most, F.conv(digits, base, 10)).cast("decimal(20,0)") for base, most in ((16, 16), (2, 64))
    )
    value = F.when(raw.rlike("[xX]"), hexadecimal).otherwise(binary)
    return F.when(F.startswith(raw, F.lit("-")), -value).otherwise(value)


def from_variant(type_: Type, raw: Column) -> Cell:
    """A cell of a JSON object: a JSON scalar of the right kind, or, for dates, timestamps and decimals, its text."""
    from pyspark.sql import functions as F

    kind = F.schema_of_variant(raw)
    null = raw.isNull() | (kind == "VOID")
    shown = F.try_variant_get(raw, "$", "string")
    if type_.parts:
        cell = from_text(type_, F.to_json(raw))
        return Cell(cell.value, cell.good, null, F.to_json(raw))
    if type_.kind in ("symbol", "date", "timestamp"):
        cell = from_text(type_, shown)
        return Cell(cell.value, (kind == "STRING") & cell.good, null, shown)
    if type_.kind == "boolean":
        return Cell(F.try_variant_get(raw, "$", "boolean"), kind == "BOOLEAN", null, shown)
    value = F.try_variant_get(raw, "$", spark_type(type_))
    if type_.kind in ("number", "unsigned"):
        whole = kind.rlike(r"\A(BIGINT|DECIMAL\((19|20),0\))\z")  # a DECIMAL(1,0) was written 1.0
        return Cell(value, whole & value.isNotNull() & _in_range(type_, value), null, shown)
    numeric = kind.rlike(r"\A(BIGINT|DECIMAL.*|DOUBLE)\z")
    if type_.kind == "float":
        return Cell(_canonical(type_, value), numeric & value.isNotNull() & _in_range(type_, value), null, shown)
    text = from_text(type_, shown)
    exact = F.when(kind == "DOUBLE", F.try_variant_get(raw, "$", "double") == value.cast("double"))
    exact = exact.otherwise(F.try_variant_get(raw, "$", "decimal(38,18)") == value)
    good = F.when(kind == "STRING", text.good).otherwise(numeric & value.isNotNull() & exact)
    return Cell(F.when(kind == "STRING", text.value).otherwise(value), good, null, shown)


def filled(cell: Cell, type_: Type, value: Value) -> Cell:
    """A cell with a value for null."""
    from pyspark.sql import functions as F

    blank = F.lit(type_.text(value)).cast(spark_type(type_))
    return Cell(F.when(cell.null, blank).otherwise(cell.value), F.coalesce(cell.null, F.lit(False)) | cell.good, F.lit(False), cell.text)


def _canonical(type_: Type, value: Column) -> Column:
    return value + 0.0 if type_.kind == "float" else value


def _in_range(type_: Type, value: Column) -> Column:
    from pyspark.sql import functions as F

    match type_.kind:
        case "unsigned":
            return (value >= 0) & (value <= F.lit("18446744073709551615").cast("decimal(20,0)"))
        case "float":
            return F.abs(value) <= F.lit(1.7976931348623157e308)
        case "date" | "timestamp":
            return F.year(value).between(1, 9999)
        case "symbol":
            return ~F.contains(value, F.lit("\x00"))
        case "number" | "boolean" | "decimal" | "set" | "tuple":
            return F.lit(True)
        case _:
            assert_never(type_.kind)
