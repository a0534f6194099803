"""The JavaScript client: in Node by its own tests (tests/client/javascript), in a browser by what a page shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import playwright
import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.service.conftest import Serve
from tests.service.serving import Served

pytestmark = pytest.mark.apart

HERE = Path(__file__).parent
EXAMPLES = HERE.parent.parent / "examples"
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


ITEMS = """
.decl item(number: number, name: symbol)
.decl shown(number: number, name: symbol)
.output shown
shown(n, name) :- item(n, name).
"""


def node() -> list[str]:
    """The machine's, if it is new enough for the client; otherwise the one that playwright brings."""
    found = shutil.which("node")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout if found else "v0"
    major = int(re.findall(r"\d+", version)[0])
    if found is None or major < 20:
        return [str(Path(playwright.__file__).parent / "driver" / "node")]
    return [found, "--experimental-websocket"] if major < 22 else [found]


@pytest.mark.parametrize("name", sorted(path.name for path in (HERE / "javascript").glob("*.test.mjs")))
def test_in_node(name: str) -> None:
    environment = os.environ | {"VIGILOG_PYTHON": sys.executable}
    done = subprocess.run(
        [*node(), "--test", "--test-timeout=300000", str(HERE / "javascript" / name)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


class Quietly(SimpleHTTPRequestHandler):
    def log_message(self, *said: object) -> None:
        pass


@pytest.fixture
def pages() -> Iterator[str]:
    """The examples' folder on a port of its own: another origin than the server's."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quietly, directory=str(EXAMPLES))) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{served.server_port}"
        served.shutdown()
        thread.join()


@pytest.fixture
def page() -> Iterator[Page]:
    chromium = (
        os.environ.get("VIGILOG_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    )
    assert chromium, "there is no browser here: ./run browser says what to install"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=QUIET)
        page = browser.new_page()
        page.set_default_timeout(60_000)
        yield page
        browser.close()


def test_a_page_shows_a_view_as_it_changes(serve: Serve, page: Page, pages: str) -> None:
    server = serve("--origin", pages)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    tell(server, {"insert": {"edge": [["a", "b"], ["b", "c"]]}})
    page.goto(f"{pages}/page.html?server={server.url}&view=closure")
    lines = page.locator("tbody tr")
    expect(lines).to_have_text(["ab", "ac", "bc"])
    expect(page.locator("th")).to_have_text(["x", "y"])
    expect(page.locator("#state.live")).to_have_text("3 rows at transaction 1")

    tell(server, {"insert": {"edge": [["c", "d"]]}, "delete": {"edge": [["a", "b"]]}})
    expect(lines).to_have_text(["bc", "bd", "cd"])

    server.kill()
    expect(page.locator("#state.live")).to_have_count(0)
    expect(lines).to_have_text(["bc", "bd", "cd"])
    server.start()
    tell(server, {"insert": {"edge": [["<b>", "x"]]}})
    expect(lines).to_have_text(["<b>x", "bc", "bd", "cd"])
    expect(page.locator("#state.live")).to_have_text("4 rows at transaction 3")
    assert not errors


def test_a_page_with_many_rows(serve: Serve, page: Page, pages: str) -> None:
    """Only what can be seen is in the document, and a row that comes costs no look at all others."""
    server = serve("--origin", pages, program=ITEMS)
    rows = [[number, f"item {number}"] for number in range(60_000)]
    for begin in range(0, len(rows), 20_000):
        server.tell(insert={"item": rows[begin : begin + 20_000]})
    page.goto(f"{pages}/page.html?server={server.url}&view=shown")
    state, lines = page.locator("#state.live"), page.locator("tbody tr")
    expect(state).to_have_text("60000 rows at transaction 3", timeout=30_000)
    expect(lines.first).to_have_text("0item 0")
    for number in range(100):
        server.tell(insert={"item": [[-1 - number, "new"]]}, delete={"item": [[number, f"item {number}"]]})
    expect(state).to_have_text("60000 rows at transaction 103", timeout=10_000)
    expect(lines.first).to_have_text("-100new")
    assert lines.count() < 100
    server.tell(insert={"item": [[-101, "new"]]}, delete={"item": [[100, "item 100"]]})
    expect(page.locator("tr.plus").first).to_have_text("-101new")
    page.locator("main").evaluate("one => one.scrollTo(0, one.scrollHeight)")
    expect(lines.last).to_have_text("59999item 59999")
    ends = page.evaluate("['tbody tr:last-child', 'main'].map((one) => document.querySelector(one).getBoundingClientRect().bottom)")
    assert abs(ends[0] - ends[1]) < 2, "the last line is at the end, and can be seen"
    server.tell(delete={"item": rows[1_000:]})
    expect(lines.last).to_have_text("999item 999")
    expect(state).to_have_text("1000 rows at transaction 105")


def test_the_page_of_a_server(server: Served, page: Page) -> None:
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text))
    tell(server, {"insert": {"edge": [["a", "b"]]}})
    page.goto(server.url)
    expect(page.locator("h1")).to_contain_text("Vigilog")
    assert page.locator("pre").first.evaluate("one => getComputedStyle(one).backgroundColor") != "rgba(0, 0, 0, 0)", "its style is let in"
    assert not errors
    page.get_by_role("link", name="closure").click()
    expect(page.locator("body")).to_contain_text('"rows":[["a","b"]]')


def tell(server: Served, transaction: object) -> None:
    httpx.post(f"{server.url}/v1/transactions", json=transaction).raise_for_status()
