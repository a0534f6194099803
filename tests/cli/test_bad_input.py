"""Whatever is given to Vigilog, it answers with a result or with a clear error that names the place; never with a traceback, and never with
half of its results.

A program at a documented limit works. Beyond it, and wherever no limit is documented, a test accepts either the right result or an error with
file, line and column.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.cli.test_cli import Ended, checked, process, run, save, vigilog, written
from tests.golden import GRAPH, cases
from tests.treatments import examples
from vigilog import reference
from vigilog.core.errors import VigilogError
from vigilog.engine.evaluate import evaluate
from vigilog.executors.watch import Watch
from vigilog.language.check import check
from vigilog.language.parser import parse
from vigilog.language.printer import show
from vigilog.rewriting.passes import rewrite

P = ".decl p(x: number)\n.output p\n"
Q = ".decl q(x: number)\nq(1).\n"
UNREADABLE = Path("/proc/self/mem")  # even root gets an error from reading its beginning

PLACED = re.compile(r"^p\.dl:[1-9]\d*:[1-9]\d*: error\[[\w-]+\]: \S", re.MULTILINE)


def assert_refused(ended: Ended, *parts: str) -> None:
    """An error: status 1, nothing on standard output, and every part in the text."""
    assert "Traceback" not in ended.err
    assert (ended.status, ended.out) == (1, ""), ended
    for part in parts:
        assert part in ended.err, ended.err[:1000]


def assert_refused_with_place(ended: Ended, *parts: str) -> None:
    assert_refused(ended, *parts)
    assert PLACED.search(ended.err), ended.err[:1000]


def assert_right_or_refused_with_place(folder: Path, ended: Ended, expected: str) -> None:
    if ended.status == 0:
        assert written(folder) == {"p.csv": expected}
    else:
        assert_refused_with_place(ended)
        assert not (folder / "out").exists()


# -- programs that cannot be read


@pytest.mark.parametrize("command", ["check", "run", "explain", "ask"])
@pytest.mark.parametrize("name", ["missing.dl", "folder", "p.dl/inside", "x" * 300, UNREADABLE])
def test_unreadable_program(tmp_path: Path, command: str, name: str | Path) -> None:
    save(tmp_path, P)
    (tmp_path / "folder").mkdir()
    goal = ["p(x)"] if command == "ask" else []
    if name == "folder" and command in ("explain", "ask"):  # which take a data folder, too
        assert_refused(vigilog(tmp_path, command, name, *goal), "error[no-data]: folder is not a data folder")
        return
    if isinstance(name, Path) and not name.exists():
        pytest.skip(f"this system has no {name}")
    assert_refused(vigilog(tmp_path, command, str(name), *goal), "error[unreadable]: ", f"{name}: cannot be read")


@pytest.mark.parametrize(
    ("program", "line"),
    [
        (P.encode() + b"p(1). // \xff\n", 3),
        (P.encode() + b'\np("\xc3").', 4),
        (P.encode("utf-16"), 1),
        (b"\x00\xff", 1),
        (P.encode() + b"p(1). // \xed\xa0\x80", 3),
    ],
    ids=["byte", "cut character", "utf-16", "nul and byte", "surrogate"],
)
def test_program_that_is_not_utf8(tmp_path: Path, program: bytes, line: int) -> None:
    assert_refused(checked(tmp_path, program), f"p.dl:{line}: is not UTF-8 text")


@pytest.mark.parametrize("text", ["", "\n", "\ufeff", "// nothing\n", "/* nothing\n * at all\n */", "//", "\r\n\r\n", " \t\f\v"])
def test_programs_that_say_nothing(tmp_path: Path, text: str) -> None:
    assert checked(tmp_path, text).status == 0
    assert run(tmp_path, text).status == 0
    assert vigilog(tmp_path, "explain", "p.dl").status == 0
    assert vigilog(tmp_path, "explain", "p.dl", "--show", "sql").status == 0
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "text", ["\ufeff" + P + "p(1).\n", (P + "// c\np(1).\n").replace("\n", "\r\n"), P + "p(1)."], ids=["bom", "crlf", "no line end"]
)
def test_forms_of_text(tmp_path: Path, text: str) -> None:
    assert run(tmp_path, text).status == 0
    assert written(tmp_path) == {"p.csv": "1\n"}


def test_places_in_a_program_with_crlf(tmp_path: Path) -> None:
    ended = checked(tmp_path, (P + "/* a\n b */ p(y).\n").replace("\n", "\r\n"))
    assert_refused(ended, "p.dl:4:9: error[ungrounded]")
    assert "\r" not in ended.err


SPACES = ["\u00a0", "\u3000", "\u2028", "\x1c", "\x85", "\u200b", "\ufeff", "\x00", "\x1b", "\x7f", "\U0001f600", "é"]


@pytest.mark.parametrize("character", SPACES, ids=[f"U+{ord(c):04X}" for c in SPACES])
def test_characters_that_no_program_has(tmp_path: Path, character: str) -> None:
    """Spaces that are not ASCII come with text copied from web pages; they are skipped, or refused with their place."""
    ended = run(tmp_path, P + f"p(1).{character}p(1).\n")
    if ended.status == 0:
        assert written(tmp_path) == {"p.csv": "1\n"}
    else:
        assert_refused(ended, "p.dl:3:6: error[syntax]: ")
        assert "\x1b" not in ended.err, "what is not printable must not reach the terminal"


def test_nul_in_a_string(tmp_path: Path) -> None:
    assert_refused_with_place(run(tmp_path, '.decl p(x: symbol)\n.output p\np("a\x00b").\n'), "p.dl:3:3: ")


UNTERMINATED = [
    '"',
    '"\\',
    '"\n',
    "/*",
    "/",
    "/* /* */ */",
    "p",
    "p(",
    "p(1",
    "p(1)",
    "p(1) :-",
    "p(1),",
    "p(x) :- q(",
    "p(x) :- !",
    "p(x) :- (",
    "p(x) :- (q(x)",
    "p(x) :- (q(x) ;",
    "p(x) :- x",
    "p(x) :- x =",
    "p(x) :- x = count",
    "p(x) :- x = count : {",
    "p(x) :- x = sum y : { q(y)",
    "p(x) :- x = min(",
    'p("a',
    'p("a\\").',
    ".",
    ".decl",
    ".decl p",
    ".decl p(",
    ".decl p(x",
    ".decl p(x:",
    ".decl p(x: decimal(",
    ".type",
    ".type T",
    ".type T <:",
    ".type T = number |",
    ".input",
    ".output p(",
    ".output p(IO",
    ".output p(IO=",
    ".comp A {",
    "#include",
    "..",
    ":-",
    ":- .",
    "p() :- .",
    "_.",
    "1.",
    "{",
    "}",
    ")",
    "!",
    "'a'",
    "\\",
    "p(1) p(2).",
    "p(0x).",
    "p(1e).",
    "p(12monkeys).",
]


@pytest.mark.parametrize("text", UNTERMINATED)
def test_unterminated_programs(tmp_path: Path, text: str) -> None:
    assert_refused_with_place(checked(tmp_path, text))


@pytest.mark.parametrize("text", ["p(", ".decl p", ".decl p(x", "p(x) :- q(", "p(x) :- x = count : {"])
def test_advice_about_an_unfinished_statement_fits_it(tmp_path: Path, text: str) -> None:
    """A full stop does not mend an open parenthesis, and no declaration ends with one."""
    assert "end it with a full stop" not in checked(tmp_path, text).err


# -- numbers


@pytest.mark.parametrize(
    ("type_", "constant"),
    [
        ("number", "9223372036854775808"),
        ("number", "-9223372036854775809"),
        ("number", "9" * 5000),
        ("number", "0x" + "f" * 5000),
        ("unsigned", "18446744073709551616"),
        ("unsigned", "-1"),
        ("float", "1e400"),
        ("float", "-1e400"),
        ("float", "1e99999999999999999999"),
        ("float", "9" * 5000 + ".0"),
        ("float", "9" * 400),
        ("decimal(18,2)", "1e999999"),
        ("decimal(18,2)", "1e999999999"),
        ("decimal(18,2)", "1e-999999999"),
        ("decimal(18,2)", "1e99999999999999999999"),
        ("decimal(18,2)", "12345678901234567.00"),
        ("decimal(19,2)", "1"),
        ("decimal(2,3)", "1"),
        (f"decimal({'9' * 60},2)", "1"),
        ("date", '"2026-02-30"'),
        ("date", '"0000-01-01"'),
        ("timestamp", '"0001-01-01T00:00:00+02:00"'),
        ("timestamp", '"9999-12-31T23:59:59-02:00"'),
        ("timestamp", '"2026-11-16T08:30:00+19:30"'),
        ("timestamp", '"2026-11-16T08:30:00+02:60"'),
    ],
    ids=lambda part: part[:40],
)
def test_constants_out_of_range(tmp_path: Path, type_: str, constant: str) -> None:
    ended = checked(tmp_path, f".decl p(x: {type_})\n.output p\np({constant}).\n")
    assert_refused_with_place(ended, "error[range]")
    assert len(ended.err) < 3000, "a long constant is shortened"


@pytest.mark.parametrize(
    ("type_", "bad"),
    [
        ("number", "a"),
        ("number", ""),
        ("number", "1.5"),
        ("number", " 1"),
        ("number", "+1"),
        ("number", "1_000"),
        ("number", "٣"),
        ("number", "0x"),
        ("number", "0b12"),
        ("number", "0x8000000000000000"),
        ("unsigned", "-0x10"),
        ("number", "9223372036854775808"),
        ("number", "-9223372036854775809"),
        ("number", "9" * 5000),
        ("unsigned", "-1"),
        ("unsigned", "18446744073709551616"),
        ("float", "nan"),
        ("float", "inf"),
        ("float", "1e400"),
        ("float", "1,5"),
        ("boolean", "yes"),
        ("boolean", "True"),
        ("date", "2026-13-01"),
        ("date", "16.11.2026"),
        ("date", "20261116"),
        ("timestamp", "2026-11-16"),
        ("timestamp", "0001-01-01T00:00:00+02:00"),
        ("timestamp", "2026-11-16T25:00:00Z"),
        ("timestamp", "2026-11-16T08:30:00+18:01"),
        ("timestamp", "2026-11-16T08:30:00-02:60"),
        ("decimal(5,2)", "1.234"),
        ("decimal(5,2)", "1234"),
        ("decimal(5,2)", "1e2"),
        ("symbol", "a\x00b"),
    ],
    ids=lambda part: part[:30].replace("\x00", "NUL"),
)
def test_bad_cells(tmp_path: Path, type_: str, bad: str) -> None:
    good = {
        "number": "1",
        "unsigned": "1",
        "float": "1",
        "boolean": "true",
        "date": "2026-11-16",
        "decimal(5,2)": "1.5",
        "symbol": "a",
    }.get(type_, "2026-11-16 08:30:00")
    for options, name, text in [
        ("", "p_facts", f"s\t{good}\ns\t{bad}\n"),
        ("IO=csv", "p_csv", f's,x\r\n"s,s",{good}\r\ns,"{bad}"\r\n'),
    ]:
        ended = run(tmp_path, f".decl p(s: symbol, x: {type_})\n.input p({options})\n.output p\n", **{name: text})
        line = 3 if options else 2
        assert_refused(ended, "error[value]: ", f"{name.replace('_', '.')}:{line}: column x of p: ", f"is not a {type_}")
        assert len(ended.err) < 400
        assert not (tmp_path / "out").exists()


# -- facts that cannot be read

SYMBOLS = ".decl p(x: symbol, y: symbol)\n.input p({})\n.output p\n"


@pytest.mark.parametrize(
    "options",
    [
        "",
        'filename="nothing/p.facts"',
        'filename="p.dl/p.facts"',
        f'filename="{"x" * 300}"',
        f'filename="{UNREADABLE}"',
        "IO=csv",
        "IO=json",
        'filename="a\x00b"',
    ],
    ids=["missing", "missing folder", "a file for a folder", "long name", "unreadable", "csv", "json", "nul"],
)
def test_unreadable_facts(tmp_path: Path, options: str) -> None:
    assert_refused(run(tmp_path, SYMBOLS.format(options)))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("folder", ["nothing", "p.dl"])
def test_unreadable_facts_folder(tmp_path: Path, folder: str) -> None:
    assert_refused(run(tmp_path, SYMBOLS.format(""), "-F", folder), "error[unreadable]: ", f"{folder}/p.facts: cannot be read for p")


def test_an_input_without_its_file_is_an_error_even_if_no_output_needs_it(tmp_path: Path) -> None:
    assert_refused(run(tmp_path, P + "p(1).\n.decl e(x: number)\n.input e\n"), "e.facts")


@pytest.mark.parametrize(
    ("options", "name", "text", "line"),
    [
        ("", "p_facts", "a\tb\na\n", 2),
        ("", "p_facts", "a\tb\tc\n", 1),
        ("", "p_facts", "a,b\n", 1),
        ("", "p_facts", "a\tb\n\na\tb\n", 2),
        ('delimiter="::"', "p_facts", "a::b\na:b\n", 2),
        ("headers=true", "p_facts", "x\ty\nx\n", 2),
        ("IO=csv", "p_csv", "x,y\na,b,c\n", 2),
        ("IO=csv", "p_csv", 'x,y\n"a,b\n', 2),
        ("IO=csv", "p_csv", 'x,y\n"a"b,c\n', 2),
        ("rfc4180=true", "p_facts", 'a,b\n"a,b"\n', 2),
        ("IO=csv", "p_csv", "x,z\na,b\n", 1),
        ("IO=csv", "p_csv", "x\na\n", 1),
        ("IO=csv", "p_csv", "x,y,z\na,b,c\n", 1),
        ("IO=csv", "p_csv", "x,x\na,b\n", 1),
        ("headers=true", "p_facts", "x,y\na\tb\n", 1),
        ("IO=csv", "p_csv", "x,y\na\rb,c\n", 2),
    ],
)
def test_wrong_number_of_columns(tmp_path: Path, options: str, name: str, text: str, line: int) -> None:
    ended = run(tmp_path, SYMBOLS.format(options), **{name: text})
    assert_refused(ended, "error[columns]: ", f"{name.replace('_', '.')}:{line}: ")
    assert not (tmp_path / "out").exists()


def test_a_header_of_other_names_is_told(tmp_path: Path) -> None:
    ended = run(tmp_path, SYMBOLS.format("IO=csv"), p_csv="name,y\na,b\n")
    assert ended.err == "error[columns]: p.csv:1: names the columns name, y, but p has x, y\n"
    ended = run(tmp_path, SYMBOLS.format("IO=csv"), p_csv="x;y\na;b\n")
    assert ended.err == "error[columns]: p.csv:1: names the columns x;y, but p has x, y; columns are separated by a comma\n"


def test_a_file_without_the_header_it_should_have_and_the_other_way_round(tmp_path: Path) -> None:
    ended = run(tmp_path, SYMBOLS.format("IO=csv"), p_csv="a,b\nc,d\n")
    assert ended.err == "error[columns]: p.csv:1: names the columns a, b, but p has x, y; say headers=false if the file has no header\n"
    numbers = ".decl p(x: number, y: number)\n.input p\n.output p\n"
    ended = run(tmp_path, numbers, p_facts="X\tY\n1\t2\n")
    assert ended.err.endswith(
        "p.facts:1: column x of p: X is not a number: it must be an integer from -2^63 to 2^63-1; say headers=true if the first line names the columns\n"
    )


def test_one_column_is_no_columns(tmp_path: Path) -> None:
    assert_refused(run(tmp_path, SYMBOLS.format(""), p_facts="a\n"), "p.facts:1: has 1 column, but p has 2 (x, y)")


def test_a_key_that_is_not_there_is_told(tmp_path: Path) -> None:
    ended = run(tmp_path, SYMBOLS.format("IO=json"), p_jsonl='{"y": "b"}\n')
    assert ended.err.startswith("error[null]: p.jsonl:1: has no key x for p (options of .input: optional=")


@pytest.mark.parametrize(
    ("options", "name", "text"),
    [
        ("", "p_facts", "a\tb\rc\td\r"),
        ("headers=true", "p_facts", "x\ty\rc\td"),
        ("IO=csv", "p_csv", 'x,y\r"a\n",b\r'),
        ("IO=json", "p_jsonl", '{"x": "a", "y": "b"}\r{"x": "c", "y": "d"}\r'),
    ],
)
def test_lines_that_end_in_cr_alone(tmp_path: Path, options: str, name: str, text: str) -> None:
    ended = run(tmp_path, SYMBOLS.format(options), **{name: text})
    assert ended.err == f"error[encoding]: {name.replace('_', '.')}:1: its lines end in CR alone; they must end in LF or CR LF\n"


@pytest.mark.parametrize(
    ("options", "name", "text"),
    [
        ("", "p_facts", b"a\tb\n\xff\tb\n"),
        ("IO=csv", "p_csv", b"x,y\n\xff,b\n"),
        ("IO=json", "p_jsonl", b'{"x": "a", "y": "b"}\n{"x": "\xff"}\n'),
    ],
)
def test_facts_that_are_not_utf8(tmp_path: Path, options: str, name: str, text: bytes) -> None:
    assert_refused(run(tmp_path, SYMBOLS.format(options), **{name: text}), "error[encoding]: ", f"{name.replace('_', '.')}:2: is not UTF-8")
    assert_refused(run(tmp_path, SYMBOLS.format(options), **{name: text * 100_000}), "error[encoding]: ", ":2: is not UTF-8")


@pytest.mark.parametrize(
    ("options", "name", "text"),
    [
        ("", "p_facts", "\ufeffa\tb\r\nc\td\r\n"),
        ("", "p_facts", "a\tb\nc\td"),
        ("headers=true", "p_facts", "\ufeffx\ty\r\na\tb\r\nc\td"),
        ("IO=csv", "p_csv", "\ufeffx,y\r\na,b\r\nc,d\r\n"),
        ("IO=csv", "p_csv", '\ufeff"x","y"\r\n"a",b\r\nc,"d"'),
        ("IO=csv, headers=false", "p_csv", '\ufeff"a","b"\n"c","d"\n'),
        ("IO=json", "p_jsonl", '\ufeff{"x": "a", "y": "b"}\r\n\r\n{"x": "c", "y": "d", "z": [null]}'),
    ],
)
def test_forms_of_facts(tmp_path: Path, options: str, name: str, text: str) -> None:
    ended = run(tmp_path, SYMBOLS.format(options), **{name: text})
    assert (ended.status, ended.err) == (0, "")
    assert written(tmp_path) == {"p.csv": "a\tb\nc\td\n"}


@pytest.mark.parametrize(("options", "name"), [("", "p_facts"), ("IO=csv", "p_csv"), ("IO=json", "p_jsonl"), ("headers=true", "p_facts")])
@pytest.mark.parametrize("text", ["", "\ufeff"])
def test_empty_facts(tmp_path: Path, options: str, name: str, text: str) -> None:
    if text and options == "":
        return  # a line that holds nothing but a mark: one column, not two
    assert run(tmp_path, SYMBOLS.format(options), **{name: text}).status == 0
    assert written(tmp_path) == {"p.csv": ""}


def test_a_long_field(tmp_path: Path) -> None:
    """Python's csv module refuses fields of more than 128 KiB unless told otherwise."""
    long = "a" * 300_000
    for options, name, text in [("", "p_facts", f"{long}\tb\n"), ("IO=csv", "p_csv", f"x,y\n{long},b\n")]:
        assert run(tmp_path, SYMBOLS.format(options), **{name: text}).status == 0
        assert written(tmp_path) == {"p.csv": f"{long}\tb\n"}


@pytest.mark.parametrize("delimiter", ["::", "\\n", '\\"', "\\r", "\\r\\n"])
@pytest.mark.parametrize("quoted", ["true", "false"])
def test_odd_delimiters_work_or_are_refused(tmp_path: Path, delimiter: str, quoted: str) -> None:
    """What was written with a delimiter is read back with it, or the delimiter is refused."""
    options = f'rfc4180={quoted}, delimiter="{delimiter}"'
    ended = run(tmp_path, f'.decl p(x: symbol, y: symbol)\n.output p({options})\np("a:", ":b").\n')
    if ended.status == 0:
        assert run(tmp_path, f'.decl q(x: symbol, y: symbol)\n.input q({options}, filename="out/p.csv")\n.output q\n').status == 0
        assert written(tmp_path)["q.csv"] == "a:\t:b\n"
    else:
        assert_refused(ended)
    save(tmp_path, f".decl q(x: symbol, y: symbol)\n.input q({options})\n.output q\n", q_facts="a\tb\n")
    assert_refused(vigilog(tmp_path, "run", "p.dl", "-D", "out2", "--engine", "embedded"))


# -- JSON lines


@pytest.mark.parametrize(
    ("type_", "line", "code"),
    [
        ("number", '{"x": null}', "null"),
        ("number", '{"y": 1}', "null"),
        ("number", "null", "value"),
        ("number", "[1]", "value"),
        ("number", "1", "value"),
        ("number", '{"x": 1', "value"),
        ("number", "{'x': 1}", "value"),
        ("number", '{"x": 1} {"x": 2}', "value"),
        ("number", '{"x": "1"}', "value"),
        ("number", '{"x": true}', "value"),
        ("number", '{"x": 1.5}', "value"),
        ("number", '{"x": [1]}', "value"),
        ("number", '{"x": {}}', "value"),
        ("number", '{"x": 9223372036854775808}', "value"),
        ("number", '{"x": ' + "9" * 5000 + "}", "value"),
        ("number", "[" * 100_000, "value"),
        ("number", '{"x": ' + "[" * 100_000, "value"),
        ("unsigned", '{"x": -1}', "value"),
        ("float", '{"x": NaN}', "value"),
        ("float", '{"x": -Infinity}', "value"),
        ("float", '{"x": 1e400}', "value"),
        ("float", '{"x": 1' + "0" * 400 + "}", "value"),
        ("float", '{"x": 1e99999999999999999999}', "value"),
        ("decimal(18,2)", '{"x": 1e999999999}', "value"),
        ("decimal(18,2)", '{"x": 1e99999999999999999999}', "value"),
        ("decimal(18,2)", '{"x": "1e5"}', "value"),
        ("boolean", '{"x": 1}', "value"),
        ("boolean", '{"x": "true"}', "value"),
        ("date", '{"x": "2026-02-30"}', "value"),
        ("date", '{"x": 20260230}', "value"),
        ("symbol", '{"x": "\\u0000"}', "value"),
        ("symbol", '{"x": "\\ud800"}', "value"),
        ("symbol", '{"x": 1}', "value"),
    ],
    ids=lambda part: part[:30].replace("\x00", "NUL"),
)
def test_bad_json(tmp_path: Path, type_: str, line: str, code: str) -> None:
    program = f".decl p(x: {type_})\n.input p(IO=json)\n.output p\n"
    ended = run(tmp_path, program, p_jsonl=f"\n{line}\n")
    assert_refused(ended, f"error[{code}]: p.jsonl:2: ")
    assert len(ended.err) < 400
    assert "set_int_max_str_digits" not in ended.err, "that is advice for a Python programmer"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("type_", "json", "text"),
    [
        ("float", "1.5", "1.5"),
        ("float", "2", "2.0"),
        ("float", "-0.0", "0.0"),
        ("float", "1e300", "1e+300"),
        ("decimal(9,2)", "1.5", "1.50"),
        ("decimal(9,2)", '"1.5"', "1.50"),
        ("decimal(9,2)", "7", "7.00"),
        ("unsigned", "18446744073709551615", "18446744073709551615"),
        ("number", "-9223372036854775808", "-9223372036854775808"),
        ("boolean", "false", "false"),
        ("symbol", '"\\ud83d\\ude00"', "\U0001f600"),
    ],
)
def test_good_json(tmp_path: Path, type_: str, json: str, text: str) -> None:
    ended = run(tmp_path, f".decl p(x: {type_})\n.input p(IO=json)\n.output p\n", p_jsonl=f'{{"x": {json}}}\n')
    assert (ended.status, ended.err) == (0, "")
    assert written(tmp_path) == {"p.csv": f"{text}\n"}


def test_a_null_is_refused_with_advice_or_skipped(tmp_path: Path) -> None:
    program = ".decl p(x: number, y: symbol)\n.input p(IO=json{})\n.output p\n"
    facts = '{"x": 1, "y": "a"}\n{"x": null, "y": "b"}\n{"x": 3}\n'
    assert_refused(run(tmp_path, program.format(""), p_jsonl=facts), "p.jsonl:2: column x of p is null", "nulls=skip")
    assert_refused(run(tmp_path, program.format(", nulls=refuse"), p_jsonl=facts), "p.jsonl:2: ")
    assert run(tmp_path, program.format(", nulls=skip"), p_jsonl=facts).status == 0
    assert written(tmp_path) == {"p.csv": "1\ta\n"}


# -- large programs


@pytest.mark.slow
def test_a_megabyte_of_facts(tmp_path: Path) -> None:
    ended = run(tmp_path, ".decl p(x: number, y: symbol)\n.output p\n" + "".join(f'p({i}, "row {i:>10}").\n' for i in range(40_000)))
    assert (ended.status, ended.err) == (0, "")
    assert written(tmp_path)["p.csv"].count("\n") == 40_000


@pytest.mark.slow
def test_a_megabyte_and_ten_thousand_rules(tmp_path: Path) -> None:
    ended = run(tmp_path, P + Q + "".join(f"p({i}) :- q(x), x != {i}. // {'long ' * 15}\n" for i in range(10_000)))
    assert (ended.status, ended.err) == (0, "")
    assert written(tmp_path)["p.csv"].count("\n") == 9_999


@pytest.mark.slow
def test_two_thousand_relations(tmp_path: Path) -> None:
    chain = "".join(f".decl r{i}(x: number)\nr{i + 1}(x) :- r{i}(x).\n" for i in range(2000))
    assert run(tmp_path, chain + ".decl r2000(x: number)\nr0(1).\n.output r2000\n").status == 0
    assert written(tmp_path) == {"r2000.csv": "1\n"}


def test_a_cycle_of_hundreds_of_relations(tmp_path: Path) -> None:
    circle = "".join(f".decl r{i}(x: number)\nr{(i + 1) % 300}(x) :- r{i}(x).\n" for i in range(300))
    assert run(tmp_path, circle + "r0(1).\n.output r299\n").status == 0
    assert written(tmp_path) == {"r299.csv": "1\n"}


@pytest.mark.parametrize(
    "program",
    [
        "p(x :- q(x).\n" * 20_000,
        ". " * 100_000,
        '"\n' * 100_000,
        "(" * 300_000,
        "/*" * 500_000,
        '"' + "\\a" * 500_000,
        P + Q + "p(z) :- q(x), x != 1.\n" * 3_000,
        P + Q + "p(x) :- q(x, 1).\n" * 3_000,
        P + ".decl q(x: symbol)\n" + "p(x) :- q(x).\n" * 3_000,
        "".join(f".decl relation{i}(x: number)\nrelatoin{i}(x) :- relatin{i}(x).\n" for i in range(500)),
        "".join(f".decl r{i}(x: number)\nr{i}(x) :- r{(i + 1) % 400}(x), !r{(i + 3) % 400}(x).\n" for i in range(400)),
    ],
    ids=["syntax", "stops", "strings", "parentheses", "comments", "escapes", "ungrounded", "arity", "types", "names", "cycles"],
)
@pytest.mark.apart
def test_thousands_of_errors_are_told_in_seconds(tmp_path: Path, program: str) -> None:
    save(tmp_path, program)
    assert_refused_with_place(process(tmp_path, "check", "p.dl", timeout=90))


@pytest.mark.apart
def test_a_megabyte_of_warnings_is_told_in_seconds(tmp_path: Path) -> None:
    save(tmp_path, P + ".decl q(x: number, y: number)\n" + "p(x) :- q(x, y).\n" * 5_000)
    ended = process(tmp_path, "check", "p.dl", timeout=90)
    assert ended.status == 0
    assert "p.dl:4:14: warning[single-variable]" in ended.err


# -- wide and deep programs


def columns(number: int) -> str:
    return ", ".join(f"c{i}: number" for i in range(number))


def test_a_hundred_columns(tmp_path: Path) -> None:
    variables = ", ".join(f"x{i}" for i in range(100))
    program = f".decl p({columns(100)})\n.output p\np({', '.join(['1'] * 100)}).\np({variables.replace('x99', 'x99 + 1')}) :- p({variables}), x99 < 3.\n"
    assert run(tmp_path, program).status == 0
    assert written(tmp_path)["p.csv"].count("\n") == 3


@pytest.mark.apart
def test_a_hundred_computed_columns(tmp_path: Path) -> None:
    computed = ", ".join(f"x{i} + 1" for i in range(100))
    save(
        tmp_path,
        f".decl q({columns(100)})\n.input q\n.decl p({columns(100)})\n.output p\np({computed}) :- q({computed.replace(' + 1', '')}).\n",
        q_facts="\t".join(["1"] * 100) + "\n",
    )
    assert process(tmp_path, "run", "p.dl", "-D", "out", "--engine", "embedded", timeout=90).status == 0
    assert written(tmp_path) == {"p.csv": "\t".join(["2"] * 100) + "\n"}


def test_more_than_a_hundred_columns(tmp_path: Path) -> None:
    assert_refused_with_place(checked(tmp_path, f".decl p({columns(101)})\n"), "p.dl:1:7: error[range]: p has 101 columns")


@pytest.mark.parametrize("depth", [8, 40, 70, 90, 99])
@pytest.mark.parametrize(
    ("opening", "closing"),
    [("(", " + 1)"), ("(1 + ", ")"), ("max(0, 1 + ", ")"), ('strlen(cat("a", to_string(', ") ) ) + 0 * x"), ("-", "")],
)
def test_terms_nested_within_the_limit(tmp_path: Path, depth: int, opening: str, closing: str) -> None:
    """A hundred levels are allowed; every operator and functor is one."""
    levels = opening.count("+") + closing.count("+") + sum(opening.count(name) for name in ("max", "strlen", "cat", "to_string", "-"))
    count = max(depth // max(levels, 1), 1)
    program = P + f"{Q}p(y) :- q(x), y = {opening * count}x{closing * count}.\n"
    ended = run(tmp_path, program)
    assert (ended.status, ended.err) == (0, "")
    assert written(tmp_path)["p.csv"].count("\n") == 1


DEEP = {
    "sums to the left": ("y = " + "(" * 1000 + "x" + " + 1)" * 1000, None),
    "sums to the right": ("y = " + "(1 + " * 1000 + "x" + ")" * 1000, None),
    "a long sum": ("y = x" + " + 1" * 1000, None),
    "powers": ("y = " + "x ^ " * 1000 + "x", None),
    "minus": ("y = " + "- " * 1000 + "x", None),
    "functors": ("y = " + "max(0, " * 1000 + "x" + ")" * 1000, None),
    "bnot": ("y = " + "bnot " * 1000 + "x", None),
    "parentheses around a term": ("y = " + "(" * 1000 + "x" + ")" * 1000, "1\n"),
    "parentheses around an atom": ("y = x, " + "(" * 1000 + "q(x)" + ")" * 1000, "1\n"),
    "conjunctions": ("y = x, " + "(x = 1, " * 1000 + "x = 1" + ")" * 1000, "1\n"),
    "disjunctions": ("y = x, " + "(x = 1 ; " * 1000 + "x = 1" + ")" * 1000, "1\n"),
    "both": ("y = x, " + "(x = 1, q(x) ; q(x), " * 1000 + "x = 1" + ")" * 1000, None),
    "not": ("y = x, " + "!" * 1000 + "q(x)", "1\n"),
    "not of parentheses": ("y = x, " + "!(" * 1000 + "q(x)" + ")" * 1000, "1\n"),
    "not of conjunctions": ("y = x, " + "!(q(x), " * 1000 + "q(x)" + ")" * 1000, None),
    "not of disjunctions": ("y = x, " + "!(q(x) ; " * 1000 + "q(x)" + ")" * 1000, None),
    "aggregates in atoms": ("y = " + "count : { q(" * 1000 + "1" + ") }" * 1000, None),
    "aggregates in comparisons": ("y = " + "".join(f"count : {{ q(z{i}), z{i} = " for i in range(1000)) + "1" + " }" * 1000, None),
    "aggregates of aggregates": ("y = " + "sum " * 1000 + "1" + " : { q(_) }" * 1000, None),
    "braces": ("y = count : " + "{" * 1000 + "q(_)" + "}" * 1000, None),
}


@pytest.mark.parametrize("name", DEEP)
@pytest.mark.apart
def test_rules_nested_a_thousand_deep(tmp_path: Path, name: str) -> None:
    body, expected = DEEP[name]
    save(tmp_path, P + Q + f"p(y) :- q(x), {body}.\n")
    ended = process(tmp_path, "run", "p.dl", "-D", "out", "--engine", "embedded", timeout=90)
    if expected is not None and ended.status == 0:
        assert written(tmp_path) == {"p.csv": expected}
    else:
        assert_refused_with_place(ended)
        assert not (tmp_path / "out").exists()


WIDE = {
    "65 atoms": ("p(x) :- " + ", ".join(["q(x)"] * 65), "1\n"),
    "200 atoms": ("p(x) :- " + ", ".join(["q(x)"] * 200), "1\n"),
    "100 negations": ("p(x) :- q(x), " + ", ".join(["!q(x + 1)"] * 100), "1\n"),
    "1500 comparisons": ("p(x) :- q(x), " + ", ".join(f"x < {i + 2}" for i in range(1500)), "1\n"),
    "200 arguments": (f"p(max({', '.join(['x'] * 200)})) :- q(x)", "1\n"),
    "1200 arguments": (f"p(strlen(cat({', '.join(['s'] * 1200)}))) :- q(x), s = to_string(x)", "1200\n"),
    "1000 alternatives": ("p(x) :- " + " ; ".join(["q(x)"] * 1000), "1\n"),
    "600 alternatives in an aggregate": (f"p(n) :- n = count : {{ {' ; '.join(['q(x)'] * 600)} }}", "1\n"),
    "100 aggregates": ("p(n0) :- q(x), " + ", ".join(f"n{i} = count : {{ q(x) }}" for i in range(100)), "1\n"),
    "500 heads": (", ".join(["p(x)"] * 500) + " :- q(x)", "1\n"),
    "500 heads of 500 alternatives": (", ".join(["p(x)"] * 500) + " :- " + " ; ".join(["q(x)"] * 500), "1\n"),
    "500 equalities": ("p(x500) :- q(x0), " + ", ".join(f"x{i + 1} = x{i} * 1" for i in range(500)), "1\n"),
    "200 equalities backwards": ("p(x200) :- q(x0), " + ", ".join(f"x{i + 1} = x{i} * 1" for i in reversed(range(200))), "1\n"),
    "40 equalities between atoms": ("p(x40) :- q(x0), " + ", ".join(f"x{i + 1} = x{i} * 1, q(x{i + 1})" for i in range(40)), "1\n"),
    "500 equalities in an aggregate": (
        "p(n) :- n = sum x500 : { q(x0), " + ", ".join(f"x{i + 1} = x{i} * 1" for i in range(500)) + " }",
        "1\n",
    ),
    "500 equalities in an aggregate of outer values": (
        "p(n) :- q(y), n = sum x500 : { q(z), x0 = y * z, " + ", ".join(f"x{i + 1} = x{i} * 1" for i in range(500)) + " }",
        "1\n",
    ),
}


@pytest.mark.parametrize("name", WIDE)
@pytest.mark.apart
def test_rules_of_great_width(tmp_path: Path, name: str) -> None:
    rule, expected = WIDE[name]
    save(tmp_path, P + Q + rule + ".\n")
    ended = process(tmp_path, "run", "p.dl", "-D", "out", "--engine", "embedded", timeout=90)
    assert_right_or_refused_with_place(tmp_path, ended, expected)


def test_a_rule_of_a_million_alternatives(tmp_path: Path) -> None:
    for body in (", ".join(["(q(x) ; q(x))"] * 20), f"q(x), !({' ; '.join(['q(x), q(x)'] * 20)})"):
        assert_refused_with_place(checked(tmp_path, P + Q + f"p(x) :- {body}.\n"), "p.dl:5:1: error[expansion]", "1000 alternatives")


@pytest.mark.apart
def test_a_long_circle_of_negations(tmp_path: Path) -> None:
    circle = "".join(f".decl p{i}(x: number)\np{i}(x) :- q(x), !p{(i + 1) % 1000}(x).\n" for i in range(1000))
    save(tmp_path, Q + circle)
    assert_refused_with_place(process(tmp_path, "check", "p.dl", timeout=90), "error[stratification]", "… and 800 more errors")


@pytest.mark.apart
def test_a_long_chain_of_types(tmp_path: Path) -> None:
    chain = "".join(f".type T{i} = T{i + 1}\n" for i in range(2000)) + ".type T2000 = number\n.decl p(x: T0)\n.output p\np(1).\n"
    save(tmp_path, chain)
    ended = process(tmp_path, "check", "p.dl", timeout=90)
    assert "defined by itself" not in ended.err
    assert ended.status == 0


def test_types_in_a_circle(tmp_path: Path) -> None:
    ended = checked(tmp_path, ".type A = B\n.type B = A\n.type C <: C\n.decl p(x: A, y: C)\n")
    assert_refused_with_place(ended, "p.dl:1:7: error[type]: the type A is defined by itself", "p.dl:3:7: ")


@pytest.mark.apart
def test_types_that_share_their_parts(tmp_path: Path) -> None:
    """Forty levels of `A = B | B` are 2^40 ways to the bottom."""
    names = (
        "".join(f".type T{i} = T{i + 1} | U{i + 1}\n.type U{i} = U{i + 1} | T{i + 1}\n" for i in range(40))
        + ".type T40 <: number\n.type U40 <: number\n"
    )
    save(tmp_path, names + ".decl p(x: T0)\n.decl r(x: U0)\n.output p\np(x) :- r(x).\n")
    assert process(tmp_path, "check", "p.dl", timeout=90).status in (0, 1)


# -- results that cannot be written


@pytest.mark.parametrize("text", ["a\\tb", "a\\nb", "a\\rb"])
def test_a_symbol_that_would_break_the_file(tmp_path: Path, text: str) -> None:
    program = f'.decl p(x: symbol, y: number)\n.output p{{}}\np("{text}", 1).\n'
    assert_refused(run(tmp_path, program.format("")), "out/p.csv", "rfc4180=true")
    assert not (tmp_path / "out").exists()
    save(tmp_path, program.format(""))
    assert_refused(vigilog(tmp_path, "run", "p.dl", "-D", "-", "--engine", "embedded"), "rfc4180=true")
    assert run(tmp_path, program.format("(rfc4180=true)")).status == 0
    again = '.decl q(x: symbol, y: number)\n.input q(rfc4180=true, filename="out/p.csv")\n.output q(IO=json)\n'
    assert run(tmp_path, again).status == 0
    assert written(tmp_path)["q.jsonl"] == f'{{"x": "{text}", "y": 1}}\n'


def test_a_number_that_holds_the_delimiter(tmp_path: Path) -> None:
    assert_refused(run(tmp_path, '.decl p(x: number, y: number)\n.output p(delimiter="1")\np(21, 3).\n'), "delimiter")


def test_a_symbol_that_runs_into_a_long_delimiter(tmp_path: Path) -> None:
    program = '.decl p(x: symbol, y: symbol)\n.output p(delimiter="::")\np("{}", "b").\n'
    assert_refused(run(tmp_path, program.format("a:")), "delimiter", 'write .output p(rfc4180=true, delimiter=",")')
    assert run(tmp_path, program.format(":a")).status == 0
    assert written(tmp_path) == {"p.csv": ":a::b\n"}


@pytest.mark.parametrize("out", ["p.dl", "p.dl/deeper", "new/" + "x" * 300, "/proc/nothing"])
def test_a_folder_that_cannot_be_written(tmp_path: Path, out: str) -> None:
    save(tmp_path, P + "p(1).\n")
    ended = vigilog(tmp_path, "run", "p.dl", "-D", out, "--engine", "embedded")
    assert_refused(ended, "error[unwritable]: ", "cannot be written")
    assert [path.name for path in tmp_path.iterdir()] == ["p.dl"]


@pytest.mark.parametrize(
    "filename",
    ["/", "x" * 250, "x" * 300, "a\x00b", "a/" + "x" * 300 + "/p.csv", "/proc/nothing/p.csv"],
    ids=lambda name: name[:12].replace("\x00", "NUL"),
)
def test_a_file_that_cannot_be_written(tmp_path: Path, filename: str) -> None:
    ended = run(tmp_path, f'.decl p(x: number)\n.output p(filename="{filename}")\np(1).\n')
    if ended.status == 0:
        assert written(tmp_path) == {filename: "1\n"}
    else:
        assert_refused(ended)
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("filename", [".", "sub", "sub/.", "sub/.."])
def test_a_folder_is_never_replaced_by_a_file(tmp_path: Path, filename: str) -> None:
    """The user's folder stands where a result should go: that is refused, and nothing in it is touched."""
    (tmp_path / "out" / "sub").mkdir(parents=True)
    (tmp_path / "out" / "sub" / "mine.txt").write_text("mine")
    (tmp_path / "out" / "keep.txt").write_text("keep")
    ended = run(tmp_path, f'.decl p(x: number)\n.output p(filename="{filename}")\np(1).\n')
    assert {name: text for name, text in written(tmp_path).items() if name.endswith(".txt")} == {"keep.txt": "keep", "sub/mine.txt": "mine"}
    assert_refused(ended, "cannot be written")


FAILURES = {
    "missing facts": (GRAPH, {}),
    "bad facts": (GRAPH, {"edge_facts": "a\tb\nb\n"}),
    "bad program": (GRAPH + "closure(x, y) :- edge(x, x).\n", {"edge_facts": "a\tb\n"}),
    "divergence": (GRAPH + ".decl n(x: number)\n.output n\nn(0).\nn(x + 1) :- n(x).\n", {"edge_facts": "a\tb\n"}),
    "second output": (GRAPH + '.decl z(s: symbol)\n.output z\nz("a\\nb").\n', {"edge_facts": "a\tb\n"}),
    "second place": (GRAPH + '.decl z(s: symbol)\n.output z(filename="closure.csv/z.csv")\nz("a").\n', {"edge_facts": "a\tb\n"}),
    "printed output": (GRAPH + '.decl z(s: symbol)\n.output z(IO=stdout)\nz("a\\nb").\n', {"edge_facts": "a\tb\n"}),
}


@pytest.mark.parametrize("before", [True, False], ids=["results before", "no results before"])
@pytest.mark.parametrize("name", FAILURES)
def test_a_run_that_fails_changes_nothing(tmp_path: Path, name: str, before: bool) -> None:
    program, files = FAILURES[name]
    if before:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "closure.csv").write_text("old\n")
    if name == "second place" and not before:
        return
    assert_refused(run(tmp_path, program, "--max-rounds", "20", **files))
    assert (tmp_path / "out").exists() == before
    assert written(tmp_path) == ({"closure.csv": "old\n"} if before else {})


# -- anything at all

GOLDEN = [case.program for case in cases()]
TOKENS = re.findall(
    r"\S+|\n",
    """. , ; : :- ( ) { } ! = != < <= > >= + - * / % ^ _ | <: bnot lnot band bor bxor bshl bshr bshru land lor lxor count sum min max mean true false
    number symbol unsigned float boolean date timestamp decimal decimal(5,2) .decl .type .input .output .printsize .comp .plan inline eqrel choice-domain
    p q r T x y z ?x IO delimiter filename 0 1 2 -1 7u 0xff 0b1 1.5 1e3 9223372036854775808 "a" "" "2026-11-16" "\\n" "( nil ord as range cat strlen
    substr to_number to_string to_float match contains @f $ [ ] # // /* */ ' \\ p(x,y) q(x) q(1). q(x): q(z), count:{ sum x:{""",
)
DECLARED = (
    ".decl p(x: number, y: symbol)\n.decl q(x: number)\n.decl r(x: float, y: date, z: decimal(5,2), b: boolean, u: unsigned)\n.output p\n"
)
WORDS = re.compile(r'"(?:[^"\\\n]|\\.)*"|\w+|\s+|.', re.DOTALL)


def survives(text: str) -> None:
    """Checks and rewrites a text. What passes is printed and read again, and evaluated for a moment."""
    try:
        program = check(text).program
        plain = rewrite(program)
    except VigilogError as refused:
        assert str(refused)
        return
    assert parse(show(parse(text))) == parse(text)
    assert set(rewrite(check(show(plain)).program).rules) == set(plain.rules)
    with suppress(VigilogError):
        evaluate(program, {}, "embedded", Watch(max_rounds=10, timeout=2))


@examples(200, HealthCheck.filter_too_much)
@given(st.text(max_size=200))
@example("\u00a0")
@example("p(1e99999999999999999999).")
@example(".decl p(x: decimal(5,2))\np(1e999999999).")
def test_any_text(text: str) -> None:
    survives(text)


@examples(250, HealthCheck.filter_too_much)
@given(st.booleans(), st.lists(st.sampled_from(TOKENS), max_size=40))
def test_any_tokens(declared: bool, tokens: list[str]) -> None:
    survives((DECLARED if declared else "") + " ".join(tokens))


@st.composite
def rules(draw: DrawFn) -> str:
    """A rule over `q(x: number)` and `p(x: number, y: symbol)` whose parts are of the right types, most of them grounded."""
    operators = st.sampled_from(["+", "-", "*", "/", "%", "band", "bshl"])
    comparisons = st.sampled_from(["=", "!=", "<", ">="])
    terms = st.recursive(
        st.sampled_from(["x", "x", "w", "z", "1", "2", "-1"]),
        lambda inner: st.one_of(
            st.tuples(inner, operators, inner).map(lambda part: f"({' '.join(part)})"),
            st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda part: f"{part[0]}({part[1]}, {part[2]})"),
            inner.map(lambda term: f"strlen(to_string({term}))"),
            inner.map(lambda term: f"count : {{ q({term}), p(z, y) }}"),
            inner.map(lambda term: f'count : {{ q(z), z < {term} ; p(z, "a") }}'),
            st.tuples(
                st.sampled_from(["sum", "min", "max"]), inner, st.sampled_from(["q(_)", "q(z)", "q(x)", "p(z, y)", "q(z), !p(z, y)"]), inner
            ).map(lambda part: f"{part[0]} {part[1]} : {{ {part[2]}, q({part[3]}) }}"),
            st.tuples(inner, st.sampled_from(["q(_)", "q(z), z != x", "true", "z = 2"])).map(
                lambda part: f"sum {part[0]} : {{ {part[1]} }}"
            ),
        ),
        max_leaves=4,
    )
    literals = st.recursive(
        st.one_of(
            terms.map(lambda term: f"q({term})"),
            terms.map(lambda term: f"p({term}, y)"),
            st.tuples(terms, comparisons, terms).map(" ".join),
            terms.map(lambda term: f'contains("1", to_string({term}))'),
        ),
        lambda inner: st.one_of(
            inner.map(lambda part: f"!({part})"),
            st.tuples(inner, st.sampled_from([", ", " ; "]), inner).map(lambda part: f"({''.join(part)})"),
        ),
        max_leaves=4,
    )
    body = ["q(x)", "p(w, y)", *draw(st.lists(literals, min_size=1, max_size=2))]
    return f"s({draw(terms)}) :- {', '.join(draw(st.permutations(body)))}."


@examples(100, HealthCheck.filter_too_much)
@given(rules())
@example("s(n) :- q(x), n = sum x : { q(_) }.")
@example("s(n) :- q(x), n = sum m : { m = max x : { q(_) } }.")
@example("s(n) :- n = count : { true }.")
def test_any_rule(rule: str) -> None:
    """What is not refused means to the embedded executor what it means to the reference."""
    text = '.decl p(x: number, y: symbol)\n.decl q(x: number)\n.decl s(x: number)\n.output s\nq(1). q(2). p(1, "a"). p(2, "").\n' + rule
    survives(text)
    with suppress(VigilogError):
        program = check(text).program
        rewrite(program)
        assert evaluate(program)["s"] == set(reference.evaluate(program, {})["s"])


@st.composite
def mutated(draw: DrawFn) -> str:
    """A golden program with some of its words left out, doubled, moved, or replaced."""
    words = WORDS.findall(draw(st.sampled_from(GOLDEN)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(words) - 1))
        match draw(st.sampled_from(["drop", "double", "swap", "token", "character", "cut", "other"])):
            case "drop":
                del words[at]
            case "double":
                words.insert(at, words[at])
            case "swap":
                to = draw(st.integers(0, len(words) - 1))
                words[at], words[to] = words[to], words[at]
            case "token":
                words[at] = f" {draw(st.sampled_from(TOKENS))} "
            case "character":
                words.insert(at, draw(st.characters()))
            case "cut":
                words = words[: at + 1]
            case "other":
                words[at] = draw(st.sampled_from(words))
            case unknown:
                raise AssertionError(unknown)
        if not words:
            return ""
    return "".join(words)


@examples(250, HealthCheck.filter_too_much)
@given(mutated())
def test_any_change_of_a_good_program(text: str) -> None:
    survives(text)
