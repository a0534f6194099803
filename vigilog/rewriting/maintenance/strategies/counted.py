"""`counted`: the view is stored with the number of proofs of each row (`maintenance/counting.py`); a row with none is lost."""

from __future__ import annotations

from vigilog.rewriting.maintenance.strategies.strategy import Strategy

COUNTED = Strategy("counted", "the view is stored with the number of proofs of each row", keeper="counting", recursive=False, nullary=False)
