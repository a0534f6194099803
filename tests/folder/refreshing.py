"""A writer that refreshes again and again, to be killed at any instant: `python -m tests.folder.refreshing FOLDER NUMBERS`. It says the number of each refresh that was acknowledged."""

from __future__ import annotations

import sys
from pathlib import Path

from vigilog.folder.opening import open_program

PROGRAM = """
.domain d(kind=file, path="{folder}")
.table d:t(key: number, value: number)
.decl n(x: number)
.decl v(x: number, y: number)
.output v
v(x, r.value) :- n(x), in(r, d:select_eq("t", "key", x)).
"""
KEYS = 40


def write(folder: Path, version: int) -> None:
    """The source, as a function of its version: read as a whole, or not at all."""
    fresh = folder / "fresh"
    fresh.write_text("key,value\n" + "".join(f"{key},{version * 1000 + key}\n" for key in range(KEYS)))
    fresh.rename(folder / "t.csv")


def main() -> None:
    folder, start = Path(sys.argv[1]), int(sys.argv[2])
    with open_program(data=folder / "data") as db:
        print("open", flush=True)
        for version in range(start, start + 10_000):
            write(folder, version)
            db.refresh("d")
            print(version, flush=True)


if __name__ == "__main__":
    main()
