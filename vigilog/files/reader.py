"""Reads text files row by row. Whatever is wrong with a row is a DataError that names file, line and column."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, TextIO

from vigilog.core.errors import DataError
from vigilog.core.values import MAX_NUMBER, MIN_NUMBER, Row, Type
from vigilog.files.place import Place

NULLARY = "()"


def rows(place: Place) -> Iterator[Row]:
    """The rows of a text file, as values."""
    for path in files(place):
        yield from _rows(place, path)


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


def _rows(place: Place, path: Path) -> Iterator[Row]:
    try:
        with path.open(encoding="utf-8-sig", newline="" if place.quoted else "\n") as file:
            read = _json if place.format == "json" else _quoted if place.quoted else _plain
            yield from read(place, path, file)
    except OSError as reason:
        raise unreadable(place, path, reason) from None
    except UnicodeDecodeError:
        raise _not_utf8(path) from None


def _plain(place: Place, path: Path, file: TextIO) -> Iterator[Row]:
    parsers = [parser(type_) for type_ in place.types]
    delimiter, width = place.delimiter, len(parsers)
    for number, line in enumerate(file, start=1):
        line = line[:-1] if line.endswith("\n") else line
        line = line[:-1] if line.endswith("\r") else line
        if number == 1 and place.headers:
            continue
        fields = line.split(delimiter) if width > 1 else [line]
        if len(fields) != width:
            fields = _other_width(place, path, number, fields)
        try:
            yield tuple([parse(field) for parse, field in zip(parsers, fields, strict=True)])
        except ValueError:
            raise _bad_value(place, path, number, fields) from None


def _other_width(place: Place, path: Path, number: int, fields: list[str]) -> list[str]:
    if not place.types and fields == [NULLARY]:
        return []
    columns = ", ".join(place.columns)
    wanted = f"{len(place.columns)} ({columns})" if columns else f"none (a line {NULLARY} if it holds)"
    hint = "" if len(fields) > 1 or len(place.columns) < 2 else f"; columns are separated by {_named(place.delimiter)}"
    raise DataError(f"{path}:{number}: has {len(fields)} columns, but {place.relation} has {wanted}{hint}", "columns")


def _quoted(place: Place, path: Path, file: TextIO) -> Iterator[Row]:
    parsers = [parser(type_) for type_ in place.types]
    csv.field_size_limit(2**31 - 1)
    reader = csv.reader(file, delimiter=place.delimiter, strict=True)
    try:
        for index, fields in enumerate(reader):
            number = reader.line_num
            if index == 0 and place.headers:
                continue
            fields = fields or [""]
            if len(fields) != len(parsers):
                fields = _other_width(place, path, number, fields)
            try:
                yield tuple([parse(field) for parse, field in zip(parsers, fields, strict=True)])
            except ValueError:
                raise _bad_value(place, path, number, fields) from None
    except csv.Error as reason:
        raise DataError(f"{path}:{reader.line_num}: {reason}", "columns") from None


def _json(place: Place, path: Path, file: TextIO) -> Iterator[Row]:
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line, parse_float=_decimal, parse_int=_integer, parse_constant=_no_constant)
        except (ValueError, RecursionError) as reason:
            raise DataError(f"{path}:{number}: is not JSON: {reason}", "value") from None
        if not isinstance(record, dict):
            raise DataError(f"{path}:{number}: a line holds an object with the columns as keys", "value")
        cells = [record.get(column) for column in place.columns]
        if None in cells:
            if place.skip_nulls:
                continue
            raise null_error(f"{path}:{number}", place, place.columns[cells.index(None)])
        row = []
        for column, type_, cell in zip(place.columns, place.types, cells, strict=True):
            try:
                row.append(type_.from_json(cell))
            except ValueError as reason:
                raise DataError(f"{path}:{number}: column {column} of {place.relation}: {reason}", "value") from None
        yield tuple(row)


def null_error(where: str, place: Place, column: str) -> DataError:
    hint = f"write .input {place.relation}(nulls=skip) to leave such rows out"
    return DataError(f"{where}: column {column} of {place.relation} is null; there are no nulls ({hint})", "null")


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
            return DataError(f"{path}:{number}: column {column} of {place.relation}: {reason}", "value")
    raise AssertionError("a row is refused only for one of its columns")


def _not_utf8(path: Path) -> DataError:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as reason:
                return DataError(f"{path}:{number}: is not UTF-8 text (byte {line[reason.start]:#04x})", "encoding")
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
