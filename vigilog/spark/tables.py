"""A table of a database that is kept equal to a view, by JDBC.

Spark writes rows, however many, into a table of their own; one transaction of the database then moves them into the kept table, together with the position, so that both are there or neither.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from vigilog.core.arrow import to_arrow
from vigilog.core.errors import DataError
from vigilog.core.values import Row, Type
from vigilog.spark import jdbc
from vigilog.spark.jdbc import Connection
from vigilog.spark.session import session
from vigilog.spark.values import to_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

POSITIONS = "vigilog_sinks"
CHANGE = "vigilog_change"

At = tuple[str, int]  # a history, and a transaction in it


class KeptTable:
    """A table, and what is known of it under the name of its sink."""

    def __init__(self, options: Mapping[str, str], table: str, name: str, columns: Sequence[str], types: Sequence[Type]) -> None:
        if not columns:
            raise DataError("a view without columns cannot be a table", "columns")
        self.options, self.table, self.name, self.columns, self.types = options, table, name, columns, types
        self.stage = f"vigilog_stage_{hashlib.sha256(name.encode()).hexdigest()[:12]}"

    def position(self) -> At | None:
        with jdbc.transaction(session(), self.options) as connection:
            if not connection.has(POSITIONS):
                return None
            row = connection.first(f"SELECT history, tx FROM {POSITIONS} WHERE name = ?", self.name)
            return None if row is None else (str(row[0]), int(row[1] or 0))

    def replace(self, rows: Sequence[Row] | DataFrame, at: At) -> None:
        """Makes the table hold these rows and no others."""
        frame = to_frame(session(), self.types, to_arrow(self.columns, self.types, rows)) if isinstance(rows, Sequence) else rows
        jdbc.write(frame.toDF(*self.columns), self.options, self.stage)
        with jdbc.transaction(session(), self.options) as connection:
            known, there = connection.has(POSITIONS), connection.has(self.table)
            columns = ", ".join(connection.quoted(self.columns))
            if not known:
                connection.run(
                    f"CREATE TABLE {POSITIONS} (name VARCHAR(200) PRIMARY KEY, history VARCHAR(40) NOT NULL, tx DECIMAL(20) NOT NULL)"
                )
            if not there:
                connection.run(f"CREATE TABLE {self.table} AS SELECT {columns} FROM {self.stage} WHERE 1 = 0")
            connection.run(f"DELETE FROM {self.table}")
            connection.run(f"INSERT INTO {self.table} ({columns}) SELECT {columns} FROM {self.stage}")
            connection.run(f"DELETE FROM {POSITIONS} WHERE name = ?", self.name)
            connection.run(f"INSERT INTO {POSITIONS} (name, history, tx) VALUES (?, ?, ?)", self.name, *at)
            connection.run(f"DROP TABLE {self.stage}")

    def change(self, gone: Sequence[Row], came: Sequence[Row], since: At, until: int) -> None:
        """Takes rows out and puts others in, and moves the position."""
        if gone or came:
            table = to_arrow(self.columns, self.types, [*gone, *came])
            kinds = pa.array([False] * len(gone) + [True] * len(came), pa.bool_())
            numbered = table.append_column(CHANGE, kinds.cast(pa.int32()))
            jdbc.write(session().createDataFrame(numbered), self.options, self.stage)
        with jdbc.transaction(session(), self.options) as connection:
            if gone or came:
                self._move(connection)
            moved = connection.run(f"UPDATE {POSITIONS} SET tx = ? WHERE name = ? AND history = ? AND tx = ?", until, self.name, *since)
            if moved != 1:
                raise DataError(f"the position of {self.name} was moved by somebody else; {self.table} is left as it is", "source")

    def _move(self, connection: Connection) -> None:
        quoted = connection.quoted(self.columns)
        columns, (kind,) = ", ".join(quoted), connection.quoted([CHANGE])
        same = " AND ".join(f"s.{column} = {self.table}.{column}" for column in quoted)
        connection.run(f"DELETE FROM {self.table} WHERE EXISTS (SELECT 1 FROM {self.stage} s WHERE s.{kind} = 0 AND {same})")
        connection.run(f"INSERT INTO {self.table} ({columns}) SELECT {columns} FROM {self.stage} WHERE {kind} = 1")
        connection.run(f"DROP TABLE {self.stage}")
