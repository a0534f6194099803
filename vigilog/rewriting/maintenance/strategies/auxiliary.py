"""`auxiliary`: the state of groups that are aggregated is kept, and the bindings where it takes them (`maintenance/groups.py`); of the view itself, nothing."""

from __future__ import annotations

from vigilog.rewriting.maintenance.strategies.strategy import Strategy

AUXILIARY = Strategy("auxiliary", "the state of the groups that are aggregated is kept, and their rows", stored=False)
