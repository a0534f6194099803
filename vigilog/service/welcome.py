"""`GET /`: what this is, where it is described, how to subscribe. Programs are answered in JSON, browsers with a page."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from string import Template
from urllib.parse import quote

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from vigilog import __version__
from vigilog.core.errors import VigilogError
from vigilog.protocol.calls import Welcome
from vigilog.protocol.messages import Column
from vigilog.service.context import Context, answered
from vigilog.service.openapi import REFUSALS, answers

ABOUT = "A Vigilog server: views over data that tell every holder of a copy exactly what changed."
PAGE = Template((Path(__file__).with_name("welcome.html")).read_text(encoding="utf-8"))
POLICY = {"Content-Security-Policy": "default-src 'none'; img-src data:; style-src 'unsafe-inline'", "Vary": "Accept"}


def welcome(context: Context) -> APIRouter:
    router = APIRouter(responses=REFUSALS)

    @router.get("/", responses=answers(Welcome, also="text/html"))
    async def root(request: Request) -> Response:
        """What this is. The views are those that the caller may read; who may not come in at all is told the rest."""
        try:
            rights = context.gate.admit(request)
            views = {name: context.columns(name) for name in context.db.outputs if rights.may_read(name)}
        except VigilogError:
            views = {}
        if wants_page(request.headers.get("accept", "")):
            return HTMLResponse(page(f"{request.url.scheme}://{request.url.netloc}", views), headers=POLICY)
        view = next(iter(views), "VIEW")
        answer = Welcome(
            about=ABOUT,
            version=__version__,
            views={name: f"/v1/views/{quote(name)}" for name in views},
            message={"subscribe": {"view": view}},
            events=f"/v1/changes?view={quote(view)}",
        )
        return answered(answer, headers={"Vary": "Accept"})

    return router


def wants_page(accept: str) -> bool:
    """Whether somebody would rather have a page than JSON.

    >>> [wants_page(accept) for accept in ("text/html,*/*;q=0.8", "*/*", "", "application/json, text/html;q=0.5", "text/html; q=0")]
    [True, False, False, False, False]
    """
    page, json = (re.search(rf"{kind}\s*(?:;\s*q=([0-9.]*))?", accept) for kind in ("text/html", "application/json"))
    return _quality(page) > _quality(json)


def _quality(match: re.Match[str] | None) -> float:
    try:
        return 0.0 if match is None else float(match[1] or 1.0)
    except ValueError:
        return 0.0


def page(server: str, views: dict[str, list[Column]]) -> str:
    shown = ", ".join(f'<a href="/v1/views/{quote(name)}">{escape(name)}</a>' for name in views)
    view, columns = next(iter(views.items()), ("VIEW", [Column("x", "symbol")]))
    return PAGE.substitute(
        about=ABOUT,
        version=__version__,
        views=f"Views: {shown}." if views else 'The views are listed by <a href="/v1/views">/v1/views</a>.',
        server=escape(server),
        socket=escape("ws" + server.removeprefix("http")),
        view=escape(view),
        goal=escape(f"{view}({', '.join(column.name for column in columns)})"),
    )
