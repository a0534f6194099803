"""Domains that a program asks: files, modules, databases, services; answers that are remembered, refreshes, sources that are down."""

from __future__ import annotations

import datetime
import json
import sqlite3
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from vigilog.core.delta import Delta
from vigilog.core.errors import DataError, ProgramError
from vigilog.domains.domain import DomainError
from vigilog.engine.database import Database
from vigilog.engine.sources import functions
from vigilog.engine.watch import watch
from vigilog.folder.durable import Durable
from vigilog.folder.opening import open_program
from vigilog.folder.verify import verify
from vigilog.language.check import check

TYPED = """
.domain d(kind=file, path=".")
.table d:t(name: symbol, level: number)
.decl high(name: symbol, level: number)
.output high
.decl n(x: number)
high(r.name, r.level) :- n(x), in(r, d:select_ge("t", "level", x)).
.decl absent(x: symbol)
.output absent
.decl who(x: symbol)
absent(x) :- who(x), !in(_, d:select_eq("t", "name", x)).
"""


def lines(db: Database, *transactions: dict[str, Any]) -> list[dict[str, Any]]:
    return list(watch(db, [json.dumps(one) for one in transactions]))


@pytest.mark.parametrize("form", ["csv", "json", "jsonl", "parquet", "dbf"])
def test_files_are_tables(tmp_path: Path, form: str) -> None:
    rows = [("a", 1), ("b", 5), ("c", 9)]
    write(tmp_path, form, rows)
    with opened(tmp_path, TYPED, {"n": [(5,)], "who": [("a",), ("z",)]}) as db:
        assert db.view("high") == {("b", 5), ("c", 9)} and db.view("absent") == {("z",)}
        write(tmp_path, form, [("b", 5), ("z", 7)])
        assert lines(db, {"refresh": ["d"]}) == [
            {
                "tx": 1,
                "views": {
                    "high": {"plus": [["z", 7]], "minus": [["c", 9]]},
                    "absent": {"plus": [["a"]], "minus": [["z"]]},
                },
            }
        ]
        assert lines(db, {"refresh": ["d"]})[0]["views"] == {}, "nothing is different"
        assert lines(db, {"insert": {"n": [[1]]}, "delete": {"n": [[5]]}})[0]["views"] == {}, "the same rows, by another call"


def opened(folder: Path, text: str, facts: dict[str, list[tuple[Any, ...]]]) -> Database:
    (folder / "p.dl").write_text(text.replace('path="."', f'path="{folder}"'))
    return open_program(folder / "p.dl", facts)


def write(folder: Path, form: str, rows: list[tuple[str, int]]) -> None:
    match form:
        case "csv":
            (folder / "t.csv").write_text("".join(f"{name},{level}\n" for name, level in [("name", "level"), *rows]))
        case "json":
            (folder / "t.json").write_text(json.dumps([{"name": name, "level": level} for name, level in rows]))
        case "jsonl":
            (folder / "t.json").write_text("".join(json.dumps({"level": level, "name": name}) + "\n" for name, level in rows))
        case "parquet":
            pyarrow = pytest.importorskip("pyarrow")
            from pyarrow import parquet

            parquet.write_table(
                pyarrow.table({"name": [name for name, _ in rows], "level": [level for _, level in rows]}), folder / "t.parquet"
            )
        case "dbf":
            fields = [(b"NAME", b"C", 10), (b"LEVEL", b"N", 5)]
            size, header = 1 + sum(length for *_, length in fields), 32 + 32 * len(fields) + 1
            data = (
                bytes([3, 126, 11, 18])
                + len(rows).to_bytes(4, "little")
                + header.to_bytes(2, "little")
                + size.to_bytes(2, "little")
                + bytes(20)
            )
            for name, kind, length in fields:
                data += name.ljust(11, b"\0") + kind + bytes(4) + bytes([length, 0]) + bytes(14)
            data += b"\r" + b"".join(b" " + name.encode().ljust(10) + str(level).encode().rjust(5) for name, level in rows) + b"\x1a"
            (folder / "t.dbf").write_bytes(data)
        case _:
            raise AssertionError(form)


MODULE = """
from dataclasses import dataclass
from typing import NamedTuple

calls = []

class Pair(NamedTuple):
    low: int
    high: int

def around(x: int) -> list[Pair]:
    calls.append(x)
    return [Pair(x - 1, x + 1)]

def even(x: int) -> bool:
    return x % 2 == 0

def succ(x: int) -> list[int]:
    return [x + 1] if x < 40 else []

def bad(x: int) -> int:
    raise ValueError("no luck")

def wrong(x: int) -> int:
    return "text"
"""
USING = """
.domain m(kind=python, module="source")
.decl n(x: number)
.decl near(x: number, low: number, high: number)
.output near
near(x, p.low, p.high) :- n(x), in(p, m:around(x)), in(1, m:even(x)).
.decl reach(x: number)
.output reach
reach(x) :- n(x).
reach(y) :- reach(x), in(y, m:succ(x)).
"""


def test_functions_of_a_module(tmp_path: Path) -> None:
    (tmp_path / "source.py").write_text(MODULE)
    with opened(tmp_path, USING, {"n": [(1,), (2,)]}) as db:
        assert db.view("near") == {(2, 1, 3)}
        assert db.view("reach") == {(x,) for x in range(1, 41)}, "recursion through a call"
        assert db.sources is not None
        before = db.sources.made
        (answer,) = lines(db, {"insert": {"n": [[4]]}})
        assert answer["views"] == {"near": {"plus": [[4, 3, 5]], "minus": []}}, "4 was reached before"
        assert db.sources.made == before + 2, "a call is made once"
        (tmp_path / "source.py").write_text(MODULE.replace("x % 2 == 0", "x % 2 == 1"))
        (answer,) = lines(db, {"refresh": ["m"]})
        assert answer["views"]["near"] == {"plus": [[1, 0, 2]], "minus": [[2, 1, 3], [4, 3, 5]]}, "changed code is a changed source"
        (answer,) = lines(db, {"delete": {"n": [[1], [2], [4]]}})
        assert answer["views"]["reach"]["plus"] == [] and db.view("reach") == set()
        assert not any(db.rows(call.asked) for call in db.sources.calls), "what nobody asks for is forgotten"


@pytest.mark.parametrize(("function", "message"), [("bad", "no luck"), ("wrong", "is not a number"), ("nothing", "there is no function")])
def test_a_module_that_fails(tmp_path: Path, function: str, message: str) -> None:
    (tmp_path / "source.py").write_text(MODULE)
    text = f'.domain m(kind=python, module="source") .decl n(x: number) .decl p(y: number) .output p\np(y) :- n(x), in(y, m:{function}(x)).'
    if function == "nothing":
        with pytest.raises(ProgramError, match=message):
            opened(tmp_path, text, {"n": []})
        return
    with opened(tmp_path, text, {"n": []}) as db:
        (answer,) = lines(db, {"insert": {"n": [[1]]}})
        assert answer["error"]["code"] == "domain" and answer["error"]["domain"] == "m" and message in answer["error"]["message"]
        assert db.rows("n") == set(), "nothing has changed"


ODD = """
import time
from typing import Iterator, NamedTuple

class Pair(NamedTuple):
    low: int
    high: int

def hang(x: int) -> int:
    time.sleep(60)

def loop(x: int) -> int:
    while True:
        x += 1

def endless(x: int) -> Iterator[int]:
    while True:
        x += 1
        yield x

def nothing(x: int) -> int:
    return None

def leaves(x: int) -> int:
    raise SystemExit(3)

def large(x: int) -> int:
    return 2**70

def other(x: int) -> list[Pair]:
    return [3]

def plain(x: int) -> list[Pair]:
    print("this is no line of watch")
    return [(x, x + 1)]
"""


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("hang", "hang: it takes longer than 0.5 s"),
        ("loop", "loop: it takes longer than 0.5 s"),
        ("endless", "gives more rows than max_rows, which is 1000"),
        ("nothing", "gives a null"),
        ("leaves", "raises SystemExit: 3"),
        ("large", "is not a number"),
        ("other", "an answer is a int without low, high"),
    ],
)
def test_a_function_that_does_what_it_should_not(tmp_path: Path, function: str, message: str) -> None:
    (tmp_path / "source.py").write_text(ODD)
    text = f"""
.domain m(kind=python, module="source", timeout="0.5", max_rows=1000)
.decl n(x: number)
.decl p(y: number)
.output p
p({"y.low" if function == "other" else "y"}) :- n(x), in(y, m:{function}(x)).
"""
    with opened(tmp_path, text, {"n": []}) as db:
        refused, after = lines(db, {"insert": {"n": [[1]]}}, {"refresh": ["m"]})
        assert refused["error"]["code"] == "domain" and message in refused["error"]["message"]
        assert after["views"] == {} and db.rows("n") == set(), "nothing has changed"


def test_what_a_function_prints_is_no_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "source.py").write_text(ODD)
    text = '.domain m(kind=python, module="source") .decl n(x: number) .decl p(y: number) .output p\np(y.high) :- n(x), in(y, m:plain(x)).'
    with opened(tmp_path, text, {"n": [(1,)]}) as db:
        assert db.view("p") == {(2,)}
    assert capsys.readouterr() == ("", "this is no line of watch\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("kind=pyton, module=m", "did you mean python"),
        ("kind=python", "needs the option module"),
        ("kind=python, module=m, timeot=3", "did you mean timeout"),
        ("kind=python, module=m, timeout=soon", "soon is no time, like 10s or 5m"),
        ("kind=python, module=m, refresh=0", "0 is no time"),
        ("kind=python, module=m, retries=some", "some is no number"),
        ("kind=python, module=m, nulls=skipp", "did you mean skip"),
        ("kind=python, module=m, down=up", "one of refuse, stale"),
        ("kind=python, module=m, password=x", "there is no option password"),
        ("kind=python, module=m", "cannot be imported: FileNotFoundError"),
    ],
)
def test_options_that_say_nothing(tmp_path: Path, options: str, message: str) -> None:
    text = f".domain m({options}) .decl p(y: number) .output p\np(y) :- in(y, m:f(1))."
    with pytest.raises(ProgramError, match=message):
        opened(tmp_path, text, {})


def test_a_database_is_asked_with_what_is_known(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "phones.db") as connection:
        connection.execute("CREATE TABLE book (name TEXT, number INTEGER)")
        connection.executemany("INSERT INTO book VALUES (?, ?)", [("ann", 1), ("bob", 2), ("eve", None)])
    connection.close()
    text = """
.domain s(kind=sql, url="sqlite:///phones.db", nulls=skip, query.starting="SELECT name FROM book WHERE name LIKE :p || '%'")
.table s:starting(name: symbol)
.decl who(x: symbol)
.decl phone(x: symbol, n: number)
.output phone
phone(x, r.number) :- who(x), in(r, s:select_eq("book", "name", x)).
.decl like(x: symbol)
.output like
like(r.name) :- who(x), in(r, s:query("starting", x)).
"""
    (tmp_path / "p.dl").write_text(text.replace("sqlite:///", f"sqlite:///{tmp_path}/"))
    with open_program(tmp_path / "p.dl", {"who": [("ann",), ("eve",), ("b",)]}) as db:
        assert db.view("phone") == {("ann", 1)} and db.view("like") == {("ann",), ("bob",), ("eve",)}


def test_a_folder_that_calls_is_told_of_more_calls(tmp_path: Path) -> None:
    write(tmp_path, "csv", [("a", 1), ("b", 5)])
    text = TYPED.replace('path="."', f'path="{tmp_path}"')
    with open_program(text, {"n": [(5,)], "who": [("a",)]}, data=tmp_path / "data") as db:
        assert isinstance(db, Durable)
        assert db.define(
            '.decl all(x: symbol) .output all all(r.name) :- in(r, d:all("t")).\n'
            '.decl level(x: symbol, n: number) .output level level(x, r.level) :- who(x), in(r, d:select_eq("t", "name", x)).'
        ) == {"all": Delta(plus=frozenset({("a",), ("b",)})), "level": Delta(plus=frozenset({("a", 1)}))}
        assert db.define("high(x, 0) :- who(x).")["high"].minus == {("b", 5)}
        assert [call.relation for call in functions(db.program)] == ["d_select_eq_t_name", "d_all_t"], "nobody has the third"
        write(tmp_path, "csv", [("a", 2)])
        assert db.refresh("d") == {
            "all": Delta(minus=frozenset({("b",)})),
            "level": Delta(plus=frozenset({("a", 2)}), minus=frozenset({("a", 1)})),
        }
        assert db.drop("all") == {"all": Delta(minus=frozenset({("a",)}))}
        assert [call.relation for call in functions(db.program)] == ["d_select_eq_t_name"] and verify(db).problems == []
    with open_program(data=tmp_path / "data") as db:
        assert db.view("level") == {("a", 2)}


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    write(tmp_path, "csv", [("a", 1)])
    with opened(tmp_path, TYPED, {"n": [], "who": []}) as db:
        unknown, nothing = lines(db, {"refresh": ["dd"]}, {"withdraw": [1]})
        assert (unknown["error"]["code"], unknown["error"]["message"]) == ("absent", "there is no domain dd (did you mean d?)")
        assert nothing["error"]["code"] == "absent" and "no update to withdraw" in nothing["error"]["message"]
        with pytest.raises(ProgramError, match="calls no domain"):
            db.ask('who(x), in(r, d:select_eq("t", "name", x))')
        assert db.ask("in(z, arith:plus(1, 2)), in(z, arith:less(4))") == [(3,)]
    with Database(check(".decl p(x: number)").program, {}) as db:
        assert [line["error"]["code"] for line in lines(db, {"refresh": ["d"]}, {"withdraw": [1]})] == ["absent", "absent"]


def test_a_proof_rests_on_calls(tmp_path: Path) -> None:
    write(tmp_path, "csv", [("a", 1), ("b", 5)])
    with opened(tmp_path, TYPED, {"n": [(5,)], "who": [("z",)]}) as db:
        proof = db.why('high("b", 5)')
        assert proof is not None
        assert proof.rule == 'high(r.name, r.level) :- n(x), in(r, d:select_ge("t", "level", x)).'
        assert [part.literal for part in proof.because] == ["n(5)", 'in((name = "b", level = 5), d:select_ge("t", "level", 5))']
        (tmp_path / "t.csv").unlink()
        absent = db.why('absent("z")')
        assert absent is not None and [part.literal for part in absent.because] == ['who("z")', '!in(_, d:select_eq("t", "name", "z"))']


STATED = """
.domain s(kind=sql, url="sqlite:///PATH/t.db", query.heavy="SELECT name, w FROM t WHERE w > :over AND id >= :least AND born < :by")
.function s:heavy(least: number, over: float, by: date) -> (name: symbol, w: float)
.decl n(x: number, by: date)
.decl p(x: number, name: symbol)
.output p
p(x, r.name) :- n(x, by), in(r, s:query("heavy", x, 2.0, by)), r.w < 9.5.
"""


def test_a_statement_takes_values_of_the_types_that_are_stated(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute("CREATE TABLE t (id INTEGER, name TEXT, w REAL, born TEXT)")
        rows = [(2, "a", 1.5, "2019-01-01"), (3, "b", 2.5, "2019-01-01"), (10, "c", 3.5, "2019-01-01"), (10, "young", 3.5, "2021-01-01")]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
    connection.close()
    text = STATED.replace("PATH", str(tmp_path))
    day = datetime.date(2020, 1, 1)
    with Database(check(text).program, {"n": [(3, day), (9, day)]}) as db:
        assert db.view("p") == {(3, "b"), (3, "c"), (9, "c")}, "as numbers, of which 10 is more than 9"
    for wrong, message in (
        ("over: float, ", "has the parameters over, least, by, and .function says least, by"),
        ("", "s:heavy(over: type"),
    ):
        program = text.replace(wrong, "") if wrong else "".join(line for line in text.splitlines(True) if ".function" not in line)
        with pytest.raises(ProgramError) as refused:
            check(program)
        assert message in str(refused.value)


class Handler(BaseHTTPRequestHandler):
    answers: ClassVar[list[Any]] = []

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        city = parse_qs(parts.query)["city"][0]
        answer = self.answers[0]
        status = answer if isinstance(answer, int) else 200
        body = json.dumps([{"temp": temp} for name, temp in answer if name == city] if status == 200 else {}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def weather() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("down", ["refuse", "stale"])
def test_a_service_that_answers_and_fails(weather: str, tmp_path: Path, down: str) -> None:
    text = f"""
.domain w(kind=rest, url="{weather}", timeout=5, retries=1, down={down})
.function w:now(city: symbol) -> (temp: float)
.decl city(x: symbol)
.decl now(x: symbol, t: float)
.output now
now(x, r.temp) :- city(x), in(r, w:now(x)).
"""
    Handler.answers = [[("rome", 20.5)]]
    with opened(tmp_path, text, {"city": [("rome",), ("oslo",)]}) as db:
        assert db.view("now") == {("rome", 20.5)}
        Handler.answers = [500]
        refreshed, asked, other = lines(db, {"refresh": ["w"]}, {"insert": {"city": [["bern"]]}}, {"delete": {"city": [["oslo"]]}})
        if down == "refuse":
            assert refreshed["error"]["code"] == "domain"
        else:
            assert refreshed["views"] == {} and db.sources is not None and db.sources.stale == {"w"}
        assert asked["error"]["code"] == "domain", "a call without a last answer is refused all the same"
        assert other["views"] == {}, "what asks nobody goes on"
        Handler.answers = [[("rome", 21), ("bern", 3)]]
        refreshed, asked = lines(db, {"refresh": ["w"]}, {"insert": {"city": [["bern"]]}})
        assert refreshed["views"]["now"] == {"plus": [["rome", 21.0]], "minus": [["rome", 20.5]]}
        assert asked["views"]["now"]["plus"] == [["bern", 3.0]]


def test_a_data_folder_asks_nobody_when_it_is_opened(tmp_path: Path) -> None:
    source, data = tmp_path / "source", tmp_path / "data"
    source.mkdir()
    write(source, "csv", [("a", 1), ("b", 5)])
    (source / "p.dl").write_text(TYPED.replace('path="."', f'path="{source}"'))
    with open_program(source / "p.dl", {"n": [(2,)], "who": [("q",)]}, data=data) as db:
        assert db.view("high") == {("b", 5)}
        write(source, "csv", [("b", 5), ("c", 6)])
        assert db.refresh("d")["high"].plus == {("c", 6)}
    (source / "t.csv").unlink()
    with open_program(data=data) as db:
        assert db.view("high") == {("b", 5), ("c", 6)}
        assert set(db.ask("high(x, y)", 0)) == {("b", 5)}, "the past is remembered, too"
        with pytest.raises(DomainError):
            db.refresh("d")
        with pytest.raises(DataError, match="there is no domain e"):
            db.refresh("e")


def test_a_deferred_relation_asks_when_it_is_asked(tmp_path: Path) -> None:
    """Example 8: two atoms are kept, whatever the source says; an answer is by the source as it is now."""
    text = """
.domain s(kind=file, path=".")
.decl b(x: symbol, y: symbol)
.decl a(x: symbol) deferred
.output a
.decl kept(x: symbol)
.output kept
a(x) :- b(x, _), in(r, s:select_eq("f", "arg", x)), x = r.value.
kept(x) :- b(x, _), in(r, s:select_eq("f", "arg", x)), x = r.value.
"""
    (tmp_path / "f.csv").write_text("arg,value\nb,b\n")
    with opened(tmp_path, text, {"b": [("a", "b"), ("b", "b")]}) as db:
        assert db.view("a_atoms") == {("a",), ("b",)}
        assert db.ask("a(x)") == [("b",)] and db.view("kept") == {("b",)}
        (tmp_path / "f.csv").write_text("arg,value\na,a\n")
        assert db.ask("a(x)") == [("a",)] and db.view("kept") == {("b",)} and db.tx == 0
        assert lines(db, {"refresh": ["s"]})[0]["views"] == {"kept": {"plus": [["a"]], "minus": [["b"]]}}
        db.apply({"delete": {"b": [["a", "b"]]}})
        assert db.ask("a(x)") == []
        with pytest.raises(DataError, match="there is no view a"):
            db.subscribe("a")


def test_a_deferred_relation_is_read_by_no_rule(tmp_path: Path) -> None:
    text = '.domain g(kind=python, module="source") .decl reach(x: number) deferred reach(1). reach(y) :- reach(x), in(y, g:succ(x)).'
    (tmp_path / "source.py").write_text(MODULE)
    with pytest.raises(ProgramError, match="reach is deferred"):
        opened(tmp_path, text, {})


ROWS = """
from dataclasses import dataclass
from typing import NamedTuple

class Address(NamedTuple):
    street: str
    city: str

@dataclass
class Point:
    x: int
    y: float

def locate(a: Address) -> Point:
    return Point(len(a.street), float(len(a.city)))

def within(around: str, p: Point, distance: int) -> bool:
    return p.x + p.y <= distance

def upper(text: str) -> str:
    return text.upper()
"""
PASSING = """
.domain d(kind=file, path=".")
.domain g(kind=python, module="source")
.decl near(x: symbol, east: number)
.output near
near(b.name, p.x) :- in(b, d:all("book")), in(p, g:locate(b)), q = p, in(1, g:within("dc", q, 15)).
"""


def test_rows_are_passed_on(tmp_path: Path) -> None:
    (tmp_path / "source.py").write_text(ROWS)
    (tmp_path / "book.csv").write_text("name,street,city\nann,main st,rome\nbob,a long street,berlin\n")
    with opened(tmp_path, PASSING, {}) as db:
        assert db.view("near") == {("ann", 7)}
        (tmp_path / "book.csv").write_text("name,street,city\nbob,a street,berlin\n")
        assert db.refresh("d")["near"] == Delta(frozenset({("bob", 8)}), frozenset({("ann", 7)}))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("g:locate(b.name)", "locate takes a row with street, city, and b.name has no street"),
        ("g:locate(s)", "locate takes a row with street, city, and s has no street"),
        ("g:upper(b)", "upper takes a single value, and b is a row .name a field, like b.name"),
        ("g:within(b, 3)", "within takes around: symbol, p_x: number, p_y: float, distance: number, and 2 arguments"),
    ],
)
def test_rows_that_a_function_does_not_take(tmp_path: Path, call: str, message: str) -> None:
    (tmp_path / "source.py").write_text(ROWS)
    (tmp_path / "book.csv").write_text("name,street,city\n")
    (tmp_path / "short.csv").write_text("city\n")
    text = PASSING.split("near(b")[0] + f'near("", 1) :- in(b, d:all("book")), in(s, d:all("short")), in(_, {call}).'
    with pytest.raises(ProgramError, match=message):
        opened(tmp_path, text, {})


ANYWHERE = """
.domain d(kind=file, path=".")
.domain g(kind=python, module="source")
.table d:item(kind: symbol, price: number)
.decl kind(k: symbol)
.decl total(k: symbol, n: number, s: number)
.output total
total(k, n, s) :- kind(k), n = count : { in(_, d:select_eq("item", "kind", k)) },
    s = sum r.price : { in(r, d:select_eq("item", "kind", k)), r.price > 1 }.
.decl either(x: symbol)
.output either
either(x) :- kind(x), (x = "b" ; in(r, d:select_eq("item", "kind", x)), r.price > 6).
.decl many(x: symbol)
.output many
many(y) :- kind(k), n = count : { in(_, d:select_eq("item", "kind", k)) }, n > 1, in(y, g:upper(k)).
.decl cheap(k: symbol, p: number)
.output cheap
cheap(k, r.price) :- in(r, d:select_eq("item", "kind", k)), r.price < 3.
"""


def test_a_call_stands_anywhere_in_a_rule(tmp_path: Path) -> None:
    """In an aggregate, in a disjunction; and a value that nothing binds is enumerated."""
    (tmp_path / "source.py").write_text(ROWS)
    (tmp_path / "item.csv").write_text("kind,price\na,1\na,7\nb,2\nd,1\n")
    with opened(tmp_path, ANYWHERE, {"kind": [("a",), ("b",), ("c",)]}) as db:
        assert db.view("total") == {("a", 2, 7), ("b", 1, 2), ("c", 0, 0)}
        assert db.view("either") == {("a",), ("b",)} and db.view("many") == {("A",)}
        assert db.view("cheap") == {("a", 1), ("b", 2), ("d", 1)}
        (tmp_path / "item.csv").write_text("kind,price\na,1\nb,2\nb,3\nc,9\n")
        (answer,) = lines(db, {"refresh": ["d"]})
        assert answer["views"] == {
            "total": {"plus": [["a", 1, 0], ["b", 2, 5], ["c", 1, 9]], "minus": [["a", 2, 7], ["b", 1, 2], ["c", 0, 0]]},
            "either": {"plus": [["c"]], "minus": [["a"]]},
            "many": {"plus": [["B"]], "minus": [["A"]]},
            "cheap": {"plus": [], "minus": [["d", 1]]},
        }
        assert lines(db, {"delete": {"kind": [["c"]]}})[0]["views"]["total"] == {"plus": [], "minus": [["c", 1, 9]]}


FAILING = """
import pathlib

def flaky(x: int) -> int:
    left = pathlib.Path(__file__).with_name("left")
    number = int(left.read_text())
    left.write_text(str(number - 1))
    if number > 0:
        raise OSError("not now")
    return x
"""


@pytest.mark.parametrize("retries", [1, 2])
def test_a_function_that_fails_for_a_moment_is_asked_again(tmp_path: Path, retries: int) -> None:
    text = f"""
.domain f(kind=python, module="source", retries={retries})
.decl n(x: number)
.decl p(x: number)
.output p
p(y) :- n(x), in(y, f:flaky(x)).
"""
    (tmp_path / "source.py").write_text(FAILING)
    (tmp_path / "left").write_text("2")
    if retries == 1:
        with pytest.raises(DomainError, match="flaky raises OSError: not now"):
            opened(tmp_path, text, {"n": [(1,)]})
    else:
        with opened(tmp_path, text, {"n": [(1,), (2,)]}) as db:
            assert db.view("p") == {(1,), (2,)}
            assert (tmp_path / "left").read_text() == "-2", "what was answered is not asked again"


@pytest.mark.parametrize("retries", [0, 6])
def test_a_file_that_is_being_written_is_read_again(tmp_path: Path, retries: int) -> None:
    text = TYPED.replace('path="."', f'path=".", retries={retries}')
    write(tmp_path, "json", [("b", 5)])
    with opened(tmp_path, text, {"n": [(5,)], "who": []}) as db:
        (tmp_path / "t.json").write_text('[{"name": "c", ')
        later = threading.Timer(0.3, write, (tmp_path, "json", [("c", 6)]))
        later.start()
        (answer,) = lines(db, {"refresh": ["d"]})
        later.join()
        if retries:
            assert answer["views"]["high"] == {"plus": [["c", 6]], "minus": [["b", 5]]}
        else:
            assert answer["error"]["code"] == "domain" and "cannot be read" in answer["error"]["message"]


def test_a_database_that_is_locked_is_asked_again(tmp_path: Path) -> None:
    text = """
.domain s(kind=sql, url="sqlite:///FILE", timeout=10ms, retries=20)
.decl p(x: number)
.output p
p(r.x) :- in(r, s:all("t")).
"""
    with sqlite3.connect(tmp_path / "s.db", isolation_level=None, check_same_thread=False) as source:
        source.executescript("CREATE TABLE t (x INTEGER); INSERT INTO t VALUES (1);")
        with opened(tmp_path, text.replace("FILE", str(tmp_path / "s.db")), {}) as db:
            source.executescript("BEGIN EXCLUSIVE; INSERT INTO t VALUES (2);")
            later = threading.Timer(0.3, source.execute, ("COMMIT",))
            later.start()
            assert lines(db, {"refresh": ["s"]})[0]["views"]["p"]["plus"] == [[2]]
            later.join()
    source.close()


CHOOSY = """
def bad(x: int) -> list[int]:
    return [x] if x < 2 else []


def more(x: int) -> list[int]:
    return list(range(x))


def f(x: int) -> int:
    if x < 2:
        raise ValueError(f"nobody asks for {x}")
    return 10 * x
"""
CHOOSING = """
.domain d(kind=python, module="m")
.decl n(x: number)
.input n
.decl p(x: number, y: number)
.output p
p(x, y) :- n(x), {condition}, in(y, d:f(x)).
"""


@pytest.mark.parametrize("condition", ["!in(_, d:bad(x))", "c = count : in(_, d:more(x)), c > 1", "(x > 5 ; !in(_, d:bad(x)))"])
def test_what_decides_whether_a_call_is_made_is_asked_first(tmp_path: Path, condition: str) -> None:
    (tmp_path / "m.py").write_text(CHOOSY)
    with opened(tmp_path, CHOOSING.format(condition=condition), {"n": [(1,), (2,), (3,)]}) as db:
        assert db.view("p") == {(2, 20), (3, 30)}
        assert db.apply({"insert": {"n": [[0], [7]]}, "delete": {"n": [[3]]}}) == {
            "p": Delta(plus=frozenset({(7, 70)}), minus=frozenset({(3, 30)}))
        }
        assert db.sources is not None and db.sources.made == 8, "five arguments by one, and three by the other"
