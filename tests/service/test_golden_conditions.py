"""The golden conditions through the service: a dry run and the transaction itself say what the case expects, and the outbox what alerts have reported."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conditions.test_golden import WITH_CONDITIONS
from tests.engine.test_changes import opened, told_lines
from tests.golden import Case
from vigilog.core.delta import Delta
from vigilog.folder.durable import Durable
from vigilog.language.program import Program
from vigilog.service.app import application


@pytest.mark.parametrize("case", WITH_CONDITIONS, ids=str)
def test_the_service_says_the_same(case: Case, tmp_path: Path) -> None:
    asyncio.run(told(case, tmp_path))


async def told(case: Case, folder: Path) -> None:
    db = opened(case, folder, "auto", data=folder / "data")
    assert isinstance(db, Durable)
    with db:
        app, hub = application(db)
        hub.start()
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
            for step in case.steps:
                before, expected = db.tx, step.expect
                headers = {"Content-Type": "application/json"}
                would = await client.post("/v1/transactions?dry_run=true", content=step.transaction, headers=headers)
                assert lines(db.program, would) == expected and db.tx == before, step.transaction
                found = await client.post("/v1/transactions", content=step.transaction, headers=headers)
                assert found.status_code == would.status_code == (STATUS[found.json()["error"]["code"]] if step.refused else 200)
                if step.refused:
                    assert lines(db.program, found) == expected and db.tx == before, step.transaction
                    continue
                said = found.json()
                counts = {name: (len(views["plus"]), len(views["minus"])) for name, views in would.json()["views"].items()}
                assert {name: (views["plus"], views["minus"]) for name, views in said["views"].items()} == counts
                assert said.get("alerts") == would.json().get("alerts") and said.get("triggered") == would.json().get("triggered")
                reported = [alert for _, alert in db.reports(before)]
                assert sorted(map(plain, reported)) == sorted(map(plain, said.get("alerts", [])))
        await hub.stop()


STATUS = {"constraint": 422, "conflict": 422, "cascade": 422, "key": 422}


def plain(report: dict[str, Any]) -> str:
    return json.dumps({name: value for name, value in report.items() if name != "at"}, sort_keys=True)


def lines(program: Program, found: httpx.Response) -> list[str]:
    """An answer as a case writes it."""
    said = found.json()
    if found.status_code != 200:
        return told_lines(program, {}, [], {}, said["error"])

    def delta(name: str, plus: list[Any], minus: list[Any]) -> Delta:
        types = program.relations[name].types
        rows = (frozenset(tuple(t.from_json(cell) for t, cell in zip(types, row, strict=True)) for row in side) for side in (plus, minus))
        return Delta(*rows)

    views = {name: delta(name, view["plus"], view["minus"]) for name, view in said["views"].items()}
    triggered = {name: delta(name, what["insert"], what["delete"]) for name, what in said.get("triggered", {}).items()}
    return told_lines(program, views, said.get("alerts", []), dict(sorted(triggered.items())))
