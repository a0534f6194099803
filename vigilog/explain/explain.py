"""What `vigilog explain` shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from vigilog.engine.database import Database
from vigilog.engine.extension import extended
from vigilog.engine.nested import extraction, shape_of
from vigilog.explain.conditions import explain_conditions
from vigilog.explain.programs import explain_rules, explain_sql, explain_strata
from vigilog.explain.show import Show
from vigilog.language.frames.translate import shapes
from vigilog.language.program import Program
from vigilog.language.strata import improved, without_improved
from vigilog.planning.sparksql import SparkDialect
from vigilog.planning.sqlite import SqliteDialect
from vigilog.rewriting.demand.queries import MANY_COLUMNS, queries
from vigilog.rewriting.maintenance.on_demand import on_demand
from vigilog.rewriting.maintenance.plan import plan
from vigilog.rewriting.maintenance.strategies.choose import Decision, decide, grouped_relations, kept_relations
from vigilog.rewriting.paper.cream import cream
from vigilog.rewriting.paper.maintain import maintain
from vigilog.rewriting.paper.rederive import rederive
from vigilog.rewriting.passes import rewrite
from vigilog.rewriting.program.relevant import relevant
from vigilog.rewriting.program.separate import as_maintained
from vigilog.rewriting.sections import Section, show_sections

_PAPER = """\
// The paper's form (Staudt & Jarke 1996, algorithm {}). What is run is printed by `--show maintenance`."""

_STORED = (
    "// Recursive through min or max, so stored, and read as base relations are: {}. How that changes is printed by `--show maintenance`."
)


def explained(program: Program, show: Show, view: str | None, engine: str, strategy: str | Mapping[str, Decision]) -> str:
    """The text for a checked program, or for what a view in it needs; the strategy is one that is wished for, or those that a data folder has."""
    if show is Show.supports:
        return _supports(program)
    program = extended(program).ordinary
    evaluated = show in (Show.rules, Show.strata, Show.sql)  # by `run`; all else is of a database, where facts are rows like others
    plain = rewrite(program if evaluated else as_maintained(program)[0])
    if view is not None:
        plain = relevant(plain, [view])
    views = program.outputs if view is None else (view,)
    decisions = decide(plain, views, strategy) if isinstance(strategy, str) else strategy
    best = improved(plain)
    notes = [_STORED.format(", ".join(sorted(best)))] if best else []
    match show:
        case Show.rules:
            return explain_rules(plain)
        case Show.strata:
            return explain_strata(plain)
        case Show.sql:
            return explain_sql(plain, SparkDialect() if engine == "spark" else SqliteDialect())
        case Show.maintenance:
            made = plan(plain, views, kept_relations(plain, decisions), grouped_relations(plain, decisions))
            sections = (on_demand(made) if engine == "spark" else made).sections
            declared = {name for section in sections for name in section.program.relations}
            form = cream(program, views, declared)
            return _sections(sections, *([form] if form else []))
        case Show.paper:
            return _sections(maintain(plain), _PAPER.format("1"), *notes)
        case Show.external:
            return _sections(rederive(plain), _PAPER.format("2, in the phases that algorithm 3 lacks"), *notes)
        case Show.query:
            return _queries(without_improved(plain), [view for view in views if view not in best], *notes)
        case Show.conditions:
            return explain_conditions(program, view)
        case Show.extraction:
            return _extractions(program, view)
        case Show.strategy:
            return _strategies(plain, views, decisions)
        case _:
            assert_never(show)


def _supports(program: Program) -> str:
    """The atoms of constrained relations, over the facts that the program states."""
    with Database(program, {}) as database:
        return supports(database)


def supports(database: Database) -> str:
    """The atoms of constrained relations of a database."""
    return database.mediation.supports() if database.mediation else "// no relation is constrained"


def _sections(sections: Sequence[Section], *notes: str) -> str:
    return "\n\n".join([show_sections(sections) if sections else "// nothing here is derived", *notes])


def _extractions(program: Program, view: str | None) -> str:
    frames = shapes(program) if view is None else {view: shape_of(program, view)}
    return "\n\n".join(map(extraction, frames.values())) if frames else "// there are no view frames"


def _queries(plain: Program, views: Sequence[str], *comments: str) -> str:
    notes = [*comments, *[f"// {view} is a base relation: a query reads it as it is." for view in views if not _derived(plain, view)]]
    for view in views:
        if _derived(plain, view) and plain.relations[view].arity > MANY_COLUMNS:
            notes.append(f"// {view} has many columns: of its patterns only those with one column known, with none and with all are shown.")
    return _sections(queries(plain, views), *notes)


def _strategies(plain: Program, views: Sequence[str], decisions: Mapping[str, Decision]) -> str:
    lines = {view: f"{decision.name} ({decision.reason})" for view, decision in decisions.items() if _derived(plain, view)}
    return "\n".join(f"// {view}: {lines.get(view, 'stored (a base relation)')}" for view in views)


def _derived(plain: Program, view: str) -> bool:
    return any(rule.head.relation == view for rule in plain.rules)
