"""View frames as nested Spark frames: the same objects as the nested answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vigilog.core.errors import DataError
from vigilog.engine.database import Database
from vigilog.language.check import check

STAFF = """
class Employee with attribute dept: Department; boss: Manager; attribute, single salary: Integer end
class Department with attribute head: Manager end
class Manager isA Employee end
view Emp isA Employee with
  attribute dept: Department with attribute head: Manager; heads: count of head end
    salary: Integer
end
view TeamOf(boss: Manager) isA Employee with
  attribute dept: Department with attribute head: Manager end
  constraint : $ (this boss ~boss) $
end
view Chain isA Employee with attribute boss: Chain end
"""
FACTS: dict[str, list[tuple[Any, ...]]] = {
    "Employee": [("ann",), ("bob",), ("eve",)],
    "Manager": [("carl",), ("cleo",)],
    "Department": [("d1",), ("d2",)],
    "Employee_dept": [("ann", "d1"), ("bob", "d1"), ("bob", "d2"), ("eve", "d9")],
    "Employee_boss": [("ann", "carl"), ("bob", "carl"), ("bob", "cleo")],
    "Employee_salary": [("ann", 10)],
    "Department_head": [("d1", "cleo"), ("d1", "carl")],
}


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    return list(map(without_nulls, value)) if isinstance(value, list) else value


@pytest.mark.parametrize("engine", ["embedded", "spark"])
def test_frames_hold_the_nested_answer_on_spark(engine: str) -> None:
    with Database(check(STAFF).program, FACTS, engine=engine) as database:
        for view in ("Emp", "TeamOf"):
            frame = database.frame(view, nested=True)
            found = [without_nulls(row.asDict(recursive=True)) for row in frame.collect()]
            wanted = database.nested(view)
            assert sorted(found, key=json.dumps) == sorted(wanted, key=json.dumps)
        assert [row["id"] for row in database.frame("Emp", nested=True).collect()] == ["ann", "bob", "carl", "cleo", "eve"]
        with pytest.raises(DataError) as refused:
            database.frame("Chain", nested=True)
        assert refused.value.code == "recursive"
