"""Reading and writing through Spark. All in one session."""

from __future__ import annotations

import csv
import datetime
import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest

from vigilog import reference
from vigilog.core.arrow import to_arrow
from vigilog.core.errors import DataError
from vigilog.core.values import Row, row_text, whole
from vigilog.engine.evaluate import run, start
from vigilog.engine.places import inputs, outputs
from vigilog.executors.choose import choose
from vigilog.executors.spark import machine
from vigilog.executors.watch import Watch
from vigilog.language.check import check
from vigilog.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UTC = datetime.UTC
DATABASE = "vigilog_test"
COLUMNS = "s: symbol, n: number, u: unsigned, f: float, b: boolean, d: date, t: timestamp, c: decimal(10,2)"
TYPES = check(f".decl r({COLUMNS})\n.output r\n").program.relations["r"].types
ROWS: list[Row] = [
    ("ü 😀", -(2**63), 2**64 - 1, 1e-7, True, datetime.date(1, 1, 1), datetime.datetime(1, 1, 1, 0, 0, 0, 1, UTC), Decimal("12345678.90")),
    ("", 2**63 - 1, 0, 1.7976931348623157e308, False, datetime.date(9999, 12, 31), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, UTC), Decimal("-0.01")),
    (" a,b ", 0, 1, 0.1, False, datetime.date(2026, 11, 16), datetime.datetime(2026, 11, 16, 8, 30, tzinfo=UTC), Decimal("0.00")),
]  # fmt: skip
QUOTED: list[Row] = [(f'"{row[0]}"\ttab\n\r\nnew lines', *row[1:]) for row in ROWS]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session of the whole test run, with a database whose tables are in a temporary folder."""
    found = session()
    found.sql(f"CREATE DATABASE {DATABASE} LOCATION 'file://{tmp_path_factory.mktemp('warehouse')}'")
    yield found
    found.sql(f"DROP DATABASE {DATABASE} CASCADE")


def derive(text: str, folder: Path, engine: str, watch: Watch | None = None) -> dict[str, list[Row]]:
    """The output relations of a program whose input is in a folder."""
    program = check(text).program
    with closing(start(program, inputs(program, folder), engine, program.outputs, watch or Watch())) as evaluation:
        return {name: list(evaluation.rows(name)) for name in program.outputs}


def refused(text: str, folder: Path, engine: str) -> tuple[str, str]:
    """The code and the text of the error that a program's input gives."""
    with pytest.raises(DataError) as caught:
        derive(text, folder, engine)
    return caught.value.code, str(caught.value)


def reading(columns: str, options: str = "", name: str = "r") -> str:
    return f".decl {name}({columns})\n.input {name}({options})\n.output {name}\n"


# -- every type in every format


def write_text(path: Path, rows: Sequence[Row], delimiter: str = "\t", end: str = "\n", header: str = "") -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(header + "".join(delimiter.join(row_text(TYPES, row)) + end for row in rows), encoding="utf-8", newline="")


def write_csv(path: Path, rows: Sequence[Row], delimiter: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\r\n")
        writer.writerow("snufbdtc")
        writer.writerows(row_text(TYPES, row) for row in rows)


def write_json(path: Path, rows: Sequence[Row]) -> None:
    records = [{name: type_.to_json(cell) for name, type_, cell in zip("snufbdtc", TYPES, row, strict=True)} for row in rows]
    path.write_text("".join(json.dumps(record) + "\n\n" for record in records), encoding="utf-8")


SOURCES = {
    "plain": ("", ROWS),
    "folder": ('filename="folder"', ROWS),
    "windows": ("headers=true", ROWS),
    "long": ('delimiter="<=>"', ROWS),
    "foreign": ('delimiter="→", headers=true', ROWS),
    "sheet": ("IO=csv", QUOTED),
    "semicolons": ('IO=csv, delimiter=";", filename="semicolons.txt"', QUOTED),
    "records": ("IO=json", QUOTED),
    "columnar": ("IO=parquet", QUOTED),
    "striped": ("IO=orc", [row for row in QUOTED if row[5] != datetime.date(1, 1, 1)]),
    "stored": (f'IO=table, name="{DATABASE}.stored"', QUOTED),
}


def write_sources(spark: SparkSession, folder: Path) -> None:
    write_text(folder / "plain.facts", ROWS)
    write_text(folder / "folder" / "1.txt", ROWS[:1])
    write_text(folder / "folder" / "2.txt", ROWS[1:])
    write_text(folder / "folder" / "_ignored.txt", QUOTED)
    write_text(folder / "windows.facts", ROWS, end="\r\n", header="\ufeff" + "\t".join("SNUFBDTC") + "\r\n")
    write_text(folder / "long.facts", ROWS, "<=>")
    write_text(folder / "foreign.facts", ROWS, "→", header="→".join("snufbdtc") + "\n")
    write_csv(folder / "sheet.csv", QUOTED, ",")
    write_csv(folder / "semicolons.txt", QUOTED, ";")
    write_json(folder / "records.jsonl", QUOTED)
    table = to_arrow("snufbdtc", TYPES, QUOTED)
    pyarrow.parquet.write_table(table, folder / "columnar.parquet")
    pyarrow.orc.write_table(table.slice(1), folder / "striped.orc")
    spark.createDataFrame(table).write.saveAsTable(f"{DATABASE}.stored")


def test_every_type_from_every_source(spark: SparkSession, tmp_path: Path) -> None:
    write_sources(spark, tmp_path)
    text = "".join(reading(COLUMNS, options, name) for name, (options, _) in SOURCES.items())
    text += f".decl joined({COLUMNS})\n.output joined\njoined(s, n, u, f, b, d, t, c) :- plain(s, n, u, f, b, d, t, c), records(_, n, u, f, b, d, t, c), columnar(_, n, u, f, b, d, t, c).\n"
    program = check(text).program
    expected = {
        name: sorted(rows) for name, rows in reference.evaluate(program, {name: rows for name, (_, rows) in SOURCES.items()}).items()
    }
    assert expected["joined"] == sorted(ROWS)
    assert derive(text, tmp_path, "spark") == expected
    assert derive(text, tmp_path, "embedded") == expected


def test_hexadecimal_and_binary_numbers(spark: SparkSession, tmp_path: Path) -> None:
    texts = [
        "0xcafe",
        "0xCAFE",
        "0X1F",
        "0b100",
        "0B1",
        "0x0",
        "0b0",
        "0x0000000000000000000ff",
        "0b" + "1" * 63,
        "007",
        "0x7fffffffffffffff",
    ]
    unsigned = [*texts, "0b" + "1" * 64, "0xffffffffffffffff"]
    signed = [*texts, *(f"-{text}" for text in texts), "-0x8000000000000000"]
    (tmp_path / "n.facts").write_text("".join(f"{text}\n" for text in signed))
    (tmp_path / "u.csv").write_text("".join(f'"{text}"\n' for text in unsigned))
    text = reading("x: number", name="n") + reading("x: unsigned", "IO=csv, headers=false", "u")
    expected = {name: sorted({(whole(text),) for text in given}) for name, given in (("n", signed), ("u", unsigned))}
    assert derive(text, tmp_path, "embedded") == expected
    assert derive(text, tmp_path, "spark") == expected


SINKS = {
    "plain": "",
    "headed": 'headers=true, delimiter="→"',
    "sheet": "IO=csv",
    "quoted": "rfc4180=true",
    "records": "IO=json",
    "columnar": "IO=parquet",
    "striped": "IO=orc",
    "stored": "IO=table",
}


@pytest.mark.parametrize(("engine", "few"), [("spark", 0), ("spark", machine.SMALL_ROWS), ("embedded", 0)], ids=["many", "few", "embedded"])
def test_what_is_written_reads_back(engine: str, few: int, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "SMALL_ROWS", few)
    write_text(tmp_path / "given.facts", ROWS)
    pyarrow.parquet.write_table(to_arrow("snufbdtc", TYPES, QUOTED), tmp_path / "given_quoted.parquet")
    writing = f".decl given, given_quoted({COLUMNS})\n.input given\n.input given_quoted(IO=parquet)\n"
    back = ""
    for name, options in SINKS.items():
        table = f', name="{DATABASE}.{engine}_{name}"' if name == "stored" else ""
        source = "given" if name in ("plain", "headed") else "given_quoted"
        writing += f".decl {name}({COLUMNS})\n.output {name}({options}{table})\n{name}(s, n, u, f, b, d, t, c) :- {source}(s, n, u, f, b, d, t, c).\n"
        back += reading(COLUMNS, options + table or 'filename="plain.csv"', name)
    back = back.replace('headers=true, delimiter="→"', 'headers=true, delimiter="→", filename="headed.csv"')
    back = back.replace("rfc4180=true", 'rfc4180=true, filename="quoted.csv"')
    finished = run(check(writing).program, tmp_path, tmp_path / "out", engine, Watch())
    assert finished.stats.engine == engine
    plain = {name for name, options in SINKS.items() if name in ("plain", "headed")}
    expected = {name: sorted(ROWS if name in plain else QUOTED) for name in SINKS}
    assert derive(back, tmp_path / "out", "spark" if engine == "embedded" else "embedded") == expected
    lines = (tmp_path / "out" / "headed.csv").read_text(encoding="utf-8").split("\n")
    assert lines == ["→".join("snufbdtc"), *("→".join(row_text(TYPES, row)) for row in sorted(ROWS)), ""]
    hidden = [path.name for path in (tmp_path / "out").iterdir() if path.name.startswith(".")]
    assert hidden == []


@pytest.mark.parametrize(("column", "value"), [("date", "1582-10-05"), ("timestamp", "1582-10-14T23:59:59Z")])
def test_days_that_orc_does_not_have(column: str, value: str, spark: SparkSession, tmp_path: Path) -> None:
    """It would silently write others."""
    program = f".decl d(x: {column})\n.output d(IO=orc)\n"
    for engine in ("spark", "embedded"):
        with pytest.raises(DataError, match=r"d\.orc: d has a day .* 1582-10-05 to 1582-10-14; IO=parquet has them"):
            run(check(f'{program}d("{value}").').program, tmp_path, tmp_path / "out", engine, Watch())
        assert not (tmp_path / "out").exists()
    kept = {"date": ["1582-10-04", "1582-10-15"], "timestamp": ["1582-10-04T23:59:59.000000Z", "1582-10-15T00:00:00.000000Z"]}[column]
    run(check(program + "".join(f'd("{day}").' for day in kept)).program, tmp_path, tmp_path / "out", "spark", Watch())
    back = derive(f".decl d(x: {column})\n.input d(IO=orc)\n.output d\n", tmp_path / "out", "spark")
    assert [row_text(check(program).program.relations["d"].types, row)[0] for row in back["d"]] == kept


def test_text_is_the_same_whoever_writes_it(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow.parquet.write_table(to_arrow("snufbdtc", TYPES, QUOTED), tmp_path / "r.parquet")
    program = f".decl r({COLUMNS})\n.input r(IO=parquet)\n"
    for name, options in {"records": "IO=json", "quoted": "rfc4180=true", "headed": "IO=csv"}.items():
        program += f".decl {name}({COLUMNS})\n.output {name}({options})\n{name}(s, n, u, f, b, d, t, c) :- r(s, n, u, f, b, d, t, c).\n"
    texts = []
    for engine, few in (("embedded", 0), ("spark", 0), ("spark", machine.SMALL_ROWS)):
        monkeypatch.setattr(machine, "SMALL_ROWS", few)
        run(check(program).program, tmp_path, tmp_path / "out", engine, Watch())
        texts.append({path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()})
    assert len(texts[0]) == 3 and texts[0] == texts[1] == texts[2]


def test_text_at_a_uri_is_a_folder_that_reads_back(spark: SparkSession, tmp_path: Path) -> None:
    facts = 'r("a", 1). r("b, c", -2). r("", 3).\n'
    places = [
        f'IO=csv, filename="{(tmp_path / "csv").as_uri()}"',
        f'filename="{(tmp_path / "text").as_uri()}"',
        f'IO=json, filename="{(tmp_path / "json").as_uri()}"',
    ]
    for place in places:
        written = check(f".decl r(x: symbol, y: number)\n.output r({place})\n{facts}").program
        run(written, tmp_path, tmp_path / "out", "spark", Watch())
        assert derive(reading("x: symbol, y: number", place), tmp_path, "spark") == {"r": [("", 3), ("a", 1), ("b, c", -2)]}
    moved = tmp_path / "moved"
    moved.mkdir()
    (moved / "1.csv").write_text('\n"y","x"\n1,a\n')
    (moved / "2.csv").write_text("y,x\n2,b\n")
    for options in ("IO=csv", 'headers=true, delimiter=","'):
        text = reading("x: symbol, y: number", f'{options}, filename="{moved.as_uri()}"')
        assert derive(text, tmp_path, "spark") == {"r": [("a", 1), ("b", 2)]}
        (moved / "1.csv").write_text("y,x\n1,a\n")
    broken = check(f'.decl r(x: symbol, y: number)\n.output r({places[1]})\nr("a\\tb", 1).\n').program
    with pytest.raises(DataError, match="a symbol of r holds the delimiter"):
        run(broken, tmp_path, tmp_path / "out", "spark", Watch())


@pytest.mark.parametrize("engine", ["spark", "embedded"])
@pytest.mark.parametrize("options", ["", "IO=csv", "IO=json", "IO=parquet", "headers=true"])
def test_relations_without_columns(options: str, engine: str, spark: SparkSession, tmp_path: Path) -> None:
    program = check(f".decl yes, no()\n.output yes({options})\n.output no({options})\nyes().\nno() :- yes(), 1 = 2.\n").program
    run(program, tmp_path, tmp_path / "out", engine, Watch())
    files = {place.relation: place.path.name for place in outputs(program, tmp_path / "out")}
    comma = ", " if options else ""
    text = "".join(f'.decl {name}()\n.input {name}({options}{comma}filename="{file}")\n.output {name}\n' for name, file in files.items())
    assert derive(text, tmp_path / "out", "spark") == {"yes": [()], "no": []}
    assert derive(text, tmp_path / "out", "embedded") == {"yes": [()], "no": []}


# -- the choice of an executor


def test_choice(spark: SparkSession, tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pa.table({"x": [1, 2]}), tmp_path / "r.parquet")
    (tmp_path / "r.facts").write_text("1\n2\n")
    reasons = {
        "": ("embedded", "the input is small text: 0.0 MiB"),
        "IO=parquet": ("spark", "r is read from parquet, which Spark reads"),
        "IO=table": ("spark", "r is read from a table, which Spark reads"),
        'filename="s3://bucket/r"': ("spark", "r is read from s3://bucket/r, which Spark reads"),
    }
    for options, expected in reasons.items():
        program = check(reading("x: number", options)).program
        chosen = choose("auto", inputs(program, tmp_path).values(), outputs(program, tmp_path))
        assert (chosen.engine, chosen.reason) == expected
    for options, engine in (("", "embedded"), ("IO=parquet", "spark")):
        finished = run(check(reading("x: number", options)).program, tmp_path, tmp_path / "out", "auto", Watch())
        assert (finished.stats.engine, finished.chosen.engine, finished.chosen.reason) == (engine, *reasons[options])
        assert (tmp_path / "out" / "r.csv").read_text() == "1\n2\n"


# -- bad input

TWO = "x: symbol, y: number"
BAD_TEXT: dict[str, tuple[str, str, bytes, str]] = {
    "too-few-columns": (TWO, "", b"a\t1\nb\n", "F:2: has 1 column, but r has 2 (x, y); columns are separated by a tab"),
    "too-many-columns": (TWO, "", b"a\t1\t\n", "F:1: has 3 columns, but r has 2 (x, y)"),
    "skip-is-for-nulls": (TWO, "nulls=skip", b"a\n", "F:1: has 1 column, but r has 2 (x, y); columns are separated by a tab"),
    "empty-line-after-headers": (TWO, "headers=true", b"x\ty\n\na\t1\n", "F:2: has 1 column, but r has 2 (x, y); columns are separated by a tab"),
    "letter": (TWO, "", b"a\t1\nb\tx\n", "F:2: column y of r: x is not a number"),
    "number-out-of-range": (TWO, "", b"a\t9223372036854775808\n", "F:1: column y of r: 9223372036854775808 is not a number"),
    "number-out-of-range-in-hexadecimal": (TWO, "", b"a\t0x8000000000000000\n", "F:1: column y of r: 0x8000000000000000 is not a number"),
    "number-out-of-range-below": (TWO, "", b"a\t-0x8000000000000000\nb\t-0x8000000000000001\n", "F:2: column y of r: -0x8000000000000001 is not a"),
    "unsigned-with-too-many-bits": ("x: unsigned", "", b"0b" + b"1" * 64 + b"\n0x0ffffffffffffffff\n0x10000000000000000\n", "F:3: column x of r: 0x10000000000000000"),
    "binary-digits": (TWO, "", b"a\t0b12\n", "F:1: column y of r: 0b12 is not a number"),
    "unsigned-out-of-range": ("x: unsigned", "", b"18446744073709551616\n", "F:1: column x of r: 18446744073709551616 is not a"),
    "float-out-of-range": ("x: float", "", b"1.5\n1e400\n", "F:2: column x of r: 1e400 is not a float"),
    "no-day": ("x: date", "", b"2023-02-29\n", "F:1: column x of r: 2023-02-29 is not a date"),
    "no-moment": ("x: timestamp", "", b"2026-11-16T24:00:00Z\n", "F:1: column x of r: '2026-11-16T24:00:00Z' is not a timestamp"),
    "decimal-digits": ("x: decimal(6,2)", "", b"1.234\n", "F:1: column x of r: 1.234 is not a decimal(6,2)"),
    "invalid-utf8": (TWO, "", b"a\t1\n\xff\t2\n", "F:2: is not UTF-8 text (byte 0xff)"),
    "nul": (TWO, "", b"a\0\t1\n", "F:1: column x of r: \"a\\u0000\" is not a symbol"),
    "csv-other-header": (TWO, "IO=csv", b"x,z\na,1\n", "F:1: names the columns x, z, but r has x, y"),
    "other-header": (TWO, "headers=true", b"x,y\na\t1\n", "F:1: names the columns x,y, but r has x, y; columns are separated by a tab"),
    "csv-bad-header": (TWO, "IO=csv", b'"x",y"\na,1\n', "F:1: names the columns x, y\", but r has x, y"),
    "csv-moved-letter": (TWO, "IO=csv", b"y,x\n1,a\nx,a\n", "F:3: column y of r: x is not a number"),
    "csv-spaces": (TWO, "IO=csv", b"x,y\n \na,1\n", "F:2: has 1 column, but r has 2 (x, y)"),
    "returns": (TWO, "", b"a\t1\rb\t2\r", "F:1: its lines end in CR alone; they must end in LF or CR LF"),
    "csv-returns": (TWO, "IO=csv", b"x,y\ra,1\r", "F:1: its lines end in CR alone; they must end in LF or CR LF"),
    "json-returns": (TWO, "IO=json", b'{"x": "a", "y": 1}\r{"x": "b", "y": 2}\r', "F:1: its lines end in CR alone; they must end in LF or CR LF"),
    "far-zone": ("x: timestamp", "", b"2026-11-16T08:30:00+18:00\n2026-11-16T08:30:00+18:01\n", "F:2: column x of r: '2026-11-16T08:30:00+18:01' is not a timestamp"),
    "no-minutes": ("x: timestamp", "", b"2026-11-16T08:30:00-02:60\n", "F:1: column x of r: '2026-11-16T08:30:00-02:60' is not a timestamp"),
    "csv-columns": (TWO, "IO=csv", b"x,y\na,1,2\n", "F:2: has 3 columns, but r has 2 (x, y)"),
    "csv-open-quote": (TWO, "IO=csv", b'x,y\n"a,1\n', "F:2: a quote before this is never closed"),
    "csv-open-quote-to-the-end": ("x: number, y: symbol", "IO=csv", b'x,y\n1,b\n2,"a\n3,c\n', "F:4: a quote before this is never closed"),
    "csv-text-after-quote": (TWO, "IO=csv", b'x,y\n"a"b,1\n', "F:2: ',' expected after '\"'"),
    "csv-invalid-utf8": (TWO, "IO=csv", b"x,y\n\xff,1\n", "F:2: is not UTF-8 text (byte 0xff)"),
    "csv-letter": (TWO, "IO=csv", b'x,y\n"a\nb",1\na,x\n', "F:4: column y of r: x is not a number"),
    "json-null": (TWO, "IO=json", b'{"x": "a", "y": null}\n', "F:1: column y of r is null; there are no nulls"),
    "json-missing": (TWO, "IO=json", b'{"y": 1}\n', "F:1: has no key x for r"),
    "json-broken": (TWO, "IO=json, nulls=skip", b'{"x": "a", "y": 1}\n{"x"\n', "F:2: is not JSON"),
    "json-two-on-a-line": (TWO, "IO=json", b'{"x": "a", "y": 1} {"x": "b", "y": 2}\n', "F:1: is not JSON: Extra data"),
    "json-no-object": (TWO, "IO=json, nulls=skip", b"[1]\n", "F:1: a line holds an object with the columns as keys"),
    "json-text-for-number": (TWO, "IO=json", b'{"x": "a", "y": "1"}\n', "F:1: column y of r: \"1\" is not a number"),
    "json-fraction-for-number": (TWO, "IO=json", b'{"x": "a", "y": 1.0}\n', "F:1: column y of r: 1.0 is not a number"),
    "json-number-for-text": (TWO, "IO=json", b'{"x": 1, "y": 1}\n', "F:1: column x of r: 1 is not a symbol"),
    "json-invalid-utf8": (TWO, "IO=json", b'{"x": "\xff", "y": 1}\n', "F:1: is not UTF-8 text (byte 0xff)"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_TEXT)
def test_bad_text_gives_the_same_error_on_both_executors(name: str, spark: SparkSession, tmp_path: Path) -> None:
    columns, options, data, message = BAD_TEXT[name]
    text = reading(columns, options)
    file = inputs(check(text).program, tmp_path)["r"].path
    file.write_bytes(data)
    expected = refused(text, tmp_path, "embedded")
    assert message.replace("F:", f"{file}:", 1) in expected[1]
    assert refused(text, tmp_path, "spark") == expected


@pytest.mark.parametrize("options", ["", "IO=csv", "IO=json", "IO=parquet", "IO=orc"])
def test_missing_file(options: str, spark: SparkSession, tmp_path: Path) -> None:
    text = reading("x: number", options)
    file = inputs(check(text).program, tmp_path)["r"].path
    expected = ("unreadable", f"{file}: cannot be read for r: No such file or directory")
    assert refused(text, tmp_path, "spark") == refused(text, tmp_path, "embedded") == expected


def strings(*cells: bytes) -> pa.Array:
    """Text that need not be UTF-8."""
    return pa.Array.from_buffers(pa.string(), len(cells), pa.array(cells).buffers())


BAD_COLUMNS: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "null": (TWO, {"x": ["a", None], "y": [1, 2]}, "null", "F, row 2: column x of r is null; there are no nulls (options of .input: optional=\"x: symbol\" makes a relation r_x of the column"),
    "nan": ("x: float", {"x": [1.0, 2.0, float("nan")]}, "value", "F, row 3: column x of r: NaN is not a float: "),
    "infinity": ("x: float", {"x": [float("-inf")]}, "value", "F, row 1: column x of r: -Infinity is not a float: "),
    "type": (TWO, {"x": ["a"], "y": ["1"]}, "type", "F: column y of r is a number, but the source has a string there"),
    "fractions": (TWO, {"x": ["a"], "y": [1.0]}, "type", "F: column y of r is a number, but the source has a double there"),
    "column": (TWO, {"x": ["a"], "z": [1]}, "columns", "F: has no column y for r; its columns are x, z"),
    "number-out-of-range": ("x: number", {"x": pa.array([0, 2**64 - 1], pa.uint64())}, "value", "F, row 2: column x of r: 18446744073709551615 is not a number: "),
    "unsigned-out-of-range": ("x: unsigned", {"x": [-1]}, "value", "F, row 1: column x of r: -1 is not a"),
    "date-out-of-range": ("x: date", {"x": pa.array([3_000_000], pa.date32())}, "value", "F, row 1: column x of r: +10183-09-21 is not a date: "),
    "decimal-digits": ("x: decimal(6,2)", {"x": [Decimal("1.255")]}, "value", "F, row 1: column x of r: 1.255 is not a decimal(6,2): "),
    "invalid-utf8": ("x: symbol", {"x": strings(b"a", b"\xff")}, "value", "F, row 2: column x of r: � is not a symbol: "),
    "nul": ("x: symbol", {"x": ["a\0b"]}, "value", "F, row 1: column x of r: \"a\\u0000b\" is not a symbol: "),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_COLUMNS)
def test_bad_parquet_is_told_with_file_and_row(name: str, spark: SparkSession, tmp_path: Path) -> None:
    columns, cells, code, message = BAD_COLUMNS[name]
    file = tmp_path / "a [b] %20.parquet"
    pyarrow.parquet.write_table(pa.table(cells), file)
    text = reading(columns, f'IO=parquet, filename="{file.name}"')
    said = refused(text, tmp_path, "spark")
    assert said[0] == code
    assert said[1].startswith(message.replace("F", str(file), 1))
    if name in ("null", "type"):
        assert refused(text, tmp_path, "embedded") == said


@pytest.mark.parametrize("engine", ["spark", "embedded"])
def test_what_is_no_parquet(engine: str, spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "r.parquet"
    for data, reason in ((b"no Parquet, but long enough", "Could not read footer."), (b"", "Unable to infer schema for Parquet.")):
        file.write_bytes(data)
        code, message = refused(reading("x: number", "IO=parquet"), tmp_path, engine)
        assert code == "unreadable"
        assert message.startswith(f"{file}: cannot be read for r: [") and reason in message and "SQLSTATE" not in message
    code, message = refused(reading("x: number", f'IO=table, name="{DATABASE}.nothing"'), tmp_path, engine)
    assert message.startswith(f"{DATABASE}.nothing: cannot be read for r: [TABLE_OR_VIEW_NOT_FOUND] ")


def test_a_damaged_file_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "r.parquet"
    pyarrow.parquet.write_table(pa.table({"x": list(range(10_000))}), file)
    data = bytearray(file.read_bytes())
    data[100:2000] = b"\xee" * 1900
    file.write_bytes(data)
    for engine in ("spark", "embedded"):
        assert str(file) in refused(reading("x: number", "IO=parquet"), tmp_path, engine)[1]


def test_nulls_are_skipped(spark: SparkSession, tmp_path: Path) -> None:
    cells = {"x": ["a", None, "c"], "y": [1, 2, None]}
    pyarrow.parquet.write_table(pa.table(cells), tmp_path / "p.parquet")
    pyarrow.orc.write_table(pa.table(cells), tmp_path / "o.orc")
    (tmp_path / "j.jsonl").write_text('{"x": "a", "y": 1}\n{"x": null, "y": 2}\n{"x": "c"}\n')
    text = reading(TWO, "IO=parquet, nulls=skip", "p") + reading(TWO, "IO=orc, nulls=skip", "o") + reading(TWO, "IO=json, nulls=skip", "j")
    expected = {name: [("a", 1)] for name in "poj"}
    assert derive(text, tmp_path, "spark") == expected
    assert derive(text, tmp_path, "embedded") == expected
    pyarrow.parquet.write_table(pa.table({"x": [None, 1.0, float("nan")]}), tmp_path / "r.parquet")
    code, message = refused(reading("x: float", "IO=parquet, nulls=skip"), tmp_path, "spark")
    assert (code, message.split(" is not")[0]) == ("value", f"{tmp_path}/r.parquet, row 3: column x of r: NaN")


# -- odd but good input


def test_odd_files(spark: SparkSession, tmp_path: Path) -> None:
    odd = tmp_path / "a folder [1] {2} * ? %20 ü"
    odd.mkdir()
    (odd / "_hidden.facts").write_text("hidden\t1\n")
    (odd / "a b [c].facts").write_text("spaces\t1\n")
    pyarrow.parquet.write_table(pa.table({"x": ["columnar"], "Y": [1]}), odd / "_p.parquet")
    (odd / "lines.facts").write_bytes(b"\xef\xbb\xbfbom\t1\r\nno line end\t2")
    (odd / "return.facts").write_bytes(b"x\ty\nc\rd\t1\n")
    (odd / "moved.facts").write_bytes(b"\xef\xbb\xbfY\tX\r\n1\ta\r\n")
    (odd / "moved.csv").write_bytes(b'y,x\n1,"a\r"\n2,b\n')
    (odd / "moved_too.csv").write_bytes(b'\xef\xbb\xbf"y","x"\r\n1,a\r\n2,b\r\n')
    (odd / "blank.csv").write_bytes(b"\n\nx,y\n\na,1\n\r\n\n")
    (odd / "one.csv").write_bytes(b'a\r\n\r\n""\r\n')
    (odd / "nothing.csv").write_bytes(b"\n()\n\n")
    (odd / "mixed").mkdir()
    (odd / "mixed" / "1 [a].csv").write_bytes(b"x,y\na,1\n")
    (odd / "mixed" / "2.csv").write_bytes(b"y,x\n2,b\n")
    (odd / "mixed" / "3.csv").touch()
    (odd / "bom.csv").write_bytes(b"\xef\xbb\xbfbom,1\n")
    (odd / "twice.jsonl").write_text('{"x": "a", "x": "b", "y": 1, "z": [2]}\n \t\n')
    for name in ("none.facts", "headed.facts", "none.csv", "none.jsonl"):
        (odd / name).touch()
    sources = {
        "hidden": ('filename="_hidden.facts"', [("hidden", 1)]),
        "spaces": ('filename="a b [c].facts"', [("spaces", 1)]),
        "columnar": ('IO=parquet, filename="_p.parquet"', [("columnar", 1)]),
        "lines": ("", [("bom", 1), ("no line end", 2)]),
        "return": ("headers=true", [("c\rd", 1)]),
        "moved": ("headers=true", [("a", 1)]),
        "moved_csv": ('IO=csv, filename="moved.csv"', [("a\r", 1), ("b", 2)]),
        "moved_too": ("IO=csv", [("a", 1), ("b", 2)]),
        "mixed": ('IO=csv, filename="mixed"', [("a", 1), ("b", 2)]),
        "blank": ("IO=csv", [("a", 1)]),
        "bom": ("IO=csv, headers=false", [("bom", 1)]),
        "twice": ("IO=json", [("b", 1)]),
        "none": ("", []),
        "headed": ("headers=true", []),
        "none_csv": ('IO=csv, filename="none.csv"', []),
        "none_json": ('IO=json, filename="none.jsonl"', []),
    }
    text = "".join(reading(TWO, options, name) for name, (options, _) in sources.items())
    text += reading("x: symbol", "IO=csv, headers=false", "one") + reading("", "IO=csv, headers=false", "nothing")
    expected: dict[str, list[Row]] = {name: list(rows) for name, (_, rows) in sources.items()}
    expected |= {"one": [("",), ("a",)], "nothing": [()]}
    assert derive(text, odd, "spark") == expected
    assert derive(text, odd, "embedded") == expected


def test_columns_that_differ_in_case_only(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "r.facts").write_text("a\t1\n")
    text = ".decl r(x: symbol, X: number)\n.input r\n.output r(IO=json)\n.decl q(y: symbol, Y: number)\n.output q(IO=csv)\nq(x, y) :- r(x, y).\n"
    run(check(text).program, tmp_path, tmp_path / "out", "spark", Watch())
    assert json.loads((tmp_path / "out" / "r.jsonl").read_text()) == {"x": "a", "X": 1}
    assert (tmp_path / "out" / "q.csv").read_text() == "y,Y\na,1\n"
    with pytest.raises(DataError, match=r"cannot be written: \[COLUMN_ALREADY_EXISTS\]"):
        run(check(text.replace("IO=csv", "IO=parquet")).program, tmp_path, tmp_path / "out", "spark", Watch())


# -- output that cannot be

UNWRITABLE = {
    "tab": ('"a\\tb", 1', ""),
    "line-break": ('"a\\nb", 1', 'delimiter=","'),
    "return": ('"a\\r", 1', ""),
    "minus": ('"a", -1', 'delimiter="-"'),
}


@pytest.mark.parametrize("name", UNWRITABLE)
def test_a_line_that_would_not_read_back_is_refused(name: str, spark: SparkSession, tmp_path: Path) -> None:
    row, options = UNWRITABLE[name]
    program = check(f".decl r(x: symbol, y: number)\n.output r({options})\nr({row}).\n.decl a(x: number)\n.output a\na(1).\n").program
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.csv").write_text("old\n")
    said = []
    for engine in ("embedded", "spark"):
        with pytest.raises(DataError, match=r"out/r\.csv: a symbol of r holds the delimiter or a line break") as caught:
            run(program, tmp_path, out, engine, Watch())
        said.append(str(caught.value))
        assert {path.name: path.read_text() for path in out.iterdir()} == {"a.csv": "old\n"}
    assert said[0] == said[1]


def test_what_is_quoted_can_hold_anything(spark: SparkSession, tmp_path: Path) -> None:
    rows = [*(row for row, _ in UNWRITABLE.values()), '"\\"", 0', '"", 2']
    facts = "".join(f'r({row}, "a return: \\r"). ' for row in rows)
    program = check(f'.decl r(x: symbol, y: number, z: symbol)\n.output r(rfc4180=true, delimiter="-")\n{facts}\n').program
    for engine in ("embedded", "spark"):
        run(program, tmp_path, tmp_path / engine, engine, Watch())
    assert (tmp_path / "spark" / "r.csv").read_bytes() == (tmp_path / "embedded" / "r.csv").read_bytes()
    text = reading(f"{TWO}, z: symbol", 'rfc4180=true, delimiter="-", filename="r.csv"')
    read = derive(text, tmp_path / "spark", "spark")["r"]
    assert len(read) == len(rows) and all(row[2] == "a return: \r" for row in read)
    assert derive(text, tmp_path / "spark", "embedded") == {"r": read}
