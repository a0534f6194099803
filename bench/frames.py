"""`bench frames`: what a complex view costs beside the same rules, loops and classes written by hand. All figures are ratios of what takes turns in one run."""

from __future__ import annotations

import json
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.experiments import Experiments, Found
from bench.options import RESULTS, Options
from bench.targets import Target, at_most
from bench.watch.workloads import workloads
from vigilog.client import Client, connect
from vigilog.client.objects import Graph
from vigilog.core.delta import Delta
from vigilog.engine.database import Database
from vigilog.engine.nested import nest, shape_of
from vigilog.language.check import check
from vigilog.language.frames.cut import cut_frames
from vigilog.language.parser import parse
from vigilog.protocol.shapes import Shape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
NOTES = (
    "Times are medians, in milliseconds; what is compared takes turns in one run.",
    "100,000 employees in 5,000 departments, each with a head; the view has three levels (employee, department, head).",
    "*maintained*: a link, and a department, go and come, in memory; *hand* are the same rules in a program without frames.",
    "*extracted*: the nested answer, beside a Python loop over the four relations; *on Spark* beside a job written by hand over the same "
    "cached tables, all of whose rows are made.",
    "*patched*: from the commit in the server's process to the callback that sees the patched object, beside the callback of a plain copy of "
    "the four relations in the same client.",
    "*memory*: bytes for each object of the client's graph, beside plain dataclasses with slots and sets.",
    "*parameters*: a change of one link, under a view with so many parameters that have objects.",
    "*parsed*: the 80 integrity views of `bench watch`, with and without the search for frames.",
)
Rows = Mapping[str, list[tuple[str, ...]]]


@dataclass(eq=False, slots=True)
class PlainDept:
    id: str
    head: set[str] = field(default_factory=set)


@dataclass(eq=False, slots=True)
class PlainEmp:
    id: str
    dept: set[PlainDept] = field(default_factory=set)


def main(options: Options) -> int:
    return Experiments(
        "Frames",
        "ms, bytes, objects",
        NOTES,
        {
            "maintained": maintained,
            "extracted": extracted,
            "on Spark": on_spark,
            "patched": patched,
            "memory": memory,
            "parameters": parameters,
            "parsed": parsed,
        },
        judge,
    ).run(options)


def judge(found: Mapping[str, Found]) -> list[Target]:
    """A ratio for each promise."""
    promised = [
        ("maintaining a frame's relations ÷ the same rules by hand", "maintained", "frame", "hand", 1.05),
        ("first extraction ÷ a loop over the four relations", "extracted", "nested", "loop", 2.0),
        ("first extraction on Spark ÷ a job by hand", "on Spark", "nested", "job", 1.5),
        ("commit to patched object ÷ to a plain view's rows", "patched", "objects", "rows", 2.0),
        ("commit to patched object, 100,000 employees ÷ 1,000", "patched", "objects", "objects of 1,000", 1.5),
        ("memory of an object ÷ of plain dataclasses", "memory", "bytes an object", "bytes a plain one", 3.0),
        ("a change under 10,000 parameters ÷ under ten", "parameters", "many", "few", 2.0),
        ("parsing a program without frames ÷ without the search for them", "parsed", "with", "without", 1.02),
    ]
    targets = [
        at_most(what, found[name][one] / found[name][other], most, "×") for what, name, one, other, most in promised if name in found
    ]
    if "memory" in found:
        objects = found["memory"]["objects patched by a change of a shared department"]
        targets.append(at_most("objects that a change of a department of 10,000 patches", objects, 1))
    return targets


def in_turns(turns: Mapping[str, Callable[[], object]], times: int, warm: int = 1) -> Found:
    """The median milliseconds of each."""
    found: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(times + warm):
        for name, turn in turns.items():
            began = time.perf_counter()
            turn()
            found[name].append((time.perf_counter() - began) * 1000)
    return {name: statistics.median(values[warm:]) for name, values in found.items()}


def rows(employees: int, departments: int = 0, managers: int = 0) -> dict[str, list[tuple[str, ...]]]:
    departments = departments or max(1, employees // 20)
    managers = managers or departments
    return {
        "Employee": [(f"e{place}",) for place in range(employees)],
        "Department": [(f"d{place}",) for place in range(departments)],
        "Manager": [(f"m{place}",) for place in range(managers)],
        "Employee_dept": [(f"e{place}", f"d{place % departments}") for place in range(employees)],
        "Department_head": [(f"d{place}", f"m{place % managers}") for place in range(departments)],
    }


# -- in the engine


def maintained(quick: bool) -> Found:
    given = rows(2_000 if quick else 100_000)
    spent: dict[str, list[float]] = {"frame": [], "hand": []}
    with Database(check(FRAMES).program, given) as frame, Database(check(BY_HAND).program, given) as hand:
        databases = [("frame", frame), ("hand", hand)]
        for place in range(50 if quick else 1_000):
            person, dept = given["Employee_dept"][place]
            for change in ({"Employee_dept": [[person, dept]]}, {"Department": [[dept]]}):
                for operation in ("delete", "insert"):
                    for name, database in databases[:: 1 if place % 2 else -1]:
                        began = time.perf_counter()
                        database.apply({operation: change})
                        if place >= 10:
                            spent[name].append((time.perf_counter() - began) * 1000)
    return {name: statistics.mean(times) for name, times in ((name, _middle(times)) for name, times in spent.items())}


def _middle(times: list[float]) -> list[float]:
    """Without the tenth that took longest and the tenth that took shortest."""
    kept = sorted(times)
    return kept[len(kept) // 10 : -(len(kept) // 10) or None]


def flat_rows(given: Rows) -> tuple[Shape, dict[str, frozenset[Any]], Callable[[str], Any]]:
    with Database(check(FRAMES).program, given) as database:
        shape, relations = shape_of(database.program, "Emp"), database.program.relations
        return shape, {relation: frozenset(database.view(relation)) for relation in shape.relations}, lambda name: relations[name].types


def extracted(quick: bool) -> Found:
    shape, flat, types = flat_rows(rows(2_000 if quick else 100_000))
    assert nest(shape, flat, types) == by_loop(flat), "both make the same objects"
    return in_turns({"nested": lambda: nest(shape, flat, types), "loop": lambda: by_loop(flat)}, 3 if quick else 9)


def by_loop(flat: dict[str, frozenset[Any]]) -> list[dict[str, Any]]:
    heads: dict[str, list[str]] = {}
    for dept, head in flat["EmpDept_head"]:
        heads.setdefault(dept, []).append(head)
    depts = {dept: {"id": dept, "head": sorted(heads.get(dept, []))} for (dept,) in flat["EmpDept"]}
    of: dict[str, list[str]] = {}
    for person, dept in flat["Emp_dept"]:
        of.setdefault(person, []).append(dept)
    return [{"id": person, "dept": [depts[dept] for dept in sorted(of.get(person, []))]} for (person,) in sorted(flat["Emp"])]


def on_spark(quick: bool) -> Found:
    from vigilog.executors.spark.nested import nested_frame
    from vigilog.spark.session import session

    shape, flat, _ = flat_rows(rows(2_000 if quick else 100_000))
    spark = session()
    tables = {
        name: spark.createDataFrame(sorted(found), ["x"] if name in shape.parts else ["x", "y"]).cache() for name, found in flat.items()
    }
    for table in tables.values():
        table.count()

    def made(frame: DataFrame) -> None:
        frame.write.format("noop").mode("overwrite").save()

    ours, theirs = (frame.collect() for frame in (nested_frame(shape, tables.__getitem__), by_job(tables)))
    assert [tuple(row) for row in ours] == [tuple(row) for row in theirs], "both make the same objects"
    found = in_turns(
        {"nested": lambda: made(nested_frame(shape, tables.__getitem__)), "job": lambda: made(by_job(tables))}, 3 if quick else 9
    )
    for table in tables.values():
        table.unpersist()
    return found


def by_job(tables: Mapping[str, DataFrame]) -> DataFrame:
    """As one would write it."""
    from pyspark.sql import functions as F

    heads = tables["EmpDept_head"].groupBy("x").agg(F.sort_array(F.collect_list("y")).alias("head"))
    depts = tables["EmpDept"].join(heads, "x", "left")
    none = F.array().cast("array<string>")
    depts = depts.select(F.col("x").alias("y"), F.struct(F.col("x").alias("id"), F.coalesce("head", none).alias("head")).alias("dept"))
    links = tables["Emp_dept"].join(depts, "y").groupBy("x").agg(F.sort_array(F.collect_list("dept")).alias("dept"))
    none = F.array().cast(links.schema["dept"].dataType)
    return tables["Emp"].join(links, "x", "left").select(F.col("x").alias("id"), F.coalesce("dept", none).alias("dept")).orderBy("id")


def parameters(quick: bool) -> Found:
    many = 250 if quick else 10_000
    opened: dict[str, tuple[Database, list[tuple[str, str]]]] = {}
    given = rows(2_000 if quick else 100_000, managers=many)
    for name, bosses in (("few", 10), ("many", many)):
        links = [(person, f"m{place % bosses}") for place, (person,) in enumerate(given["Employee"])]
        opened[name] = Database(check(TEAMS).program, {**given, "Employee_boss": links}), links[:: max(1, len(links) // 300)]

    def turn(database: Database, links: list[tuple[str, str]]) -> Callable[[], object]:
        left = iter(links * 10)

        def change() -> None:
            link = next(left)
            database.apply({"delete": {"Employee_boss": [link]}})
            database.apply({"insert": {"Employee_boss": [link]}})

        return change

    found = in_turns({name: turn(*each) for name, each in opened.items()}, 50 if quick else 1_000, 20)
    for database, _ in opened.values():
        database.close()
    return found


def parsed(quick: bool) -> Found:
    text = next(one for one in workloads(quick=True) if one.name == "integrity").program.text

    def several() -> None:
        for _ in range(20):
            cut_frames(text)

    found = in_turns({"with": lambda: parse(text), "search, 20 times": several}, 5 if quick else 25)
    search = found.pop("search, 20 times") / 20
    return {**found, "without": found["with"] - search, "search": search}


# -- in the client


def memory(quick: bool) -> Found:
    shape, flat, _ = flat_rows(rows(2_000 if quick else 100_000))
    objects = len(flat["Emp"]) + len(flat["EmpDept"])
    ours, theirs = taken(lambda: graph(shape, flat)), taken(lambda: plain(flat))
    shape, flat, _ = flat_rows(rows(10_000, departments=1))
    events = graph(shape, flat).apply({"EmpDept_head": Delta(plus=frozenset({("d0", "somebody new")}))})
    return {
        "bytes an object": ours / objects,
        "bytes a plain one": theirs / objects,
        "objects patched by a change of a shared department": len({id(event.object) for event in events}),
    }


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


def taken(work: Callable[[], Any]) -> int:
    """The bytes that the result of some work takes."""
    tracemalloc.start()
    kept = work()
    found, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    return found


def patched(quick: bool) -> Found:
    small, large = (200, 2_000) if quick else (1_000, 100_000)
    times, rounds = (10, 1) if quick else (100, 4)
    found: dict[str, list[float]] = {}
    with served(rows(small)) as little, served(rows(large)) as big:
        for _ in range(rounds):
            for name, server, follow in (
                ("rows of 1,000", little, _rows),
                ("objects of 1,000", little, _objects),
                ("rows", big, _rows),
                ("objects", big, _objects),
            ):
                found.setdefault(name, []).extend(server.arrivals(follow, times))
    return {name: statistics.median(values) for name, values in found.items()}


Follow = Callable[[Client, Callable[[], None]], Callable[[], None]]


def _rows(client: Client, heard: Callable[[], None]) -> Callable[[], None]:
    """A plain copy of the four relations; gives how to end it."""
    views = client.enroll(["Emp", "Emp_dept", "EmpDept", "EmpDept_head"], on_change=lambda *_: heard())
    return views.close


def _objects(client: Client, heard: Callable[[], None]) -> Callable[[], None]:
    admin = client.enroll_frame("Emp")
    for told in (admin.on_link, admin.on_unlink):
        told("Emp", "dept")(lambda *_: heard())
    admin.run()
    return admin.close


@dataclass
class Server:
    url: str
    given: Rows
    commits: dict[int, float]  # when transactions were committed

    def arrivals(self, follow: Follow, times: int) -> list[float]:
        """Milliseconds from commits to those who hear of them."""
        moments, come = list[float](), threading.Event()

        def heard() -> None:
            moments.append(time.perf_counter())
            come.set()

        found = []
        with connect(self.url) as client:
            end = follow(client, heard)
            for place in range(times + 10):
                for operation in ("delete", "insert"):
                    come.clear()
                    tx = client.tell({operation: {"Employee_dept": [list(self.given["Employee_dept"][place])]}}).tx
                    assert come.wait(60), "the change has come"
                    while tx not in self.commits:
                        time.sleep(0.001)
                    found.append((moments[-1] - self.commits[tx]) * 1000)
            end()
        return found[20:]


@contextmanager
def served(given: Rows) -> Iterator[Server]:
    RESULTS.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=RESULTS))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    try:
        (folder / "program.dl").write_text(FRAMES, encoding="utf-8")
        command = [sys.executable, "-m", "bench.frames_server", str(folder / "program.dl"), str(folder / "data"), str(port)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                server = Server(process.stdout.readline().strip(), given, {})
                threading.Thread(target=_listen, args=(process.stdout, server.commits), daemon=True).start()
                with connect(server.url) as client:
                    for relation, facts in given.items():
                        for begin in range(0, len(facts), 20_000):
                            client.tell(json.dumps({"insert": {relation: facts[begin : begin + 20_000]}}).encode())
                yield server
            finally:
                process.terminate()
                process.wait(30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _listen(lines: Any, commits: dict[int, float]) -> None:
    for line in lines:
        tx, moment = line.split()
        commits[int(tx)] = float(moment)
