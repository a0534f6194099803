"""From a program and its data to its relations, on either executor."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from vigilog.core.errors import DataError, counted, did_you_mean
from vigilog.core.extras import SPARK
from vigilog.core.named import in_order
from vigilog.core.rows import rows_from_json
from vigilog.core.values import Row, row_text
from vigilog.engine.extension import extended
from vigilog.engine.places import inputs, outputs, streams
from vigilog.executors import growing
from vigilog.executors.choose import Chosen, choose
from vigilog.executors.evaluation import Evaluation, Stats
from vigilog.executors.watch import Watch
from vigilog.files import reader
from vigilog.files.place import Place
from vigilog.files.writer import line_writer, staged
from vigilog.language.check import check
from vigilog.language.parser import read_program
from vigilog.language.program import Program
from vigilog.language.syntax import Declaration
from vigilog.rewriting.passes import rewrite
from vigilog.rewriting.program.relevant import relevant

FEW = 20  # up to so many rows are checked one by one, more of them column by column


@dataclass(frozen=True)
class Result:
    """The output relations of an evaluation, in memory."""

    relations: Mapping[str, set[Row]]
    stats: Stats

    def __getitem__(self, relation: str) -> set[Row]:
        return self.relations[relation]


def evaluate(
    program: str | Path | Program,
    facts: Mapping[str, Iterable[Any]] | None = None,
    engine: str = "embedded",
    watch: Watch | None = None,
) -> Result:
    """Evaluates a program, a text or a file, over rows given in memory; gives its output relations, or all if it names none.

    >>> text = '''
    ... .decl edge(x: symbol, y: symbol)
    ... .decl closure(x: symbol, y: symbol)
    ... .output closure
    ... closure(x, y) :- edge(x, y).
    ... closure(x, y) :- edge(x, z), closure(z, y).
    ... '''
    >>> sorted(evaluate(text, {"edge": [("a", "b"), ("b", "c")]})["closure"])
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    """
    checked = check(read_program(program) if isinstance(program, Path) else program).program
    rows = {name: checked_rows(checked, name, given) for name, given in (facts or {}).items()}
    wanted = checked.outputs or tuple(checked.relations)
    chosen = choose(engine, ())
    with closing(start(checked, rows, "auto" if chosen.grows else chosen.engine, wanted, watch or Watch())) as evaluation:
        return Result({name: set(evaluation.rows(name)) for name in wanted}, evaluation.stats)


def ensure_known(program: Program, relation: str) -> None:
    """Raises DataError if a program has no such relation."""
    if relation not in program.relations:
        hint = did_you_mean(relation, program.relations)
        raise DataError(f"there is no relation {short(relation)}" + (f"; {hint}" if hint else ""), "unknown-relation")


def short(name: str) -> str:
    """A name from outside, as a sentence shows it."""
    return name if len(name) <= 60 else name[:57] + "…"


def checked_rows(program: Program, relation: str, rows: Iterable[Any]) -> list[Row]:
    """Rows from outside as values of a relation's types. Raises DataError for what does not fit."""
    ensure_known(program, relation)
    declaration = program.relations[relation]
    listed = [tuple(row) for row in in_order(relation, declaration.columns, rows)]
    if any(map(declaration.arity.__ne__, map(len, listed))):
        number, cells = next((number, cells) for number, cells in enumerate(listed, start=1) if len(cells) != declaration.arity)
        raise DataError(
            f"row {number} of {relation} has {counted(len(cells), 'column')}, but {relation} has {declaration.arity}", "columns"
        )
    if not declaration.arity:
        return listed
    try:
        if len(listed) <= FEW:
            quick = [type_.quick for type_ in declaration.types]
            return [tuple([check(cell) for check, cell in zip(quick, cells, strict=True)]) for cells in listed]
        return rows_from_json(declaration.types, listed)
    except ValueError:
        return [_checked_row(declaration, number, cells) for number, cells in enumerate(listed, start=1)]


def _checked_row(declaration: Declaration, number: int, cells: Row) -> Row:
    try:
        return tuple(type_.from_json(cell) for type_, cell in zip(declaration.types, cells, strict=True))
    except ValueError as reason:
        raise DataError(f"row {number} of {declaration.relation}: {reason}", "value") from None


def start(program: Program, sources: Mapping[str, Iterable[Row] | Place], engine: str, wanted: Iterable[str], watch: Watch) -> Evaluation:
    """Evaluates a checked program for the wanted relations, over rows or places to read them from."""
    if program.constrained or program.directed("call"):
        from vigilog.engine.opened import Opened

        return Opened(program, sources, engine)
    plain = relevant(rewrite(program), wanted)
    look(sources.values())
    sources = {relation: source for relation, source in sources.items() if relation in plain.relations}
    if engine == "spark":
        from vigilog.executors.spark.executor import SparkEvaluation

        return SparkEvaluation(plain, sources, watch)
    return growing.evaluation(plain, {name: read(source) for name, source in sources.items()}, watch, engine)


def read(source: Iterable[Row] | Place) -> Iterable[Row]:
    """The rows of a source; files that are not small text are read through Spark."""
    if not isinstance(source, Place):
        return source
    if source.text and source.local:
        return reader.rows(source)
    SPARK.need(f"{source.relation} is read from {source.location}")
    from vigilog.spark.sources import rows

    return rows(source)


def look(sources: Iterable[Any]) -> None:
    """A first look at those sources that only Spark can read, before any of them is read. Raises DataError for nulls that can be seen at once."""
    for source in sources:
        if isinstance(source, Place) and not (source.text and source.local) and SPARK.installed:
            from vigilog.spark.sources import look as look_at

            look_at(source)


def joined(rows: Iterable[Row], more: Collection[Row]) -> Iterable[Row]:
    """Rows, and more if there are any."""
    return chain(rows, more) if more else rows


def _lines(place: Place, rows: Iterable[Row]) -> str:
    line = line_writer(place)
    return "".join(line(row_text(place.types, row)) for row in rows)


@dataclass(frozen=True)
class Finished:
    """What `run` did: sizes to print, relations to print with their lines, what it cost, why this executor."""

    sizes: tuple[tuple[str, int], ...]
    printed: tuple[tuple[str, str], ...]
    stats: Stats
    chosen: Chosen


def run(program: Program, facts: Path, out: Path | None, engine: str, watch: Watch) -> Finished:
    """Evaluates a checked program over its files and writes its results; `out` is None if they are to be printed."""
    for name in streams(program):
        raise DataError(f"{name} is a stream; only a database with a data folder follows it", "stream")
    sources = inputs(program, facts)
    places = [replace(place, format="stdout") if out is None else place for place in outputs(extended(program).shown, out or Path())]
    for source in sources.values():
        if source.local:
            reader.files(source)  # a source that is not there is an error, needed or not
    chosen = choose(engine, sources.values(), places)
    sized = [directive.relation for directive in program.directed("printsize")]
    wanted = [*(place.relation for place in places), *sized]
    with closing(start(program, sources, "auto" if chosen.grows else chosen.engine, wanted, watch)) as evaluation:
        if evaluation.stats.engine != chosen.engine:
            reason = f"{chosen.reason}; after {growing.PATIENCE:g} s SQLite had not come to an end"
            chosen = replace(chosen, engine=evaluation.stats.engine, reason=reason)
        sizes = tuple((relation, evaluation.count(relation)) for relation in sized)
        printed = tuple((place.relation, _lines(place, evaluation.rows(place.relation))) for place in places if place.format == "stdout")
        filed = [place for place in places if place.format != "stdout"]
        watch.begin("writing")
        with staged() as stage:
            for place in filed:
                evaluation.write(place, stage.path(place.path) if place.local else None)
        return Finished(sizes, printed, evaluation.stats, chosen)
