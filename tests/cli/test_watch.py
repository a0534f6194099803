"""`watch` and `what-if` as someone uses them who knows only what is promised: one line in, one line out, at once, whatever the line is."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_cli import COMMAND, Ended, process, save, vigilog
from tests.golden import GRAPH

EDGES = "f\te\ne\td\ne\ta\na\tb\nd\tc\nb\tc\nc\tg\n"
GOLDEN = '{"delete": {"edge": [["b","c"]]}, "insert": {"edge": [["h","d"]]}}'
DELTA = {
    "plus": [["h", "c"], ["h", "d"], ["h", "g"]],
    "minus": [["a", "c"], ["a", "g"], ["b", "c"], ["b", "g"]],
}
STRATEGIES = ["auto", "external", "materialized"]
TYPES = """\
.decl t(n: number, u: unsigned, f: float, b: boolean, d: date, m: decimal(5,2), s: symbol)
.input t
.decl v(n: number)
.output v
v(n) :- t(n, _, _, _, _, _, _).
"""
ROW = [1, 1, 1.5, True, "2026-11-16", "1.50", "a"]

Answer = dict[str, Any]


def watched(folder: Path, lines: list[str | bytes], *options: str, program: str = GRAPH, **facts: str) -> tuple[Ended, list[Answer]]:
    """Watches a file of lines; gives how it ended and the answers."""
    save(folder, program, **(facts or {"edge_facts": EDGES}))
    data = b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines)
    (folder / "changes.jsonl").write_bytes(data)
    ended = vigilog(folder, "watch", "p.dl", "--changes", "changes.jsonl", *options)
    return ended, [json.loads(line) for line in ended.out.split("\n")[:-1]]


@contextmanager
def filter_process(folder: Path, *options: str, program: str = GRAPH) -> Iterator[subprocess.Popen[bytes]]:
    save(folder, program, edge_facts=EDGES)
    command = [str(COMMAND), "watch", "p.dl", *options]
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as running:
        try:
            yield running
        finally:
            running.kill()


def said(running: subprocess.Popen[bytes], line: bytes) -> Answer:
    """The answer to a line, read while the process still waits for more."""
    assert running.stdin is not None and running.stdout is not None
    running.stdin.write(line)
    answer = b""
    while not answer.endswith(b"\n"):
        ready, _, _ = select.select([running.stdout], [], [], 60)
        assert ready, "there is no answer"
        part = os.read(running.stdout.fileno(), 65536)
        assert part, "the process has ended"
        answer += part
    found = json.loads(answer)
    assert isinstance(found, dict)
    return found


# -- one line in, one line out


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_golden_change(tmp_path: Path, strategy: str) -> None:
    ended, answers = watched(tmp_path, [GOLDEN], "--strategy", strategy)
    assert ended == Ended(0, ended.out, "")
    assert answers == [{"tx": 1, "views": {"closure": DELTA}}]


@pytest.mark.apart
def test_a_filter_answers_each_line_at_once(tmp_path: Path) -> None:
    with filter_process(tmp_path) as running:
        assert said(running, GOLDEN.encode() + b"\n") == {"tx": 1, "views": {"closure": DELTA}}
        assert said(running, b"{oops\n")["error"]["code"] == "json"
        assert said(running, b"\xff\xfe\n")["error"]["code"] == "encoding"
        assert said(running, b'\n \r\n{"insert": {"edge": [["g","h"]]}}\r\n')["tx"] == 4
        assert said(running, b"{}\n") == {"tx": 5, "views": {}}
        assert running.stdin is not None and running.stderr is not None
        running.stdin.write(b'{"delete": {"edge": [["g","h"]]}}')  # the last line need not end
        running.stdin.close()
        assert running.stdout is not None
        assert json.loads(running.stdout.read())["tx"] == 6
        assert running.wait(60) == 1
        assert running.stderr.read() == b""


@pytest.mark.apart
def test_a_filter_whose_lines_are_all_good_ends_with_0(tmp_path: Path) -> None:
    with filter_process(tmp_path, "--snapshot") as running:
        assert said(running, b"")["tx"] == 0
        assert said(running, GOLDEN.encode() + b"\n")["tx"] == 1
        assert running.stdin is not None
        running.stdin.close()
        assert running.wait(60) == 0


@pytest.mark.apart
def test_ctrl_c_ends_a_filter_without_a_traceback(tmp_path: Path) -> None:
    with filter_process(tmp_path) as running:
        assert said(running, GOLDEN.encode() + b"\n")["tx"] == 1
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 130
        assert running.stderr is not None
        assert b"Traceback" not in running.stderr.read()


@pytest.mark.parametrize("source", ["-", "changes.jsonl"])
@pytest.mark.apart
def test_a_reader_that_leaves_is_no_traceback(tmp_path: Path, source: str) -> None:
    lines = "".join(f'{{"insert": {{"edge": [["{number}","f"]]}}}}\n' for number in range(2000))
    save(tmp_path, GRAPH, edge_facts=EDGES, changes_jsonl=lines)
    command = f"'{COMMAND}' watch p.dl --changes {source} < changes.jsonl | head -n 1"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["tx"] == 1
    assert done.stderr == ""


def test_nothing_in_nothing_out(tmp_path: Path) -> None:
    assert watched(tmp_path, []) == (Ended(0, "", ""), [])
    assert watched(tmp_path, ["", "  ", "\t", "\r"]) == (Ended(0, "", ""), [])


def test_lines_with_cr_lf_a_bom_and_spaces_around_them(tmp_path: Path) -> None:
    ended, answers = watched(tmp_path, ["\ufeff" + GOLDEN + "\r", "", " {} \r"])
    assert ended.status == 0
    assert answers == [{"tx": 1, "views": {"closure": DELTA}}, {"tx": 2, "views": {}}]


def test_what_looks_like_the_end_of_a_line_inside_a_symbol_is_none(tmp_path: Path) -> None:
    ended, answers = watched(tmp_path, ['{"insert": {"edge": [["x\u2028\x85", "\\n"]]}}'])
    assert ended.status == 0
    assert answers[0]["views"]["closure"]["plus"] == [["x\u2028\x85", "\n"]]


@pytest.mark.apart
def test_output_is_utf8_whatever_the_locale(tmp_path: Path) -> None:
    save(tmp_path, GRAPH, edge_facts="é\t€\n", c_jsonl='{"insert": {"edge": [["€", "😀"]]}}\n')
    ended = process(tmp_path, "watch", "p.dl", "--changes", "c.jsonl", environment={"LC_ALL": "C", "PYTHONIOENCODING": "ascii"})
    assert json.loads(ended.out)["views"]["closure"]["plus"] == [["é", "😀"], ["€", "😀"]]


# -- lines that are refused

BAD: dict[str, tuple[str | bytes, str]] = {
    "half an object": ('{"insert": {"edge": [["x","y"]]}', "json"),
    "two objects": ('{"insert": {"edge": [["x","y"]]}} {}', "json"),
    "single quotes": ("{'insert': {}}", "json"),
    "a comment": ("// nothing", "json"),
    "a list": ('[["x","y"]]', "json"),
    "a string": ('"insert"', "json"),
    "a number": ("1", "json"),
    "null": ("null", "json"),
    "NaN": ("NaN", "json"),
    "a NUL": (b'{"insert": {"edge": [["x\x00","y"]]}}', "json"),
    "not UTF-8": (b'{"insert": {"edge": [["x\xff","y"]]}}', "encoding"),
    "UTF-16": (GOLDEN.encode("utf-16-le"), "json"),
    "half a surrogate": ('{"insert": {"edge": [["x\\ud800","y"]]}}', "value"),
    "U+0000": ('{"insert": {"edge": [["x\\u0000","y"]]}}', "value"),
    "an operation that there is not": ('{"insrt": {"edge": [["x","y"]]}}', "operation"),
    "an operation and one that there is not": ('{"insert": {"edge": [["x","y"]]}, "drop": {}}', "operation"),
    "an operation on nothing": ('{"insert": null}', "json"),
    "an operation on a list": ('{"insert": [["x","y"]]}', "json"),
    "an operation twice": ('{"insert": {"edge": [["x","y"]]}, "insert": {}}', "json"),
    "a relation twice": ('{"insert": {"edge": [["x","y"]], "edge": []}}', "json"),
    "an unknown relation": ('{"insert": {"edge": [["x","y"]], "egde": []}}', "unknown-relation"),
    "an empty name": ('{"insert": {"": []}}', "unknown-relation"),
    "a derived relation": ('{"insert": {"edge": [["x","y"]], "closure": [["x","y"]]}}', "derived"),
    "a derived relation deleted from": ('{"delete": {"closure": []}}', "derived"),
    "no rows": ('{"insert": {"edge": null}}', "json"),
    "one row": ('{"insert": {"edge": ["x","y"]}}', "json"),
    "rows as text": ('{"insert": {"edge": "xy"}}', "json"),
    "a row with a name that is none": ('{"insert": {"edge": [{"x": "x", "z": "y"}]}}', "column"),
    "a row that is null": ('{"insert": {"edge": [["x","y"], null]}}', "json"),
    "too few columns": ('{"insert": {"edge": [["x","y"], ["x"]]}}', "columns"),
    "too many columns": ('{"insert": {"edge": [["x","y","z"]]}}', "columns"),
    "no columns": ('{"insert": {"edge": [[]]}}', "columns"),
    "a number for a symbol": ('{"insert": {"edge": [["x","y"], ["x",1]]}}', "value"),
    "a null for a symbol": ('{"insert": {"edge": [["x",null]]}}', "value"),
    "a list for a symbol": ('{"insert": {"edge": [["x",["y"]]]}}', "value"),
    "an object for a symbol": ('{"insert": {"edge": [["x",{"y": 1}]]}}', "value"),
    "an update without new": ('{"update": {"edge": [{"old": ["f","e"]}]}}', "json"),
    "an update with more": ('{"update": {"edge": [{"old": ["f","e"], "new": ["f","x"], "why": 1}]}}', "json"),
    "an update as a list": ('{"update": {"edge": [["f","e"]]}}', "json"),
    "an update of an absent row": ('{"update": {"edge": [{"old": ["x","y"], "new": ["y","x"]}]}}', "absent"),
    "an update to a bad row": ('{"update": {"edge": [{"old": ["f","e"], "new": ["f"]}]}}', "columns"),
    "an update of a derived relation": ('{"update": {"closure": [{"old": ["f","e"], "new": ["f","x"]}]}}', "derived"),
    "deep lists": ('{"insert": {"edge": ' + "[" * 50_000 + "]" * 50_000 + "}}", "json"),
    "deep objects": ('{"insert": ' * 50_000 + "1" + "}" * 50_000, "json"),
    "a number of many digits": ('{"insert": {"edge": [["x",' + "9" * 100_000 + "]]}}", "json"),
    "a long name": ('{"insert": {"' + "e" * 100_000 + '": []}}', "unknown-relation"),
    "a long operation": ('{"' + "i" * 100_000 + '": {}}', "operation"),
    "a long wrong cell": ('{"insert": {"edge": [["x", ["' + "y" * 100_000 + '"]]]}}', "value"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_is_refused_and_the_stream_goes_on(tmp_path: Path, name: str) -> None:
    line, code = BAD[name]
    ended, answers = watched(tmp_path, ["{}", line, GOLDEN, line, "{}"])
    assert (ended.status, ended.err) == (1, "")
    assert [answer["tx"] for answer in answers] == [1, 2, 3, 4, 5]
    assert answers[2] == {"tx": 3, "views": {"closure": DELTA}}, "nothing of it was applied"
    for answer in (answers[1], answers[3]):
        assert answer.keys() == {"tx", "error"} and answer["error"].keys() == {"code", "message"}
        assert answer["error"]["code"] == code
        assert 10 < len(answer["error"]["message"]) < 300
    assert not any(word in json.dumps(answers) for word in ("Traceback", "None", "sys.", "NoneType"))


CELLS = [
    *((0, bad) for bad in ("1", 1.0, 1.5, True, None, 2**63, -(2**63) - 1, [1])),
    *((1, bad) for bad in (-1, 2**64, 1.0, "1", False, None)),
    *((2, bad) for bad in ("1.5", True, None, 10**400)),
    *((3, bad) for bad in ("true", 1, 0, None)),
    *((4, bad) for bad in ("2026-02-30", "16.11.2026", "", 20261116, None, "2026-11-16T00:00:00Z")),
    *((5, bad) for bad in ("1.505", "1000", "1e2", "", 1.505, 1000.5, 1e300, 1e-300, 1000, None, "NaN", True)),
    *((6, bad) for bad in (1, True, None, ["a"], "\x00")),
]


@pytest.mark.parametrize(("place", "bad"), CELLS, ids=str)
def test_a_cell_of_another_type_is_refused(tmp_path: Path, place: int, bad: object) -> None:
    row = [*ROW[:place], bad, *ROW[place + 1 :]]
    line = json.dumps({"insert": {"t": [ROW, row]}})
    ended, answers = watched(tmp_path, [line, json.dumps({"insert": {"t": [ROW]}})], program=TYPES, t_facts="")
    assert ended.status == 1
    assert answers[0]["error"]["code"] == "value"
    assert answers[0]["error"]["message"].startswith("row 2 of t: ")
    assert answers[1] == {"tx": 2, "views": {"v": {"plus": [[1]], "minus": []}}}


def test_values_at_their_limits_are_taken(tmp_path: Path) -> None:
    rows = [
        [-(2**63), 0, -1.7976931348623157e308, False, "0001-01-01", "-999.99", ""],
        [2**63 - 1, 2**64 - 1, 5e-324, True, "9999-12-31", 999, '\U0010ffff\n\t"\\'],
    ]
    line = json.dumps({"insert": {"t": rows}})
    ended, answers = watched(tmp_path, [line], program=TYPES + ".output t\n", t_facts="")
    assert ended.status == 0
    assert answers[0]["views"]["t"]["plus"] == [rows[0], [*rows[1][:5], "999.00", rows[1][6]]]
    assert answers[0]["views"]["v"]["plus"] == [[-(2**63)], [2**63 - 1]]


# -- ten megabytes in a line

WORDS = '.decl p(x: symbol)\n.input p\n.decl q(x: symbol)\n.output q\nq(x) :- p(x), x != "no".\n'
TEN_MEGABYTES = 10_000_000


def long_line(*more: object) -> str:
    rows: list[object] = [[f"{number:0100}"] for number in range(TEN_MEGABYTES // 106)]
    return json.dumps({"insert": {"p": [*rows, *more]}})


@pytest.mark.slow
def test_a_good_line_of_ten_megabytes(tmp_path: Path) -> None:
    line = long_line()
    assert len(line) > 9_900_000
    ended, answers = watched(tmp_path, [line, '{"insert": {"p": [["x"]]}}'], program=WORDS, p_facts="")
    assert ended.status == 0
    assert len(answers[0]["views"]["q"]["plus"]) == TEN_MEGABYTES // 106
    assert answers[0]["views"]["q"]["plus"] == sorted(answers[0]["views"]["q"]["plus"])
    assert answers[1] == {"tx": 2, "views": {"q": {"plus": [["x"]], "minus": []}}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "code"),
    [
        (long_line([1]), "value"),
        (long_line()[:-1], "json"),
        ("x" * TEN_MEGABYTES, "json"),
        (b"\xff" * TEN_MEGABYTES, "encoding"),
        ("[" * TEN_MEGABYTES, "json"),
        ('{"insert": {"p": [[' + "9" * TEN_MEGABYTES + "]]}}", "json"),
        ('{"' + "x" * TEN_MEGABYTES + '": {}}', "operation"),
        ('{"insert": {"' + "x" * TEN_MEGABYTES + '": {}}}', "unknown-relation"),
    ],
    ids=["a bad row at its end", "cut off", "text", "bytes", "brackets", "digits", "operation", "relation"],
)
def test_a_bad_line_of_ten_megabytes(tmp_path: Path, line: str | bytes, code: str) -> None:
    ended, answers = watched(tmp_path, [line, '{"insert": {"p": [["x"]]}}'], program=WORDS, p_facts="")
    assert ended.status == 1
    assert len(ended.out) < 1000
    assert answers[0]["error"]["code"] == code
    assert answers[1] == {"tx": 2, "views": {"q": {"plus": [["x"]], "minus": []}}}


# -- options

STATS = {"ms", "engine", "strategy", "derived", "rounds", "spark_jobs"}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_stats(tmp_path: Path, strategy: str) -> None:
    ended, answers = watched(tmp_path, [GOLDEN, "{}", "oops"], "--stats", "--strategy", strategy)
    assert ended.status == 1
    assert answers[0]["views"] == {"closure": DELTA}
    for answer in answers[:2]:
        stats = answer["stats"]
        assert stats.keys() >= STATS
        assert stats["engine"] == "embedded"
        assert stats["spark_jobs"] == 0
        assert stats["strategy"] == {"closure": strategy if strategy != "auto" else stats["strategy"]["closure"]}
        assert stats["strategy"]["closure"] in ("external", "materialized", "counted")
        assert "recomputed" not in stats
    assert answers[0]["stats"]["derived"] >= 7
    assert answers[0]["stats"]["rounds"] > 0
    assert answers[0]["stats"]["ms"] > 0
    assert answers[1]["stats"]["derived"] == answers[1]["stats"]["rounds"] == 0
    assert "stats" not in answers[2]


def test_without_stats_there_are_none(tmp_path: Path) -> None:
    assert watched(tmp_path, [GOLDEN])[1][0].keys() == {"tx", "views"}


def test_undefined_evaluations_are_counted_in_the_stats(tmp_path: Path) -> None:
    program = ".decl p(x: number)\n.input p\n.decl q(x: number)\n.output q\nq(10 / x) :- p(x).\n"
    _, answers = watched(tmp_path, ['{"insert": {"p": [[0], [5]]}}'], "--stats", program=program, p_facts="")
    assert answers[0]["views"] == {"q": {"plus": [[2]], "minus": []}}
    assert answers[0]["stats"]["undefined"] >= 1, "each evaluation counts, and a row may be looked at in both states"


def test_a_budget_that_is_spent_is_answered_by_recomputing_and_said(tmp_path: Path) -> None:
    options = ["--stats", "--strategy", "external", "--budget"]
    ended, answers = watched(tmp_path, [GOLDEN], *options, "0")
    assert (ended.status, ended.err) == (0, "")
    assert answers[0]["views"] == {"closure": DELTA}
    assert answers[0]["stats"]["recomputed"] == "more than 0 rows were derived on demand"
    _, answers = watched(tmp_path, [GOLDEN], *options, "100000")
    assert "recomputed" not in answers[0]["stats"]


def test_strict_refuses_what_is_over_budget_and_goes_on(tmp_path: Path) -> None:
    lines: list[str | bytes] = ['{"insert": {"edge": [["g","f"]]}}', '{"delete": {"edge": [["x","x"]]}}']
    ended, answers = watched(tmp_path, lines, "--strategy", "external", "--strict", "--budget", "0", "--snapshot")
    assert (ended.status, ended.err) == (1, "")
    assert answers[1]["error"]["code"] == "budget"
    assert answers[2] == {"tx": 2, "views": {}}
    ended, answers = watched(tmp_path, lines, "--strategy", "external", "--strict", "--budget", "100000")
    assert ended.status == 0


def test_what_strict_refused_was_not_applied(tmp_path: Path) -> None:
    program = GRAPH + ".decl other(x: symbol)\n.input other\n.output other\n"
    lines: list[str | bytes] = ['{"insert": {"edge": [["g","f"]], "other": [["x"]]}}', '{"insert": {"other": [["x"]]}}']
    options = ["--strategy", "external", "--strict", "--budget", "0"]
    _, answers = watched(tmp_path, lines, *options, program=program, edge_facts=EDGES, other_facts="")
    assert [answer.get("error", {}).get("code") for answer in answers] == ["budget", None]
    assert answers[1]["views"] == {"other": {"plus": [["x"]], "minus": []}}


def test_stored_views_need_no_budget(tmp_path: Path) -> None:
    ended, answers = watched(tmp_path, [GOLDEN], "--strategy", "materialized", "--strict", "--budget", "0")
    assert ended.status == 0
    assert answers == [{"tx": 1, "views": {"closure": DELTA}}]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_snapshot(tmp_path: Path, strategy: str) -> None:
    program = GRAPH + ".output edge\n.decl none(x: symbol)\n.output none\nnone(x) :- edge(x, x).\n"
    ended, answers = watched(tmp_path, [GOLDEN], "--snapshot", "--strategy", strategy, program=program, edge_facts="b\tc\na\tb\n")
    assert ended.status == 0
    assert answers[0] == {
        "tx": 0,
        "views": {
            "closure": {"plus": [["a", "b"], ["a", "c"], ["b", "c"]], "minus": []},
            "edge": {"plus": [["a", "b"], ["b", "c"]], "minus": []},
            "none": {"plus": [], "minus": []},
        },
    }
    assert answers[1]["views"].keys() == {"closure", "edge"}


def test_the_snapshot_and_all_changes_are_the_view(tmp_path: Path) -> None:
    lines: list[str | bytes] = [GOLDEN, '{"insert": {"edge": [["g","f"]]}}', "oops", '{"delete": {"edge": [["e","a"],["c","g"]]}}']
    _, answers = watched(tmp_path, lines, "--snapshot")
    view: set[tuple[str, str]] = set()
    for answer in answers:
        for change in answer.get("views", {}).values():
            view = view - {tuple(row) for row in change["minus"]} | {tuple(row) for row in change["plus"]}
    edges = {tuple(line.split("\t")) for line in EDGES.splitlines()}
    edges = edges - {("b", "c"), ("e", "a"), ("c", "g")} | {("h", "d"), ("g", "f")}
    save(tmp_path, GRAPH, edge_facts="".join(f"{x}\t{y}\n" for x, y in edges))
    assert vigilog(tmp_path, "run", "p.dl", "-D", "out").status == 0
    assert {tuple(line.split("\t")) for line in (tmp_path / "out" / "closure.csv").read_text().splitlines()} == view


@pytest.mark.parametrize(
    "options",
    [["--strategy", "magic"], ["--budget", "-1"], ["--budget", "many"], ["--engine", "abacus"], ["--changes"], ["--why", "yes"]],
    ids=" ".join,
)
def test_wrong_usage_ends_with_2(tmp_path: Path, options: list[str]) -> None:
    save(tmp_path, GRAPH, edge_facts=EDGES)
    ended = vigilog(tmp_path, "watch", "p.dl", *options)
    assert (ended.status, ended.out) == (2, "")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["missing.dl"], "missing.dl: cannot be read"),
        (["p.dl", "-F", "missing"], "edge.facts: cannot be read for edge"),
        (["p.dl", "--changes", "missing.jsonl"], "missing.jsonl: cannot be read"),
        (["p.dl", "--changes", "."], ".: cannot be read"),
    ],
)
def test_what_cannot_be_read_ends_with_1(tmp_path: Path, arguments: list[str], text: str) -> None:
    save(tmp_path, GRAPH, edge_facts=EDGES)
    ended = vigilog(tmp_path, "watch", *arguments)
    assert (ended.status, ended.out) == (1, "")
    assert text in ended.err


def test_facts_that_are_wrong_are_told_before_any_line(tmp_path: Path) -> None:
    ended, answers = watched(tmp_path, [GOLDEN], edge_facts="a\n")
    assert (ended.status, answers) == (1, [])
    assert ended.err.startswith("error[columns]: edge.facts:1: ")


# -- many views


def many(views: int) -> str:
    """Views over three base relations; those of `r` are three, however many there are of the others."""
    text = "".join(f".decl {name}(x: number, y: number)\n.input {name}\n" for name in "rst")
    for number in range(views):
        base, condition = ("r", f"x < {number + 10}") if number < 3 else ("st"[number % 2], f"x != {number}")
        text += f".decl v{number}(x: number, y: number)\n.output v{number}\nv{number}(x, y) :- {base}(x, z), {base}(z, y), {condition}.\n"
    return text


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_of_many_views_only_those_are_looked_at_that_a_change_can_reach(tmp_path: Path, strategy: str) -> None:
    """The first insertion and the first deletion also prepare their statements; from then on the counts are equal."""
    found = {}
    lines: list[str | bytes] = ['{"insert": {"r": [[1, 2]]}}', '{"insert": {"r": [[2, 3]]}}', '{"delete": {"r": [[1, 2]]}}'] * 2
    for views in (3, 100):
        rows = "".join(f"{number}\t{number + 1}\n" for number in range(10, 60))
        ended, answers = watched(
            tmp_path, lines, "--stats", "--strategy", strategy, program=many(views), r_facts=rows, s_facts=rows, t_facts=rows
        )
        assert ended.status == 0
        assert answers[0]["views"] == {}
        assert answers[1]["views"] == {f"v{number}": {"plus": [[1, 3]], "minus": []} for number in range(3)}
        assert answers[2]["views"] == {f"v{number}": {"plus": [], "minus": [[1, 3]]} for number in range(3)}
        found[views] = [(answer["stats"]["statements"], answer["stats"]["derived"]) for answer in answers[3:]]
    assert found[100] == found[3]


# -- the paper's promise


def with_disjoint_edges(number: int) -> str:
    """The golden graph and a graph G′ of so many edges, all of which lead, step by step, into g."""
    levels = [f"n{level}" for level in range(number // 10 or 1)]
    extra = [(f"{level}_{place}", levels[index - 1] + "_0" if index else "g") for index, level in enumerate(levels) for place in range(10)]
    return EDGES + "".join(f"{x}\t{y}\n" for x, y in extra[:number])


def test_what_is_derived_does_not_grow_with_unrelated_data(tmp_path: Path) -> None:
    costs = []
    for number in (10, 1000):
        ended, answers = watched(tmp_path, [GOLDEN], "--stats", "--strategy", "external", edge_facts=with_disjoint_edges(number))
        assert ended.status == 0
        assert answers[0]["views"] == {"closure": DELTA}
        costs.append((answers[0]["stats"]["derived"], answers[0]["stats"]["rounds"]))
    assert costs[0] == costs[1]


# -- what-if


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_if_is_what_watch_then_says(tmp_path: Path, strategy: str) -> None:
    save(tmp_path, GRAPH, edge_facts=EDGES)
    ended = vigilog(tmp_path, "what-if", "p.dl", GOLDEN, "--strategy", strategy)
    assert (ended.status, ended.err) == (0, "")
    assert json.loads(ended.out) == {"views": {"closure": DELTA}}
    assert (tmp_path / "edge.facts").read_text() == EDGES
    assert watched(tmp_path, [GOLDEN], "--strategy", strategy)[1][0]["views"] == json.loads(ended.out)["views"]


@pytest.mark.apart
def test_what_if_reads_standard_input(tmp_path: Path) -> None:
    save(tmp_path, GRAPH, edge_facts=EDGES)
    done = subprocess.run(
        [str(COMMAND), "what-if", "p.dl", "-"], cwd=tmp_path, input=GOLDEN + "\r\n", capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == {"views": {"closure": DELTA}}


@pytest.mark.parametrize("name", [name for name, (line, _) in BAD.items() if isinstance(line, str) and len(line) <= 10_000])
def test_what_if_refuses_what_watch_refuses(tmp_path: Path, name: str) -> None:
    line, code = BAD[name]
    assert isinstance(line, str), "what can be an argument of a command"
    save(tmp_path, GRAPH, edge_facts=EDGES)
    ended = vigilog(tmp_path, "what-if", "p.dl", line)
    assert (ended.status, ended.out) == (1, "")
    assert ended.err.startswith(f"error[{code}]: ")


@pytest.mark.parametrize("strategy", [*STRATEGIES, "counted"])
def test_views_are_told_in_the_order_of_the_program(tmp_path: Path, strategy: str) -> None:
    program = (
        GRAPH.replace(".output closure", "") + ".decl loop(x: symbol)\n.output loop\n.output closure\n.decl out(x: symbol)\n.output out\n"
    )
    program += "loop(x) :- edge(x, x).\nout(x) :- edge(x, _).\n"
    _, answers = watched(tmp_path, ['{"insert": {"edge": [["h","h"]]}}'], "--strategy", strategy, program=program, edge_facts=EDGES)
    assert list(answers[0]["views"]) == ["loop", "closure", "out"]
