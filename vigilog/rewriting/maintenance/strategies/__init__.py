"""The strategies there are, in the order in which they are told."""

from __future__ import annotations

from vigilog.rewriting.maintenance.strategies.auxiliary import AUXILIARY
from vigilog.rewriting.maintenance.strategies.counted import COUNTED
from vigilog.rewriting.maintenance.strategies.external import EXTERNAL
from vigilog.rewriting.maintenance.strategies.materialized import MATERIALIZED
from vigilog.rewriting.maintenance.strategies.strategy import Strategy

AUTO = "auto"  # as fits each view (`choose.py`)
STRATEGIES = {strategy.name: strategy for strategy in (EXTERNAL, MATERIALIZED, COUNTED, AUXILIARY)}

__all__ = ["AUTO", "AUXILIARY", "COUNTED", "EXTERNAL", "MATERIALIZED", "STRATEGIES", "Strategy"]
