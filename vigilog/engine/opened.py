"""An evaluation by a database: for programs that ask sources, or have constrained relations, which is more than rules over rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from vigilog.core.errors import DataError
from vigilog.core.values import Row, sorted_rows
from vigilog.engine.database import Database
from vigilog.files.place import Place
from vigilog.files.writer import write_file
from vigilog.language.program import Program


class Opened:
    """The relations of a program as a database has them when it is opened."""

    def __init__(self, program: Program, sources: Mapping[str, Iterable[Row] | Place], engine: str) -> None:
        self.database = Database(program, sources, "external", engine)
        self.stats = self.database.stats

    def count(self, relation: str) -> int:
        return len(self.database.view(relation))

    def rows(self, relation: str) -> Iterator[Row]:
        return iter(sorted_rows(self.database.view(relation)))

    def write(self, place: Place, path: Path | None) -> None:
        if path is None or not place.text:
            raise DataError(
                f"{place.relation} is written as {place.format}, and a program with domains or conditions writes text alone", "unsupported"
            )
        write_file(place, self.rows(place.relation), path)

    def close(self) -> None:
        self.database.close()
