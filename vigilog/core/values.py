"""The types of the language and their values: one definition for the reference, both executors and all files.

A value is an ordinary Python object: `str`, `int`, `float`, `bool`, `datetime.date`, `datetime.datetime` (UTC) or
`decimal.Decimal`. A type knows its canonical text, the texts it accepts, and which objects belong to it.

>>> FLOAT.text(0.1), decimal_type(6, 2).text(Decimal("1.5"))
('0.1', '1.50')
>>> NUMBER.parse("-7"), UNSIGNED.parse("0xff"), BOOLEAN.parse("true")
(-7, 255, True)
>>> NUMBER.parse("9223372036854775808")
Traceback (most recent call last):
...
ValueError: 9223372036854775808 is not a number: it must be an integer from -2^63 to 2^63-1
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal, assert_never

Kind = Literal["symbol", "number", "unsigned", "float", "boolean", "date", "timestamp", "decimal"]
Value = str | int | float | bool | datetime.date | datetime.datetime | Decimal
Row = tuple[Value, ...]

MIN_NUMBER, MAX_NUMBER = -(2**63), 2**63 - 1
MAX_UNSIGNED = 2**64 - 1
MAX_DECIMAL_DIGITS = 18

_DIGITS = r"[0-9]+|0[xX][0-9a-fA-F]+|0[bB][01]+"
_ZONE = r"Z|[+-]((0\d|1[0-7]):[0-5]\d|18:00)"  # 18 hours are as far as Java's zones go
_TIMESTAMP = rf"\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{{1,6}})?({_ZONE})?"


@dataclass(frozen=True)
class Type:
    """A built-in type. `kind` is its name; `precision` and `scale` are those of a decimal.

    Two types are the same if they print the same; named types of a program (`.type`) are not `Type`s but lead to one.
    """

    kind: Kind
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.kind == "decimal" else self.kind

    @property
    def numeric(self) -> bool:
        return self.kind in ("number", "unsigned", "float", "decimal")

    @cached_property
    def pattern(self) -> str:
        """A regular expression (of Python and of Java alike) for the texts `parse` accepts, ranges aside."""
        match self.kind:
            case "number":
                return f"-?({_DIGITS})"
            case "unsigned":
                return _DIGITS
            case "float":
                return r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
            case "boolean":
                return r"true|false"
            case "date":
                return r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
            case "timestamp":
                return _TIMESTAMP.replace(r"\d", "[0-9]")
            case "decimal":
                fraction = rf"(\.[0-9]{{1,{self.scale}}})?" if self.scale else ""
                return rf"-?0*[0-9]{{1,{max(self.precision - self.scale, 1)}}}{fraction}"
            case "symbol":
                return r"[^\x00]*"
            case _:
                assert_never(self.kind)

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        return re.compile(self.pattern, re.DOTALL)

    def parse(self, text: str) -> Value:
        """The value of a text in a file. Raises ValueError, saying why the text is none."""
        if self.kind == "symbol":
            return self.check(text)
        if not self._regex.fullmatch(text):
            raise ValueError(f"{_quoted(text)} is not a {self}: {self.form}")
        try:
            match self.kind:
                case "number" | "unsigned":
                    return self.check(whole(text))
                case "float":
                    return self.check(float(text))
                case "boolean":
                    return text == "true"
                case "date":
                    return datetime.date.fromisoformat(text)
                case "timestamp":
                    return utc(datetime.datetime.fromisoformat(_full_fraction(text)))
                case "decimal":
                    return self.check(Decimal(text))
                case _:
                    assert_never(self.kind)
        except (ValueError, OverflowError):
            raise ValueError(f"{_quoted(text)} is not a {self}: {self.form}") from None

    def text(self, value: Value) -> str:
        """The one text of a value, as files and `to_string` show it; `parse` gives the value back."""
        match self.kind:
            case "boolean":
                return "true" if value else "false"
            case "float":
                return repr(value)
            case "timestamp":
                assert isinstance(value, datetime.datetime)
                return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")
            case "decimal":
                assert isinstance(value, Decimal)
                return f"{value:.{self.scale}f}"
            case "symbol" | "number" | "unsigned" | "date":
                return str(value)
            case _:
                assert_never(self.kind)

    def check(self, value: object) -> Value:
        """The value in its canonical form, if it belongs to this type; raises ValueError if it does not."""
        match self.kind, value:
            case "number" | "unsigned", bool():
                pass
            case "number", int() if MIN_NUMBER <= value <= MAX_NUMBER:
                return value
            case "unsigned", int() if 0 <= value <= MAX_UNSIGNED:
                return value
            case "float", (float() | int() | Decimal()) if not isinstance(value, bool) and _finite(value):
                return float(value) + 0.0
            case "boolean", bool():
                return value
            case "symbol", str() if "\x00" not in value and not _has_surrogate(value):
                return value
            case "timestamp", datetime.datetime():
                return utc(value)
            case "date", datetime.date() if not isinstance(value, datetime.datetime):
                return value
            case "decimal", (Decimal() | int()) if not isinstance(value, bool):
                return self._decimal(Decimal(value))
        raise ValueError(f"{_quoted(value)} is not a {self}: {self.form}")

    def from_json(self, value: object) -> Value:
        """The value of a JSON scalar: text for dates, timestamps and decimals, the plain scalar for all else."""
        if isinstance(value, str) and self.kind in ("date", "timestamp", "decimal"):
            return self.parse(value)
        return self.check(value)

    @cached_property
    def quick(self) -> Callable[[object], Value]:
        """What `from_json` does, fast for the values that are most frequent."""
        slow = self.from_json
        match self.kind:
            case "number":
                return lambda value: value if type(value) is int and MIN_NUMBER <= value <= MAX_NUMBER else slow(value)
            case "symbol":
                return lambda value: value if type(value) is str and value.isascii() and "\x00" not in value else slow(value)
            case _:
                return slow

    def column_from_json(self, values: Sequence[object]) -> Sequence[Value]:
        """The values of many JSON scalars; integers, of which there are most, are looked at all together."""
        bounds = {"number": (MIN_NUMBER, MAX_NUMBER), "unsigned": (0, MAX_UNSIGNED)}.get(self.kind)
        if bounds and set(map(type, values)) == {int} and bounds[0] <= min(values) and max(values) <= bounds[1]:  # type: ignore[type-var, operator]  # they are int
            return values  # type: ignore[return-value]  # likewise
        return [self.from_json(value) for value in values]

    def to_json(self, value: Value) -> str | int | float | bool:
        if self.kind in ("date", "timestamp", "decimal"):
            return self.text(value)
        assert isinstance(value, str | int | float)
        return value

    def _decimal(self, value: Decimal) -> Decimal:
        if value.is_finite() and abs(value.adjusted()) < 40 and value == round(value, self.scale):
            scaled = int(value.scaleb(self.scale))
            if abs(scaled) < 10**self.precision:
                return Decimal(scaled).scaleb(-self.scale)
        raise ValueError(f"{value} is not a {self}: {self.form}")

    @property
    def form(self) -> str:
        """What a value of this type looks like, as the end of a sentence."""
        match self.kind:
            case "number":
                return "it must be an integer from -2^63 to 2^63-1"
            case "unsigned":
                return "it must be an integer from 0 to 2^64-1"
            case "float":
                return "it must be a finite decimal number like 1.5 or 2e-3"
            case "boolean":
                return "it must be true or false"
            case "date":
                return "it must be a day like 2026-11-16"
            case "timestamp":
                return "it must be a moment like 2026-11-16T08:30:00Z"
            case "decimal":
                whole, fraction = self.precision - self.scale, self.scale
                return f"it has at most {whole} digits before the point and {fraction} after it"
            case "symbol":
                return "it must be text without the character U+0000"
            case _:
                assert_never(self.kind)


SYMBOL, NUMBER, UNSIGNED, FLOAT = Type("symbol"), Type("number"), Type("unsigned"), Type("float")
BOOLEAN, DATE, TIMESTAMP = Type("boolean"), Type("date"), Type("timestamp")
BUILTIN: dict[str, Type] = {t.kind: t for t in (SYMBOL, NUMBER, UNSIGNED, FLOAT, BOOLEAN, DATE, TIMESTAMP)}


def decimal_type(precision: int, scale: int) -> Type:
    if not (1 <= precision <= MAX_DECIMAL_DIGITS and 0 <= scale <= precision):
        raise ValueError(f"a decimal has 1 to {MAX_DECIMAL_DIGITS} digits, and no more of them after the point than in all")
    return Type("decimal", precision, scale)


def type_named(name: str) -> Type:
    """The type that prints like this.

    >>> type_named("decimal(6,2)") == decimal_type(6, 2), type_named("symbol") is SYMBOL
    (True, True)
    """
    if found := re.fullmatch(r"decimal\((\d+),(\d+)\)", name):
        return decimal_type(int(found[1]), int(found[2]))
    if name not in BUILTIN:
        raise ValueError(f"there is no type {name}")
    return BUILTIN[name]


def whole(text: str) -> int:
    """The integer that a text spells: in decimal digits, or in hexadecimal ones after 0x, or in binary ones after 0b.

    >>> whole("-0xcafe"), whole("0b100"), whole("007")
    (-51966, 4, 7)
    """
    return int(text, {"0x": 16, "0b": 2}.get(text.lstrip("-")[:2].lower(), 10))


def utc(moment: datetime.datetime) -> datetime.datetime:
    """The moment in UTC; one without a zone is taken to be UTC already."""
    if moment.tzinfo is None:
        return moment.replace(tzinfo=datetime.UTC)
    return moment.astimezone(datetime.UTC)


def sorted_rows(rows: Iterable[Row]) -> list[Row]:
    """Rows in the order in which results are written: by their columns, from the left."""
    return sorted(rows)


def row_text(types: Sequence[Type], row: Row) -> tuple[str, ...]:
    return tuple(type_.text(value) for type_, value in zip(types, row, strict=True))


def _finite(value: float | Decimal) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _has_surrogate(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def _full_fraction(text: str) -> str:
    """Pads the fraction of a second to six digits, which every Python version reads."""
    return re.sub(r"\.(\d{1,6})", lambda found: "." + found[1].ljust(6, "0"), text)


def _quoted(value: object) -> str:
    """A value as a sentence shows it; what JSON writes in its own way (null, true, lists) as JSON does."""
    text = repr(value) if not isinstance(value, int | float | Decimal) else str(value).lower()
    if isinstance(value, str) and re.fullmatch(r"[-+.\w]{1,40}", value):
        text = value
    if value is None or isinstance(value, bool | list | dict):
        text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 60 else text[:57] + "…"


def json_rows(types: tuple[Type, ...], rows: list[Row]) -> list[Any]:
    """Rows as JSON has them."""
    if all(type_.kind not in ("date", "timestamp", "decimal") for type_ in types):
        return rows  # a tuple is written like a list
    return [[type_.to_json(cell) for type_, cell in zip(types, row, strict=True)] for row in rows]
