"""What is recursive through `min` or `max` on Spark: the component is computed anew from the relations after a change that concerns it, and compared with what is kept.

So its change is at hand before that of other views is found, as the changes of groups are (`grouped.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vigilog.core.delta import Delta
from vigilog.executors.evaluation import Stats
from vigilog.executors.spark import reader as reading
from vigilog.executors.spark.stored import Snapshot, settled
from vigilog.executors.spark.temporary import TemporaryViews
from vigilog.executors.spark.together import differences
from vigilog.executors.watch import Watch
from vigilog.language.program import Program
from vigilog.rewriting.program.relevant import relevant

if TYPE_CHECKING:
    from vigilog.rewriting.maintenance.plan import ComponentPlan, Plan

Snapshots = Mapping[str, Snapshot]


@dataclass
class ImprovedKeeper:
    """What is kept of one component. `reads` are the relations whose changes are at hand that it is derived from."""

    kept: tuple[str, ...]
    program: Program
    reads: frozenset[str]
    frames: TemporaryViews  # those of the views
    watch: Watch

    @property
    def counts(self) -> tuple[str, ...]:
        """What it derives."""
        return self.kept

    def fill(self, given: Snapshots, stats: Stats) -> dict[str, Snapshot]:
        """The component, from relations as they are given."""
        inputs = {name: given[name] for name in self.reads}
        with reading.evaluated(self.frames.session, self.program, self.kept, inputs, self.watch, stats) as machine:
            return {name: settled(self.frames, name, machine.whole(name)) for name in self.kept}

    def changes(self, before: Snapshots, after: Snapshots, changed: Mapping[str, Delta], stats: Stats) -> dict[str, Delta]:
        """What a change of what it is derived from does to it. `before` and `after` have all relations that are not derived."""
        if self.reads.isdisjoint(changed):
            return {}
        inputs = {name: after[name] for name in self.reads}
        with reading.evaluated(self.frames.session, self.program, self.kept, inputs, self.watch, stats) as machine:
            compared = {name: (before[name].exact, self.frames.lasting(machine.whole(name))) for name in self.kept}
            self.frames.resume()
            return differences(self.frames, compared)

    def close(self) -> None:
        """Nothing is held."""


def improved_keeper(plan: Plan, part: ComponentPlan, frames: TemporaryViews, watch: Watch) -> ImprovedKeeper:
    """Who keeps a component of a plan."""
    own = part.component.relations
    others = plan.improved - set(own)
    rules = tuple(rule for rule in plan.needed.rules if rule.head.relation not in others)
    program = relevant(plan.needed.with_rules(rules), own)
    derived = {rule.head.relation for rule in program.rules}
    return ImprovedKeeper(own, program, frozenset(program.relations.keys() - derived), frames, watch)
