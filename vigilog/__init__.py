"""Vigilog: derives views from data by rules, and tells every holder of a copy exactly what changed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vigilog.engine.evaluate import Result, evaluate

__version__ = "0.1.0"
__all__ = ["Result", "__version__", "evaluate"]


def __getattr__(name: str) -> object:
    """Loads the library when it is first used, so that workers of a cluster import only what they need."""
    if name in ("evaluate", "Result"):
        return getattr(import_module("vigilog.engine.evaluate"), name)
    raise AttributeError(f"module 'vigilog' has no attribute {name!r}")
