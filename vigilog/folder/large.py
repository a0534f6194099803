"""What is large in a data folder: relations that live on Spark, loads, differences, snapshots.

A base relation that does not fit into the memory budget is not resident: it is its snapshot, with what the log has since then. Small changes of it come as transactions like any other; large ones are
compared, written and diffed by Spark, and the log names what Spark wrote.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import reduce
from operator import attrgetter, or_
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from vigilog.core.delta import Delta, between
from vigilog.core.effect import Effect, Part
from vigilog.core.errors import DataError
from vigilog.core.extras import SPARK
from vigilog.core.values import Row, Type
from vigilog.engine.outcome import Outcome
from vigilog.engine.proposal import Proposal, Settle
from vigilog.executors.allowance import TooDear
from vigilog.executors.mixed import Beginning, MixedViews
from vigilog.executors.watch import Watch
from vigilog.files.place import Place
from vigilog.folder import tables
from vigilog.folder.order_of_rows import order_of_rows
from vigilog.folder.residency import fitting, size
from vigilog.language.program import Program
from vigilog.planning.layout import Layout
from vigilog.rewriting.maintenance.plan import plan
from vigilog.rewriting.maintenance.strategies.choose import depends_on
from vigilog.rewriting.program.relevant import relevant
from vigilog.spark import direct
from vigilog.spark.session import on_this_machine, surviving
from vigilog.spark.snapshots import PLAIN, RowOrder, Spooled, Written, folders, read_rows, remove, spool

if TYPE_CHECKING:
    import pyarrow as pa

    from vigilog.engine.compiled import Compiled
    from vigilog.executors.spark.bulk import Bulk, Difference
    from vigilog.folder.durable import Durable
    from vigilog.spark.types import DataFrame

LoadMode = Literal[
    "add", "upsert", "delete_key", "equal"
]  # rows come; take the place of those with their key; are keys whose rows go; are all there is

FEW_ROWS = 100_000  # up to so many changed rows pass through this process
MOST_ROWS = 1_000_000  # up to so many can be looked at here
MANY_ROWS = 10_000  # so many rows come to a relation before it is looked at whether it has outgrown the budget
LONG_TAIL = 200_000  # from so many changed rows since its snapshot on, a relation that is not resident gets a new one


@dataclass(frozen=True)
class FormerProgram:
    """A program that another has taken the place of, and those of its views that mean something else now: rows that are here, or frames on Spark."""

    compiled: Compiled
    views: Mapping[str, set[Row] | DataFrame]

    def alike(self, view: str, program: Program) -> bool:
        """Whether a view has the same columns in another program."""
        one, other = self.compiled.program.relations.get(view), program.relations.get(view)
        return one is not None and other is not None and (one.columns, one.types) == (other.columns, other.types)


class SparkDelta:
    """A change of a relation whose rows are on Spark: see `Elsewhere`."""

    def __init__(self, large: Large, relation: str, parts: Sequence[tuple[Bulk, Difference]]) -> None:
        self.large, self.relation, self.parts = large, relation, parts
        self.rows = sum(difference.rows for _, difference in parts)

    def here(self) -> Delta:
        if self.rows > MOST_ROWS:
            raise DataError(f"{self.rows} rows of {self.relation} change at once, more than are looked at here ({MOST_ROWS})", "large")
        deltas = [bulk.rows(self.relation, difference) for bulk, difference in self.parts]
        gone, came = ({row for delta in deltas for row in side(delta)} for side in (attrgetter("minus"), attrgetter("plus")))
        return between(gone, came)

    def then(self, later: Delta) -> SparkDelta:
        ((bulk, difference),) = self.parts
        return SparkDelta(self.large, self.relation, [(bulk, bulk.then(self.relation, difference, later))])

    def written(self) -> dict[str, Any]:
        return reduce(or_, (self.large.written(bulk, self.relation, difference) for bulk, difference in self.parts))


@dataclass(frozen=True)
class SparkChange:
    """A change of one base relation whose rows stay on Spark: its new snapshot is written, and views are compared before and after."""

    large: Large
    bulk: Bulk
    relation: str
    current: Any
    difference: Difference
    fires = True

    def maintain(self, settle: Settle, *, keep: bool, idle: bool) -> None:
        db, large, bulk, relation = self.large.db, self.large, self.bulk, self.relation
        home = db.homes[relation]
        frame = bulk.after(home, self.current, self.difference)
        if relation in db.program.keys:
            large.check_key(bulk, relation, frame)
        touched = [name for name in db.compiled.told if home in depends_on(db.plain, name)]
        asked = [name for name in db.compiled.queries if home in depends_on(db.plain, name)]
        if asked:
            raise TooDear(asked, f"{self.difference.rows:,} rows of {relation} have changed at once")
        before = {name: large.frame(name) for name in touched}
        order = large.order(relation)
        after, old = bulk.write(home, frame, large.warehouse, f"snapshot-{db.tx + 1}", order=order), large.snapshot(relation)
        base = SparkDelta(large, relation, [(bulk, self.difference)])
        with db.swapping(keep=keep):
            large.keep(relation, after, db.tx + 1)
            db.move(db.large | {relation})
            views = {name: large.part(name, (bulk, bulk.between(before[name], large.frame(name)))) for name in touched}
            net = settle(Effect({relation: base}, {name: part for name, part in views.items() if not isinstance(part, Delta) or part}))
            if net.changes[relation] is not base:  # something that followed from it changed it further
                after = bulk.write(home, large.frame(relation), large.warehouse, f"snapshot-{db.tx + 1}", order=order)
                large.keep(relation, after, db.tx + 1)
        large.clear_old(home, [after, *([old[0]] if old else [])])


class Large:
    """The part of a database that Spark holds."""

    def __init__(self, db: Durable, warehouse: str, memory: int) -> None:
        self.db, self.warehouse, self.memory = db, warehouse, memory
        self.grown: dict[str, int] = {}  # how many rows of each large relation have changed since its tail was last looked at,
        self.added: dict[str, int] = {}  # and how many have come to each resident one since it was last counted
        self.spooled: dict[str, tuple[Spooled, ...]] = {}  # the rows of resident relations, as Spark reads them
        self.unique: dict[str, tuple[int, ...]] = {}  # keys of relations that hold for what this has just written
        self.looking: set[object] = set()  # who reads a state that may rest on files of before

    # -- snapshots

    def snapshot(self, relation: str) -> tuple[Written, int] | None:
        """The newest snapshot of a base relation, and the transaction it was taken at."""
        row = self.db.file.connection.execute("SELECT location, rows, tx FROM vigilog_snapshots WHERE relation = ?", (relation,)).fetchone()
        return row and (Written(self.located(row[0]), row[1]), row[2])

    def keep(self, relation: str, written: Written, tx: int) -> None:
        """Notes a snapshot, inside a transaction of the file."""
        self.db.file.connection.execute(
            "INSERT OR REPLACE INTO vigilog_snapshots VALUES (?, ?, ?, ?, ?)",
            (relation, tx, written.location.removeprefix(f"{self.root}/"), written.rows, time.time()),
        )
        self.db.file.seal()

    @property
    def root(self) -> str:
        return self.warehouse.rstrip("/")

    def located(self, location: str) -> str:
        """Where something in the warehouse is; it is called by its place there, so that all of it can move."""
        return f"{self.root}/{location}"

    def order(self, relation: str) -> RowOrder:
        """In which order the rows of a base relation are written."""
        return order_of_rows(self.db.plain, self.db.homes[relation], self.db.program.keys.get(relation, ()))

    def snapshot_taken(self, relation: str) -> float:
        """When the newest snapshot of a base relation was taken."""
        (at,) = self.db.file.connection.execute("SELECT at FROM vigilog_snapshots WHERE relation = ?", (relation,)).fetchone()
        return float(at)

    def remove(self, location: str) -> None:
        """Removes what nothing names any more."""
        remove(self.located(location))

    def source(self, relation: str) -> Any:
        """A base relation as Spark can read it: its snapshot and what came since, or its rows if it is resident."""
        from vigilog.executors.spark.stored import LOCAL_ROWS, TailedSnapshot

        if relation not in self.db.large:
            home = self.db.homes[relation]
            if self.db.kept_rows(home) <= LOCAL_ROWS or not on_this_machine() or not self.db.plain.relations[home].attributes:
                return self.db.rows(relation)
            columns, types = Layout(self.db.compiled.plain).columns[home], self.db.plain.relations[home].types
            before = self.spooled.get(relation, ())[-1:]  # frames that were given away may still read it
            self.spooled[relation] = (*before, spool(columns, types, self.db.views.rows(home)))
            return TailedSnapshot(self.spooled[relation][-1], Delta())
        snapshot = self.snapshot(relation)
        assert snapshot is not None, "what is not resident has a snapshot"
        tail = self.db.book.since(snapshot[1], [relation]).get(relation, Delta())
        self.grown[relation] = len(tail.plus) + len(tail.minus)
        return TailedSnapshot(snapshot[0], tail)

    def beginning(self, made: Compiled, outputs: Sequence[str], queries: Sequence[str] = (), *, stored: bool = True) -> Beginning:
        """Spark's part of the views, from what there is now; of what is to be stored there, all or nothing is."""
        from vigilog.executors.spark.views import SparkViews

        names = {home: name for name, home in made.homes.items()}
        large = [made.homes[name] for name in self.db.large]
        program = relevant(made.plain, [*outputs, *queries, *large])
        planned = plan(program, outputs, made.plan.kept if stored else {}, made.plan.grouped if stored else {})
        read = {home: self.source(name) for home, name in names.items() if home in program.relations}
        db, tx = self.db, self.db.tx

        def since() -> dict[str, Delta]:
            return {made.homes[name]: delta for name, delta in db.book.since(tx).items()}

        def views() -> SparkViews:
            watch = Watch(report=db.report)
            return SparkViews(planned, read, watch, budget=db.budget, strict=db.strict, queries=queries, allowance=db.queries.share)

        return Beginning(views, since)

    @surviving()
    def compact(self, relations: Iterable[str]) -> dict[str, int]:
        """Writes a new snapshot of each relation, as of now, and swaps it in; gives the numbers of rows. Readers of the old one are not disturbed: it goes with the next."""
        done = {}
        with closing(self._bulk()) as bulk:
            for name in relations:
                home, before = self.db.homes[name], self.snapshot(name)
                snapshot = bulk.load(home, self.source(name))
                written = bulk.write(home, snapshot.exact, self.warehouse, f"snapshot-{self.db.tx}", snapshot.rows, self.order(name))
                with self.db.writing():
                    self.keep(name, written, self.db.tx)
                done[name] = written.rows
                self.grown.pop(name, None)
                self.clear_old(home, [written, *([before[0]] if before else [])])
        if isinstance(self.db.views, MixedViews) and not self.db.large.isdisjoint(done):
            self.db.views.renew()
        self._place(done)
        return done

    def sizes(self) -> dict[str, int]:
        """About how many bytes each resident base relation takes."""
        db, large = self.db, self.db.large
        return {name: size(db.program.relations[name].types, db.kept_rows(home)) for name, home in db.homes.items() if name not in large}

    def _place(self, rows: Mapping[str, int]) -> None:
        """Relations with a new snapshot that have outgrown the budget leave the file; ones that fit again, with room to grow, come back."""
        large, sizes = self.db.large, self.sizes()
        anew = {name: size(self.db.program.relations[name].types, number) for name, number in rows.items()}
        out = rows.keys() - large - fitting(sizes | {name: anew[name] for name in rows.keys() - large}, self.memory)
        back = rows.keys() & large & fitting(sizes | anew, self.memory // 2)
        if out or back:
            coming = {name: self._snapshot_rows(name) for name in back}
            with self.db.swapping():
                self.db.move((large | out) - back, coming)

    def _snapshot_rows(self, relation: str) -> Iterable[Row]:
        """The rows of a relation whose snapshot was just taken, few at a time."""
        snapshot = self.snapshot(relation)
        assert snapshot is not None, "it was just taken"
        return read_rows(self.db.program.relations[relation].types, snapshot[0].location)

    def compact_if_due(self, changes: Mapping[str, Delta]) -> None:
        """Takes a new snapshot of relations whose tail has grown long, and of those that have outgrown the budget."""
        large = self.db.large
        due = []
        for name, delta in changes.items():
            if name in large:
                self.grown[name] = self.grown.get(name, 0) + len(delta.plus) + len(delta.minus)
                due += [name] if self.grown[name] > LONG_TAIL else []
            elif self._is_counted(name, delta):
                sizes = self.sizes()
                due += [other for other in sizes.keys() - fitting(sizes, self.memory) if other not in due]
        if due and SPARK.installed:  # else they stay resident, however large they are
            self.compact(due)

    def _is_counted(self, name: str, delta: Delta) -> bool:
        """Whether so many rows have come to a resident relation that it is time to look whether all fit. They are counted only now and then."""
        types = self.db.program.relations[name].types
        self.added[name] = self.added.get(name, 0) + len(delta.plus) - len(delta.minus)
        if self.added[name] < max(MANY_ROWS, self.memory // size(types, 16)):
            return False
        self.added[name] = 0
        return True

    def clear_old(self, home: str, kept: Sequence[Written]) -> None:
        """Removes snapshots that are older than these, unless somebody reads a state of before. One that was just replaced stays until it is replaced again, for other processes."""
        for location in () if self.looking else folders(self.warehouse, home, "snapshot"):
            if location not in {written.location for written in kept}:
                remove(location)

    def sweep(self) -> None:
        """Removes what nothing names: changes of transactions that were not committed, and relations that there are no more."""
        named = self.db.book.named("location")
        for location in [location for kind in ("plus", "minus", "load") for location in folders(self.warehouse, "*", kind)]:
            if location.removeprefix(f"{self.root}/") not in named:
                remove(location)
        relations = {location.removeprefix(f"{self.root}/").split("/")[0] for location in folders(self.warehouse, "*", "snapshot")}
        for relation in () if self.looking else relations - {*self.db.homes.values()}:
            for location in folders(self.warehouse, relation, "snapshot"):
                remove(location)

    # -- loads

    @surviving()
    def begin(self, made: Compiled, places: Sequence[Place], others: Mapping[str, int]) -> dict[str, Iterable[Row] | Written]:
        """The rows of sources that a new database begins with, or, of those that do not fit beside the smaller ones and the sizes of `others`, snapshots.

        Many rows do not come here through the memory of Spark's driver: Spark writes them, sorted as their table is, and they are read few at a time.
        """
        from vigilog.spark.sources import expected

        counted = {place.relation: expected(place) for place in places}
        here = {place.relation: near for place in places if (near := direct.rows(place, MOST_ROWS)) is not None}
        if here.keys() == counted.keys() == self._resident(places, counted, others):
            return dict(here)
        with closing(self._bulk(made)) as bulk:
            loaded = {place.relation: bulk.load(made.homes[place.relation], place) for place in places if not counted[place.relation]}
            counted |= {name: snapshot.rows for name, snapshot in loaded.items()}
            resident = self._resident(places, counted, others)
            begun: dict[str, Iterable[Row] | Written] = {}
            for place in places:
                name, home, rows = place.relation, made.homes[place.relation], counted[place.relation]
                stays, snapshot = name in resident, loaded.get(name)
                if stays and name in here:
                    begun[name] = here[name]
                elif snapshot is None:
                    columns = bulk.frames.layout.columns[home]
                    key = () if stays else tuple(columns[column] for column in made.program.keys.get(name, ()))
                    what = "load" if stays else "snapshot-0"
                    order = PLAIN if stays else order_of_rows(made.plain, home, made.program.keys.get(name, ()))
                    written, unique = bulk.take(home, place, self.warehouse, what, rows, key=key, ordered=stays, order=order)
                    self.unique |= {name: made.program.keys[name]} if unique and name not in made.stated else {}
                    begun[name] = _passing(place.types, written) if stays else written
                elif stays and rows <= MOST_ROWS:
                    begun[name] = bulk.sorted(home, snapshot)
                elif stays:
                    begun[name] = _passing(place.types, bulk.write(home, bulk.ordered(home, snapshot), self.warehouse, "load", rows))
                else:
                    order = order_of_rows(made.plain, home, made.program.keys.get(name, ()))
                    begun[name] = bulk.write(home, snapshot.exact, self.warehouse, "snapshot-0", rows, order)
            return begun

    def _resident(self, places: Sequence[Place], counted: Mapping[str, int], others: Mapping[str, int]) -> frozenset[str]:
        """The relations of places that fit beside others, of which the sizes are given."""
        sizes = {place.relation: size(place.types, counted[place.relation]) for place in places}
        return fitting({**others, **sizes}, self.memory) & sizes.keys()

    @surviving()
    def change(
        self,
        relation: str,
        wanted: Place,
        way: LoadMode,
        *,
        kind: str,
        source: tuple[str, Any] | None = None,
    ) -> Outcome:
        """Changes a relation by what a source has, in one of the ways there are, in one transaction; the position of the source is committed with it."""
        home = self.db.homes[relation]
        few = relation not in self.db.large and self.db.kept_rows(home) <= FEW_ROWS
        if (few or way != "equal") and (rows := direct.rows(wanted, FEW_ROWS)) is not None:
            told = list(rows)
            gone = {relation: list(set(self.db.views.rows(home)).difference(told))} if way == "equal" else {}
            return self.db.take({"delete": gone, "insert" if way in ("add", "equal") else way: {relation: told}}, kind=kind, source=source)
        with closing(self._bulk()) as bulk:
            current = self.source(relation)
            if way == "equal" and (delta := bulk.few(home, current, wanted, FEW_ROWS)) is not None:
                return self.db.take(
                    {"delete": {relation: list(delta.minus)}, "insert": {relation: list(delta.plus)}}, kind=kind, source=source
                )
            declaration = self.db.program.relations[relation]
            columns = bulk.frames.layout.columns[home]
            key = [columns[column] for column in self.db.program.keys[relation]] if way in ("upsert", "delete_key") else ()
            if way == "delete_key":
                difference = bulk.without(home, current, wanted, key)
            else:
                difference = bulk.compare(home, current, wanted, replacing=way == "equal", key=key)
            fits = relation not in self.db.large and size(declaration.types, difference.came) <= self.memory // 4
            if difference.rows <= FEW_ROWS or (fits and difference.rows <= 10 * FEW_ROWS):
                delta = bulk.rows(home, difference)
                wish = {"delete": {relation: list(delta.minus)}, "insert": {relation: list(delta.plus)}}
                return self.db.take(wish, kind=kind, source=source)
            return self.db.propose(Proposal(SparkChange(self, bulk, relation, current, difference), kind, source))

    def equalize(self, relation: str, wanted: Place, *, kind: str, source: tuple[str, Any]) -> Outcome:
        """Makes a relation equal to a source; its position is committed with that."""
        return self.change(relation, wanted, "equal", kind=kind, source=source)

    @surviving()
    def follow(self, wanted: Place, name: str, *, kind: str, anew: bool = False) -> Outcome:
        """Makes a relation equal to a table that has snapshots, from the position of `name` on, which is committed with that, or `anew`."""
        return tables.follow(self, wanted, name, kind=kind, anew=anew)

    def exchange(self, relation: str, came: Place, gone: Place, *, kind: str, source: tuple[str, Any]) -> Outcome:
        """Some rows come to a relation and others go, all of them on Spark, in one transaction."""
        home = self.db.homes[relation]
        with closing(self._bulk()) as bulk:
            current = self.source(relation)
            difference = bulk.exchange(home, current, came, gone)
            return self.db.propose(Proposal(SparkChange(self, bulk, relation, current, difference), kind, source))

    def collected(self, place: Place) -> frozenset[Row]:
        """The rows of a source that only Spark can judge, here."""
        home = self.db.homes[place.relation]
        with closing(self._bulk()) as bulk:
            return bulk.collect(home, bulk.load(home, place).exact)

    def is_many(self, rows: int) -> bool:
        """Whether so many changed rows stay on Spark."""
        return rows > FEW_ROWS

    def rows_of(self, relation: str) -> int:
        """How many rows a base relation has."""
        snapshot = self.snapshot(relation) if relation in self.db.large else None
        if snapshot is None:
            return self.db.kept_rows(self.db.homes[relation])
        tail = self.db.book.since(snapshot[1], [relation]).get(relation, Delta())
        return snapshot[0].rows + len(tail.plus) - len(tail.minus)

    @surviving()
    def some(self, relation: str, most: int) -> Iterable[Row]:
        """Rows of a base relation, of one that is not resident at most so many."""
        home = self.db.homes[relation]
        if relation not in self.db.large:
            return self.db.views.rows(home)
        with closing(self._bulk()) as bulk:
            return bulk.collect(home, self._frame(home).limit(most))

    @surviving()
    def seen(self, name: str) -> set[Row] | DataFrame:
        """A view as of now, where it is: its rows, or a frame that stays as it is."""
        return self._frame(name) if self.is_far(name) else self.db.told_rows(name)

    @surviving()
    def redefined(self, past: FormerProgram, name: str, resources: ExitStack) -> Part:
        """What a change of definitions did to a view. What is on Spark lasts as long as the resources."""
        was, lost = past.views.get(name), past.compiled.plain.relations.get(name)
        now = self.seen(name) if name in self.db.compiled.told else None
        if (was is None or isinstance(was, set)) and (now is None or isinstance(now, set)):
            return between(was or set(), now or set())
        before, after = (resources.enter_context(closing(self._bulk(made))) for made in (past.compiled, None))
        old = before.local(name, list(was)) if isinstance(was, set) else was
        new = after.local(name, list(now)) if isinstance(now, set) else now
        parts: list[tuple[Bulk, Difference]] = []
        if old is not None and new is not None and lost and lost.types == self.db.plain.relations[name].types:
            parts = [(after, after.between(old.toDF(*new.columns), new))]
        else:  # rows of other types: those go, these come
            parts += [(before, before.between(old, old.limit(0)))] if old is not None else []
            parts += [(after, after.between(None, new))] if new is not None else []
        return self.part(name, *parts)

    def part(self, relation: str, *parts: tuple[Bulk, Difference]) -> Part:
        """A change as its rows, if they are few, and otherwise as where they are."""
        delta = SparkDelta(self, relation, parts)
        return delta.here() if delta.rows <= FEW_ROWS else delta

    def check_key(self, bulk: Bulk, relation: str, after: DataFrame) -> None:
        columns = [self.db.program.relations[relation].columns[column] for column in self.db.program.keys[relation]]
        if after.groupBy(*columns).count().where("count > 1").limit(1).count():
            raise DataError(f"{relation} would have several rows with the same key ({', '.join(columns)})", "key")

    def written(self, bulk: Bulk, relation: str, difference: Difference) -> dict[str, Any]:
        """A large change as an entry of the log names it: where Spark wrote it."""
        parts = {"plus": (difference.plus, difference.came), "minus": (difference.minus, difference.gone)}
        written = {kind: bulk.write(relation, frame, self.warehouse, kind, rows) for kind, (frame, rows) in parts.items() if rows}
        return {kind: {"location": part.location.removeprefix(f"{self.root}/"), "rows": part.rows} for kind, part in written.items()}

    def rows(self, types: Sequence[Type], location: str) -> Iterable[Row]:
        """The rows that Spark wrote for an entry."""
        return read_rows(types, self.located(location))

    def is_far(self, name: str) -> bool:
        return isinstance(self.db.views, MixedViews) and self.db.views.is_far(name)

    def _frame(self, name: str) -> DataFrame:
        assert isinstance(self.db.views, MixedViews), "there is a relation that is not resident"
        return self.db.views.distant.frame(name)

    @surviving()
    def frame(self, name: str) -> DataFrame:
        """A view as a frame, as of now."""
        if self.is_far(name):
            return self._frame(name)
        with closing(self._bulk()) as bulk:
            return bulk.local(name, sorted(self.db.told_rows(name)))

    @surviving()
    def table(self, name: str) -> pa.Table:
        """A view on Spark as an Arrow table, as of now."""
        assert isinstance(self.db.views, MixedViews), "there is a relation that is not resident"
        return self.db.views.distant.table(name)

    # -- what verify asks

    @surviving()
    def check_snapshot(self, relation: str, rows: Collection[Row] | None) -> tuple[int, int]:
        """How many rows a snapshot has, read to its end, and in how many it differs from the rows it should have, if these are given."""
        from vigilog.executors.spark.stored import TailedSnapshot

        newest = self.snapshot(relation)
        assert newest is not None, "there is one"
        home = self.db.homes[relation]
        with closing(self._bulk()) as bulk:
            snapshot = bulk.load(home, TailedSnapshot(newest[0], Delta()))
            if rows is None:
                return bulk.count(snapshot.exact), 0
            read = snapshot.collect()
            return len(read), len(read ^ set(rows))

    def check_views(self) -> Iterator[tuple[str, int]]:
        """Views on Spark that are not what the rules give, with the number of rows in which they differ."""
        assert isinstance(self.db.views, MixedViews), "there is a relation that is not resident"
        far = self.db.views.far
        with surviving(), closing(self.beginning(self.db.compiled, far, stored=False).taken()) as anew:
            yield from ((name, rows) for name, rows in self.db.views.distant.differing(anew, far).items() if rows)

    @surviving()
    def computed(self, base: Mapping[str, set[Row]], names: Sequence[str]) -> dict[str, set[Row]]:
        """The rows of relations, derived on Spark from base rows."""
        from vigilog.executors.spark.views import SparkViews

        made = self.db.compiled
        program = relevant(made.plan.whole, names)
        read = {made.homes[name]: rows for name, rows in base.items() if made.homes[name] in program.relations}
        with closing(SparkViews(plan(program, names), read, Watch(report=self.db.report))) as views:
            return {name: set(views.rows(name)) for name in names}

    def _bulk(self, made: Compiled | None = None) -> Bulk:
        from vigilog.executors.spark.bulk import Bulk

        return Bulk((made or self.db.compiled).plain, Watch(report=self.db.report))


def _passing(types: Sequence[Type], written: Written) -> Iterator[Row]:
    """The rows of what Spark wrote, which is removed when they are read."""
    try:
        yield from read_rows(types, written.location)
    finally:
        remove(written.location)


def default_warehouse(folder: Path) -> str:
    return str((folder / "warehouse").absolute())
