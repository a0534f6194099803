"""How the language's values and functors are written for DuckDB.

Values are stored as SQLite stores them (`sqlite.py`), so rows go from one to the other as they are, and what Python computes is the same function:

| type | stored as |
|---|---|
| symbol, date, timestamp | VARCHAR, compared by its bytes, which is by code point |
| number, boolean, decimal, unsigned less 2^63 | BIGINT |
| float | DOUBLE, never -0 |
| set, tuple | BLOB |

DuckDB raises an error where SQLite gives REAL or NULL, and may compute a term of a row that another condition leaves out: so whatever can fail stands in TRY,
or is a case. Every constant is a BIGINT by name, since DuckDB computes small ones in 32 bits. What SQL cannot say exactly calls a Python function; the names of
these begin with `v_`, a dialect knows those its statements use. Where SQLite and DuckDB differ most is the shape: here no subquery is asked anew for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from vigilog.core.values import NUMBER, Kind, Type, Value
from vigilog.language.patterns import matches
from vigilog.planning.applied import Applied
from vigilog.planning.dialect import COMPARISONS, Sql, binary, call, case, defined
from vigilog.planning.sortable import from_bytes
from vigilog.planning.sqlite import OFFSET, SPELLED, decoder, encoded, encoder, float_mean, float_sum, folded, gathered, mean, spelled

COLUMN: dict[Kind, str] = {
    "symbol": "VARCHAR",
    "number": "BIGINT",
    "unsigned": "BIGINT",
    "float": "DOUBLE",
    "boolean": "BIGINT",
    "date": "VARCHAR",
    "timestamp": "VARCHAR",
    "decimal": "BIGINT",
    "set": "BLOB",
    "tuple": "BLOB",
}


@dataclass(frozen=True)
class Function:
    """A Python function over stored values: what it takes, and what it gives, as DuckDB calls these types."""

    takes: tuple[str, ...]
    gives: str
    compute: Callable[..., Any]


class DuckDbDialect:
    """The bulk evaluator's SQL. `functions` are those its statements call, by name."""

    name = "duckdb"
    correlates = False
    counts_itself = False

    def __init__(self) -> None:
        self.functions: dict[str, Function] = {}

    def _call(self, name: str, takes: Sequence[str], gives: str, compute: Callable[..., Any], args: Sequence[Sql]) -> Sql:
        self.functions.setdefault(name, Function(tuple(takes), gives, compute))
        return call(name, *args)

    def _python(self, name: str, type_: Type, arg_types: Sequence[Type], args: Sequence[Sql]) -> Sql:
        """A functor that Python computes."""
        key = "v_" + "_".join([SPELLED.get(name, name), *(spelled(t) for t in (*arg_types, type_))])
        return self._call(key, [COLUMN[t.kind] for t in arg_types], COLUMN[type_.kind], encoded(name, type_, tuple(arg_types)), args)

    def constant(self, value: Value, type_: Type) -> Sql:
        encode = encoder(type_)
        stored: Any = encode(value) if encode else value
        if isinstance(stored, bytes):
            return call("unhex", stored.hex())
        if isinstance(stored, str | float):
            return cast(exp.Literal.string(repr(stored) if isinstance(stored, float) else stored), COLUMN[type_.kind])
        return cast(exp.Literal.string(str(int(stored))), "BIGINT")

    def functor(self, name: str, type_: Type, arg_types: Sequence[Type], args: Sequence[Sql]) -> Sql:
        kinds = {type_.kind, *(arg.kind for arg in arg_types)}
        if name in ("min", "max"):
            return _strict(args, call("least" if name == "min" else "greatest", *args))
        if name == "cat":
            return folded(args, 2, lambda pair: binary(exp.DPipe, *pair))
        if name == "strlen":
            return call("length", *args)
        if name == "substr":
            return _substring(*args)
        if kinds == {"number"} and name in _INTEGER:
            return _integer(name, args)
        if kinds == {"float"} and name in _FLOAT:
            return _float(name, args)
        if kinds == {"unsigned"} and name in _EXACT:
            wide = [binary(exp.Add, cast(arg, "HUGEINT"), _huge(OFFSET)) for arg in args]
            return _tried(cast(binary(exp.Sub, binary(_EXACT[name], *wide), _huge(OFFSET)), "BIGINT"))
        if type_.kind == "decimal" and name in ("+", "-", "neg"):
            result = _negative(args[0]) if name == "neg" else binary(_PLAIN[name], *args)  # of at most 19 digits
            limit = 10**type_.precision - 1
            return case(exp.Between(this=exp.Paren(this=result), low=_big(-limit), high=_big(limit)), result.copy())
        if name == "to_string" and arg_types[0].kind in ("symbol", "date", "timestamp", "number"):
            return cast(args[0], "VARCHAR")
        return self._python(name, type_, arg_types, args)

    def component(self, sql: Sql, type_: Type, place: int) -> Sql:
        take, encode, part = from_bytes(type_), encoder(type_.parts[place]) or _same, type_.parts[place]
        key = f"v_component_{place}_{spelled(type_)}"
        return self._call(key, ["BLOB"], COLUMN[part.kind], lambda stored: None if stored is None else encode(take(stored)[place]), [sql])

    def applied(self, applied: Applied, args: Sequence[Sql]) -> Sql:
        decoders, encode = [decoder(type_) or _same for type_ in applied.types], encoder(applied.type) or _same

        def function(*stored: Any) -> Any:
            if None in stored:
                return None
            result = applied.compute([decode(arg) for decode, arg in zip(decoders, stored, strict=True)])
            return None if result is None else encode(result)

        return self._call(applied.name, [COLUMN[t.kind] for t in applied.types], COLUMN[applied.type.kind], function, args)

    def members(self, sql: Sql, element: Type) -> Sql:
        collected, encode = from_bytes(Type("set", parts=(element,))), encoder(element) or _same

        def listed(stored: bytes | None) -> list[Any] | None:
            return None if stored is None else [encode(each) for each in collected(stored)]

        return call("unnest", self._call(f"v_members_{spelled(element)}", ["BLOB"], f"{COLUMN[element.kind]}[]", listed, [sql]))

    def member(self, sql: Sql, element: Type) -> Sql:
        return sql

    def test(self, op: str, args: Sequence[Sql], types: Sequence[Type]) -> Sql:
        if op == "member":
            element, collected = decoder(types[0]) or _same, from_bytes(types[1])

            def has(x: Any, stored: bytes | None) -> bool | None:
                return None if x is None or stored is None else element(x) in collected(stored)

            return self._call(f"v_is_member_{spelled(types[0])}", [COLUMN[types[0].kind], "BLOB"], "BOOLEAN", has, args)
        if op == "contains":
            return call("contains", args[1], args[0])
        if op == "match":
            return self._call("v_match", ["VARCHAR", "VARCHAR"], "BOOLEAN", _match, args)
        return binary(COMPARISONS[op], *args)

    def aggregate(self, op: str, type_: Type, target_type: Type | None, target: Sql | None) -> Sql:
        return AGGREGATES[op].inside(target_type or NUMBER, exp.Star() if target is None else target)

    def finish(self, op: str, type_: Type, target_type: Type | None, result: Sql) -> Sql:
        return AGGREGATES[op].outside(self, type_, target_type or NUMBER, result)

    def listed(self, op: str, target_type: Type | None) -> bool:
        return op in ("mean", "setof") or (op == "sum" and target_type is not None and target_type.kind == "float")

    def counted_rows(self, type_: Type, target_type: Type, result: Sql) -> Sql:
        return exp.Coalesce(this=result, expressions=[self.constant(0, NUMBER)])

    def as_it_is(self, type_: Type, target_type: Type, result: Sql) -> Sql:
        return result

    def collected(self, type_: Type, target_type: Type, result: Sql) -> Sql:
        gather = gathered(target_type)
        key, takes = f"v_setof_{spelled(target_type)}", [f"{COLUMN[target_type.kind]}[]"]
        return self._call(key, takes, "BLOB", lambda elements: None if elements is None else gather(elements), [result])

    def summed(self, type_: Type, target_type: Type, result: Sql) -> Sql:
        if target_type.kind == "float":
            return self._call("v_sum_float", ["DOUBLE[]"], "DOUBLE", lambda values: float_sum(values or ()), [result])
        total = exp.Coalesce(this=result, expressions=[_huge(0)])
        if target_type.kind == "unsigned":
            return exp.TryCast(this=binary(exp.Sub, total, _huge(OFFSET)), to=exp.DataType.build("BIGINT", dialect="duckdb"))
        if not target_type.precision:
            return exp.TryCast(this=total, to=exp.DataType.build("BIGINT", dialect="duckdb"))
        limit = 10**target_type.precision - 1
        return case(exp.Between(this=total, low=_big(-limit), high=_big(limit)), cast(total.copy(), "BIGINT"))

    def averaged(self, type_: Type, target_type: Type, result: Sql) -> Sql:
        if target_type.kind == "float":
            return self._call("v_mean_float", ["DOUBLE[]"], "DOUBLE", lambda values: float_mean(values or ()), [result])
        scale = target_type.scale
        compute = lambda pair: None if pair is None else mean(pair[0], pair[1], scale)  # noqa: E731
        return self._call(f"v_mean_{scale}", ["HUGEINT[]"], "DOUBLE", compute, [result])

    def sought(self, pairs: Sequence[tuple[Sql, Sql, Type]]) -> list[Sql]:
        return [binary(exp.EQ, left, right) for left, right, _ in pairs]

    def staged(self, inner: exp.Select) -> exp.Select:
        return inner

    def opaque(self, sql: Sql) -> bool:
        return False

    def counted(self, guard: Sql) -> Sql:
        return guard


@dataclass(frozen=True)
class Aggregated:
    """An aggregate's SQL: `inside` the SELECT that groups, from the target's type and the target (`count` has `*`), and what is made of its value `outside`."""

    inside: Callable[[Type, Sql], Sql]
    outside: Callable[[DuckDbDialect, Type, Type, Sql], Sql]


def _sum(target_type: Type, target: Sql) -> Sql:
    """The values of floats, which are added exactly at the end; of integers the sum, in 128 bits."""
    if target_type.kind == "float":
        return call("list", target)
    total = cast(call("sum", target), "HUGEINT")
    if target_type.kind != "unsigned":
        return total
    return binary(exp.Add, total, binary(exp.Mul, cast(exp.Count(this=exp.Star()), "HUGEINT"), _huge(OFFSET)))


def _mean(target_type: Type, target: Sql) -> Sql:
    total = _sum(target_type, target)
    return total if target_type.kind == "float" else call("list_value", total, cast(exp.Count(this=exp.Star()), "HUGEINT"))


# For each aggregate of the language how it is written.
AGGREGATES: dict[str, Aggregated] = {
    "count": Aggregated(lambda _, target: exp.Count(this=target), DuckDbDialect.counted_rows),
    "sum": Aggregated(_sum, DuckDbDialect.summed),
    "min": Aggregated(lambda _, target: call("min", target), DuckDbDialect.as_it_is),
    "max": Aggregated(lambda _, target: call("max", target), DuckDbDialect.as_it_is),
    "mean": Aggregated(_mean, DuckDbDialect.averaged),
    "setof": Aggregated(lambda _, target: call("list", exp.Distinct(expressions=[target])), DuckDbDialect.collected),
}

_PLAIN: dict[str, type[exp.Binary]] = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul}
_EXACT: dict[str, type[exp.Binary]] = {**_PLAIN, "/": exp.IntDiv, "%": exp.Mod}
_BITS: dict[str, type[exp.Binary]] = {"band": exp.BitwiseAnd, "bor": exp.BitwiseOr}
_INTEGER = (*_EXACT, "neg", *_BITS, "bnot")
_FLOAT = (*_PLAIN, "/", "neg")


def cast(sql: Sql, type_: str) -> Sql:
    return exp.Cast(this=sql, to=exp.DataType.build(type_, dialect="duckdb"))


def _big(value: int) -> Sql:
    return cast(exp.Literal.string(str(value)), "BIGINT")


def _huge(value: int) -> Sql:
    return cast(exp.Literal.string(str(value)), "HUGEINT")


def _tried(sql: Sql) -> Sql:
    """The value, or NULL if computing it fails."""
    return call("try", sql)


def _negative(sql: Sql) -> Sql:
    return exp.Paren(this=exp.Neg(this=exp.Paren(this=sql)))


def _integer(name: str, args: Sequence[Sql]) -> Sql:
    if name == "%":  # in 128 bits, where the remainder of the smallest number by -1 is 0
        return _tried(cast(binary(exp.Mod, cast(args[0], "HUGEINT"), cast(args[1], "HUGEINT")), "BIGINT"))
    if name in _EXACT:
        return _tried(binary(_EXACT[name], *args))
    if name == "neg":
        return _tried(_negative(args[0]))
    return exp.BitwiseNot(this=exp.Paren(this=args[0])) if name == "bnot" else binary(_BITS[name], *args)


def _float(name: str, args: Sequence[Sql]) -> Sql:
    """IEEE arithmetic with what is not finite turned into NULL, and -0 into 0."""
    zero = cast(exp.Literal.string("0"), "DOUBLE")
    if name == "neg":
        return binary(exp.Sub, zero, args[0])
    result = _tried(binary(exp.Div if name == "/" else _PLAIN[name], *args))
    for odd in ("inf", "-inf", "nan"):
        result = call("nullif", result, cast(exp.Literal.string(odd), "DOUBLE"))
    return binary(exp.Add, result, zero)


def _substring(text: Sql, index: Sql, length: Sql) -> Sql:
    """A part of a text that it has; else NULL. DuckDB looks at constant places before anything runs, outside of any CASE: so all of them are moved into the text."""
    size = call("length", text)
    inside = exp.and_(binary(exp.GTE, index, _big(0)), binary(exp.LTE, index.copy(), size), binary(exp.GTE, length, _big(0)))
    first, most = (call("greatest", call("least", place.copy(), size.copy()), _big(0)) for place in (index, length))
    return case(inside, call("substring", text.copy(), binary(exp.Add, first, _big(1)), most))


def _strict(args: Sequence[Sql], body: Sql) -> Sql:
    """`body`, or NULL if an argument is NULL."""
    doubtful = [defined(arg.copy()) for arg in args if not isinstance(arg, exp.Column | exp.Placeholder)]
    return case(exp.and_(*doubtful), body) if doubtful else body


def _same(value: Any) -> Any:
    return value


def _match(pattern: str | None, text: str | None) -> bool | None:
    return None if pattern is None or text is None else matches(pattern, text)
