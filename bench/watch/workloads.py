"""What changes: for each workload a program, its facts, and series of transactions, each of which the next one undoes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path

from bench.graphs import SEED, Facts
from bench.watch import data
from bench.watch.programs import CLOSURE, INTEGRITY, JOIN, SAME_GENERATION, SUMMARY, Program

Row = tuple[int, ...]
Change = Mapping[str, Mapping[str, Sequence[Row]]]  # a transaction as Vigilog takes it: operation, relation, rows


@dataclass(frozen=True)
class Series:
    """Transactions of one kind. `changes` come in pairs, the second of which undoes the first; the first `warm` ones are not counted."""

    name: str
    rows: int
    changes: Sequence[Change]
    warm: int

    def __post_init__(self) -> None:
        assert len(self.changes) % 2 == 0 and self.warm % 2 == 0, "changes come in pairs"


@dataclass(frozen=True)
class Workload:
    """`name` is for options and files, `title` for readers. `by_hand` names the program written for it, if there is one.

    With `files` the facts are too many for this process: it writes them into a folder, and Spark reads them there. `peers` are those who recompute it.
    """

    name: str
    title: str
    program: Program
    facts: Callable[[], Facts]
    series: Callable[[Facts], Sequence[Series]]
    by_hand: str | None = None
    peers: tuple[str, ...] = ("duckdb", "sqlite", "spark")
    files: Callable[[Path], None] | None = None


def workloads(quick: bool) -> tuple[Workload, ...]:
    return (
        *_closures(quick),
        _join(quick),
        _summary(quick),
        _integrity(quick),
        _same_generation(quick),
        *_golden(quick),
        _join_on_spark(quick),
    )


def delete(relation: str, *rows: Row) -> Change:
    return {"delete": {relation: rows}}


def insert(relation: str, *rows: Row) -> Change:
    return {"insert": {relation: rows}}


def undone(change: Change) -> Change:
    """
    >>> undone({"delete": {"edge": [(1, 2)]}})
    {'insert': {'edge': [(1, 2)]}}
    """
    other = {"delete": "insert", "insert": "delete"}
    return {other[operation]: rows for operation, rows in reversed(list(change.items()))}


def _series(name: str, rows: int, pairs: int, changes: Iterator[Change], warm: int = 10) -> Series:
    """So many pairs that are counted, after `warm` changes that are not."""
    steps = [next(changes) for _ in range(pairs + warm // 2)]
    return Series(name, rows, [part for change in steps for part in (change, undone(change))], warm)


# -- the workloads


def _edges_out_and_back(facts: Facts, among: int | None = None) -> Iterator[Change]:
    """Deletions of random edges; `among` so many of the first."""
    chance = random.Random(SEED)
    edges = facts["edge"][:among]
    while True:
        yield delete("edge", chance.choice(edges))


def _closures(quick: bool) -> tuple[Workload, ...]:
    pairs = 10 if quick else 100
    (nodes, edges), (more_nodes, more_edges), times = ((60, 70), (200, 220), 3) if quick else ((2_000, 2_400), (20_000, 22_000), 10)

    def closure(name: str, title: str, facts: Callable[[], Facts], among: int | None = None) -> Workload:
        def series(given: Facts) -> Sequence[Series]:
            return [_series("1 row", 1, pairs, _edges_out_and_back(given, among))]

        peers = ("duckdb",) if among else ("duckdb", "sqlite", "spark")
        return Workload(name, title, CLOSURE, facts, series, "closure", peers)

    return (
        closure("closure", f"W1 closure, acyclic\n(n={nodes:,}, m={edges:,})", lambda: {"edge": data.acyclic(nodes, edges)}),
        closure(
            "closure-large",
            f"W1 closure, acyclic\n(n={more_nodes:,}, m={more_edges:,})",
            lambda: {"edge": data.acyclic(more_nodes, more_edges)},
        ),
        closure("closure-cyclic", f"W1 closure, cyclic\n(n={nodes:,}, m={edges:,})", lambda: {"edge": data.cyclic(nodes, edges)}),
        closure(
            "closure-beside",
            f"W1 closure, the small graph\namong {times} times the data",
            lambda: {"edge": data.beside(nodes, edges, times)},
            edges,
        ),
    )


def _join(quick: bool) -> Workload:
    number, customers, batches = (2_000, 200, (1, 20, 200)) if quick else (1_000_000, 100_000, (1, 100, 10_000))

    def one(facts: Facts) -> Iterator[Change]:
        """Four times an order, out and back or in and out, then a customer who is blocked."""
        chance, fresh = random.Random(SEED), number
        while True:
            for _ in range(2):
                yield delete("orders", chance.choice(facts["orders"]))
                yield insert("orders", (fresh := fresh + 1, chance.randrange(customers), chance.randrange(1_000)))
            yield insert("blocked", (1 + 37 * chance.randrange(customers // 37),))

    def many(facts: Facts, rows: int) -> Iterator[Change]:
        """One row in a hundred blocks a customer; of the others half are orders that go, half are new ones."""
        chance, fresh = random.Random(SEED), number
        blocked = rows // 100
        while True:
            new = [(fresh + place, chance.randrange(customers), chance.randrange(1_000)) for place in range((rows - blocked) // 2)]
            fresh += len(new)
            gone = chance.sample(facts["orders"], rows - blocked - len(new))
            more = [(1 + 37 * place,) for place in chance.sample(range(customers // 37), blocked)]
            yield {"delete": {"orders": gone}, "insert": {"orders": new, **({"blocked": more} if more else {})}}

    return Workload(
        "join",
        f"W2 join of three\nwith negation\n({number:,} rows)",
        JOIN,
        lambda: data.orders(number, customers),
        lambda given: _batches(batches, quick, one(given), lambda rows: many(given, rows)),
        "join",
    )


def _summary(quick: bool) -> Workload:
    number, groups, batches = (2_000, 200, (1, 20, 200)) if quick else (1_000_000, 100_000, (1, 100, 10_000))

    def many(facts: Facts, rows: int) -> Iterator[Change]:
        """Half of the rows go, half are new; single ones go or are new in turn."""
        chance, fresh = random.Random(SEED), number
        while True:
            new = [(fresh + place, chance.randrange(groups), chance.randrange(10_000)) for place in range(max(1, rows // 2))]
            fresh += len(new)
            gone = chance.sample(facts["reading"], max(1, rows // 2))
            if rows == 1:
                yield delete("reading", *gone)
                yield insert("reading", *new)
            else:
                yield {"delete": {"reading": gone}, "insert": {"reading": new}}

    def largest(facts: Facts) -> Iterator[Change]:
        """The reading with the largest value of a group goes."""
        chance = random.Random(SEED)
        best: dict[int, Row] = {}
        for row in facts["reading"]:
            if row[1] not in best or row[2] > best[row[1]][2]:
                best[row[1]] = row
        known = sorted(best)
        while True:
            yield delete("reading", best[chance.choice(known)])

    def series(given: Facts) -> Sequence[Series]:
        plain = _batches(batches, quick, many(given, 1), lambda rows: many(given, rows))
        return [plain[0], _series("maximum", 1, 10 if quick else 100, largest(given)), *plain[1:]]

    return Workload(
        "summary",
        f"W3 count, sum, min, max\n({number:,} rows, {groups:,} groups)",
        SUMMARY,
        lambda: data.readings(number, groups),
        series,
        "summary",
    )


def _batches(batches: Sequence[int], quick: bool, single: Iterator[Change], many: Callable[[int], Iterator[Change]]) -> list[Series]:
    one, some, lot = batches
    return [
        _series("1 row", one, 10 if quick else 100, single),
        _series(f"{some:,} rows", some, 3 if quick else 20, many(some), 2),
        _series(f"{lot:,} rows", lot, 2 if quick else 5, many(lot), 2),
    ]


def _integrity(quick: bool) -> Workload:
    number = 500 if quick else 100_000

    def changes(facts: Facts) -> Iterator[Change]:
        """Of ten, four are employees who leave and return, four new ones, often at odds with a rule, one a department, one a manager."""
        chance, fresh = random.Random(SEED), number
        departments, managers = len(facts["department"]), facts["manager"]
        while True:
            for _ in range(4):
                yield delete("employee", chance.choice(facts["employee"]))
                salary = 20_000 + chance.randrange(90_000)
                yield insert("employee", (fresh := fresh + 1, chance.randrange(departments), chance.choice(managers)[0], salary))
            yield delete("department", chance.choice(facts["department"]))
            yield delete("manager", chance.choice(managers))

    return Workload(
        "integrity",
        f"W4 80 integrity views\n({number:,} employees)",
        INTEGRITY,
        lambda: data.staff(number),
        lambda given: [_series("1 row", 1, 10 if quick else 100, changes(given), 20)],
    )


def _same_generation(quick: bool) -> Workload:
    depth, width = (10, 8) if quick else (100, 100)
    return Workload(
        "same-generation",
        f"W5 same generation\n(tree of {depth * width:,} nodes)",
        SAME_GENERATION,
        lambda: {"edge": data.levels(depth, width)},
        lambda given: [_series("1 row", 1, 10 if quick else 100, _edges_out_and_back(given))],
    )


def _golden(quick: bool) -> tuple[Workload, ...]:
    def golden(more: int) -> Workload:
        old, new = ((data.GOLDEN[edge[0]], data.GOLDEN[edge[1]]) for edge in ("bc", "hd"))
        change = {"delete": {"edge": [old]}, "insert": {"edge": [new]}}
        return Workload(
            f"golden-{more}",
            f"W6 the example of the paper\nwith {more:,} edges more",
            CLOSURE,
            lambda: {"edge": data.golden(more)},
            lambda given: [_series("bc out, hd in", 2, 3 if quick else 10, repeat(change), 2)],
            peers=("duckdb",),
        )

    return tuple(golden(more) for more in ((10, 100, 1_000) if quick else (10, 1_000, 100_000)))


def _join_on_spark(quick: bool) -> Workload:
    number, customers, rows = (20_000, 2_000, 200) if quick else (10_000_000, 1_000_000, 10_000)
    text = JOIN.text
    for name in JOIN.base:
        text = text.replace(f".input {name}\n", f".input {name}(IO=parquet)\n")

    def changes() -> Iterator[Change]:
        """Half are orders that go, half are new ones."""
        chance, fresh = random.Random(SEED), number
        while True:
            gone = [data.numbered_order(order, customers) for order in chance.sample(range(number), rows // 2)]
            new = [data.numbered_order(fresh + place, customers) for place in range(rows // 2)]
            fresh += len(new)
            yield {"delete": {"orders": gone}, "insert": {"orders": new}}

    return Workload(
        "join-on-spark",
        f"W7 the join on Spark\n({number:,} rows)",
        replace(JOIN, text=text),
        dict,
        lambda _: [_series(f"{rows:,} rows", rows, 2, changes(), 2)],
        peers=("spark",),
        files=lambda folder: data.orders_in_files(folder, number, customers),
    )
