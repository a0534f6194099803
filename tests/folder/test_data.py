"""The commands on a data folder, as a user meets them."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pytest

from tests.cli.test_cli import Ended, save, vigilog
from tests.golden import GRAPH
from vigilog.store.file import FORMAT

EDGES = "a\tb\nb\tc\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a program, its facts, and a data folder `d` made of them."""
    save(tmp_path, GRAPH, edge_facts=EDGES)
    assert vigilog(tmp_path, "init", "p.dl", "--data", "d", "-F", ".") == Ended(0, "d: 2 relations and 2 rules, transaction 0\n", "")
    return tmp_path


def test_without_facts_it_begins_empty(folder: Path) -> None:
    done = vigilog(folder, "init", "p.dl", "--data", "e")
    assert done.status == 0 and done.err == "it begins empty: fill it with vigilog load or tell, or make it with -F FACTS\n"
    assert vigilog(folder, "view", "e", "edge") == Ended(0, "", "")
    assert vigilog(folder, "init", "p.dl", "--data", "e").err == "", "it was there"


def told(folder: Path, transaction: str) -> Ended:
    return vigilog(folder, "tell", "d", transaction)


def test_tell_view_and_log(folder: Path) -> None:
    assert told(folder, '{"insert": {"edge": [["c", "d"]]}}') == Ended(
        0, '{"tx": 1, "views": {"closure": {"plus": [["a", "d"], ["b", "d"], ["c", "d"]], "minus": []}}}\n', ""
    )
    assert vigilog(folder, "view", "d", "closure").out == "a\tb\na\tc\na\td\nb\tc\nb\td\nc\td\n"
    assert vigilog(folder, "view", "d", "closure", "--at", "0").out == "a\tb\na\tc\nb\tc\n"
    assert told(folder, '{"insert": {"edge": [["c", "d"]]}}').out == '{"tx": 1, "views": {}}\n', (
        "nothing changed, so there is no transaction"
    )
    assert told(folder, '{"delete": {"edge": [["a", "b"]]}}').status == 0
    entries = [json.loads(line) for line in vigilog(folder, "log", "d").out.splitlines()]
    assert [(entry["tx"], entry["kind"], entry["base"]) for entry in entries] == [
        (1, "change", {"edge": {"plus": [["c", "d"]]}}),
        (2, "change", {"edge": {"minus": [["a", "b"]]}}),
    ]
    assert entries[1]["views"]["closure"] == {"minus": [["a", "b"], ["a", "c"], ["a", "d"]]}
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry["at"]) for entry in entries)
    assert vigilog(folder, "log", "d", "--since", "1").out.count("\n") == 1
    assert vigilog(folder, "log", "d", "--since", "7") == Ended(1, "", "error[future]: there is no transaction 7 yet: the last is 2\n")


def test_tell_many_lines_refuses_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = '{"insert": {"edge": [["x", "y"]]}}\n\n{"insert": {"closure": [["x", "y"]]}}\nnonsense\n{"insert": {"edge": [["y", "z"]]}}\n'
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    done = vigilog(folder, "tell", "d")
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert done.status == 1
    assert [answer.get("tx") for answer in answers] == [1, None, None, 2]
    assert [(answer["line"], answer["error"]["code"]) for answer in answers if "error" in answer] == [(2, "derived"), (3, "json")]


def test_ask_why_and_what_if_take_a_data_folder(folder: Path) -> None:
    told(folder, '{"insert": {"edge": [["c", "d"]]}}')
    assert vigilog(folder, "ask", "d", 'closure("a", y)').out == "a\tb\na\tc\na\td\n"
    assert vigilog(folder, "ask", "d", 'closure("a", y)', "--at", "0").out == "a\tb\na\tc\n"
    assert vigilog(folder, "why", "d", 'closure("c", "d")').out.startswith('closure("c", "d")   by closure(x, y) :- edge(x, y).')
    assert vigilog(folder, "why", "d", 'closure("d", "a")', "--depth", "2") == Ended(
        0,
        'closure("d", "a") does not hold\n'
        "├─ closure(x, y) :- edge(x, y).   (p.dl:5:1)\n"
        '│  └─ edge("d", "a") is not there\n'
        "└─ closure(x, y) :- edge(x, z), closure(z, y).   (p.dl:6:1)\n"
        '   └─ edge("d", z) has no row\n',
        "",
    )
    said = vigilog(folder, "what-if", "d", '{"delete": {"edge": [["c", "d"]]}}').out
    assert json.loads(said)["views"]["closure"]["minus"] == [["a", "d"], ["b", "d"], ["c", "d"]]
    assert vigilog(folder, "view", "d", "edge").out == "a\tb\nb\tc\nc\td\n", "nothing was applied"
    assert vigilog(folder, "ask", "d", "closure(x, y)", "-F", ".").status == 2
    assert vigilog(folder, "ask", "p.dl", "closure(x, y)", "--at", "0") == Ended(
        2, "", "error[usage]: --at needs a data folder or a server: a program alone has no past\n"
    )


def test_load_and_sync(folder: Path) -> None:
    (folder / "more.csv").write_text("x,y\nb,c\nc,d\n")
    assert vigilog(folder, "load", "d", "edge", "more.csv") == Ended(0, "transaction 1: 1 row of edge changed\n", "")
    assert vigilog(folder, "load", "d", "edge", "more.csv") == Ended(0, "transaction 1: no row of edge changed\n", "")
    (folder / "all.txt").write_text("a;b\nq;r\n")
    done = vigilog(folder, "load", "d", "edge", "all.txt", "--sync", "--option", "delimiter=;")
    assert done == Ended(0, "transaction 2: 3 rows of edge changed\n", "")
    assert vigilog(folder, "view", "d", "edge").out == "a\tb\nq\tr\n"
    kinds = [json.loads(line)["kind"] for line in vigilog(folder, "log", "d").out.splitlines()]
    assert kinds == ["load", "sync"]
    assert vigilog(folder, "load", "d", "edge", "nowhere.csv").err.startswith("error[unreadable]: nowhere.csv")
    assert vigilog(folder, "load", "d", "closure", "more.csv").err.startswith("error[derived]: ")
    assert (
        vigilog(folder, "load", "d", "edges", "more.csv").err == "error[unknown-relation]: there is no relation edges; did you mean edge?\n"
    )
    assert vigilog(folder, "load", "d", "edge", "more.csv", "--option", "IO").status == 2
    assert vigilog(folder, "status", "d", "--json").out.count('"tx": 2') == 1, "nothing refused has changed anything"


def test_definitions(folder: Path) -> None:
    (folder / "back.dl").write_text(".decl back(x: symbol, y: symbol)\n.output back\nback(y, x) :- edge(x, y).\n")
    assert (
        vigilog(folder, "define", "d", "back.dl").out == '{"tx": 1, "views": {"back": {"plus": [["b", "a"], ["c", "b"]], "minus": []}}}\n'
    )
    assert vigilog(folder, "drop", "d", "edge").err == "error[needed]: back, closure are derived from edge; drop or redefine them first\n"
    assert vigilog(folder, "drop", "d", "back") == Ended(0, "transaction 2: back is dropped\n", "")
    (folder / "p.dl").write_text(GRAPH.replace("edge(x, z), closure(z, y)", 'edge(x, z), closure(z, y), x != "a"'))
    refused = vigilog(folder, "init", "p.dl", "--data", "d")
    assert (
        refused.status == 1
        and refused.err.startswith("error[program-changed]: d has another program")
        and "\n+ closure(x, y) :-" in refused.err
    )
    done = vigilog(folder, "init", "p.dl", "--data", "d", "--define")
    assert done.status == 0
    assert done.out.splitlines()[-2:] == [
        '{"tx": 3, "views": {"closure": {"plus": [], "minus": [["a", "c"]]}}}',
        "d: 2 relations and 2 rules, transaction 3",
    ]


def test_status_and_verify(folder: Path) -> None:
    said = vigilog(folder, "status", "d").out
    assert re.search(r"^edge +base +2 +resident +about 320 bytes$", said, re.MULTILINE)
    assert re.search(r"^closure +view +3 +resident +materialized: closure is recursive", said, re.MULTILINE)
    found = json.loads(vigilog(folder, "status", "d", "--json").out)
    assert (found["tx"], found["format"], found["outbox_changes"]) == (0, FORMAT, 0)
    done = vigilog(folder, "verify", "d")
    assert done.status == 0 and done.out.endswith("parts as they should be, 0 problems (by reference)\n")
    data = (folder / "d" / "vigilog.db").read_bytes()
    (folder / "d" / "vigilog.db").write_bytes(
        data.replace(b"\x0f\x0fac", b"\x0f\x0fax")
    )  # two texts of one character: a row of the stored view
    done = vigilog(folder, "verify", "d")
    assert done.status == 1 and "WRONG stored closure: ('a', 'x') should not be there, ('a', 'c') should be there\n" in done.out
    assert vigilog(folder, "verify", "d", "--by", "magic").status == 2


def test_backup_and_restore(folder: Path) -> None:
    told(folder, '{"insert": {"edge": [["c", "d"]]}}')
    assert vigilog(folder, "backup", "d", "copy") == Ended(0, "copy: a copy of d as of transaction 1\n", "")
    assert vigilog(folder, "backup", "d", "copy").err == "error[folder]: copy is not empty; a backup goes into a new folder\n"
    assert re.fullmatch(r"e: restored from copy, history [0-9a-f]{16}\n", vigilog(folder, "restore", "copy", "e").out)
    assert vigilog(folder, "view", "e", "closure") == vigilog(folder, "view", "d", "closure")


def test_settings(tmp_path: Path) -> None:
    save(tmp_path, GRAPH)
    done = vigilog(
        tmp_path, "init", "p.dl", "--data", "d", "--strategy", "external", "--memory", "1", "--retain", "days=7", "--retain", "bytes=1000"
    )
    assert done.status == 0
    found = json.loads(vigilog(tmp_path, "status", "d", "--json").out)
    assert (found["memory"], found["retain"]) == (2**20, {"days": 7.0, "bytes": 1000.0})
    assert found["relations"][1]["strategy"] == "external"
    assert vigilog(tmp_path, "init", "p.dl", "--data", "d", "--retain", "weeks=1").status == 2
    assert vigilog(tmp_path, "init", "p.dl", "--data", "d", "--retain", "days=many").status == 2


@pytest.mark.parametrize("command", ["status", "verify", "log", "compact", "tell"])
def test_what_is_no_data_folder(tmp_path: Path, command: str) -> None:
    assert vigilog(tmp_path, command, "d") == Ended(1, "", "error[no-data]: there is no data folder d\n")
    (tmp_path / "d").mkdir()
    assert vigilog(tmp_path, command, "d").err.startswith(
        "error[no-data]: d is not a data folder: it has no vigilog.db (make one with: vigilog init"
    )


def test_a_limited_recursion_is_for_run_alone(folder: Path) -> None:
    """Also if a definition brings it; then nothing is changed."""
    limited = ".decl n(x: number)\n.output n\n.limitsize n(n=3)\nn(0).\nn(x + 1) :- n(x).\n"
    (folder / "limited.dl").write_text(limited)
    assert vigilog(folder, "run", "limited.dl", "-D", "-").out.splitlines()[3:-1] == ["0", "1", "2"]
    refused = "limited.dl:3:12: error[unsupported]: .limitsize n is for vigilog run alone\n"
    for command in (["watch", "limited.dl"], ["ask", "limited.dl", "n(x)"], ["init", "limited.dl", "--data", "e"]):
        ended = vigilog(folder, *command)
        assert (ended.status, ended.out) == (1, "") and ended.err.startswith(refused), command
    assert not (folder / "e").exists()
    ended = vigilog(folder, "define", "d", "limited.dl")
    assert ended.status == 1 and ".limitsize n is for vigilog run alone" in ended.err
    assert vigilog(folder, "view", "d", "n").status == 1
    assert told(folder, '{"insert": {"edge": [["c", "d"]]}}').status == 0
