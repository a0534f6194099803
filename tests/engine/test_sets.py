"""Sets through all that a database does: classes of aggregates, what fails in them, goals, folders whose definitions change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import vigilog
from vigilog.core.errors import DataError, ProgramError
from vigilog.core.sets import Set
from vigilog.engine.database import Database
from vigilog.engine.watch import watch
from vigilog.language import classes
from vigilog.language.check import check
from vigilog.language.parser import read_program

FLAGS = """\
.decl flag(g: symbol, x: number)
.input flag
.aggregate any_bit(s: set<number>, r: number) python="bits:AnyBit"
.decl mask(g: symbol, m: number)
.output mask
mask(g, m) :- setof(x, flag(g, x), s), any_bit(s, m).
"""
BITS = """\
class AnyBit:
    def init(self): return 0
    def insert(self, state, element): return state | element
    def result(self, state): return state
"""


def written(folder: Path, text: str = BITS) -> Path:
    (folder / "bits.py").write_text(text, encoding="utf-8")
    (folder / "flags.dl").write_text(FLAGS, encoding="utf-8")
    return folder / "flags.dl"


@pytest.mark.parametrize("strategy", ["auto", "external", "materialized", "counted"])
def test_a_class_is_found_beside_its_program(tmp_path: Path, strategy: str) -> None:
    with vigilog.open(str(written(tmp_path)), facts={"flag": [("a", 1), ("a", 3), ("a", 4), ("b", 8)]}, strategy=strategy) as db:
        assert db.view("mask") == {("a", 7), ("b", 8)}
        with db.transaction() as tx:
            tx.delete("flag", [("a", 4)])
        assert tx.changes["mask"].plus == {("a", 3)}
        assert tx.changes["mask"].minus == {("a", 7)}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("def insert(self, state, element): return state // (element - 5)", "in insert of 129: ZeroDivisionError"),
        ("def result(self, state): return 'many'", "none of its type"),
        ("def insert(self, state, element): return state * 7 + element", "depends on the order"),
    ],
)
def test_what_a_class_may_not_do_refuses_the_transaction(tmp_path: Path, line: str, told: str) -> None:
    name = line.split("(")[0]
    # Over the samples of a check it behaves, for they have no element above 100.
    text = "\n".join(f"    def _{old.split('def ')[1]}" if name in old else old for old in BITS.splitlines())
    guarded = {
        "def insert": f"    {line.partition(':')[0]}: return state | element if element < 100 else {line.partition('return ')[2]}",
        "def result": "    def result(self, state): return state if state < 100 else 'many'",
    }[name]
    if "// (element - 5)" in line:
        guarded = "    def insert(self, state, element): return state | element if element < 100 else state // 0"
    path = written(tmp_path, f"{text}\n{guarded}\n")
    with vigilog.open(str(path), facts={"flag": [("a", 1)]}) as db:
        with pytest.raises(DataError, match=told) as refused, db.transaction() as tx:
            tx.insert("flag", [("a", 200), ("a", 300), ("a", 129)])
        assert refused.value.code == "aggregate"
        assert db.view("mask") == {("a", 1)}
        with db.transaction() as tx:
            tx.insert("flag", [("a", 2)])
        assert db.view("mask") == {("a", 3)}


def test_what_a_class_keeps_is_computed_anew_when_its_text_changes(tmp_path: Path) -> None:
    path = written(tmp_path)
    with vigilog.open(str(path), data=tmp_path / "data", facts={"flag": [("a", 1), ("a", 3)]}, strategy="materialized") as db:
        assert db.view("mask") == {("a", 3)}
    written(tmp_path, BITS.replace("return state\n", "return state + 10\n"))
    with vigilog.open(str(path), data=tmp_path / "data") as db:
        assert db.view("mask") == {("a", 13)}


def test_a_sealed_process_takes_no_other_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path)
    monkeypatch.setattr(classes, "_allowed", None)
    monkeypatch.setattr(classes, "_found", {})
    classes.seal({"known"})
    with pytest.raises(DataError) as refused:
        check(read_program(path))
    assert refused.value.code == "forbidden"
    classes.seal({"bits"})
    check(read_program(path))


def test_goals_have_sets(tmp_path: Path) -> None:
    text = ".decl t(v: symbol, d: symbol) .input t .decl w(v: symbol, s: set<symbol>) .output w w(v, s) :- setof(d, t(v, d), s)."
    facts = {"t": [("a", "x"), ("a", "y"), ("b", "y")]}
    for strategy in ("external", "materialized"):
        with vigilog.open(f"{text}\n", facts=facts, strategy=strategy) as db:
            assert db.ask('w(v, {"y", "x"})') == [("a", Set(["x", "y"]))]
            assert db.ask("setof(d, t(v, d), s), count(s, n), n > 1") == [("a", Set(["x", "y"]), 2)]
            assert db.ask('w(v, s), member("y", s), !member("x", s)') == [("b", Set(["y"]))]
            assert db.ask("setof((v, n), (t(v, d), n = strlen(d)), s)") == [("x", Set([("a", 1)])), ("y", Set([("a", 1), ("b", 1)]))]


def test_rows_of_sets_are_told_and_kept(tmp_path: Path) -> None:
    text = ".decl r(k: number, s: set<(symbol, unsigned)>) .input r .key r(k) .decl p(x: symbol, n: unsigned) .output p p(x, n) :- r(_, s), member((x, n), s)."
    big = 2**64 - 1
    with vigilog.open(f"{text}\n", data=tmp_path / "data", facts={}) as db:
        with db.transaction() as tx:
            tx.insert("r", [(1, {("a", big), ("b", 2)})])
        assert tx.changes["p"].plus == {("a", big), ("b", 2)}
        assert db.view("r") == {(1, frozenset({("a", big), ("b", 2)}))}
        assert json.loads(json.dumps(db.program.relations["r"].types[1].to_json(next(iter(db.view("r")))[1]))) == [["a", big], ["b", 2]]
    with vigilog.open(data=tmp_path / "data") as db:
        assert db.view("p") == {("a", big), ("b", 2)}
        assert db.verify().problems == []


def test_a_fold_that_depends_on_the_order_is_refused_where_samples_did_not_show_it() -> None:
    text = (
        ".decl r(s: set<number>) .input r .decl p(n: number) .output p .aggregate odd(s: set<number>, r: number) odd({}, 0). "
        "odd({x | rest}, r) :- odd(rest, q), x < 50, r = q + x. odd({x | rest}, r) :- odd(rest, q), x >= 50, r = 2 * q + x. p(n) :- r(s), odd(s, n)."
    )
    with vigilog.open(f"{text}\n", facts={"r": [({1, 2},)]}) as db:
        with pytest.raises(DataError, match="depends on the order") as refused, db.transaction() as tx:
            tx.insert("r", [({1, 60},)])
        assert refused.value.code == "aggregate"
        assert db.view("p") == {(3,)}


def test_a_set_has_at_most_a_million_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    import vigilog.core.sets
    import vigilog.planning.sqlite

    monkeypatch.setattr(vigilog.core.sets, "MOST_ELEMENTS", 3)
    monkeypatch.setattr(vigilog.planning.sqlite, "MOST_ELEMENTS", 3)
    text = ".decl q(x: number) .input q .decl p(s: set<number>) .output p p(s) :- setof(x, q(x), s)."
    with vigilog.open(f"{text}\n", facts={"q": [(1,), (2,), (3,)]}) as db:
        with pytest.raises(DataError) as refused, db.transaction() as tx:
            tx.insert("q", [(4,)])
        assert refused.value.code == "limit"
        assert db.view("p") == {(frozenset({1, 2, 3}),)}


def test_a_program_may_take_the_names_of_the_library() -> None:
    text = (
        ".decl member(x: number) .input member .decl size(x: number) .output size size(x) :- member(x). "
        ".aggregate median(s: set<number>, r: number) median(s, r) :- max(s, r). .decl p(r: number) .output p p(r) :- setof(x, member(x), s), median(s, r)."
    )
    with vigilog.open(f"{text}\n", facts={"member": [(1,), (2,), (9,)]}) as db:
        assert db.view("p") == {(9,)}


def test_a_class_without_a_method_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="has no result"):
        check(read_program(written(tmp_path, BITS.replace("def result", "def outcome"))))


@pytest.mark.parametrize("strategy", ["external", "materialized", "counted"])
def test_an_aggregate_is_defined_anew(tmp_path: Path, strategy: str) -> None:
    text = """
.decl q(g: symbol, x: number)
.decl p(g: symbol, n: number)
.output p
.aggregate total(s: set<number>, r: number)
total({}, 0).
total({x | rest}, r) :- total(rest, q), r = q + x.
.aggregate twice(s: set<number>, r: number)
twice(s, r) :- total(s, n), r = 2 * n.
p(g, n) :- setof(x, q(g, x), s), twice(s, n).
"""
    with vigilog.open(text, data=tmp_path / "data", facts={"q": [("a", 1), ("a", 2)]}, strategy=strategy) as db:
        assert db.view("p") == {("a", 6)}
        db.define("total({}, 100).\ntotal({x | rest}, r) :- total(rest, q), r = q + x.")
        assert db.view("p") == {("a", 206)}
        with db.transaction() as tx:
            tx.insert("q", [("a", 3)])
        assert tx.changes["p"].plus == {("a", 212)}
        assert tx.changes["p"].minus == {("a", 206)}
    with vigilog.open(data=tmp_path / "data") as db:
        assert db.view("p") == {("a", 212)}
        assert db.verify().problems == []


def test_a_lost_row_below_a_setof_has_its_reason() -> None:
    """What such a proof rests on reads a relation of bindings, or is an aggregate inside a disjunction."""
    text = """
        .decl e(x: number, y: number) .input e .decl d(x: number) .input d
        .decl p(x: number, s: set<number>) .output p
        p(x, s) :- setof(y / 2, (e(x, y), !d(y)), s), (d(x) ; 1 = min i : { e(x, y), i = y / 2, (i > 0 ; d(y)) }).
        .decl q(x: number) .output q
        q(x) :- e(x, _), (d(x) ; 2 = count : { e(x, _) }).
    """
    with Database(check(text).program, {"e": [(1, 2), (1, 6)], "d": []}) as database:
        (answer,) = watch(database, ['{"delete": {"e": [[1, 2]]}}'], why=True)
        proofs = {name: change["why"]["minus"] for name, change in answer["views"].items()}
        assert {name: [proof["literal"] for proof in found] for name, found in proofs.items()} == {"p": ["p(1, {1, 3})"], "q": ["q(1)"]}
        assert '"broken": true' in json.dumps(proofs["p"]) and '"broken": true' in json.dumps(proofs["q"])
