"""A company that never was: people, projects, badges and visits, the same ones each time, as Parquet files."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Row = tuple[Any, ...]

PEOPLE, PROJECTS, ROOMS, VISITS = 20_000, 3_000, 2_400, 80_000
NAMES = Path(__file__).with_name("names.txt").read_text(encoding="utf-8").splitlines()
FIRST, BEGINNINGS, ENDS, DEPARTMENTS, COURSES = map(str.split, NAMES)
COLUMNS = {
    "person": ("name", "department", "salary"),
    "reports_to": ("name", "boss"),
    "project": ("project", "department"),
    "works_on": ("name", "project"),
    "leads": ("name", "project"),
    "member": ("name", "group"),
    "part_of": ("inner", "outer"),
    "opens": ("group", "room"),
    "needs": ("room", "course"),
    "trained": ("name", "course"),
    "visit": ("name", "room", "day"),
}


class Company:
    """All of it: for each relation its rows."""

    def __init__(self, seed: int = 5) -> None:
        random = self.random = Random(seed)
        self.people = [f"{first} {begin}{end}" for first, begin, end in product(FIRST, BEGINNINGS, ENDS)]
        random.shuffle(self.people)
        del self.people[PEOPLE:]
        self.rows: dict[str, list[Row]] = {}
        self._staff()
        self._projects()
        self._badges()
        self.rows["visit"] = self.visits(VISITS, date(2026, 1, 1))

    def _staff(self) -> None:
        """The first has nobody above, the next ones are above many."""
        random, department = self.random, dict.fromkeys(self.people, "People")
        reports: list[Row] = []
        for number, name in enumerate(self.people[1:], start=1):
            boss = self.people[(number - 1) // 8]
            department[name] = DEPARTMENTS[number % len(DEPARTMENTS)] if number < 10 * len(DEPARTMENTS) else department[boss]
            reports.append((name, boss))
        self.department = department
        self.rows["person"] = [(name, department[name], random.randrange(30, 120) * 1000) for name in self.people]
        self.rows["reports_to"] = reports

    def _projects(self) -> None:
        random = self.random
        projects = [f"{random.choice(DEPARTMENTS)} {number:04}" for number in range(PROJECTS)]
        self.rows["project"] = [(name, name.rpartition(" ")[0]) for name in projects]
        self.rows["works_on"] = [(name, project) for name in self.people for project in random.sample(projects, random.randint(1, 2))]
        self.rows["leads"] = [(random.choice(self.people), project) for project in projects if random.random() < 0.99]

    def _badges(self) -> None:
        """Everyone is in a team; teams are in units, units in sites, and each level opens rooms."""
        random = self.random
        teams = [f"team {number:03}" for number in range(800)]
        units = [f"unit {number:02}" for number in range(80)]
        sites = [f"site {letter}" for letter in "ABCDEFGH"]
        rooms = [f"{letter}{number:03}" for letter in "ABCDEFGH" for number in range(ROOMS // 8)]
        self.rows["part_of"] = [
            *((team, units[number % 80]) for number, team in enumerate(teams)),
            *((unit, sites[number % 8]) for number, unit in enumerate(units)),
        ]
        of_site = {site: [room for room in rooms if room[0] == site[-1]] for site in sites}
        self.rows["opens"] = [
            *((team, room) for number, team in enumerate(teams) for room in random.sample(of_site[sites[number % 8]], 3)),
            *((unit, room) for number, unit in enumerate(units) for room in random.sample(of_site[sites[number % 8]], 3)),
            *((site, room) for site in sites for room in random.sample(of_site[site], 2)),
        ]
        self.rows["member"] = [(name, teams[number % 800]) for number, name in enumerate(self.people)]
        self.rows["needs"] = [(room, random.choice(COURSES)) for room in random.sample(rooms, 120)]
        self._training()

    def _training(self) -> None:
        """Nearly everyone has had the training that their rooms need, and some more."""
        random = self.random
        outer: dict[str, str] = dict(self.rows["part_of"])
        needed: dict[str, str] = dict(self.rows["needs"])
        wanted: dict[str, set[str]] = {}
        for group, room in self.rows["opens"]:
            wanted.setdefault(group, set()).update({needed[room]} if room in needed else ())
        self.team: dict[str, str] = dict(self.rows["member"])
        self.wanted = {name: sorted(wanted[team] | wanted[outer[team]] | wanted[outer[outer[team]]]) for name, team in self.team.items()}
        self.rows["trained"] = [
            (name, course)
            for name, courses in self.wanted.items()
            for course in sorted({*(course for course in courses if random.random() < 0.995), random.choice(COURSES)})
        ]

    def below(self, boss: str) -> set[str]:
        """Everyone below somebody."""
        found = {boss}
        for name, above in self.rows["reports_to"]:  # a boss comes before whom they are above
            if above in found:
                found.add(name)
        return found - {boss}

    def visits(self, number: int, first: date) -> list[Row]:
        random, rooms = self.random, sorted({room for _, room in self.rows["opens"]})
        return [(random.choice(self.people), random.choice(rooms), first + timedelta(random.randrange(28))) for _ in range(number)]


def write(folder: Path, relations: Mapping[str, list[Row]]) -> dict[str, int]:
    """A Parquet file for each relation; gives the numbers of different rows."""
    sizes = {}
    for name, rows in relations.items():
        rows = sorted(set(rows))
        columns = dict(zip(COLUMNS[name], map(list, zip(*rows, strict=True)), strict=True))
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
        sizes[name] = len(rows)
    return sizes
