"""The 80 checks of W4 as triggers of PostgreSQL, as somebody writes them by hand: each looks at what the changed row can violate.

A row that comes violates a rule as one of those that the rule joins; a row that goes does where the rule wants it to be there. So each check is the query of its view, with the keys that the changed row gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from bench.graphs import Facts
from bench.watch.workloads import Change, Workload
from tests.postgres import Postgres, binaries, postgres

KEYS = {"employee": "e", "department": "d", "manager": "m"}
INDEXES = ("employee (m)", "employee (d)", "department (h)")  # beside the keys
AFTER = {
    "overpaid": (("INSERT", "employee", "a.e = NEW.e"), ("INSERT", "employee", "b.e = NEW.e")),
    "homeless": (("INSERT", "employee", "a.e = NEW.e"), ("DELETE", "department", "a.d = OLD.d")),
    "unled": (("INSERT", "employee", "a.e = NEW.e"), ("DELETE", "manager", "a.m = OLD.m")),
    "abroad": (("INSERT", "employee", "a.e = NEW.e"), ("INSERT", "employee", "b.e = NEW.e"), ("INSERT", "manager", "c.m = NEW.m")),
    "headless": (("INSERT", "department", "a.d = NEW.d"), ("DELETE", "employee", "a.h = OLD.e AND a.d = OLD.d")),
    "costly": (("INSERT", "employee", "a.e = NEW.e"), ("INSERT", "department", "b.d = NEW.d")),
    "outranked": (("INSERT", "employee", "a.e = NEW.e"), ("INSERT", "manager", "b.m = NEW.m")),
    "idle": (("INSERT", "manager", "a.m = NEW.m"), ("DELETE", "employee", "a.m = OLD.m")),
}


class PostgresTriggers:
    """The tables of W4 on a server, with a trigger for each table and operation; a change is a transaction."""

    def __init__(self, server: Postgres, workload: Workload, facts: Facts) -> None:
        import psycopg

        login = server.login
        self.connection: Any = psycopg.connect(host="127.0.0.1", port=server.port, dbname="postgres", autocommit=True, **login)
        self.refused, self.base = psycopg.errors.RaiseException, workload.program.base
        execute = self.connection.execute
        execute("CREATE SCHEMA w4; SET search_path TO w4")
        for table, columns in self.base.items():
            execute(f"CREATE TABLE {table} ({', '.join(f'{column} bigint NOT NULL' for column in columns)}, PRIMARY KEY ({KEYS[table]}))")
            with self.connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN") as rows:
                for row in facts[table]:
                    rows.write_row(row)
        for index in INDEXES:
            execute(f"CREATE INDEX ON {index}")
        execute("ANALYZE")
        bodies: dict[tuple[str, str], list[str]] = {}
        for name, view in workload.program.views.items():
            for operation, table, concerned in AFTER[name.rsplit("_", 1)[0]]:
                check = f"IF EXISTS ({view.sql} AND {concerned}) THEN RAISE EXCEPTION '{name}'; END IF;"
                bodies.setdefault((operation, table), []).append(check)
        for (operation, table), checks in bodies.items():
            name = f"{operation}_{table}".lower()
            execute(
                f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {' '.join(checks)} RETURN NULL; END $$"
            )  # a trigger that looks afterwards returns nothing
            execute(f"CREATE TRIGGER {name} AFTER {operation} ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()")

    def apply(self, change: Change) -> None:
        """A transaction. Raises psycopg's RaiseException if a check fails."""
        with self.connection.transaction():
            for operation, by_relation in change.items():
                for table, rows in by_relation.items():
                    columns, marks = ", ".join(self.base[table]), ", ".join("%s" for _ in self.base[table])
                    sql = (
                        f"INSERT INTO {table} VALUES ({marks})"
                        if operation == "insert"
                        else f"DELETE FROM {table} WHERE ({columns}) = ({marks})"
                    )
                    for row in rows:
                        self.connection.execute(sql, row)

    def refuses(self, change: Change) -> bool:
        """Whether a check fails; nothing is changed."""
        try:
            with self.connection.transaction(force_rollback=True):
                self.apply(change)
        except self.refused:
            return True
        return False

    def close(self) -> None:
        self.connection.execute("DROP SCHEMA w4 CASCADE")
        self.connection.close()


@contextmanager
def on_postgres(workload: Workload, facts: Facts) -> Iterator[PostgresTriggers | None]:
    """The checks on a server of their own; None where there is no PostgreSQL."""
    programs = binaries()
    if programs is None:
        yield None
        return
    with postgres(programs) as server, closing(PostgresTriggers(server, workload, facts)) as triggers:
        yield triggers
