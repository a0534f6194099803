"""The functors of the language: which types each takes, and what each means.

The meaning is a Python function that gives `None` where a functor is undefined. The reference evaluates by it, and so do the
executors wherever SQL has no expression that means the same.

>>> apply("/", NUMBER, (NUMBER, NUMBER), (-7, 2)), apply("/", NUMBER, (NUMBER, NUMBER), (1, 0))
(-3, None)
>>> apply("to_number", NUMBER, (SYMBOL,), ("12x",)) is None
True
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import partial
from typing import Any

from vigilog.core.sets import Set
from vigilog.core.values import FLOAT, MAX_NUMBER, MIN_NUMBER, NUMBER, SYMBOL, UNSIGNED, Type, Value
from vigilog.language.patterns import matches

INTEGERS = frozenset({"number", "unsigned"})
NUMERIC = frozenset({"number", "unsigned", "float", "decimal"})
ANY = frozenset({"symbol", "number", "unsigned", "float", "boolean", "date", "timestamp", "decimal", "set", "tuple"})
SETS = frozenset({"set"})


@dataclass(frozen=True)
class Signature:
    """What a functor takes and gives.

    `args` has one entry for each argument: a type, or None for "the functor's own type", which is one of `kinds`.
    With `variadic` the last entry repeats. `result` is a type, or None for the functor's own type. An argument of
    any kind, unrelated to the others, is a set of kinds.
    """

    args: tuple[Type | frozenset[str] | None, ...]
    result: Type | None = None
    kinds: frozenset[str] = ANY
    variadic: bool = False

    def accepts(self, count: int) -> bool:
        return count >= len(self.args) if self.variadic else count == len(self.args)

    def argument(self, index: int) -> Type | frozenset[str] | None:
        return self.args[min(index, len(self.args) - 1)]


_SAME = (None, None)

FUNCTORS: dict[str, Signature] = {
    **{name: Signature(_SAME, kinds=NUMERIC) for name in ("+", "-", "*", "/")},
    "%": Signature(_SAME, kinds=INTEGERS),
    "^": Signature(_SAME, kinds=NUMERIC - {"decimal"}),
    "neg": Signature((None,), kinds=NUMERIC - {"unsigned"}),
    **{name: Signature(_SAME, kinds=INTEGERS) for name in ("band", "bor", "bxor", "bshl", "bshr", "bshru")},
    **{name: Signature(_SAME, kinds=INTEGERS) for name in ("land", "lor", "lxor")},
    **{name: Signature((None,), kinds=INTEGERS) for name in ("bnot", "lnot")},
    **{name: Signature(_SAME, variadic=True) for name in ("min", "max")},
    "cat": Signature((SYMBOL, SYMBOL), SYMBOL, variadic=True),
    "strlen": Signature((SYMBOL,), NUMBER),
    "substr": Signature((SYMBOL, NUMBER, NUMBER), SYMBOL),
    "to_number": Signature((NUMERIC | {"symbol"},), NUMBER),
    "to_unsigned": Signature((NUMERIC | {"symbol"},), UNSIGNED),
    "to_float": Signature((NUMERIC | {"symbol"},), FLOAT),
    "to_string": Signature((ANY,), SYMBOL),
    "()": Signature((ANY, ANY), variadic=True),  # what this and the next two are of, is found with their arguments (`types.py`)
    "{}": Signature((), variadic=True),
    "{|}": Signature((ANY, SETS)),
    **{name: Signature(_SAME, kinds=SETS) for name in ("union", "minus")},
    "size": Signature((SETS,), NUMBER),
}

# Functors that have a value for all arguments, so that nothing needs to guard them.
TOTAL = frozenset(
    ["band", "bor", "bxor", "bnot", "bshl", "bshr", "bshru", "land", "lor", "lxor", "lnot", "min", "max", "cat", "strlen", "to_string"]
) | {"()", "{}", "{|}", "union", "minus", "size"}


def apply(name: str, type_: Type, arg_types: Sequence[Type], args: Sequence[Any]) -> Value | None:
    """The value of a functor, or None where it is undefined. `type_` is that of the result."""
    try:
        if name in ("to_number", "to_unsigned", "to_float", "to_string"):
            return _convert(name, type_, arg_types[0], args[0])
        if name in _SETS:
            made: Value = _SETS[name](*args)
            return made
        if type_.kind == "decimal" and name in _DECIMAL:
            exact = _DECIMAL[name](*args)
            return type_.check(exact.quantize(Decimal(1).scaleb(-type_.scale), ROUND_HALF_UP, _WIDE))
        if type_.kind == "unsigned" and name in _UNSIGNED:
            return type_.check(_UNSIGNED[name](*args))
        return type_.check(_MEANING[name](*args))
    except (ValueError, OverflowError, ZeroDivisionError, ArithmeticError):
        return None


def aggregate(op: str, type_: Type, values: Sequence[Any]) -> Value | None:
    """The aggregate of all values, one for each binding; None where it is undefined or has no row."""
    aggregator = AGGREGATES[op]
    if op == "setof":
        return Set(values) if values else None
    if not values and not aggregator.nothing:
        return None
    try:
        return type_.check(aggregator.meaning(type_, values))
    except (ValueError, OverflowError):
        return None


def test(op: str, args: Sequence[Any]) -> bool | None:
    """Whether a comparison or test holds; None where it is undefined."""
    if op == "match":
        return matches(args[0], args[1])
    if op in ("contains", "member"):
        return args[0] in args[1]
    return bool(_COMPARE[op](*args))


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_WIDE = Context(prec=60)


def exact_sum(values: Sequence[float]) -> float:
    """The sum of floats, rounded once, whatever their order. Raises OverflowError if it is too large for a float."""
    try:
        return math.fsum(values)
    except OverflowError:  # perhaps only on the way
        return float(sum(map(Fraction, values), start=Fraction(0)))


def _sum(type_: Type, values: Sequence[Any]) -> Any:
    return exact_sum(values) if type_.kind == "float" else _whole_sum(values)


def _mean(_: Type, values: Sequence[Any]) -> float:
    total = exact_sum(values) if isinstance(values[0], float) else float(_whole_sum(values))
    return total / len(values)


def _whole_sum(values: Sequence[Any]) -> Any:
    if not values or isinstance(values[0], int):
        return sum(values)
    total = Decimal(0)
    for value in values:
        total = _WIDE.add(total, value)
    return total


@dataclass(frozen=True)
class Aggregator:
    """What an aggregate takes and gives, and its value over the values of all bindings. Some have one over `nothing`; `total` are those that are defined everywhere."""

    signature: Signature
    meaning: Callable[[Type, Sequence[Any]], Any]
    nothing: bool = False
    total: bool = False


AGGREGATES: dict[str, Aggregator] = {
    "count": Aggregator(Signature((), NUMBER), lambda _, values: len(values), nothing=True, total=True),
    "sum": Aggregator(Signature((None,), kinds=NUMERIC), _sum, nothing=True),
    "min": Aggregator(Signature((None,)), lambda _, values: min(values)),
    "max": Aggregator(Signature((None,)), lambda _, values: max(values)),
    "mean": Aggregator(Signature((NUMERIC,), FLOAT), _mean),
    "setof": Aggregator(Signature((None,)), lambda _, values: Set(values), total=True),
}


def _divide(left: Any, right: Any) -> Any:
    if isinstance(left, float):
        return left / right
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _modulo(left: int, right: int) -> int:
    return left - right * int(_divide(left, right))


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int):
        if exponent < 0:
            raise ValueError("a negative exponent of an integer")
        if abs(base) > 1 and exponent > 64:
            raise OverflowError
        return pow(base, exponent if abs(base) > 1 else min(exponent, 2 + exponent % 2))
    if base == 0 and exponent < 0:
        raise ZeroDivisionError
    return math.pow(base, exponent)


def _signed(bits: int) -> int:
    bits &= 2**64 - 1
    return bits - 2**64 if bits > MAX_NUMBER else bits


def _substr(text: str, index: int, length: int) -> str:
    if not (0 <= index <= len(text) and length >= 0):
        raise ValueError("out of the text")
    return text[index : index + length]


_MEANING: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "%": _modulo,
    "^": _power,
    "neg": operator.neg,
    "band": operator.and_,
    "bor": operator.or_,
    "bxor": operator.xor,
    "bnot": operator.invert,
    "bshl": lambda x, n: _signed(x << (n & 63)),
    "bshr": lambda x, n: x >> (n & 63),
    "bshru": lambda x, n: _signed((x & 2**64 - 1) >> (n & 63)),
    "land": lambda x, y: int(x != 0 and y != 0),
    "lor": lambda x, y: int(x != 0 or y != 0),
    "lxor": lambda x, y: int((x != 0) != (y != 0)),
    "lnot": lambda x: int(x == 0),
    "min": min,
    "max": max,
    "cat": lambda *parts: "".join(parts),
    "strlen": len,
    "substr": _substr,
}

_SETS: dict[str, Callable[..., Any]] = {
    "()": lambda *parts: parts,
    "{}": lambda *elements: Set(elements),
    "{|}": lambda element, rest: Set(rest | {element}),
    "union": lambda one, other: Set(one | other),
    "minus": lambda one, other: Set(one - other),
    "size": len,
}

_UNSIGNED: dict[str, Callable[..., int]] = {
    "bnot": lambda x: x ^ 2**64 - 1,
    "bshl": lambda x, n: (x << (n & 63)) & 2**64 - 1,
    "bshru": lambda x, n: x >> (n & 63),
}

_DECIMAL: dict[str, Callable[..., Decimal]] = {
    "+": _WIDE.add,
    "-": _WIDE.subtract,
    "*": _WIDE.multiply,
    "/": partial(lambda context, x, y: context.divide(x, y), _WIDE),
    "neg": _WIDE.minus,
}


def _convert(name: str, type_: Type, from_type: Type, value: Any) -> Value | None:
    if name == "to_string":
        return from_type.text(value)
    if from_type.kind == "symbol":
        return type_.parse(value)
    if name == "to_float":
        return FLOAT.check(float(value))
    whole = math.trunc(value)
    return whole if (MIN_NUMBER if name == "to_number" else 0) <= whole <= (MAX_NUMBER if name == "to_number" else 2**64 - 1) else None
