"""The objects of a view frame in a client's memory, against a real server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import playwright
import pytest

from tests.service.conftest import Serve
from tests.service.serving import Served, until
from vigilog import open as open_program
from vigilog.client import connect
from vigilog.client.admin import ViewAdmin
from vigilog.client.events import Change
from vigilog.client.objects import Object, ObjectName
from vigilog.codegen.python import python
from vigilog.codegen.typescript import typescript
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
        assert shown(admin) == client.view("Emp", nested=True)
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
        assert shown(admin) == client.view("Emp", nested=True)
        client.tell(delete={"Manager": [["carl"]]})
        assert admin.process_update_message(PATIENCE) == 1
        assert not carl.alive and d1.head == set()
        client.tell(upsert={"Employee_salary": [["bob", 7]]})
        assert admin.process_update_message(PATIENCE) == 1
        assert bob.salary == 7
        client.tell(upsert={"Employee_salary": [["bob", 8]]})
        assert admin.process_update_message(PATIENCE) == 1
        assert bob.salary == 8, "an old value goes before a new one comes"
        assert shown(admin) == client.view("Emp", nested=True)


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
        assert shown(admin) == client.view("Emp", nested=True)


def test_objects_stay_the_same_over_a_restart(staff: Served) -> None:
    with connect(staff.url) as client, client.enroll_frame("Emp") as admin:
        bob = admin.objects["bob"]
        staff.kill()
        staff.start()
        client.tell(insert={"Employee_dept": [["bob", "d2"]]})
        assert admin.process_update_message(PATIENCE) == 1
        assert admin.objects["bob"] is bob
        assert sorted(each.id for each in bob.dept) == ["d1", "d2"]
        assert shown(admin) == client.view("Emp", nested=True)


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
        "    client.tell(delete={'Department_head': [['d1', 'carl']]})\n"
        "    print(admin.process_update_message(60), heads(admin))\n"
    )
    done = subprocess.run([sys.executable, "use.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    first = "{'ann': ['carl'], 'bob': ['carl'], 'carl': [], 'eve': []}"
    assert done.stdout.splitlines() == [first, "1 {'ann': [], 'bob': [], 'carl': [], 'eve': []}"], done.stderr
    assert_strict(tmp_path, "use.py")
    assert_formatted(tmp_path, "staff_objects.py")


def assert_strict(folder: Path, name: str) -> None:
    typed = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports", "silent", name],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert typed.returncode == 0, typed.stdout


def assert_formatted(folder: Path, name: str) -> None:
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--diff", name]
    formatted = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert formatted.returncode == 0, formatted.stdout


ODD = """
.type Tags = set<(number, symbol)>
.type Day <: date
.decl items(n: number, day: Day, price: decimal(6,2))
.input items
Class View from items(n) with
  attribute class: View; class_: Set; alive: View; set: Tags; constructor: Day; labels: Boolean; __init__: Real
  attribute, single day: Day from day; price: decimal(6,2) from price
end
Class Set isA View end
View ObjectName(Any: View, day: Day) isA View with
  attribute class: View; class_: Set with attribute alive: View; class: lambda end
    alive: lambda; set: Tags; constructor: Day; labels: Boolean; __init__: Real; day: Day; price: decimal(6,2)
  constraint : $ (this class ~Any) and (this day ~day) $
end
View ObjectNameAdmin isA Set end
View lambda isA View with attribute class: lambda end
"""


def test_generated_names_give_way(tmp_path: Path) -> None:
    """Words of the language, names of the module, attributes that hide types: the classes are typed, and can be made."""
    text = python(shapes(check(ODD).program), "odd.dl")
    (tmp_path / "odd.py").write_text(text)
    assert_strict(tmp_path, "odd.py")
    assert_formatted(tmp_path, "odd.py")
    module: dict[str, Any] = {"__name__": "odd"}
    exec(compile(text, "odd.py", "exec"), module)
    made = module["ObjectName_"](7)
    assert [label for label, _ in made.labels] == [
        "class__",
        "class_",
        "alive_",
        "set_",
        "constructor",
        "labels_",
        "init__",
        "day",
        "price",
    ]
    assert made.class__ == set() and made.day is None
    assert {"lambda_", "ObjectNameAdmin", "ObjectNameAdmin_", "ObjectNameAdminAdmin"} <= set(module)


def compiler() -> list[str]:
    """TypeScript's; nothing, where npx has none, as `./run check` says."""
    npx = shutil.which("npx")
    command = [npx, "--yes", "--package=typescript@5.9.3", "tsc"] if npx else []
    return command if command and subprocess.run([*command, "--version"], capture_output=True, check=False).returncode == 0 else []


@pytest.mark.parametrize("name", ["staff", "odd"])
def test_generated_typescript(staff: Served, tmp_path: Path, name: str) -> None:
    """It is what tsc calls strictly right, and runs against a server: in a Node that takes types for blanks."""
    known = shapes(check(STAFF if name == "staff" else ODD).program)
    text = typescript(known, f"{name}.dl", "number" if name == "staff" else "bigint")
    assert typescript(known, f"{name}.dl", "number" if name == "staff" else "bigint") == text
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "vigilog").symlink_to(ROOT / "vigilog" / "client" / "javascript")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / f"{name}_objects.ts").write_text(text)
    (tmp_path / "use.ts").write_text(USE[name].replace("URL", staff.url))
    node = str(Path(playwright.__file__).parent / "driver" / "node")
    done = subprocess.run([node, "use.ts"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == SAID[name], done.stderr
    if tsc := compiler():
        strict = [
            "--strict",
            "--noImplicitOverride",
            "--noUnusedLocals",
            "--exactOptionalPropertyTypes",
            "--verbatimModuleSyntax",
            "--noEmit",
        ]
        of = ["--allowImportingTsExtensions", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom,dom.iterable"]
        typed = subprocess.run([*tsc, *strict, *of, "use.ts"], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert typed.returncode == 0, typed.stdout


USE = {
    "staff": """
import { connect } from "vigilog";
import { Emp, EmpAdmin, type EmpDept } from "./staff_objects.ts";

const client = connect("URL");
const admin = await EmpAdmin.open(client);
const heads = () => [...admin.objects.values()].map(({ id, dept }) => `${id}: ${[...dept].flatMap((each: EmpDept) => [...each.head].map((head) => head.id))}`);
console.log(heads().join("; "));
admin.onUnlink(Emp, "salary", (emp, salary: number) => console.log(emp.id.toUpperCase(), "had", salary + 0));
admin.onLink(Emp, "dept", (emp, dept) => console.log(emp.id, "is in", dept.id, dept.head.size));
await client.tell({ upsert: { Employee_salary: [["bob", 7]] } });
await client.tell({ upsert: { Employee_salary: [["bob", 8]] }, insert: { Employee_dept: [["eve", "d2"]] } });
for (let applied = 0; applied < 2; ) applied += await admin.processUpdateMessage(60);
const salary: number | null | undefined = admin.objects.get("bob")?.salary;
console.log(salary);
// @ts-expect-error it has no such attribute
const nothing = () => admin.objects.get("bob")?.pay;
// @ts-expect-error ids are texts
const number = () => admin.objects.get(7);
console.log(typeof nothing, typeof number);
client.close();
""",
    "odd": """
import { ObjectName_, ObjectNameAdmin, ObjectNameAdmin_, type lambda } from "./odd_objects.ts";

const made: ObjectName_ = new ObjectName_(7n);
const tags: ReadonlySet<readonly (readonly [bigint, string])[]> = made.set;
const others: ReadonlySet<lambda> = made.alive_;
const [day, price]: (string | null)[] = [made.day, made.price];
console.log(ObjectNameAdmin_.frame, ObjectNameAdmin.name, made.id + 1n, tags.size, others.size, day, price, made.constructor_.size, made.labels.size);
console.log(ObjectName_.labels.map(([label]) => label).join(" "));
""",
}
SAID = {
    "staff": ["ann: carl; bob: carl; carl: ; eve: ", "BOB had 7", "eve is in d2 0", "8", "function function"],
    "odd": ["ObjectName ObjectNameAdmin 8n 0 0 null null 0 0", "class class_ alive_ set constructor_ labels __init__ day price"],
}


def test_classes_of_another_version_are_told_what_differs(staff: Served) -> None:
    module: dict[str, Any] = {}
    exec(python(shapes(check(STAFF.replace("    salary: Integer\nend\n", "end\n")).program), "staff.dl"), module)
    with connect(staff.url) as client:
        with pytest.raises(DataError) as refused:
            module["EmpAdmin"](client)
        assert refused.value.code == "redefined" and "Emp.salary is new: number" in refused.value.message
        exec(python(shapes(check(STAFF.replace("single\n", "").replace("attribute, single", "attribute")).program), "staff.dl"), module)
        with pytest.raises(DataError) as refused:
            module["EmpAdmin"](client)
        assert "Emp.salary is number now, and was set of number" in refused.value.message


def test_a_message_that_is_only_looked_at_is_applied_later(staff: Served) -> None:
    with connect(staff.url) as client, client.enroll_frame("Emp") as admin:
        assert admin.get_notification_message(0.05) is None
        client.tell(delete={"Employee": [["ann"]]})
        client.tell(delete={"Employee": [["bob"]]})
        change = admin.get_notification_message(PATIENCE)
        assert isinstance(change, Change) and change.views["Emp"].minus == {("ann",)}
        assert "ann" in admin.objects and client.ask('Emp("ann")').rows == (), "calls are not kept waiting"
        applied = 0
        while applied < 2:
            applied += admin.process_update_message(PATIENCE)
        assert sorted(admin.objects) == ["carl", "eve"]
        with pytest.raises(UsageError, match="no attribute dpt; it has dept, salary"):
            admin.on_link("Emp", "dpt")
        with pytest.raises(UsageError, match="no class Empl"):
            admin.on_create("Empl")


def test_a_thread_of_its_own(staff: Served) -> None:
    with connect(staff.url) as client, client.enroll_frame("Emp") as admin:
        come = threading.Event()

        @admin.on_create("EmpDept")
        def told(each: Object) -> None:
            assert each.id == "d2" and [emp.id for emp in admin.objects.values() if each in emp.dept] == ["eve"]
            come.set()

        admin.run()
        client.tell(insert={"Employee_dept": [["eve", "d2"]]})
        assert come.wait(PATIENCE)


def test_a_gap_is_one_change(serve: Serve) -> None:
    server = serve("--limit", "part=3", program=STAFF + ".decl seen(n: number) .input seen")
    server.kill()
    open_program(server.folder / "program.dl", data=server.data, retain={"transactions": 3}).close()
    server.start()
    with connect(server.url) as client:
        client.tell(insert=FACTS)
        with client.enroll_frame("Emp") as admin:
            bob, (d1,), happened = admin.objects["bob"], admin.objects["bob"].dept, list[str]()
            admin.on_delete("Emp")(lambda each: happened.append(f"delete {each.id}"))
            admin.on_link("Emp", "dept")(lambda each, other: happened.append(f"link {each.id} {other.id}"))
            server.kill()
            lines = [{"insert": {"seen": [[number]]}} for number in range(10)]
            changes = [{"delete": {"Employee": [["ann"]]}}, {"insert": {"Employee_dept": [["eve", "d1"]]}}]
            told = "\n".join(map(json.dumps, [*changes, *lines]))
            command = [sys.executable, "-m", "vigilog.cli.main", "tell", str(server.data)]
            subprocess.run(command, input=told, text=True, check=True, capture_output=True)
            server.start()
            assert admin.process_update_message(PATIENCE) == 1
            assert happened == ["delete ann", "link eve d1"]
            assert admin.objects["bob"] is bob and admin.objects["eve"].dept == {d1}
            assert shown(admin) == client.view("Emp", nested=True)


def test_user_and_tool_are_known(staff: Served) -> None:
    with connect(staff.url, tool="Löhne") as client, client.enroll_frame("Emp"):
        client.ask("Emp(x)")
        status = client.status()
        assert {"user": "", "tool": "Löhne", "calls": 2, "subscriptions": 1} in status["clients"]
        assert [one["tool"] for one in status["subscriptions"]] == ["Löhne"]
        with pytest.raises(DataError):
            client.ask("Emp(")
    until(lambda: [line["tool"] for line in staff.logged("left")] == ["Löhne"])
    assert [line["views"][0] for line in staff.logged("subscribed")] == ["Emp"]
    assert [line["tool"] for line in staff.logged("refused")] == ["Löhne"]
    assert len([line for line in staff.logged("client") if line["tool"] == "Löhne"]) == 1
    with pytest.raises(UsageError):
        connect(staff.url, tool="two\nlines")


def test_nested_answers_of_some_parameters(serve: Serve) -> None:
    server = serve(
        program=STAFF + "View TeamOf(x: Manager) isA Employee with attribute salary: Integer constraint : $ (this boss ~x) $ end"
    )
    with connect(server.url) as client:
        client.tell(
            insert={**FACTS, "Employee_boss": [["ann", "carl"], ["bob", "carl"], ["bob", "cleo"]], "Employee_salary": [["ann", 2**60]]}
        )
        client.tell(insert={"Manager": [["cleo"]]})
        found = client.view("TeamOf", {"x": "cleo"}, nested=True)
        assert found == [{"id": "bob", "params": {"x": "cleo"}}]
        assert client.view("TeamOf", {"x": "cleo"}, 1, nested=True) == []
        assert len(client.view("TeamOf", nested=True)) == 3
        for bind in ({"id": "bob"}, {"y": "bob"}):
            with pytest.raises(DataError) as refused:
                client.view("TeamOf", bind, nested=True)
            assert refused.value.code == "column"
    text = server.get("/v1/views/TeamOf?nested=true&bind.x=carl&integers=text")["objects"]
    assert text == [{"id": "ann", "params": {"x": "carl"}, "salary": str(2**60)}, {"id": "bob", "params": {"x": "carl"}}]


def test_a_frame_that_is_declared_anew_ends_what_follows_it(staff: Served) -> None:
    """Its relations so far would be half of it; one that stays as it is goes on."""
    anew = "View Emp isA Employee with attribute dept: Department with attribute head: Manager end salary: Integer; boss: Manager end"
    with connect(staff.url) as client, client.enroll_frame("Emp") as admin:
        client.define("View Other isA Employee end")
        client.tell(delete={"Employee": [["ann"]]})
        assert admin.process_update_message(PATIENCE) == 1
        client.define(anew)
        with pytest.raises(DataError) as ended:
            admin.process_update_message(PATIENCE)
        assert ended.value.code == "definition" and "Emp" in ended.value.message
        with client.enroll_frame("Emp") as fresh:
            client.tell(insert={"Employee_boss": [["bob", "carl"]]})
            assert fresh.process_update_message(PATIENCE) == 1
            assert shown(fresh) == client.view("Emp", nested=True)
        client.drop("Emp")
        assert [view.name for view in client.views()] == ["Other"]
