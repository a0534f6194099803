"""A server of `bench frames`: it says when each transaction was committed, by the clock that all processes of a machine share."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from vigilog.engine.outcome import Outcome
from vigilog.folder.opening import open_program
from vigilog.service.limits import Limits
from vigilog.service.server import Settings, serve


def main(program: Path, data: Path, port: int) -> None:
    def note(outcome: Outcome) -> None:
        print(outcome.tx, time.perf_counter(), flush=True)

    with open_program(program, data=data) as db:
        db.step.listeners.append(note)
        serve(db, Settings(port=port, spark=False, limits=Limits(rate=1e6)), lambda address: print(address, flush=True))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
