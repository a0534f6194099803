"""Objects of a view frame under random changes: the client's graph against a fresh extraction, after each transaction, over gaps, identity of survivors included."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.properties.test_frames import SCHEMA, random_state, transaction
from vigilog.client.objects import Graph, Object, ObjectName
from vigilog.engine.database import Database
from vigilog.language.check import check
from vigilog.language.frames.translate import shapes
from vigilog.protocol.shapes import Part, Shape

VIEWS = """
view V isA P with
  attribute q: Q with attribute head: M; size: Integer end
    age: Integer; friend: V; leader: q.head; many: count of friend
end
view L(of: Q) isA M with
  attribute leads: Q with attribute head: M end
  constraint : $ (this leads ~of) $
end
"""


def picture(graph: Graph) -> dict[str, Any]:
    """All objects and links of a graph, by ids."""

    def end(value: Any) -> Any:
        return value.id if isinstance(value, Object | ObjectName) else value

    def drawn(part: Part, each: Object) -> dict[str, Any]:
        found = {}
        for slot in part.slots:
            value = getattr(each, slot.label)
            found[slot.label] = end(value) if slot.single else sorted(map(end, value))
        return found

    return {
        name: {key: drawn(part, graph.parts[name][key]) for key in sorted(graph.parts[name])} for name, part in graph.shape.parts.items()
    }


def sound(graph: Graph) -> None:
    """Nothing leads to what is not alive, and what is linked is what is known under its id."""
    linked: dict[Any, int] = {}
    for name, part in graph.shape.parts.items():
        for each in graph.parts[name].values():
            assert each.alive
            for slot in part.slots:
                value = getattr(each, slot.label)
                for end in [] if value is None else [value] if slot.single else value:
                    if slot.part:
                        assert end.alive and any(end is known for known in graph.parts[slot.part].values())
                    elif slot.of:
                        assert end.alive and graph.names[end.id] is end
                        linked[end.id] = linked.get(end.id, 0) + 1
    assert linked == {id: name.links for id, name in graph.names.items()}


@pytest.mark.parametrize("seed", range(12))
def test_objects_are_those_of_a_fresh_extraction(seed: int) -> None:
    chance = random.Random(seed)
    program = check(SCHEMA + VIEWS).program
    state = random_state(chance)
    with Database(program, state) as database:

        def rows(shape: Shape) -> dict[str, frozenset[Any]]:
            return {relation: frozenset(database.view(relation)) for relation in shape.relations}

        graphs = {name: Graph(shape) for name, shape in shapes(program).items()}
        for graph in graphs.values():
            graph.replace(rows(graph.shape))
        for _ in range(8):
            following = random_state(chance)
            changes = database.apply(transaction(state, following))
            state = following
            for graph in graphs.values():
                before = {(name, key): each for name, known in graph.parts.items() for key, each in known.items()}
                if chance.random() < 0.3:  # a gap: the difference to a new first answer
                    events = graph.replace(rows(graph.shape))
                else:
                    events = graph.apply({name: delta for name, delta in changes.items() if name in graph.shape.relations})
                fresh = Graph(graph.shape)
                fresh.replace(rows(graph.shape))
                assert picture(graph) == picture(fresh)
                sound(graph)
                order = [event.kind for event in events]
                assert order == sorted(order, key=["unlink", "delete", "create", "link"].index)
                for (name, key), each in before.items():
                    assert (graph.parts[name].get(key) is each) if key in graph.parts[name] else not each.alive
                    if not each.alive:
                        assert all(not getattr(each, label) for label, _ in each.labels)
