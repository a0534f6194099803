"""Rows that are too many for the log: immutable Parquet files, each named by an entry together with its sum."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vigilog.core.errors import DataError
from vigilog.core.extras import ARROW
from vigilog.core.values import Row, Type

if TYPE_CHECKING:
    import pyarrow as pa


class Segments:
    """The folder of segments. A segment is written, and on the disk, before the commit that names it. Arrow, which takes a while to load, is loaded when there is one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, relation: str, columns: Sequence[str], types: Sequence[Type], rows: Sequence[Row]) -> dict[str, Any]:
        import pyarrow.parquet as pq

        from vigilog.core.arrow import to_arrow

        name = f"{relation}-{secrets.token_hex(8)}.parquet"
        path = self.folder / name
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            pq.write_table(to_arrow(columns, types, rows), path, compression="zstd")
            with path.open("rb") as file:
                os.fsync(file.fileno())
        except OSError as reason:
            with suppress(OSError):
                path.unlink()
            raise DataError(f"{path} cannot be written ({reason.strerror or reason}); nothing was changed", "disk") from None
        return {"segment": name, "rows": len(rows), "sum": _sum(path)}

    def check(self, reference: dict[str, Any]) -> Path:
        """Where a segment is. Raises DataError if it is not as it was written."""
        path = self.folder / str(reference["segment"])
        if not path.is_file() or _sum(path) != reference["sum"]:
            raise DataError(f"{path} is {'damaged' if path.is_file() else 'missing'}; restore a backup (vigilog restore)", "damaged")
        return path

    def remove(self, reference: dict[str, Any]) -> None:
        (self.folder / str(reference["segment"])).unlink(missing_ok=True)

    def keep_only(self, names: Collection[str]) -> None:
        """Removes all other segments."""
        for path in self.folder.iterdir():
            if path.name not in names:
                path.unlink(missing_ok=True)

    def read(self, reference: dict[str, Any], types: Sequence[Type]) -> Iterable[Row]:
        ARROW.need(f"the rows of {reference['segment']} are in Parquet")
        from vigilog.core.arrow import from_arrow

        return from_arrow(types, self.table(reference)) if types else [()]

    def table(self, reference: dict[str, Any]) -> pa.Table:
        """A segment as it is. Raises DataError if it is not as it was written."""
        import pyarrow.parquet as pq

        return pq.read_table(self.check(reference))


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
