"""Maintenance as printed: sections read again and evaluated by the reference find exactly the changes of recomputing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.properties.programs import Facts, changes, programs
from tests.rewriting.sections import Rows, evaluate, read_sections, told, with_changes
from tests.treatments import examples
from vigilog import reference
from vigilog.core.delta import Delta, between, net
from vigilog.core.sets import Set
from vigilog.language.check import check
from vigilog.language.program import Program
from vigilog.language.syntax import Constant
from vigilog.rewriting.demand.queries import queries
from vigilog.rewriting.maintenance.counting import counting
from vigilog.rewriting.maintenance.external import external
from vigilog.rewriting.maintenance.strategies.choose import recursive_relations
from vigilog.rewriting.naming import Naming
from vigilog.rewriting.paper.maintain import maintain
from vigilog.rewriting.paper.rederive import rederive
from vigilog.rewriting.passes import rewrite
from vigilog.rewriting.program.separate import as_maintained
from vigilog.rewriting.sections import show_sections


def base_rows(program: Program, facts: Facts) -> tuple[Program, Rows]:
    """A program as it is maintained, and the rows of its base relations: those given and those it states."""
    split, _ = as_maintained(program)
    derived = {rule.heads[0].relation for rule in split.rules}
    base: Rows = {name: set(map(tuple, facts.get(name, ()))) for name in split.relations if name not in derived}
    for rule in program.rules:
        for head in rule.heads if not rule.body else ():
            home = head.relation if head.relation in base else f"{head.relation}_base"
            base[home].add(tuple(arg.value for arg in head.args if isinstance(arg, Constant)))
    return split, base


def changed(data: st.DataObject) -> tuple[Program, Rows, dict[str, Delta], Rows]:
    """Some program, the rows of its base relations, what some transaction changes in them, and their rows after it."""
    text, facts = data.draw(programs())
    split, base = base_rows(check(text).program, facts)
    transaction = data.draw(changes(facts))[0]
    delta = {name: net(rows, transaction["delete"].get(name, ()), transaction["insert"].get(name, ())) for name, rows in base.items()}
    return split, base, delta, {name: delta[name].apply(rows) for name, rows in base.items()}


@examples(16)
@given(st.data())
def test_printed_sections_find_exactly_what_changed(data: st.DataObject) -> None:
    split, base, delta, after = changed(data)
    old, new = reference.evaluate(split, base), reference.evaluate(split, after)
    views = {head.relation for rule in split.rules for head in rule.heads}
    expected: dict[str, Delta] = {view: between(old[view], new[view]) for view in views}
    plain, naming = rewrite(split), Naming(split.relations)
    tables = with_changes(base, delta, naming)
    stored: Rows = {view: old[view] for view in views}
    updated: Rows = {naming(name, "new"): rows for name, rows in after.items()}
    for sections, given_ in (
        (maintain(plain), {**tables, **stored}),
        (rederive(plain), tables),
        (external(plain).sections, {**tables, **updated}),
    ):
        assert told(evaluate(read_sections(show_sections(sections)), given_), views, naming) == expected


@examples(14)
@given(st.data())
def test_printed_counting_finds_exactly_what_changed(data: st.DataObject) -> None:
    """So do sections in which the proofs of some relations are counted, and they find the numbers, too."""
    split, base, delta, after = changed(data)
    plain = rewrite(split)
    views = {rule.head.relation for rule in plain.rules}
    relations = {view for view in views - recursive_relations(plain) if data.draw(st.booleans())}
    made = counting(plain, relations)
    old, new = reference.evaluate(made.program, base), reference.evaluate(made.program, after)
    numbers = {parts.numbers for parts in made.counted.values()}
    naming = Naming(made.program.relations)
    given_ = with_changes(base, delta, naming) | {naming(name, "new"): rows for name, rows in after.items()}
    given_ |= {name: old[name] for name in relations | numbers}
    printed = show_sections(external(made.program, (), made.counted).sections)
    expected = {name: between(old[name], new[name]) for name in views | numbers}
    assert told(evaluate(read_sections(printed), given_), views | numbers, naming) == expected


@examples(14)
@given(st.data())
def test_printed_queries_give_what_is_asked_for(data: st.DataObject) -> None:
    text, facts = data.draw(programs())
    split, base = base_rows(check(text).program, facts)
    plain, everything = rewrite(split), reference.evaluate(split, base)
    view = data.draw(st.sampled_from(sorted(split.outputs)))
    sections = read_sections(show_sections(queries(plain, [view])))
    title = data.draw(st.sampled_from([section.title for section in sections]))
    answer, question = (part.rstrip(")").split("(") for part in title.split(", asked by "))
    known = [place for place, arg in enumerate(answer[1].split(", ")) if arg not in ("", "_")]
    default = {"number": 1, "symbol": "a", "set": Set([])}
    absent = tuple(
        default[attribute.type_name.partition("<")[0]] for place, attribute in enumerate(split.relations[view].attributes) if place in known
    )
    goal = data.draw(st.sampled_from(sorted({absent, *(tuple(row[place] for place in known) for row in everything[view])})))
    found = evaluate([section for section in sections if section.title == title], {**base, question[0]: {goal}}).get(view, set())
    assert found <= everything[view]
    assert {row for row in found if tuple(row[place] for place in known) == goal} == {
        row for row in everything[view] if tuple(row[place] for place in known) == goal
    }
