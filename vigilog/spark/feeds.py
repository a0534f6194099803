"""A change feed: Parquet files with the columns of a view, what happened to the row (`_change`: insert or delete), and in which transaction (`_tx`)."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from vigilog.core.errors import DataError
from vigilog.core.extras import ARROW
from vigilog.core.values import Row, Type
from vigilog.files.place import is_uri
from vigilog.spark.session import cause, session
from vigilog.spark.values import to_frame

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

CHANGE, TX = "_change", "_tx"


@dataclass(frozen=True)
class Part:
    """Rows that came or went in one transaction: here, as a frame, or where Spark wrote them."""

    tx: int
    change: str
    rows: list[Row] | DataFrame | str


class Feed:
    """The folder of a feed. On this machine each delivery is one file; elsewhere it is a folder that Spark writes."""

    def __init__(self, target: str, columns: Sequence[str], types: Sequence[Type]) -> None:
        ARROW.need("a change feed is of Parquet files")
        self.target, self.columns, self.types = target, columns, types
        for name in (CHANGE, TX):
            if name in columns:
                raise DataError(f"a change feed has a column {name} of its own, and so has the view", "columns")

    def has(self, name: str) -> bool:
        """Whether a delivery is there, on this machine; elsewhere nobody can tell whether it is whole."""
        return not is_uri(self.target) and (Path(self.target) / f"{name}.parquet").exists()

    def write(self, name: str, parts: Sequence[Part]) -> None:
        """Writes a delivery, whole or not at all; one of the same name is written again."""
        import pyarrow as pa

        try:
            if all(isinstance(part.rows, list) for part in parts) and not is_uri(self.target):
                self._write_file(name, pa.concat_tables([self._table(part) for part in parts]))
            else:
                self._write_frame(name, parts)
        except OSError as reason:
            raise DataError(f"{self.target} cannot be written: {reason.strerror or reason}", "unwritable") from None

    def _table(self, part: Part) -> pa.Table:
        import pyarrow as pa

        from vigilog.core.arrow import to_arrow

        assert isinstance(part.rows, list), "rows are here"
        table = to_arrow(self.columns, self.types, part.rows)
        table = table.append_column(CHANGE, pa.array([part.change] * len(part.rows), pa.string()))
        return table.append_column(TX, pa.array([part.tx] * len(part.rows), pa.int64()))

    def _write_file(self, name: str, table: pa.Table) -> None:
        import pyarrow.parquet as pq

        folder = Path(self.target)
        folder.mkdir(parents=True, exist_ok=True)
        hidden = folder / f"_{name}-{secrets.token_hex(4)}"
        try:
            pq.write_table(table, hidden, compression="zstd")
            self._publish(hidden, folder / f"{name}.parquet")
        finally:
            hidden.unlink(missing_ok=True)

    def _publish(self, hidden: Path, path: Path) -> None:
        """Shows a file under its name, when it is on the disk."""
        with hidden.open("rb") as file:
            os.fsync(file.fileno())
        hidden.replace(path)
        handle = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def _write_frame(self, name: str, parts: Sequence[Part]) -> None:
        """Rows that only Spark has."""
        frame = reduce(lambda left, right: left.unionAll(right), map(self._frame, parts))
        local = not is_uri(self.target)
        folder = f"{self.target.rstrip('/')}/{f'_{name}-{secrets.token_hex(4)}' if local else f'{name}.parquet'}"
        try:
            (frame.coalesce(1) if local else frame).write.mode("overwrite").parquet(
                Path(folder).absolute().as_uri() if local else folder, compression="zstd"
            )
            if local:
                self._publish(next(Path(folder).glob("part-*.parquet")), Path(self.target) / f"{name}.parquet")
        except OSError:
            raise
        except Exception as reason:
            raise DataError(f"{self.target} cannot be written: {cause(reason)}", "unwritable") from None
        finally:
            if local:
                shutil.rmtree(folder, ignore_errors=True)

    def _frame(self, part: Part) -> DataFrame:
        from pyspark.sql import functions as F

        from vigilog.core.arrow import to_arrow

        if isinstance(part.rows, str):
            frame = session().read.parquet(part.rows)
        elif isinstance(part.rows, list):
            frame = to_frame(session(), self.types, to_arrow(self.columns, self.types, part.rows))
        else:
            frame = part.rows
        named = frame.toDF(*(self.columns or frame.columns))
        return named.select("*", F.lit(part.change).alias(CHANGE), F.lit(part.tx).cast("bigint").alias(TX))
