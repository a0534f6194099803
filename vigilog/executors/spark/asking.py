"""Functions of a Python domain, asked by Spark's workers: many arguments at once, each in one task (`mapInArrow`).

A task may run twice; its answers come to this process once, and are what is remembered. The module's text goes with the function, so a worker needs nothing of the folder that the program is in.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vigilog.core.values import Row
from vigilog.domains.domain import DomainError
from vigilog.domains.modules import Module
from vigilog.executors.spark.functions import ship
from vigilog.executors.spark.temporary import TemporaryViews

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "place long, answers string, error string"


@dataclass(frozen=True)
class WorkerCall:
    """What a worker does: a domain as the program has it, but for its module, which is a text."""

    name: str
    options: Mapping[str, str]
    text: str
    function: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        with tempfile.TemporaryDirectory(prefix="vigilog-domain-") as folder:
            path = Path(folder).joinpath(*self.options["module"].split(".")).with_suffix(".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.text, encoding="utf-8")
            module = Module(self.name, {**self.options, "beside": folder}, {})
            signature = module.signature(self.function, ())
            for batch in batches:
                told: list[tuple[int, str | None, str | None]] = []
                for place, arguments in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
                    types = [type_ for _, type_ in signature.parameters]
                    given = tuple(type_.from_json(cell) for type_, cell in zip(types, json.loads(arguments), strict=True))
                    try:
                        (rows,) = module.ask(self.function, (), [given])
                    except DomainError as reason:
                        told.append((place, None, reason.message.removeprefix(f"{self.name}: ")))
                        continue
                    cells = [[type_.to_json(cell) for (_, type_), cell in zip(signature.results, row, strict=True)] for row in rows]
                    told.append((place, json.dumps(cells), None))
                columns = list(zip(*told, strict=True)) or [(), (), ()]
                arrays = [pa.array(columns[0], pa.int64()), pa.array(columns[1], pa.string()), pa.array(columns[2], pa.string())]
                yield pa.RecordBatch.from_arrays(arrays, ["place", "answers", "error"])


def asked(frames: TemporaryViews, domain: Module, function: str, wanted: Sequence[Row]) -> list[set[Row]]:
    """What a function gives for each of some arguments. Raises DomainError for the first that it fails for."""
    import pyarrow as pa

    if not frames.on_this_machine:
        ship(frames.session)
    signature = domain.signature(function, ())
    types = [type_ for _, type_ in signature.parameters]
    arguments = [json.dumps([type_.to_json(cell) for type_, cell in zip(types, row, strict=True)]) for row in wanted]
    table = pa.table({"place": pa.array(range(len(wanted)), pa.int64()), "said": pa.array(arguments, pa.string())})
    frame = frames.session.createDataFrame(table).repartition(max(2, min(200, len(wanted) // 500)))
    answers: list[set[Row]] = [set() for _ in wanted]
    failed: list[tuple[int, str]] = []
    for row in frame.mapInArrow(WorkerCall(domain.name, dict(domain.options), domain.text, function), SCHEMA).toArrow().to_pylist():
        if row["error"] is not None:
            failed.append((row["place"], row["error"]))
        else:
            results = [type_ for _, type_ in signature.results]
            answers[row["place"]] = {
                tuple(type_.from_json(cell) for type_, cell in zip(results, cells, strict=True)) for cells in json.loads(row["answers"])
            }
    if failed:
        raise DomainError(domain.name, min(failed)[1])
    return answers
