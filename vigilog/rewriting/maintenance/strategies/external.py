"""`external`: nothing is kept; what changes is found on demand."""

from __future__ import annotations

from vigilog.rewriting.maintenance.strategies.strategy import Strategy

EXTERNAL = Strategy("external", "nothing is kept", stored=False)
