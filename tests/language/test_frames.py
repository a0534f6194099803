"""Class and view frames: what they read, what they become, what they mean, case by case."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vigilog.core.errors import DataError, ProgramError, VigilogError
from vigilog.engine import nested
from vigilog.engine.database import Database
from vigilog.engine.watch import watch
from vigilog.folder.definitions import defined, dropped
from vigilog.language.check import check
from vigilog.language.parser import parse
from vigilog.language.printer import show, show_statement
from vigilog.language.written import kept, read_again

STAFF = """
Class Employee with
  attribute dept: Department; boss: Manager
  attribute, single salary: Integer
end
Class Department with attribute head: Manager end
Class Manager isA Employee end
"""
PAPER = """
Class Employee with
  attribute
  dept: Department
  ...
end

Class Department with
  attribute
  head: Manager
  ...
end

Class Manager end
View Emp isA Employee with
  attribute
    dept: Department with
      attribute
        head: Manager
      constraint
        : $...$
    end
  constraint
    : $...$
end
"""
SALARY = """
Class Employee with
...
constraint
  salaryIC: $ forall m/Manager s1,s2/Integer
    (this boss m) and (this salary s1)
    and (m salary s2) ==> (s1 < s2) $
end
"""
ROWS: dict[str, list[tuple[Any, ...]]] = {
    "Employee": [("ann",), ("bob",)],
    "Manager": [("carl",), ("cleo",)],
    "Department": [("d1",), ("d2",)],
    "Employee_dept": [("ann", "d1"), ("bob", "d2"), ("bob", "d9")],
    "Department_head": [("d1", "carl"), ("d2", "ann")],
    "Employee_boss": [("ann", "carl"), ("bob", "carl"), ("bob", "cleo")],
    "Employee_salary": [("ann", 10), ("bob", 20), ("carl", 50)],
}


def rules(text: str, of: str) -> list[str]:
    return [show_statement(rule) for rule in check(text).program.rules if rule.heads[0].relation == of]


def views(text: str, rows: dict[str, list[tuple[Any, ...]]], *names: str) -> list[set[tuple[Any, ...]]]:
    with Database(check(text).program, rows) as database:
        return [database.view(name) for name in names]


def codes(text: str) -> list[str]:
    with pytest.raises(ProgramError) as refused:
        check(text)
    return [found.code for found in refused.value.findings]


def test_the_listings_of_the_paper_are_read_as_printed() -> None:
    found = check(PAPER)
    assert [warning.code for warning in found.warnings] == ["elision"] * 4
    assert parse(show(parse(PAPER))) == parse(PAPER)
    with_salary = parse(SALARY).frames[0]
    assert with_salary.sections[1].formulas[0].label == "salaryIC"  # type: ignore[union-attr]


def test_a_complex_view_becomes_a_main_view_and_subviews() -> None:
    program = check(PAPER).program
    assert program.outputs == ("Emp", "EmpDept", "EmpDept_head", "Emp_dept")
    assert rules(PAPER, "Emp_dept") == ["Emp_dept(x, y) :- Emp(x), Employee_dept(x, y), EmpDept(y)."]
    assert rules(PAPER, "EmpDept") == ["EmpDept(y) :- Emp(x), Employee_dept(x, y), Department(y)."]


@pytest.mark.parametrize(
    "word",
    [
        "class",
        "view",
        "with",
        "end",
        "isA",
        "attribute",
        "single",
        "necessary",
        "rule",
        "constraint",
        "from",
        "in",
        "of",
        "forall",
        "exists",
        "and",
        "or",
        "not",
        "A",
        "In",
    ],
)
def test_words_of_frames_are_names_elsewhere(word: str) -> None:
    if word in ("in", "or", "not", "and"):
        word += "_"
    text = f".decl {word}({word}: symbol)\n.input {word}\n.decl view_(x: symbol)\n.output {word}, view_\nview_({word}) :- {word}({word}).\nclass C end"
    program = check(text).program
    assert word in program.relations and "C" in program.relations


def test_a_directive_before_a_statement_begins_no_frame() -> None:
    text = ".decl class(x: symbol) .decl view(x: symbol)\n.input class\nview(x) :- class(x).\n.output view\nclass view end_\n end"
    assert not parse(".decl class(x: symbol) .decl view(x: symbol)\n.input class\nview(x) :- class(x).\n.output view").frames
    assert codes(text) == ["syntax"]


def test_telos_spelling() -> None:
    telos = "{* people *} Person in Class end\nEmployee in Class isA Person with\n attribute boss: Employee\nend\nView V isA Employee with retrieved_attribute boss: Employee end"
    assert (
        parse(telos).frames
        == parse(
            "class Person end class Employee isA Person with attribute boss: Employee end view V isA Employee with attribute boss: Employee end"
        ).frames
    )


def test_programs_with_frames_are_kept_and_read_again() -> None:
    program = check(STAFF + SALARY + ".output Employee_dept_dangling", "staff.dl").program
    again = read_again(*kept(program))
    assert again == program and str(again.rules[-1].span) == str(program.rules[-1].span)


def test_links_are_seen_while_both_ends_are_objects() -> None:
    text = STAFF + "view V isA Employee with attribute dept: Department end .output Employee_dept_dangling"
    assert views(text, ROWS, "V_dept", "Employee_dept_dangling") == [{("ann", "d1"), ("bob", "d2")}, {("bob", "d9")}]
    with Database(check(text + " .constraint Employee_dept_dangling").program, {}) as database, pytest.raises(VigilogError) as refused:
        database.apply({"insert": {"Employee_dept": [["x", "y"]]}})
    assert refused.value.code == "constraint"


def test_who_was_told_to_be_both_stays() -> None:
    with Database(check(STAFF + ".output Employee").program, {"Employee": [("carl",)], "Manager": [("carl",), ("cleo",)]}) as database:
        database.apply({"delete": {"Manager": [["carl"], ["cleo"]]}})
        assert database.view("Employee") == {("carl",)}


def test_necessary_attributes_are_enforced() -> None:
    text = "class D end class C with attribute, necessary m: D; n: Integer end"
    with Database(check(text).program, {}) as database:
        with pytest.raises(VigilogError) as refused:
            database.apply({"insert": {"C": [["a"]], "C_n": [["a", 1]], "C_m": [["a", "d"]]}})
        assert refused.value.code == "constraint" and "C_m_missing" in str(refused.value)
        database.apply({"insert": {"C": [["a"]], "C_n": [["a", 1]], "C_m": [["a", "d"]], "D": [["d"]]}})
        with pytest.raises(VigilogError):
            database.apply({"delete": {"C_n": [["a", 1]]}})


def test_rules_derive_links_and_members() -> None:
    text = (
        STAFF
        + """class Employee with rule
        BossRule : $ forall m/Manager (exists d/Department (this dept d) and (d head m)) ==> (this boss m) $
        : $ (this dept "d1") ==> (this in Manager) $
      end .output Employee_boss .output Manager"""
    )
    found, managers = views(text, {**ROWS, "Employee_boss": []}, "Employee_boss", "Manager")
    assert managers == {("carl",), ("cleo",), ("ann",)}
    assert found == {("ann", "carl"), ("bob", "ann")}


def test_a_single_attribute_that_is_derived_is_enforced() -> None:
    text = "class C with attribute, single m: C; attribute n: C rule : $ forall c/C (this n c) ==> (this m c) $ end"
    with Database(check(text).program, {"C": [("a",), ("b",)]}) as database:
        with pytest.raises(VigilogError) as refused:
            database.apply({"insert": {"C_n": [["a", "a"], ["a", "b"]]}})
        assert "C_m_several" in str(refused.value)


def test_a_class_is_laid_over_a_table() -> None:
    text = """.decl employees(id: number, dept_id: symbol, pay: float)
      .input employees
      class D end
      class E from employees(id) with attribute dept: D from dept_id; attribute, single pay: Real from pay end
      class M isA E end
      view V isA E with attribute dept: D; pay: Real end"""
    rows: dict[str, list[tuple[Any, ...]]] = {"employees": [(1, "d", 2.5), (2, "x", 3.0)], "D": [("d",)], "M": [(7,)]}
    assert views(text, rows, "V", "V_dept", "V_pay") == [{(1,), (2,), (7,)}, {(1, "d")}, {(1, 2.5), (2, 3.0)}]
    with Database(check(text).program, rows) as database:
        assert database.nested("V") == [{"id": 1, "dept": ["d"], "pay": 2.5}, {"id": 2, "dept": [], "pay": 3.0}, {"id": 7, "dept": []}]


def test_a_subclass_may_narrow_an_attribute() -> None:
    text = "class A with attribute m: B end class B end class N isA B end class S isA A with attribute m: N end view V isA S with attribute m: N end"
    rows: dict[str, list[tuple[Any, ...]]] = {"S": [("s",)], "B": [("b",)], "N": [("n",)], "A_m": [("s", "b"), ("s", "n")]}
    assert views(text, rows, "V_m", "S_m_dangling") == [{("s", "n")}, {("s", "b")}]
    assert "S_m" not in check(text).program.relations


def test_views_inside_views_and_of_views() -> None:
    text = (
        STAFF
        + """view Head isA Manager with attribute salary: Integer constraint : $ exists s/Integer (this salary s) $ end
      view Staff isA Employee with attribute boss: Head end
      view Few isA Staff with constraint : $ (this in Manager) or (this boss "cleo") $ end"""
    )
    assert rules(text, "Staff_boss") == ["Staff_boss(x, y) :- Staff(x), Employee_boss(x, y), Head(y)."]
    with Database(check(text).program, ROWS) as database:
        assert database.nested("Staff")[0] == {"id": "ann", "boss": [{"id": "carl", "salary": 50}]}
        assert [each["id"] for each in database.nested("Few")] == ["carl", "cleo"]  # bob's boss cleo is no Head
        lines = list(
            watch(database, ['{"upsert": {"Employee_salary": [["carl", 60]]}}', '{"insert": {"Employee": [["zoe"]]}}'], nested=True)
        )
        assert set(lines[0]["nested"]) == {"Head", "Staff"} and set(lines[1]["nested"]) == {"Staff"}


def test_computed_attributes() -> None:
    text = (
        STAFF
        + """view V isA Employee with attribute
        far: dept.head; depts: count of dept; least: min of salary; sum_: sum of salary; mean_: mean of salary
      end"""
    )
    with Database(check(text).program, ROWS) as database:
        assert database.nested("V")[:2] == [
            {"id": "ann", "far": ["carl"], "depts": 1, "least": 10, "sum_": 10, "mean_": 10.0},
            {"id": "bob", "far": [], "depts": 1, "least": 20, "sum_": 20, "mean_": 20.0},
        ]
        assert database.nested("V")[3] == {"id": "cleo", "far": [], "depts": 0, "sum_": 0}


def test_parameters_are_the_first_columns() -> None:
    text = (
        STAFF
        + """view TeamOf(boss: Manager, least: Integer) isA Employee with
        attribute dept: Department with attribute head: Manager end
        constraint : $ (this boss ~boss) and (this salary ~least) $
      end"""
    )
    program = check(text).program
    assert program.relations["TeamOfDept_head"].columns == ("boss", "least", "x", "y")
    with Database(program, ROWS) as database:
        assert database.view("TeamOf") == {("carl", 10, "ann"), ("carl", 20, "bob"), ("cleo", 20, "bob")}
        assert database.nested("TeamOf")[0] == {
            "id": "ann",
            "params": {"boss": "carl", "least": 10},
            "dept": [{"id": "d1", "params": {"boss": "carl", "least": 10}, "head": ["carl"]}],
        }
    assert codes(text.replace("and (this salary ~least) ", "")) == ["unrestricted"]


def test_recursive_structure_is_one_graph() -> None:
    text = "class Part with attribute parts: Part end view Assembly isA Part with attribute parts: Assembly end"
    rows: dict[str, list[tuple[Any, ...]]] = {"Part": [("a",), ("b",)], "Part_parts": [("a", "b"), ("b", "a")]}
    with Database(check(text).program, rows) as database:
        assert database.nested("Assembly")[0] == {"id": "a", "parts": [{"id": "b", "parts": [{"ref": "a"}]}]}


def test_a_nested_answer_has_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    levels = 30
    monkeypatch.setattr(nested, "MOST_NESTED", 10_000)
    text = "class P with attribute parts: P end view V isA P with attribute parts: V end"
    parts = [(f"{side}{level}", f"{other}{level + 1}") for level in range(levels) for side in "ab" for other in "ab"]
    with Database(check(text).program, {"P": sorted({(end,) for pair in parts for end in pair}), "P_parts": parts}) as database:
        with pytest.raises(DataError) as refused:
            database.nested("V")
        assert refused.value.code == "large"
        assert len(database.view("V_parts")) == len(parts)


def test_a_frame_is_defined_and_dropped_as_a_whole() -> None:
    program = check(STAFF + "view Emp isA Employee with attribute dept: Department end").program
    changed = defined(program, "view Emp isA Employee with attribute boss: Manager end")
    assert "Emp_boss" in changed.relations and "Emp_dept" not in changed.relations
    assert "Emp" not in dropped(changed, "Emp").relations
    with pytest.raises(DataError) as refused:
        dropped(changed, "Department")
    assert refused.value.code == "needed"
    with pytest.raises(DataError):
        dropped(changed, "Employee_dept")


def test_depth_and_number_are_bounded() -> None:
    def deep(levels: int) -> str:
        inner = "attribute m: C"
        for _ in range(levels - 1):
            inner = f"attribute m: C with {inner} end"
        return f"class C with attribute m: C end view V isA C with {inner} end"

    assert check(deep(20)).program
    assert codes(deep(22)) == ["range"]
    assert codes("class C with attribute " + " ".join(f"a{number}: C" for number in range(101)) + " end") == ["range"]


def test_transactions_change_classes_and_not_views() -> None:
    with Database(check(STAFF + "view Emp isA Employee end").program, {}) as database:
        (line,) = watch(database, ['{"insert": {"Emp": [["zoe"]]}}'])
        assert line["error"]["code"] == "derived"
        (line,) = watch(database, [json.dumps({"insert": {"Employee_dept": [["ann", "d"]], "Employee": [["ann"]]}})])
        assert line["views"]["Emp"]["plus"] == [["ann"]]
