"""Databases that Spark reaches by JDBC: their drivers, reading their tables, and one transaction in them.

A driver is a jar. `VIGILOG_JDBC_JARS` names the jars, separated as on the PATH; those that Debian's packages install are found by themselves.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from vigilog.core.errors import DataError, UsageError
from vigilog.core.secrets import without_secrets
from vigilog.spark.session import is_remote, roots

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NEEDS_DRIVER = "there is no driver for it: name its jar in VIGILOG_JDBC_JARS before Spark starts (Debian, Ubuntu, for PostgreSQL: apt-get install libpostgresql-jdbc-java)"
FETCHED = 10_000  # rows that a driver brings at once; PostgreSQL's would bring all of them
_PARTS = 2  # for each core: parts are seldom of one size
_PARTING = ("dbtable", "query", "partitionColumn", "lowerBound", "upperBound", "numPartitions")
_DRIVERS = {"postgresql": "org.postgresql.Driver", "mariadb": "org.mariadb.jdbc.Driver", "mysql": "com.mysql.cj.jdbc.Driver"}


def read(session: SparkSession, options: Mapping[str, str], table: str) -> DataFrame:
    """A table, or the rows of a query, of a database: few at a time, and in several parts at once if the options name a column to part them by."""
    spoken = {"fetchsize": str(FETCHED)} | _spoken(options, table)
    if "partitionColumn" in spoken:
        spoken |= _parted(session, spoken)
    return session.read.format("jdbc").options(**{name: value for name, value in spoken.items() if value}).load()


def _parted(session: SparkSession, spoken: Mapping[str, str]) -> dict[str, str]:
    """Bounds and number of the parts, where they are not stated. A table without rows has no parts."""
    source = f"({query}) vigilog_rows" if (query := spoken.get("query")) else spoken["dbtable"]
    parts = {"query": "", "dbtable": source, "numPartitions": spoken.get("numPartitions", str(_PARTS * _cores(session)))}
    if "lowerBound" in spoken and "upperBound" in spoken:
        return parts
    column = _quoted(spoken["partitionColumn"], spoken["url"])
    asked = {name: value for name, value in spoken.items() if name not in _PARTING}
    ask = asked | {"query": f"SELECT min({column}) AS low, max({column}) AS high FROM {source}"}
    low, high = session.read.format("jdbc").options(**ask).load().collect()[0]
    if low is None:
        return parts | dict.fromkeys(_PARTING, "") | {"query": "", "dbtable": source}
    bounds = (math.floor(low), math.ceil(high)) if isinstance(low, int | Decimal) else (low, high)
    return parts | {name: spoken.get(name, str(bound)) for name, bound in zip(("lowerBound", "upperBound"), bounds, strict=True)}


def _cores(session: SparkSession) -> int:
    return 1 if is_remote(session) else max(1, session.sparkContext.defaultParallelism)


def _quoted(column: str, url: str) -> str:
    mark = "`" if url.startswith(("jdbc:mysql:", "jdbc:mariadb:")) else '"'
    return column if re.fullmatch("[a-z_][a-z0-9_]*", column) else mark + column.replace(mark, mark + mark) + mark


def write(frame: DataFrame, options: Mapping[str, str], table: str) -> None:
    """Makes a table anew, with the rows of a frame."""
    try:
        frame.write.format("jdbc").options(**_spoken(options, table)).mode("overwrite").save()
    except Exception as reason:
        raise DataError(f"{table} cannot be written: {why(options, reason)}", "unwritable") from None


def _spoken(options: Mapping[str, str], table: str) -> dict[str, str]:
    spoken = {"driver": driver} if (driver := driver_of(options)) else {}
    spoken |= dict(options)
    return spoken if "query" in spoken else {"dbtable": table} | spoken


def driver_of(options: Mapping[str, str]) -> str | None:
    return options.get("driver") or _DRIVERS.get(options["url"].split(":")[1] if ":" in options["url"] else "")


def why(options: Mapping[str, str], reason: BaseException) -> str:
    """Why a database did not do what was asked, in one line and without passwords."""
    told = roots(reason)
    absent = {"No suitable driver", driver_of(options)}  # Java's name for a class that is not there is its name
    text = NEEDS_DRIVER if absent & set(told) else told[-1]
    return without_secrets(text, [options.get("password", "")])[:400]


# -- one transaction


class Connection:
    """A connection to a database, for a few statements; rows in number are read and written by frames."""

    def __init__(self, java: Any, options: Mapping[str, str]) -> None:
        self.java, self.options = java, options

    def run(self, statement: str, *values: Any) -> int:
        """Runs a statement; gives the number of rows it changed."""
        prepared = self._prepared(statement, values)
        try:
            return int(prepared.executeUpdate())
        finally:
            prepared.close()

    def first(self, statement: str, *values: Any) -> tuple[str | None, ...] | None:
        """The first row that a statement finds, as texts."""
        prepared = self._prepared(statement, values)
        try:
            answer = prepared.executeQuery()
            width = answer.getMetaData().getColumnCount()
            return tuple(answer.getString(column) for column in range(1, width + 1)) if answer.next() else None
        finally:
            prepared.close()

    def has(self, table: str) -> bool:
        """Whether the database has a table."""
        try:
            self.first(f"SELECT count(*) FROM {table} WHERE 1 = 0")
        except Exception:
            self.java.rollback()
            return False
        return True

    def quoted(self, names: Sequence[str]) -> list[str]:
        mark = self.java.getMetaData().getIdentifierQuoteString().strip()
        return [f"{mark}{name.replace(mark, mark * 2) if mark else name}{mark}" for name in names]

    def _prepared(self, statement: str, values: Sequence[Any]) -> Any:
        prepared = self.java.prepareStatement(statement)
        for number, value in enumerate(values, start=1):
            prepared.setObject(number, value)
        return prepared


@contextmanager
def transaction(session: SparkSession, options: Mapping[str, str]) -> Iterator[Connection]:
    """All that is done inside, or nothing of it. Spark's own writer has no transactions that hold more than one table, so Java's interface is used as it is."""
    if is_remote(session):
        raise UsageError("a table is kept by JDBC only with a session of this process, not through Spark Connect")
    try:
        java = _connect(session, options)
    except Exception as reason:
        raise DataError(f"{without_secrets(options['url'])}: {why(options, reason)}", "unwritable") from None
    try:
        java.setAutoCommit(False)
        yield Connection(java, options)
        java.commit()
    except Exception as reason:
        java.rollback()
        if isinstance(reason, DataError):
            raise
        raise DataError(f"{without_secrets(options['url'])}: {why(options, reason)}", "unwritable") from None
    finally:
        java.close()


def _connect(session: SparkSession, options: Mapping[str, str]) -> Any:
    java: Any = session._jvm  # pyspark has no public way to Java
    if driver := driver_of(options):
        java.org.apache.spark.sql.execution.datasources.jdbc.DriverRegistry.register(driver)
    properties = java.java.util.Properties()
    for key in ("user", "password"):
        if key in options:
            properties.setProperty(key, options[key])
    return java.java.sql.DriverManager.getConnection(options["url"], properties)
