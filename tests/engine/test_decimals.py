"""Decimals that are told: what is too large is refused, however large it is, and zero is zero in any form."""

from __future__ import annotations

from decimal import Decimal

import pytest

from vigilog.core.type_names import type_named
from vigilog.core.values import Value

TYPES = ["decimal(10,2)", "decimal(18,18)", "decimal(18,0)"]


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize(
    "told", [1e30, -1e28, 10**27, 10**30, 1e300, Decimal("99999999999999999999999999999.5"), Decimal("1e-60")], ids=str
)
def test_what_is_too_large_or_too_fine_is_refused(type_: str, told: Value) -> None:
    with pytest.raises(ValueError, match="is not a decimal"):
        type_named(type_).from_json(told)


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("told", [0, 0.0, -0.0, Decimal("0e30"), Decimal("0e-60")], ids=str)
def test_zero_is_a_decimal(type_: str, told: Value) -> None:
    assert type_named(type_).from_json(told) == 0


def test_the_largest_and_the_finest_are_taken() -> None:
    assert type_named("decimal(18,0)").from_json(10**18 - 1) == 10**18 - 1
    assert type_named("decimal(18,18)").from_json(1e-18) == Decimal("1e-18")
    assert type_named("decimal(10,2)").from_json(-99999999.99) == Decimal("-99999999.99")
