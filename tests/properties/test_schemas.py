"""Random schemas with views of them: what is in the views, and their nested answers, against definitions that are read off directly."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.properties.test_frames import State, transaction
from vigilog.engine.database import Database
from vigilog.language.check import check
from vigilog.language.parser import parse
from vigilog.language.printer import show

OBJECTS = ["a", "b", "c", "d", "e"]


@dataclass
class Attribute:
    label: str
    owner: str  # the class whose relation has its links
    target: str  # a class, or Integer
    single: bool


@dataclass
class Shown:
    """A frame or subframe: of which class its objects are, what it asks of them, what it shows."""

    name: str
    of: str
    asked: tuple[Attribute, bool] | None = None  # that they have something there, or have not
    shows: list[tuple[Attribute, str, Shown | None]] = field(default_factory=list)  # as objects of which class, nested how


class Schema:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.parents: dict[str, list[str]] = {}
        self.own: dict[str, list[Attribute]] = {}
        names = [f"C{number}" for number in range(chance.randint(2, 5))]
        for number, name in enumerate(names):
            self.parents[name] = chance.sample(names[:number], chance.randint(0, min(number, 2)))
            self.own[name] = []
        for name in names:
            for number in range(chance.randint(0, 2)):
                target = chance.choice([*names, "Integer"])
                self.own[name].append(Attribute(f"m{name[1]}{number}", name, target, chance.random() < 0.4))

    def above(self, name: str) -> list[str]:
        return list(dict.fromkeys([name, *(each for parent in self.parents[name] for each in self.above(parent))]))

    def below(self, name: str) -> list[str]:
        return [each for each in self.parents if name in self.above(each)]

    def attributes(self, name: str) -> list[Attribute]:
        return [each for above in self.above(name) for each in self.own[above]]

    def text(self) -> str:
        lines = []
        for name, parents in self.parents.items():
            isa = f" isA {', '.join(parents)}" if parents else ""
            own = [f"attribute{', single' if each.single else ''} {each.label}: {each.target}" for each in self.own[name]]
            lines.append(f"class {name}{isa}{' with ' + ' '.join(own) if own else ''} end")
        return "\n".join(self.chance.sample(lines, len(lines)))

    def frame(self, name: str, of: str, depth: int, views: list[Shown]) -> Shown:
        found, chance = Shown(name, of), self.chance
        known = self.attributes(of)
        if known and chance.random() < 0.5:
            found.asked = chance.choice(known), chance.random() < 0.6
        for each in chance.sample(known, chance.randint(0, len(known))):
            if each.target == "Integer":
                found.shows.append((each, each.target, None))
                continue
            wanted = chance.choice(self.below(each.target))
            fits = [view for view in views if view.of in self.below(each.target)]
            if fits and chance.random() < 0.4:
                view = chance.choice(fits)
                found.shows.append((each, view.of, view))
            elif depth and chance.random() < 0.6:
                found.shows.append((each, wanted, self.frame(name + each.label.capitalize(), wanted, depth - 1, views)))
            else:
                found.shows.append((each, wanted, None))
        return found


def written(frame: Shown, views: list[Shown]) -> str:
    lines = []
    for each, wanted, inner in frame.shows:
        if inner in views:
            lines.append(f"attribute {each.label}: {inner.name}")
        else:
            nested = f" with {written(inner, views)} end" if inner is not None else ""
            lines.append(f"attribute {each.label}: {wanted}{nested}")
    if frame.asked is not None:
        each, has = frame.asked
        lines.append(f"constraint : $ {'' if has else 'not '}exists z/{each.target} (this {each.label} z) $")
    return " ".join(lines)


class Meaning:
    """What a state means."""

    def __init__(self, schema: Schema, state: State) -> None:
        self.schema, self.state = schema, state
        self.relations: dict[str, set[tuple[Any, ...]]] = {}

    def members(self, name: str) -> set[str]:
        return {row[0] for below in self.schema.below(name) for row in self.state[below]}

    def ends(self, x: str, each: Attribute) -> list[Any]:
        """What a link that is seen leads to."""
        rows = self.state[f"{each.owner}_{each.label}"]
        return sorted(
            y
            for one, y in rows
            if one == x and x in self.members(each.owner) and (each.target == "Integer" or y in self.members(each.target))
        )

    def satisfies(self, x: str, frame: Shown) -> bool:
        if x not in self.members(frame.of):
            return False
        return frame.asked is None or bool(self.ends(x, frame.asked[0])) is frame.asked[1]

    def relate(self, frame: Shown, objects: set[str]) -> None:
        self.relations.setdefault(frame.name, set()).update((x,) for x in objects)
        for each, wanted, inner in frame.shows:
            rows = {(x, y) for x in objects for y in self.ends(x, each) if wanted == "Integer" or y in self.members(wanted)}
            rows = {(x, y) for x, y in rows if inner is None or self.satisfies(y, inner)}
            self.relations[f"{frame.name}_{each.label}"] = rows
            if inner is not None and inner.name not in VIEWS:
                self.relate(inner, {y for _, y in rows})

    def nested(self, x: str, frame: Shown) -> dict[str, Any]:
        found: dict[str, Any] = {"id": x}
        for each, _, inner in frame.shows:
            ends = sorted(y for one, y in self.relations[f"{frame.name}_{each.label}"] if one == x)
            shown = ends if inner is None else [self.nested(y, inner) for y in ends]
            if not each.single:
                found[each.label] = shown
            elif shown:
                found[each.label] = shown[0]
        return found


VIEWS = ("V", "W")


def random_state(schema: Schema, chance: random.Random) -> State:
    state: State = {name: {(each,) for each in OBJECTS if chance.random() < 0.4} for name in schema.parents}
    for each in (attribute for own in schema.own.values() for attribute in own):
        ends = [0, 1, 2] if each.target == "Integer" else OBJECTS
        pairs = {(x, y) for x in OBJECTS for y in ends if chance.random() < 0.35}
        state[f"{each.owner}_{each.label}"] = set({x: (x, y) for x, y in pairs}.values()) if each.single else pairs
    return state


@pytest.mark.parametrize("seed", range(25))
def test_views_of_random_schemas(seed: int) -> None:
    chance = random.Random(seed)
    schema, views = Schema(chance), list[Shown]()
    for name in VIEWS:
        views.append(schema.frame(name, chance.choice(list(schema.parents)), 2, list(views)))
    text = schema.text() + "".join(f"\nview {view.name} isA {view.of} with {written(view, views)} end" for view in views)
    program = check(text).program
    assert check(show(program)).program == program and parse(show(program)).frames == program.frames
    state = random_state(schema, chance)
    with Database(program, state, strategy=chance.choice(["auto", "external", "materialized", "counted"])) as database:
        kept = {name: database.view(name) for name in program.outputs}
        for _ in range(4):
            meaning = Meaning(schema, state)
            for view in views:
                meaning.relate(view, {x for x in meaning.members(view.of) if meaning.satisfies(x, view)})
            assert kept == meaning.relations, text
            for view in views:
                assert database.nested(view.name) == [meaning.nested(x, view) for (x,) in sorted(meaning.relations[view.name])], text
            following = random_state(schema, chance)
            for name, delta in database.apply(transaction(state, following)).items():
                kept[name] = delta.apply(kept[name])
            state = following
