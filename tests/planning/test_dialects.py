"""What a dialect has no SQL for is computed by Python."""

from __future__ import annotations

import pytest
from sqlglot import exp

from vigilog.core.values import FLOAT, NUMBER, SYMBOL, UNSIGNED, Type, decimal_type
from vigilog.executors.spark.functions import functor
from vigilog.planning.dialect import integer
from vigilog.planning.sparksql import SparkDialect
from vigilog.planning.sqlite import SqliteDialect


@pytest.mark.parametrize("type_", [NUMBER, UNSIGNED, FLOAT, SYMBOL, decimal_type(6, 2)], ids=str)
@pytest.mark.parametrize("dialect", [SqliteDialect, SparkDialect], ids=["sqlite", "databricks"])
def test_a_functor_without_sql_is_a_function(dialect: type[SqliteDialect | SparkDialect], type_: Type) -> None:
    made = dialect()
    before = set(made.functions)
    sql = made.functor("nearest", type_, [type_] * 3, [integer(1), integer(2), integer(3)])
    (function,) = set(made.functions) - before
    assert isinstance(sql, exp.Anonymous) and sql.this == function and "nearest" in function


def test_a_function_takes_any_number_of_arguments() -> None:
    assert functor("cat", SYMBOL, (SYMBOL, SYMBOL, SYMBOL, SYMBOL))("a", "b", "c", "d") == "abcd"
    assert functor("strlen", NUMBER, (SYMBOL,))(None) is None
