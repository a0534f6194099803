"""Reads text files row by row. Whatever is wrong with a row is a DataError that names file, line and column."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, TextIO

from vigilog.core.errors import DataError, counted
from vigilog.core.values import MAX_NUMBER, MIN_NUMBER, Row, Type
from vigilog.files.formats import looks
from vigilog.files.place import Place

NULLARY = "()"
_BEGINNING = 1 << 16  # bytes
_SIGNED = 16  # bytes that tell what kind of file it is

Record = tuple[int, list[str]]
Order = tuple[int, ...]  # for each column of a relation which column of the file it is


class Rows:
    """The rows of text files, as values; `read` of their `size` bytes are behind them, as far as files have a size."""

    def __init__(self, place: Place) -> None:
        self.place, self.size, self._before = place, 0, 0
        self._file: TextIO | None = None

    @property
    def read(self) -> int:
        with suppress(OSError, ValueError):  # a pipe has no position, a closed file neither
            return self._before + os.lseek(self._file.fileno(), 0, os.SEEK_CUR) if self._file is not None else self._before
        return self._before

    def __iter__(self) -> Iterator[Row]:
        place, paths = self.place, files(self.place)
        _ensure_no_folders(place, paths)
        sizes = [_size(path) for path in paths]
        self.size, self._before = sum(sizes), 0
        for path, size in zip(paths, sizes, strict=True):
            with opened(place, path) as self._file:
                yield from TEXTS[place.format](place, path, self._file)
            self._file = None
            self._before += size


def rows(place: Place) -> Iterable[Row]:
    """The rows of a text file, as values."""
    return Rows(place)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # reading it will say what is wrong
        return 0


def _ensure_no_folders(place: Place, paths: list[Path]) -> None:
    if not paths and any(inner.is_dir() for inner in place.path.iterdir() if inner.name[0] not in "._"):
        raise DataError(
            f"{place.path}: has folders and no files for {place.relation}; text is read from the files of one folder", "unreadable"
        )


def files(place: Place) -> list[Path]:
    """The file itself, or the files of a folder in order; hidden ones and those that begin with `_` do not count."""
    path = place.path
    try:
        if path.is_dir():
            return sorted(inner for inner in path.iterdir() if inner.is_file() and inner.name[0] not in "._")
        path.stat()
    except (OSError, ValueError) as reason:
        raise unreadable(place, path, reason) from None
    return [path]


def unreadable(place: Place, path: Path, reason: Exception) -> DataError:
    what = reason.strerror if isinstance(reason, OSError) and reason.strerror else str(reason)
    return DataError(f"{path}: cannot be read for {place.relation}: {what}", "unreadable")


@contextmanager
def opened(place: Place, path: Path) -> Iterator[TextIO]:
    try:
        with io.BufferedReader(io.FileIO(path), _BEGINNING) as raw:
            beginning = raw.peek()
            _check_text(path, beginning)
            _check_line_ends(place, path, beginning)
            with io.TextIOWrapper(raw, encoding="utf-8-sig", newline="\n") as file:
                yield file
    except OSError as reason:
        raise unreadable(place, path, reason) from None
    except UnicodeDecodeError:
        raise _not_utf8(path) from None


def _check_text(path: Path, beginning: bytes) -> None:
    """Refuses what begins like a file of another kind and has a NUL, as text never does: its bytes may all be UTF-8 by chance."""
    if b"\x00" in beginning and (kind := looks(beginning)):
        raise DataError(f"{path}: is not UTF-8 text{kind}", "encoding")


def _check_line_ends(place: Place, path: Path, beginning: bytes) -> None:
    unquoted = re.sub(b'"[^"]*"?', b"", beginning) if place.quoted else beginning
    if b"\n" not in unquoted and re.search(rb"\r(?!\Z)", unquoted):
        raise DataError(f"{path}:1: its lines end in CR alone; they must end in LF or CR LF", "encoding")


def ensure_closed(place: Place) -> None:
    """Raises DataError if a quote in a text with quoted fields is never closed: Spark takes all that follows it for one field."""
    for path in files(place):
        with opened(place, path) as file:
            quotes = sum(part.count(b'"') for part in iter(lambda: file.buffer.read(1 << 20), b""))
        if quotes % 2:  # or one stands inside a field without quotes, where it means itself
            with opened(place, path) as file:
                for _ in _records(place, path, file):
                    pass


# -- headers


def orders(place: Place) -> dict[Order, list[Path]]:
    """The files of a text source by the order in which they have the relation's columns."""
    by_order: dict[Order, list[Path]] = {}
    for path in files(place):
        with opened(place, path) as file:
            by_order.setdefault(order_of(place, path, file), []).append(path)
    return by_order


def order_of(place: Place, source: Path | str, lines: Iterable[str]) -> Order:
    """The order of columns that the beginning of a text tells."""
    return same_order(place) if place.format == "json" else _take_header(place, source, _records(place, source, lines))


def same_order(place: Place) -> Order:
    return tuple(map(place.fields.index, place.columns))


def _take_header(place: Place, source: Path | str, records: Iterator[Record]) -> Order:
    """Takes the header off a text's records, if there is to be one, and gives the order that it tells."""
    number, header = next(records, (0, [])) if place.headers else (0, [])
    return _named_order(place, header, f"{source}:{number}") if number and place.columns else same_order(place)


def _named_order(place: Place, header: Sequence[str], where: str) -> Order:
    """Where a header has the relation's columns. Neither case counts nor what cannot stand in a name: `Order ID` is order_id."""
    for spelled in (str, _folded):
        wanted, given = [spelled(name) for name in place.fields], [spelled(name) for name in header]
        if sorted(given) == sorted(set(wanted)):
            return tuple(given.index(spelled(name)) for name in place.columns)
    shown = ", ".join(name if name.isprintable() else repr(name) for name in header)[:200]
    columns = ", ".join(place.fields)
    strange = len(header) == len(place.fields) and not {*map(_folded, header)} & {*map(_folded, place.fields)}
    hint = _separated(place, header) or ("; say headers=false if the file has no header" if strange else "")
    raise DataError(f"{where}: names the columns {shown}, but {place.relation} has {columns}{hint}", "columns")


def _folded(name: str) -> str:
    return re.sub(r"\W+", "_", name.strip()).lower()


# -- rows


def _records(place: Place, source: Path | str, lines: Iterable[str]) -> Iterator[Record]:
    """The fields of each record, with the number of its last line; empty lines between quoted records do not count."""
    if not place.quoted:
        for number, line in enumerate(lines, start=1):
            line = line[:-1] if line.endswith("\n") else line
            line = line[:-1] if line.endswith("\r") else line
            yield number, line.split(place.delimiter) if len(place.fields) > 1 else [line]
        return
    csv.field_size_limit(2**31 - 1)
    reader = csv.reader(lines, delimiter=place.delimiter, strict=True)
    try:
        for fields in reader:
            if fields:
                yield reader.line_num, fields
    except csv.Error as reason:
        causes = {"new-line": "a CR stands outside quotes", "unexpected end": "a quote before this is never closed"}
        what = next((told for mark, told in causes.items() if mark in str(reason)), reason)
        raise DataError(f"{source}:{reader.line_num}: {what}", "columns") from None


def _rows(place: Place, path: Path, file: TextIO) -> Iterator[Row]:
    parsers = [parser(type_) for type_ in place.types]
    width = len(place.fields)
    records = _records(place, path, file)
    order = _take_header(place, path, records)
    moved = order != tuple(range(width))
    absent = place.columns.index(place.absent) if place.absent else None
    blank = {place.columns.index(column): type_text for column, type_text in _blank_texts(place).items()}
    for number, fields in records:
        if len(fields) != width:
            fields = _other_width(place, path, number, fields)
        elif moved:
            fields = [fields[index] for index in order]
        if absent is not None and not fields[absent]:
            continue
        if blank:
            fields = [field or blank.get(column, field) for column, field in enumerate(fields)]
        try:
            yield tuple([parse(field) for parse, field in zip(parsers, fields, strict=True)])
        except ValueError:
            raise _bad_value(place, path, number, fields) from None


def _blank_texts(place: Place) -> dict[str, str]:
    """The texts that stand for empty cells of columns."""
    types = dict(zip(place.columns, place.types, strict=True))
    return {column: types[column].text(value) for column, value in place.blanks.items()}


def _other_width(place: Place, path: Path, number: int, fields: list[str]) -> list[str]:
    if not place.types and fields == [NULLARY]:
        return []
    columns = ", ".join(place.fields)
    wanted = f"{len(place.fields)} ({columns})" if columns else f"none (a line {NULLARY} if it holds)"
    width = counted(len(fields), "column")
    raise DataError(f"{path}:{number}: has {width}, but {place.relation} has {wanted}{_separated(place, fields)}", "columns")


def _separated(place: Place, fields: Sequence[str]) -> str:
    """A hint for a line that seems to be separated by something else."""
    return "" if len(fields) > 1 or len(place.fields) < 2 else f"; columns are separated by {_named(place.delimiter)}"


def _json(place: Place, path: Path, file: TextIO) -> Iterator[Row]:
    for number, line in enumerate(file, start=1):
        if line.strip():
            where = f"{path}:{number}"
            row = row_of(place, where, json_object(where, line))
            if row is not None:
                yield row


def json_object(where: str, line: str) -> dict[str, Any]:
    """The object of a line; `where` it is, an error says."""
    try:
        record = json.loads(line, parse_float=_decimal, parse_int=_integer, parse_constant=_no_constant)
    except (ValueError, RecursionError) as reason:
        what = f"{reason.msg} (character {reason.pos + 1})" if isinstance(reason, json.JSONDecodeError) else reason
        raise DataError(f"{where}: is not JSON: {what}", "value") from None
    if not isinstance(record, dict):
        raise DataError(f"{where}: a line holds an object with the columns as keys", "value")
    return record


def row_of(place: Place, where: str, record: Mapping[str, Any]) -> Row | None:
    """The row that an object says; None if it says that there is none, or one that is to be skipped."""
    if place.absent and record.get(place.absent) is None:
        return None
    cells = [record.get(column) for column in place.columns]
    if None in cells and place.blanks:
        given = {
            column: type_.to_json(place.blanks[column])
            for column, type_ in zip(place.columns, place.types, strict=True)
            if column in place.blanks
        }
        cells = [given.get(column) if cell is None else cell for column, cell in zip(place.columns, cells, strict=True)]
    if None in cells:
        if place.skip_nulls:
            return None
        column = place.columns[cells.index(None)]
        raise null_error(where, place, column, missing=column not in record)
    row = []
    for column, type_, cell in zip(place.columns, place.types, cells, strict=True):
        try:
            row.append(type_.from_json(cell))
        except ValueError as reason:
            raise bad_cell(place, where, column, reason) from None
    return tuple(row)


def bad_cell(place: Place, where: str, column: str, reason: ValueError) -> DataError:
    return DataError(f"{where}: column {column} of {place.relation}: {reason}", "value")


TEXTS: dict[str, Callable[[Place, Path, TextIO], Iterator[Row]]] = {"file": _rows, "csv": _rows, "json": _json}


def null_error(where: str, place: Place, column: str, *, missing: bool = False) -> DataError:
    what = f"has no key {column} for {place.relation}" if missing else f"column {column} of {place.relation} is null; there are no nulls"
    type_ = dict(zip(place.columns, place.types, strict=True)).get(column, "")
    ways = f'optional="{column}: {type_}" makes a relation {place.relation}_{column} of the column, nulls="{column}=…" gives a value'
    return DataError(f"{where}: {what} (options of .input: {ways}, nulls=skip leaves such rows out)", "null")


def parser(type_: Type) -> Callable[[str], Any]:
    """`type_.parse`, with a short way for the commonest types."""
    if type_.kind == "number":

        def number(text: str) -> Any:
            if text.isascii() and (text.isdigit() or (text[:1] == "-" and text[1:].isdigit())):
                value = int(text)
                if MIN_NUMBER <= value <= MAX_NUMBER:
                    return value
            return type_.parse(text)

        return number
    if type_.kind == "symbol":

        def symbol(text: str) -> str:
            if "\x00" in text:
                raise ValueError
            return text

        return symbol
    return type_.parse


def _bad_value(place: Place, path: Path, number: int, fields: Sequence[str]) -> DataError:
    for column, type_, field in zip(place.columns, place.types, fields, strict=True):
        try:
            type_.parse(field)
        except ValueError as reason:
            header = not place.headers and sorted(map(_folded, fields)) == sorted(map(_folded, place.columns))
            hint = "; say headers=true if the first line names the columns" if header else ""
            return DataError(f"{path}:{number}: column {column} of {place.relation}: {reason}{hint}", "value")
    raise AssertionError("a row is refused only for one of its columns")


def _not_utf8(path: Path) -> DataError:
    with path.open("rb") as file:
        kind = looks(file.read(_SIGNED))
        file.seek(0)
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as reason:
                return DataError(f"{path}:{number}: is not UTF-8 text (byte {line[reason.start]:#04x}){kind}", "encoding")
    raise AssertionError("the file was not UTF-8 a moment ago")


def _decimal(text: str) -> Decimal | str:
    try:
        return Decimal(text)
    except ArithmeticError:
        return text  # no type takes it, and the error shows it


def _integer(text: str) -> int | str:
    return int(text) if len(text) < 400 else text


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _named(delimiter: str) -> str:
    return {"\t": "a tab", ",": "a comma", " ": "a space"}.get(delimiter, repr(delimiter))
