"""A client alone, and a server without Arrow."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.installed import BASE, EXTRAS, ROOT, Installation
from tests.service.conftest import Serve
from vigilog.client import connect

pytestmark = pytest.mark.apart

FETCHED = ("--limit", "large=5", "--limit", "part=7")  # changes of more rows are fetched
EDGES = [(str(number), str(number + 1)) for number in range(12)]


def test_a_client_alone_needs_the_packages_that_its_page_names(serve: Serve, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")
    packages = re.findall(r'"([^"]+)"', next(line for line in page.splitlines() if line.startswith('pip install "httpx')))
    assert len(packages) == 3 and {*packages} <= {*BASE}
    script = f"""
import vigilog.client

with vigilog.client.connect({serve(*FETCHED).url!r}) as client:
    closure = client.enroll("closure")
    told = client.tell(insert={{"edge": {EDGES!r}}})
    closure.wait_for(told.tx, 60)
    print(len(closure), closure == client.enroll("closure", fetch=True), closure == set(client.view("closure")))
    told = client.tell(delete={{"edge": [("5", "6")]}})
    closure.wait_for(told.tx, 60)
    print(len(closure), closure.error)
    for export in (closure.to_arrow, closure.to_pandas):
        try:
            export()
        except vigilog.VigilogError as reason:
            print(reason)
"""
    done = Installation(tmp_path / "site", packages).python("-c", script)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "78 True True",
        "36 None",
        'Arrow is not installed: pip install "pyarrow"',
        'pandas is not installed: pip install "pandas"',
    ]


def test_a_server_without_arrow_gives_json_to_those_who_ask_for_arrow(serve: Serve, tmp_path: Path) -> None:
    server = serve(*FETCHED, installation=Installation(tmp_path / "site", [*BASE, *EXTRAS["server"]]))
    with connect(server.url) as client:
        closure = client.enroll("closure")
        told = client.tell(insert={"edge": EDGES})
        assert closure.wait_for(told.tx, 60)
        assert set(closure) == set(client.view("closure")) == set(client.enroll("closure", fetch=True))
        assert len(closure) == 78


def test_a_server_without_spark_says_so_and_goes_on(serve: Serve, tmp_path: Path) -> None:
    server = serve("--spark", installation=Installation(tmp_path / "site", [*BASE, *EXTRAS["server"]]))
    (tmp_path / "edge.parquet").touch()
    refused = server.call("POST", "/v1/loads", json={"relation": "edge", "source": str(tmp_path / "edge.parquet")})
    assert (refused.status_code, refused.json()["error"]["code"]) == (501, "not-installed")
    assert server.insert(("a", "b")) == 1
    assert server.mistakes() == [] == server.logged("Spark is not there: what needs it will fail")
