"""A benchmark of several experiments, each of which gives numbers with names: runs those that are wanted, and writes its page and its picture."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from bench import chart, report
from bench.options import Options
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
        around, found = report.surroundings(), dict[str, Found]()
        with steps(len(planned)) as shown:
            for name, measure in planned.items():
                shown.begin(name)
                found[name] = measure(options.quick)
                shown.end(f"{name}: " + ", ".join(f"{what} {number(value)}" for what, value in found[name].items()))
        self._write(options, found, around)
        return 0

    def _write(self, options: Options, found: Mapping[str, Found], around: Mapping[str, str]) -> None:
        targets, file = self.judge(found), self.title.lower()
        tables = [
            Table(name.capitalize(), ("", self.unit), [(what, number(value)) for what, value in values.items()])
            for name, values in found.items()
        ]
        report.show([*tables, report.targets_table(targets)])
        measured = {"targets": [asdict(target) for target in targets], "measured": found}
        report.write(options.results, file, self.title, self.notes, [report.targets_table(targets), *tables], measured, around)
        chart.targets(options.results / f"{file}.png", self.title, targets)
        print(f"Written: {file}.md, {file}.json, {file}.png in {os.path.relpath(options.results)}")
