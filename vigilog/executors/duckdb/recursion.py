"""Linear recursion as one recursive query.

If every rule of a component reads the component in at most one place, and the component is one relation, then DuckDB's `WITH RECURSIVE … UNION` is the semi-naive fixpoint itself: inside it
the relation's name stands for the recent rows. It keeps its hash tables from round to round, so that a round costs about ten microseconds, however large the other relations are.
"""

from __future__ import annotations

from collections.abc import Sequence

from vigilog.executors.fixpoint import recursive_positions
from vigilog.executors.watch import Watch
from vigilog.language.parts import is_fact
from vigilog.language.program import Program
from vigilog.language.strata import Component, dependencies


def linear(component: Component, program: Program, watch: Watch) -> bool:
    """Whether a component is a linear recursion whose rounds nobody wants to count: there is no bound of them."""
    if not component.recursive or len(component.relations) > 1 or component.relations[0] in program.limits:
        return False
    if watch.max_rounds is not None:
        return False
    (relation,) = component.relations
    rules = [rule for rule in component.rules if not is_fact(rule)]
    reads = [sum(atom.relation == relation for atom, _ in dependencies(rule)) for rule in rules]
    return all(count == len(recursive_positions(rule, component)) <= 1 for rule, count in zip(rules, reads, strict=True))


def recursive_query(target: str, name: str, columns: Sequence[str], steps: Sequence[str], most: int | None = None) -> str:
    """The statement that puts into a table, all of whose rows are recent, what follows from them, too; in the steps `name` stands for the recent rows. Names are quoted. Beyond `most` rows it ends.

    >>> recursive_query('"n"', '"recent"', ['"x"'], ['SELECT t."x" + 1 FROM "recent" AS t WHERE t."x" < 9'])
    'CREATE OR REPLACE TABLE "n" AS WITH RECURSIVE "recent"("x") AS (SELECT * FROM "n" UNION (SELECT t."x" + 1 FROM "recent" AS t WHERE t."x" < 9)) SELECT * FROM "recent"'
    """
    step = " UNION ALL ".join(f"SELECT * FROM ({text})" for text in steps) if len(steps) > 1 else steps[0]
    query = f"WITH RECURSIVE {name}({', '.join(columns)}) AS (SELECT * FROM {target} UNION ({step}))"
    return f"CREATE OR REPLACE TABLE {target} AS {query} SELECT * FROM {name}{'' if most is None else f' LIMIT {most + 1}'}"
