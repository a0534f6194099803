"""The frames of one component at a time.

A relation is a list of parts. In each round all rules of the component go into one query, whose result is settled by one action: the new rows of all
its relations, told apart by a tag. Where there are few rows, several components without recursion are one. A few new rows are brought to the driver, and go back as a local relation if rules
read them; many stay where they are, with their lineage cut.
When a relation has many parts, the next action merges the small ones in passing.

The query is one SQL text, which Spark plans several times faster than the same as chained DataFrame calls. New rows keep the partitioning of the `DISTINCT` that made them,
and so do their parts, so a part is never shuffled again; for that, columns have other names inside the query than outside it, and the number of partitions stays.

Spark estimates the size of a join as the product of the sizes it joins, and a frame whose lineage is cut keeps its estimate. Where a recursion joins what it derives with what it
derives, the estimate has twice as many digits after each round, and soon planning does nothing but multiply. Only a limit gives an estimate of its own, so such frames have one
that is never reached. It costs nothing in one partition; in several it brings all rows together, so there it is applied once in a while, to all parts at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from vigilog.core.arrow import arrow_schema
from vigilog.core.values import Row
from vigilog.executors.fixpoint import facts, fixpoint, recursive_positions
from vigilog.executors.spark import near
from vigilog.executors.spark import temporary as sizes
from vigilog.executors.spark.near import NearMachine, read_by
from vigilog.executors.spark.temporary import TemporaryViews
from vigilog.language.parts import is_fact
from vigilog.language.strata import Component, dependencies, layers
from vigilog.language.syntax import Atom, Rule
from vigilog.planning.best import best_rows
from vigilog.planning.distinct import Keys, gives_once
from vigilog.planning.select import Choice, select
from vigilog.spark.sources import REFUSED
from vigilog.spark.types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SMALL_ROWS = 1_000  # up to so many new rows come to the driver
LOCAL_ROWS = 20_000  # up to so many of them stay there
MOST_PARTS = 6
MOST_TOGETHER = 10  # relations without recursion that are computed by one action
NO_LIMIT = 2**31 - 1  # the largest that Spark knows
ROUNDS_UNBOUNDED = 10  # so many rounds may estimates grow in several partitions
MOST_SURPRISES = 2  # so often in a component may few recent rows turn out to give many new ones, which costs an action more
TAG, RECENT = "__relation", "__recent"


@dataclass
class _Relation:
    """The parts of a relation, oldest first: the name of a view and its number of rows; rows kept on the driver; the recent rows."""

    parts: list[tuple[str, int]] = field(default_factory=list)
    local: pa.Table | None = None
    local_view: str = ""
    local_shown: int = 0
    recent: int = 0


class FrameMachine:
    def __init__(self, frames: TemporaryViews, keys: Keys | None = None) -> None:
        """`keys` are those that relations are known to have."""
        self.frames, self.layout, self.keys = frames, frames.layout, keys or {}
        self.relations = {name: _Relation() for name in self.layout.program.relations}
        self.sizes = dict.fromkeys(self.relations, 0)
        self.derived = 0
        self.numbers = count()
        self.undefined: list[str] = []
        self.undefined_parameters: dict[str, str | float] = {}
        self.undefined_reads: set[str] = set()
        self.parameters: dict[str, str | float] = {}
        self.component = Component((), (), False)
        self.stale = set(self.relations)  # what is not to be seen as it is now
        self.once: frozenset[str] = frozenset()  # relations of the component whose candidates are distinct and new
        self.queries: dict[str, DataFrame] = {}  # what was left for later
        self.modest = True  # whether few rows have given few so far, where no recursion was

    def load(self, relation: str, frame: DataFrame) -> int:
        """Settles the rows of a source; gives the number of rows that the source marks as refused."""
        from pyspark.sql import functions as F

        counts = {"rows": F.count(F.lit(1))}
        if REFUSED in frame.columns:
            counts["refused"] = F.count_if(F.col(REFUSED))
        done, totals = self.frames.settle(frame.distinct(), counts)
        self.take(relation, done.select(*(F.col(f"`{name}`") for name in self._columns(relation))), totals["rows"])
        return totals.get("refused", 0)

    def take(self, relation: str, frame: DataFrame, rows: int) -> None:
        """Takes rows that are settled and distinct already."""
        self._add_part(relation, frame, rows)
        self.stale.add(relation)

    def state(self, relation: str, rows: Iterable[Row]) -> None:
        """Takes rows that are in this process: no action, unless there are many."""
        distinct = list(dict.fromkeys(rows))
        if len(distinct) > LOCAL_ROWS:
            self.load(relation, self.frames.local(relation, distinct))
        elif distinct:
            self._keep(relation, self.frames.table(relation, distinct))

    def whole(self, relation: str) -> DataFrame:
        """All rows of a relation."""
        return self.frames.sql(f"SELECT * FROM ({self._parts(relation)})", {})

    def asked(self, relation: str) -> DataFrame:
        """All rows of a relation, or those that were left for later."""
        return self.queries[relation] if relation in self.queries else self.whole(relation)

    def here(self, relation: str) -> pa.Table | None:
        """All rows of a relation, if they are on the driver."""
        state = self.relations[relation]
        if state.parts:
            return None
        return self.frames.table(relation, []) if state.local is None else state.local

    # -- rounds

    def evaluate(self, later: Collection[str] = ()) -> int:
        """Computes all relations; gives the number of rounds. The rows of those that are needed `later`, when they are asked for, are derived then, unless they are recursive, or others are derived from them."""
        rounds = 0
        for layer in layers(self.layout.program):
            now = [component for component in layer if not self._is_left(component, later)]
            for component in self._together(now):
                machine = NearMachine(self, component) if self._is_near(component) else self
                rounds += fixpoint(component, machine, self.frames.watch, self.layout.program.limits)
            for component in layer:
                if component not in now and (query := self._query(component)) is not None:
                    self.queries[component.relations[0]] = query
        return rounds

    def _is_near(self, component: Component) -> bool:
        """Whether a component is a recursion over so few rows that it had better be begun in this process."""
        if not component.recursive or component.best or any(self.sizes[relation] for relation in component.relations):
            return False  # what has rows of its own begins with them, and they are on Spark
        return sum(self.sizes[relation] for relation in read_by(component)) <= near.READ_ROWS

    def _is_left(self, component: Component, later: Collection[str]) -> bool:
        relation, *others = component.relations
        return relation in later and not others and not component.recursive and not component.best and not self._is_read(relation)

    def _is_read(self, relation: str) -> bool:
        return any(atom.relation == relation for rule in self.layout.program.rules for atom, _ in dependencies(rule))

    def _query(self, component: Component) -> DataFrame | None:
        """The rows of the one relation of a component, derived as they are read; None if they are here already."""
        (relation,) = component.relations
        texts = self._begin(component)[relation]
        if not texts:
            return None
        columns = ", ".join(f"n{place} AS `{column}`" for place, column in enumerate(self._columns(relation)))
        return self.frames.sql(f"SELECT {columns} FROM ({self._unknown(relation, texts)})", self.parameters)

    def _together(self, layer: Sequence[Component]) -> Iterable[Component]:
        """The components of a layer; those without recursion are taken together where there are few rows, for what an action costs then is the action itself."""
        plain = [component for component in layer if not component.recursive]
        if len(plain) < 2 or sum(self.sizes.values()) > sizes.ROWS_A_PARTITION:
            yield from layer
            return
        yield from (component for component in layer if component.recursive)
        for start in range(0, len(plain), MOST_TOGETHER):
            some = plain[start : start + MOST_TOGETHER]
            relations = tuple(relation for component in some for relation in component.relations)
            yield Component(relations, tuple(rule for component in some for rule in component.rules), False)

    def start(self, component: Component) -> int:
        candidates = self._begin(component)
        read = {atom.relation for rule in self.rules for atom, _ in dependencies(rule)}
        fresh = self._settle(candidates, small=self.modest and sum(self.sizes[relation] for relation in read) <= SMALL_ROWS)
        self.modest &= not self.surprises
        self.derived += sum(fresh.values())
        for relation in component.relations if component.recursive else ():
            self.relations[relation].recent = self.sizes[relation]
            self._show(relation)
            self.frames.show(self._recent(relation), self.whole(relation), self.sizes[relation])
        return sum(self.sizes[relation] for relation in component.relations)

    def take_over(self, component: Component) -> None:
        """A component is evaluated, but for what is to be done in the end."""
        self.component = component
        self.rules = [rule for rule in component.rules if not is_fact(rule)]

    def _begin(self, component: Component) -> dict[str, list[str]]:
        """The queries of a component's first round, by relation."""
        self.take_over(component)
        self.variants = [(rule, position) for rule in self.rules for position in recursive_positions(rule, component)]
        self.read_whole = {
            literal.relation
            for rule, position in self.variants
            for index, literal in enumerate(rule.body)
            if index != position and isinstance(literal, Atom) and literal.relation in component.relations
        }
        self.texts: dict[tuple[int, int | None], str] = {}
        self.parameters = {}
        self.surprises = self.unbounded = 0
        read = {atom.relation for rule in self.rules for atom, _ in dependencies(rule)}
        self._see(read)
        self.frames.prepare(component.recursive, sum(self.sizes.values()))
        candidates: dict[str, list[str]] = {relation: [] for relation in component.relations}
        first = [rule for rule in self.rules if not recursive_positions(rule, component)]
        heads = Counter(rule.head.relation for rule in component.rules)
        self.once = frozenset(
            rule.head.relation for rule in first if heads[rule.head.relation] == 1 and not component.best and gives_once(rule, self.keys)
        )
        for relation, rows in facts(component).items():
            if not self.sizes[relation] and all(rule.head.relation != relation for rule in first):
                self.state(relation, rows)
                self.derived += self.sizes[relation]
                continue
            view = self.frames.show(f"{self.layout.tables[relation]}__facts", self.frames.local(relation, rows))
            candidates[relation].append(f"SELECT * FROM {view}")
        for rule in first:
            candidates[rule.head.relation].append(self._select(rule, None))
        return candidates

    def advance(self) -> int:
        candidates: dict[str, list[str]] = {relation: [] for relation in self.component.relations}
        for rule, position in self.variants:
            read = rule.body[position]
            assert isinstance(read, Atom)
            if self.relations[read.relation].recent:
                candidates[rule.head.relation].append(self._select(rule, position))
        recent = sum(self.relations[relation].recent for relation in self.component.relations)
        fresh = self._settle(candidates, small=recent <= SMALL_ROWS and self.surprises < MOST_SURPRISES)
        for relation in self.component.relations:
            self.relations[relation].recent = fresh.get(relation, 0)
        for relation in self.read_whole:
            self._show(relation)
        self.derived += sum(fresh.values())
        return sum(fresh.values())

    def size(self, relation: str) -> int:
        return self.sizes[relation]

    def finish(self) -> None:
        for relation in self.component.best:
            self._keep_best(relation)
        for relation in self.component.relations:
            self.relations[relation].recent = 0
        self.stale.update(self.component.relations)
        for rule in self.rules:
            chosen = select(rule, self.layout, self.frames.dialect, Choice(rows=self.sizes, prefix=f"u{len(self.undefined)}_"))
            if chosen.undefined:
                self.undefined += chosen.undefined_texts
                self.undefined_parameters |= chosen.parameters
                self.undefined_reads.update(atom.relation for atom, _ in dependencies(rule))

    def _keep_best(self, relation: str) -> None:
        """Leaves of a relation what is the best in the end."""
        from pyspark.sql import functions as F

        if not self.sizes[relation]:
            return
        self._close_local(relation)
        columns = self._columns(relation)
        names = ", ".join(f"`{column}` AS n{i}" for i, column in enumerate(columns))
        text = best_rows(f"SELECT {names} FROM ({self._parts(relation)})", self.component.best[relation], len(columns))
        shown = ", ".join(f"n{i} AS `{column}`" for i, column in enumerate(columns))
        done, totals = self.frames.settle(self.frames.sql(f"SELECT {shown} FROM ({text})", {}), {"rows": F.count(F.lit(1))})
        kept = done.select(*(F.col(f"`{name}`") for name in columns))
        self._replace(relation, kept, totals["rows"], list(self.relations[relation].parts))

    def count_undefined(self) -> int:
        """In how many cases a functor of some rule had no value: one action, none if no rule has such a functor."""
        if not self.undefined:
            return 0
        self._see(self.undefined_reads)
        text = f"SELECT sum(n) FROM ({' UNION ALL '.join(self.undefined)})"
        return int(self.frames.act(lambda: self.frames.sql(text, self.undefined_parameters).collect())[0][0] or 0)

    # -- the action of a round

    def _settle(self, candidates: dict[str, list[str]], *, small: bool) -> dict[str, int]:
        """Computes what is new among the candidates, for all relations in one action, and adds it to them."""
        from pyspark.sql import functions as F

        relations = [relation for relation, texts in candidates.items() if texts]
        if not relations:
            return {}
        fresh = [self._wide(relations, relation, self._unknown(relation, candidates[relation]), "true") for relation in relations]
        if small:
            table = self._collect(fresh)
            if table is not None:
                return self._add_local(relations, table)
            self.surprises += 1
        bounded = self._bounded()
        merged = {relation: self._parts_to_merge(relation, everything=bounded and self.frames.width > 1) for relation in relations}
        for relation, parts in merged.items():
            fresh += [self._wide(relations, relation, self._renamed(relation, view), "false") for view, _ in parts]
        counts = {f"n{i}": F.count_if((F.col(TAG) == i) & F.col(RECENT)) for i in range(len(relations))}
        text = " UNION ALL ".join(fresh)
        if bounded:
            text = f"SELECT * FROM ({text}) LIMIT {NO_LIMIT}"
        done, totals = self.frames.settle(self.frames.sql(text, self.parameters), counts)
        for index, relation in enumerate(relations):
            columns = [F.col(f"c{index}_{place}").alias(name) for place, name in enumerate(self._columns(relation))]
            own = done if len(relations) == 1 else done.where(F.col(TAG) == index)
            recent = own.where(RECENT) if merged[relation] else own
            if self.component.recursive:
                self.frames.show(self._recent(relation), recent.select(*columns), totals[f"n{index}"])
            self._replace(relation, own.select(*columns), totals[f"n{index}"], merged[relation])
        return {relation: totals[f"n{index}"] for index, relation in enumerate(relations)}

    def _unknown(self, relation: str, texts: Sequence[str]) -> str:
        """The distinct candidates that the relation does not have yet, in columns n0, n1, …

        A left join that hashes the candidates and streams the relation: an anti join could only hash the relation.
        """
        names = [f"n{i}" for i in range(len(self._columns(relation)))]
        listed = ", ".join(names)
        if relation in self.component.best:
            return self._better(relation, f"SELECT {listed} FROM ({' UNION ALL '.join(texts)}) AS u({listed})")
        distinct = f"SELECT {'' if relation in self.once else 'DISTINCT '}{listed} FROM ({' UNION ALL '.join(texts)}) AS u({listed})"
        if not self.sizes[relation]:
            return distinct
        columns = ", ".join(f"`{column}` AS f{i}" for i, column in enumerate(self._columns(relation)))
        equal = " AND ".join(f"f.f{i} = c.n{i}" for i in range(len(names)))
        qualified = ", ".join(f"c.{name}" for name in names)
        return (
            f"SELECT {listed} FROM (SELECT /*+ SHUFFLE_HASH(c) */ {qualified}, f.f0 FROM ({distinct}) c "
            f"LEFT JOIN (SELECT {columns} FROM ({self._parts(relation)})) f ON {equal}) WHERE f0 IS NULL"
        )

    def _better(self, relation: str, text: str) -> str:
        """The best of the candidates for each binding of their other columns, where the relation has none as good."""
        width, best = len(self._columns(relation)), self.component.best[relation]
        candidates = best_rows(text, best, width)
        if not self.sizes[relation]:
            return candidates
        names = ", ".join(f"`{column}` AS n{i}" for i, column in enumerate(self._columns(relation)))
        current = best_rows(f"SELECT {names} FROM ({self._parts(relation)})", best, width)
        equal = " AND ".join(f"f.n{i} = c.n{i}" for i in best.keys(width)) or "true"
        value, sign = f"n{best.column}", "<" if best.op == "min" else ">"
        shown = ", ".join(f"c.n{i}" for i in range(width))
        return (
            f"SELECT {shown} FROM ({candidates}) c LEFT JOIN ({current}) f ON {equal} WHERE f.{value} IS NULL OR c.{value} {sign} f.{value}"
        )

    def _renamed(self, relation: str, view: str) -> str:
        return "SELECT " + ", ".join(f"`{column}` AS n{i}" for i, column in enumerate(self._columns(relation))) + f" FROM {view}"

    def _wide(self, relations: Sequence[str], relation: str, text: str, recent: str) -> str:
        """Rows n0, n1, … of one relation among the columns of all, the others' being null."""
        columns = [f"{relations.index(relation)} AS {TAG}", f"{recent} AS {RECENT}"]
        for index, other in enumerate(relations):
            for place, type_ in enumerate(self.layout.types[other]):
                cell = f"n{place}" if other == relation else f"CAST(NULL AS {spark_type(type_)})"
                columns.append(f"{cell} AS c{index}_{place}")
        return f"SELECT {', '.join(columns)} FROM ({text})"

    def _collect(self, fresh: Sequence[str]) -> pa.Table | None:
        """The new rows, brought to the driver; None if they turn out to be too many for that."""
        text = f"SELECT * FROM ({' UNION ALL '.join(fresh)}) LIMIT {SMALL_ROWS + 1}"
        table = self.frames.act(lambda: self.frames.sql(text, self.parameters).toArrow())
        return table if table.num_rows <= SMALL_ROWS else None

    # -- parts

    def _add_local(self, relations: Sequence[str], table: pa.Table) -> dict[str, int]:
        result = {}
        for index, relation in enumerate(relations):
            rows = table.filter(pc.equal(table[TAG], index)).select([f"c{index}_{i}" for i in range(len(self._columns(relation)))])
            rows = pa.Table.from_arrays(rows.columns, schema=arrow_schema(self._columns(relation), self.layout.types[relation]))
            result[relation] = rows.num_rows
            if self.component.recursive:
                self.frames.show(self._recent(relation), self.frames.frame(relation, rows), rows.num_rows)
            if rows.num_rows:
                self._keep(relation, rows)
        return result

    def _keep(self, relation: str, rows: pa.Table) -> None:
        """Adds rows to those of a relation that are on the driver."""
        state = self.relations[relation]
        self.sizes[relation] += rows.num_rows
        self.stale.add(relation)
        state.local = rows if state.local is None else pa.concat_tables([state.local, rows])
        if state.local.num_rows > LOCAL_ROWS:
            self._close_local(relation)

    def _close_local(self, relation: str) -> None:
        """What is on the driver becomes a part like others, to be merged with them."""
        state = self.relations[relation]
        if state.local is not None:
            state.parts.append((self._local_view(relation, state.local), state.local.num_rows))
            state.local, state.local_view, state.local_shown = None, "", 0

    def _local_view(self, relation: str, rows: pa.Table) -> str:
        """What is on the driver, visible to SQL."""
        state = self.relations[relation]
        if state.local_shown != rows.num_rows:
            state.local_view = state.local_view or f"{self.layout.tables[relation]}__local_{next(self.numbers)}"
            self.frames.show(state.local_view, self.frames.frame(relation, rows))
            state.local_shown = rows.num_rows
        return state.local_view

    def _add_part(self, relation: str, part: DataFrame, rows: int) -> None:
        view = self.frames.show(f"{self.layout.tables[relation]}__part_{next(self.numbers)}", part)
        self.relations[relation].parts.append((view, rows))
        self.sizes[relation] += rows

    def _replace(self, relation: str, part: DataFrame, fresh: int, merged: list[tuple[str, int]]) -> None:
        state = self.relations[relation]
        old = sum(rows for _, rows in merged)
        state.parts = state.parts[: len(state.parts) - len(merged)]
        self.sizes[relation] -= old
        if fresh + old:
            self._add_part(relation, part, fresh + old)
        for view, _ in merged:
            self.frames.forget(view)

    def _bounded(self) -> bool:
        """Whether it is time to give the estimates of sizes a bound (see above)."""
        if not self.read_whole or sum(self.sizes.values()) > NO_LIMIT // 2:
            return False
        self.unbounded += 1
        if self.frames.width == 1 or self.unbounded > ROUNDS_UNBOUNDED:
            self.unbounded = 0
            return True
        return False

    def _parts_to_merge(self, relation: str, *, everything: bool) -> list[tuple[str, int]]:
        """The newest parts, if there are too many: back to the first that is more than twice as large as all behind it."""
        self._close_local(relation)
        parts = self.relations[relation].parts
        if everything:
            return list(parts)
        if len(parts) <= MOST_PARTS:
            return []
        start = len(parts) - 1
        behind = parts[start][1]
        while start > 0 and parts[start - 1][1] <= 2 * behind:
            start -= 1
            behind += parts[start][1]
        return parts[min(start, MOST_PARTS // 2) :]

    def _parts(self, relation: str) -> str:
        state = self.relations[relation]
        views = [view for view, _ in state.parts] + ([] if state.local is None else [self._local_view(relation, state.local)])
        if not views:
            views = [self.frames.show(f"{self.layout.tables[relation]}__none", self.frames.local(relation, []))]
        return " UNION ALL ".join(f"SELECT * FROM {view}" for view in views)

    # -- statements

    def _select(self, rule: Rule, position: int | None) -> str:
        key = (id(rule), position)
        if key not in self.texts:

            def table(index: int, atom: Atom) -> str:
                return self._recent(atom.relation) if index == position else self.layout.tables[atom.relation]

            choice = Choice(first=position, table=table, rows=self.sizes, prefix=f"r{len(self.texts)}_")
            chosen = select(rule, self.layout, self.frames.dialect, choice)
            self.parameters |= chosen.parameters
            self.texts[key] = chosen.text
        return self.texts[key]

    def _columns(self, relation: str) -> tuple[str, ...]:
        return self.layout.columns[relation]

    def _recent(self, relation: str) -> str:
        return f"{self.layout.tables[relation]}__recent"

    def _see(self, relations: Collection[str]) -> None:
        """Makes sure that relations are to be seen as they are now."""
        for relation in self.stale.intersection(relations):
            self._show(relation)
        self.stale.difference_update(relations)

    def _show(self, relation: str) -> None:
        growing = relation in self.component.relations and self.component.recursive
        rows = None if growing and self.relations[relation].recent else self.sizes[relation]
        self.frames.show(self.layout.tables[relation], self.whole(relation), rows)
