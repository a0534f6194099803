"""Large tables: of PostgreSQL and of a folder, joined on Spark, beside Spark's own join; and joined with facts that are not ground, beside literal bounds."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.mediators.shapes import timed
from tests.postgres import Postgres, binaries, postgres
from vigilog.engine.database import Database
from vigilog.engine.evaluate import run
from vigilog.executors.watch import Watch
from vigilog.language.check import check
from vigilog.language.program import Program
from vigilog.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BOUNDS = 10
JOIN = """
.domain pg(kind=sql, url="{url}", user="{user}", password="{password}")
.domain f(kind=file, path="{folder}")
.table f:visit(id: number, day: number)
.decl seen(name: symbol, day: number)
.printsize seen
seen(a.name, b.day) :- in(a, pg:all("person")), in(b, f:all("visit")), a.id = b.id.
"""
NARROW = ".decl n({columns})\n.input n\n.decl c(x: number, y: number)\n.output c\n"


def joins(quick: bool) -> dict[str, float]:
    """Milliseconds to join a table of PostgreSQL with a file, as a program says it and as one writes it for Spark; nothing where there is no PostgreSQL."""
    programs, number = binaries(), 100_000 if quick else 1_000_000
    if programs is None:
        return {}
    with postgres(programs) as server, tempfile.TemporaryDirectory() as name:
        folder, spark = Path(name), session()
        server.run(
            "CREATE TABLE person (id bigint, name text); "
            f"INSERT INTO person SELECT g, 'person ' || g FROM generate_series(1, {number}) g; ANALYZE person"
        )
        (folder / "visit.csv").write_text("id,day\n" + "".join(f"{2 * visit},{visit % 1000}\n" for visit in range(number)))
        program = check(JOIN.format(url=server.url.removeprefix("jdbc:"), folder=folder, **server.login)).program
        ways = {"Spark's own": partial(_own, spark, server, folder), "a program": partial(_ours, program, folder)}
        found: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(2 if quick else 5):
            for way, joined in ways.items():
                found[way].append(timed(partial(_expect, joined, number // 2)))
        return {way: sorted(times[1:])[(len(times) - 1) // 2] for way, times in found.items()}  # the first is slow for all


def _expect(joined: Callable[[], int], rows: int) -> None:
    assert joined() == rows, "both find the same"


def _ours(program: Program, folder: Path) -> int:
    return run(program, folder, None, "spark", Watch()).sizes[0][1]


def _own(spark: SparkSession, server: Postgres, folder: Path) -> int:
    login = {"url": server.url, "driver": "org.postgresql.Driver", **server.login}
    person = spark.read.format("jdbc").options(dbtable="person", **login).load()
    visit = spark.read.csv(str(folder / "visit.csv"), header=True, schema="id bigint, day bigint")
    seen = person.join(visit, "id").select("name", "day").distinct().localCheckpoint()
    return seen.count()


def ranges(quick: bool) -> dict[str, float]:
    """Milliseconds to answer a join of rows with facts that are not ground, and with the same bounds as literals: the column with bounds comes first, or last."""
    number = 50_000 if quick else 1_000_000
    bounds = [(part * number // BOUNDS, part * number // BOUNDS + number // BOUNDS // 100) for part in range(BOUNDS)]
    found: dict[str, float] = {}
    for place, columns in (("first", "x: number, y: number"), ("last", "y: number, x: number")):
        args = columns.replace(": number", "")
        text = NARROW.format(columns=columns)
        literal = "".join(f"c(x, y) :- n({args}), x >= {low}, x <= {high}.\n" for low, high in bounds)
        facts = "".join(f"a(x) :- x >= {low}, x <= {high}.\n" for low, high in bounds)
        ways = {
            "literal bounds": text + literal,
            "facts": f"{text}.decl a(x: number) constrained\nc(x, y) :- n({args}), a(x).\n{facts}",
        }
        rows = [(x, 7919 * x % number) for x in range(number)]
        opened = {way: Database(check(program).program, {"n": rows}, "external") for way, program in ways.items()}
        assert opened["facts"].view("c") == opened["literal bounds"].view("c"), "both find the same"
        times: dict[str, list[float]] = {way: [] for way in ways}
        for turn in range(3 if quick else 9):
            for way, db in opened.items() if turn % 2 else reversed(opened.items()):
                times[way].append(timed(partial(db.view, "c")))
        for way, db in opened.items():
            db.close()
            found[f"{way}, the column comes {place}"] = sorted(times[way])[len(times[way]) // 2]
    return found
