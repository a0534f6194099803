"""Writes results as text. A folder of results appears whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from vigilog.core.errors import DataError
from vigilog.core.values import Row, row_text
from vigilog.files.format import Place
from vigilog.files.reader import NULLARY


def write(place: Place, rows: Iterable[Row], file: TextIO) -> None:
    """Writes rows, in the order given, in the place's format."""
    if place.format == "json":
        for row in rows:
            record = {c: t.to_json(v) for c, t, v in zip(place.columns, place.types, row, strict=True)}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
        return
    line = line_writer(place)
    if place.headers:
        file.write(line(place.columns))
    for row in rows:
        file.write(line(row_text(place.types, row)))


def line_writer(place: Place) -> Callable[[Iterable[str]], str]:
    """From a row's texts to its line."""
    delimiter = place.delimiter
    if place.quoted:

        def quoted(fields: Iterable[str]) -> str:
            buffer = io.StringIO()
            csv.writer(buffer, delimiter=delimiter, lineterminator="\n").writerow(fields)
            return buffer.getvalue()

        return quoted

    def plain(fields: Iterable[str]) -> str:
        fields = tuple(fields)
        text = delimiter.join(fields) if fields else NULLARY
        if text.count(delimiter) != max(len(fields) - 1, 0) or "\n" in text or "\r" in text:
            raise unwritable(place)
        return text + "\n"

    return plain


def unwritable(place: Place) -> DataError:
    return DataError(
        f"{place.location}: a symbol of {place.relation} holds the delimiter or a line break; write .output {place.relation}(rfc4180=true) to have fields quoted",
        "value",
    )


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """A new folder to write into. At the end its files move into `folder`; after an error they are gone."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=".vigilog-", dir=folder))
    except OSError as reason:
        raise DataError(f"{folder}: cannot be written: {reason.strerror}", "unwritable") from None
    try:
        yield stage
        for file in sorted(stage.rglob("*")):
            if file.is_file():
                target = folder / file.relative_to(stage)
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(file, target)
    except OSError as reason:
        raise DataError(f"{folder}: cannot be written: {reason.strerror or reason}", "unwritable") from None
    finally:
        shutil.rmtree(stage, ignore_errors=True)
