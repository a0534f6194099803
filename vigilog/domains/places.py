"""Tables of domains that Spark reads by itself, where they are large: CSV and Parquet files, tables of PostgreSQL."""

from __future__ import annotations

import csv
from pathlib import Path

from vigilog.domains.domain import Columns, Domain, Options
from vigilog.domains.files import Files
from vigilog.domains.postgres import Postgres
from vigilog.domains.retries import Retrying
from vigilog.files.place import Place

LARGE_BYTES = 4 * 2**20  # of a table; smaller ones are here before Spark has planned


def place_of(domain: Domain, table: str, relation: str) -> Place | None:
    """Where Spark finds the rows of a table for a relation; None if it is small, or only this process can ask for it."""
    source = domain.domain if isinstance(domain, Retrying) else domain
    match source:
        case Files():
            columns, path = source.stated.get(table) or source.columns(table), source.location(table)
            if path.stat().st_size < LARGE_BYTES:
                return None
            if path.suffix == ".parquet":
                return _place(relation, columns, "parquet", str(path), source.options)
            return _csv(relation, columns, path, source.options) if path.suffix == ".csv" else None
        case Postgres():
            columns = source.stated.get(table) or source.columns(table)
            said = source.for_jdbc(table, columns, LARGE_BYTES)
            return None if said is None else _place(relation, columns, "jdbc", f"{source.name}: {table}", source.options, said)
        case _:
            return None


def _csv(relation: str, columns: Columns, path: Path, options: Options) -> Place | None:
    with path.open(newline="", encoding="utf-8-sig") as file:
        header = tuple(next(csv.reader(file), []))
    named = {name for name, _ in columns}
    return (
        _place(relation, columns, "csv", str(path), options, source=header)
        if named <= {*header} and len({*header}) == len(header)
        else None
    )


def _place(
    relation: str, columns: Columns, form: str, location: str, domain: Options, options: Options | None = None, source: tuple[str, ...] = ()
) -> Place:
    names, types = zip(*columns, strict=True)
    skip = domain.get("nulls") == "skip"
    as_text = form == "csv"
    return Place(relation, names, types, form, location, ",", as_text, as_text, skip, options or {}, source)
