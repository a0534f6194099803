"""Makes the archive of Spark's classes (`vigilog/spark/archive.py`): `python -m vigilog.cli.rehearsal`.

A Spark of its own does on a few rows what it is asked for most, with the least priority; then Java writes down the classes that it had to load for that.
"""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path

import vigilog
from vigilog.engine.evaluate import run
from vigilog.executors.watch import Watch
from vigilog.language.check import check
from vigilog.spark import archive, process, session

PROGRAM = """
.decl item(id: number, kind: symbol, price: decimal(9, 2), day: date)
.input item(IO={format}, filename="{name}", headers=true)
.key item(id)
.decl near(x: number, y: number)
.input near
.decl cheap(id: number, kind: symbol, day: date)
.output cheap
cheap(i, k, d) :- item(i, k, p, d), p < 10.0, !near(i, i).
.decl total(kind: symbol, price: decimal(9, 2))
.output total
total(k, t) :- item(_, k, _, _), t = sum p : {{ item(_, k, p, _) }}.
.decl reached(x: number, y: number)
.output reached
reached(x, y) :- near(x, y).
reached(x, y) :- reached(x, z), near(z, y), item(y, _, _, _).
"""
NEAR = [(number, number + 1) for number in range(8)]


def main() -> None:
    with suppress(Exception):
        os.nice(19)
        session.ensure_java()
        with archive.making() as paths, tempfile.TemporaryDirectory() as folder:
            if paths is not None:
                _setting(paths[0])
                with suppress(Exception):
                    _rehearse(Path(folder))
                process.leave()


def _setting(part: Path) -> None:
    """A small Spark of this process alone, whatever the environment says."""
    for name in [name for name in os.environ if name == "MASTER" or name.startswith(("SPARK_", "PYSPARK_", "VIGILOG_SPARK_"))]:
        if name != archive.SETTING:
            del os.environ[name]
    os.environ |= {
        "VIGILOG_SPARK_MASTER": "local[2]",
        "VIGILOG_SPARK_MEMORY": "1g",
        "VIGILOG_SPARK_CONF": f"spark.driver.extraJavaOptions=-XX:ArchiveClassesAtExit={part}",
    }


def _rehearse(folder: Path) -> None:
    (folder / "item.csv").write_text("id,kind,price,day\n" + "".join(f"{n},k{n % 3},{n}.50,2026-01-0{n % 9 + 1}\n" for n in range(40)))
    (folder / "near.facts").write_text("".join(f"{x}\t{y}\n" for x, y in NEAR))
    (folder / "item.json").write_text(
        "".join(json.dumps({"id": n, "kind": "k", "price": n, "day": "2026-01-01"}) + "\n" for n in range(40))
    )
    run(check(PROGRAM.format(format="csv", name="item.csv")).program, folder, folder / "out", "spark", Watch())
    items = session.session().read.option("header", True).csv(str(folder / "item.csv"))
    items.selectExpr("int(id) id", "kind", "cast(price as decimal(9, 2)) price", "date(day) day").write.parquet(str(folder / "item"))
    with vigilog.open(PROGRAM.format(format="parquet", name="item"), folder, data=folder / "data", memory=0) as db:
        db.compact(["item"])
        db.apply({"insert": {"near": [(1, 5)]}})
        db.load("item", folder / "item.json", upsert=True)
        db.sync("item", folder / "item")
        db.ask("reached(1, y)")
        for name in ("cheap", "total", "reached"):
            db.view(name)
        db.verify()


if __name__ == "__main__":
    main()
