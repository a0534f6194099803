"""Docs are tests: generated pages are up to date, every code and command is documented, the README's examples run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import vigilog
from vigilog.cli.main import app
from vigilog.core import codes

ROOT = Path(__file__).parents[2]
SOURCE = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "vigilog").rglob("*.py")))


def generator() -> dict[str, object]:
    names: dict[str, object] = {"__file__": str(ROOT / "docs" / "generate.py"), "__name__": "docs.generate"}
    exec((ROOT / "docs" / "generate.py").read_text(encoding="utf-8"), names)
    return names


@pytest.mark.parametrize("page", ["errors.md", "cli.md"])
def test_generated_pages_are_up_to_date(page: str) -> None:
    pages = generator()["PAGES"]
    assert isinstance(pages, dict)
    assert (ROOT / "docs" / page).read_text(encoding="utf-8") == pages[page](), "run ./run docs"


def test_prose_is_wrapped() -> None:
    """A change of a sentence is a change of a line. Tables and code are as wide as they are."""
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))):
        prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        long = [line for line in prose.split("\n") if len(line) > 120 and not line.startswith("|")]
        assert not long, f"{page.name} has lines of more than 120 characters"


def test_the_architecture_has_all_rooms_in_their_order() -> None:
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"][0]["layers"]
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page[page.index("## The rooms") : page.index("## The way of a program")]
    rooms = [re.findall(r"`(\w+)`", line.split("|")[1]) for line in section.split("\n") if line.startswith("| `")]
    assert rooms == [layer.split(" | ") for layer in layers]
    packages = {place.parent.name for place in (ROOT / "vigilog").glob("*/__init__.py")} | {"reference"}
    assert packages == {room for line in rooms for room in line} | {"client"}


def test_every_code_is_documented() -> None:
    used = set(re.findall(r'(?:\.error|\.warn)\(\s*"([a-z-]+)"', SOURCE)) | set(re.findall(r'Finding\("([a-z-]+)"', SOURCE))
    used |= set(re.findall(r'(?:DataError|Stopped)\((?:[^()]|\([^()]*\))*?, "([a-z-]+)"\)', SOURCE))
    known = {code for section in codes.SECTIONS.values() for code in section}
    assert used and used <= known


def test_every_program_code_has_a_program_that_provokes_it() -> None:
    shown = set()
    for path in (ROOT / "tests" / "fail").glob("*.dl"):
        first = path.read_text(encoding="utf-8").split("\n")[0]
        shown |= set(first.split(": ", 1)[1].split(", "))
    assert shown == set(codes.PROGRAM) | set(codes.WARNINGS)


def test_every_command_is_documented() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    names = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    assert all(f"## vigilog {name}" in page for name in names)


def test_readme_shows_program_change_and_notification_early() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").split("\n")[:30]
    assert any("closure(x, y) :-" in line for line in lines)
    assert any('"delete"' in line for line in lines)
    assert any('"plus"' in line for line in lines)


@pytest.mark.apart
def test_readme_examples_run(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(\w*)\n(.*?)```", readme, re.DOTALL)
    program, shell = blocks[0][1], blocks[1][1]
    (tmp_path / "graph.dl").write_text(program, encoding="utf-8")
    commands = [line[2:] for line in shell.split("\n") if line.startswith("$ ")]
    answers = [line for line in shell.split("\n") if line.startswith("{")]
    tool = f"{sys.executable} -m vigilog.cli.main"
    outputs = [
        subprocess.run(
            ["sh", "-c", command.replace("vigilog ", f"{tool} ")], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout
        for command in commands
    ]
    assert [json.loads(line) for line in "".join(outputs).splitlines()] == [json.loads(line) for line in answers]


def test_readme_python_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(\w*)\n(.*?)```", readme, re.DOTALL)
    (tmp_path / "graph.dl").write_text(blocks[0][1], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    code = next(text for kind, text in blocks if kind == "python").replace('engine="spark"', 'engine="embedded"')
    names: dict[str, object] = {}
    exec(code, names)
    assert capsys.readouterr().out.splitlines() == ["[('a', 'd'), ('b', 'd')]", "{('a', 'b')}"]
    result = names["result"]
    assert isinstance(result, vigilog.Result)
    assert result["closure"] == {("a", "b")}


@pytest.mark.apart
def test_nothing_speaks_of_a_machine() -> None:
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    texts = {
        name: (ROOT / name).read_text(encoding="utf-8", errors="ignore")
        for name in files
        if (ROOT / name).is_file() and not name.endswith(".png")
    }
    machine = re.compile("/" + "(work|root|home)/[a-z]")
    assert [name for name, text in texts.items() if machine.search(text)] == []
