"""The objects of a view frame in a client's memory, against a real server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.service.conftest import Serve
from tests.service.serving import Served
from vigilog.client import connect
from vigilog.client.admin import ViewAdmin
from vigilog.client.objects import Object, ObjectName
from vigilog.codegen.python import python
from vigilog.core.errors import DataError, UsageError
from vigilog.language.check import check
from vigilog.language.frames.translate import shapes

pytestmark = pytest.mark.apart

PATIENCE = 60.0
ROOT = Path(__file__).parents[2]
STAFF = """
Class Employee with
  attribute dept: Department; boss: Manager
  attribute, single salary: Integer
end
Class Department with attribute head: Manager end
Class Manager isA Employee end
View Emp isA Employee with
  attribute
    dept: Department with attribute head: Manager end
    salary: Integer
end
"""
FACTS: dict[str, list[Any]] = {
    "Employee": [["ann"], ["bob"], ["eve"]],
    "Manager": [["carl"]],
    "Department": [["d1"], ["d2"]],
    "Employee_dept": [["ann", "d1"], ["bob", "d1"]],
    "Department_head": [["d1", "carl"]],
}


@pytest.fixture
def staff(serve: Serve) -> Served:
    server = serve(program=STAFF)
    with connect(server.url) as client:
        client.tell(insert=FACTS)
    return server


def shown(admin: ViewAdmin) -> list[dict[str, Any]]:
    """The objects as a nested answer has them."""

    def nested(each: Object, shape: Any) -> dict[str, Any]:
        found: dict[str, Any] = {"id": each.id}
        for slot in shape.slots:
            value = getattr(each, slot.label)
            inner = admin.graph.shape.parts.get(slot.part)
            if slot.single:
                found |= {} if value is None else {slot.label: value}
            elif inner is not None:
                found[slot.label] = [nested(other, inner) for other in sorted(value, key=lambda other: other.id)]
            else:
                found[slot.label] = sorted(other.id if isinstance(other, ObjectName) else other for other in value)
        return found

    return [nested(each, admin.graph.shape.main) for _, each in sorted(admin.objects.items())]


def test_objects_are_patched_in_place(staff: Served) -> None:
    with connect(staff.url) as client, client.enroll_frame("Emp") as admin:
        assert shown(admin) == client.nested("Emp")
        ann, bob = admin.objects["ann"], admin.objects["bob"]
        (d1,) = ann.dept
        assert bob.dept == {d1}, "a department is one object, which its employees share"
        (carl,) = d1.head
        assert isinstance(carl, ObjectName)
        happened: list[tuple[str, str, str]] = []
        kinds = {type(each).__name__: type(each) for each in (ann, d1)}
        for name, kind in kinds.items():
            admin.on_create(kind)(lambda each, name=name: happened.append(("create", name, each.id)))
            admin.on_delete(kind)(lambda each, name=name: happened.append(("delete", name, each.id)))
        admin.on_link(kinds["Emp"], "dept")(lambda each, other: happened.append(("link", each.id, other.id)))
        admin.on_unlink(kinds["Emp"], "dept")(lambda each, other: happened.append(("unlink", each.id, other.id)))
        assert admin.process_update_message(0) == 0
        client.tell(delete={"Employee": [["ann"]]})
        client.tell(insert={"Employee_dept": [["eve", "d2"]]})
        applied = 0
        while applied < 2:
            applied += admin.process_update_message(PATIENCE)
        assert happened == [("unlink", "ann", "d1"), ("delete", "Emp", "ann"), ("create", "EmpDept", "d2"), ("link", "eve", "d2")]
        assert not ann.alive and ann.dept == set() and ann.id == "ann"
        assert admin.objects["bob"] is bob and bob.dept == {d1}
        assert shown(admin) == client.nested("Emp")
        client.tell(delete={"Manager": [["carl"]]})
        assert admin.process_update_message(PATIENCE) == 1
        assert not carl.alive and d1.head == set()
        client.tell(upsert={"Employee_salary": [["bob", 7]]})
        assert admin.process_update_message(PATIENCE) == 1
        assert bob.salary == 7
        client.tell(upsert={"Employee_salary": [["bob", 8]]})
        assert admin.process_update_message(PATIENCE) == 1
        assert bob.salary == 8, "an old value goes before a new one comes"
        assert shown(admin) == client.nested("Emp")


def test_a_callback_that_fails_leaves_the_objects_right(staff: Served) -> None:
    with connect(staff.url) as client, client.enroll_frame("Emp") as admin:
        failed: list[Exception] = []
        admin.on_error(failed.append)

        @admin.on_delete(type(admin.objects["ann"]))
        def fail(each: Any) -> None:
            raise ValueError(each.id)

        client.tell(delete={"Employee": [["ann"], ["bob"]]})
        assert admin.process_update_message(PATIENCE) == 1
        assert [str(error) for error in failed] == ["ann", "bob"]
        assert shown(admin) == client.nested("Emp")


def test_objects_stay_the_same_over_a_restart(staff: Served) -> None:
    with connect(staff.url) as client, client.enroll_frame("Emp") as admin:
        bob = admin.objects["bob"]
        staff.kill()
        staff.start()
        client.tell(insert={"Employee_dept": [["bob", "d2"]]})
        assert admin.process_update_message(PATIENCE) == 1
        assert admin.objects["bob"] is bob
        assert sorted(each.id for each in bob.dept) == ["d1", "d2"]
        assert shown(admin) == client.nested("Emp")


def test_what_cannot_be_patched_is_refused(staff: Served) -> None:
    with connect(staff.url) as client:
        with pytest.raises(UsageError):
            client.enroll_frame("Emp", precision="counts")
        with pytest.raises(DataError) as refused:
            client.enroll_frame("Employee")
        assert refused.value.code == "unknown-relation"


def test_generated_classes(staff: Served, tmp_path: Path) -> None:
    known = shapes(check(STAFF).program)
    text = python(known, "staff.dl")
    assert python(known, "staff.dl") == text
    (tmp_path / "staff_objects.py").write_text(text)
    (tmp_path / "use.py").write_text(
        "from staff_objects import Emp, EmpAdmin, EmpDept\n"
        "from vigilog.client import connect\n\n\n"
        "def heads(admin: EmpAdmin) -> dict[str, list[str]]:\n"
        "    found: dict[str, list[str]] = {}\n"
        "    for id, each in sorted(admin.objects.items()):\n"
        "        emp: Emp = each\n"
        "        departments: set[EmpDept] = emp.dept\n"
        "        found[id] = sorted(head.id for dept in departments for head in dept.head)\n"
        "    return found\n\n\n"
        f"with connect({staff.url!r}) as client, EmpAdmin(client) as admin:\n"
        "    print(heads(admin))\n"
    )
    done = subprocess.run([sys.executable, "use.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "{'ann': ['carl'], 'bob': ['carl'], 'carl': [], 'eve': []}", done.stderr
    typed = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports", "silent", "use.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert typed.returncode == 0, typed.stdout
    formatted = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--line-length", "140", "--diff", "staff_objects.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert formatted.returncode == 0, formatted.stdout


def test_classes_of_another_version_are_told_what_differs(staff: Served) -> None:
    module: dict[str, Any] = {}
    exec(python(shapes(check(STAFF.replace("    salary: Integer\nend\n", "end\n")).program), "staff.dl"), module)
    with connect(staff.url) as client, pytest.raises(DataError) as refused:
        module["EmpAdmin"](client)
    assert refused.value.code == "redefined" and "salary" in refused.value.message
