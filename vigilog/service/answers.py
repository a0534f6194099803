"""First answers: a state of the database, written down in parts, so that the database need not wait for the one who reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import Any

from vigilog.core.rows import json_rows
from vigilog.core.values import Row
from vigilog.folder.durable import Durable
from vigilog.language.conditions import Alert
from vigilog.protocol.messages import write
from vigilog.service.limits import Limits
from vigilog.service.slices import Channel, Part
from vigilog.service.spelling import Manner

IN_MEMORY = 4 * 2**20  # bytes; what is more is in a temporary file


class Answer:
    """The rows of a channel as of a transaction, in parts: each the label of a view, and rows as JSON."""

    def __init__(self, tx: int, digest: str = "") -> None:
        self.tx, self.digest = tx, digest
        self.spool = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  # it is closed with the answer
        self.parts: list[tuple[str, int]] = []  # label and size
        self.rows = 0

    def add(self, label: str, rows: Sequence[Any]) -> None:
        data = write(rows)
        self.spool.write(data)
        self.parts.append((label, len(data)))
        self.rows += len(rows)

    def pieces(self) -> Iterator[tuple[str, bytes]]:
        self.spool.seek(0)
        for label, size in self.parts:
            yield label, self.spool.read(size)

    def bodies(self, *, single: bool) -> Iterator[bytes]:
        """What each `snapshot` says."""
        of, digest = len(self.parts), b'"digest":%b,' % write(self.digest) if self.digest else b""
        for number, (label, rows) in enumerate(self.pieces(), start=1):
            member = b'"rows":' + rows if single else b'"views":{' + write(label) + b":" + rows + b"}"
            last = b"true" if number == of else b"false"
            yield b'{"tx":%d,%b%b,"part":%d,"of":%d,"last":%b}' % (self.tx, digest, member, number, of, last)

    def close(self) -> None:
        self.spool.close()


def first_answer(db: Durable, channel: Channel, limits: Limits, manner: Manner = Manner()) -> Answer:
    """What a channel holds now, perhaps with rows as objects. Takes its time, and nobody else's."""
    if any(shape.constrained for shape in channel.shapes.values()):
        return _with_facts(db, channel, limits, manner)
    if channel.reporting and (alert := db.conditions.named.get(channel.parts[0].label)) is not None and alert.timed:
        return _reported(db, alert, channel, limits, manner)
    questions = [(part.relation, typed(db, part)) for part in channel.parts]
    with db.reading(*questions, allowance=limits.answer) as state:
        answer = Answer(state.tx, state.log.digest(state.tx))
        try:
            for part, (view, bound) in zip(channel.parts, questions, strict=True):
                shape, rows = channel.shapes[part.label], iter(state.rows(view, bound))
                full = db.program.relations[view].types
                while some := list(islice(rows, limits.part)):
                    cut = shown(part, json_rows(full, some))
                    answer.add(part.label, manner.told(shape.columns, shape.types, cut))
                if not any(label == part.label for label, _ in answer.parts):
                    answer.add(part.label, [])
        except BaseException:
            answer.close()
            raise
    return answer


def _reported(db: Durable, alert: Alert, channel: Channel, limits: Limits, manner: Manner) -> Answer:
    """What an alert has reported to hold, where that is not what holds now. What waits is in memory alone, so nobody writes while it is looked at."""
    with db.lock:
        answer, holding = Answer(db.tx, db.book.log.digest(db.tx)), db.holding(alert)
    (part,) = channel.parts
    rows = part.of(json_rows(db.program.relations[part.relation].types, holding))
    for start in range(0, len(rows) or 1, limits.part):
        answer.add(part.label, channel.shapes[part.label].told(rows[start : start + limits.part], manner))
    return answer


def _with_facts(db: Durable, channel: Channel, limits: Limits, manner: Manner) -> Answer:
    """Of views some of which hold facts: these are in memory alone, so nobody writes while all of them are looked at."""
    with db.lock:
        answer, rows_of = (
            Answer(db.tx, db.book.log.digest(db.tx)),
            {part.label: list(db.begin_with(part.relation)) for part in channel.parts},
        )
    for part in channel.parts:
        shape, full = channel.shapes[part.label], db.program.relations[part.relation].types
        rows = rows_of[part.label] if shape.constrained else part.of(json_rows(full, rows_of[part.label]))
        for start in range(0, len(rows) or 1, limits.part):
            answer.add(part.label, shape.told(rows[start : start + limits.part], manner))
    return answer


def shown(part: Part, rows: Iterable[Any]) -> list[Row]:
    """Rows less the columns that are not shown."""
    return [tuple(row[part.hidden :]) for row in rows] if part.hidden else list(rows)


def typed(db: Durable, part: Part) -> dict[int, Any]:
    """The values that a part's columns have, as values of their types."""
    types = db.program.relations[part.relation].types
    return {column: types[column].from_json(value) for column, value in part.bound}
