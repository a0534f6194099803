"""Makes a data folder of the company's Parquet files, through Spark, and says what it does, a line each.

It is `vigilog init examples/company/company.dl --data DATA -F FACTS --memory 10` for one who wants to draw a progress bar.
"""

from __future__ import annotations

import sys
from pathlib import Path

import vigilog

PROGRAM = Path(__file__).with_name("company.dl")
RESIDENT = 10 * 2**20  # bytes: all but the visits, which Spark keeps, as if they were many


def main() -> None:
    facts, data = sys.argv[1:]
    with vigilog.open(PROGRAM, facts, data=data, memory=RESIDENT, report=lambda what, *_: print(what, flush=True)):
        pass


if __name__ == "__main__":
    main()
