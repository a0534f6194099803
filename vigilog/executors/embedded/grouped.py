"""Keeps the state of groups that are aggregated, in time O(log n) for each binding that comes or goes.

The changes of the bindings are exact (`rewriting/maintenance/external.py`), so they are added to the state of their group and taken away from it. An extreme that leaves is looked up, along an index by group and value: in the
table whose rows the bindings are, or in their own (`rewriting/maintenance/groups.py`). Values that rules read change only where they are other than before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from vigilog.executors.embedded.demand import DemandMachine
from vigilog.executors.embedded.executor import TableMachine
from vigilog.executors.embedded.statements import Work, WorkLayout, in_both_states
from vigilog.executors.embedded.tables import FEW, Tables, quote
from vigilog.executors.fixpoint import fixpoint
from vigilog.language.strata import components
from vigilog.language.syntax import Atom, Constant, Literal, Rule, Variable
from vigilog.planning.dialect import Parameters
from vigilog.planning.layout import Layout
from vigilog.planning.select import Choice, select
from vigilog.planning.sqlite import decoder, encoder, kept_part
from vigilog.rewriting.maintenance.external import external
from vigilog.rewriting.maintenance.group import EXTREMES, Cells
from vigilog.rewriting.maintenance.plan import GroupPlan
from vigilog.rewriting.maintenance.states import Change

Touched = dict[Cells, tuple[list[Cells], list[Cells]]]  # by group, the bindings that went and those that came


@dataclass(frozen=True)
class _Changes:
    """A statement that reads the bindings that went, or came, if a table has rows."""

    table: str
    text: str
    parameters: Parameters
    came: bool


@dataclass(frozen=True)
class _LookUp:
    """A statement that finds the extreme of a part, for the values of a group and some constants."""

    text: str
    constants: Cells


class GroupKeeper:
    """What is kept of the groups of one set of bindings. See `Keeper`. What it reads is in tables, or derived from them on demand."""

    def __init__(self, plan: GroupPlan, tables: Tables, sizes: Mapping[str, int], work: Work, filled: set[str]) -> None:
        self.group, self.program, self.tables, self.layout, self.filled = plan.group, plan.program, tables, tables.layout, filled
        self.sizes, self.work = sizes, work
        self.row = Atom(self.group.rows.relation, tuple(Variable(a.name, a.type) for a in self.group.rows.attributes))
        self.rules = tuple(rule for rule in plan.program.rules if rule.head.relation == self.group.rows.relation)
        found = external(plan.program)
        self.states = found.states
        reads = {name: found.states[name] for name in plan.reads}
        self.inputs = [name for state in reads.values() for name in (state.lost, state.gained)]
        sources = in_both_states(reads, tables, work)
        self.machine: DemandMachine | None = None
        if self.group.source is None or self.group.source.relation not in plan.reads:
            self.machine = DemandMachine(found.program, found.levels, tables, sources, self.inputs)
            self.plan = self.machine.plan(self.inputs, sizes)
            self.reading: Layout = self.machine.layout
        else:
            self.reading = WorkLayout(found.program, tables, sources, tables.label())
        self.changes = list(self._changes())
        self._prepare()
        self.look_ups = {place: self._look_up(place) for place, part in enumerate(self.group.parts) if part.op in EXTREMES}
        self.derived = self.rounds = 0

    # -- the first state

    def fill(self) -> None:
        """Computes the state of all groups; all that the bindings are derived from is in its tables."""
        group, execute = self.group, self.tables.execute
        stored = group.own or len(self.rules) > 1
        if stored:
            machine = TableMachine(self.tables)
            for component in components(replace(self.program, rules=self.rules)):
                fixpoint(component, machine, self.tables.watch)
        body, parameters = self._select((self.row,) if stored else self.rules[0].body, self.layout, stored=stored)
        columns = [*map(quote, self.layout.columns[group.rows.relation])]
        keys, parts = columns[: group.keys], [kept_part(part.op, part.type, columns[part.column]) for part in group.parts]
        grouped = f"GROUP BY {', '.join(keys)}" if keys else "HAVING count(*) > 0"
        text = f"SELECT {', '.join([*keys, 'count(*)', *parts])} FROM ({body}) {grouped}"
        execute(f"INSERT INTO {self.state} {text}", parameters)
        if stored and not group.own:
            execute(f"DELETE FROM {quote(self.layout.tables[group.rows.relation])}")
        states = execute(f"SELECT * FROM {self.state}").fetchall()
        made = ((row[: group.keys], self._values(row[group.keys :])) for row in states)
        self.tables.connection.executemany(self.put_in, [(*key, *values) for key, values in made if values is not None])

    def _select(self, body: tuple[Literal, ...], layout: Layout, *, stored: bool) -> tuple[str, Parameters]:
        """The statement for bindings that a body gives."""
        row = self.row if stored else self.rules[0].head
        chosen = select(Rule((row,), body), layout, self.tables.dialect, Choice(rows=self.sizes))
        if layout is self.layout:
            self.tables.serve(chosen.searches)
        return chosen.text, chosen.parameters

    # -- changes

    def maintain(self) -> dict[str, Change]:
        """Brings the groups up to date with changes of what they are derived from; gives the changes of what rules read of them."""
        if self.machine is not None:
            filled = [name for name in self.inputs if self.machine.sources[name].table in self.filled]
            self.machine.run(self.plan, filled, self.filled)
        touched = self._touched()
        changed = self._turn(touched) if touched else {}
        if self.machine is not None:
            self.derived, self.rounds = self.machine.derived, self.machine.rounds
            self.machine.clear()
        return changed

    def forget(self) -> None:
        """A transaction was taken back."""
        if self.machine is not None:
            self.machine.forget()

    def warm(self) -> None:
        """Lets SQLite compile the statements, by running them over nothing."""
        if self.machine is not None:
            self.machine.warm(self.plan)
        for change in self.changes:
            self.tables.execute(change.text, change.parameters)
        for sql in (self.update, self.insert, self.delete, self.put_in, *self.lists.values()):
            self.tables.connection.executemany(sql, ())

    def _touched(self) -> Touched:
        """The bindings that went and came, by group, told by the values of all parts; they are kept, if their rows are."""
        touched: Touched = {}
        width, columns = self.group.keys, [part.column for part in self.group.parts]
        for change in self.changes:
            if not (self.machine.sizes.get(change.table) if self.machine is not None else change.table in self.filled):
                continue
            rows = self.tables.execute(change.text, change.parameters).fetchall()
            if self.group.own:
                self.tables.connection.executemany(self.own_insert if change.came else self.own_delete, rows)
            for row in rows:
                key = row[:width]
                if key not in touched:
                    touched[key] = ([], [])
                cells = [row[column] for column in columns]
                for place, decode in self.decoders:
                    cells[place] = decode(cells[place])
                touched[key][change.came].append(tuple(cells))
        return touched

    def _turn(self, touched: Touched) -> dict[str, Change]:
        """The new state of groups, and what that does to their values; sorted, because rows that lie side by side change faster."""
        group, gathered = self.group, self.group.gathered
        keys = sorted(touched) if len(touched) > FEW else touched.keys()
        states = self._states(keys)
        updates, inserts, deletes, minus, plus = [], [], [], [], []
        for key in keys:
            (gone, came), before = touched[key], states.get(key)
            less, more = gathered(gone) if gone else None, gathered(came) if came else None
            now = group.after(before, less, more, partial(self._next, key))
            if now is None:
                if before is not None:
                    deletes.append((*key, *before))
            elif before is None:
                inserts.append((*key, *now))
            else:
                updates.append((*now, *key))
            old, new = self._values(before), self._values(now)
            self.tables.undefined += now is not None and new is None and not group.tests
            if old != new:
                if old is not None:
                    minus.append((*key, *old))
                if new is not None:
                    plus.append((*key, *new))
        many = self.tables.connection.executemany
        if updates:
            many(self.update, updates)
        if inserts:
            many(self.insert, inserts)
        if deletes and not group.asked:
            many(self.delete, [row[: group.keys] for row in deletes])
        if plus:
            many(self.put_in, plus)
        changed = self._list(group.aux.relation, minus, plus)
        if group.asked:
            changed |= self._list(group.state.relation, deletes, inserts)
        return changed

    def _list(self, relation: str, minus: Sequence[Cells], plus: Sequence[Cells]) -> dict[str, Change]:
        """Lists what a relation lost and gained; what is lost leaves it when the transaction ends."""
        for kind, rows in (("minus", minus), ("plus", plus)):
            if rows:
                self.tables.connection.executemany(self.lists[relation, kind], rows)
                self.filled.add(self.work(relation, kind))
        return {relation: Change(bool(minus), bool(plus))} if minus or plus else {}

    def _states(self, keys: Iterable[Cells]) -> dict[Cells, Cells]:
        """The states that groups have, those that are not empty."""
        asked = list(keys)
        if len(asked) <= FEW or not self.group.keys:
            found = ((key, self.tables.execute(self.find, key).fetchone()) for key in asked)
            return {key: state for key, state in found if state is not None}
        self.tables.connection.executemany(self.ask, asked)
        width = self.group.keys
        states = {row[:width]: row[width:] for row in self.tables.execute(self.find_all)}
        self.tables.execute(self.ask_nothing)
        return states

    def _values(self, state: Cells | None) -> Cells | None:
        """The values that rules read, as they are stored."""
        if state is not None and self.extremes:
            held = list(state)
            for place, decode in self.extremes:
                held[place] = decode(held[place])
            state = tuple(held)
        found = self.group.values(state)
        if found is None or not self.encoders:
            return found
        cells = list(found)
        for place, encode in self.encoders:
            cells[place] = encode(cells[place])
        return tuple(cells)

    def _next(self, key: Cells, place: int) -> Any:
        """The extreme of a part in a group, when the one before has left."""
        look_up = self.look_ups[place]
        return self.tables.execute(look_up.text, (*key, *look_up.constants)).fetchone()[0]

    # -- statements

    def _changes(self) -> Iterator[_Changes]:
        """How the bindings that went and came are read."""
        if self.machine is not None:
            state = self.states[self.group.rows.relation]
            for name, came in ((state.lost, False), (state.gained, True)):
                if name in self.machine.made:  # others never change
                    yield _Changes(name, *self._select((replace(self.row, relation=name),), self.reading, stored=True), came)
            return
        source = self.rules[0].body[0]
        assert isinstance(source, Atom), "the bindings are the rows of a table"
        state = self.states[source.relation]
        for name, kind, came in ((state.lost, "minus", False), (state.gained, "plus", True)):
            text = self._select((replace(source, relation=name),), self.reading, stored=False)
            yield _Changes(self.work(source.relation, kind), *text, came)

    def _prepare(self) -> None:
        group, layout, tables = self.group, self.layout, self.tables
        columns = [*map(quote, layout.columns[group.state.relation])]
        keys, held = columns[: group.keys], columns[group.keys :]
        self.state, where = quote(layout.tables[group.state.relation]), " AND ".join(f"{key} = ?" for key in keys) or "true"
        self.find = f"SELECT {', '.join(held)} FROM {self.state} WHERE {where}"
        self.update = f"UPDATE {self.state} SET {', '.join(f'{column} = ?' for column in held)} WHERE {where}"
        self.insert = f"INSERT INTO {self.state} VALUES ({', '.join('?' for _ in columns)})"
        self.delete = f"DELETE FROM {self.state} WHERE {where}"
        if keys:
            asked = self.work(group.state.relation, "asked")
            tables.create_work(asked, f"({', '.join(keys)})")
            same = " AND ".join(f"s.{key} = a.{key}" for key in keys)
            self.ask = f"INSERT INTO {quote(asked)} VALUES ({', '.join('?' for _ in keys)})"
            self.ask_nothing = f"DELETE FROM {quote(asked)}"
            self.find_all = (
                f"SELECT {', '.join(f's.{column}' for column in columns)} FROM {quote(asked)} AS a CROSS JOIN {self.state} AS s ON {same}"
            )

        def put(relation: str, table: str) -> str:
            return f"INSERT INTO {quote(table)} VALUES ({', '.join('?' for _ in layout.columns[relation])})"

        self.put_in = put(group.aux.relation, layout.tables[group.aux.relation])
        listed = (group.aux.relation, group.state.relation)
        self.lists = {(name, kind): put(name, self.work(name, kind)) for name in listed for kind in ("minus", "plus")}
        rows, names = layout.tables[group.rows.relation], layout.columns[group.rows.relation]
        self.own_insert = put(group.rows.relation, rows)
        self.own_delete = f"DELETE FROM {quote(rows)} WHERE {' AND '.join(f'{quote(name)} = ?' for name in names)}"
        self.decoders = [(n, code) for n, part in enumerate(group.parts) if part.op == "sum" and (code := decoder(part.type))]
        self.extremes = [(1 + n, code) for n, part in enumerate(group.parts) if part.op != "sum" and (code := decoder(part.type))]
        shown = [group.shown[place] for place in group.read]
        self.encoders = [(place, code) for place, each in enumerate(shown) if (code := encoder(each.type))]

    def _look_up(self, place: int) -> _LookUp:
        """How the extreme of a part is found: along an index by group and value. A table may still have rows that are gone."""
        group, part = self.group, self.group.parts[place]
        relation, source = group.rows.relation, self.row
        if not group.own:
            body = self.rules[0].body[0]
            assert isinstance(body, Atom), "the bindings are the rows of a table"
            relation, source = body.relation, body
        head = self.rules[0].head if not group.own else self.row
        columns = {arg.name: column for column, arg in enumerate(source.args) if isinstance(arg, Variable)}
        wanted = [columns[arg.name] for arg in head.args if isinstance(arg, Variable)]
        fixed = {column: arg for column, arg in enumerate(source.args) if isinstance(arg, Constant)}
        keys, cell, names = wanted[: group.keys], wanted[part.column], [*map(quote, self.layout.columns[relation])]
        self.tables.serve_order(relation, (*keys, *fixed, cell))
        where = [f"t.{names[column]} = ?" for column in (*keys, *fixed)]
        if not group.own:
            same = " AND ".join(f"g.{name} = t.{name}" for name in names)
            where.append(f"NOT EXISTS (SELECT 1 FROM {quote(self.work(relation, 'minus'))} AS g WHERE {same})")
        order = f"ORDER BY t.{names[cell]}{' DESC' if part.op == 'max' else ''} LIMIT 1"
        text = f"SELECT t.{names[cell]} FROM {quote(self.layout.tables[relation])} AS t WHERE {' AND '.join(where) or 'true'} {order}"
        return _LookUp(text, tuple(_stored(arg) for arg in fixed.values()))


def _stored(constant: Constant) -> Any:
    assert constant.type is not None, "checked programs are typed"
    encode = encoder(constant.type)
    return encode(constant.value) if encode else constant.value
