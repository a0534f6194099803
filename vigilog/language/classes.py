"""Python classes that define aggregates: where they are found, and which may be used.

A class is looked for beside the program first, then where Python looks. Its module's text is part of the definition, so that what is kept by it is computed anew when the text changes, and a worker of a cluster can run it.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from vigilog.core.errors import DataError, Findings
from vigilog.language.syntax import Definition

METHODS = ("init", "insert", "result")
_allowed: set[str] | None = None  # the modules that may be used; None if any
_found: dict[str, str] = {}  # the modules that were used, with their texts


def seal(modules: set[str]) -> None:
    """From now on this process takes classes of these modules only, and of those it has used already: a server runs no code that a client names."""
    global _allowed
    _allowed = modules | _found.keys()


def with_text(definition: Definition, findings: Findings) -> Definition:
    """The definition with the text of its class's module, if it has a class."""
    if not definition.python:
        return definition
    module, _, name = definition.python.partition(":")
    if not (module and name.isidentifier() and all(part.isidentifier() for part in module.split("."))):
        findings.error("aggregate", f"{definition.python} names no class", definition.span, rule='a class is named python="module:Class"')
        return definition
    if definition.text:
        _found.setdefault(module, definition.text)
        return definition
    if _allowed is not None and module not in _allowed:
        raise DataError(f"this server takes no class of {module}; it is started with --python {module} if it shall", "forbidden")
    try:
        text = _text(module, Path(definition.span.file).parent)
    except Exception as reason:
        message = f"the module {module} cannot be read: {reason}"
        findings.error("unreadable", message, definition.span, rule="a module is looked for beside the program, then where Python looks")
        return definition
    complete = replace(definition, text=text)
    try:
        made = loaded(complete)
    except DataError as reason:
        findings.error("aggregate", reason.message, definition.span)
        return definition
    missing = [method for method in METHODS if not callable(getattr(made, method, None))]
    if missing:
        rule = "a class has init(), insert(state, element) and result(state); remove(state, element) and merge(state, state) are optional"
        findings.error("aggregate", f"{definition.python} has no {' and no '.join(missing)}", definition.span, rule=rule)
        return definition
    _found[module] = text
    return complete


def _text(module: str, beside: Path) -> str:
    path = beside.joinpath(*module.split(".")).with_suffix(".py")
    if path.is_file():
        return path.read_text(encoding="utf-8")
    if module in _found:
        return _found[module]
    sys.path.insert(0, str(Path.cwd()))
    try:
        return inspect.getsource(importlib.import_module(module))
    finally:
        sys.path.pop(0)


@lru_cache(maxsize=64)
def loaded(definition: Definition) -> Any:
    """An object of a definition's class, made from the text of its module."""
    name, _, kind = definition.python.partition(":")
    module = ModuleType(name)
    try:
        exec(compile(definition.text, f"{name}.py", "exec"), module.__dict__)  # the operator named it
        return getattr(module, kind)()
    except Exception as reason:
        raise DataError(f"{definition.python} cannot be made: {type(reason).__name__}: {reason}", "aggregate") from None
