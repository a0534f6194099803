"""Packages that not every installation has. Who needs some asks here first, so that a missing one is told in one sentence, with the command that installs it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

from vigilog.core.errors import NotInstalled


@dataclass(frozen=True)
class Extra:
    """Some packages: what they are, and by which name pip knows them.

    >>> Extra("Cobol", "vigilog[cobol]", ("cobol",)).need("ledger is read from a punched card")
    Traceback (most recent call last):
    ...
    vigilog.core.errors.NotInstalled: ledger is read from a punched card, but Cobol is not installed: pip install "vigilog[cobol]"
    """

    what: str
    name: str
    packages: tuple[str, ...]

    @property
    def installed(self) -> bool:
        """Whether all of the packages are there; none is imported."""
        return all(find_spec(package) is not None for package in self.packages)

    def need(self, why: str = "") -> None:
        """Raises NotInstalled if a package is missing; `why` says what it is needed for."""
        if not self.installed:
            raise NotInstalled(f'{f"{why}, but " if why else ""}{self.what} is not installed: pip install "{self.name}"')


SPARK = Extra("Spark", "vigilog[spark]", ("pyspark", "pyarrow", "pandas"))
DELTA = Extra("the reader of Delta tables", "vigilog[spark]", ("deltalake",))
ICEBERG = Extra("the reader of Iceberg tables", "vigilog[iceberg]", ("pyiceberg",))
SERVER = Extra("the server", "vigilog[server]", ("fastapi", "uvicorn", "httptools", "prometheus_client"))
DUCKDB = Extra("DuckDB", "vigilog[bulk]", ("duckdb", "pyarrow"))
ARROW = Extra("Arrow", "pyarrow", ("pyarrow",))
PANDAS = Extra("pandas", "pandas", ("pandas",))
POSTGRES = Extra("the driver of PostgreSQL", "vigilog[mediators]", ("psycopg",))
