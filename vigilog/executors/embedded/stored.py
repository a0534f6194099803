"""Keeps the stored relations of one component true: delete and rederive, with work in proportion to the change.

1. Rows that may have lost a proof (D) are listed in `minus`; in a recursion to a fixpoint. When they are many, another proof is looked for first (`prove.py`).
2. Those that still have a proof (R) are taken off the list again.
3. Rows with a new proof (I) are put into the relation and listed in `plus`; what they prove of what is listed in `minus` is taken off, and so on.

The rules are those of the plan (`rewriting/maintenance/plan.py`). Rows of the lists are numbered as they come, so that a round reads what the last one found, and nothing is copied. In the end `minus` and `plus` hold
the net change; what is lost leaves the relation when the transaction ends, for others read the old state until then (`statements.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from vigilog.executors.embedded.prove import Prover
from vigilog.executors.embedded.statements import Statement, TableSource, WorkLayout, WorkTables, compiled, in_both_states, serve
from vigilog.executors.embedded.tables import Tables, among, quote
from vigilog.executors.fixpoint import recursive_positions
from vigilog.language.program import Program
from vigilog.language.syntax import Atom
from vigilog.planning.order import Search
from vigilog.rewriting.maintenance.plan import ComponentPlan
from vigilog.rewriting.maintenance.rules import Variant
from vigilog.rewriting.maintenance.states import Direction

DOUBTFUL, MOST_DOUBTFUL = 64, 100_000  # from so many rows in a round, another proof is looked for before they are deleted
LISTS = ("minus", "plus", "back")

Settle = Callable[[str, str, int, int], int]


@dataclass(frozen=True)
class _Run:
    """A statement, the list of a relation that it adds to, the table that it starts from, and tables that must have rows for it to find any."""

    statement: Statement
    relation: str
    kind: str
    start: str
    needs: frozenset[str]


@dataclass
class _Search:
    """What is run first, and what follows the recent rows of each list."""

    first: list[_Run] = field(default_factory=list)
    then: dict[tuple[str, str], list[_Run]] = field(default_factory=dict)


class StoredComponent:
    """The relations of a component. `work(relation, kind)` names the lists of what comes and goes; `filled` are those of all relations that have rows."""

    def __init__(
        self, plan: ComponentPlan, program: Program, tables: Tables, sizes: Mapping[str, int], work: WorkTables, filled: set[str]
    ) -> None:
        self.plan, self.component, self.tables, self.sizes, self.work, self.filled = plan, plan.component, tables, sizes, work, filled
        relations = self.component.relations
        self.own = {relation: quote(tables.layout.tables[relation]) for relation in relations}
        self.columns = {relation: ", ".join(map(quote, tables.layout.columns[relation])) for relation in relations}
        self.names = {(relation, kind): work(relation, kind) for relation in relations for kind in LISTS}
        for (relation, _), name in self.names.items():
            tables.create_numbered(relation, name)
        self.layout = self._layout(program)
        self.prover = Prover(program, self.component, tables, sizes, work, filled) if self.component.recursive else None
        self.linear = all(len(recursive_positions(rule, self.component)) <= 1 for rule in self.component.rules)
        self.losing, self.proving, self.gaining = self._plan()
        self.joint = self._joint()
        sorted_ = {
            name: f" ORDER BY {self.columns[name]}" if self.linear else "" for name in relations
        }  # all rows at once, which is faster
        self.put_in = {name: f"INSERT INTO {self.own[name]} {self._since(name, 'plus')}{sorted_[name]}" for name in relations}
        columns = {name: [*map(quote, tables.layout.columns[name])] for name in relations}
        self.take_off = {
            name: f"DELETE FROM {self._table(name, 'minus')} WHERE " + among(columns[name], f"({self._since(name, 'back')})")
            for name in relations
        }
        self.doubtful = DOUBTFUL
        self.derived = self.rounds = 0

    def maintain(self) -> dict[str, Direction]:
        """Brings the relations up to date with changes of what they read; gives their own."""
        self.derived = self.rounds = 0
        gone = self._fixpoint(self.losing, self.losing.then, self._doubt)
        if self.prover and self.prover.used:
            self.prover.clear()
        if gone:
            self._take_off(self._fixpoint(self.proving, self.proving.then, self._settle), gone)
        came = self._fixpoint(self.gaining, self.joint, self._settle)
        if came:
            self._take_off(came, gone)
            for relation in (name for name, kind in came if kind == "plus" and self.linear):
                self.tables.execute(self.put_in[relation], (0,))
        changes = {name: Direction(gone.get((name, "minus"), 0) > 0, (name, "plus") in came) for name, _ in (*gone, *came)}
        return {name: change for name, change in changes.items() if change.lost or change.gained}

    def forget(self) -> None:
        """A transaction was taken back."""
        if self.prover:
            self.prover.machine.forget()
            self.prover.used = False

    def warm(self) -> None:
        """Lets SQLite compile the statements, by running them over nothing."""
        emptied = (f"DELETE FROM {self._table(relation, 'back')}" for relation in self.component.relations)
        self.tables.compile(*self.put_in.values(), *self.take_off.values(), *emptied)
        for search in (self.losing, self.proving, self.gaining):
            for run, window in [(run, {}) for run in search.first] + [
                (run, {"since": 0, "until": 0}) for runs in search.then.values() for run in runs
            ]:
                for text in {run.statement.text, run.statement.whole}:
                    self.tables.execute(text, run.statement.parameters | window)
        if self.prover:
            self.prover.warm()

    # -- rounds

    def _fixpoint(self, search: _Search, then: Mapping[tuple[str, str], list[_Run]], settle: Settle) -> dict[tuple[str, str], int]:
        """Finds rows of lists to a fixpoint; gives their numbers. `settle` is told each window of new rows, and gives how many of them stay."""
        total: dict[tuple[str, str], int] = {}
        first = [(run, (0, 0)) for run in search.first if run.start in self.filled]
        windows = self._round(first, total, settle) if first else {}
        while windows and then:
            runs = [(run, window) for key, window in windows.items() for run in then.get(key, ())]
            windows = self._round(runs, total, settle)
        return {key: number for key, number in total.items() if number}

    def _round(
        self, runs: Iterable[tuple[_Run, tuple[int, int]]], total: dict[tuple[str, str], int], settle: Settle
    ) -> dict[tuple[str, str], tuple[int, int]]:
        """Runs statements, each over its window; gives the windows of what they found."""
        fresh: dict[tuple[str, str], int] = {}
        execute, filled = self.tables.execute, self.filled
        for run, (since, until) in runs:
            if run.needs and not run.needs <= filled:
                continue
            statement = run.statement
            if until:
                statement.parameters["since"], statement.parameters["until"] = since, until
            number = execute(statement.now(filled), statement.parameters).rowcount
            if number:
                key = run.relation, run.kind
                fresh[key] = fresh.get(key, 0) + number
        self.rounds += 1
        windows = {}
        for key, number in fresh.items():
            self.derived += number
            since = total.get(key, 0)
            kept = settle(*key, since, number)
            total[key] = since + kept
            if kept:
                filled.add(self.names[key])
                windows[key] = (since, since + kept)
        return windows

    def _settle(self, relation: str, kind: str, since: int, number: int) -> int:
        """Shows recent rows where rules read them beside others: in the relation, or by taking them off the list of what is gone."""
        if not self.linear:
            self.tables.execute((self.put_in if kind == "plus" else self.take_off)[relation], (since,))
        return number

    def _take_off(self, proved: Mapping[tuple[str, str], int], gone: dict[tuple[str, str], int]) -> None:
        """What was found to have a proof is not gone."""
        for relation, number in [(name, number) for (name, kind), number in proved.items() if kind == "back"]:
            if self.linear:
                self.tables.execute(self.take_off[relation], (0,))
            self.tables.execute(f"DELETE FROM {self._table(relation, 'back')}")
            self.filled.discard(self.names[relation, "back"])
            gone[relation, "minus"] -= number
            if not gone[relation, "minus"]:
                self.filled.discard(self.names[relation, "minus"])

    def _doubt(self, relation: str, kind: str, since: int, number: int) -> int:
        """Rows that have another proof are not lost; looked for only when there are many."""
        if self.prover is None or not (number >= self.doubtful or self.prover.used):
            return number
        table, place = self._table(relation, "minus"), self.tables.numbering(relation)
        recent = f"({self._since(relation, 'minus').replace('?', str(since))})"
        if number >= self.doubtful:
            before = self.prover.machine.derived
            self.prover.prove(relation, recent, number)
            self.derived += self.prover.machine.derived - before
        same = " AND ".join(f"k.c{i} = {table}.{quote(column)}" for i, column in enumerate(self.tables.layout.columns[relation]))
        proved = f"{place} > {since} AND EXISTS (SELECT 1 FROM {self.prover.proved(relation)} AS k WHERE {same})"
        kept = number - self.tables.execute(f"DELETE FROM {table} WHERE {proved}").rowcount
        if number >= self.doubtful:  # where other proofs are rare, they are looked for less often
            self.doubtful = (
                min(2 * self.doubtful, MOST_DOUBTFUL) if kept > 0.9 * number else max(self.doubtful // 2, min(self.doubtful, DOUBTFUL))
            )
        if 0 < kept < number:  # the rows that stay are numbered anew, without gaps
            rows = self.tables.execute(self._since(relation, "minus"), (since,)).fetchall()
            self.tables.execute(f"DELETE FROM {table} WHERE {place} > {since}")
            self.tables.connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' for _ in rows[0])})", rows)
        return kept

    def _since(self, relation: str, kind: str) -> str:
        """The rows of a list after some number."""
        return f"SELECT {self.columns[relation]} FROM {self._table(relation, kind)} WHERE {self.tables.numbering(relation)} > ?"

    def _table(self, relation: str, kind: str) -> str:
        return quote(self.names[relation, kind])

    # -- statements

    def _layout(self, program: Program) -> WorkLayout:
        states = self.plan.states
        sources = in_both_states(states, self.tables, self.work)
        for relation in (
            self.component.relations
        ):  # while it is changed, what it had and what has come to it are known alike; its lists may be as large
            sources[relation] = TableSource(relation, self.tables.layout.tables[relation])
            lists = zip((states[relation].lost, states[relation].gained, self.plan.red[relation]), LISTS, strict=True)
            sources |= {name: TableSource(relation, self.names[relation, kind]) for name, kind in lists}
        declarations = [replace(program.relations[source.relation], relation=name) for name, source in sources.items()]
        return WorkLayout(replace(program, declarations=tuple(declarations), rules=()), self.tables, sources, self.tables.label())

    def _plan(self) -> tuple[_Search, _Search, _Search]:
        """How to find what may be lost, what of it has a proof, and what is new."""
        losing, proving, gaining = _Search(), _Search(), _Search()
        own, states, red = set(self.component.relations), self.plan.states, self.plan.red
        lists = {states[name].lost: (name, "minus") for name in own} | {states[name].gained: (name, "plus") for name in own}
        lists |= {red[name]: (name, "back") for name in own}
        for variant in self.plan.deletions:
            self._add(losing, variant, "minus", lists)
        for variant in self.plan.insertions:
            self._add(gaining, variant, "plus", lists)
            if variant.first.relation in lists:  # what has come back counts like what has come
                self._add(gaining, _starting(variant, red[lists[variant.first.relation][0]]), "plus", lists)
        for variant in self.plan.rederivations:
            self._add(proving, variant, "back", lists, first=True)
            for place, literal in enumerate(variant.rule.body):
                name = next((name for name in own if isinstance(literal, Atom) and literal.relation == states[name].new), None)
                for start in (red[name], states[name].gained) if name is not None else ():
                    self._add(proving, _starting(replace(variant, changed=place), start), "back", lists)
        return losing, proving, gaining

    def _joint(self) -> dict[tuple[str, str], list[_Run]]:
        """What follows recent rows while new ones come: more new ones, and proofs of what is listed as gone."""
        keys = self.gaining.then.keys() | self.proving.then.keys()
        return {key: [*self.gaining.then.get(key, ()), *self.proving.then.get(key, ())] for key in keys}

    def _add(self, search: _Search, variant: Variant, kind: str, lists: Mapping[str, tuple[str, str]], *, first: bool = False) -> None:
        rule, start = variant.rule, variant.first.relation
        relation = next(
            name for name in self.component.relations if rule.head.relation in (*self.plan.states[name].names, self.plan.red[name])
        )
        recent = start in lists and not first
        window = self.tables.numbering(lists[start][0]) if recent else ""
        into = self._table(relation, kind)
        statement = compiled(rule, self.layout, self.tables, self.sizes, self._serve, first=variant.changed, window=window, into=into)
        sources = self.layout.sources
        needs = {
            sources[literal.relation].table
            for place, literal in enumerate(rule.body)
            if isinstance(literal, Atom)
            and place != variant.changed
            and sources[literal.relation].table != self.layout.base.tables[sources[literal.relation].relation]
        }
        run = _Run(statement, relation, kind, sources[start].table, frozenset(needs))
        if recent:
            search.then.setdefault(lists[start], []).append(run)
        else:
            search.first.append(run)

    def _serve(self, searches: Iterable[Search]) -> None:
        for search in searches:
            serve(self.tables, self.layout, search)


def _starting(variant: Variant, start: str) -> Variant:
    """The variant that reads what changed from another relation."""
    body = [*variant.rule.body]
    body[variant.changed] = replace(variant.first, relation=start)
    return replace(variant, rule=variant.rule.derive(variant.rule.head, body=tuple(body)))
