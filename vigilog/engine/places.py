"""What `.input` and `.output` say, with all defaults filled in."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from vigilog.core.errors import DataError, Findings
from vigilog.core.secrets import without_secrets
from vigilog.files.formats import format_of
from vigilog.files.place import Place, is_uri
from vigilog.language.optional import blank_values
from vigilog.language.options import OF_SOURCE, check_options
from vigilog.language.program import Program
from vigilog.language.syntax import Directive

# How files end that a directive does not name. Text ends as in Soufflé, and all other formats need a name.
ENDINGS = {"csv": "csv", "json": "jsonl", "parquet": "parquet", "orc": "orc"}


def place(program: Program, directive: Directive, folder: str | Path) -> Place:
    """The place a directive names; relative paths are taken from `folder`. The relation of an optional column has the place of the one that it is a column of."""
    declaration = program.relations[directive.relation]
    owner = directive.option.get("of")
    if owner is not None:
        (of,) = (other for other in program.directed("input") if other.relation == owner)
        return optional_place(program, place(program, of, folder), directive.relation)
    option = directive.option
    format_ = option.get("IO", "file")
    form = option["format"] if format_ == "stream" else format_
    as_csv = "true" if form == "csv" else "false"
    quoted = option.get("rfc4180", as_csv) == "true"
    return Place(
        relation=directive.relation,
        columns=declaration.columns,
        types=declaration.types,
        format=format_,
        location=_location(directive, format_, folder),
        delimiter=option.get("delimiter", "," if quoted or form == "csv" else "\t"),
        headers=option.get("headers", as_csv) == "true",
        quoted=quoted,
        skip_nulls=option.get("nulls") == "skip",
        options=_named(directive) | {key: from_environment(value) for key, value in option.items() if key in OF_SOURCE.get(format_, ())},
        source=(*declaration.columns, *program.optional.get(directive.relation, ())),
        blanks=blank_values(directive, declaration),
    )


def optional_place(program: Program, owner: Place, relation: str) -> Place:
    """Where the rows of an optional column's relation are: with those of its owner, where it is not null."""
    declaration = program.relations[relation]
    named = {"dbtable": owner.relation} if owner.format == "jdbc" and "query" not in owner.options else {}
    columns = declaration.columns
    blanks = {column: value for column, value in owner.blanks.items() if column in columns}
    return replace(
        owner,
        relation=relation,
        columns=columns,
        types=declaration.types,
        absent=columns[-1],
        blanks=blanks,
        options={**named, **owner.options},
    )


def _named(directive: Directive) -> dict[str, str]:
    """What a source is called that has the relation's name if nothing else is said."""
    return {"name": directive.relation} if directive.option.get("IO") == "iceberg" else {}


def _location(directive: Directive, format_: str, folder: str | Path) -> str:
    option = directive.option
    if "iceberg" in (format_, option.get("format")):
        return f"Iceberg table {option.get('path') or option.get('name', directive.relation)}"
    if format_ == "table":
        return option.get("name", directive.relation)
    if format_ == "jdbc":
        what = "a query" if "query" in option else option.get("dbtable", directive.relation)
        return f"{without_secrets(option['url'])} ({what})"
    filename = option["path"] if format_ == "stream" else option.get("filename") or f"{directive.relation}.{_ending(directive, format_)}"
    return filename if is_uri(filename) or Path(filename).is_absolute() else str(Path(folder) / filename)


def _ending(directive: Directive, format_: str) -> str:
    return {"input": "facts", "output": "csv"}[directive.kind] if format_ in ("file", "stdout") else ENDINGS[format_]


def split(program: Program, owner: Place) -> list[Place]:
    """The places of a relation and of its optional columns, all in one source."""
    return [owner, *(optional_place(program, owner, relation) for relation in program.optional.get(owner.relation, {}).values())]


def from_environment(value: str) -> str:
    """An option's value, with `${NAME}` replaced by what the environment has under that name."""

    def value_of(name: re.Match[str]) -> str:
        if name[1] not in os.environ:
            raise DataError(f"the environment has no {name[1]}, which a source needs", "unreadable")
        return os.environ[name[1]]

    return re.sub(r"\$\{(\w+)\}", value_of, value)


def inputs(program: Program, folder: str | Path) -> dict[str, Place]:
    """The sources of a checked program, by relation. A stream is none: a database follows it from its first transaction on."""
    places = {
        d.relation: place(program, d, folder)
        for d in program.directed("input")
        if d.option.get("IO") != "stream" and d.option.get("of") not in streams(program)
    }
    without = {d.relation for d in program.directed("input") if d.option.get("missing") == "empty"}
    return {name: source for name, source in places.items() if name not in without or not source.local or Path(source.location).exists()}


def streams(program: Program, folder: str | Path = ".") -> dict[str, Place]:
    """The streams of a checked program, by relation."""
    return {d.relation: place(program, d, folder) for d in program.directed("input") if d.option.get("IO") == "stream"}


def outputs(program: Program, folder: str | Path) -> list[Place]:
    directives = program.directed("output")
    reporting = [Directive("output", name) for name in program.outputs if all(name != directive.relation for directive in directives)]
    return [place(program, d, folder) for d in (*directives, *reporting)]


def key_place(program: Program, place: Place) -> Place:
    """A relation's source that has keys of it: no columns but those of the key."""
    columns, types = zip(*((place.columns[column], place.types[column]) for column in program.keys[place.relation]), strict=True)
    named = {"dbtable": place.relation} if place.format == "jdbc" and "query" not in place.options else {}
    return replace(
        place,
        relation=f"the key of {place.relation}",
        columns=columns,
        types=types,
        options={**named, **place.options},
        source=(),
        absent="",
        blanks={},
    )


_HOW = ("delimiter", "headers", "rfc4180", "nulls")  # options that say how a format is written, wherever it is


def source_place(program: Program, relation: str, location: str, options: Mapping[str, str]) -> Place:
    """A source named by hand. Raises DataError for options that make no sense.

    Its format is the one that is stated (`IO`), else the one that its name tells, else the one of the relation's `.input`, whose other options then hold, too, unless stated.
    """
    format_, how = _input_format(program, relation)
    told = options.get("IO") or format_of(location) or ("file" if format_ == "jdbc" else format_)
    stated = {"IO": told, **(how if told == format_ else {}), **options}
    stated[{"table": "name", "iceberg": "name", "jdbc": "url", "stream": "path"}.get(told, "filename")] = location
    directive = Directive("input", relation, tuple(stated.items()))
    findings = Findings()
    check_options(directive, findings)
    if findings.errors:
        told = "; ".join(": ".join(filter(None, (error.message, error.rule or error.hint))) for error in findings.errors)
        raise DataError(told, "unknown-option")
    return place(program, directive, ".")


def _input_format(program: Program, relation: str) -> tuple[str, dict[str, str]]:
    """The format of a relation's `.input`, of a stream that of its files, and how it is written there."""
    option = next((directive.option for directive in program.directed("input") if directive.relation == relation), {})
    format_ = option.get("IO", "file")
    form = option["format"] if format_ == "stream" else format_
    return "json" if form == "debezium" else form, {key: option[key] for key in _HOW if key in option}
