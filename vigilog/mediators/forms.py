"""Comparisons of the language as tests: `=`, `!=` and order for all types, linear arithmetic (`*`, `/`, `%` by constants) for integers.

A comparison holds where all its terms have values of their type and it is true. So each computed term brings its own bounds along, which mostly go again because something else implies them.

>>> from vigilog.core.values import NUMBER
>>> x, y = Variable("x", NUMBER), Variable("y", NUMBER)
>>> compared("<", x, Functor("+", (y, Constant(1, NUMBER)), NUMBER))[0]
Linear(terms=(('x', 1), ('y', -1)), op='<=', bound=0)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from vigilog.core.runs import Runs, axis
from vigilog.core.values import Type
from vigilog.language.functors import apply
from vigilog.language.syntax import Aggregate, Constant, Functor, Term, Variable, Wildcard
from vigilog.mediators.tests import Computed, Linear, Test, linear

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
MIRRORED = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}

Known = Test | bool | tuple[str, Runs]  # what a comparison says: a test, nothing but its truth, or the values of one variable


class NotLinear(ValueError):
    """A term that conditions cannot have. The message ends a sentence."""


@dataclass(frozen=True)
class Form:
    """A linear term, and the tests that say that its parts have values."""

    terms: Mapping[str, int]
    constant: int
    guards: tuple[Known, ...] = ()


def compared(op: str, left: Term, right: Term) -> list[Known]:
    """What a comparison of typed terms says. Raises NotLinear if no condition can say it."""
    left, right = folded(left), folded(right)
    match left, right:
        case Functor(type=None), _:
            raise AssertionError("checked programs are typed")
        case Constant(), Constant():
            return [Computed(op, left, right).holds({})]
        case Variable(), Constant():
            return [(left.name, axis(_type(left)).compared(op, right.value))]
        case Constant(), Variable():
            return [(right.name, axis(_type(right)).compared(MIRRORED[op], left.value))]
        case _:
            pass
    if (one := form(left)) is None or (two := form(right)) is None:
        check_computed(left)
        check_computed(right)
        return [Computed(op, left, right)]
    return [_linear(op, one, two), *one.guards, *two.guards]


def _linear(op: str, one: Form, two: Form) -> Linear | bool:
    terms = dict(one.terms)
    for name, factor in two.terms.items():
        terms[name] = terms.get(name, 0) - factor
    opposite = {name: -factor for name, factor in terms.items()}
    bound = two.constant - one.constant
    match op:
        case "=":
            return linear(terms, "=", bound)
        case "!=":
            return linear(terms, "!=", bound)
        case "<=" | "<":
            return linear(terms, "<=", bound - (op == "<"))
        case ">=" | ">":
            return linear(opposite, "<=", -bound - (op == ">"))
        case _:
            raise AssertionError("a comparison has one of six operators")


def folded(term: Term) -> Term:
    """The term with its constant parts computed; one that has no value there is left."""
    if not isinstance(term, Functor) or term.type is None:
        return term
    args = tuple(map(folded, term.args))
    if all(isinstance(arg, Constant) for arg in args):
        types = [arg.type for arg in args if arg.type]
        value = apply(term.name, term.type, types, [arg.value for arg in args if isinstance(arg, Constant)])
        if value is not None:
            return Constant(value, term.type)
    return replace(term, args=args)


def form(term: Term) -> Form | None:
    """A term as a linear one; None if it is computed otherwise."""
    match term:
        case Variable():
            return Form({term.name: 1}, 0)
        case Constant():
            return Form({}, axis(_type(term)).place(term.value)) if not isinstance(term.value, str) else None
        case Functor(name="+" | "-" | "*" | "neg"):
            if _type(term).kind not in ("number", "unsigned"):
                raise NotLinear(f"computes with a {_type(term)}, and conditions compute with numbers only")
            parts = [form(arg) for arg in term.args]
            if any(part is None for part in parts):
                return None
            return _guarded(_computed(term, [part for part in parts if part is not None]), _type(term))
        case Functor() | Wildcard() | Aggregate():
            return None
        case _:
            assert_never(term)


def _computed(term: Functor, parts: list[Form]) -> Form:
    guards = tuple(guard for part in parts for guard in part.guards)
    match term.name, parts:
        case "neg", [only]:
            return Form({name: -factor for name, factor in only.terms.items()}, -only.constant, guards)
        case "+" | "-", [one, two]:
            sign = 1 if term.name == "+" else -1
            terms = dict(one.terms)
            for name, factor in two.terms.items():
                terms[name] = terms.get(name, 0) + sign * factor
            return Form(terms, one.constant + sign * two.constant, guards)
        case "*", [one, two]:
            if one.terms and two.terms:
                raise NotLinear("multiplies variables, and conditions are linear")
            scaled, times = (one, two.constant) if not two.terms else (two, one.constant)
            return Form({name: factor * times for name, factor in scaled.terms.items()}, scaled.constant * times, guards)
        case _:
            raise AssertionError("these are the linear functors")


def _guarded(linear_form: Form, type_: Type) -> Form:
    line = axis(type_)
    assert line.most is not None, "integers end"
    most = linear(linear_form.terms, "<=", line.most - linear_form.constant)
    least = linear({name: -factor for name, factor in linear_form.terms.items()}, "<=", linear_form.constant - line.least)
    return replace(linear_form, guards=(*linear_form.guards, *(guard for guard in (least, most) if guard is not True)))


def check_computed(term: Term) -> None:
    """Raises NotLinear unless all that a term computes is linear, but for division by constants."""
    if not isinstance(term, Functor):
        return
    if term.name not in ("+", "-", "*", "neg", "/", "%"):
        raise NotLinear(f"calls {term.name}, and conditions have linear arithmetic only")
    if _type(term).kind not in ("number", "unsigned"):
        raise NotLinear(f"computes with a {_type(term)}, and conditions compute with numbers only")
    constant = [isinstance(folded(arg), Constant) for arg in term.args]
    if (term.name in ("/", "%") and not constant[1]) or (term.name == "*" and not any(constant)):
        raise NotLinear(
            f"has {term.name} with variables on both sides, and conditions are linear"
            if term.name == "*"
            else f"has {term.name} by a variable, and conditions divide by constants only"
        )
    for arg in term.args:
        check_computed(arg)


def _type(term: Term) -> Type:
    assert not isinstance(term, tuple) and term.type is not None, "checked programs are typed"
    return term.type
