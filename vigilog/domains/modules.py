"""Functions of a Python module beside the program, typed by annotations. Rows are dataclasses or named tuples; a `bool` is asked by `in(true, …)`."""

from __future__ import annotations

import dataclasses
import datetime
import importlib.util
import inspect
import sys
import typing
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

from vigilog.core.errors import did_you_mean
from vigilog.core.values import BOOLEAN, DATE, FLOAT, NUMBER, SYMBOL, TIMESTAMP, Row, Type
from vigilog.domains.domain import MAX_ROWS, TIMEOUT, Columns, DomainError, Options, Signature, checked
from vigilog.domains.options import patience
from vigilog.domains.patience import Impatient, each
from vigilog.domains.retries import TransientError, retried

TYPES: dict[object, Type] = {
    int: NUMBER,
    str: SYMBOL,
    float: FLOAT,
    bool: BOOLEAN,
    datetime.date: DATE,
    datetime.datetime: TIMESTAMP,
}
COLLECTIONS = (list, set, frozenset, tuple, Collection, Generator, Iterable, Iterator, Sequence, AbstractSet)  # of answers


class Module:
    """A domain whose functions are those of a module. The module is read anew whenever its text has changed: changed code is a changed source."""

    def __init__(self, name: str, options: Options, stated: dict[str, Columns]) -> None:
        self.name, self.options = name, options
        self.loaded: tuple[str, ModuleType] | None = None

    def fixed(self, function: str) -> int:
        self._function(function)
        return 0

    def signature(self, function: str, fixed: Sequence[str]) -> Signature:
        hints = typing.get_type_hints(self._function(function))
        parameters: list[tuple[str, Type]] = []
        takes: list[tuple[str, ...] | None] = []
        for name in inspect.signature(self._function(function)).parameters:
            fields = self._fields(function, hints.get(name))
            takes.append(None if fields is None else tuple(field for field, _ in fields))
            parameters += [(f"{name}_{field}", type_) for field, type_ in fields or ()]
            parameters += [(name, self._type(function, name, hints.get(name)))] if fields is None else []
        results, row = self._results(function, hints.get("return"))
        return Signature(tuple(parameters), results, row, tuple(takes))

    def ask(self, function: str, fixed: Sequence[str], arguments: Sequence[Row]) -> list[set[Row]]:
        call, signature = self._function(function), self.signature(function, fixed)
        most = int(self.options.get("max_rows", MAX_ROWS))
        call = _taking_rows(call, signature)

        def given(row: Row) -> list[object]:
            try:
                return list(islice(_several(call(*row)), most + 1))  # a generator may have no end
            except Exception as reason:
                raise TransientError(self.name, f"{function} raises {type(reason).__name__}: {reason}") from reason

        def answered(row: Row) -> set[Row]:
            answers = retried(self.options, lambda: given(row))
            if len(answers) > most:
                raise DomainError(self.name, f"{function} gives more rows than max_rows, which is {most}")
            return checked(self.name, function, signature.results, [_cells(one, signature) for one in answers], self.options)

        return self._patiently(function, answered, arguments)

    def _patiently(self, what: str, action: Callable[[Row], set[Row]], arguments: Sequence[Row]) -> list[set[Row]]:
        try:
            return each(action, arguments, patience(self.options, TIMEOUT))
        except DomainError:
            raise
        except Impatient as reason:
            raise DomainError(self.name, f"{what}: {reason}") from None
        except (Exception, SystemExit) as reason:
            raise DomainError(self.name, f"{what} raises {type(reason).__name__}: {reason}") from reason

    @property
    def text(self) -> str:
        """The module's text, as it is now."""
        self._module()
        assert self.loaded is not None, "it was just read"
        return self.loaded[0]

    def _module(self) -> ModuleType:
        """The module, read from its file: beside the program, or in a folder of that name."""
        path = Path(self.options.get("beside", ".")).joinpath(*self.options["module"].split(".")).with_suffix(".py")
        try:
            text = path.read_text(encoding="utf-8")
            if self.loaded is None or self.loaded[0] != text:
                spec = importlib.util.spec_from_file_location(f"vigilog_domain_{self.name}", path)
                assert spec is not None and spec.loader is not None, "a path has a loader"
                module = importlib.util.module_from_spec(spec)
                sys.modules[spec.name] = module  # dataclasses look their module up
                each(
                    lambda code: exec(code, module.__dict__),
                    [compile(text, str(path), "exec")],
                    patience(self.options, TIMEOUT),
                )
                self.loaded = (text, module)
        except Impatient as reason:
            raise DomainError(self.name, f"{path} cannot be imported: {reason}") from None
        except (Exception, SystemExit) as reason:
            raise DomainError(self.name, f"{path} cannot be imported: {type(reason).__name__}: {reason}") from reason
        return self.loaded[1]

    def _function(self, name: str) -> Callable[..., Any]:
        module = self._module()
        functions = {key: value for key, value in vars(module).items() if inspect.isfunction(value) and value.__module__ == module.__name__}
        if name not in functions:
            hint = did_you_mean(name, functions) or f"there are {', '.join(sorted(functions))}"
            raise DomainError(self.name, f"there is no function {name} ({hint})")
        return functions[name]

    def _type(self, function: str, what: str, hint: object) -> Type:
        if hint not in TYPES:
            shown = "has no type" if hint is None else f"is a {getattr(hint, '__name__', hint)}"
            raise DomainError(self.name, f"{what} of {function} {shown}; types are {', '.join(one.__name__ for one in TYPES)}")  # type: ignore[attr-defined]
        return TYPES[hint]

    def _results(self, function: str, hint: object) -> tuple[Columns, bool]:
        inner = typing.get_args(hint)
        element = inner[0] if inner and typing.get_origin(hint) in COLLECTIONS else hint
        fields = self._fields(function, element)
        if fields is not None:
            return fields, True
        return (("value", self._type(function, "the result", element)),), False

    def _fields(self, function: str, hint: object) -> Columns | None:
        """The fields of a dataclass or a named tuple; None of what is no row."""
        if not isinstance(hint, type):
            return None
        if dataclasses.is_dataclass(hint):
            names = [field.name for field in dataclasses.fields(hint)]
        elif hasattr(hint, "_fields"):
            names = list(hint._fields)
        else:
            return None
        hints = typing.get_type_hints(hint)
        return tuple((name, self._type(function, name, hints.get(name))) for name in names)


def _taking_rows(call: Callable[..., Any], signature: Signature) -> Callable[..., Any]:
    """A function as one of single values, of which its rows are made."""
    if not any(signature.arguments):
        return call
    hints = [typing.get_type_hints(call)[name] for name in inspect.signature(call).parameters]

    def called(*cells: object) -> object:
        left = iter(cells)
        return call(
            *(
                next(left) if fields is None else hint(**{field: next(left) for field in fields})
                for fields, hint in zip(signature.arguments, hints, strict=True)
            )
        )

    return called


def _several(answer: object) -> Iterable[object]:
    """A set of answers; a single value is a set of one."""
    single = (
        answer is None
        or isinstance(answer, str | bytes | int | float | bool | datetime.date | Decimal | dict)
        or dataclasses.is_dataclass(answer)
        or hasattr(answer, "_fields")
    )
    return [answer] if single else answer  # type: ignore[return-value]  # else it is iterated


def _cells(one: object, signature: Signature) -> Sequence[object]:
    """The values of an answer: a row has its fields, or is a plain tuple of their values."""
    if not signature.row:
        return (one,)
    if isinstance(one, tuple) and not hasattr(one, "_fields"):
        return one
    if missing := [name for name, _ in signature.results if not hasattr(one, name)]:
        raise ValueError(f"an answer is a {type(one).__name__} without {', '.join(missing)}")
    return tuple(getattr(one, name) for name, _ in signature.results)
