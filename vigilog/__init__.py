"""Vigilog: derives views from data by rules, and tells every holder of a copy exactly what changed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vigilog.core.errors import DataError, Refused, VigilogError
    from vigilog.engine.database import Database
    from vigilog.engine.evaluate import Result, evaluate
    from vigilog.folder.opening import open_program as open

__version__ = "0.1.0"
__all__ = ["DataError", "Database", "Refused", "Result", "VigilogError", "__version__", "evaluate", "open"]

_HOME = {
    "DataError": ("vigilog.core.errors", "DataError"),
    "Refused": ("vigilog.core.errors", "Refused"),
    "Database": ("vigilog.engine.database", "Database"),
    "Result": ("vigilog.engine.evaluate", "Result"),
    "VigilogError": ("vigilog.core.errors", "VigilogError"),
    "evaluate": ("vigilog.engine.evaluate", "evaluate"),
    "open": ("vigilog.folder.opening", "open_program"),
}


def __getattr__(name: str) -> object:
    """Loads the library when it is first used, so that workers of a cluster import only what they need."""
    if name in _HOME:
        module, attribute = _HOME[name]
        return getattr(import_module(module), attribute)
    raise AttributeError(f"module 'vigilog' has no attribute {name!r}")
