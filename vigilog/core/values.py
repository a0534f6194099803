"""The types of the language and their values: one definition for the reference, both executors and all files.

A value is an ordinary Python object: `str`, `int`, `float`, `bool`, `datetime.date`, `datetime.datetime` (UTC),
`decimal.Decimal`, a `Set` (which is a frozenset) or a tuple. A type knows its canonical text, the texts it accepts, and
which objects belong to it.

>>> FLOAT.text(0.1), decimal_type(6, 2).text(Decimal("1.5"))
('0.1', '1.50')
>>> NUMBER.parse("-7"), UNSIGNED.parse("0xff"), BOOLEAN.parse("true")
(-7, 255, True)
>>> NUMBER.parse("9223372036854775808")
Traceback (most recent call last):
...
ValueError: 9223372036854775808 is not a number: it must be an integer from -2^63 to 2^63-1
>>> pairs = set_type(tuple_type(SYMBOL, NUMBER))
>>> str(pairs), pairs.parse('[["b",1],["a",2],["b",1]]'), pairs.text(pairs.check({("b", 1), ("a", 2)}))
('set<(symbol, number)>', Set([('a', 2), ('b', 1)]), '[["a",2],["b",1]]')
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal, assert_never

from vigilog.core.sets import Set

Kind = Literal["symbol", "number", "unsigned", "float", "boolean", "date", "timestamp", "decimal", "set", "tuple"]
Value = str | int | float | bool | datetime.date | datetime.datetime | Decimal | Set | tuple[Any, ...]
Row = tuple[Value, ...]

MIN_NUMBER, MAX_NUMBER = -(2**63), 2**63 - 1
MAX_UNSIGNED = 2**64 - 1
MAX_DECIMAL_DIGITS = 18
MOST_NESTED = 100  # types in each other
FLOAT_DIGITS = 15  # of a decimal number that a float keeps, whichever it is

_DIGITS = r"[0-9]+|0[xX][0-9a-fA-F]+|0[bB][01]+"
_ZONE = r"Z|[+-]((0\d|1[0-7]):[0-5]\d|18:00)"  # 18 hours are as far as Java's zones go
_CANONICAL = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z")  # a timestamp, as it is told
_TIMESTAMP = rf"\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{{1,6}})?({_ZONE})?"


@dataclass(frozen=True)
class Type:
    """A built-in type. `kind` is its name; `precision` and `scale` are those of a decimal, `parts` the types of a set's elements or of a tuple's components.

    Two types are the same if they print the same; named types of a program (`.type`) are not `Type`s but lead to one.
    """

    kind: Kind
    precision: int = 0
    scale: int = 0
    parts: tuple[Type, ...] = ()

    def __str__(self) -> str:
        match self.kind:
            case "decimal":
                return f"decimal({self.precision},{self.scale})"
            case "set":
                return f"set<{self.parts[0]}>"
            case "tuple":
                return f"({', '.join(map(str, self.parts))})"
            case _:
                return self.kind

    @cached_property
    def depth(self) -> int:
        """How many types nest in each other."""
        return 1 + max((part.depth for part in self.parts), default=0)

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
            case "set" | "tuple":
                return r"[ \t]*\[[^\x00]*\][ \t]*"
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
            raise ValueError(f"{_bare(text)} is not a {self}: {self.form}")
        if self.parts:
            try:
                decoded = json.loads(text)
            except (ValueError, RecursionError):
                raise ValueError(f"{_bare(text)} is not a {self}: {self.form}") from None
            return self.from_json(decoded)
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
                case "set" | "tuple":
                    raise AssertionError("these are told as JSON")
                case _:
                    assert_never(self.kind)
        except (ValueError, OverflowError):
            raise ValueError(f"{_bare(text)} is not a {self}: {self.form}") from None

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
            case "set" | "tuple":
                return json.dumps(self.to_json(value), ensure_ascii=False, separators=(",", ":"))
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
            case "set", frozenset() | set() | list() | tuple():
                return Set(map(self.parts[0].check, value))
            case "tuple", tuple() | list() if len(value) == len(self.parts):
                return tuple(part.check(each) for part, each in zip(self.parts, value, strict=True))
        raise ValueError(f"{_quoted(value)} is not a {self}: {self.form}")

    def from_json(self, value: object) -> Value:
        """The value of a JSON scalar: text for dates, timestamps and decimals, the plain scalar for all else.

        A number is a decimal, too, if nothing of it can have been lost: its shortest text has no more digits than a float keeps, and no more after the point than the type.

        >>> decimal_type(6, 2).from_json(1.25), decimal_type(6, 2).from_json("1.25"), decimal_type(6, 2).from_json(7)
        (Decimal('1.25'), Decimal('1.25'), Decimal('7.00'))
        >>> decimal_type(6, 2).from_json(1.255)
        Traceback (most recent call last):
        ...
        ValueError: 1.255 is not a decimal(6,2): it must be text like "1.25", or a number of at most 15 digits; it has at most 4 digits before the point and 2 after it
        >>> NUMBER.from_json("5")
        Traceback (most recent call last):
        ...
        ValueError: "5" is not a number: it must be an integer from -2^63 to 2^63-1
        """
        if isinstance(value, str) and self.kind in ("date", "timestamp", "decimal"):
            try:
                return self.parse(value)
            except ValueError:
                raise ValueError(f"{_quoted(value)} is not a {self}: {self.form}") from None
        if isinstance(value, list | tuple) and self.kind == "set":
            return Set(map(self.parts[0].from_json, value))
        if isinstance(value, list | tuple) and self.kind == "tuple" and len(value) == len(self.parts):
            return tuple(part.from_json(each) for part, each in zip(self.parts, value, strict=True))
        return self._decimal_of(value) if isinstance(value, float) and self.kind == "decimal" else self.check(value)

    def from_spelled(self, value: object) -> object:
        """A JSON scalar where integers are told as text: such a text, in decimal, as the integer that it is; all else, whatever it is, is left.

        >>> NUMBER.from_spelled("-9007199254740993"), NUMBER.from_spelled("5x"), SYMBOL.from_spelled("5")
        (-9007199254740993, '5x', '5')
        """
        if isinstance(value, str) and self.kind in ("number", "unsigned") and re.fullmatch("-?[0-9]+", value):
            with suppress(ValueError):
                return self.parse(value)
        if isinstance(value, list) and self.kind == "set":
            return list(map(self.parts[0].from_spelled, value))
        if isinstance(value, list) and self.kind == "tuple" and len(value) == len(self.parts):
            return [part.from_spelled(each) for part, each in zip(self.parts, value, strict=True)]
        return value

    @cached_property
    def spelled(self) -> Callable[[Any], Any] | None:
        """From a value as JSON has it to the same with integers as text; None if it has none.

        >>> set_type(tuple_type(SYMBOL, NUMBER)).spelled([("a", 1)])
        (('a', '1'),)
        """
        match self.kind:
            case "number" | "unsigned":
                return str
            case "set":
                each = self.parts[0].spelled
                return None if each is None else lambda cell: tuple(map(each, cell))
            case "tuple":
                parts = [part.spelled for part in self.parts]
                spell = lambda cell: tuple(c if p is None else p(c) for p, c in zip(parts, cell, strict=True))  # noqa: E731
                return spell if any(parts) else None
            case _:
                return None

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
        """The values of many JSON scalars, looked at all together; most are values as they came. Raises ValueError for one that is none."""
        kinds = set(map(type, values))
        with suppress(ValueError):  # then one is none: which, is found out one by one
            if kinds == {int} and self.kind in ("number", "unsigned"):
                least, most = (MIN_NUMBER, MAX_NUMBER) if self.kind == "number" else (0, MAX_UNSIGNED)
                if least <= min(values) and max(values) <= most:  # type: ignore[type-var, operator]  # they are int
                    return values  # type: ignore[return-value]  # likewise
            elif kinds == {str}:
                return self._column_from_text(values)  # type: ignore[arg-type]  # they are str
            elif kinds == {float} and self.kind == "float" and all(map(math.isfinite, values)):  # type: ignore[arg-type]  # they are float
                return [value + 0.0 for value in values]  # type: ignore[operator]  # likewise
        return [self.from_json(value) for value in values]

    def _column_from_text(self, values: Sequence[str]) -> Sequence[Value]:
        """Likewise, of texts."""
        match self.kind:
            case "symbol":
                if b"\x00" not in "".join(values).encode():  # which has no surrogates, either
                    return values
            case "date" if all(map(self._regex.fullmatch, values)):
                return list(map(datetime.date.fromisoformat, values))
            case "timestamp" if all(map(_CANONICAL.fullmatch, values)):
                return list(map(datetime.datetime.fromisoformat, values))
            case "decimal" if all(map(self._regex.fullmatch, values)):
                zero = Decimal(0).scaleb(-self.scale)
                decimals = [zero + Decimal(value) for value in values]
                if max(map(abs, decimals)) < 10 ** (self.precision - self.scale):
                    return decimals
        return [self.from_json(value) for value in values]

    @cached_property
    def jsoned(self) -> Callable[[Value], Any] | None:
        """From a value to what JSON has; None if that is the same."""
        match self.kind:
            case "date":
                return datetime.date.isoformat  # type: ignore[return-value]  # the value is a date
            case "timestamp" | "decimal":
                return self.text
            case "symbol" | "number" | "unsigned" | "float" | "boolean":
                return None
            case "set":  # as tuples, which JSON writes as arrays, and which can be looked up
                each = self.parts[0].jsoned
                return tuple if each is None else lambda value: tuple(map(each, value))  # type: ignore[arg-type, return-value]  # a set
            case "tuple":
                converters = [part.jsoned for part in self.parts]
                return lambda value: tuple(each if c is None else c(each) for c, each in zip(converters, value, strict=True))  # type: ignore[arg-type]
            case _:
                assert_never(self.kind)

    def to_json(self, value: Value) -> Any:
        return value if self.jsoned is None else self.jsoned(value)

    def _decimal_of(self, value: float) -> Decimal:
        shortest = Decimal(repr(value))
        if shortest.is_finite() and len(shortest.as_tuple().digits) <= FLOAT_DIGITS:
            with suppress(ValueError):
                return self._decimal(shortest)
        wanted = f'it must be text like "{Decimal("1.25"):.{self.scale}f}", or a number of at most {FLOAT_DIGITS} digits'
        raise ValueError(f"{value} is not a {self}: {wanted}; {self.form}")

    def _decimal(self, value: Decimal) -> Decimal:
        # Digits are counted first: round raises for a value of so many that a context of decimals has no room for them.
        small = value.is_finite() and (not value or -40 < value.adjusted() < max(self.precision - self.scale, 1))
        if small and value == round(value, self.scale):
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
            case "set":
                return f"it must be a JSON array of {self.parts[0]}s"
            case "tuple":
                return f"it must be a JSON array of {len(self.parts)} values"
            case _:
                assert_never(self.kind)


SYMBOL, NUMBER, UNSIGNED, FLOAT = Type("symbol"), Type("number"), Type("unsigned"), Type("float")
BOOLEAN, DATE, TIMESTAMP = Type("boolean"), Type("date"), Type("timestamp")
PYTHON: dict[str, type] = {  # of the values of each kind
    "symbol": str,
    "number": int,
    "unsigned": int,
    "float": float,
    "boolean": bool,
    "date": datetime.date,
    "timestamp": datetime.datetime,
    "decimal": Decimal,
    "set": Set,
    "tuple": tuple,
}
BUILTIN: dict[str, Type] = {t.kind: t for t in (SYMBOL, NUMBER, UNSIGNED, FLOAT, BOOLEAN, DATE, TIMESTAMP)}


def decimal_type(precision: int, scale: int) -> Type:
    if not (1 <= precision <= MAX_DECIMAL_DIGITS and 0 <= scale <= precision):
        raise ValueError(f"a decimal has 1 to {MAX_DECIMAL_DIGITS} digits, and no more of them after the point than in all")
    return Type("decimal", precision, scale)


def set_type(element: Type) -> Type:
    return _bounded(Type("set", parts=(element,)))


def tuple_type(*components: Type) -> Type:
    return _bounded(Type("tuple", parts=components))


def _bounded(type_: Type) -> Type:
    if type_.depth > MOST_NESTED:
        raise ValueError(f"types nest at most {MOST_NESTED} deep")
    return type_


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
    return re.sub(r"\.(\d{1,6})", lambda fraction: "." + fraction[1].ljust(6, "0"), text)


def _bare(text: str) -> str:
    """A text of a file, or of a program, as a sentence shows it: without quotes, where it is clear what belongs to it."""
    return text if re.fullmatch(r"[-+.\w]{1,40}", text) else _short(repr(text))


def _quoted(value: object) -> str:
    """A value as a sentence shows it: what JSON has as JSON writes it, so that "5" is seen to be no number."""
    if isinstance(value, str):
        return _short(json.dumps(value, ensure_ascii=False) if not _has_surrogate(value) else repr(value))
    if value is None or isinstance(value, bool | list | dict):
        return _short(json.dumps(value, ensure_ascii=False, default=repr))
    return _short(str(value).lower() if isinstance(value, int | float | Decimal) else repr(value))


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "…"
