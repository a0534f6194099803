"""How the language's values and functors are written for Spark (ANSI mode).

| type | in Spark |
|---|---|
| symbol, number, float, boolean, date, timestamp | string, bigint, double, boolean, date, timestamp |
| unsigned | decimal(20,0) |
| decimal(p,s) | decimal(p,s) |
| set<T>, (T, U) | array<T>, sorted; struct<_1: T, _2: U> |

The `try_` functions give NULL where ANSI mode would fail. What Spark's SQL cannot say exactly calls a Python function whose name begins with `v_`;
a dialect knows those its statements use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal

from sqlglot import exp

from vigilog.core.sets import Set
from vigilog.core.values import FLOAT, NUMBER, Type, Value
from vigilog.planning.applied import Applied
from vigilog.planning.dialect import COMPARISONS, Sql, binary, call, case, integer
from vigilog.planning.sqlite import spelled as type_spelled
from vigilog.spark.types import TIMESTAMP_PATTERN, spark_type


@dataclass(frozen=True)
class PythonFunction:
    """A functor, test or aggregate that Python computes."""

    kind: Literal["functor", "match", "sum", "mean", "applied"]
    functor: str
    args: tuple[Type, ...]
    result: Type
    applied: Applied | None = None


class SparkDialect:
    """The Spark executor's SQL. `functions` are the Python functions its statements call, by name."""

    name = "databricks"  # of sqlglot's dialects the one that writes ANSI mode's TRY_CAST
    correlates = False
    counts_itself = False

    def __init__(self) -> None:
        self.functions: dict[str, PythonFunction] = {}
        self.lets = count()

    def constant(self, value: Value, type_: Type) -> Sql:
        if type_.kind == "boolean":
            return exp.true() if value else exp.false()
        if isinstance(value, Set):
            return cast(call("array", *(self.constant(each, type_.parts[0]) for each in value)), spark_type(type_))
        if isinstance(value, tuple):
            return _struct([self.constant(each, part) for each, part in zip(value, type_.parts, strict=True)])
        return cast(exp.Literal.string(type_.text(value)), spark_type(type_))

    def functor(self, name: str, type_: Type, arg_types: Sequence[Type], args: Sequence[Sql]) -> Sql:
        kinds = {type_.kind, *(arg.kind for arg in arg_types)}
        if name in ("min", "max"):
            return self._strict(args, lambda given: call("least" if name == "min" else "greatest", *given))
        if name == "cat":
            return call("concat", *args)
        if name == "strlen":
            return cast(call("char_length", *args), "bigint")
        if name == "substr":
            return self._let(args, _substring)
        if name == "to_string":
            return self._to_string(arg_types[0], args[0])
        if name == "()":
            return self._strict(args, _struct)
        if name == "{}":
            return self._strict(args, lambda given: cast(_sorted(call("array_distinct", call("array", *given))), spark_type(type_)))
        if name == "{|}":
            return self._strict(args, lambda given: _sorted(call("array_union", given[1], call("array", given[0]))))
        if name in ("union", "minus"):
            return _sorted(call("array_union" if name == "union" else "array_except", *args))
        if name == "size":
            return cast(call("size", *args), "bigint")
        if name.startswith("to_"):
            return self._convert(name, type_, arg_types[0], args[0])
        if kinds == {"number"} and name in _INTEGER:
            return self._integer(name, args)
        if kinds == {"float"} and name in _FLOAT:
            return _float(name, args)
        if kinds == {"unsigned"} and name in _TRY:
            return self._let([call(_TRY[name], *args)], lambda given: _within(given[0], 0, 2**64 - 1, "decimal(20,0)"))
        if type_.kind == "decimal" and name in ("neg", *_PLAIN):
            result = exp.Neg(this=exp.Paren(this=args[0])) if name == "neg" else binary(_PLAIN[name], *args)
            return try_cast(result, str(type_))
        return self._python("functor", name, tuple(arg_types), type_, args)

    def _integer(self, name: str, args: Sequence[Sql]) -> Sql:
        if name in _TRY:
            return call(_TRY[name], *args)
        if name == "neg":
            return call("try_subtract", cast(integer(0), "bigint"), args[0])
        if name == "/":
            return self._let(args, _divide)
        if name in _BITS:
            return binary(_BITS[name], *args)
        if name == "bnot":
            return exp.BitwiseNot(this=exp.Paren(this=args[0]))
        if name in _SHIFTS:
            return call(_SHIFTS[name], args[0], cast(binary(exp.BitwiseAnd, args[1], integer(63)), "int"))
        bits = [cast(binary(exp.EQ if name == "lnot" else exp.NEQ, arg, integer(0)), "bigint") for arg in args]
        return bits[0] if name == "lnot" else binary(_LOGICAL[name], *bits)

    def _convert(self, name: str, type_: Type, from_type: Type, arg: Sql) -> Sql:
        if name == "to_number" and from_type.kind == "float":
            return self._let([arg], lambda given: _within(given[0], -(2**63), 2**63, "double", "bigint"))
        if name == "to_number" and from_type.kind != "symbol":
            return try_cast(arg, "bigint")
        if name == "to_float" and from_type.kind != "symbol":
            return cast(arg, "double")
        if name == "to_unsigned" and from_type.kind in ("number", "unsigned"):
            return self._let([arg], lambda given: case(binary(exp.GTE, given[0], integer(0)), cast(given[0].copy(), "decimal(20,0)")))
        return self._python("functor", name, (from_type,), type_, [arg])

    def _to_string(self, type_: Type, arg: Sql) -> Sql:
        if type_.kind in ("float", "set", "tuple"):
            return self._python("functor", "to_string", (type_,), Type("symbol"), [arg])
        if type_.kind == "timestamp":
            return call("date_format", arg, TIMESTAMP_PATTERN)
        return cast(arg, "string")

    def text(self, type_: Type, arg: Sql) -> Sql:
        """A value's canonical text."""
        return self._to_string(type_, arg)

    def component(self, sql: Sql, type_: Type, place: int) -> Sql:
        return exp.Dot(this=exp.Paren(this=sql), expression=exp.to_identifier(f"_{place + 1}"))

    def applied(self, applied: Applied, args: Sequence[Sql]) -> Sql:
        self.functions.setdefault(applied.name, PythonFunction("applied", applied.name, applied.types, applied.type, applied))
        return call(applied.name, *args)

    def members(self, sql: Sql, element: Type) -> Sql:
        return call("explode", sql)

    def member(self, sql: Sql, element: Type) -> Sql:
        return sql

    def test(self, op: str, args: Sequence[Sql], types: Sequence[Type]) -> Sql:
        if op == "member":
            return call("array_contains", args[1], args[0])
        if op == "contains":
            return call("contains", args[1], args[0])
        if op == "match":
            return self._python("match", "match", (Type("symbol"), Type("symbol")), Type("boolean"), args)
        return binary(COMPARISONS[op], *args)

    def aggregate(self, op: str, type_: Type, target_type: Type | None, target: Sql | None) -> Sql:
        return AGGREGATES[op].inside(target_type or NUMBER, exp.Star() if target is None else target)

    def finish(self, op: str, type_: Type, target_type: Type | None, result: Sql) -> Sql:
        return AGGREGATES[op].outside(self, type_, target_type or NUMBER, result)

    def listed(self, op: str, target_type: Type | None) -> bool:
        return False

    def counted_rows(self, type_: Type, target_type: Type, result: Sql) -> Sql:
        return exp.Coalesce(this=result, expressions=[integer(0)])

    def as_it_is(self, type_: Type, target_type: Type, result: Sql) -> Sql:
        return result

    def collected(self, type_: Type, target_type: Type, result: Sql) -> Sql:
        """The set, unless it is empty."""
        return case(binary(exp.GT, call("size", result), integer(0)), result.copy())

    def summed(self, type_: Type, target_type: Type, result: Sql) -> Sql:
        if target_type.kind == "float":
            return self._python("sum", "sum", (FLOAT,), FLOAT, [result])
        total = exp.Coalesce(this=result, expressions=[integer(0)])
        if target_type.kind == "unsigned":
            return self._let([total], lambda given: _within(given[0], 0, 2**64 - 1, "decimal(20,0)"))
        return try_cast(total, spark_type(type_))

    def averaged(self, type_: Type, target_type: Type, result: Sql) -> Sql:
        return self._python("mean", "mean", (FLOAT,), FLOAT, [result]) if target_type.kind == "float" else result

    def sought(self, pairs: Sequence[tuple[Sql, Sql, Type]]) -> list[Sql]:
        """Spark looks up one key of 64 bits several times faster than any other, so the hash of others; that their parts are equal is said in a way that makes no keys of them."""
        if len(pairs) == 1 and pairs[0][2].kind in ("number", "boolean", "date", "timestamp"):
            return [binary(exp.EQ, pairs[0][0], pairs[0][1])]
        left, right = call("xxhash64", *(a.copy() for a, _, _ in pairs)), call("xxhash64", *(b.copy() for _, b, _ in pairs))
        compared = [binary(kind, a.copy(), b.copy()) for a, b, _ in pairs for kind in (exp.LTE, exp.GTE)]
        return [binary(exp.EQ, left, right), *compared]

    def staged(self, inner: exp.Select) -> exp.Select:
        return inner

    def opaque(self, sql: Sql) -> bool:
        return any(str(node.this).startswith("v_") for node in sql.find_all(exp.Anonymous))

    def counted(self, guard: Sql) -> Sql:
        return guard

    def _python(
        self, kind: Literal["functor", "match", "sum", "mean"], functor: str, args: tuple[Type, ...], result: Type, given: Sequence[Sql]
    ) -> Sql:
        spelled = {
            "/": "divide",
            "%": "modulo",
            "^": "power",
            "+": "add",
            "-": "subtract",
            "*": "multiply",
            "()": "tuple",
            "{}": "set",
            "{|}": "added",
        }.get(functor, functor)
        name = "v_" + "_".join([kind, spelled, *map(type_spelled, (*args, result))])
        self.functions.setdefault(name, PythonFunction(kind, functor, args, result))
        return call(name, *given)

    def _strict(self, args: Sequence[Sql], body: Callable[[Sequence[Sql]], Sql]) -> Sql:
        """`body`, or NULL if an argument is NULL."""
        if all(isinstance(arg, exp.Column | exp.Placeholder) or _is_constant(arg) for arg in args):
            return body(args)

        def guarded(given: Sequence[Sql]) -> Sql:
            present = [exp.Not(this=exp.Is(this=part.copy(), expression=exp.Null())) for part in given]
            return case(exp.and_(*present), body(given))

        return self._let(args, guarded)

    def _let(self, args: Sequence[Sql], body: Callable[[Sequence[Sql]], Sql]) -> Sql:
        """`body` over names for the arguments, so that a large argument is written, and computed, once."""
        if all(isinstance(arg, exp.Column | exp.Placeholder) or _is_constant(arg) for arg in args):
            return body(args)
        variable = f"l{next(self.lets)}"
        fields = [exp.Column(this=exp.to_identifier(f"f{i}"), table=exp.to_identifier(variable)) for i in range(len(args))]
        bound = call("named_struct", *(part for i, arg in enumerate(args) for part in (f"f{i}", arg)))
        function = exp.Lambda(this=body(fields), expressions=[exp.to_identifier(variable)])
        return call("element_at", call("transform", call("array", bound), function), 1)


@dataclass(frozen=True)
class Aggregated:
    """An aggregate's SQL: `inside` the SELECT that groups, from the target's type and the target (`count` has `*`), and what is made of its value `outside`."""

    inside: Callable[[Type, Sql], Sql]
    outside: Callable[[SparkDialect, Type, Type, Sql], Sql]


def _sum(target_type: Type, target: Sql) -> Sql:
    return call("collect_list", target) if target_type.kind == "float" else call("sum", cast(target, f"decimal(38,{target_type.scale})"))


def _mean(target_type: Type, target: Sql) -> Sql:
    total = _sum(target_type, target)
    return total if target_type.kind == "float" else call("try_divide", cast(total, "double"), cast(exp.Count(this=exp.Star()), "double"))


# For each aggregate of the language how it is written.
AGGREGATES: dict[str, Aggregated] = {
    "count": Aggregated(lambda _, target: exp.Count(this=target), SparkDialect.counted_rows),
    "sum": Aggregated(_sum, SparkDialect.summed),
    "min": Aggregated(lambda _, target: call("min", target), SparkDialect.as_it_is),
    "max": Aggregated(lambda _, target: call("max", target), SparkDialect.as_it_is),
    "mean": Aggregated(_mean, SparkDialect.averaged),
    "setof": Aggregated(lambda _, target: _sorted(call("collect_set", target)), SparkDialect.collected),
}

_TRY = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "%": "try_mod"}
_PLAIN: dict[str, type[exp.Binary]] = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul}
_BITS: dict[str, type[exp.Binary]] = {"band": exp.BitwiseAnd, "bor": exp.BitwiseOr, "bxor": exp.BitwiseXor}
_LOGICAL: dict[str, type[exp.Binary]] = {"land": exp.BitwiseAnd, "lor": exp.BitwiseOr, "lxor": exp.BitwiseXor}
_SHIFTS = {"bshl": "shiftleft", "bshr": "shiftright", "bshru": "shiftrightunsigned"}
_INTEGER = (*_TRY, "neg", "/", *_BITS, "bnot", *_SHIFTS, *_LOGICAL, "lnot")
_FLOAT = (*_PLAIN, "/", "neg")


def _struct(parts: Sequence[Sql]) -> Sql:
    return call("named_struct", *(each for number, part in enumerate(parts, start=1) for each in (f"_{number}", part)))


def _sorted(sql: Sql) -> Sql:
    return call("array_sort", sql)


def cast(sql: Sql, type_: str) -> Sql:
    return exp.Cast(this=sql, to=exp.DataType.build(type_, dialect="spark"))


def try_cast(sql: Sql, type_: str) -> Sql:
    return exp.TryCast(this=sql, to=exp.DataType.build(type_, dialect="spark"))


def _is_constant(sql: Sql) -> bool:
    return isinstance(sql, exp.Literal | exp.Boolean) or (isinstance(sql, exp.Cast) and isinstance(sql.this, exp.Literal))


def _substring(given: Sequence[Sql]) -> Sql:
    text, index, length = given
    size = call("char_length", text.copy())
    inside = exp.and_(binary(exp.GTE, index, integer(0)), binary(exp.LTE, index.copy(), size), binary(exp.GTE, length, integer(0)))
    shown = cast(call("least", length.copy(), size.copy()), "int")
    return case(inside, call("substring", text, cast(binary(exp.Add, index.copy(), integer(1)), "int"), shown))


def _divide(given: Sequence[Sql]) -> Sql:
    """Integer division; by 0 there is no value, and by -1 the smallest number overflows."""
    left, right = given
    quotient = exp.IntDiv(this=left.copy(), expression=right.copy())
    by_minus_one = call("try_subtract", cast(integer(0), "bigint"), left)
    return exp.Case(
        ifs=[
            exp.If(this=binary(exp.EQ, right, integer(0)), true=exp.Null()),
            exp.If(this=binary(exp.EQ, right.copy(), integer(-1)), true=by_minus_one),
        ],
        default=quotient,
    )


def _within(sql: Sql, low: int, high: int, type_: str, result: str | None = None) -> Sql:
    """The value as `result`, if it is at least `low` and at most `high` (less than `high`, for doubles)."""
    smallest, largest = (cast(exp.Literal.string(str(bound)), type_) for bound in (low, high))
    below = binary(exp.LT if type_ == "double" else exp.LTE, sql.copy(), largest)
    return case(exp.and_(binary(exp.GTE, sql, smallest), below), cast(sql.copy(), result or type_))


def _float(name: str, args: Sequence[Sql]) -> Sql:
    """IEEE arithmetic with what is not finite turned into NULL, and -0 into 0."""
    zero = cast(exp.Literal.string("0.0"), "double")
    if name == "neg":
        return binary(exp.Sub, zero, args[0])
    result = call("try_divide", *args) if name == "/" else binary(_PLAIN[name], *args)
    for odd in ("Infinity", "-Infinity", "NaN"):
        result = call("nullif", result, cast(exp.Literal.string(odd), "double"))
    return binary(exp.Add, result, zero)
