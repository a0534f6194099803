"""What a client asks for cannot keep the server: neither by long texts, nor by patterns, nor by what nothing can stop."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.service.conftest import Serve
from tests.service.serving import Served

PROGRAM = """
.decl doc(t: symbol)
.decl acct(a: number)
"""
SLEEPING = """
import time
class Slow:
    def init(self): return 0
    def insert(self, state, x): return state + x
    def result(self, state): return time.sleep(100 if state == 123456 else 0) or state
"""
DEAR = '".*(a|b|aa|bb)[ab]{900}"'  # RE2 takes some 15 ns for each byte and each of 916 instructions
pytestmark = pytest.mark.apart


def doubled(times: int) -> str:
    """A goal that has a text of a thousand characters, doubled so many times, as its last variable."""
    return ", ".join(["doc(t0)", *(f"t{number + 1} = cat(t{number}, t{number})" for number in range(times))])


def documents(serve: Serve, *options: str) -> Served:
    server = serve(*(word for option in options for word in ("--limit", option)), program=PROGRAM)
    server.tell(insert={"doc": [["ab" * 500]], "acct": [[number] for number in range(300)]})
    return server


@pytest.mark.parametrize(
    ("goal", "code"),
    [
        (f"{doubled(13)}, match({DEAR}, t13)", None),  # 8 MB: undefined, for it would take two minutes
        (f"{doubled(17)}, strlen(t17) > 0", "budget"),
        (f"{doubled(30)}, strlen(t30) > 0", "budget"),
        (f"{doubled(13)}, acct(a), acct(b), u = cat(t13, to_string(a + b)), contains('x', u)".replace("'", '"'), "timeout"),
        (f'{doubled(11)}, p = cat(t11, "c"), t = cat(t11, t11), contains(p, t)', None),
        (f"{doubled(12)}, acct(a), u = cat(t12, to_string(a))", "budget"),
        (f"acct(a), acct(b), acct(c), p = cat({', '.join(['to_string(a * b + c)', *[DEAR] * 20])}), match(p, p)", "timeout"),
    ],
)
def test_a_goal_over_long_texts_ends(serve: Serve, goal: str, code: str | None) -> None:
    server = documents(serve, "seconds=3", "bytes=50000000")
    before, began = server.memory, time.monotonic()
    found = server.call("POST", "/v1/ask", json={"goal": goal})
    assert time.monotonic() - began < 20
    assert found.json().get("error", {}).get("code") == code, found.text[:300]
    assert server.memory - before < 600 * 2**20
    server.tell(insert={"acct": [[1000]]})
    began = time.monotonic()
    assert server.stop() == 0 and time.monotonic() - began < 15


def test_a_followed_goal_over_long_texts_is_dropped(serve: Serve) -> None:
    server = serve("--limit", "query_seconds=2", program=PROGRAM)
    with server.following(query=f"{doubled(13)}, acct(a), acct(b), u = cat(t13, to_string(a + b)), u = t0") as talk:
        server.tell(insert={"doc": [["ab" * 500]]})
        began = time.monotonic()
        server.tell(insert={"acct": [[number] for number in range(300)]})
        assert time.monotonic() - began < 12
        assert talk.hear("error")["error"]["code"] == "budget"
    assert server.mistakes() == []


def test_a_server_ends_whatever_is_read(serve: Serve, tmp_path: Path) -> None:
    """An aggregate of the program's own hangs: nothing reaches it."""
    (tmp_path / "served0").mkdir()
    (tmp_path / "served0" / "sleeping.py").write_text(SLEEPING)
    server = serve(program=PROGRAM + '.aggregate slow(s: set<number>, r: number) python="sleeping:Slow"\n')
    server.tell(insert={"acct": [[123456]]})
    with ThreadPoolExecutor(1) as aside:
        asked = aside.submit(server.call, "POST", "/v1/ask", json={"goal": "setof(a, acct(a), s), slow(s, n)"})
        time.sleep(1.5)  # it is read
        began = time.monotonic()
        assert server.stop() == 0 and time.monotonic() - began < 25
        assert asked.result().status_code == 503 and server.mistakes() == []
    assert [line["threads"] for line in server.logged("what is still read is given up")]
    assert server.start().tell(insert={"acct": [[1]]}) == 2
