"""Domains by their kinds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vigilog.core.type_names import type_named
from vigilog.domains.databases import Sqlite
from vigilog.domains.domain import Columns, Domain, DomainError, Options, Signature, with_variables
from vigilog.domains.files import Files
from vigilog.domains.modules import Module
from vigilog.domains.options import check_options
from vigilog.domains.postgres import Postgres
from vigilog.domains.rest import Rest
from vigilog.domains.retries import Retrying


def opened(name: str, options: Options, stated: Mapping[str, tuple[tuple[str, str], ...]]) -> Domain:
    """A domain, by what the program says of it; `stated` are the columns of its tables, and what its functions take and give, by their names."""
    kind = check_options(name, options)
    tables: dict[str, Columns] = {key: _columns(name, pairs) for key, pairs in stated.items() if ("->", "") not in pairs}
    functions = {key: _signature(name, pairs) for key, pairs in stated.items() if ("->", "") in pairs}
    match kind:
        case "file":
            return Retrying(Files(name, options, tables), options)
        case "python":
            return Module(name, options, tables)
        case "rest":
            return Rest(name, options, functions)
        case _:
            url = with_variables(options["url"]) if options["url"].startswith("${") else options["url"]
            if url.startswith(("postgresql:", "postgres:", "jdbc:postgresql:")):
                return Retrying(Postgres(name, options, tables, functions), options)
            if not url.startswith("sqlite:///"):
                raise DomainError(name, 'url must be like "sqlite:///file.db" or "postgresql://host/database"')
            return Retrying(Sqlite(name, options, tables, functions), options)


def located(kind: str, options: Options, facts: Path, beside: Path) -> dict[str, str]:
    """The options with places that do not depend on where the process runs: files are in the facts folder, modules beside the program."""
    placed = dict(options)
    if kind == "file" and "path" in placed:
        placed["path"] = str((facts / placed["path"]).absolute())
    if kind == "python" and "beside" not in placed:
        placed["beside"] = str(beside.absolute())
    if kind == "sql" and placed.get("url", "").startswith("sqlite:///"):
        placed["url"] = f"sqlite:///{(facts / placed['url'].removeprefix('sqlite:///')).absolute()}"
    return placed


def _columns(domain: str, pairs: tuple[tuple[str, str], ...]) -> Columns:
    try:
        return tuple((column, type_named(type_)) for column, type_ in pairs)
    except ValueError as reason:
        raise DomainError(domain, str(reason)) from None


def _signature(domain: str, pairs: tuple[tuple[str, str], ...]) -> Signature:
    split = pairs.index(("->", ""))
    return Signature(_columns(domain, pairs[:split]), _columns(domain, pairs[split + 1 :]))
