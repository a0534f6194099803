"""What the language has, each executor, file and command has by the same name: one table for each, whose keys agree. What is in no table is refused by name."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

import pytest

from vigilog.cli.arguments import Engine, Strategy
from vigilog.core import arrow
from vigilog.core.errors import UsageError
from vigilog.core.values import NUMBER, SYMBOL, Kind, Type, Value
from vigilog.engine import places
from vigilog.engine.evaluate import evaluate
from vigilog.executors.choose import ENGINES
from vigilog.files import place, reader, writer
from vigilog.files.place import Place
from vigilog.folder.opening import open_program
from vigilog.language import builder, functors, options
from vigilog.language.functors import AGGREGATES, FUNCTORS
from vigilog.language.parser import parse
from vigilog.language.syntax import aggregates
from vigilog.planning import dialect, sparksql, sqlite, strategy
from vigilog.spark import sinks, sources, types

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).parents[1] / "docs"
KINDS: tuple[Kind, ...] = get_args(Kind)
GRAPH = ".decl p, q(x: number)\n.output q\nq(x) :- p(x).\n"


def agree(where: str, table: Iterable[str], wanted: Iterable[str]) -> None:
    lacking, more = set(wanted) - set(table), set(table) - set(wanted)
    assert not lacking, f"{where} lacks {', '.join(sorted(lacking))}"
    assert not more, f"{where} has {', '.join(sorted(more))}, which there is not elsewhere"


# -- functors and aggregates


def test_every_functor_has_a_meaning() -> None:
    conversions = {name for name in FUNCTORS if name.startswith("to_")}
    agree("_MEANING of language/functors.py", functors._MEANING.keys() | conversions, FUNCTORS)
    agree("TOTAL of language/functors.py", functors.TOTAL & FUNCTORS.keys(), functors.TOTAL)


def test_every_comparison_and_test_has_a_meaning() -> None:
    agree("COMPARISONS of planning/dialect.py", dialect.COMPARISONS, functors._COMPARE)
    for name in builder.TESTS:
        assert functors.test(name, ["a", "a"]) is True


def test_every_aggregate_is_written_in_both_sqls() -> None:
    agree("AGGREGATES of planning/sqlite.py", sqlite.AGGREGATES, AGGREGATES)
    agree("AGGREGATES of planning/sparksql.py", sparksql.AGGREGATES, AGGREGATES)


@pytest.mark.parametrize("name", AGGREGATES)
def test_every_aggregate_can_be_said(name: str) -> None:
    target = "x" if AGGREGATES[name].signature.args else ""
    (rule,) = parse(f"p(n) :- n = {name} {target} : {{ q(x) }}.").rules
    assert [found.op for found in aggregates(rule)] == [name], f"language/grammar.lark does not know {name}"


def test_an_aggregate_that_there_is_not_is_an_error_everywhere() -> None:
    with pytest.raises(KeyError, match="median"):
        functors.aggregate("median", NUMBER, [1, 2, 3])
    for dialect_ in (sqlite.SqliteDialect(), sparksql.SparkDialect()):
        with pytest.raises(KeyError, match="median"):
            dialect_.aggregate("median", NUMBER, NUMBER, dialect.integer(1))
    with pytest.raises(KeyError, match="median"):
        sparksql.SparkDialect().finish("median", NUMBER, NUMBER, dialect.integer(1))


# -- types


def test_every_kind_of_type_is_stored_everywhere() -> None:
    agree("ANY of language/functors.py", functors.ANY, KINDS)
    agree("AFFINITY of planning/sqlite.py", sqlite.AFFINITY, KINDS)
    agree("_SPARK of spark/types.py", types._SPARK.keys() | {"decimal"}, KINDS)
    agree("_ARROW of core/arrow.py", arrow._ARROW.keys() | {"decimal"}, KINDS)


VALUES: dict[Kind, Value] = {
    "symbol": "a",
    "number": -1,
    "unsigned": 2**64 - 1,
    "float": 0.5,
    "boolean": True,
    "date": datetime.date(2026, 11, 16),
    "timestamp": datetime.datetime(2026, 11, 16, 8, 30, tzinfo=datetime.UTC),
    "decimal": Decimal("1.50"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_values_go_round(kind: Kind) -> None:
    value, type_ = VALUES[kind], Type(kind, 6, 2) if kind == "decimal" else Type(kind)
    assert type_.check(value) == type_.parse(type_.text(value)) == type_.from_json(type_.to_json(value)) == value
    encode, decode = sqlite.encoder(type_), sqlite.decoder(type_)
    stored = encode(value) if encode else value
    assert (decode(stored) if decode else stored) == value
    assert list(arrow.from_arrow([type_], arrow.to_arrow(["x"], [type_], [(value,)]))) == [(value,)]


# -- sources and sinks


def test_every_format_is_read_and_written() -> None:
    files, text = set(options.FILES), place.TEXT_FORMATS
    agree("TEXTS of files/reader.py", reader.TEXTS, text)
    agree("TEXTS of files/writer.py", writer.TEXTS, text)
    agree("TEXTS of spark/sources.py", sources.TEXTS, text)
    agree("COLUMNAR of spark/sources.py", sources.COLUMNAR, {*options.FORMATS} - text - {"stream"})
    agree("COLUMNAR of spark/sinks.py", sinks.COLUMNAR, files - text)
    agree("ENDINGS of engine/places.py", places.ENDINGS, files - {"file", "table"})
    agree("OF_SOURCE of language/options.py", options.OF_SOURCE, options.SOURCES)
    agree("NEEDED of language/options.py", options.NEEDED, options.SOURCES)
    assert {*options.STREAMED} <= reader.TEXTS.keys() | sources.COLUMNAR.keys()


def test_a_source_that_there_is_not_is_no_attribute_of_a_reader() -> None:
    nowhere = Place("r", ("x",), (SYMBOL,), "load", "somewhere://else", "\t", False, False, False)
    with pytest.raises(AssertionError, match="there is no source load"):
        sources.raw(cast("SparkSession", None), nowhere)


# -- engines and strategies


def test_engines_and_strategies_have_one_list() -> None:
    agree("Engine of cli/arguments.py", Engine, ENGINES)
    agree("Strategy of cli/arguments.py", Strategy, strategy.WISHES)


def test_what_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no engine duck; there are auto, embedded, spark"):
        open_program(GRAPH, {}, engine="duck")
    with pytest.raises(UsageError, match="there is no engine duck"):
        evaluate(GRAPH, {}, "duck")
    with pytest.raises(UsageError, match="there is no strategy eager; there are auto, external"):
        open_program(GRAPH, {}, strategy="eager")
    with pytest.raises(UsageError, match="there is no strategy eager; there are auto, external"):
        open_program(GRAPH, {}, data=tmp_path / "data", strategy="eager")
    with open_program(GRAPH, {}, data=tmp_path / "data") as database:  # nothing was left behind
        assert database.view("q") == set()


# -- the pages


def test_everything_is_described() -> None:
    language, read = ((DOCS / page).read_text(encoding="utf-8") for page in ("language.md", "sources.md"))
    for name in (*FUNCTORS, *AGGREGATES, *builder.TESTS):
        shown = "-x" if name == "neg" else name
        assert any(f"`{shown}{end}" in language for end in ("`", "(", " ")), f"docs/language.md does not describe {name}"
    for name in options.FORMATS:
        assert f"`{name}`" in language + read, f"neither docs/language.md nor docs/sources.md describes IO={name}"
