"""The Python functions that Spark's SQL calls where it has no expression that means the same.

A worker needs `vigilog.core` and `vigilog.language.functors` to run them: on one machine it has them, to a cluster `ship` sends them. For `match` it needs google-re2.
"""

from __future__ import annotations

import atexit
import math
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never
from weakref import WeakSet

from vigilog.core.arrow import cell_of, value_of
from vigilog.core.values import Type
from vigilog.language.functors import apply, exact_sum
from vigilog.language.patterns import matches
from vigilog.planning.applied import Applied
from vigilog.planning.sparksql import PythonFunction
from vigilog.spark.types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_equipped: WeakSet[SparkSession] = WeakSet()


def register(session: SparkSession, functions: dict[str, PythonFunction], registered: set[str]) -> None:
    """Makes the functions known to the session; `registered` are those it has already."""
    from pyspark.sql.functions import udf

    for name, function in functions.items():
        if name not in registered:
            session.udf.register(name, udf(_python(function), _returns(function), useArrow=True))
            registered.add(name)


def ship(session: SparkSession) -> None:
    """Sends the modules that the functions need to the workers of a cluster, once in a session."""
    if session not in _equipped:
        session.addArtifacts(str(_archive()), pyfile=True)
        _equipped.add(session)


@cache
def _archive() -> Path:
    """The modules of this package as a file; a session takes no second one of the same name."""
    root = Path(__file__).parents[2]
    folder = Path(tempfile.mkdtemp(prefix="vigilog-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archive = folder / "vigilog.zip"
    with zipfile.ZipFile(archive, "w") as package:
        for path in sorted(root.rglob("*.py")):
            package.write(path, path.relative_to(root.parent))
    return archive


def _returns(function: PythonFunction) -> str:
    return spark_type(function.result)


def _python(function: PythonFunction) -> Callable[..., Any]:
    match function.kind:
        case "functor":
            return functor(function.functor, function.result, function.args)
        case "match":
            return match
        case "sum":
            return float_sum
        case "mean":
            return float_mean
        case "applied":
            assert function.applied is not None, "it says what is applied"
            return applied(function.applied)
        case _:
            assert_never(function.kind)


def functor(name: str, result: Type, types: tuple[Type, ...]) -> Callable[..., Any]:
    """A functor over Spark's values: an unsigned number arrives, and leaves, as a Decimal; a set as a list, a tuple as a structure."""
    return _over_cells(types, result, lambda given: apply(name, result, types, given))


def applied(aggregate: Applied) -> Callable[..., Any]:
    """An aggregate over a set."""
    return _over_cells(aggregate.types, aggregate.type, aggregate.compute)


def _over_cells(types: tuple[Type, ...], result: Type, compute: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    readers, write = [value_of(type_) for type_ in types], cell_of(result)

    def function(*cells: Any) -> Any:
        if any(cell is None for cell in cells):
            return None
        value = compute([cell if read is None else read(cell) for read, cell in zip(readers, cells, strict=True)])
        return value if value is None or write is None else write(value)

    return function


def match(pattern: str | None, text: str | None) -> bool | None:
    return None if pattern is None or text is None else matches(pattern, text)


def float_sum(values: list[float] | None) -> float | None:
    try:
        total = exact_sum(values) if values is not None and len(values) else 0.0
    except OverflowError:
        return None
    return total if math.isfinite(total) else None


def float_mean(values: list[float] | None) -> float | None:
    if values is None or not len(values):
        return None
    total = float_sum(values)
    return None if total is None else total / len(values) + 0.0  # which is never -0
