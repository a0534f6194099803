"""Queries over what Spark holds: one that costs too much is dropped, the others and the views are exact."""

from __future__ import annotations

from pathlib import Path

from tests.folder.test_queries import ACCOUNTS, CHEAP, DEAR, odd
from vigilog.executors.allowance import Allowance, TooDear
from vigilog.folder.opening import open_program


def test_queries_on_spark_have_their_allowance(tmp_path: Path) -> None:
    with open_program(ACCOUNTS, {"acct": [(n, n + 1) for n in range(12)]}, data=tmp_path / "data", memory=1) as db:
        db.compact()
        assert db.large == {"acct"}
        told: list[TooDear] = []
        db.queries.listeners.append(told.append)
        dear, cheap = db.follow(DEAR).view, db.follow(CHEAP).view
        rows = db.view(cheap)
        assert rows == odd(db)
        db.queries.allowance = Allowance(rows=3000, seconds=600)
        deltas = db.apply({"insert": {"acct": [(12, 13)]}, "delete": {"acct": [(3, 4)]}})
        rows = deltas[cheap].apply(rows)
        assert rows == odd(db) and len(deltas[dear].plus) == 12**3 - 11**3 and not told
        many = [(n, n + 1) for n in range(30, 60)]
        assert dear not in db.what_if(insert={"acct": many}) and not told
        deltas = db.apply({"insert": {"acct": many}})
        assert [reason.queries for reason in told] == [{dear}] and db.queries.names == {cheap}
        assert deltas[cheap].apply(rows) == odd(db)
        assert db.verify().problems == []
