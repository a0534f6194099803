"""The command line with a server's address."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.service.serving import PROGRAM, Served
from vigilog.client import connect

pytestmark = pytest.mark.apart

TOOL = [sys.executable, "-m", "vigilog.cli.main"]


def vigilog(*arguments: str, given: str = "", token: str = "") -> subprocess.CompletedProcess[str]:
    environment = os.environ | ({"VIGILOG_TOKEN": token} if token else {})
    return subprocess.run([*TOOL, *arguments], input=given, capture_output=True, text=True, env=environment)


class Following:
    """`vigilog subscribe` in a process of its own, read line by line."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen([*TOOL, "subscribe", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __enter__(self) -> Following:
        return self

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def json(self) -> Any:
        return json.loads(self.line())

    def interrupted(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGINT)
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said

    def __exit__(self, *ended: object) -> None:
        self.process.kill()
        self.process.communicate()


def test_calls_take_an_address(shared: Served) -> None:
    line = '{"insert": {"edge": [["a", "b"], ["b", "c"]]}}\n\n{"insert": {"edge": [["a"]]}}\n{"delete": {"edge": [["b", "c"]]}}\n'
    told = vigilog("tell", shared.url, given=line)
    answers = [json.loads(answer) for answer in told.stdout.splitlines()]
    first = answers[0]["tx"]
    assert {view: answers[0]["views"][view] for view in ("closure", "degree")} == {
        "closure": {"plus": 3, "minus": 0},
        "degree": {"plus": 2, "minus": 0},
    }
    assert (answers[1]["line"], answers[1]["error"]["code"]) == (2, "columns")
    assert (answers[2]["tx"], answers[2]["views"]["closure"]) == (first + 1, {"plus": 0, "minus": 2})
    assert told.returncode == 1
    assert vigilog("ask", shared.url, 'closure("a", y)').stdout == "a\tb\n"
    assert vigilog("ask", shared.url, 'closure("a", y)', "--at", str(first)).stdout == "a\tb\na\tc\n"
    assert vigilog("why", shared.url, 'closure("a", "b")').stdout.splitlines()[1] == '└─ edge("a", "b")'
    assert vigilog("why", shared.url, 'closure("c", "b")', "--depth", "0").stdout == 'closure("c", "b") does not hold\n'
    reason = vigilog("why", shared.url, 'closure("c", "b")')
    assert (reason.returncode, reason.stdout.splitlines()[:3]) == (
        0,
        [
            'closure("c", "b") does not hold; near: closure("a", "b")',
            "├─ closure(x, y) :- edge(x, y).   (program.dl:6:1)",
            '│  └─ edge("c", "b") is not there; near: edge("a", "b")',
        ],
    )
    assert json.loads(vigilog("why", shared.url, 'closure("c", "b")', "--json").stdout)["holds"] is False
    assert json.loads(vigilog("why", shared.url, 'closure("a", "b")', "--json").stdout)["because"] == [{"literal": 'edge("a", "b")'}]
    preview = vigilog("what-if", shared.url, '{"delete": {"edge": [["a", "b"]]}}')
    assert json.loads(preview.stdout)["views"]["closure"] == {"plus": [], "minus": [["a", "b"]]}
    once = vigilog("subscribe", shared.url, "closure", "--once")
    assert json.loads(once.stdout) == {"tx": first + 1, "views": {"closure": {"plus": [["a", "b"]], "minus": []}}}
    assert vigilog("subscribe", shared.url, "closure", "--once", "--text").stdout == f"{first + 1}\t+\tclosure\ta\tb\n"


def test_subscribe_prints_changes_until_ctrl_c(server: Served) -> None:
    with connect(server.url) as client, Following(server.url, "closure", "degree", "--bind", "x=a") as following:
        assert following.json() == {"tx": 0, "views": {"closure": {"plus": [], "minus": []}, "degree": {"plus": [], "minus": []}}}
        client.tell(insert={"edge": [("x", "y")]})
        client.tell(insert={"edge": [("a", "x")]})
        expected = {"closure": {"plus": [["a", "x"], ["a", "y"]], "minus": []}, "degree": {"plus": [["a", 1]], "minus": []}}
        assert following.json() == {"tx": 2, "views": expected}
        server.kill()
        server.start()
        client.tell(delete={"edge": [("a", "x")]})
        assert following.json()["tx"] == 3
        status, said = following.interrupted()
        assert status == 0
        assert said.count("trying again") == 1
        assert "Traceback" not in said


def test_subscribe_under_a_name_goes_on(shared: Served) -> None:
    with connect(shared.url) as client:
        with Following(shared.url, "closure", "--name", "printer") as following:
            last = following.json()["tx"]
            client.tell(insert={"edge": [("a", "b")]})
            assert following.json()["tx"] == last + 1
            assert following.interrupted()[0] == 0
        client.tell(insert={"edge": [("b", "c")]})
        with Following(shared.url, "closure", "--name", "printer", "--precision", "counts") as following:
            assert following.json() == {"tx": last + 2, "views": {"closure": {"plus": 2, "minus": 0}}}
        with Following(shared.url, "closure", "--from", str(last)) as following:
            assert [following.json()["tx"] for _ in range(2)] == [last + 1, last + 2]


def test_what_goes_wrong_is_said_in_a_sentence(shared: Served) -> None:
    for arguments, status, said in (
        (("ask", "http://127.0.0.1:1", "edge(x, y)"), 1, "error[connection]: http://127.0.0.1:1 cannot be reached"),
        (("subscribe", shared.url, "clsure"), 1, "error[unknown-relation]: there is no view clsure; did you mean closure?"),
        (("subscribe", shared.url, "degree", "--bind", "n=many"), 1, "error["),
        (("subscribe", shared.url, "closure", "--every", "-1"), 2, "every is a number of seconds above 0"),
        (("subscribe", shared.url, "closure", "--once", "--from", "1"), 2, "--once"),
        (("ask", shared.url, "edge(x, y)", "-F", "."), 2, "-F"),
        (("tell", "https://", "{}"), 2, "is no address"),
    ):
        done = vigilog(*arguments)
        assert done.returncode == status, done.stderr
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_subscribe_on_what_this_process_opens(tmp_path: Path) -> None:
    program, data = tmp_path / "program.dl", str(tmp_path / "data")
    program.write_text(PROGRAM + ".input edge\n", encoding="utf-8")
    vigilog("init", str(program), "--data", data)
    vigilog("tell", data, '{"insert": {"edge": [["a", "b"], ["b", "c"]]}}')
    vigilog("tell", data, '{"delete": {"edge": [["b", "c"]]}}')
    assert json.loads(vigilog("subscribe", data, "closure").stdout) == {"tx": 2, "views": {"closure": {"plus": [["a", "b"]], "minus": []}}}
    past = vigilog("subscribe", data, "closure", "--from", "0", "--bind", "x=a").stdout.splitlines()
    assert [json.loads(line)["tx"] for line in past] == [1, 2]
    assert json.loads(past[1])["views"] == {"closure": {"plus": [], "minus": [["a", "c"]]}}
    (tmp_path / "edge.facts").write_text("x\ty\n", encoding="utf-8")
    plain = vigilog("subscribe", str(program), "closure", "-F", str(tmp_path), "--bind", "x=x")
    none = vigilog("subscribe", str(program), "closure", "-F", str(tmp_path), "--bind", "x=a")
    assert json.loads(none.stdout) == {"tx": 0, "views": {"closure": {"plus": [], "minus": []}}}
    assert json.loads(plain.stdout) == {"tx": 0, "views": {"closure": {"plus": [["x", "y"]], "minus": []}}}
    assert vigilog("subscribe", data, "clsure").returncode == 1
    assert vigilog("subscribe", data, "closure", "--name", "cache").returncode == 2


@pytest.mark.parametrize("by", ["option", "environment"])
def test_tokens_come_by_option_or_environment(by: str, serve: Any, tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    token = vigilog("token", str(file), "reader", "--read", "closure").stdout.strip()
    server = serve("--tokens", str(file))
    assert "error[token]" in vigilog("ask", server.url, "closure(x, y)").stderr
    option = ("--token", token) if by == "option" else ()
    done = vigilog("ask", server.url, "closure(x, y)", *option, token="" if option else token)
    assert (done.returncode, done.stderr) == (0, "")


def test_rows_by_name(shared: Served) -> None:
    shared.tell(insert={"price": [["bolt", "2026-11-17", "20.00"], ["nut", "2026-11-17", "30.00"]]})
    bolt, nut = ({"item": item, "day": "2026-11-17", "amount": amount} for item, amount in (("bolt", "20.00"), ("nut", "30.00")))
    first = vigilog("subscribe", shared.url, "dear", "--once", "--named")
    assert json.loads(first.stdout)["views"] == {"dear": {"plus": [bolt, nut], "minus": []}}
    asked = vigilog("ask", shared.url, "dear(item, day, amount), amount > 25", "--named")
    assert list(map(json.loads, asked.stdout.splitlines())) == [nut]
    refused = vigilog("subscribe", shared.url, "dear", "--once", "--named", "--text")
    assert refused.returncode == 2 and "--named tells rows as JSON" in refused.stderr
