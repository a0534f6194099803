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
    tables: dict[str, Columns] = {key: _columns(name, said) for key, said in stated.items() if ("->", "") not in said}
    functions = {key: _signature(name, said) for key, said in stated.items() if ("->", "") in said}
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
    found = dict(options)
    if kind == "file" and "path" in found:
        found["path"] = str((facts / found["path"]).absolute())
    if kind == "python" and "beside" not in found:
        found["beside"] = str(beside.absolute())
    if kind == "sql" and found.get("url", "").startswith("sqlite:///"):
        found["url"] = f"sqlite:///{(facts / found['url'].removeprefix('sqlite:///')).absolute()}"
    return found


def _columns(domain: str, said: tuple[tuple[str, str], ...]) -> Columns:
    try:
        return tuple((column, type_named(type_)) for column, type_ in said)
    except ValueError as reason:
        raise DomainError(domain, str(reason)) from None


def _signature(domain: str, said: tuple[tuple[str, str], ...]) -> Signature:
    split = said.index(("->", ""))
    return Signature(_columns(domain, said[:split]), _columns(domain, said[split + 1 :]))
