"""The law-enforcement mediator, played: `python -m examples.law.story`. Five different sources are made in a folder, asked, changed and asked again.

the policeman        Jane Doe was seen with the Don: an update of the view, which no source knows of
the forgery          John's photograph is false: what rests on it goes, and stays out when new photographs show the two again
new photographs      a refresh of one source
other sources        ABC Corp. employs Ed alone, Jane moves to Baltimore: a refresh of two, in one transaction
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

from vigilog.core.delta import Delta
from vigilog.engine.database import Database
from vigilog.folder.opening import open_program

HERE = Path(__file__).parent
DON = "Don Corleone"
GREYS = {DON: 100, "John": 140, "Ed": 180, "Jane Doe": 220}
BOOK = {"John": ("Baltimore", "MD"), "Ed": ("Richmond", "VA"), "Jane Doe": ("Chicago", "IL")}


def picture(path: Path, people: list[str], noise: Random) -> None:
    """A picture with a patch for each face, a little other in each picture."""
    path.parent.mkdir(exist_ok=True)
    rows = []
    for y in range(6):
        greys = [GREYS[name] + noise.choice((-1, 0, 1)) if 1 <= y <= 4 and x else 0 for name in people for x in range(5)]
        rows.append(" ".join(map(str, [*greys, 0])))
    path.write_text(f"P2\n{5 * len(people) + 1} 6\n255\n" + "\n".join(rows) + "\n")


def photographs(folder: Path, shown: dict[str, list[str]]) -> None:
    """The pictures of the cameras are these, and no others."""
    shutil.rmtree(folder / "surveillancedata", ignore_errors=True)
    for name, people in shown.items():
        picture(folder / "surveillancedata" / f"{name}.pgm", people, Random(name))


def phonebook(folder: Path, book: dict[str, tuple[str, str]]) -> None:
    with closing(sqlite3.connect(folder / "paradox.db")) as connection, connection:
        connection.execute("DROP TABLE IF EXISTS phonebook")
        columns = "name TEXT, streetnum INTEGER, streetname TEXT, cityname TEXT, statename TEXT, zipcode TEXT"
        connection.execute(f"CREATE TABLE phonebook ({columns})")
        for name, (city, state) in book.items():
            connection.execute("INSERT INTO phonebook VALUES (?, 1, 'Main Street', ?, ?, '00000')", (name, city, state))


def employees(folder: Path, names: list[str]) -> None:
    """A dBASE file, as the format has it since 1984: a header, a column of 32 bytes, records of a fixed length."""
    (folder / "dbase").mkdir(exist_ok=True)
    header, size = 32 + 32 + 1, 1 + 20
    data = (
        bytes([3, 126, 11, 18]) + len(names).to_bytes(4, "little") + header.to_bytes(2, "little") + size.to_bytes(2, "little") + bytes(20)
    )
    data += b"NAME".ljust(11, b"\0") + b"C" + bytes(4) + bytes([20, 0]) + bytes(14) + b"\r"
    (folder / "dbase" / "empl_abc.dbf").write_bytes(data + b"".join(b" " + name.encode().ljust(20) for name in names) + b"\x1a")


def made(folder: Path) -> Path:
    """The sources as they are in the beginning, and the program beside them."""
    for name in ("law.dl", "faces.py", "mugshots.py", "spatial.py"):
        shutil.copy(HERE / name, folder / name)
    for name in GREYS:
        picture(folder / "faces" / f"{name}.pgm", [name], Random(0))
    photographs(folder, {"img1": [DON, "John"], "img2": ["Ed", DON], "img3": ["Jane Doe", "John"]})
    phonebook(folder, BOOK)
    employees(folder, ["John", "Jane Doe"])
    return folder / "law.dl"


def played(folder: Path, db: Database) -> Iterator[tuple[str, dict[str, Delta]]]:
    """What happens, and what each event changes in the views."""
    yield "a policeman saw Jane Doe with the Don", db.apply({"insert": {"seenwith": [[DON, "Jane Doe"]]}})
    yield "the photograph of John is a forgery", db.apply({"delete": {"seenwith": [[DON, "John"]]}})
    photographs(folder, {"img1": [DON, "John"], "img2": [DON], "img4": [DON, "John"]})
    yield "new photographs: Ed is gone, John is seen again", db.refresh("facextract")
    employees(folder, ["Ed"])
    phonebook(folder, BOOK | {"Jane Doe": ("Baltimore", "MD")})
    yield "ABC Corp. employs Ed alone, and Jane moves to Baltimore", db.refresh("dbase", "paradox")
    yield "John and Ed were seen after all", db.apply({"insert": {"seenwith": [[DON, "John"], [DON, "Ed"]]}})


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with open_program(made(folder), folder) as db:
            print("In the beginning:")
            for view in db.program.outputs:
                print(f"  {view}: {', '.join(row[1] for row in sorted(db.view(view)))}")  # type: ignore[misc]  # names
            for event, changes in played(folder, db):
                print(f"\n{event}:")
                for view, delta in changes.items():
                    for sign, rows in (("+", delta.plus), ("-", delta.minus)):
                        for row in sorted(rows):
                            print(f"  {sign} {view}: {row[1]}")
            print("\nWhy is Ed a suspect?")
            proof = db.why(f'suspect("{DON}", "Ed")')
            print(proof.text() if proof else "he is none")


if __name__ == "__main__":
    main()
