"""Which format a source has, where nobody states it: by its name, or by its first bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from vigilog.core.errors import DataError
from vigilog.files.place import is_uri

ENDINGS = {
    ".facts": "file",
    ".tsv": "file",
    ".txt": "file",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".orc": "orc",
}
DELTA_LOG = "_delta_log"  # the folder that makes a folder of Parquet files a Delta table

_UNPACK = "unpack it first"
_AS_PARQUET = "write it as Parquet or CSV"
_SIGNATURES: dict[bytes, tuple[str, str]] = {  # how files of a kind begin: its name, and how such a file is read
    b"PAR1": ("a Parquet file", "read it with the option IO=parquet"),
    b"ORC": ("an ORC file", "read it with the option IO=orc"),
    b"ARROW1": ("an Arrow file", _AS_PARQUET),
    b"Obj\x01": ("an Avro file", _AS_PARQUET),
    b"SQLite format 3\x00": ("an SQLite database", "write its table as CSV"),
    b"PK\x03\x04": ("a zip archive or a workbook of a spreadsheet", "unpack it, or save it as CSV"),
    b"\x1f\x8b": ("a gzip archive", _UNPACK),
    b"BZh": ("a bzip2 archive", _UNPACK),
    b"\xfd7zXZ\x00": ("an xz archive", _UNPACK),
    b"\x28\xb5\x2f\xfd": ("a Zstandard archive", _UNPACK),
    b"\xff\xfe": ("text in UTF-16", "save it as UTF-8"),
    b"\xfe\xff": ("text in UTF-16", "save it as UTF-8"),
}


def looks(beginning: bytes) -> str:
    """What bytes that are no UTF-8 text look like, with advice, to end a sentence; nothing if they look like nothing known.

    >>> looks(b"PAR1...")
    '; it looks like a Parquet file: read it with the option IO=parquet'
    """
    for signature, (kind, advice) in _SIGNATURES.items():
        if beginning.startswith(signature):
            return f"; it looks like {kind}: {advice}"
    return ""


def format_of(location: str) -> str | None:
    """The format that the name of a source tells: by how it begins or ends or, of a folder, by how the files in it end. None if it tells none.

    >>> format_of("lake/orders.parquet"), format_of("jdbc:postgresql://host/shop"), format_of("orders")
    ('parquet', 'jdbc', None)
    """
    if location.startswith("jdbc:"):
        return "jdbc"
    path = Path(location)
    try:
        if is_uri(location) or not path.is_dir():
            return ENDINGS.get(path.suffix.lower())
        if (path / DELTA_LOG).is_dir():
            return "delta"
        return ENDINGS.get(path.suffix.lower()) or _format_of_files(path)
    except (OSError, ValueError):
        return None  # reading it will say what is wrong


def _format_of_files(folder: Path) -> str | None:
    formats = {ENDINGS[suffix] for file in _nearest_files(folder) if (suffix := file.suffix.lower()) in ENDINGS}
    if len(formats) > 1:
        raise DataError(
            f"{folder}: has files of several formats ({', '.join(sorted(formats))}); the files of a source have one", "unreadable"
        )
    return next(iter(formats), None)


def _nearest_files(folder: Path) -> Iterator[Path]:
    """The files of a folder that count or, if there are none, those of the first folder in it that has some: Spark puts partitions into folders."""
    for inner, folders, names in os.walk(folder):
        if visible := [name for name in names if name[0] not in "._"]:
            return (Path(inner, name) for name in visible)
        folders[:] = sorted(name for name in folders if name[0] not in "._")
    return iter(())
