"""The command line as a user meets it: what is printed where, what is written, and the exit status.

Most tests call `main()` in this process, because a Python that starts costs half a second; whatever is about signals, pipes and
terminals starts the installed command.
"""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.golden import GRAPH
from vigilog.cli.main import main
from vigilog.language.check import check
from vigilog.rewriting.passes import rewrite

COMMAND = Path(sys.executable).with_name("vigilog")

EDGES = "b\tc\na\tb\n"
CLOSURE = "a\tb\na\tc\nb\tc\n"
DIVERGES = ".decl n(x: number)\n.output n\nn(0).\nn(x + 1) :- n(x).\n"


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str


def vigilog(folder: Path, *arguments: str) -> Ended:
    """Calls the command line in this process. An exception that is not an exit is a traceback, and fails the test by itself."""
    out, err = io.StringIO(), io.StringIO()
    with chdir(folder), patch.object(sys, "argv", ["vigilog", *arguments]), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    return Ended(status, out.getvalue(), err.getvalue())


def process(folder: Path, *arguments: str, timeout: float = 60, environment: dict[str, str] | None = None) -> Ended:
    """Starts the installed command. A traceback fails the test."""
    done = subprocess.run(
        [str(COMMAND), *arguments], cwd=folder, capture_output=True, timeout=timeout, env={**os.environ, **(environment or {})}, check=False
    )
    ended = Ended(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))
    assert "Traceback" not in ended.err, ended.err[-2000:]
    return ended


def run(folder: Path, program: str | bytes, *arguments: str, **files: str | bytes) -> Ended:
    """Runs a program on the embedded executor, with files such as `edge_facts="a\\tb\\n"`; results go to `out`."""
    save(folder, program, **files)
    return vigilog(folder, "run", "p.dl", "-D", "out", "--engine", "embedded", *arguments)


def save(folder: Path, program: str | bytes, **files: str | bytes) -> None:
    for name, content in {"p.dl": program, **files}.items():
        stem, _, ending = name.rpartition("_")
        path = folder / (f"{stem}.{ending}" if stem else name)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def written(folder: Path) -> dict[str, str]:
    """All that a run left under `out`, by path."""
    base = folder / "out"
    return {str(path.relative_to(base)): path.read_bytes().decode() for path in sorted(base.rglob("*")) if path.is_file()}


def checked(folder: Path, program: str | bytes) -> Ended:
    save(folder, program)
    return vigilog(folder, "check", "p.dl")


# -- help and usage


def test_help_lists_the_commands(tmp_path: Path) -> None:
    ended = vigilog(tmp_path, "--help")
    assert ended.status == 0
    assert all(command in ended.out for command in ("check", "run", "explain"))
    assert ended.err == ""


@pytest.mark.parametrize("command", ["check", "run", "explain"])
def test_help_of_a_command_has_an_example(tmp_path: Path, command: str) -> None:
    ended = vigilog(tmp_path, command, "--help")
    assert ended.status == 0
    assert re.search(rf"Examples?: vigilog {command} graph\.dl", " ".join(ended.out.split()))


@pytest.mark.parametrize("command", ["check", "run", "watch", "explain"])
def test_help_has_one_example_a_line(tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = vigilog(tmp_path, command, "--help").out.splitlines()
    examples = lines[next(number for number, line in enumerate(lines) if line.strip() in ("Example:", "Examples:")) + 1 :]
    assert examples and all(re.search(rf"vigilog {command} (graph\.dl|\./data)", line) for line in examples)
    assert max(map(len, lines)) <= 80


def test_version(tmp_path: Path) -> None:
    assert vigilog(tmp_path, "--version") == Ended(0, f"vigilog {version('vigilog')}\n", "")


def test_no_arguments_show_the_help(tmp_path: Path) -> None:
    ended = vigilog(tmp_path)
    assert ended.status == 2
    assert "check" in ended.out + ended.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing"],
        ["run"],
        ["check"],
        ["check", "p.dl", "more.dl"],
        ["run", "p.dl", "--engine", "abacus"],
        ["run", "p.dl", "--max-rounds", "0"],
        ["run", "p.dl", "--max-rounds", "many"],
        ["run", "p.dl", "--timeout", "-1"],
        ["run", "p.dl", "--timeout", "soon"],
        ["run", "p.dl", "--unknown"],
        ["explain", "p.dl", "--show", "tricks"],
        ["explain", "p.dl", "--view", "nothing"],
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_2(tmp_path: Path, arguments: list[str]) -> None:
    save(tmp_path, GRAPH, edge_facts=EDGES)
    ended = vigilog(tmp_path, *arguments)
    assert ended.status == 2
    assert ended.out == ""
    assert ended.err != ""
    assert not (tmp_path / "closure.csv").exists()


# -- check


def test_check_of_a_good_program(tmp_path: Path) -> None:
    ended = checked(tmp_path, GRAPH)
    assert ended == Ended(0, ended.out, "")
    assert ended.out == "p.dl: 2 relations and 2 rules, no errors\n"
    assert checked(tmp_path, ".decl p(x: number)\n.output p\np(1).\n").out == "p.dl: 1 relation and 1 rule, no errors\n"


def test_check_shows_place_caret_rule_and_fix(tmp_path: Path) -> None:
    ended = checked(tmp_path, GRAPH + "closure(x, y) :- edge(x, z).\n")
    assert ended.status == 1
    assert ended.out == ""
    lines = ended.err.splitlines()
    assert lines[0].startswith("p.dl:7:12: error[ungrounded]: y ")
    assert lines[1].strip() == "closure(x, y) :- edge(x, z)."
    assert lines[2].rstrip().endswith("^")
    assert lines[1][lines[2].index("^")] == "y"
    assert lines[3].startswith("  rule: ")
    assert lines[4].startswith("  fix:  ")


def test_check_tells_all_errors_of_a_stage_in_the_order_of_the_text(tmp_path: Path) -> None:
    ended = checked(tmp_path, GRAPH + "closure(x, y) :- edg(x, y).\nclosure(x) :- edge(x, x).\nclosure(x, y) :- edge(x, x).\n")
    found = re.findall(r"^p\.dl:(\d+):\d+: error\[([\w-]+)\]", ended.err, re.MULTILINE)
    assert found == [("7", "unknown-relation"), ("8", "arity"), ("9", "ungrounded")]
    assert "did you mean edge?" in ended.err


def test_check_shows_the_cycle(tmp_path: Path) -> None:
    ended = checked(tmp_path, ".decl a(x: number)\n.decl b(x: number)\n.decl q(x: number)\na(x) :- q(x), !b(x).\nb(x) :- a(x).\n")
    assert ended.status == 1
    assert "a ← !b ← a" in ended.err


def test_warnings_are_told_and_do_no_harm(tmp_path: Path) -> None:
    ended = checked(tmp_path, GRAPH + ".decl idle(x: number)\n")
    assert ended.status == 0
    assert "p.dl:7:7: warning[unused-relation]" in ended.err
    assert "warning" not in ended.out


def test_check_needs_no_facts(tmp_path: Path) -> None:
    assert checked(tmp_path, GRAPH).status == 0


def test_check_finds_what_only_rewriting_finds(tmp_path: Path) -> None:
    ended = checked(tmp_path, GRAPH + f"closure(x, y) :- edge(x, y), {', '.join(['(edge(x, y) ; edge(y, x))'] * 20)}.\n")
    assert ended.status == 1
    assert "p.dl:7:1: error[expansion]" in ended.err


# -- run


def test_run_writes_a_sorted_file(tmp_path: Path) -> None:
    assert run(tmp_path, GRAPH, edge_facts=EDGES) == Ended(0, "", "")
    assert written(tmp_path) == {"closure.csv": CLOSURE}


def test_run_takes_facts_and_writes_results_where_told(tmp_path: Path) -> None:
    save(tmp_path, GRAPH)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "edge.facts").write_text(EDGES)
    ended = vigilog(tmp_path, "run", "p.dl", "-F", "in", "-D", "a/b/c", "--engine", "embedded")
    assert ended == Ended(0, "", "")
    assert (tmp_path / "a/b/c/closure.csv").read_text() == CLOSURE


def test_run_without_folders_uses_the_working_one(tmp_path: Path) -> None:
    save(tmp_path, GRAPH, edge_facts=EDGES)
    assert vigilog(tmp_path, "run", "p.dl") == Ended(0, "", "")
    assert (tmp_path / "closure.csv").read_text() == CLOSURE


def test_results_are_sorted_by_value_not_by_text(tmp_path: Path) -> None:
    facts = ".decl n(x: number)\n.output n\nn(10). n(9). n(-1). n(-10).\n"
    facts += '.decl s(x: symbol)\n.output s\ns("é"). s("z"). s("Z"). s("\U0001f600"). s("\uffee"). s("").\n'
    facts += ".decl u(x: unsigned)\n.output u\nu(18446744073709551615). u(0). u(9223372036854775808).\n"
    facts += ".decl f(x: float, y: boolean)\n.output f\nf(10.0, true). f(9.5, true). f(9.5, false). f(-1e300, true).\n"
    assert run(tmp_path, facts).status == 0
    assert written(tmp_path) == {
        "n.csv": "-10\n-1\n9\n10\n",
        "s.csv": "\nZ\nz\né\n\uffee\n\U0001f600\n",
        "u.csv": "0\n9223372036854775808\n18446744073709551615\n",
        "f.csv": "-1e+300\ttrue\n9.5\tfalse\n9.5\ttrue\n10.0\ttrue\n",
    }


def test_an_empty_result_is_an_empty_file(tmp_path: Path) -> None:
    assert run(tmp_path, GRAPH, edge_facts="").status == 0
    assert written(tmp_path) == {"closure.csv": ""}


def test_dash_prints(tmp_path: Path) -> None:
    save(tmp_path, GRAPH, edge_facts=EDGES)
    ended = vigilog(tmp_path, "run", "p.dl", "-D", "-", "--engine", "embedded")
    assert ended == Ended(0, "---------------\nclosure\n===============\n" + CLOSURE + "===============\n", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edge.facts", "p.dl"]


def test_printsize(tmp_path: Path) -> None:
    ended = run(tmp_path, GRAPH + ".printsize closure\n.printsize edge\n", edge_facts=EDGES)
    assert ended == Ended(0, "closure\t3\nedge\t2\n", "")


def test_printsize_without_output_makes_no_folder(tmp_path: Path) -> None:
    assert run(tmp_path, ".decl p(x: number)\n.printsize p\np(1).\n") == Ended(0, "p\t1\n", "")
    assert not (tmp_path / "out").exists()


def test_a_program_that_shows_nothing_is_told_so(tmp_path: Path) -> None:
    ended = run(tmp_path, ".decl p(x: number)\np(1).\np(x) :- p(x).\n")
    assert ended == Ended(0, "", "warning: p.dl has no .output and no .printsize, so there is nothing to show\n")
    assert not (tmp_path / "out").exists()


def test_several_outputs(tmp_path: Path) -> None:
    assert run(tmp_path, GRAPH + ".output edge\n.decl flag()\n.output flag\nflag().\n", edge_facts=EDGES).status == 0
    assert written(tmp_path) == {"closure.csv": CLOSURE, "edge.csv": "a\tb\nb\tc\n", "flag.csv": "()\n"}


def test_results_replace_those_of_the_last_run(tmp_path: Path) -> None:
    run(tmp_path, GRAPH, edge_facts="a\tb\nc\td\n")
    run(tmp_path, GRAPH, edge_facts=EDGES)
    assert written(tmp_path) == {"closure.csv": CLOSURE}


def test_undefined_evaluations_are_counted_in_a_warning(tmp_path: Path) -> None:
    ended = run(tmp_path, ".decl q(x: number)\n.decl p(x: number)\n.output p\nq(0). q(1).\np(1 / x) :- q(x).\n")
    assert (ended.status, ended.out) == (0, "")
    assert ended.err.startswith("warning: 1 evaluation had no value ")
    assert written(tmp_path) == {"p.csv": "1\n"}


# -- options of .input and .output

PAIRS = ".decl p(a: symbol, n: number)\n.input p({})\n.decl r(a: symbol, n: number)\n.output r({})\nr(a, n) :- p(a, n).\n"


@pytest.mark.parametrize(
    ("source", "sink", "files", "result"),
    [
        ("", "", {"p_facts": "b\t2\na\t1\n"}, {"r.csv": "a\t1\nb\t2\n"}),
        ('delimiter=","', 'delimiter="::"', {"p_facts": "b,2\na,1\n"}, {"r.csv": "a::1\nb::2\n"}),
        ('delimiter="::"', 'delimiter=" "', {"p_facts": "b::2\na::1\n"}, {"r.csv": "a 1\nb 2\n"}),
        ("headers=true", "headers=true", {"p_facts": "A\tN\nb\t2\na\t1\n"}, {"r.csv": "a\tn\na\t1\nb\t2\n"}),
        ("headers=true", "headers=true", {"p_facts": "A\tN\n"}, {"r.csv": "a\tn\n"}),
        ("headers=true", "", {"p_facts": "n\ta\n2\tb\n1\ta\n"}, {"r.csv": "a\t1\nb\t2\n"}),
        ("rfc4180=true", "rfc4180=true", {"p_facts": '"say ""b""",2\n"a\n","1"\n'}, {"r.csv": '"a\n",1\n"say ""b""",2\n'}),
        ('rfc4180=true, delimiter="\t"', 'rfc4180=true, delimiter=";"', {"p_facts": 'b\t2\n"a\t"\t"1"\n'}, {"r.csv": "a\t;1\nb;2\n"}),
        ("", "", {"p_facts": "a\t0xCAFE\nb\t-0b100\nc\t-0X8000000000000000\n"}, {"r.csv": "a\t51966\nb\t-4\nc\t-9223372036854775808\n"}),
        ('filename="in.txt"', 'filename="x/out.txt"', {"in_txt": "b\t2\n"}, {"x/out.txt": "b\t2\n"}),
        ("IO=file", "IO=file", {"p_facts": "b\t2\n"}, {"r.csv": "b\t2\n"}),
        ("IO=csv", "IO=csv", {"p_csv": 'a,n\nb,2\n"x,y",1\n'}, {"r.csv": 'a,n\nb,2\n"x,y",1\n'}),
        ("IO=csv, headers=false", 'IO=csv, delimiter=";", headers=false', {"p_csv": "b,2\n"}, {"r.csv": "b;2\n"}),
        ("IO=csv", "IO=csv", {"p_csv": 'a,n\n"",1\n'}, {"r.csv": 'a,n\n"",1\n'}),
        ("IO=csv", "", {"p_csv": '\n"n","a"\n\n2,b\r\n\r\n1,"a"\n\n'}, {"r.csv": "a\t1\nb\t2\n"}),
        (
            "IO=json",
            "IO=json",
            {"p_jsonl": '{"n": 2, "a": "b"}\n\n{"a": "\\u00e4\\n", "n": 1}\n'},
            {"r.jsonl": '{"a": "b", "n": 2}\n{"a": "ä\\n", "n": 1}\n'},
        ),
        ("IO=json, nulls=skip", "", {"p_jsonl": '{"n": 2, "a": null}\n{"a": "a", "n": 1}\n'}, {"r.csv": "a\t1\n"}),
        ("", "IO=stdout", {"p_facts": "b\t2\n"}, {}),
    ],
)
def test_options(tmp_path: Path, source: str, sink: str, files: dict[str, str], result: dict[str, str]) -> None:
    ended = run(tmp_path, PAIRS.format(source, sink), **files)
    assert (ended.status, ended.err) == (0, "")
    assert written(tmp_path) == result
    assert ended.out == ("---------------\nr\n===============\nb\t2\n===============\n" if "stdout" in sink else "")


def test_names_in_a_header_are_as_good_as_they_can_be(tmp_path: Path) -> None:
    program = ".decl p(order_id: number, customer: symbol)\n.input p(IO=csv)\n.output p\n"
    assert run(tmp_path, program, p_csv="Customer, Order ID\na,1\n") == Ended(0, "", "")
    assert written(tmp_path) == {"p.csv": "1\ta\n"}


def test_the_files_of_a_folder_each_have_their_header(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "1.csv").write_text("a,n\nb,2\n")
    (tmp_path / "p" / "2.csv").write_text("n,a\n1,a\n")
    assert run(tmp_path, PAIRS.format('IO=csv, filename="p"', "")) == Ended(0, "", "")
    assert written(tmp_path) == {"r.csv": "a\t1\nb\t2\n"}


@pytest.mark.apart
def test_facts_from_a_pipe(tmp_path: Path) -> None:
    save(tmp_path, PAIRS.format('IO=csv, filename="/dev/stdin"', ""))
    command = [str(COMMAND), "run", "p.dl", "-D", "-", "--engine", "embedded"]
    done = subprocess.run(command, cwd=tmp_path, input="n,a\n1,b\n", capture_output=True, text=True, check=True)
    assert "\nb\t1\n" in done.stdout


EVERY_TYPE = ".decl {}(s: symbol, n: number, u: unsigned, f: float, b: boolean, d: date, t: timestamp, m: decimal(9,2))\n"


@pytest.mark.parametrize("format_", ["IO=json", "IO=csv", "rfc4180=true", 'delimiter="|"', "headers=true"])
def test_every_type_comes_back_from_a_file(tmp_path: Path, format_: str) -> None:
    ending = "jsonl" if "json" in format_ else "csv"
    row = '"ä\\"", -9223372036854775808, 18446744073709551615, 0.1, true, "2026-11-16", "2026-11-16T08:30:00+02:00", -12.5'
    assert run(tmp_path, EVERY_TYPE.format("p") + f".output p({format_})\np({row}).\n").status == 0
    ended = run(tmp_path, EVERY_TYPE.format("q") + f'.input q({format_}, filename="out/p.{ending}")\n.output q\n')
    assert (ended.status, ended.err) == (0, "")
    expected = 'ä"\t-9223372036854775808\t18446744073709551615\t0.1\ttrue\t2026-11-16\t2026-11-16T06:30:00.000000Z\t-12.50\n'
    assert written(tmp_path)["q.csv"] == expected


@pytest.mark.parametrize("options", ["", "IO=csv", "IO=json", "rfc4180=true", "headers=true"])
@pytest.mark.parametrize("holds", [True, False])
def test_a_relation_without_columns_comes_back_from_a_file(tmp_path: Path, options: str, holds: bool) -> None:
    ending = "jsonl" if "json" in options else "csv"
    assert run(tmp_path, f".decl p()\n.output p({options})\n" + ("p().\n" if holds else "")).status == 0
    again = f'.decl q()\n.input q({options}{", " if options else ""}filename="out/p.{ending}")\n.output q\n'
    assert run(tmp_path, again).status == 0
    assert written(tmp_path)["q.csv"] == ("()\n" if holds else "")


def test_two_outputs_cannot_share_a_file(tmp_path: Path) -> None:
    program = '.decl p(x: number)\n.decl q(x: number)\np(1). q(2).\n.output p(filename="x.csv")\n.output q(filename="x.csv")\n'
    ended = run(tmp_path, program)
    assert ended.status == 1, "one result would silently replace the other"
    assert "x.csv" in ended.err
    assert written(tmp_path) == {}


# -- explain

EXPLAINED = (
    GRAPH
    + '.decl lonely(x: symbol)\n.output lonely(delimiter="_", filename="sum")\nlonely(x), other(x) :- (edge(x, _) ; edge(_, x)), !closure(x, x).\n.decl other(x: symbol)\n'
)


@pytest.mark.parametrize("show", ["rules", "strata"])
@pytest.mark.parametrize("view", [None, "closure", "lonely", "edge"])
def test_explained_programs_parse_again(tmp_path: Path, show: str, view: str | None) -> None:
    save(tmp_path, EXPLAINED)
    ended = vigilog(tmp_path, "explain", "p.dl", "--show", show, *([] if view is None else ["--view", view]))
    assert ended.status == 0
    again = check(ended.out).program
    plain = rewrite(check(EXPLAINED).program)
    wanted = {None: set(plain.relations), "closure": {"edge", "closure"}, "lonely": {"edge", "closure", "lonely"}, "edge": {"edge"}}[view]
    assert set(again.relations) == wanted
    assert set(again.rules) == {rule for rule in plain.rules if rule.head.relation in wanted}
    assert set(again.directives) == {directive for directive in plain.directives if directive.relation in wanted}


def test_rules_are_what_explain_shows_by_itself(tmp_path: Path) -> None:
    save(tmp_path, EXPLAINED)
    assert vigilog(tmp_path, "explain", "p.dl").out == vigilog(tmp_path, "explain", "p.dl", "--show", "rules").out


def test_strata_come_in_order_and_say_which_recurse(tmp_path: Path) -> None:
    save(tmp_path, EXPLAINED)
    out = vigilog(tmp_path, "explain", "p.dl", "--show", "strata").out
    titles = [line for line in out.splitlines() if line.startswith("// stratum")]
    assert titles[0].startswith("// stratum 1: closure (recursive")
    assert sorted(title.split(": ")[1] for title in titles[1:]) == ["lonely (once)", "other (once)"]


def test_sql_names_the_rule_it_is_for(tmp_path: Path) -> None:
    save(tmp_path, EXPLAINED)
    ended = vigilog(tmp_path, "explain", "p.dl", "--show", "sql", "--view", "closure")
    assert ended.status == 0
    assert "-- p.dl:5:1: closure(x, y) :- edge(x, y)." in ended.out
    assert "-- p.dl:6:1: closure(x, y) :- edge(x, z), closure(z, y)." in ended.out
    assert '"closure_recent"' in ended.out
    assert "lonely" not in ended.out


# -- verbose


def test_verbose_names_executor_and_reason(tmp_path: Path) -> None:
    ended = run(tmp_path, GRAPH, "--verbose", edge_facts=EDGES)
    assert (ended.status, ended.out) == (0, "")
    assert ended.err.startswith("engine: embedded (asked for by --engine embedded)")


def test_verbose_says_why_auto_chose(tmp_path: Path) -> None:
    save(tmp_path, GRAPH, edge_facts=EDGES)
    ended = vigilog(tmp_path, "run", "p.dl", "-v", "-D", "out")
    assert re.match(r"engine: embedded \(.*small.*\); .*rounds.*rows derived", ended.err)


# -- bounds


def test_max_rounds_stops_what_diverges(tmp_path: Path) -> None:
    ended = run(tmp_path, DIVERGES, "--max-rounds", "50")
    assert (ended.status, ended.out) == (1, "")
    assert re.match(r"error\[rounds\]: n did not .* 50 rounds", ended.err)
    assert "--max-rounds" in ended.err
    assert not (tmp_path / "out").exists()


def test_max_rounds_lets_pass_what_ends(tmp_path: Path) -> None:
    bounded = DIVERGES.replace(":- n(x)", ":- n(x), x < 5")
    assert run(tmp_path, bounded, "--max-rounds", "6").status == 0
    assert written(tmp_path) == {"n.csv": "0\n1\n2\n3\n4\n5\n"}


def test_timeout_stops_what_diverges(tmp_path: Path) -> None:
    started = time.monotonic()
    ended = run(tmp_path, DIVERGES, "--timeout", "0.5")
    assert time.monotonic() - started < 60
    assert (ended.status, ended.out) == (1, "")
    assert re.match(r"error\[timeout\]: n did not .* 0\.5 s", ended.err)
    assert "--timeout" in ended.err
    assert not (tmp_path / "out").exists()


def test_timeout_stops_one_large_join(tmp_path: Path) -> None:
    program = ".decl m(x: number)\n.input m\n.decl n(x: number)\n.output n\nn(x) :- m(x), m(y), m(z), m(w), x + y + z + w = -1.\n"
    started = time.monotonic()
    ended = run(tmp_path, program, "--timeout", "0.5", m_facts="".join(f"{i}\n" for i in range(2000)))
    assert time.monotonic() - started < 60
    assert ended.status == 1
    assert ended.err.startswith("error[timeout]: n did not")


def test_timeout_stops_reading(tmp_path: Path) -> None:
    program = ".decl m(x: number)\n.input m\n.output m\n"
    ended = run(tmp_path, program, "--timeout", "0.2", m_facts="".join(f"{i}\n" for i in range(500_000)))
    assert ended.status == 1
    assert ended.err.startswith("error[timeout]: reading m did not")
    assert not (tmp_path / "out").exists()


# -- signals, pipes and terminals


def interrupted(folder: Path, after: float = 0.5) -> Ended:
    """Starts a run of a program that has a warning, sends Ctrl-C a while after that is told, and gives it some seconds to end."""
    command = [str(COMMAND), "run", "p.dl", "-D", "out", "--engine", "embedded"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        assert "warning" in running.stderr.readline(), "only what is checked has begun"
        time.sleep(after)
        assert running.poll() is None, "it was to run for ever"
        running.send_signal(signal.SIGINT)
        try:
            out, err = running.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            running.kill()
            raise
    return Ended(running.returncode, out, err)


@pytest.mark.parametrize(
    "program",
    [
        DIVERGES,
        '.decl m(x: symbol)\n.input m\n.decl n(x: symbol)\n.output n\nn(x) :- m(x), m(y), m(z), match("(1+)+b", cat(x, y, z)).\n',
        ".decl m(x: number)\n.input m\n.decl n(x: number)\n.output n\nn(x) :- m(x), m(y), m(z), m(w), x + y + z + w ^ 1 = -1.\n",
        ".decl m(x: number)\n.input m\n.decl n(x: float)\n.output n\nn(s) :- s = sum to_float(a + b + c + d) : { m(a), m(b), m(c), m(d) }.\n",
    ],
    ids=["fixpoint", "regular expression", "functor", "aggregate"],
)
@pytest.mark.apart
def test_ctrl_c_stops_cleanly(tmp_path: Path, program: str) -> None:
    save(tmp_path, program + ".decl unused(x: number)\n", m_facts="".join(f"{i}\n" for i in range(2000)))
    ended = interrupted(tmp_path)
    assert "Traceback" not in ended.err, ended.err[-1500:]
    assert (ended.status, ended.out) == (130, "")
    assert "interrupted" in ended.err
    assert not (tmp_path / "out").exists()


@pytest.mark.apart
def test_ctrl_c_leaves_earlier_results_alone(tmp_path: Path) -> None:
    save(tmp_path, DIVERGES + ".decl unused(x: number)\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "n.csv").write_text("old\n")
    assert interrupted(tmp_path).status == 130
    assert written(tmp_path) == {"n.csv": "old\n"}


@pytest.mark.apart
def test_a_pipe_sees_no_progress_bar(tmp_path: Path) -> None:
    save(tmp_path, DIVERGES.replace(":- n(x)", ":- n(x), x < 20000"))
    ended = process(tmp_path, "run", "p.dl", "-D", "out", "--engine", "embedded", environment={"FORCE_COLOR": "", "TERM": "xterm-256color"})
    assert ended == Ended(0, "", "")


@pytest.mark.apart
def test_a_reader_that_leaves_is_no_traceback(tmp_path: Path) -> None:
    save(tmp_path, ".decl p(x: number)\n.input p\n.output p\n", p_facts="".join(f"{i}\n" for i in range(200_000)))
    command = [str(COMMAND), "run", "p.dl", "-D", "-", "--engine", "embedded"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None and running.stderr is not None
        assert running.stdout.readline() == "---------------\n"
        running.stdout.close()
        assert running.stderr.read() == ""
        running.wait(timeout=60)
    assert running.returncode in (0, 1, -signal.SIGPIPE, 128 + signal.SIGPIPE)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.apart
def test_a_full_disk_behind_standard_output_is_one_sentence(tmp_path: Path) -> None:
    save(tmp_path, ".decl p(x: number)\n.output p\np(1).\n")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [str(COMMAND), "run", "p.dl", "-D", "-"], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert "Traceback" not in done.stderr
    assert done.returncode == 1
    assert "No space left" in done.stderr


@pytest.mark.apart
def test_a_closed_standard_output_is_no_traceback(tmp_path: Path) -> None:
    save(tmp_path, ".decl p(x: number)\n.output p\n.printsize p\np(1).\n")
    done = subprocess.run(["sh", "-c", f"exec '{COMMAND}' run p.dl -D - >&-"], cwd=tmp_path, stderr=subprocess.PIPE, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.apart
def test_printed_results_are_utf8_whatever_the_locale(tmp_path: Path, encoding: str) -> None:
    save(tmp_path, '.decl p(x: symbol)\n.output p\np("é€").\n')
    ended = process(tmp_path, "run", "p.dl", "-D", "-", "--engine", "embedded", environment={"PYTHONIOENCODING": encoding})
    assert ended.status == 0
    assert "\né€\n" in ended.out


def test_json_numbers_are_exact(tmp_path: Path) -> None:
    assert run(tmp_path, ".decl p(x: unsigned)\n.output p(IO=json)\np(18446744073709551615).\n").status == 0
    assert json.loads(written(tmp_path)["p.jsonl"]) == {"x": 18446744073709551615}


def test_a_timeout_stops_matching(tmp_path: Path) -> None:
    text = '.decl s(x: symbol)\n.input s\n.decl o(x: symbol)\n.output o\no(x) :- s(x), s(y), s(z), match("(1+)+b", cat(x, y, z)).\n'
    save(tmp_path, text, s_facts="".join(f"{i}\n" for i in range(2000)))
    ended = vigilog(tmp_path, "run", "p.dl", "-D", "out", "--timeout", "0.5")
    assert ended.status == 1
    assert ended.err.startswith("error[timeout]: o did not come to an end within 0.5 s")
    assert not (tmp_path / "out").exists()
