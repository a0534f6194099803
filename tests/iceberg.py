"""An Iceberg catalog in a folder, and what other writers do to its tables that pyiceberg does not: rows deleted by their positions, in files beside the data."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, ManifestWriter, ManifestWriterV2
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _FastAppendFiles
from pyiceberg.typedef import Record


def options(folder: Path) -> dict[str, str]:
    """How a source names the catalog."""
    return {"IO": "iceberg", "catalog": "shop", "uri": f"sqlite:///{folder}/catalog.db"}


def catalog(folder: Path) -> Catalog:
    found = load_catalog("shop", uri=options(folder)["uri"], warehouse=(folder / "lake").as_uri())
    found.create_namespace_if_not_exists("shop")
    return found


class _Writer(ManifestWriterV2):
    """Of a manifest of deletions."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class _Deletions(_FastAppendFiles):
    """A snapshot with files of deletions."""

    def new_manifest_writer(self, spec: Any) -> ManifestWriter:
        return _Writer(spec, self._transaction.table_metadata.schema(), self.new_manifest_output(), self._snapshot_id, self._compression)


def delete_at(table: Table, path: str, *positions: int) -> None:
    """Deletes rows of a file by their positions, as engines do that merge on read."""
    target = Path(table.location().removeprefix("file://")) / "data" / f"deletes-{secrets.token_hex(4)}.parquet"
    schema = pa.schema(
        [
            pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": "2147483546"}),
            pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "2147483545"}),
        ]
    )
    pq.write_table(pa.table({"file_path": [path] * len(positions), "pos": sorted(positions)}, schema=schema), target)
    file = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=target.as_uri(),
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=len(positions),
        file_size_in_bytes=target.stat().st_size,
    )
    file.spec_id = 0
    with table.transaction() as transaction, _Deletions(Operation.APPEND, transaction, table.io) as snapshot:
        snapshot.append_data_file(file)
