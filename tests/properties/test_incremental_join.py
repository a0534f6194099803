"""Modifications through joins of up to five literals, as IncrJoin and ICES have them (Harrison & Dietrich 1992, section IV), against their definition written out.

A combination of tuple ids that joins before and after is a modification, if its row is another; one that joins only before a deletion, only after an insertion. Nothing of a partial join is stored.
"""

from __future__ import annotations

import random
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.treatments import amount
from vigilog.core.delta import Keyed
from vigilog.core.values import Row
from vigilog.folder.opening import open_program

Tables = list[dict[int, tuple[int, int]]]  # for each literal: tuple id, and the two columns by which it joins its neighbours


def program(literals: int) -> str:
    ids, columns = [f"i{n}" for n in range(literals)], [f"x{n}" for n in range(literals + 1)]
    lines = [f".decl r{n}(i: number, x: number, y: number)\n.key r{n}(i)" for n in range(literals)]
    lines.append(f".decl v({', '.join(f'{name}: number' for name in (*ids, *columns))})\n.key v({', '.join(ids)})\n.output v")
    body = [f"r{n}(i{n}, x{n}, x{n + 1})" for n in range(literals)]
    lines.append(f"v({', '.join((*ids, *columns))}) :- {', '.join(body)}, x0 != {literals + 7}.")
    return "\n".join(lines) + "\n"


def joined(tables: Tables) -> dict[Row, Row]:
    """The row of each combination of tuple ids that joins."""
    found: dict[Row, Row] = {}
    for ids in product(*tables):
        pairs = [table[i] for table, i in zip(tables, ids, strict=True)]
        if all(one[1] == other[0] for one, other in pairwise(pairs)):
            found[ids] = (*ids, *(pair[0] for pair in pairs), pairs[-1][1])
    return found


@settings(max_examples=amount(60), deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 5), st.sampled_from(["external", "materialized", "counted"]))
def test_modifications_of_joins(seed: int, literals: int, strategy: str) -> None:
    chance = random.Random(seed)
    width = 4 if literals < 4 else 3

    def pair() -> tuple[int, int]:
        return chance.randint(0, 2), chance.randint(0, 2)

    tables: Tables = [{i: pair() for i in chance.sample(range(width), width - 1)} for _ in range(literals)]
    facts = {f"r{n}": [(i, *cells) for i, cells in table.items()] for n, table in enumerate(tables)}
    with open_program(program(literals), facts, strategy=strategy) as db:
        for _ in range(4):
            before = joined(tables)
            with db.transaction() as tx:
                for n, table in enumerate(tables):
                    for i in range(width):
                        turn = chance.random()
                        if turn < 0.3:
                            table[i] = pair()
                            tx.upsert(f"r{n}", [(i, *table[i])])
                        elif turn < 0.4 and i in table:
                            del table[i]
                            tx.delete_key(f"r{n}", [(i,)])
            after = joined(tables)
            change = tx.changes.get("v", Keyed())
            both = before.keys() & after.keys()
            assert change.modified == sorted((before[ids], after[ids]) for ids in both if before[ids] != after[ids])
            assert change.inserted == {after[ids] for ids in after.keys() - before.keys()}
            assert change.deleted == {before[ids] for ids in before.keys() - after.keys()}


@pytest.mark.parametrize("literals", [2, 5])
def test_a_key_that_changes_is_another_tuple(literals: int) -> None:
    facts = {f"r{n}": [(0, 1, 1)] for n in range(literals)}
    with open_program(program(literals), facts) as db:
        with db.transaction() as tx:
            tx.update("r0", [((0, 1, 1), (9, 1, 1))])
        change = tx.changes["v"]
        assert change.modified == [] and len(change.inserted) == len(change.deleted) == 1
        with db.transaction() as tx:
            tx.delete("r0", [(9, 1, 1)])
            tx.insert("r0", [(9, 1, 1)])
        assert tx.changes == {}, "a row that is put back is no modification"
