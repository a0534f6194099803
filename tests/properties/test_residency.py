"""Random programs on a data folder of which a random part is on Spark: it is always what the reference says, whether rows are looked up here or there."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from tests.properties.programs import changes, programs
from tests.properties.test_durable import changed, views
from tests.properties.test_maintenance import STRATEGY, expected, stated, states
from tests.treatments import examples
from vigilog.executors.spark import demand, guard, stored, temporary
from vigilog.folder.opening import open_program
from vigilog.spark import indexed, snapshots

LIMITS: dict[str, dict[tuple[Any, str], Any]] = {
    "few rows are looked up here": {},
    "in many parts": {(indexed, "BATCH_ROWS"): 2, (indexed, "SLACK"): 0},
    "more than two are too many": {(demand, "COLLECTED_ROWS"): 2, (demand, "MET_ROWS"): 3, (stored, "MOST_NEAR"): 1, (indexed, "SLACK"): 0},
    "as where files are far": {(snapshots, "indexed"): lambda types, written: None},
    "all takes too long": {(guard, "UNMEASURED"): 0, (guard, "LEAST"): 0, (guard, "SHARE"): 0},
    "nothing is small": {(demand, "COLLECTED_ROWS"): 1, (temporary, "BROADCAST_ROWS"): 0, (indexed, "SLACK"): 0},
}


@examples(3)
@given(st.data())
def test_a_part_is_on_spark(data: st.DataObject) -> None:
    text, facts = data.draw(programs())
    stream = data.draw(changes(facts))[:4]
    limits = LIMITS[data.draw(st.sampled_from(sorted(LIMITS)))] | {(stored, "LOCAL_ROWS"): data.draw(st.sampled_from([0, 0, 3]))}
    patches = [patch.object(module, name, value) for (module, name), value in limits.items()]
    with TemporaryDirectory() as folder:
        for each in patches:
            each.start()
        try:
            with open_program(text, facts, data=Path(folder) / "data", strategy=data.draw(STRATEGY), memory=0) as db:
                far = data.draw(st.frozensets(st.sampled_from(sorted(db.homes)), min_size=1))
                db.compact(sorted(far))
                far = frozenset(name for name in far if db.rows(name))
                assert db.large == far, "what has a snapshot, and no room in the file, is on Spark"
                base = stated(db)
                after = states(db.program, base)
                for transaction in stream:
                    before, base = after, changed(base, transaction)
                    after = states(db.program, base)
                    assert db.apply(transaction) == expected(before, after)
                    assert stated(db) == base
                assert views(db) == after
                assert db.verify().problems == []
            with open_program(data=Path(folder) / "data") as db:
                assert (db.large, stated(db), views(db)) == (far, base, after)
        finally:
            for each in patches:
                each.stop()
