"""What can be shown."""

from __future__ import annotations

from enum import StrEnum


class Show(StrEnum):
    rules = "rules"
    strata = "strata"
    maintenance = "maintenance"
    paper = "paper"
    external = "external"
    query = "query"
    strategy = "strategy"
    sql = "sql"
    extraction = "extraction"
    supports = "supports"
    conditions = "conditions"
