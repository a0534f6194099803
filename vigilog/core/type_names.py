"""Types by their names: what prints as `set<(symbol, number)>` is read again."""

from __future__ import annotations

import re
from collections.abc import Callable

from vigilog.core.values import BUILTIN, MOST_NESTED, Type, decimal_type, set_type, tuple_type

_TYPE_TOKEN = re.compile(r"\s*(decimal\(\s*\d+\s*,\s*\d+\s*\)|[\w?.]+|[<>(),])")


def type_named(name: str, named: Callable[[str], Type] | None = None) -> Type:
    """The type that prints like this; what has a name of its own is asked of `named`.

    >>> from vigilog.core.values import SYMBOL
    >>> type_named("decimal(6,2)") == decimal_type(6, 2), type_named("symbol") is SYMBOL
    (True, True)
    >>> str(type_named("set<( symbol,set<number> )>"))
    'set<(symbol, set<number>)>'
    """
    tokens = _TYPE_TOKEN.findall(name)[::-1]
    if "".join(tokens[::-1]).replace(" ", "") != name.replace(" ", "") or len(tokens) > 10_000:
        raise ValueError(f"there is no type {name}")

    def wanted(token: str) -> None:
        if not tokens or tokens.pop() != token:
            raise ValueError(f"there is no type {name}")

    def read(depth: int) -> Type:
        if depth > MOST_NESTED:
            raise ValueError(f"types nest at most {MOST_NESTED} deep")
        token = tokens.pop() if tokens else ""
        if token == "set" and tokens[-1:] == ["<"]:
            wanted("<")
            element = read(depth + 1)
            wanted(">")
            return set_type(element)
        if token == "(":
            parts = [read(depth + 1)]
            while tokens[-1:] == [","]:
                wanted(",")
                parts.append(read(depth + 1))
            wanted(")")
            return parts[0] if len(parts) == 1 else tuple_type(*parts)
        return (named or _built_in)(token)

    type_ = read(1)
    if tokens:
        raise ValueError(f"there is no type {name}")
    return type_


def _built_in(name: str) -> Type:
    if digits := re.fullmatch(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)", name):
        return decimal_type(int(digits[1]), int(digits[2]))
    if name not in BUILTIN:
        raise ValueError(f"there is no type {name}")
    return BUILTIN[name]
