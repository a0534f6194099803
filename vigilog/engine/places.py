"""What `.input` and `.output` say, with all defaults filled in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vigilog.files.place import Place, is_uri
from vigilog.language.syntax import Declaration, Directive, Program

_ENDING = {"csv": "csv", "json": "jsonl", "parquet": "parquet", "orc": "orc"}


def place(directive: Directive, declaration: Declaration, folder: str | Path) -> Place:
    """The place a directive names; relative paths are taken from `folder`."""
    option = directive.option
    format_ = option.get("IO", "file")
    if format_ == "table":
        location = option.get("name", directive.relation)
    else:
        ending = _ENDING.get(format_) or {"input": "facts", "output": "csv"}[directive.kind]
        filename = option.get("filename", f"{directive.relation}.{ending}")
        location = filename if is_uri(filename) or Path(filename).is_absolute() else str(Path(folder) / filename)
    as_csv = "true" if format_ == "csv" else "false"
    return Place(
        relation=directive.relation,
        columns=declaration.columns,
        types=declaration.types,
        format=format_,
        location=location,
        delimiter=option.get("delimiter", "," if format_ == "csv" else "\t"),
        headers=option.get("headers", as_csv) == "true",
        quoted=option.get("rfc4180", as_csv) == "true",
        skip_nulls=option.get("nulls") == "skip",
    )


def inputs(program: Program, folder: str | Path) -> dict[str, Place]:
    """The sources of a checked program, by relation."""
    return {d.relation: place(d, program.relations[d.relation], folder) for d in program.directed("input")}


def outputs(program: Program, folder: str | Path) -> list[Place]:
    return [place(d, program.relations[d.relation], folder) for d in program.directed("output")]


def source_place(program: Program, relation: str, location: str, options: Mapping[str, str]) -> Place:
    """A source named by hand; its format is told by `IO`, or else by the ending of its name."""
    endings = {".csv": "csv", ".json": "json", ".jsonl": "json", ".parquet": "parquet", ".orc": "orc"}
    stated = {"IO": endings.get(Path(location).suffix, "file"), **options}
    stated["name" if stated["IO"] == "table" else "filename"] = location
    directive = Directive("input", relation, tuple(stated.items()))
    return place(directive, program.relations[relation], ".")
