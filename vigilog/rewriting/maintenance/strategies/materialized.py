"""`materialized`: the view is stored; what may be lost is looked for, and what of it has another proof stays."""

from __future__ import annotations

from vigilog.rewriting.maintenance.strategies.strategy import Strategy

MATERIALIZED = Strategy("materialized", "the view is stored", keeper="rederiving")
