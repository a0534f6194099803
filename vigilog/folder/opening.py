"""Opens a program, in memory or on a data folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import overload

from vigilog.conditions import MOST_ROUNDS
from vigilog.core.errors import UsageError
from vigilog.core.values import Row
from vigilog.engine.compiled import ensure_maintained
from vigilog.engine.database import Database, Facts
from vigilog.engine.evaluate import checked_rows
from vigilog.engine.places import inputs
from vigilog.executors.choose import choose
from vigilog.executors.watch import Report
from vigilog.files import reader
from vigilog.files.place import Place
from vigilog.folder.durable import Durable
from vigilog.language.calls import with_places
from vigilog.language.check import check
from vigilog.language.parser import parse, read_program
from vigilog.language.program import Program


def _placed(program: str | Path | Program, facts: Facts | str | Path | None) -> Program:
    """The program, whose domains are in the facts folder, or beside its file."""
    folder = Path() if facts is None or isinstance(facts, Mapping) else Path(facts)
    if isinstance(program, Program):
        return with_places(program, folder, Path())
    read = read_program(program) if isinstance(program, Path) else parse(program)
    return with_places(read, folder, program.parent if isinstance(program, Path) else folder)


@overload
def open_program(
    program: str | Path | Program,
    facts: Facts | str | Path | None = None,
    *,
    strategy: str | None = None,
    engine: str = "embedded",
    budget: int | None = None,
    strict: bool = False,
    report: Report | None = None,
    cascade: int = MOST_ROUNDS,
    deletion: str = "auto",
) -> Database: ...


@overload
def open_program(
    program: str | Path | Program | None = None,
    facts: Facts | str | Path | None = None,
    *,
    data: str | Path,
    strategy: str | None = None,
    budget: int | None = None,
    strict: bool = False,
    define: bool = False,
    retain: Mapping[str, float] | None = None,
    warehouse: str | None = None,
    memory: int | str | None = None,
    report: Report | None = None,
    cascade: int = MOST_ROUNDS,
) -> Durable: ...


def open_program(
    program: str | Path | Program | None = None,
    facts: Facts | str | Path | None = None,
    *,
    data: str | Path | None = None,
    strategy: str | None = None,
    engine: str = "embedded",
    budget: int | None = None,
    strict: bool = False,
    define: bool = False,
    retain: Mapping[str, float] | None = None,
    warehouse: str | None = None,
    memory: int | str | None = None,
    report: Report | None = None,
    cascade: int = MOST_ROUNDS,
    deletion: str = "auto",
) -> Database:
    """Opens a program, given as text, file or tree, in memory or on a `data` folder, with its facts as rows or as a folder of files.

    >>> db = open_program('''
    ... .decl edge(x: symbol, y: symbol)
    ... .decl closure(x: symbol, y: symbol)
    ... .output closure
    ... closure(x, y) :- edge(x, y).
    ... closure(x, y) :- edge(x, z), closure(z, y).
    ... ''', {"edge": [("a", "b")]})
    >>> with db.transaction() as tx:
    ...     tx.insert("edge", [("b", "c")])
    >>> sorted(tx.changes["closure"].plus)
    [('a', 'c'), ('b', 'c')]
    >>> db.close()

    `strategy` is `external`, `materialized`, `counted` or `auto`. A transaction that would derive more than `budget` rows on demand is answered by recomputing, or, if `strict`, refused.

    A data folder remembers its program and its strategy: open it with `open(data=folder)`. Opening it with another program changes its definitions, if `define` says so. Of its log,
    `retain` keeps what is not older than some `days`, not more than the last `transactions`, and of the views' changes not more than some `bytes`.

    `memory` is what all base relations in the file together may take: bytes, or a share of the machine's memory, like `"25%"`; what does not fit, smallest first, is kept by Spark.

    Triggers may follow from each other for so many rounds as `cascade` says.

    `report` is told how far long work is: it is called with a `Stage` (`executors/watch.py`), now and again.
    """
    if isinstance(program, str) and "\n" not in program:
        program = Path(program)
    checked = None if program is None else check(_placed(program, facts)).program
    if checked is None and data is None:
        raise UsageError("a program or a data folder is needed")
    if checked is not None:
        ensure_maintained(checked)
    given: dict[str, Iterable[Row] | Place] = {}
    if checked is None or facts is None:
        pass
    elif isinstance(facts, Mapping):
        given |= {name: checked_rows(checked, name, rows) for name, rows in facts.items()}
    else:
        given |= inputs(checked, facts)
        for place in given.values():
            if isinstance(place, Place) and place.local:
                reader.files(place)  # a source that is not there is an error, needed or not
    engine = choose(engine, [place for place in given.values() if isinstance(place, Place)]).engine
    database: Database
    if data is not None:
        database = Durable(
            data,
            checked,
            given,
            strategy=strategy,
            budget=budget,
            strict=strict,
            define=define,
            retain=retain,
            warehouse=warehouse,
            memory=memory,
            report=report,
            cascade=cascade,
        )
    else:
        assert checked is not None, "seen above"
        database = Database(checked, given, strategy or "auto", engine, budget, strict, report, cascade, deletion)
    database.refresher.start()
    return database
