"""What `vigilog explain` shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from vigilog.cli.arguments import Show, checked, is_folder, opened
from vigilog.language.syntax import Program
from vigilog.planning.explain import explain_rules, explain_sql, explain_strata
from vigilog.planning.sparksql import SparkDialect
from vigilog.planning.sqlite import SqliteDialect
from vigilog.planning.strategy import Strategy, choose_strategies
from vigilog.rewriting.external import external
from vigilog.rewriting.maintain import maintain
from vigilog.rewriting.passes import rewrite
from vigilog.rewriting.queries import MANY_COLUMNS, queries
from vigilog.rewriting.rederive import rederive
from vigilog.rewriting.relevant import relevant
from vigilog.rewriting.sections import Section, show_sections
from vigilog.rewriting.separate import as_maintained

_TIGHTER = """\
// What Vigilog runs for an external view is a tighter form of this: for each row that lost a proof it asks whether
// the new state still has it, and follows only what is really lost. `--show demand` prints it."""


def explainable(path: Path, wanted: str) -> tuple[Program, str | Mapping[str, Strategy]]:
    """A program's file, and how its views are to be kept; of a data folder, how they are."""
    if not is_folder(path):
        return checked(path).program, wanted
    with opened(path, None, wanted) as database:
        return database.program, database.strategies


def explained(program: Program, show: Show, view: str | None, engine: str, strategy: str | Mapping[str, Strategy]) -> str:
    """The text for a checked program, or for what a view in it needs; the strategy is one that is wished for, or those that a data folder has."""
    evaluated = show in (Show.rules, Show.strata, Show.sql)  # by `run`; all else is of a database, where facts are rows like others
    plain = rewrite(program if evaluated else as_maintained(program)[0])
    if view is not None:
        plain = relevant(plain, [view])
    views = program.outputs if view is None else (view,)
    match show:
        case Show.rules:
            return explain_rules(plain)
        case Show.strata:
            return explain_strata(plain)
        case Show.sql:
            return explain_sql(plain, SparkDialect() if engine == "spark" else SqliteDialect())
        case Show.maintenance:
            return _sections(maintain(plain))
        case Show.external:
            return _sections(rederive(plain), _TIGHTER)
        case Show.demand:
            return _sections(external(plain).sections)
        case Show.query:
            return _queries(plain, views)
    return _strategies(plain, views, strategy)


def _sections(sections: Sequence[Section], *notes: str) -> str:
    return "\n\n".join([show_sections(sections) if sections else "// nothing here is derived", *notes])


def _queries(plain: Program, views: Sequence[str]) -> str:
    notes = [f"// {view} is a base relation: a query reads it as it is." for view in views if not _derived(plain, view)]
    for view in views:
        if _derived(plain, view) and plain.relations[view].arity > MANY_COLUMNS:
            notes.append(f"// {view} has many columns: of its patterns only those with one column known, with none and with all are shown.")
    return _sections(queries(plain, views), *notes)


def _strategies(plain: Program, views: Sequence[str], given: str | Mapping[str, Strategy]) -> str:
    chosen = choose_strategies(plain, [view for view in views if _derived(plain, view)], given) if isinstance(given, str) else given
    lines = {view: f"{strategy.name} ({strategy.reason})" for view, strategy in chosen.items()}
    return "\n".join(f"// {view}: {lines.get(view, 'stored (a base relation)')}" for view in views)


def _derived(plain: Program, view: str) -> bool:
    return any(rule.head.relation == view for rule in plain.rules)
