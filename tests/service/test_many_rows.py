"""Changes of many rows: they are named, fetched as they are stored, and every copy has them, whole views and slices alike."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from tests.service.serving import Served
from vigilog.client import connect
from vigilog.client.columns import Columns
from vigilog.core.type_names import type_named
from vigilog.folder import book as ledger
from vigilog.protocol.calls import ARROW

pytestmark = pytest.mark.apart

PROGRAM = """
.decl told(n: number, day: date, amount: decimal(8,2), big: unsigned)
.decl part(k: number)
.decl view(n: number, k: number, day: date, amount: decimal(8,2), big: unsigned)
.output view
view(n, k, d, a, b) :- told(n, d, a, b), part(k).
"""
NUMBER = ledger.MANY_ROWS // 2 + 1  # with two parts each the change of the view is in a segment, that of the base is not
TYPES = tuple(map(type_named, ("number", "number", "date", "decimal(8,2)", "unsigned")))


def rows() -> list[list[Any]]:
    return [[n, f"2026-11-{n % 28 + 1:02d}", f"{n % 100}.25", 2**63 + n] for n in range(NUMBER)]


def derived() -> list[list[Any]]:
    return [[n, k, *rest] for n, *rest in rows() for k in (0, 1)]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    server = Served(tmp_path_factory.mktemp("many"), program=PROGRAM).start()
    server.tell(insert={"part": [[0], [1]]})
    yield server
    server.kill()
    assert server.mistakes() == []


@pytest.fixture
def empty(served: Served) -> Iterator[Served]:
    yield served
    served.tell(delete={"told": rows()})


def arrow(server: Served, place: str) -> dict[str, list[Any]]:
    """A change that is fetched as Arrow."""
    found = server.call("GET", place, headers={"Accept": ARROW})
    assert found.headers["Content-Type"] == ARROW
    table = pa.ipc.open_stream(found.content).read_all()
    sides, own = table.column(0).to_pylist(), table.drop_columns(["change"])
    columns = Columns(tuple(own.column_names), TYPES[-own.num_columns :])
    told = columns._of_arrow(own)
    assert sides == sorted(sides, reverse=True), "what came, then what went"
    return {side: columns.json(row for row, its in zip(told, sides, strict=True) if its == side) for side in ("plus", "minus")}


def test_whole_views_and_slices(empty: Served) -> None:
    """Whoever follows all rows is told where they are; who follows some is sent them."""
    with empty.following(view="view") as whole, empty.following(view="view", bind={"n": 7}) as slice_:
        tx = empty.tell(insert={"told": rows()})
        change = whole.change()
        assert change["plus"]["rows"] == 2 * NUMBER and change["minus"] == []
        assert slice_.change()["plus"] == [row for row in derived() if row[0] == 7]
        place = change["plus"]["fetch"]
        assert place == f"/v1/views/view/changes/{tx}"
        assert empty.get(place) == {"tx": tx, "plus": derived(), "minus": []}
        assert arrow(empty, place) == {"plus": derived(), "minus": []}


def test_only_whole_views(empty: Served) -> None:
    """Then nobody looks at the rows; one who comes to follow a slice in that moment has them all the same."""
    with empty.following(view="view") as whole:
        tx = empty.tell(insert={"told": rows()})
        change = whole.change()
        assert change == {
            "tx": tx,
            "digest": change["digest"],
            "plus": {"fetch": f"/v1/views/view/changes/{tx}", "rows": 2 * NUMBER},
            "minus": [],
        }
        later = empty.tell(delete={"told": rows()[1:]})
        assert whole.change()["minus"] == {"fetch": f"/v1/views/view/changes/{later}", "rows": 2 * NUMBER - 2}
    with empty.socket() as again:
        again.copy, again.tx = {"view": set()}, tx - 1
        again.subscribe(view="view", bind={"k": 1, "n": 0}, since=tx - 1)
        assert again.change()["plus"] == [derived()[1]]


@pytest.mark.parametrize(
    ("query", "wanted", "skipped"),
    [
        ("?bind.n=7", lambda row: row[0] == 7, 0),
        ("?bind.day=2026-11-03&bind.k=1", lambda row: row[2] == "2026-11-03" and row[1] == 1, 0),
        ("?bind.amount=3.25", lambda row: row[3] == "3.25", 0),
        (f"?bind.big={2**63 + 5}", lambda row: row[4] == 2**63 + 5, 0),
        ("?bind.n=7&skip=1", lambda row: row[0] == 7, 1),
        ("?bind.n=-1", lambda row: False, 0),
        ("?skip=5&bind.n=7", lambda row: row[0] == 7, 5),
    ],
)
def test_parts_of_a_change(empty: Served, query: str, wanted: Any, skipped: int) -> None:
    tx = empty.tell(insert={"told": rows()})
    place = f"/v1/views/view/changes/{tx}{query}"
    found = [row[skipped:] for row in derived() if wanted(row)]
    assert empty.get(place)["plus"] == found
    if skipped < len(TYPES):
        assert arrow(empty, place)["plus"] == found
    else:
        table = pa.ipc.open_stream(empty.call("GET", place, headers={"Accept": ARROW}).content).read_all()
        assert table.num_rows == len(found) and table.column(0).to_pylist() == ["plus"] * len(found)


HOLDER = """
import sys
sys.modules["pyarrow"] = None  # as if it were not there
from vigilog.client import connect
with connect(sys.argv[1]) as client, client.enroll("view") as view, client.enroll("view", fetch=True) as other:
    print(len(view), flush=True)
    tx = int(sys.stdin.readline())
    view.wait_for(tx), other.wait_for(tx)
    print(len(view), set(view) == set(client.view("view")) == set(other), "pandas" in sys.modules, flush=True)
"""


@pytest.mark.parametrize("without", [True, False], ids=["without Arrow", "with Arrow"])
def test_a_copy_has_them(empty: Served, without: bool) -> None:
    command = HOLDER if without else HOLDER.replace('sys.modules["pyarrow"] = None', "")
    with subprocess.Popen([sys.executable, "-c", command, empty.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdin is not None and holder.stdout is not None
        assert holder.stdout.readline() == "0\n"
        with connect(empty.url) as client:
            tx = client.tell(insert={"told": rows()}).tx
        holder.stdin.write(f"{tx}\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == f"{2 * NUMBER} True False\n"
        assert holder.wait(30) == 0
