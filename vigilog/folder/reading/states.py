"""States of a database: read on connections of their own, so that nobody who writes waits for one who reads.

>>> from tempfile import TemporaryDirectory
>>> from vigilog.folder.opening import open_program
>>> program = '''
... .decl edge(x: symbol, y: symbol)
... .decl closure(x: symbol, y: symbol)
... .output closure
... closure(x, y) :- edge(x, y).
... closure(x, y) :- edge(x, z), closure(z, y).
... '''
>>> with TemporaryDirectory() as folder, open_program(program, {"edge": [("a", "b"), ("b", "c")]}, data=folder) as db:
...     with db.reading("closure") as state:
...         outcome = db.take({"insert": {"edge": [("c", "d")]}})
...         outcome.tx, state.tx, sorted(state.rows("closure"))
(1, 0, [('a', 'b'), ('a', 'c'), ('b', 'c')])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from threading import Condition
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from vigilog.core.errors import DataError
from vigilog.core.proofs import Proof
from vigilog.core.values import Row, Value, sorted_rows
from vigilog.core.whynot import WhyNot
from vigilog.engine.compiled import Compiled
from vigilog.engine.evaluate import ensure_known
from vigilog.executors.allowance import Allowance
from vigilog.executors.embedded.demand import OverBudget
from vigilog.executors.embedded.reader import EmbeddedReader
from vigilog.executors.embedded.tables import TooLarge
from vigilog.executors.mixed import MixedViews
from vigilog.executors.views import Views
from vigilog.executors.watch import Watch
from vigilog.executors.whynot import why_not
from vigilog.folder.reading.distant import begin, held
from vigilog.language.goal import Goal, goal_of, of_one_atom
from vigilog.language.parts import atoms
from vigilog.language.program import Program
from vigilog.planning.order import Search
from vigilog.store.file import damage
from vigilog.store.log import Log

if TYPE_CHECKING:
    from vigilog.executors.spark.reader import SparkReader
    from vigilog.folder.durable import Durable

MOST_READERS = 4  # at once; others wait
CACHE_KIB = 64_000

Bound = Mapping[int, Value]
T = TypeVar("T")


class State(Protocol):
    """The database after one transaction, with the log up to it."""

    tx: int
    log: Log

    def rows(self, relation: str, bound: Bound | None = None) -> Iterable[Row]:
        """The rows of a view or of a base relation: all, or those with some values in some columns."""

    def answers(self, goal: Goal) -> list[Row]: ...

    def why(self, goal: Goal) -> Proof | None: ...

    def why_not(self, goal: Goal, depth: int = 1) -> WhyNot:
        """Why an atom that does not hold does not."""


class Readers:
    """The connections that read. One is made when all others are busy, up to a number; then one waits for another.

    Each belongs to the tables of one program: after a change of definitions, or of what is resident, new ones are made.
    """

    def __init__(self, db: Durable) -> None:
        self.db = db
        self.idle: list[Reader] = []
        self.busy: set[Reader] = set()
        self.number = 0  # how many there are, idle or busy
        self.returned = Condition()
        self.closed = False

    @contextmanager
    def taken(self) -> Iterator[Reader]:
        reader = self._take()
        self.busy.add(reader)
        failed = True
        try:
            yield reader
            failed = False
        finally:
            fit = reader.embedded.end(failed=failed)
            with self.returned:
                self.busy.discard(reader)
                if fit and not self.closed:
                    self.idle.append(reader)
                else:
                    reader.embedded.close()
                    self.number -= 1
                self.returned.notify()

    def _take(self) -> Reader:
        with self.returned:
            self.returned.wait_for(lambda: self.idle or self.number < MOST_READERS or self.closed)
            if self.closed:
                raise DataError("the database is closed", "closed")
            reader = self.idle.pop() if self.idle else None
            self.number += reader is None
        if reader is not None and reader.views is self.db.views:
            return reader
        try:
            if reader is not None:
                reader.embedded.close()
            return Reader(self.db)
        except BaseException:
            with self.returned:
                self.number -= 1
                self.returned.notify()
            raise

    def close(self) -> None:
        """Ends all, those that are busy by force."""
        with self.returned:
            self.closed = True
            self.returned.notify_all()
            for reader in self.busy:
                reader.stop(DataError("the database is closed", "closed"))
            for reader in self.idle:
                reader.embedded.close()
            self.idle.clear()


class Reader:
    """A state of what is resident. `spark` reads the rest of it, if somebody does."""

    tx: int
    log: Log
    views: Views
    spark: SparkReader | None

    def __init__(self, db: Durable) -> None:
        self.db = db
        with db.lock:
            self.compiled: Compiled = db.compiled
            self.views, self.spark, resident = db.views, None, db.resident
            connection = db.file.connect(read_only=True, cache_kib=CACHE_KIB)
            stored = resident.plan.tables
            sizes = resident.maintainer.sizes
            self.embedded = EmbeddedReader(resident.asker.program, resident.plan.program, stored, connection, sizes, self._index)

    def _index(self, search: Search) -> None:
        with self.db.lock, damage(self.db.file.path):
            if self.db.views is self.views:
                self.db.resident.tables.serve([search])

    def _is_stored(self, relation: str) -> bool:
        return relation in self.embedded.stored or self.compiled.homes.get(relation) == relation

    def prepare(self, question: Question) -> None:
        if isinstance(question, Goal):
            self.embedded.prepare(question)
            return
        relation, bound = question
        if self._is_stored(relation):
            self.embedded.prepare_rows(relation, bound.keys())
        else:
            self.embedded.prepare(goal_of(self.compiled.program, relation, bound))

    def begin(self, allowance: Allowance | None) -> None:
        self.embedded.asker.budget, self.embedded.asker.longest = (allowance.rows, allowance.text) if allowance else (None, None)
        self.embedded.begin()
        self.log = Log(self.db.file, self.embedded.connection)
        self.tx = self.log.last

    def stop(self, reason: Exception) -> None:
        """Ends what another thread reads; there it raises this."""
        self.embedded.stop(reason)
        if self.spark is not None:
            self.spark.stop(reason)

    def rows(self, relation: str, bound: Bound | None = None) -> Iterable[Row]:
        if self._is_stored(relation):
            return self.embedded.rows(relation, bound or {})
        return sorted_rows(self.answers(goal_of(self.compiled.program, relation, bound)))

    def answers(self, goal: Goal) -> list[Row]:
        return affordable(lambda: self.embedded.answers(goal))

    def why(self, goal: Goal) -> Proof | None:
        answers = sorted_rows(self.answers(of_one_atom(goal)))
        proof = self.embedded.proofs(goal.of_atom, answers[:1])[0] if answers else None
        return proof and proof.rebuilt(self.db.stated_step)

    def why_not(self, goal: Goal, depth: int = 1) -> WhyNot:
        return why_not(self.compiled.plain, self.compiled.homes, self.embedded, of_one_atom(goal), depth)


Question = Goal | tuple[str, Bound]


@contextmanager
def reading(db: Durable, questions: Iterable[str | Question], allowance: Allowance | None = None) -> Iterator[State]:
    """A state of the database, of which these questions will be asked: relations, relations with values of columns, or goals. All answers together cost no more than an allowance."""
    seconds, rows, size = (allowance.seconds, allowance.rows, allowance.size) if allowance else (None, None, None)
    asked: list[Question] = []
    for question in questions:
        if isinstance(question, str):
            ensure_known(db.program, question)
            question = (question, {})
        asked.append(question)
    while True:
        far = [question for question in asked if _is_far(db, question)]
        if far:
            begin(db)
        with db.readers.taken() as reader, damage(db.file.path):
            for question in asked:
                if question not in far:
                    reader.prepare(question)
            with reader.embedded.tables.within(seconds, size):
                with db.lock if far else nullcontext():
                    reader.begin(allowance)
                    current = reader.views is db.views  # what is in the file now is what this reader knows
                    if current:
                        state = held(db, reader, Watch(timeout=seconds, max_rows=rows)) if far else nullcontext(reader)
                if current:
                    with state as entered:
                        yield entered
                    return


def affordable(answer: Callable[[], T]) -> T:
    """An answer. Raises DataError if it costs too much."""
    try:
        return answer()
    except (OverBudget, TooLarge) as reason:
        raise DataError(f"the answer costs too much: {reason.message}; ask for less of it", "budget") from None


def _is_far(db: Durable, question: Question) -> bool:
    if not isinstance(db.views, MixedViews):
        return False
    names = [atom.relation for atom, _ in atoms(question.rule.body)] if isinstance(question, Goal) else [question[0]]
    return any(db.views.is_far(name) for name in names)


def bound_columns(program: Program, relation: str, bind: Mapping[str, Any]) -> dict[int, Value]:
    """The values, as JSON has them, that some columns of a relation are to have. Raises DataError if there is no such column, or it has no such value."""
    declaration, bound = program.relations[relation], {}
    for name, value in bind.items():
        if name not in declaration.columns:
            raise DataError(f"{relation} has no column {name}; it has {', '.join(declaration.columns)}", "column")
        column = declaration.columns.index(name)
        try:
            bound[column] = declaration.types[column].from_json(value)
        except ValueError as reason:
            raise DataError(f"{relation}.{name}: {reason}", "type") from None
    return bound
