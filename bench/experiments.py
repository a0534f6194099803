"""A benchmark of several experiments, each of which gives numbers with names: runs those that are wanted, and writes its page and its picture."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from bench import chart, report
from bench.options import RESULTS, Options
from bench.progress import steps
from bench.report import Table
from bench.targets import Target, number

Found = dict[str, float]


@dataclass(frozen=True)
class Experiments:
    """`judge` compares what was found with what is promised."""

    title: str
    unit: str
    notes: Sequence[str]
    planned: Mapping[str, Callable[[bool], Found]]  # each is told whether it is to be quick
    judge: Callable[[Mapping[str, Found]], Sequence[Target]]

    def run(self, options: Options) -> int:
        planned = {name: measure for name, measure in self.planned.items() if not options.only or name in options.only}
        around, found = report.surroundings(), self._before(options)
        with steps(len(planned)) as shown:
            for name, measure in planned.items():
                shown.begin(name)
                found[name] = measure(options.quick)
                shown.end(f"{name}: " + ", ".join(f"{what} {number(value)}" for what, value in found[name].items()))
        self._write(options, {name: found[name] for name in self.planned if name in found}, around)
        return 0

    def _before(self, options: Options) -> dict[str, Found]:
        """What other experiments found, where only some are made: so a run may be done in pieces. The last of them completes it."""
        path = options.results / f"{self.title.lower()}.json"
        said = json.loads(path.read_text(encoding="utf-8")) if options.only and path.exists() else {}
        return {} if said.get("quick") != options.quick else said["measured"]

    def _write(self, options: Options, found: Mapping[str, Found], around: Mapping[str, str]) -> None:
        targets, file = self.judge(found), self.title.lower()
        tables = [
            Table(name.capitalize(), ("", self.unit), [(what, number(value)) for what, value in values.items()])
            for name, values in found.items()
        ]
        report.show([*tables, report.targets_table(targets)])
        measured = {"quick": options.quick, "targets": [asdict(target) for target in targets], "measured": found}
        for folder in [options.results, *([RESULTS] if options.only and not options.quick and found.keys() == self.planned.keys() else [])]:
            report.write(folder, file, self.title, self.notes, [report.targets_table(targets), *tables], measured, around)
            chart.targets(folder / f"{file}.png", self.title, targets)
            print(f"Written: {file}.md, {file}.json, {file}.png in {os.path.relpath(folder)}")
