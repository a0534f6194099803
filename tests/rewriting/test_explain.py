"""Maintenance and queries as `explain` prints them: the rules of the paper, and what they find when they are read again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

import vigilog
from tests.golden import Case, cases
from tests.rewriting.sections import Printed, Rows, evaluate, read_sections, told, with_changes
from tests.treatments import taken
from vigilog import reference
from vigilog.cli.main import app
from vigilog.core.delta import Delta, between
from vigilog.engine.database import Database
from vigilog.language.check import check
from vigilog.language.parser import parse
from vigilog.language.printer import show_statement
from vigilog.language.program import Program
from vigilog.rewriting.demand.queries import queries
from vigilog.rewriting.maintenance.external import external
from vigilog.rewriting.maintenance.plan import plan
from vigilog.rewriting.maintenance.strategies import MATERIALIZED
from vigilog.rewriting.naming import Naming
from vigilog.rewriting.paper.maintain import maintain
from vigilog.rewriting.paper.rederive import rederive
from vigilog.rewriting.passes import rewrite
from vigilog.rewriting.program.separate import as_maintained
from vigilog.rewriting.sections import Section, show_sections

GRAPH = """
.decl edge(x: symbol, y: symbol)
.input edge
.decl closure(x: symbol, y: symbol)
.output closure
closure(x, y) :- edge(x, y).
closure(x, y) :- edge(x, z), closure(z, y).
"""

EXAMPLE_1 = """\
closure_del(x, y) :- edge_del(x, y).
closure_new(x, y) :- closure(x, y), !closure_del(x, y).
edge_new(x, y) :- edge(x, y), !edge_del(x, y).
closure_red(x, y) :- closure_del(x, y), edge_new(x, y).
closure_new(x, y) :- closure_red(x, y).
closure_ins(x, y) :- edge_ins(x, y).
closure_new(x, y) :- closure_ins(x, y).
edge_new(x, y) :- edge_ins(x, y).
closure_plus(x, y) :- closure_ins(x, y), !closure(x, y).
closure_minus(x, y) :- closure_del(x, y), !closure_ins(x, y), !closure_red(x, y).
closure_del(x, y) :- edge_del(x, z), closure(z, y).
closure_del(x, y) :- edge(x, z), closure_del(z, y).
closure_red(x, y) :- closure_del(x, y), edge_new(x, z), closure_new(z, y).
closure_ins(x, y) :- edge_ins(x, z), closure_new(z, y).
closure_ins(x, y) :- edge_new(x, z), closure_ins(z, y).
""".splitlines()

# Figure 3, with what its rule R of R1 lacks; its sup_1 of the query rules are sup_2 and sup_3 here.
FIGURE_3 = """\
closure_del(x, y) :- edge_del(x, y).
closure_red(x, y) :- closure_del(x, y), edge_new(x, y).
closure_ins(x, y) :- edge_ins(x, y).
closure_plus(x, y) :- closure_ins(x, y), !closure(x, y).
m_closure_bb(x, y) :- closure_ins(x, y).
closure_del(x, y) :- edge_del(x, z), closure(z, y).
m_closure_bf(z) :- edge_del(x, z).
closure_del(x, y) :- edge(x, z), closure_del(z, y).
closure_red(x, y) :- sup_1(x, y, z), closure_new(z, y).
sup_1(x, y, z) :- closure_del(x, y), edge_new(x, z).
m_closure_bb(z, y) :- sup_1(x, y, z).
closure_ins(x, y) :- edge_ins(x, z), closure_new(z, y).
m_closure_bf(z) :- edge_ins(x, z).
closure_ins(x, y) :- edge_new(x, z), closure_ins(z, y).
closure(x, y) :- m_closure_bf(x), edge(x, y).
closure(x, y) :- m_closure_bb(x, y), edge(x, y).
closure(x, y) :- sup_2(x, z), closure(z, y).
sup_2(x, z) :- m_closure_bf(x), edge(x, z).
m_closure_bf(z) :- sup_2(x, z).
closure(x, y) :- sup_3(x, y, z), closure(z, y).
sup_3(x, y, z) :- m_closure_bb(x, y), edge(x, z).
m_closure_bb(z, y) :- sup_3(x, y, z).
""".splitlines()

NOT_IN_FIGURE_3 = """\
closure_new(x, y) :- closure(x, y), !closure_del(x, y).
edge_new(x, y) :- edge(x, y), !edge_del(x, y).
closure_new(x, y) :- closure_red(x, y).
closure_new(x, y) :- closure_ins(x, y).
edge_new(x, y) :- edge_ins(x, y).
closure_minus(x, y) :- closure_del(x, y), !closure_ins(x, y), !closure_red(x, y).
""".splitlines()


@cache
def plain(text: str) -> Program:
    return rewrite(as_maintained(check(text).program)[0])


@cache
def printed(text: str, algorithm: str) -> list[Printed]:
    program = plain(text)
    derived = [rule.head.relation for rule in program.rules]
    made: dict[str, Callable[[], Iterable[Section]]] = {
        "paper": lambda: maintain(program),
        "rederived": lambda: rederive(program),
        "stored": lambda: plan(program, derived, dict.fromkeys(derived, MATERIALIZED)).sections,
        "demand": lambda: plan(program, derived).sections,
    }
    return read_sections(show_sections(made[algorithm]()))


ALGORITHMS = ["paper", "rederived", "stored", "demand"]


# -- the rules of the paper


def test_maintenance_of_the_closure_is_example_1() -> None:
    [section] = printed(GRAPH, "paper")
    assert section.title == "stratum 1: closure"
    assert list(section.lines) == EXAMPLE_1


def test_rederivation_of_the_closure_is_figure_3() -> None:
    sections = printed(GRAPH, "rederived")
    assert [section.title.split(" (")[0] for section in sections] == [f"stratum 1: closure, phase {phase}" for phase in "abc"]
    lost, gained, net = (section.lines for section in sections)
    assert [line for line in FIGURE_3 if line in lost] == list(lost)
    assert [line for line in FIGURE_3 if line in gained] == [line for line in gained if line not in NOT_IN_FIGURE_3]
    assert list(net) == [EXAMPLE_1[8], EXAMPLE_1[9]]
    assert {*lost, *gained, *net} == {*FIGURE_3, *NOT_IN_FIGURE_3}


def test_a_rule_knows_the_rule_it_comes_from() -> None:
    program = plain(GRAPH)
    for section in (*maintain(program), *rederive(program), *external(program).sections, *queries(program, ["closure"])):
        assert {show_statement(rule.source) for rule in section.program.rules} <= set(GRAPH.split("\n")[5:7])


def test_one_chain_of_supplementary_relations_starts_at_the_change() -> None:
    text = """
.decl l(x: number, y: number)
.decl s(x: number, y: number)
.decl t(x: number, y: number)
.decl r(x: number, y: number)
.decl p(x: number, y: number)
r(x, y) :- l(x, y).
t(x, y) :- s(x, y).
p(a, b) :- t(a, x), l(x, y), r(y, b).
"""
    lost = next(section for section in printed(text, "rederived") if section.title.startswith("stratum 3: p, phase a"))
    assert [line for line in lost.lines if "l_del(x, y)" in line or "sup_2" in line] == [
        "p_del(a, b) :- sup_2(y, a), r(y, b).",
        "m_t_fb(x) :- l_del(x, y).",
        "sup_2(y, a) :- l_del(x, y), t(a, x).",
        "m_r_bf(y) :- sup_2(y, a).",
    ]


# -- what they find

EDGES = {(*pair,) for pair in ("fe", "ed", "ea", "ab", "dc", "bc", "cg")}
CHANGE = {"edge": Delta(frozenset({("h", "d")}), frozenset({("b", "c")}))}
FOUND = Delta(frozenset((*pair,) for pair in ("hd", "hc", "hg")), frozenset((*pair,) for pair in ("ac", "ag", "bc", "bg")))


def changes_of(text: str, base: Rows, changes: dict[str, Delta], algorithm: str) -> tuple[dict[str, Delta], Rows]:
    """The changes of all views that the printed sections find, and all rows they derived."""
    program, naming = plain(text), Naming(plain(text).relations)
    views = {rule.head.relation for rule in program.rules}
    given = with_changes(base, changes, naming)
    if algorithm in ("paper", "stored"):
        given |= {view: rows for view, rows in reference.evaluate(program, base).items() if view in views}
    if algorithm == "demand":
        given |= {naming(name, "new"): changes.get(name, Delta()).apply(rows) for name, rows in base.items()}
    state = evaluate(printed(text, algorithm), given)
    return told(state, views, naming), {name: rows for name, rows in state.items() if name not in given}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_golden_example(algorithm: str) -> None:
    assert changes_of(GRAPH, {"edge": EDGES}, CHANGE, algorithm)[0] == {"closure": FOUND}


@pytest.mark.parametrize("algorithm", ["rederived", "demand"])
def test_what_is_derived_does_not_grow_with_what_is_not_touched(algorithm: str) -> None:
    sizes = []
    for more in (0, 5, 20):
        apart = {(f"n{number}", f"n{number + 1}") for number in range(more)} | {(f"n{more}", "g")}
        found, derived = changes_of(GRAPH, {"edge": EDGES | apart}, CHANGE, algorithm)
        assert found == {"closure": FOUND}
        sizes.append({name: len(rows) for name, rows in derived.items() if name != "edge_new"})
    assert sizes[0] == sizes[1] == sizes[2]


BASE = """
.decl e(x: number, y: number)
.decl f(x: number, y: number)
.decl g(x: number)
.input e
.input f
.input g
"""

PROGRAMS = {
    "three literals": ".decl q(x: number, y: number) q(x, y) :- e(x, y). .decl p(a: number, b: number) p(a, b) :- q(a, x), f(x, y), q(y, b).",
    "self-join": ".decl p(x: number) p(x) :- e(x, y), e(y, x), e(_, x).",
    "constants": ".decl p(x: number, y: number) p(1, x) :- e(x, 2). p(x, x) :- e(1, x), p(1, x). p(x, 3) :- g(x).",
    "mutual recursion": ".decl a(x: number) .decl b(x: number) a(x) :- g(x). a(y) :- b(x), e(x, y). b(y) :- a(x), f(x, y), !g(y).",
    "views on views": ".decl p(x: number) .decl q(x: number) .decl r(x: number) p(x) :- e(x, _). q(x) :- p(x), !g(x). r(x) :- p(x), !q(x).",
    "negation of some row": ".decl p(x: number) .decl q(x: number, y: number) q(x, y) :- e(x, y). p(x) :- g(x), !e(x, _), !q(_, x).",
    "negation after negation": ".decl q(x: number) .decl r(x: number) .decl p(x: number, y: number) q(y) :- e(_, y). r(y) :- f(y, _). p(x, y) :- e(x, y), !q(x), !r(y). p(x, y) :- p(y, x), !q(x), !r(y).",
    "a recursion that negates": ".decl q(x: number) q(y) :- e(_, y). .decl p(x: number, y: number) p(x, y) :- f(x, y). p(x, y) :- p(y, x), !q(x).",
    "computed in a head": ".decl p(x: number) p(x + 1) :- e(x, _). p(x * 2) :- p(x), x < 5, !g(x).",
    "computed in an atom": ".decl q(x: number) q(x) :- e(x, _). q(x) :- g(x). .decl p(x: number) p(x) :- q(x), g(x + 1). p(x) :- f(x, y), q(x - y), !q(y + 1).",
    "computed from each other": ".decl q(x: number, y: number) q(x, y) :- e(x, y). .decl p(x: number) p(x) :- q(x + 1, y), f(y - 1, x), q(y, _).",
    "an aggregate": ".decl p(x: number, n: number) p(x, n) :- g(x), n = count : { e(x, y), !g(y) }.",
    "an aggregate of views": ".decl q(x: number, y: number) q(x, y) :- e(x, y). q(x, y) :- q(x, z), f(z, y). .decl p(x: number, n: number) p(x, n) :- g(x), n = sum y : { q(x, y), f(y, z), !q(z, x) }, n > 1.",
    "an aggregate of computed values": ".decl p(x: number) p(x) :- g(x), 1 <= count : { e(i + 1, _), i = x }.",
    "an aggregate of alternatives": ".decl q(x: number) q(x) :- e(x, _). .decl p(x: number, n: number) p(x, n) :- g(x), n = max i : { e(x, i) ; f(i, x), q(i) }.",
    "an aggregate in an aggregate": ".decl q(x: number) q(x) :- e(x, _). .decl p(n: number) p(n) :- n = count : { g(x), 0 < count : { q(y), e(x, y) } }.",
    "a recursion over an aggregate": ".decl q(x: number, y: number) q(x, y) :- e(x, y). .decl p(x: number) p(x) :- g(x). p(n) :- p(x), n = count : { q(x, y) }.",
    "stated and derived": ".decl p(x: number) .input p p(2). p(x) :- g(x), e(x, _). p(x) :- p(y), f(y, x).",
    "nothing to read": ".decl p(x: number) p(x) :- x = 1. p(1 + 1). .decl t() t() :- p(x), !g(x).",
    "what is there already": ".decl p(x: number) p(x) :- g(x). p(x) :- p(x), e(x, _).",
}

ROWS: Rows = {"e": {(1, 2), (2, 3), (3, 1), (3, 3)}, "f": {(1, 1), (2, 1), (3, 2)}, "g": {(1,), (3,)}}
NEAR: dict[str, list[tuple[int, ...]]] = {"e": [(2, 1), (1, 3)], "f": [(1, 2), (2, 2)], "g": [(2,), (4,)]}


@pytest.mark.parametrize("name", PROGRAMS)
def test_printed_rules_find_every_change(name: str) -> None:
    text = BASE + PROGRAMS[name]
    program = plain(text)
    views = {rule.head.relation for rule in program.rules}
    base: Rows = {relation: set(ROWS.get(relation, {(2,)})) for relation in program.relations if relation not in views}
    old = reference.evaluate(program, base)
    single = [{name: Delta(minus=frozenset({row}))} for name, rows in ROWS.items() for row in sorted(rows)]
    single += [{name: Delta(plus=frozenset({row}))} for name, rows in NEAR.items() for row in rows]
    many = {name: Delta(frozenset(NEAR[name]), frozenset(sorted(rows)[:2])) for name, rows in ROWS.items()}
    for changes in (*single, many):
        new = reference.evaluate(program, {name: changes.get(name, Delta()).apply(rows) for name, rows in base.items()})
        expected = {view: between(old[view], new[view]) for view in views}
        for algorithm in ALGORITHMS:
            assert changes_of(text, base, changes, algorithm)[0] == expected, (algorithm, changes)


@pytest.mark.parametrize("case", taken(cases(), 1 / 3), ids=str)
def test_the_sections_of_every_golden_program_read_again(case: Case) -> None:
    for algorithm in ALGORITHMS:
        found = printed(case.program, algorithm)
        assert bool(found) == bool(plain(case.program).rules), "what is derived is maintained"


@pytest.mark.parametrize("strategy", ["external", "materialized"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_database_finds_them_too(name: str, strategy: str) -> None:
    program = check(BASE + "".join(f".output {view}\n" for view in _views(PROGRAMS[name])) + PROGRAMS[name]).program
    facts = {**ROWS, **({"p": {(2,)}} if name == "stated and derived" else {})}
    with Database(program, facts, strategy) as database:
        before = {view: database.view(view) for view in program.outputs}
        found = database.apply({"delete": {"e": [(2, 3)], "g": [(1,)]}, "insert": {"f": [(1, 2)], "g": [(2,)]}})
        after = reference.evaluate(program, {**facts, "e": ROWS["e"] - {(2, 3)}, "f": ROWS["f"] | {(1, 2)}, "g": {(2,), (3,)}})
        assert found == {view: delta for view in program.outputs if (delta := between(before[view], after[view]))}


def _views(text: str) -> list[str]:
    return [declaration.relation for declaration in parse(text).declarations]


# -- names, types, queries


def test_names_do_not_clash_with_a_user_s() -> None:
    text = GRAPH + "".join(
        f".decl {name}(x: symbol)\n.input {name}\n"
        for name in ("closure_del", "edge_new", "m_closure_bb", "sup_1", "closure_plus", "closure_plus_")
    )
    text += ".decl p(x: symbol) p(x) :- closure_del(x), edge_new(x), m_closure_bb(x), sup_1(x), closure_plus(x), closure_plus_(x), !closure(x, x).\n"
    program = plain(text)
    base: Rows = {name: {("b",), ("c",)} for name in program.relations if len(program.relations[name].attributes) == 1}
    base = {name: rows for name, rows in base.items() if name != "p"} | {"edge": EDGES}
    for algorithm in ALGORITHMS:
        made = {line.split("(")[0] for section in printed(text, algorithm) for line in section.lines}
        assert made & set(program.relations) <= {"closure", "p"}, "no rule for a relation of the user's but views on demand"
        assert changes_of(text, base, CHANGE, algorithm)[0] == {"closure": FOUND, "p": Delta()}


def test_named_types_give_way_to_those_behind_them() -> None:
    text = """
.type City <: symbol
.type Price <: decimal(6,2)
.decl road(a: City, b: City, toll: Price)
.input road
.decl way(a: City, b: City)
way(a, b) :- road(a, b, t), t < 10.5.
way(a, b) :- road(a, c, _), way(c, b).
"""
    for algorithm in ALGORITHMS:
        assert all("City" not in line for section in printed(text, algorithm) for line in section.lines)
    read_sections(show_sections(queries(plain(text), ["way"])))


@pytest.mark.parametrize("name", PROGRAMS)
def test_queries_by_every_pattern(name: str) -> None:
    program = plain(BASE + PROGRAMS[name])
    views = {rule.head.relation for rule in program.rules}
    base: Rows = {relation: set(ROWS.get(relation, {(2,)})) for relation in program.relations if relation not in views}
    all_rows = reference.evaluate(program, base)
    for view in views:
        sections = read_sections(show_sections(queries(program, [view])))
        assert len({section.title for section in sections}) == 2 ** program.relations[view].arity
        for title in {section.title for section in sections}:
            answer, question = title.split(", asked by ")
            known = [place for place, arg in enumerate(answer.split("(")[1].rstrip(")").split(", ")) if arg and arg != "_"]
            for goal in {tuple(row[place] for place in known) for row in all_rows[view]} | {(2,) * len(known)}:
                asked = evaluate([section for section in sections if section.title == title], {**base, question.split("(")[0]: {goal}})
                matching = {row for row in all_rows[view] if tuple(row[place] for place in known) == goal}
                found = asked.get(view, set())
                assert found <= all_rows[view], title
                assert {row for row in found if tuple(row[place] for place in known) == goal} == matching, title


def test_a_view_with_many_columns_is_shown_in_few_patterns() -> None:
    columns = ", ".join(f"x{number}: number" for number in range(9))
    names = ", ".join(f"x{number}" for number in range(9))
    sections = queries(plain(f".decl e({columns}) .decl p({columns}) p({names}) :- e({names})."), ["p"])
    assert len(sections) == 11


# -- the command


def explain(folder: Path, text: str, *options: str) -> str:
    (folder / "p.dl").write_text(text, encoding="utf-8")
    done = CliRunner().invoke(app, ["explain", str(folder / "p.dl"), *options])
    assert done.exit_code == 0, done.output
    return done.stdout


TWO = GRAPH + ".decl far(x: symbol, y: symbol)\n.output far\nfar(x, y) :- closure(x, y), !edge(x, y).\n"


@pytest.mark.parametrize("show", ["maintenance", "paper", "external", "query"])
@pytest.mark.parametrize("view", [None, "closure", "far"])
def test_what_is_shown_reads_again(tmp_path: Path, show: str, view: str | None) -> None:
    text = explain(tmp_path, TWO, "--show", show, *([] if view is None else ["--view", view]))
    sections = read_sections(text)
    assert sections
    heads = {line.split("(")[0] for section in sections for line in section.lines}
    assert "closure" in heads or show in ("maintenance", "paper")
    assert any(head.startswith("far") for head in heads) == (view != "closure")
    parse(text)


@pytest.mark.parametrize(("show", "algorithm"), [("paper", "paper"), ("external", "rederived")])
def test_the_paper_s_forms_say_so_and_what_runs_instead(tmp_path: Path, show: str, algorithm: str) -> None:
    text = explain(tmp_path, GRAPH, "--show", show)
    assert "The paper's form" in text.splitlines()[-1] and "--show maintenance" in text.splitlines()[-1]
    assert read_sections(text)[0].lines == printed(GRAPH, algorithm)[0].lines


def test_maintenance_is_what_is_run(tmp_path: Path) -> None:
    """What is printed follows the strategy and the executor."""
    for strategy, algorithm in (("materialized", "stored"), ("auto", "stored"), ("external", "demand")):
        shown = read_sections(explain(tmp_path, GRAPH, "--show", "maintenance", "--strategy", strategy))
        assert [section.lines for section in shown] == [section.lines for section in printed(GRAPH, algorithm)]
    counted = explain(tmp_path, TWO, "--show", "maintenance", "--strategy", "counted")
    assert "far_proofs" in counted and "closure_red" in counted
    on_spark = explain(tmp_path, TWO, "--show", "maintenance", "--engine", "spark")
    assert "closure_red" not in on_spark and "m_closure" in on_spark


def test_a_base_relation_has_nothing_to_show(tmp_path: Path) -> None:
    for show in ("maintenance", "paper", "external", "query", "strategy"):
        text = explain(tmp_path, GRAPH, "--show", show, "--view", "edge")
        assert text and all(line.startswith("//") for line in text.splitlines() if line), show


def test_strategies_come_with_reasons(tmp_path: Path) -> None:
    lines = explain(tmp_path, TWO, "--show", "strategy").splitlines()
    assert lines[0].startswith("// closure: materialized (closure is recursive")
    assert lines[1].startswith("// far: materialized (closure is recursive")
    wished = explain(tmp_path, TWO, "--show", "strategy", "--strategy", "external", "--view", "far")
    assert wished == "// far: external (as asked for)\n"
    counted = explain(tmp_path, TWO, "--show", "strategy", "--strategy", "counted").splitlines()
    assert counted[0].startswith("// closure: materialized (stored as asked for; it is recursive")
    assert counted[1] == "// far: counted (as asked for)"
    on_spark = explain(tmp_path, TWO, "--show", "strategy", "--strategy", "counted", "--engine", "spark").splitlines()
    assert on_spark[1] == "// far: counted (as asked for)"


def test_strategies_of_a_data_folder_are_those_it_has(tmp_path: Path) -> None:
    vigilog.open(check(GRAPH).program, data=tmp_path / "data", strategy="external").close()
    shown = CliRunner().invoke(app, ["explain", str(tmp_path / "data"), "--show", "strategy"])
    assert shown.output == "// closure: external (as asked for)\n"
    rules = CliRunner().invoke(app, ["explain", str(tmp_path / "data")])
    assert rules.output == explain(tmp_path, GRAPH)


def test_facts_of_the_program_are_rows_and_not_asked_for(tmp_path: Path) -> None:
    facts = GRAPH.replace(".input edge", 'edge("a", "b").')
    assert explain(tmp_path, facts, "--show", "query") == explain(tmp_path, GRAPH, "--show", "query")
