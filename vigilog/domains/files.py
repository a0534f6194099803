"""Files of a folder as tables: CSV with a header, JSON (an array of objects, or one object a line), Parquet, dBASE. A table is a file's name without its end."""

from __future__ import annotations

import csv
import datetime
import json
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from vigilog.core.errors import did_you_mean
from vigilog.core.extras import ARROW
from vigilog.core.values import BOOLEAN, DATE, FLOAT, NUMBER, SYMBOL, TIMESTAMP, Type
from vigilog.domains.domain import Columns, DomainError
from vigilog.domains.retries import TransientError
from vigilog.domains.tables import Tables

ENDS = (".csv", ".json", ".parquet", ".dbf")


class Files(Tables):
    """A folder whose files are tables."""

    def location(self, table: str) -> Path:
        """The file that is a table. Raises DomainError if there is none."""
        folder = Path(self.options["path"])
        for end in ENDS:
            if (path := folder / f"{table}{end}").is_file():
                return path
        there = sorted(path.stem for path in folder.glob("*") if path.suffix in ENDS) if folder.is_dir() else []
        hint = did_you_mean(table, there) or (f"there are {', '.join(there)}" if there else f"{folder} has no tables")
        raise DomainError(self.name, f"there is no table {table} in {folder} ({hint})")

    def columns(self, table: str) -> Columns:
        path = self.location(table)
        try:
            match path.suffix:
                case ".csv":
                    with path.open(newline="", encoding="utf-8-sig") as file:
                        return tuple((name, SYMBOL) for name in next(csv.reader(file), []))
                case ".dbf":
                    return tuple((name, type_) for name, type_, _ in _fields(path.read_bytes()))
                case ".parquet":
                    ARROW.need(f"{path} is read")
                    from pyarrow import parquet

                    return tuple((field.name, _arrow_type(str(field.type))) for field in parquet.read_schema(path))
                case _:
                    raise DomainError(
                        self.name, f"the columns of {path} have no types; state them: .table {self.name}:{table}(column: type, …)"
                    )
        except (OSError, ValueError, UnicodeDecodeError) as reason:
            raise TransientError(self.name, f"{path} cannot be read: {reason}") from None  # it may be written just now

    def rows(self, table: str, columns: Columns) -> Sequence[Sequence[object]]:
        path = self.location(table)
        try:
            match path.suffix:
                case ".csv":
                    with path.open(newline="", encoding="utf-8-sig") as file:
                        records: list[dict[str, object]] = list(csv.DictReader(file))
                    return [[_parsed(type_, row.get(name)) for name, type_ in columns] for row in records]
                case ".json":
                    return [[_told(type_, row.get(name)) for name, type_ in columns] for row in _objects(path)]
                case ".dbf":
                    there = {name: place for place, (name, _) in enumerate(self.columns(table))}
                    return [[_parsed(type_, row[there[name]]) for name, type_ in columns] for row in _records(path.read_bytes())]
                case _:
                    from pyarrow import parquet

                    names = [name for name, _ in columns]
                    read = parquet.read_table(path, columns=names).to_pydict()
                    return list(zip(*(read[name] for name in names), strict=True))
        except (OSError, ValueError, KeyError, UnicodeDecodeError) as reason:
            raise TransientError(self.name, f"{path} cannot be read: {reason}") from None  # it may be written just now


def _parsed(type_: Type, cell: object) -> object:
    """A text of a file as a value; one that is missing is a null."""
    return type_.parse(cell) if isinstance(cell, str) else cell


def _told(type_: Type, cell: object) -> object:
    return None if cell is None else type_.from_json(cell)


def _objects(path: Path) -> list[dict[str, object]]:
    text = path.read_text(encoding="utf-8-sig")
    whole = json.loads(text) if text.lstrip().startswith("[") else [json.loads(line) for line in text.splitlines() if line.strip()]
    if not all(isinstance(row, dict) for row in whole):
        raise ValueError("it is no list of objects")
    return whole


def _arrow_type(name: str) -> Type:
    kinds = {
        "string": SYMBOL,
        "large_string": SYMBOL,
        "int64": NUMBER,
        "int32": NUMBER,
        "double": FLOAT,
        "bool": BOOLEAN,
        "date32[day]": DATE,
    }
    if name.startswith("timestamp"):
        return TIMESTAMP
    if name not in kinds:
        raise ValueError(f"it has a column of type {name}")
    return kinds[name]


_DBASE = {b"C": SYMBOL, b"D": DATE, b"L": BOOLEAN, b"F": FLOAT}


def _fields(data: bytes) -> Iterator[tuple[str, Type, int]]:
    """The columns of a dBASE file with their lengths: 32 bytes each, behind a header of 32."""
    if len(data) < 33:
        raise ValueError("it is no dBASE file")
    (header,) = struct.unpack("<H", data[8:10])
    for start in range(32, header - 1, 32):
        if data[start : start + 1] == b"\r":
            return
        name = data[start : start + 11].split(b"\x00")[0].decode("ascii").lower()
        kind, length, decimals = data[start + 11 : start + 12], data[start + 16], data[start + 17]
        yield name, _DBASE.get(kind, FLOAT if decimals else NUMBER), length


def _records(data: bytes) -> Iterator[list[object]]:
    """The rows of a dBASE file that are not marked as deleted."""
    fields = list(_fields(data))
    number, header, size = struct.unpack("<IHH", data[4:12])
    for index in range(number):
        record = data[header + index * size : header + (index + 1) * size]
        if record[:1] == b"*":
            continue
        row, place = list[object](), 1
        for _, type_, length in fields:
            row.append(_cell(type_, record[place : place + length].decode("cp1252").strip()))
            place += length
        yield row


def _cell(type_: Type, text: str) -> object:
    match type_.kind:
        case "symbol":
            return text
        case "boolean":
            return None if text in ("", "?") else text in "TtYy"
        case "date":
            return datetime.date(int(text[:4]), int(text[4:6]), int(text[6:])) if text else None
        case _:
            return type_.parse(text) if text else None
