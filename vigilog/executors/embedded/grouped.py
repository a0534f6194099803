"""Keeps the state of groups that are aggregated, in time O(log n) for each binding that comes or goes.

The changes of the bindings are exact (`rewriting/maintenance/external.py`), so they are added to the state of their group and taken away from it. An extreme that leaves is looked up, along an index by group and value: in the
table whose rows the bindings are, or in their own (`rewriting/maintenance/groups.py`). Values that rules read change only where they are other than before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from vigilog.executors.embedded.demand import DemandMachine
from vigilog.executors.embedded.executor import TableMachine
from vigilog.executors.embedded.many import put
from vigilog.executors.embedded.statements import Statement, WorkLayout, WorkTables, in_both_states
from vigilog.executors.embedded.tables import FEW, Tables, quote
from vigilog.executors.fixpoint import fixpoint
from vigilog.language.strata import components
from vigilog.language.syntax import Atom, Constant, Literal, Rule, Variable
from vigilog.planning.dialect import Parameters
from vigilog.planning.layout import Layout
from vigilog.planning.select import Choice, select
from vigilog.planning.sqlite import decoder, encoder, kept_part
from vigilog.rewriting.maintenance.alone import read_alone, turned_alone, value_alone, written_alone
from vigilog.rewriting.maintenance.external import external
from vigilog.rewriting.maintenance.group import ADDED, EXTREMES, Cells
from vigilog.rewriting.maintenance.plan import GroupPlan
from vigilog.rewriting.maintenance.states import Direction
from vigilog.rewriting.maintenance.turning import Columns, aligned, gathered, read, turned, values, written

AtHand = dict[str, tuple[list[Cells], list[Cells]]]  # the rows, as they are stored, that relations have lost and gained
Groups = dict[Cells, Cells]  # the groups of some bindings, by their keys
_Turned = tuple[
    Cells, Cells | None, Cells | None, Cells | None, Cells | None
]  # a group; its state before and now, its values before and now


@dataclass(frozen=True)
class _Changes:
    """The statements that read the bindings that went, or came, if a table has rows; one by one, or as groups."""

    table: str
    text: str
    grouped: str
    parameters: Parameters
    came: bool


@dataclass(frozen=True)
class _Taken:
    """How bindings are taken from the rows of a relation: the places of their columns, and what is `fixed` in others."""

    relation: str
    places: tuple[int, ...]
    fixed: Mapping[int, Any]

    def bindings(self, rows: Sequence[Cells]) -> list[Cells]:
        fitting = [row for row in rows if all(row[place] == cell for place, cell in self.fixed.items())] if self.fixed else rows
        if len(self.places) < 2:
            return [(row[self.places[0]],) for row in fitting] if self.places else [(1,)] * len(fitting)
        return list(map(itemgetter(*self.places), fitting))


@dataclass(frozen=True)
class _Straight:
    """A statement that finds bindings that went, or came, and adds them up by groups; `whole` while no table that it goes without has rows."""

    statement: Statement
    text: str
    whole: str
    came: bool


@dataclass(frozen=True)
class _LookUp:
    """A statement that finds the extreme of a part, for the values of a group and some constants."""

    text: str
    constants: Cells


class GroupKeeper:
    """What is kept of the groups of one set of bindings. See `Keeper`. What it reads is in tables, or derived from them on demand."""

    def __init__(
        self,
        plan: GroupPlan,
        tables: Tables,
        sizes: Mapping[str, int],
        work: WorkTables,
        filled: set[str],
        unread: Collection[str] = (),
        at_hand: AtHand | None = None,
    ) -> None:
        """Of relations that are `unread`, the changes are `at_hand`, theirs and its own."""
        self.unread, self.at_hand = unread, {} if at_hand is None else at_hand
        self.group, self.program, self.tables, self.layout, self.filled = plan.group, plan.program, tables, tables.layout, filled
        self.sizes, self.work = sizes, work
        self.row = Atom(self.group.rows.relation, tuple(Variable(a.name, a.type) for a in self.group.rows.attributes))
        self.rules = tuple(rule for rule in plan.program.rules if rule.head.relation == self.group.rows.relation)
        maintenance = external(plan.program)
        self.states = maintenance.states
        reads = {name: maintenance.states[name] for name in plan.reads}
        self.inputs = [name for state in reads.values() for name in (state.lost, state.gained)]
        sources = in_both_states(reads, tables, work)
        self.machine: DemandMachine | None = None
        self.taken = self._taken(plan.reads & {*unread})
        if plan.asks:
            self.machine = DemandMachine(maintenance.program, maintenance.levels, tables, sources, self.inputs)
            self.plan = self.machine.plan(self.inputs, sizes)
            self.reading: Layout = self.machine.layout
        else:
            self.reading = WorkLayout(maintenance.program, tables, sources, tables.label())
        self.straight = self._straight()
        self.changes = [] if self.taken is not None else list(self._changes())
        self._prepare()
        self.look_ups = {place: self._look_up(place) for place, part in enumerate(self.group.parts) if part.op in EXTREMES}
        self.derived = self.rounds = 0

    def _taken(self, unread: Collection[str]) -> _Taken | None:
        """How bindings are taken from changes at hand, if those of their relation are."""
        source = self.group.source
        if source is None or source.relation not in unread:
            return None
        places = {arg.name: place for place, arg in enumerate(source.args) if isinstance(arg, Variable)}
        fixed = {place: _stored(arg) for place, arg in enumerate(source.args) if isinstance(arg, Constant)}
        columns = tuple(places[arg.name] for arg in self.rules[0].head.args if isinstance(arg, Variable))
        return _Taken(source.relation, columns, fixed)

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
        execute(f"INSERT INTO {self.state} {self._grouped(body, self.layout)}", parameters)
        if stored and not group.own:
            execute(f"DELETE FROM {quote(self.layout.tables[group.rows.relation])}")
        states = execute(f"SELECT * FROM {self.state}").fetchall()
        made = self._values(read(group, [row[group.keys :] for row in states])) if states else []
        shown = (row[: group.keys] + cells for row, cells in zip(states, made, strict=True) if cells is not None)
        self.tables.connection.executemany(self.put_in, shown)

    def _grouped(self, bindings: str, layout: Layout) -> str:
        """The statement for the states of groups that have the bindings of another one."""
        columns = [*map(quote, layout.columns[self.group.rows.relation])]
        keys = columns[: self.group.keys]
        parts = [kept_part(part.op, part.type, columns[part.column]) for part in self.group.parts]
        grouped = f"GROUP BY {', '.join(keys)}" if keys else "HAVING count(*) > 0"
        return f"SELECT {', '.join([*keys, 'count(*)', *parts])} FROM ({bindings}) {grouped}"

    def _select(self, body: tuple[Literal, ...], layout: Layout, *, stored: bool) -> tuple[str, Parameters]:
        """The statement for bindings that a body gives."""
        row = self.row if stored else self.rules[0].head
        chosen = select(Rule((row,), body), layout, self.tables.dialect, Choice(rows=self.sizes))
        if layout is self.layout:
            self.tables.serve(chosen.searches)
        return chosen.text, chosen.parameters

    # -- changes

    def maintain(self) -> dict[str, Direction]:
        """Brings the groups up to date with changes of what they are derived from; gives the changes of what rules read of them."""
        self.derived = self.rounds = 0
        filled = [] if self.machine is None else [name for name in self.inputs if self.machine.sources[name].table in self.filled]
        straight = self._straight_for(filled)
        if self.machine is not None and straight is None:
            self.machine.run(self.plan, filled, self.filled)
        gone, came = self._touched() if straight is None else self._added_up(straight)
        changed = self._turn(gone, came) if gone or came else {}
        if self.machine is not None and straight is None:
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
        for straight in (one for some in self.straight.values() for one in some):
            for text in (straight.text, straight.whole):
                self.tables.execute(text, straight.statement.parameters)
        for change in self.changes:
            for text in (change.grouped, change.text) if self.group.own else (change.grouped,):
                self.tables.execute(text, change.parameters)
        self.tables.compile(self.hold, self.delete, self.put_in, self.take_out, *self.lists.values())
        self.tables.compile(*([self.replace] if self.group.read else []), *([self.own_insert, self.own_delete] if self.group.own else []))
        self.tables.execute(self.find, (None,) * self.group.keys)
        for look_up in self.look_ups.values():
            self.tables.execute(look_up.text, (None,) * self.group.keys + look_up.constants)
        if self.group.keys:
            self._states(())

    def _touched(self) -> tuple[Groups, Groups]:
        """The groups of the bindings that went, and of those that came; bindings are kept, if their rows are."""
        touched: tuple[Groups, Groups] = {}, {}
        many = self.tables.connection.executemany
        if self.taken is not None:
            for came, rows in enumerate(self.at_hand.get(self.taken.relation, ())):
                if bindings := self.taken.bindings(rows):
                    if self.group.own:
                        many(self.own_insert if came else self.own_delete, bindings)
                    touched[came].update(gathered(self.group, bindings, self.decoders))
            return touched
        for change in self.changes:
            if not (self.machine.sizes.get(change.table) if self.machine is not None else change.table in self.filled):
                continue
            if self.group.own:
                many(self.own_insert if change.came else self.own_delete, self.tables.execute(change.text, change.parameters).fetchall())
            touched[change.came].update(self._groups(change.grouped, change.parameters))
        return touched

    def _straight_for(self, filled: Sequence[str]) -> list[_Straight] | None:
        """The statements that find all bindings that went and came, if there is only one for each: of several, one could find what another finds."""
        statements = [statement for name in filled for statement in self.straight.get(name, ())]
        return statements if statements and len({statement.came for statement in statements}) == len(statements) else None

    def _added_up(self, straight: Iterable[_Straight]) -> tuple[Groups, Groups]:
        """The groups of the bindings that went, and of those that came, which are not put anywhere."""
        touched: tuple[Groups, Groups] = {}, {}
        for way in straight:
            text = way.whole if way.statement.without.isdisjoint(self.filled) else way.text
            touched[way.came].update(self._groups(text, way.statement.parameters))
        self.derived, self.rounds = sum(group[0] for groups in touched for group in groups.values()), 1
        return touched

    def _groups(self, text: str, parameters: Parameters) -> Groups:
        """The groups that a statement gives, as states are written."""
        width, rows = self.group.keys, self.tables.execute(text, parameters).fetchall()
        if not rows:
            return {}
        columns = read(self.group, [row[width:] for row in rows])
        return dict(zip([row[:width] for row in rows], zip(*columns, strict=True), strict=True))

    def _turn(self, gone: Groups, came: Groups) -> dict[str, Direction]:
        """Gives groups their new state; and their new values, where these are others."""
        group, width, many = self.group, self.group.keys, self.tables.connection.executemany
        groups = list(self._alone(gone, came) if not width or len(gone) + len(came) <= FEW else self._together(gone, came))
        held = [key + now for key, _, now, _, _ in groups if now is not None]
        deletes = [key + state for key, state, now, _, _ in groups if now is None and state is not None]
        others = [(key, old, new) for key, _, _, old, new in groups if old != new]
        minus = [key + old for key, old, _ in others if old is not None]
        plus = [key + new for key, _, new in others if new is not None]
        paired = [new + key + old for key, old, new in others if new is not None and old is not None]
        if not group.tests:
            self.tables.undefined += [new for _, _, now, _, new in groups if now is not None].count(None)
        if held and not width:
            many(self.delete, [()])
        if len(held) > FEW:
            put(self.tables.connection, f"INSERT INTO {self.state}", len(held[0]), held, self.otherwise)
        elif held:
            many(self.hold, held)
        if deletes and not group.asked:
            many(self.delete, [row[:width] for row in deletes])
        changed = self._pass_on(minus, plus, paired)
        if group.asked:
            changed |= self._list(group.state.relation, deletes, [key + now for key, state, now, _, _ in groups if state is None and now])
        return changed

    def _alone(self, gone: Groups, came: Groups) -> Iterator[_Turned]:
        """Groups one by one."""
        group, execute = self.group, self.tables.execute
        for key in gone.keys() | came.keys() if gone and came else gone or came:
            state = execute(self.find, key).fetchone()
            before = read_alone(group, state)
            now = turned_alone(group, key, before, gone.get(key), came.get(key), self._next)
            yield key, state, written_alone(group, now), self._value(before), self._value(now)

    def _together(self, gone: Groups, came: Groups) -> Iterable[_Turned]:
        """Many groups; sorted, because rows that lie side by side change faster."""
        group, keys = self.group, sorted(gone.keys() | came.keys())
        stored = self._states(keys)
        states = list(map(stored.get, keys))
        before = read(group, states)
        now = turned(group, keys, before, aligned(group, keys, gone), aligned(group, keys, came), self._next)
        return zip(keys, states, written(group, now), self._values(before), self._values(now), strict=True)

    def _pass_on(self, minus: list[Cells], plus: list[Cells], paired: list[Cells]) -> dict[str, Direction]:
        """Changes the values; `paired` are the new ones of groups that had others, with the row before. If no rule reads what they were, they change at once."""
        relation, many = self.group.aux.relation, self.tables.connection.executemany
        if relation in self.unread:
            if paired and len(paired) == len(minus) == len(plus):
                many(self.replace, paired)
            else:
                many(self.take_out, minus)
                many(self.put_in, plus)
            self.at_hand[relation] = minus, plus
            return {relation: Direction(bool(minus), bool(plus))} if minus or plus else {}
        if plus:
            many(self.put_in, plus)
        return self._list(relation, minus, plus)

    def _list(self, relation: str, minus: Sequence[Cells], plus: Sequence[Cells]) -> dict[str, Direction]:
        """Lists what a relation lost and gained; what is lost leaves it when the transaction ends."""
        for kind, rows in (("minus", minus), ("plus", plus)):
            if rows:
                self.tables.connection.executemany(self.lists[relation, kind], rows)
                self.filled.add(self.work(relation, kind))
        return {relation: Direction(bool(minus), bool(plus))} if minus or plus else {}

    def _states(self, keys: Iterable[Cells]) -> dict[Cells, Cells]:
        """The states that groups have, those that are not empty."""
        width = self.group.keys
        put(self.tables.connection, self.ask, width, keys)
        states = {row[:width]: row[width:] for row in self.tables.execute(self.find_all)}
        self.tables.execute(self.ask_nothing)
        return states

    def _values(self, columns: Columns) -> list[Cells | None]:
        """The values that rules read, as they are stored."""
        if self.extremes:
            columns = [*columns]
            for place, decode in self.extremes.items():
                columns[place] = [cell if cell is None else decode(cell) for cell in columns[place]]
        return values(self.group, columns, self.encoders)

    def _value(self, cells: list[Any]) -> Cells | None:
        """The values of one group that rules read, as they are stored."""
        if self.extremes and cells[0]:
            cells = [*cells]
            for place, decode in self.extremes.items():
                cells[place] = decode(cells[place])
        return value_alone(self.group, cells, self.encoders)

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
                    text, parameters = self._select((replace(self.row, relation=name),), self.reading, stored=True)
                    yield _Changes(name, text, self._grouped(text, self.reading), parameters, came)
            return
        source = self.rules[0].body[0]
        assert isinstance(source, Atom), "the bindings are the rows of a table"
        state = self.states[source.relation]
        for name, kind, came in ((state.lost, "minus", False), (state.gained, "plus", True)):
            text, parameters = self._select((replace(source, relation=name),), self.reading, stored=False)
            yield _Changes(self.work(source.relation, kind), text, self._grouped(text, self.reading), parameters, came)

    def _straight(self) -> dict[str, list[_Straight]]:
        """For what changed the statements that find bindings, if all of them do: then each binding is found in one way, unless several relations have changed."""
        if self.machine is None or self.group.own:
            return {}
        state, straight = self.states[self.group.rows.relation], dict[str, list[_Straight]]()
        for name, statements in (entry for rank in self.plan.ranks for entry in rank.items()):
            for statement, window in statements:
                if window or statement.needs or statement.target not in (state.lost, state.gained):
                    return {}
                text, whole = (self._grouped(sql.removeprefix(statement.put), self.reading) for sql in (statement.text, statement.whole))
                straight.setdefault(name, []).append(_Straight(statement, text, whole, statement.target == state.gained))
        return straight

    def _prepare(self) -> None:
        group, layout, tables = self.group, self.layout, self.tables
        columns = [*map(quote, layout.columns[group.state.relation])]
        keys, held = columns[: group.keys], columns[group.keys :]
        self.state, where = quote(layout.tables[group.state.relation]), _equal(layout.columns[group.state.relation][: group.keys])
        self.find = f"SELECT {', '.join(held)} FROM {self.state} WHERE {where}"
        now = ", ".join(f"{column} = excluded.{column}" for column in held)
        self.otherwise = f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {now}" if keys else ""
        self.hold = f"INSERT INTO {self.state} VALUES ({', '.join('?' for _ in columns)}) {self.otherwise}"
        self.delete = f"DELETE FROM {self.state} WHERE {where}"
        if keys:
            asked = self.work(group.state.relation, "asked")
            tables.create_work(asked, f"({', '.join(keys)})")
            same = " AND ".join(f"s.{key} = a.{key}" for key in keys)
            self.ask = f"INSERT INTO {quote(asked)}"
            self.ask_nothing = f"DELETE FROM {quote(asked)}"
            self.find_all = (
                f"SELECT {', '.join(f's.{column}' for column in columns)} FROM {quote(asked)} AS a CROSS JOIN {self.state} AS s ON {same}"
            )

        def insert(relation: str, table: str) -> str:
            return f"INSERT INTO {quote(table)} VALUES ({', '.join('?' for _ in layout.columns[relation])})"

        self.put_in = insert(group.aux.relation, layout.tables[group.aux.relation])
        listed = [name for name in (group.aux.relation, group.state.relation) if name not in self.unread]
        self.lists = {(name, kind): insert(name, self.work(name, kind)) for name in listed for kind in ("minus", "plus")}
        rows, names = layout.tables[group.rows.relation], layout.columns[group.rows.relation]
        self.own_insert = insert(group.rows.relation, rows)
        self.own_delete = f"DELETE FROM {quote(rows)} WHERE {_equal(names)}"
        shown = [*map(quote, layout.columns[group.aux.relation][group.keys :])]
        whole = _equal(layout.columns[group.aux.relation])
        self.replace = (
            f"UPDATE {quote(layout.tables[group.aux.relation])} SET {', '.join(f'{column} = ?' for column in shown)} WHERE {whole}"
        )
        self.take_out = f"DELETE FROM {quote(layout.tables[group.aux.relation])} WHERE {whole}"
        self.decoders = {place: code for place, part in enumerate(group.parts) if part.op in ADDED and (code := decoder(part.type))}
        self.extremes = {1 + place: code for place, part in enumerate(group.parts) if part.op in EXTREMES and (code := decoder(part.type))}
        self.encoders = {place: code for place in group.read if (code := encoder(group.shown[place].type))}

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
        if not group.own and relation not in self.unread:
            same = " AND ".join(f"g.{name} = t.{name}" for name in names)
            where.append(f"NOT EXISTS (SELECT 1 FROM {quote(self.work(relation, 'minus'))} AS g WHERE {same})")
        order = f"ORDER BY t.{names[cell]}{' DESC' if part.op == 'max' else ''} LIMIT 1"
        text = f"SELECT t.{names[cell]} FROM {quote(self.layout.tables[relation])} AS t WHERE {' AND '.join(where) or 'true'} {order}"
        return _LookUp(text, tuple(_stored(arg) for arg in fixed.values()))


def _equal(columns: Sequence[str]) -> str:
    """The condition that columns have given values."""
    return " AND ".join(f"{quote(column)} = ?" for column in columns) or "true"


def _stored(constant: Constant) -> Any:
    assert constant.type is not None, "checked programs are typed"
    encode = encoder(constant.type)
    return encode(constant.value) if encode else constant.value
