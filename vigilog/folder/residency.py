"""Which base relations are resident: in the file, where a change costs milliseconds. All others are on Spark.

All resident base relations together may take a part of the machine's memory, since that is what keeps the pages of the file at hand. The smallest come first: so most relations are resident.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vigilog.core.errors import UsageError
from vigilog.core.memory import machine_memory
from vigilog.core.values import Type

SHARE = "25%"  # of the machine's memory, unless stated otherwise


def size(types: Sequence[Type], rows: int) -> int:
    """About how many bytes rows take in tables and their indexes."""
    return rows * 2 * (16 + sum(32 if type_.kind == "symbol" else 8 for type_ in types))


def fitting(sizes: Mapping[str, int], budget: int) -> frozenset[str]:
    """The relations that a budget of bytes suffices for, the smallest first.

    >>> sorted(fitting({"orders": 500, "customers": 60, "blocked": 1}, 100))
    ['blocked', 'customers']
    """
    names, total = [], 0
    for name in sorted(sizes, key=lambda name: (sizes[name], name)):
        total += sizes[name]
        if total > budget:
            break
        names.append(name)
    return frozenset(names)


def budget_of(stated: int | str) -> int:
    """A budget in bytes, which is stated so, or as a share of the machine's memory.

    >>> budget_of(1000), budget_of("50%") == machine_memory() // 2
    (1000, True)
    """
    if isinstance(stated, int):
        return stated
    number = stated.removesuffix("%")
    if not stated.endswith("%") or not number.isdecimal() or int(number) > 100:
        raise UsageError(f"memory is a number of bytes, or a share of the machine's memory, like 25%, not {stated}")
    return machine_memory() * int(number) // 100
