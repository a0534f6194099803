"""What the language has, each executor, file and command has by the same name: one table for each, whose keys agree. What is in no table is refused by name."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

import pytest

from vigilog.cli.arguments import Engine
from vigilog.core import arrow
from vigilog.core.errors import ProgramError, UsageError
from vigilog.core.sets import Set
from vigilog.core.type_names import type_named
from vigilog.core.values import NUMBER, SYMBOL, Kind, Value
from vigilog.engine import places
from vigilog.engine.evaluate import evaluate
from vigilog.executors.choose import ENGINES
from vigilog.executors.embedded.keepers import KEEPERS
from vigilog.files import events, place, reader, writer
from vigilog.files.place import Place
from vigilog.folder.opening import open_program
from vigilog.language import functors, options, syntax
from vigilog.language.functors import AGGREGATES, FUNCTORS
from vigilog.language.parser import parse
from vigilog.language.parts import aggregates
from vigilog.planning import dialect, duckdb, sparksql, sqlite
from vigilog.rewriting.maintenance.strategies import STRATEGIES
from vigilog.spark import sinks, sources, types

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).parents[1] / "docs"
KINDS: tuple[Kind, ...] = get_args(Kind)
GRAPH = ".decl p, q(x: number)\n.output q\nq(x) :- p(x).\n"


TEXT, FILES, FORMATS = place.TEXT_FORMATS, {*options.FILES}, {*options.FORMATS}

# For each table where it is, what it has, and what it must have.
TABLES: list[tuple[str, Iterable[str], Iterable[str]]] = [
    (
        "_MEANING in language/functors.py",
        {**functors._MEANING, **functors._SETS},
        [name for name in FUNCTORS if not name.startswith("to_")],
    ),
    ("COMPARISONS in planning/dialect.py", dialect.COMPARISONS, functors._COMPARE),
    ("AGGREGATES in planning/sqlite.py", sqlite.AGGREGATES, AGGREGATES),
    ("AGGREGATES in planning/sparksql.py", sparksql.AGGREGATES, AGGREGATES),
    ("AGGREGATES in planning/duckdb.py", duckdb.AGGREGATES, AGGREGATES),
    ("ANY in language/functors.py", functors.ANY, KINDS),
    ("AFFINITY in planning/sqlite.py", sqlite.AFFINITY, KINDS),
    ("COLUMN in planning/duckdb.py", duckdb.COLUMN, KINDS),
    ("_SPARK in spark/types.py", types._SPARK, {*KINDS} - {"decimal", "set", "tuple"}),
    ("_ARROW in core/arrow.py", arrow._ARROW, {*KINDS} - {"decimal", "set", "tuple"}),
    ("TEXTS in files/reader.py", reader.TEXTS, TEXT),
    ("TEXTS in files/writer.py", writer.TEXTS, TEXT),
    ("TEXTS in spark/sources.py", sources.TEXTS, TEXT),
    ("COLUMNAR in spark/sources.py", sources.COLUMNAR, FORMATS - TEXT - {"stream"}),
    ("COLUMNAR in spark/sinks.py", sinks.COLUMNAR, FILES - TEXT),
    ("ENDINGS in engine/places.py", places.ENDINGS, FILES - {"file", "table"}),
    ("OF_SOURCE in language/options.py", options.OF_SOURCE, options.SOURCES),
    ("NEEDED in language/options.py", options.NEEDED, options.SOURCES),
    ("Engine in cli/arguments.py", Engine, ENGINES),
    (
        "KEEPERS in executors/embedded/keepers.py",
        KEEPERS,
        ["improving", *(strategy.keeper for strategy in STRATEGIES.values() if strategy.stored)],  # what keeps the best has no other
    ),
]


@pytest.mark.parametrize(("where", "table", "wanted"), TABLES, ids=map(str, range(len(TABLES))))  # none is for Spark, whatever it is called
def test_keys_agree(where: str, table: Iterable[str], wanted: Iterable[str]) -> None:
    lacking, more = {*wanted} - {*table}, {*table} - {*wanted}
    assert not lacking, f"{where} lacks {', '.join(sorted(lacking))}"
    assert not more, f"{where} has {', '.join(sorted(more))}, which there is not elsewhere"


def test_parts_of_tables() -> None:
    assert FUNCTORS.keys() >= functors.TOTAL
    assert {*options.STREAMED} <= reader.TEXTS.keys() | sources.COLUMNAR.keys() | events.FORMATS.keys()


@pytest.mark.parametrize("name", AGGREGATES)
def test_every_aggregate_can_be_said(name: str) -> None:
    target = "x" if AGGREGATES[name].signature.args else ""
    try:
        (rule,) = parse(f"p(n) :- n = {name} {target} : {{ q(x) }}.").rules
    except ProgramError:
        pytest.fail(f"language/grammar.lark lacks {name}")
    assert [found.op for found in aggregates(rule)] == [name]


def test_an_aggregate_that_there_is_not_is_an_error_everywhere() -> None:
    with pytest.raises(KeyError, match="median"):
        functors.aggregate("median", NUMBER, [1, 2, 3])
    for dialect_ in (sqlite.SqliteDialect(), duckdb.DuckDbDialect(), sparksql.SparkDialect()):
        with pytest.raises(KeyError, match="median"):
            dialect_.aggregate("median", NUMBER, NUMBER, dialect.integer(1))
    with pytest.raises(KeyError, match="median"):
        sparksql.SparkDialect().finish("median", NUMBER, NUMBER, dialect.integer(1))


VALUES: dict[Kind, Value] = {
    "symbol": "a",
    "number": -1,
    "unsigned": 2**64 - 1,
    "float": 0.5,
    "boolean": True,
    "date": datetime.date(2026, 11, 16),
    "timestamp": datetime.datetime(2026, 11, 16, 8, 30, tzinfo=datetime.UTC),
    "decimal": Decimal("1.50"),
    "set": Set([("b", Set([1.5])), ("a", Set())]),
    "tuple": ("a", datetime.date(2026, 11, 16), 2**64 - 1),
}
NESTED = {"set": "set<(symbol, set<float>)>", "tuple": "(symbol, date, unsigned)", "decimal": "decimal(6,2)"}


@pytest.mark.parametrize("kind", KINDS)
def test_values_go_round(kind: Kind) -> None:
    value, type_ = VALUES[kind], type_named(NESTED.get(kind, kind))
    assert type_.check(value) == type_.parse(type_.text(value)) == type_.from_json(type_.to_json(value)) == value
    encode, decode = sqlite.encoder(type_), sqlite.decoder(type_)
    stored = encode(value) if encode else value
    assert (decode(stored) if decode else stored) == value
    assert list(arrow.from_arrow([type_], arrow.to_arrow(["x"], [type_], [(value,)]))) == [(value,)]


def test_a_source_that_there_is_not_is_no_attribute_of_a_reader() -> None:
    nowhere = Place("r", ("x",), (SYMBOL,), "load", "somewhere://else", "\t", False, False, False)
    with pytest.raises(AssertionError, match="there is no source load"):
        sources.raw(cast("SparkSession", None), nowhere)


def test_what_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no engine duck; there are auto, embedded, duckdb, spark"):
        open_program(GRAPH, {}, engine="duck")
    with pytest.raises(UsageError, match="there is no engine duck"):
        evaluate(GRAPH, {}, "duck")
    with pytest.raises(UsageError, match="there is no strategy guess; there are auto, "):
        open_program(GRAPH, {}, strategy="guess")
    with pytest.raises(UsageError, match="there is no strategy guess; there are auto, "):
        open_program(GRAPH, {}, data=tmp_path / "data", strategy="guess")
    with open_program(GRAPH, {}, data=tmp_path / "data") as database:  # nothing was left behind
        assert database.view("q") == set()


@pytest.mark.parametrize("name", [*FUNCTORS, *AGGREGATES, *syntax.TESTS])
def test_every_functor_and_aggregate_is_described(name: str) -> None:
    page = (DOCS / "language.md").read_text(encoding="utf-8")
    shown = {"neg": "-x", "{|}": "{\\|}"}.get(name, name)
    assert any(f"`{shown}{end}" in page for end in ("`", "(", " ")), f"docs/language.md lacks {name}"


@pytest.mark.parametrize("name", options.FORMATS)
def test_every_format_is_described(name: str) -> None:
    assert f"`{name}`" in (DOCS / "sources.md").read_text(encoding="utf-8"), f"docs/sources.md lacks IO={name}"
