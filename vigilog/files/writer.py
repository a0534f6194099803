"""Writes results as text. A folder of results appears whole or not at all."""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from vigilog.core.errors import DataError
from vigilog.core.values import Row, row_text
from vigilog.files.place import Place
from vigilog.files.reader import NULLARY


def write_file(place: Place, rows: Iterable[Row], path: Path) -> None:
    """Writes rows, in the order given, in the place's format."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(TEXTS[place.format](place, rows))


def _json_lines(place: Place, rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        record = {c: t.to_json(v) for c, t, v in zip(place.columns, place.types, row, strict=True)}
        yield json.dumps(record, ensure_ascii=False) + "\n"


def _lines(place: Place, rows: Iterable[Row]) -> Iterator[str]:
    line = line_writer(place)
    if place.headers:
        yield line(place.columns)
    for row in rows:
        yield line(row_text(place.types, row))


TEXTS: dict[str, Callable[[Place, Iterable[Row]], Iterator[str]]] = {"file": _lines, "csv": _lines, "json": _json_lines}


def line_writer(place: Place) -> Callable[[Iterable[str]], str]:
    """From a row's texts to its line."""
    delimiter = place.delimiter
    if place.quoted:

        def quoted(fields: Iterable[str]) -> str:
            fields = tuple(fields)
            return (delimiter.join(_quote(field, delimiter) for field in fields) if fields else NULLARY) + "\n"

        return quoted

    def plain(fields: Iterable[str]) -> str:
        fields = list(fields)
        text = delimiter.join(fields) if fields else NULLARY
        if fields and (text.split(delimiter) != fields or "\n" in text or "\r" in text):
            raise unwritable(place)
        return text + "\n"

    return plain


def _quote(field: str, delimiter: str) -> str:
    if field and not any(mark in field for mark in (delimiter, '"', "\n", "\r")):
        return field
    doubled = field.replace('"', '""')
    return f'"{doubled}"'


def unwritable(place: Place) -> DataError:
    options = "rfc4180=true" if len(place.delimiter) == 1 else 'rfc4180=true, delimiter=","'
    hint = f"write .output {place.relation}({options}) to have fields quoted"
    return DataError(f"{place.location}: a symbol of {place.relation} holds the delimiter or a line break; {hint}", "value")


class Stage:
    """Files and folders that appear together, or not at all.

    Each is written beside its place under a hidden name. `commit` moves them all into place; `discard` removes them,
    and the folders that were made for them.
    """

    def __init__(self) -> None:
        self.moves: list[tuple[Path, Path]] = []
        self.made: list[Path] = []

    def path(self, final: Path) -> Path:
        """Where to write what is to be at `final`."""
        try:
            if final.name in ("", ".", "..") or (final.is_dir() and not _is_dataset(final)):
                raise IsADirectoryError(21, "a folder is there")
            missing = [folder for folder in (final.parent, *final.parent.parents) if not folder.exists()]
            self.made += missing
            final.parent.mkdir(parents=True, exist_ok=True)
            if not os.access(final.parent, os.W_OK):
                raise PermissionError(13, "no permission to write there")
            hidden = final.with_name(f".vigilog-{uuid.uuid4().hex[:12]}")
            if len(os.fsencode(final.name)) > 255:
                raise OSError(36, "the file's name is too long")
        except (OSError, ValueError) as reason:
            raise unwritable_place(final, reason) from None
        self.moves.append((hidden, final))
        return hidden

    def commit(self) -> None:
        final = Path()
        try:
            for hidden, final in self.moves:
                if final.is_dir():
                    shutil.rmtree(final)
                hidden.replace(final)
        except OSError as reason:
            raise unwritable_place(final, reason) from None
        self.moves, self.made = [], []

    def discard(self) -> None:
        for hidden, _ in self.moves:
            with suppress(OSError, ValueError):
                if hidden.is_dir():
                    shutil.rmtree(hidden, ignore_errors=True)
                else:
                    hidden.unlink(missing_ok=True)
        for folder in self.made:
            with suppress(OSError, ValueError):
                folder.rmdir()


def _is_dataset(folder: Path) -> bool:
    """Whether a folder holds nothing but what Spark writes for one result."""
    return all(re.match(r"(part-|_SUCCESS|\.)", entry.name) for entry in folder.iterdir())


def unwritable_place(path: Path, reason: Exception) -> DataError:
    what = reason.strerror if isinstance(reason, OSError) and reason.strerror else str(reason)
    return DataError(f"{str(path)!r}: cannot be written: {what}".replace("'", ""), "unwritable")


@contextmanager
def staged() -> Iterator[Stage]:
    """A stage that is committed at the end, and discarded after an error."""
    stage = Stage()
    try:
        yield stage
        stage.commit()
    finally:
        stage.discard()
