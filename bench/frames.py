"""`bench frames`: what a complex view costs beside the same rules, loops and classes written by hand. All figures are ratios within one run."""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from bench.options import Options
from vigilog.client.objects import Graph
from vigilog.core.delta import Delta
from vigilog.engine.database import Database
from vigilog.engine.nested import nest, shape_of
from vigilog.language.check import check
from vigilog.protocol.shapes import Shape

FRAMES = """
class Employee with attribute dept: Department; boss: Manager end
class Department with attribute head: Manager end
class Manager isA Employee end
view Emp isA Employee with attribute dept: Department with attribute head: Manager end end
"""
TEAMS = FRAMES + "view TeamOf(boss: Manager) isA Employee with attribute dept: Department constraint : $ (this boss ~boss) $ end"
BY_HAND = """
.decl Employee(x: symbol) .decl Department(x: symbol) .decl Manager(x: symbol)
.decl Employee_dept(x: symbol, y: symbol) .decl Department_head(x: symbol, y: symbol)
.input Employee .input Department .input Manager .input Employee_dept .input Department_head
.decl Emp(x: symbol) .decl EmpDept(x: symbol) .decl Emp_dept(x: symbol, y: symbol) .decl EmpDept_head(x: symbol, y: symbol)
.output Emp .output EmpDept .output Emp_dept .output EmpDept_head
Employee(x) :- Manager(x).
Emp(x) :- Employee(x).
EmpDept(y) :- Emp(x), Employee_dept(x, y), Department(y).
Emp_dept(x, y) :- Emp(x), Employee_dept(x, y), EmpDept(y).
EmpDept_head(x, y) :- EmpDept(x), Department_head(x, y), Manager(y).
"""
Rows = dict[str, list[tuple[str, ...]]]


@dataclass
class Ratio:
    """A figure, and the most that it should be."""

    what: str
    value: float
    most: float

    def __str__(self) -> str:
        return f"{self.what:<72} {self.value:6.2f}   at most {self.most:.2f}   {'ok' if self.value <= self.most else 'MISSED'}"


@dataclass(eq=False, slots=True)
class PlainDept:
    id: str
    head: set[str] = field(default_factory=set)


@dataclass(eq=False, slots=True)
class PlainEmp:
    id: str
    dept: set[PlainDept] = field(default_factory=set)


def rows(employees: int) -> Rows:
    departments = max(1, employees // 20)
    return {
        "Employee": [(f"e{number}",) for number in range(employees)],
        "Department": [(f"d{number}",) for number in range(departments)],
        "Manager": [(f"m{number}",) for number in range(departments)],
        "Employee_dept": [(f"e{number}", f"d{number % departments}") for number in range(employees)],
        "Department_head": [(f"d{number}", f"m{number}") for number in range(departments)],
    }


def maintained(given: Rows, times: int) -> Iterator[Ratio]:
    spent: dict[str, list[float]] = {"frame": [], "hand": []}
    with Database(check(FRAMES).program, given) as frame, Database(check(BY_HAND).program, given) as hand:
        for number in range(times):
            person, place = given["Employee_dept"][number]
            for change in ({"Employee_dept": [[person, place]]}, {"Department": [[place]]}):
                for operation in ("delete", "insert"):
                    for name, database in (("frame", frame), ("hand", hand)):
                        began = time.perf_counter()
                        database.apply({operation: change})
                        spent[name].append(time.perf_counter() - began)
    yield Ratio(
        "maintaining a frame's relations, beside the same rules by hand",
        statistics.median(spent["frame"]) / statistics.median(spent["hand"]),
        1.05,
    )


def extracted(given: Rows) -> Iterator[Ratio]:
    with Database(check(FRAMES).program, given) as database:
        shape = shape_of(database.program, "Emp")
        flat = {relation: frozenset(database.view(relation)) for relation in shape.relations}
        relations = database.program.relations
    nested = best(lambda: nest(shape, flat, lambda relation: relations[relation].types))
    yield Ratio("first extraction, beside a loop over the four relations", nested / best(lambda: by_loop(flat)), 2.0)
    yield Ratio(
        "memory of client objects, beside dataclasses with sets", memory(lambda: graph(shape, flat)) / memory(lambda: plain(flat)), 3.0
    )
    patched = graph(shape, flat)
    place = next(iter(patched.parts["EmpDept"]))[0]
    events = patched.apply({"EmpDept_head": Delta(plus=frozenset({(place, "somebody new")}))})
    yield Ratio("objects that a change of a shared department patches", len(events), 1.0)


def parameters(given: Rows, times: int, few: int, many: int) -> Iterator[Ratio]:
    spent: dict[int, float] = {}
    for number in (few, many):
        bosses = given["Manager"][:number]
        more: Rows = {**given, "Employee_boss": [(f"e{place}", bosses[place % len(bosses)][0]) for place in range(len(given["Employee"]))]}
        with Database(check(TEAMS).program, more) as database:
            found = []
            for person, boss in more["Employee_boss"][:times]:
                for operation in ("delete", "insert"):
                    began = time.perf_counter()
                    database.apply({operation: {"Employee_boss": [[person, boss]]}})
                    found.append(time.perf_counter() - began)
            spent[number] = statistics.median(found)
    yield Ratio(f"a change under {many} parameters of one view, beside {few}", spent[many] / spent[few], 2.0)


def by_loop(flat: dict[str, frozenset[Any]]) -> list[dict[str, Any]]:
    heads: dict[str, list[str]] = {}
    for dept, head in flat["EmpDept_head"]:
        heads.setdefault(dept, []).append(head)
    depts = {dept: {"id": dept, "head": sorted(heads.get(dept, []))} for (dept,) in flat["EmpDept"]}
    of: dict[str, list[str]] = {}
    for person, dept in flat["Emp_dept"]:
        of.setdefault(person, []).append(dept)
    return [{"id": person, "dept": [depts[dept] for dept in sorted(of.get(person, []))]} for (person,) in sorted(flat["Emp"])]


def graph(shape: Shape, flat: dict[str, frozenset[Any]]) -> Graph:
    found = Graph(shape)
    found.replace(flat)
    return found


def plain(flat: dict[str, frozenset[Any]]) -> tuple[dict[str, PlainEmp], dict[str, PlainDept]]:
    depts = {dept: PlainDept(dept) for (dept,) in flat["EmpDept"]}
    people = {person: PlainEmp(person) for (person,) in flat["Emp"]}
    for dept, head in flat["EmpDept_head"]:
        depts[dept].head.add(head)
    for person, dept in flat["Emp_dept"]:
        people[person].dept.add(depts[dept])
    return people, depts


def best(work: Callable[[], Any]) -> float:
    found = []
    for _ in range(5):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return min(found)


def memory(work: Callable[[], Any]) -> int:
    """What the result of some work takes."""
    tracemalloc.start()
    kept = work()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    return taken


def main(options: Options) -> int:
    given = rows(5_000 if options.quick else 100_000)
    times = 50 if options.quick else 300
    few, many = (10, 250) if options.quick else (10, 5_000)
    missed = 0
    for found in (maintained(given, times), extracted(given), parameters(given, times, few, many)):
        for ratio in found:
            print(ratio, flush=True)
            missed += ratio.value > ratio.most
    return 1 if missed and not options.quick else 0
