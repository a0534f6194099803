"""How the language's values and functors are written for SQLite.

| type | stored as |
|---|---|
| symbol, number, float | TEXT, INTEGER, REAL |
| unsigned | INTEGER, less 2^63, so that order is kept |
| boolean | INTEGER 0 or 1 |
| date, timestamp | TEXT in the canonical form, which sorts by time |
| decimal(p,s) | INTEGER, times 10^s |
| set<T>, (T, U) | BLOB, which sorts as they do (`sortable.py`) |

Integer arithmetic that overflows becomes REAL in SQLite, which `typeof` shows. What SQL cannot say exactly calls a Python function; the
names of these begin with `v_`, a dialect knows those its statements use.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Collection, Sequence
from decimal import Decimal
from typing import Any, assert_never

from sqlglot import exp

from vigilog.core.sets import MOST_ELEMENTS, too_many
from vigilog.core.values import FLOAT, NUMBER, TIMESTAMP, UNSIGNED, Kind, Type, Value
from vigilog.language import accumulators
from vigilog.language.functors import apply, exact_sum
from vigilog.language.patterns import matches
from vigilog.planning.applied import Applied
from vigilog.planning.dialect import COMPARISONS, Sql, binary, call, case, integer
from vigilog.planning.sortable import from_bytes, to_bytes

OFFSET = 2**63
SHORT = 50  # characters that are looked for in a text by SQLite itself
AT_MOST = 10_000  # floats that are to be added are kept
AFFINITY: dict[Kind, str] = {
    "symbol": "TEXT",
    "number": "INTEGER",
    "unsigned": "INTEGER",
    "float": "REAL",
    "boolean": "INTEGER",
    "date": "TEXT",
    "timestamp": "TEXT",
    "decimal": "INTEGER",
    "set": "BLOB",
    "tuple": "BLOB",
}


def encoder(type_: Type) -> Callable[[Any], Any] | None:
    """From a value to what SQLite stores; None if that is the same."""
    match type_.kind:
        case "unsigned":
            return lambda value: value - OFFSET
        case "boolean":
            return int
        case "date":
            return datetime.date.isoformat
        case "timestamp":
            return TIMESTAMP.text
        case "decimal":
            return lambda value: int(value.scaleb(type_.scale))
        case "set" | "tuple":
            return to_bytes(type_)
        case "symbol" | "number" | "float":
            return None
        case _:
            assert_never(type_.kind)


def decoder(type_: Type) -> Callable[[Any], Any] | None:
    """From what SQLite stores to the value; None if that is the same."""
    match type_.kind:
        case "unsigned":
            return lambda stored: stored + OFFSET
        case "boolean":
            return bool
        case "date":
            return datetime.date.fromisoformat
        case "timestamp":
            return datetime.datetime.fromisoformat
        case "decimal":
            return lambda stored: Decimal(stored).scaleb(-type_.scale)
        case "set" | "tuple":
            return from_bytes(type_)
        case "symbol" | "number" | "float":
            return None
        case _:
            assert_never(type_.kind)


class SqliteDialect:
    """The embedded executor's SQL. `functions` are those its statements call, by name, with their number of arguments."""

    name = "sqlite"
    correlates = True
    counts_itself = True

    def __init__(self) -> None:
        self.aggregates: dict[str, type] = dict(AGGREGATE_CLASSES)
        self.functions: dict[str, tuple[int, Callable[..., Any]]] = {
            "v_match": (2, _match),
            "v_contains": (2, lambda part, text: None if part is None or text is None else part in text),
            "v_sum": (3, _sum),
            "v_mean": (4, _mean),
            "v_units": (2, lambda high, low: str(_total(high, low))),
            "v_whole": (1, lambda stored: stored if isinstance(stored, int) else None),
            "v_finite": (1, lambda stored: stored if stored is not None and math.isfinite(stored) else None),
        }

    def _function(self, name: str, type_: Type, arg_types: Sequence[Type]) -> str:
        """The name of the Python function for a functor over given types, made when first asked for."""
        key = "v_" + "_".join([SPELLED.get(name, name), *(spelled(t) for t in (*arg_types, type_))])
        if key not in self.functions:
            self.functions[key] = (len(arg_types), encoded(name, type_, tuple(arg_types)))
        return key

    def constant(self, value: Value, type_: Type) -> Sql:
        return _constant(value, type_)

    def functor(self, name: str, type_: Type, arg_types: Sequence[Type], args: Sequence[Sql]) -> Sql:
        if name in ("min", "max"):
            return folded(args, 100, lambda group: call(name, *group))
        if name == "cat":
            return folded(args, 2, lambda pair: binary(exp.DPipe, *pair))
        if name == "strlen":
            return call("length", *args)
        if name == "substr":
            text, index, length = args
            inside = exp.and_(
                binary(exp.GTE, index, integer(0)), binary(exp.LTE, index, call("length", text)), binary(exp.GTE, length, integer(0))
            )
            return case(inside, call("substr", text, binary(exp.Add, index, integer(1)), call("min", length, call("length", text))))
        if type_.kind == "number" and all(arg.kind == "number" for arg in arg_types):
            return self._integer(name, args)
        if type_.kind == "float" and all(arg.kind == "float" for arg in arg_types) and name in _FLOAT:
            return self._float(name, args)
        if type_.kind == "decimal" and name in ("+", "-", "neg"):
            result = exp.Neg(this=exp.Paren(this=args[0])) if name == "neg" else binary(_ARITHMETIC[name], *args)
            limit = 10**type_.precision - 1
            return case(exp.Between(this=exp.Paren(this=result), low=integer(-limit), high=integer(limit)), result.copy())
        if name == "to_string" and arg_types[0].kind in ("symbol", "date", "timestamp", "number"):
            return exp.Cast(this=args[0], to=exp.DataType.build("text"))
        return call(self._function(name, type_, arg_types), *args)

    def _integer(self, name: str, args: Sequence[Sql]) -> Sql:
        if name in _ARITHMETIC:
            return _whole(binary(_ARITHMETIC[name], *map(_unchecked, args)))
        if name == "/":
            left, right = map(_unchecked, args)
            return _whole(exp.Div(this=exp.Paren(this=left), expression=exp.Paren(this=right), typed=True))
        if name == "%":
            return exp.Mod(this=exp.Paren(this=args[0]), expression=exp.Paren(this=args[1]))
        if name == "neg":
            return _whole(exp.Neg(this=exp.Paren(this=_unchecked(args[0]))))
        if name in _BITWISE:
            return binary(_BITWISE[name], *args)
        if name == "bnot":
            return exp.BitwiseNot(this=exp.Paren(this=args[0]))
        if name in ("bshl", "bshr"):
            amount = binary(exp.BitwiseAnd, args[1], integer(63))
            return binary(exp.BitwiseLeftShift if name == "bshl" else exp.BitwiseRightShift, args[0], amount)
        return call(self._function(name, NUMBER, [NUMBER] * len(args)), *args)

    def _float(self, name: str, args: Sequence[Sql]) -> Sql:
        zero = exp.Literal.number("0.0")
        if name == "neg":
            return binary(exp.Sub, zero, args[0])
        kind = {**_ARITHMETIC, "/": exp.Div}[name]
        result = exp.Paren(this=binary(exp.Add, kind(this=exp.Paren(this=args[0]), expression=exp.Paren(this=args[1]), typed=True), zero))
        return _once(result, lambda part: binary(exp.LTE, call("abs", part), exp.Literal.number("1.7976931348623157e308")), "v_finite")

    def component(self, sql: Sql, type_: Type, place: int) -> Sql:
        key = f"v_component_{place}_{spelled(type_)}"
        take, encode = from_bytes(type_), encoder(type_.parts[place]) or _same
        self.functions.setdefault(key, (1, lambda stored: None if stored is None else encode(take(stored)[place])))
        return call(key, sql)

    def applied(self, applied: Applied, args: Sequence[Sql]) -> Sql:
        decoders, encode = [decoder(type_) or _same for type_ in applied.types], encoder(applied.type) or _same

        def function(*stored: Any) -> Any:
            if None in stored:
                return None
            result = applied.compute([decode(arg) for decode, arg in zip(decoders, stored, strict=True)])
            return None if result is None else encode(result)

        self.functions.setdefault(applied.name, (len(args), function))
        return call(applied.name, *args)

    def members(self, sql: Sql, element: Type) -> Sql:
        key = f"v_members_{spelled(element)}"
        self.functions.setdefault(key, (1, _members(element)))
        return call("json_each", call(key, sql))

    def member(self, sql: Sql, element: Type) -> Sql:
        if element.kind not in ("float", "set", "tuple"):
            return sql
        key = f"v_member_{spelled(element)}"
        take, encode = from_bytes(element), encoder(element) or _same
        self.functions.setdefault(key, (1, lambda stored: encode(take(bytes.fromhex(stored)))))
        return call(key, sql)

    def test(self, op: str, args: Sequence[Sql], types: Sequence[Type]) -> Sql:
        if op == "member":
            key, element, collected = f"v_is_member_{spelled(types[0])}", decoder(types[0]) or _same, from_bytes(types[1])
            self.functions.setdefault(key, (2, lambda x, s: None if x is None or s is None else element(x) in collected(s)))
            return call(key, *args)
        if op == "contains":
            part, text = args
            contained = binary(exp.GT, call("instr", text, part), integer(0))
            if isinstance(part, exp.Literal) and len(part.this) <= SHORT:
                return contained
            short = binary(exp.LTE, call("length", part.copy()), integer(SHORT))  # a long one takes instr the product of both lengths
            return case(short, contained, call("v_contains", part.copy(), text.copy()))
        if op == "match":
            return call("v_match", *args)
        return binary(COMPARISONS[op], *args)

    def aggregate(self, op: str, type_: Type, target_type: Type | None, target: Sql | None) -> Sql:
        if op == "setof":
            assert target_type is not None, "a set is collected of something"
            self.aggregates.setdefault(f"v_setof_{spelled(target_type)}", _collecting(target_type))
        return AGGREGATES[op](type_, target_type or NUMBER, exp.Star() if target is None else target)

    def finish(self, op: str, type_: Type, target_type: Type | None, result: Sql) -> Sql:
        return result

    def listed(self, op: str, target_type: Type | None) -> bool:
        return False

    def sought(self, pairs: Sequence[tuple[Sql, Sql, Type]]) -> list[Sql]:
        return [binary(exp.EQ, left, right) for left, right, _ in pairs]

    def staged(self, inner: exp.Select) -> exp.Select:
        return inner.limit(-1, copy=False)  # keeps SQLite from merging the two SELECTs and computing each aggregate several times

    def opaque(self, sql: Sql) -> bool:
        return False

    def counted(self, guard: Sql) -> Sql:
        return exp.Paren(this=exp.or_(guard, call("v_undefined")))


def _constant(value: Value, type_: Type) -> Sql:
    encode = encoder(type_)
    stored: Any = encode(value) if encode else value
    if isinstance(stored, str):
        return exp.Literal.string(stored)
    if isinstance(stored, bytes):
        return exp.HexString(this=stored.hex())
    if isinstance(stored, float):
        return exp.Literal.number(repr(stored)) if stored >= 0 else exp.Paren(this=exp.Neg(this=exp.Literal.number(repr(-stored))))
    if stored == -OFFSET:  # SQLite reads 9223372036854775808 as REAL before it sees the sign
        return exp.Paren(this=exp.Sub(this=integer(stored + 1), expression=integer(1)))
    return integer(int(stored))


def _sum_of(type_: Type, target_type: Type, target: Sql) -> Sql:
    if target_type.kind not in ("float", "unsigned"):
        return call("v_sum", *_halves(target), type_.precision)
    nothing = exp.EQ(this=exp.Count(this=exp.Star()), expression=integer(0))  # SQLite asks no aggregate about no rows
    zero = _constant(0.0 if target_type.kind == "float" else 0, target_type)
    return case(nothing, zero, call(f"v_sum_{target_type.kind}", target))


def _mean_of(_: Type, target_type: Type, target: Sql) -> Sql:
    if target_type.kind not in ("float", "unsigned"):
        return call("v_mean", *_halves(target), exp.Count(this=exp.Star()), target_type.scale)
    return call(f"v_mean_{target_type.kind}", target)


def _halves(target: Sql) -> tuple[Sql, Sql]:
    """The sums of two halves that cannot overflow, to be put together exactly: one Python call a group, not one a row."""
    high = call("sum", binary(exp.BitwiseRightShift, target, integer(31)))
    return high, call("sum", binary(exp.BitwiseAnd, target.copy(), integer(2**31 - 1)))


# For each aggregate of the language its SQL, from the type of the result, that of the target, and the target; `count` has `*`.
AGGREGATES: dict[str, Callable[[Type, Type, Sql], Sql]] = {
    "count": lambda _, __, target: exp.Count(this=target),
    "sum": _sum_of,
    "min": lambda _, __, target: call("min", target),
    "max": lambda _, __, target: call("max", target),
    "mean": _mean_of,
    "setof": lambda _, target_type, target: call(f"v_setof_{spelled(target_type)}", target),
}

_ARITHMETIC: dict[str, type[exp.Binary]] = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul}
_BITWISE: dict[str, type[exp.Binary]] = {"band": exp.BitwiseAnd, "bor": exp.BitwiseOr}
_FLOAT = ("+", "-", "*", "/", "neg")


def folded(args: Sequence[Sql], most: int, join: Callable[[Sequence[Sql]], Sql]) -> Sql:
    """Many arguments joined a few at a time, as a tree that is as flat as can be."""
    while len(args) > 1:
        groups = [args[start : start + most] for start in range(0, len(args), most)]
        args = [join(group) if len(group) > 1 else group[0] for group in groups]
    return args[0]


def _whole(sql: Sql) -> Sql:
    """The integer, or NULL if SQLite had to make a REAL of it. `_unchecked` takes the check off again."""
    inner = exp.Paren(this=sql)
    checked = _once(inner, lambda part: exp.EQ(this=call("typeof", part), expression=exp.Literal.string("integer")), "v_whole")
    checked.set("unchecked", inner)
    return checked


def _unchecked(sql: Sql) -> Sql:
    """An operand of integer arithmetic needs no check of its own: a REAL stays one up to the check at the root."""
    inner = sql.args.get("unchecked")
    return inner.copy() if isinstance(inner, exp.Expr) else sql


def _once(sql: Sql, condition: Callable[[Sql], Sql], function: str) -> Sql:
    """`sql` where the condition holds, else NULL; a function call instead of a CASE where writing `sql` twice would add up."""
    if sum(1 for _ in sql.walk()) > 60:
        return call(function, sql)
    return case(condition(sql), sql.copy())


# -- functions that SQLite calls back

SPELLED = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "/": "divide",
    "%": "modulo",
    "^": "power",
    "()": "tuple",
    "{}": "set",
    "{|}": "added",
}


def spelled(type_: Type) -> str:
    """A type as a part of a function's name.

    >>> spelled(Type("set", parts=(Type("decimal", 6, 2),)))
    'setLdecimalP6_2QG'
    """
    return str(type_).replace(" ", "").translate(str.maketrans("<>(),", "LGPQ_"))


def _members(element: Type) -> Callable[[bytes | None], str | None]:
    """From a stored set to a JSON array of its elements as they are stored; of those that JSON does not keep, their bytes."""
    collected, encode = from_bytes(Type("set", parts=(element,))), encoder(element) or _same
    if element.kind in ("float", "set", "tuple"):
        to = to_bytes(element)
        return lambda stored: None if stored is None else json.dumps([to(each).hex() for each in collected(stored)])
    return lambda stored: None if stored is None else json.dumps([encode(each) for each in collected(stored)])


def _collecting(element: Type) -> type:
    """An aggregate that collects a set of values of a type."""
    gather = gathered(element)

    class Collecting:
        weigh = staticmethod(_same)  # raises if the set takes too many bytes

        def __init__(self) -> None:
            self.elements: set[Any] = set()
            self.size = 0

        def step(self, value: Any) -> None:
            if value is None or value in self.elements:
                return
            self.elements.add(value)
            self.size += len(value) if isinstance(value, str | bytes) else 8
            if len(self.elements) > MOST_ELEMENTS:
                raise too_many(len(self.elements))
            self.weigh(self.size)

        def finalize(self) -> bytes | None:
            return gather(self.elements)

    return Collecting


def gathered(element: Type) -> Callable[[Collection[Any]], bytes | None]:
    """From different stored values of a type to their set as it is stored; NULL if there are none."""
    to, decode = to_bytes(element), decoder(element)

    def gather(elements: Collection[Any]) -> bytes | None:
        if len(elements) > MOST_ELEMENTS:
            raise too_many(len(elements))
        parts = map(to, elements if decode is None else map(decode, elements))
        return b"".join(b"\1" + part for part in sorted(parts)) + b"\0" if elements else None

    return gather


def encoded(name: str, type_: Type, arg_types: tuple[Type, ...]) -> Callable[..., Any]:
    """A functor over stored values; NULL where it is undefined, or an argument is NULL."""
    decoders = [decoder(arg) or _same for arg in arg_types]
    encode = encoder(type_) or _same

    def function(*stored: Any) -> Any:
        if None in stored:
            return None
        result = apply(name, type_, arg_types, [decode(arg) for decode, arg in zip(decoders, stored, strict=True)])
        return None if result is None else encode(result)

    return function


def _same(value: Any) -> Any:
    return value


def _match(pattern: str | None, text: str | None) -> bool | None:
    return None if pattern is None or text is None else matches(pattern, text)


def _total(high: int | None, low: int | None) -> int:
    return ((high or 0) << 31) + (low or 0)


def _sum(high: int | None, low: int | None, precision: int) -> int | None:
    total = _total(high, low)
    limit = 10**precision - 1 if precision else OFFSET - 1
    return total if -limit - (not precision) <= total <= limit else None


def _mean(high: int | None, low: int | None, count: int, scale: int) -> float | None:
    return mean(_total(high, low), count, scale)


def mean(total: int, count: int, scale: int) -> float | None:
    return float(Decimal(total).scaleb(-scale) if scale else total) / count if count else None


def float_sum(values: Sequence[float]) -> float | None:
    try:
        total = exact_sum(values)
    except OverflowError:
        return None
    return total if math.isfinite(total) else None


def float_mean(values: Sequence[float]) -> float | None:
    total = float_sum(values)
    return None if total is None or not values else total / len(values) + 0.0  # which is never -0


def put_together(values: list[float]) -> list[float]:
    """Few floats with the same exact sum: what it is rounded to, what that leaves, and so on.

    >>> put_together([1e16, 1.0, 1.0, 1.0])
    [1.0000000000000004e+16, -1.0]
    """
    parts: list[float] = []
    try:
        while rounded := math.fsum(values):
            parts.append(rounded)
            values = [*values, -rounded]
    except OverflowError:
        return values
    return parts


class _FloatSum:
    """A correctly rounded sum: many values are put together into few of the same exact sum, which is rounded once."""

    def __init__(self) -> None:
        self.values: list[float] = []
        self.number, self.most = 0, AT_MOST

    def step(self, value: float) -> None:
        if value is not None:
            self.values.append(value)
            self.number += 1
            if len(self.values) >= self.most:
                self.values = put_together(self.values)
                self.most = max(AT_MOST, 2 * len(self.values))

    def finalize(self) -> float | None:
        return float_sum(self.values)


class _FloatMean(_FloatSum):
    def finalize(self) -> float | None:
        total = float_sum(self.values)
        return None if total is None or not self.number else total / self.number + 0.0  # which is never -0


class _UnsignedSum:
    def __init__(self) -> None:
        self.total = 0
        self.count = 0

    def step(self, value: int | None) -> None:
        if value is not None:
            self.total += value + OFFSET
            self.count += 1

    def finalize(self) -> Any:
        return self.total - OFFSET if self.total < 2 * OFFSET else None


class _UnsignedMean(_UnsignedSum):
    def finalize(self) -> float | None:
        return float(self.total) / self.count if self.count else None


class _Units:
    """The exact sum of numbers of a type, as the state of a group has it."""

    type: Type

    def __init__(self) -> None:
        self.total = 0
        self.decode = decoder(self.type) or _same

    def step(self, value: Any) -> None:
        self.total += self.units(value)

    def units(self, value: Any) -> int:
        return accumulators.units(self.type, self.decode(value))

    def finalize(self) -> str:
        return accumulators.written(self.type, self.total)


class _FloatUnits(_Units):
    type = FLOAT


class _UnsignedUnits(_Units):
    type = UNSIGNED


class _Squares(_Units):
    """The exact sum of squares, in which numbers and decimals are whole numbers as they are stored."""

    type = NUMBER

    def units(self, value: Any) -> int:
        return super().units(value) ** 2


class _FloatSquares(_Squares):
    type = FLOAT


class _UnsignedSquares(_Squares):
    type = UNSIGNED


def kept_part(op: str, type_: Type, column: str) -> str:
    """The SQL for what the state of a group has of a column; see `rewriting/maintenance/group.py`."""
    if op == "squares":
        return f"v_squares_{type_.kind if type_.kind in ('float', 'unsigned') else 'number'}({column})"
    if op != "sum":
        return f"{op}({column})"
    if type_.kind in ("float", "unsigned"):
        return f"v_units_{type_.kind}({column})"
    return f"v_units(sum({column} >> 31), sum({column} & {2**31 - 1}))"


AGGREGATE_CLASSES: dict[str, type] = {
    "v_units_float": _FloatUnits,
    "v_units_unsigned": _UnsignedUnits,
    "v_squares_number": _Squares,
    "v_squares_float": _FloatSquares,
    "v_squares_unsigned": _UnsignedSquares,
    "v_sum_float": _FloatSum,
    "v_mean_float": _FloatMean,
    "v_sum_unsigned": _UnsignedSum,
    "v_mean_unsigned": _UnsignedMean,
}
