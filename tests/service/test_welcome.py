"""`GET /`: what a newcomer is told, and that it is true."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.service.conftest import Serve
from tests.service.serving import Served
from vigilog.service.access import add_token

pytestmark = pytest.mark.apart

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def test_programs_are_told_where_things_are(shared: Served) -> None:
    said = shared.get("/")
    assert said["views"]["closure"] == "/v1/views/closure" and "Vigilog" in said["about"]
    for place in (said["api"], said["health"], said["metrics"], said["client"], *said["views"].values()):
        assert shared.call("GET", place).status_code == 200, place
    with shared.socket() as talk:
        assert said["websocket"] == "/v1/subscribe"
        talk.say(**said["message"])
        assert talk.hear("subscribed")
    with httpx.stream("GET", shared.url + said["events"]) as events:
        assert next(events.iter_lines()) == "event: subscribed"


def test_browsers_are_shown_a_page(shared: Served) -> None:
    found = shared.call("GET", "/", headers=BROWSER)
    assert found.headers["Content-Type"] == "text/html; charset=utf-8" and found.headers["Vary"] == "Accept"
    assert f"curl {shared.url}/v1/views/closure" in found.text and "closure(x, y)" in found.text and "$" not in found.text
    for accept in ("*/*", "application/json", "application/json, text/html;q=0.1"):
        assert shared.call("GET", "/", headers={"Accept": accept}).headers["Content-Type"] == "application/json"


def test_what_a_browser_sends_is_not_shown_as_it_is(shared: Served) -> None:
    found = shared.call("GET", "/", headers=BROWSER | {"Host": "<script>alert(1)</script>"})
    assert "<script>" not in found.text


def test_names_of_views_are_for_those_who_may_read_them(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    token = add_token(file, "ann", ["degree"], [], define=False)
    server = serve("--tokens", str(file))
    for headers, views in (({}, []), ({"Authorization": "Bearer no"}, []), ({"Authorization": f"Bearer {token}"}, ["degree"])):
        assert list(httpx.get(server.url, headers=headers).json()["views"]) == views
        page = httpx.get(server.url, headers=BROWSER | headers)
        assert page.status_code == 200 and "closure" not in page.text and ("degree" in page.text) == bool(views)


@pytest.mark.parametrize("path", ["/nothing", "/v1", "/v1/viewss", "//"])
def test_a_path_that_there_is_not(shared: Served, path: str) -> None:
    found = shared.call("GET", path)
    assert found.status_code == 404 and found.json()["error"]["code"] == "unknown-path"
