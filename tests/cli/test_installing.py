"""What an installation without extras can do, what it says of the rest, and how soon the command line answers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from typer.main import get_command
from typer.testing import CliRunner

from tests.golden import GRAPH
from tests.installed import BASE, EXTRAS, ROOT, Installation
from vigilog.cli.main import app
from vigilog.core import extras

pytestmark = pytest.mark.apart

LARGE = {
    "sqlglot",
    "lark",
    "duckdb",
    "pyarrow",
    "pyspark",
    "pandas",
    "deltalake",
    "fastapi",
    "uvicorn",
    "httpx",
    "websockets",
    "msgspec",
    "rich",
}
WITHOUT_SPARK = 'Spark is not installed: pip install "vigilog[spark]"'


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """What `pip install .` installs."""
    return Installation(tmp_path_factory.mktemp("base") / "site", BASE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "graph.dl").write_text(GRAPH, encoding="utf-8")
    (tmp_path / "edge.facts").write_text("a\tb\nb\tc\n")
    (tmp_path / "edge.parquet").touch()
    return tmp_path


# -- the base


def test_all_files_beside_the_code_are_packed() -> None:
    """An editable installation has them all; a wheel has what the patterns name."""
    root = ROOT / "vigilog"
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["package-data"]["vigilog"]
    there = {path for path in root.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert there == {path for pattern in patterns for path in root.glob(pattern)}


def test_the_base_has_no_package_of_an_extra(base: Installation) -> None:
    listed = base.python("-c", "import pkgutil; print(*(module.name for module in pkgutil.iter_modules()))").stdout.split()
    assert {"vigilog", "sqlglot", "httpx"} <= {*listed}
    assert {
        "pyspark",
        "pyarrow",
        "pandas",
        "numpy",
        "deltalake",
        "duckdb",
        "fastapi",
        "uvicorn",
        "starlette",
        "prometheus_client",
    }.isdisjoint(listed)


def test_the_readme_runs_without_extras(base: Installation, tmp_path: Path) -> None:
    blocks = re.findall(r"```(\w*)\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "graph.dl").write_text(blocks[0][1], encoding="utf-8")
    code = next(text for kind, text in blocks if kind == "python").replace('engine="spark"', 'engine="embedded"')
    done = base.python("-c", code, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("[('a', 'd'), ('b', 'd')]\n{('a', 'b')}\n", "")


def test_a_data_folder_needs_no_extra_however_large_a_transaction_is(base: Installation, folder: Path) -> None:
    rows = [[str(number), str(number + 1)] for number in range(12_000)]
    (folder / "many.json").write_text(json.dumps({"insert": {"edge": rows}}), encoding="utf-8")
    program = ".decl edge(x: symbol, y: symbol)\n.decl back(x: symbol, y: symbol)\n.output back\nback(y, x) :- edge(x, y).\n"
    (folder / "back.dl").write_text(program, encoding="utf-8")
    assert base.vigilog("init", "back.dl", "--data", "data", cwd=folder)[0] == 0
    script = """
import json, vigilog
with vigilog.open(data="data") as db:
    db.apply(json.load(open("many.json")))
    db.apply({"delete": {"edge": [["0", "1"]]}})
    print(len(db.view("back")), len(db.view("back", at=1)), [len(delta.plus) for _, _, delta in db.changes(0)], db.troubles)
"""
    done = base.python("-c", script, cwd=folder)
    assert (done.stdout, done.stderr) == ("11999 12000 [12000, 0] []\n", "")
    status, out, err = base.vigilog("verify", "data", cwd=folder)
    assert (status, "0 problems" in out, err) == (0, True, "")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("run", "graph.dl", "--engine", "spark"), WITHOUT_SPARK),
        (("run", "parquet.dl"), f"edge is read from parquet, which Spark reads, but {WITHOUT_SPARK}"),
        (("run", "parquet.dl", "--engine", "embedded"), f"edge is read from edge.parquet, but {WITHOUT_SPARK}"),
        (("run", "written.dl", "-D", "out"), f"closure is written as orc, which Spark writes, but {WITHOUT_SPARK}"),
        (("run", "written.dl", "-D", "out", "--engine", "embedded"), f"closure is written as orc, but {WITHOUT_SPARK}"),
        (("load", "data", "edge", "edge.parquet"), f"edge is read from parquet, which Spark reads, but {WITHOUT_SPARK}"),
        (("load", "data", "edge", "edge.facts", "--op", "op"), f"rows with operations are read by Spark, but {WITHOUT_SPARK}"),
        (("compact", "data"), WITHOUT_SPARK),
        (("verify", "data", "--by", "spark"), WITHOUT_SPARK),
        (("serve", "--data", "data"), 'the server is not installed: pip install "vigilog[server]"'),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else "",
)
def test_what_needs_an_extra_says_how_to_install_it(base: Installation, folder: Path, arguments: tuple[str, ...], why: str) -> None:
    (folder / "parquet.dl").write_text(GRAPH.replace(".input edge", ".input edge(IO=parquet)"), encoding="utf-8")
    (folder / "written.dl").write_text(GRAPH.replace(".output closure", ".output closure(IO=orc)"), encoding="utf-8")
    if "data" in arguments:
        assert base.vigilog("init", "graph.dl", "--data", "data", "-F", ".", cwd=folder)[0] == 0
    assert base.vigilog(*arguments, cwd=folder) == (1, "", f"error[not-installed]: {why}\n")


def test_without_duckdb_sqlite_evaluates_and_that_is_said(base: Installation, folder: Path) -> None:
    status, out, err = base.vigilog("run", "graph.dl", "-D", "-", "--engine", "duckdb", cwd=folder)
    assert (status, out) == (0, base.vigilog("run", "graph.dl", "-D", "-", cwd=folder)[1])
    assert err == 'warning: engine duckdb was asked for, but DuckDB is not installed: pip install "vigilog[bulk]"; SQLite evaluates\n'


def test_what_needs_an_extra_in_python_says_so_too(base: Installation, folder: Path) -> None:
    script = """
import vigilog
def told(call):
    try:
        call()
    except vigilog.VigilogError as reason:
        print(reason)
db = vigilog.open("graph.dl", data="data")
told(lambda: vigilog.open("graph.dl", engine="spark"))
told(lambda: db.frame("closure"))
told(lambda: db.sink("closure", "parquet", "feed"))
told(lambda: db.sink("closure", "jdbc", "jdbc:postgresql://host/shop"))
db.close()
"""
    done = base.python("-c", script, cwd=folder)
    assert done.stdout.splitlines() == [
        WITHOUT_SPARK,
        WITHOUT_SPARK,
        'a change feed is of Parquet files, but Arrow is not installed: pip install "pyarrow"',
        f"a table of a database is written by Spark, but {WITHOUT_SPARK}",
    ]
    assert done.stderr == ""


def test_a_large_text_is_read_without_spark_where_there_is_none(base: Installation, folder: Path) -> None:
    script = """
from vigilog.engine.places import inputs
from vigilog.executors.choose import choose
from vigilog.language.check import check
print(choose("auto", inputs(check(open("graph.dl").read()).program, ".").values(), large=1))
"""
    assert (
        "engine='embedded', reason='the input is large: 0 MiB, but Spark is not installed'" in base.python("-c", script, cwd=folder).stdout
    )


@pytest.mark.parametrize("extra", ["spark", "server", "bulk", "iceberg", "mediators"])
def test_what_an_extra_checks_is_what_it_installs(extra: str) -> None:
    installed = {Requirement(text).name for text in EXTRAS[extra]}
    checked = [one for one in vars(extras).values() if isinstance(one, extras.Extra) and one.name == f"vigilog[{extra}]"]
    assert checked and {package.replace("_", "-") for one in checked for package in one.packages} <= installed
    assert EXTRAS["all"] == ["vigilog[bulk,iceberg,spark,server,mediators]"]


# -- the command line


@pytest.mark.parametrize("arguments", ["--version", "--help", "run --help", "serve --help"])
def test_what_needs_nothing_loads_nothing_large(arguments: str) -> None:
    script = f"""
import atexit, sys
atexit.register(lambda: print(*(name for name in sys.modules if "." not in name), file=sys.stderr))
sys.argv = ["vigilog", *{arguments.split()!r}]
from vigilog.cli.main import main
main()
"""
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stderr.split()
    assert "typer" in loaded
    assert LARGE.isdisjoint(loaded)


def test_the_shell_completes_commands_options_and_values() -> None:
    def completed(words: str) -> list[str]:
        environment = {"_VIGILOG_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        command = [str(Path(sys.executable).with_name("vigilog"))]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout.split()

    assert completed("vigilog wa") == ["watch"]
    assert completed("vigilog run --en") == ["--engine"]
    assert completed("vigilog run graph.dl --engine ") == ["auto", "embedded", "duckdb", "spark"]


COMMANDS: Any = get_command(app)


@pytest.mark.parametrize("name", ["", *COMMANDS.commands])
def test_help_cuts_nothing_off(name: str) -> None:
    command = COMMANDS.commands[name] if name else COMMANDS
    text = CliRunner().invoke(app, [*([name] if name else []), "--help"], prog_name="vigilog", terminal_width=80).output
    assert max(map(len, text.splitlines())) <= 80
    assert re.search(r"\n  Examples?:\n    .*vigilog " + name, text)
    shown = "".join(text.split())
    told = [command.help, *(parameter.help for parameter in command.params if parameter.help)]
    told += [inner.help.split(".")[0] for inner in command.commands.values()] if not name else []
    assert [one for one in told if "".join(one.split()) not in shown] == []
