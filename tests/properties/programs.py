"""Random programs, facts and changes for the properties of the language.

`programs()` promises text that passes every check: its rules are grounded, it is stratified, and its recursion ends.

* Derived relations lie in layers. A body takes positive atoms from lower layers and its own,
  negation and aggregates only from lower ones.
* A rule is built from atoms that ground variables, and then from literals that use only what is grounded,
  or ground one variable more. An atom may compute a value from what it, or any other atom, grounds.
* A rule that calls its own layer bounds every value it computes, so that no recursion makes new values for ever.

Values are drawn from small sets: that is what makes joins meet, rows repeat, and results shrink to something readable. Some texts look like numbers, and must stay texts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from vigilog.core.sets import Set

TYPES = {"n": "number", "s": "symbol", "c": "set<number>"}

Row = tuple[int | str, ...]
Facts = dict[str, list[Row]]
Transaction = dict[str, dict[str, list[Row]]]

VALUES: dict[str, SearchStrategy[int | str]] = {"n": st.integers(0, 4), "s": st.sampled_from("ab12")}
CONSTANTS = {"n": ["0", "1", "2", "3", "4"], "s": ['"a"', '"b"', '"1"', '"2"'], "c": ["{}", "{1, 2}", "{0}"]}
VARIABLES = {"n": ["x", "y", "z"], "s": ["s", "t", "u"], "c": ["c", "d"]}
OF_TYPE = {"number": range(5), "symbol": "ab12", "set": [Set(), Set([1, 2])]}
COMPARISONS = ["<", "!=", ">=", "=", "<=", ">"]
BASE = ["n", "nn", "s", "ns", "sn", "ss", "nn", "nnn", "nsn"]
DERIVED = ["n", "nn", "s", "ns", "sn", "ss", "nn", "", "nc", "c"]
LAYERS = [[1, 1], [2], [1, 2], [2, 1], [1, 1, 1], [2, 2], [1, 2, 1], [2, 1, 2]]

NUMBERS = [
    "{a} + {b}",
    "{a} - {b}",
    "{a} * {b}",
    "{a} / {d}",
    "{a} % {d}",
    "max({a}, {b})",
    "strlen({s})",
    "{a} bxor {b}",
]
SYMBOLS = ["min({s}, {t})", "max({s}, {t})", "substr({s}, 0, 1)"]
ANY_SYMBOLS = [*SYMBOLS, "cat({s}, {t})", "to_string({a})"]  # which may be ever longer, or more
COMPUTED = {"n": "?n", "s": "?s"}  # stands in an atom for a value that is computed from what all atoms ground


@dataclass(frozen=True)
class Relation:
    """A relation with a letter for each column: `n` number, `s` symbol, `c` a set of numbers, which inputs do not have. An input's name repeats them: `e0_ns`."""

    name: str
    columns: str

    def declaration(self) -> str:
        return f".decl {self.name}({', '.join(f'{c}{i}: {TYPES[c]}' for i, c in enumerate(self.columns))})"


@dataclass
class Names:
    """Makes variables that occur nowhere else in a rule."""

    taken: int = 0

    def fresh(self, letter: str) -> str:
        self.taken += 1
        return f"{letter}{self.taken}"


@dataclass
class Body:
    """A body while it grows: every variable in `grounded` gets its values from a literal already there.

    `sources` may stand in positive atoms, `lower` also in negation and aggregates.
    `bounded` says that computed values need bounds, because the rule is recursive.
    """

    names: Names
    sources: list[Relation]
    lower: list[Relation]
    bounded: bool = False
    literals: list[str] = field(default_factory=list)
    grounded: dict[str, list[str]] = field(default_factory=lambda: {"n": [], "s": [], "c": []})

    def ground(self, column: str, variable: str) -> None:
        if variable not in self.grounded[column]:
            self.grounded[column].append(variable)


def programs(*, sets: bool = True) -> SearchStrategy[tuple[str, Facts]]:
    """Programs with 2 to 4 `.input` and 2 to 5 derived `.output` relations, and rows for each of the inputs; without `sets`, none has a setof or a set.

    The names of the inputs spell the types of their columns (`e0_ns`), which is how `changes` knows them.
    """
    return _programs(sets)


def changes(facts: Facts) -> SearchStrategy[list[Transaction]]:
    """Up to 4 transactions on the inputs of a program drawn from `programs`.

    Rows come from what is there and a few more, so that some deletions are of absent rows, some insertions of
    present ones, and some rows are both deleted and inserted.
    """
    return st.lists(
        st.fixed_dictionaries({"delete": _parts(facts), "insert": _parts(facts)}),
        min_size=1,
        max_size=4,
    )


def _parts(facts: Facts) -> SearchStrategy[dict[str, list[Row]]]:
    parts = {name: st.lists(_rows_near(name, rows), min_size=1, max_size=3) for name, rows in sorted(facts.items())}
    return st.fixed_dictionaries({}, optional=parts)


def _rows_near(name: str, rows: list[Row]) -> SearchStrategy[Row]:
    columns = name.rpartition("_")[2]
    # Beside the rows that exist only a corner of all others, so that two draws often name the same row.
    corner = st.tuples(*(st.sampled_from([3, 4] if c == "n" else ["c", "d"]) for c in columns))
    return st.sampled_from(rows) | corner if rows else corner


@st.composite
def _programs(draw: DrawFn, sets: bool) -> tuple[str, Facts]:
    shapes = draw(st.lists(st.sampled_from(BASE), min_size=2, max_size=4))
    base = [Relation(f"e{i}_{c}", c) for i, c in enumerate(shapes)]
    facts = {r.name: draw(_rows(r.columns)) for r in base}
    layers: list[list[Relation]] = []
    for size in draw(st.sampled_from(LAYERS)):
        shapes = draw(st.lists(st.sampled_from([c for c in DERIVED if sets or "c" not in c]), min_size=size, max_size=size))
        first = sum(map(len, layers))
        layers.append([Relation(f"p{first + i}", c) for i, c in enumerate(shapes)])
    derived = [relation for layer in layers for relation in layer]
    declarations = [r.declaration() for r in base + derived]
    directives = [f".input {r.name}" for r in base] + [f".output {r.name}" for r in derived]
    rules: list[str] = []
    lower = list(base)
    for layer in layers:
        for relation in layer:
            rules += draw(_rules(relation, layer, lower, sets))
        lower = lower + layer
    parts = draw(st.permutations([declarations, directives, rules]))
    return "\n".join(line for part in parts for line in part) + "\n", facts


def _rows(columns: str) -> SearchStrategy[list[Row]]:
    """Rows, most often several: over empty relations little can go wrong."""
    row = st.tuples(*(VALUES[c] for c in columns))
    several = st.lists(row, min_size=4, max_size=8)
    return st.one_of(st.lists(row, max_size=8), several, several)


@st.composite
def _rules(draw: DrawFn, relation: Relation, layer: list[Relation], lower: list[Relation], sets: bool) -> list[str]:
    """One rule over lower layers, then up to two that may call the layer itself, and perhaps a fact."""
    rules = [draw(_rule(relation, layer, lower, sets, recursive=False))]
    for recursive in draw(st.sampled_from([[], [True], [False], [True, True], [True, False]])):
        rules.append(draw(_rule(relation, layer, lower, sets, recursive=recursive)))
    if draw(st.integers(0, 4)) == 4:
        rules.append(f"{draw(_atom(relation, CONSTANTS))}.")
    return rules


@st.composite
def _rule(draw: DrawFn, relation: Relation, layer: list[Relation], lower: list[Relation], sets: bool, *, recursive: bool) -> str:
    names = Names()
    bodies = [draw(_body(names, layer if recursive else [], lower, sets))]
    if draw(st.integers(0, 5)) == 5:
        bodies.append(draw(_body(names, layer if recursive else [], lower, sets)))
    terms = {}
    for column, constants in CONSTANTS.items():
        variables = [v for v in bodies[0].grounded[column] if all(v in b.grounded[column] for b in bodies)]
        terms[column] = variables * 3 + constants[:1] if variables else constants
        if column == "n" and variables and not any(b.bounded for b in bodies):
            terms[column] += [f"{v} + 1" for v in variables] + [f"{v} * 2 - 3" for v in variables]
    heads = [relation]
    if draw(st.integers(0, 5)) == 5:
        heads.append(draw(st.sampled_from(layer)))
    left = ", ".join([draw(_atom(head, terms)) for head in heads])
    right = " ; ".join([", ".join(draw(st.permutations(body.literals))) for body in bodies])
    return f"{left} :- {right}."


@st.composite
def _body(draw: DrawFn, names: Names, layer: list[Relation], lower: list[Relation], sets: bool = True) -> Body:
    """A body of 1 to 4 literals; with a `layer`, at least one of its atoms is from there."""
    body = Body(names, layer + lower, lower, bounded=bool(layer))
    relations = [draw(st.sampled_from(layer or lower)), *draw(st.lists(st.sampled_from(body.sources), max_size=2))]
    pool = {c: VARIABLES[c] * 4 + ["_", "_"] + CONSTANTS[c][:2] + ([COMPUTED[c]] * 2 if c in COMPUTED else []) for c in TYPES}
    open_ = [draw(_atom(relation, pool, body)) for relation in relations]
    body.literals += [_filled(draw, body, atom) for atom in open_]
    more = [
        _comparison,
        _negation,
        _aggregate,
        _computation,
        _choice,
        _group,
        _aggregate,
        _computation,
        *([_setof, _setof, _of_set] if sets else []),
    ]
    for literal in draw(st.lists(st.sampled_from(more), max_size=min(2, 4 - len(relations)))):
        body.literals += literal(draw, body)
    return body


@st.composite
def _atom(draw: DrawFn, relation: Relation, terms: dict[str, list[str]], body: Body | None = None) -> str:
    """An atom with terms of the right types; the variables among them are grounded in `body`, if one is given."""
    chosen = [draw(st.sampled_from(terms[column])) for column in relation.columns]
    if body is not None:
        for column, term in zip(relation.columns, chosen, strict=True):
            if term.isidentifier() and term != "_":
                body.ground(column, term)
    return f"{relation.name}({', '.join(chosen)})"


def _term(draw: DrawFn, body: Body, column: str) -> str:
    return draw(st.sampled_from(body.grounded[column] * 2 + CONSTANTS[column]))


def _known(body: Body) -> dict[str, list[str]]:
    """Terms for an atom that tests and does not ground."""
    return {c: body.grounded[c] * 3 + ["_"] + CONSTANTS[c][:2] + _simple(c, body.grounded[c]) for c in TYPES}


def _simple(column: str, variables: list[str]) -> list[str]:
    """Values computed from one variable each."""
    forms = {"n": ["{v} - 1", "{v} + 1"], "s": ["substr({v}, 0, 1)"], "c": ["union({v}, {{1, 4}})", "minus({v}, {{1}})"]}[column]
    return [form.format(v=variable) for variable in variables[:2] for form in forms]


def _filled(draw: DrawFn, body: Body, atom: str) -> str:
    """The atom with terms for what it is to compute."""
    for column, mark in COMPUTED.items():
        while mark in atom:
            forms = NUMBERS if column == "n" else ANY_SYMBOLS
            atom = atom.replace(mark, _computed(draw, body, forms), 1)
    return atom


def _comparison(draw: DrawFn, body: Body) -> list[str]:
    column = draw(st.sampled_from([c for c in TYPES if body.grounded[c]] or ["n"]))
    left = draw(st.sampled_from(body.grounded[column] or CONSTANTS[column]))
    right = [v for v in body.grounded[column] if v != left] * 2 + CONSTANTS[column]
    return [f"{left} {draw(st.sampled_from(COMPARISONS))} {draw(st.sampled_from(right))}"]


def _negation(draw: DrawFn, body: Body) -> list[str]:
    return ["!" + draw(_atom(draw(st.sampled_from(body.lower)), _known(body)))]


def _computation(draw: DrawFn, body: Body) -> list[str]:
    """A new variable equal to a computed value, on either side of the sign."""
    column = draw(st.sampled_from("nnns"))
    forms = NUMBERS if column == "n" else SYMBOLS if body.bounded else ANY_SYMBOLS
    return _equal(draw, body, column, _computed(draw, body, forms))


def _computed(draw: DrawFn, body: Body, forms: list[str]) -> str:
    return draw(st.sampled_from(forms)).format(
        a=_term(draw, body, "n"),
        b=_term(draw, body, "n"),
        d=draw(st.sampled_from(body.grounded["n"] * 4 + ["2"])),
        s=_term(draw, body, "s"),
        t=_term(draw, body, "s"),
    )


def _equal(draw: DrawFn, body: Body, column: str, value: str) -> list[str]:
    variable = body.names.fresh("v" if column == "n" else "w")
    body.ground(column, variable)
    literals = [draw(st.sampled_from([f"{variable} = {value}", f"{value} = {variable}"]))]
    if column == "n" and body.bounded:
        literals += [f"{variable} < 6", f"{variable} >= 0"]
    return literals


def _aggregate(draw: DrawFn, body: Body) -> list[str]:
    """An aggregate over lower layers whose outer variables are grounded: compared, or the value of a new variable."""
    kind = draw(st.sampled_from(["count", "sum", "min", "max", "mean"]))
    column = draw(st.sampled_from("ns" if kind in ("min", "max") else "n"))
    able = [r for r in body.lower if column in r.columns]
    if not able:
        inside = draw(_atom(draw(st.sampled_from(body.lower)), _known(body)))
        return _equal(draw, body, "n", f"count : {{ {inside} }}")
    local = body.names.fresh("i" if column == "n" else "k")
    local = draw(st.sampled_from([local, local, *body.grounded[column][:1]]))  # a target is the aggregate's own, whatever it is called
    inside = draw(st.sampled_from([_conjunction_inside, _disjunction_inside]))(draw, body, able, column, local)
    if kind == "count":
        value = f"count : {{ {inside} }}"
    elif kind in ("sum", "mean"):
        value = f"{kind} {draw(st.sampled_from([local, f'{local} * {local}', f'{local} - 2']))} : {{ {inside} }}"
    else:
        value = f"{kind} {local} : {{ {inside} }}"
    if kind == "mean":
        return [f"{value} {draw(st.sampled_from(COMPARISONS))} {draw(st.sampled_from(['1.5', '2.0', '-0.5']))}"]
    if draw(st.booleans()):
        return _equal(draw, body, column, value)
    return [f"{_term(draw, body, column)} {draw(st.sampled_from(COMPARISONS))} {value}"]


def _setof(draw: DrawFn, body: Body) -> list[str]:
    """A setof over lower layers, and what is asked of its set. What is free in it is grounded by it."""
    able = [r for r in body.lower if "n" in r.columns]
    if not able:
        return []
    own = draw(st.sampled_from([body.names.fresh("i"), *body.grounded["n"][:1]]))
    outer = {c: body.grounded[c] * 2 + ["_"] + CONSTANTS[c][:1] for c in TYPES}
    relation = draw(st.sampled_from(able))
    place = draw(st.sampled_from([i for i, c in enumerate(relation.columns) if c == "n"]))
    args, new = [], []
    for i, column in enumerate(relation.columns):
        fresh = body.names.fresh({"n": "v", "s": "w", "c": "c"}[column])
        args.append(own if i == place else draw(st.sampled_from([*outer[column], fresh])))
        new += [(column, fresh)] * (args[-1] == fresh)
    atom = f"{relation.name}({', '.join(arg if i == place or arg != own else '_' for i, arg in enumerate(args))})"
    terms = {c: [*CONSTANTS[c][:1], "_", *([own] * 2 if c == "n" else [])] for c in TYPES}
    second = draw(
        st.sampled_from(["", "", f"{own} > 0", "!" + draw(_atom(draw(st.sampled_from(body.lower)), terms)), f"{own} != 3 ; {atom}"])
    )
    inside = (
        f"({atom}, {second})" if second and ";" not in second else f"({atom}, {second.replace(' ;', f' ; {own} = 9,')})" if second else atom
    )
    target = draw(st.sampled_from([own, own, f"{own} / 2", f"({own}, {own} + 1)", f"{own} % {own}"]))
    set_ = body.names.fresh("c")
    literals = [f"setof({target}, {inside}, {set_})"]
    for column, variable in new:
        body.ground(column, variable)
    if target.startswith("("):
        return literals + _bounded(
            draw, body, draw(st.sampled_from(["sum({s}, {v}, 2)", "count({s}, {v})", "member(({v}, {w}), {s})", "mode({s}, {v}, 1)"])), set_
        )
    if draw(st.booleans()):
        return literals + _bounded(draw, body, draw(st.sampled_from(SET_LITERALS)), set_)
    body.ground("c", set_)
    return literals


SET_LITERALS = [
    "sum({s}, {v})",
    "count({s}, {v})",
    "min({s}, {v})",
    "max({s}, {v})",
    "median({s}, {v})",
    "percentile({s}, 60, {v})",
    "member({v}, {s})",
    "{v} = size({s})",
    "top({s}, 2, {w}), sum({w}, {v})",
    "mean({s}, {w}), {v} = to_number({w})",
]


def _bounded(draw: DrawFn, body: Body, form: str, set_: str) -> list[str]:
    """A literal that gives a new number of a set; in a recursion it is bounded."""
    number, other = body.names.fresh("v"), body.names.fresh("w")
    body.ground("n", number)
    return [form.format(s=set_, v=number, w=other), *([f"{number} < 6", f"{number} >= 0"] if body.bounded else [])]


def _of_set(draw: DrawFn, body: Body) -> list[str]:
    """What is asked of a set that is grounded."""
    set_ = draw(st.sampled_from(body.grounded["c"] + CONSTANTS["c"]))
    if draw(st.booleans()):
        return [f"{draw(st.sampled_from(['', '!']))}member({_term(draw, body, 'n')}, {set_})"]
    return _bounded(draw, body, draw(st.sampled_from(SET_LITERALS)), set_)


def _conjunction_inside(draw: DrawFn, body: Body, able: list[Relation], column: str, local: str) -> str:
    """One or two literals that ground `local`; a second one may negate, compare with what is outside, join, or ground what the first computes with, and the other way round."""
    first = _atom_with(draw, draw(st.sampled_from(able)), column, local, _known(body))
    terms = _known(body)
    terms[column] = [local] * 3 + _simple(column, [local]) + terms[column]
    second = draw(st.sampled_from(["", "compare", "negate", "join", "wait"]))
    if second == "wait":
        other = body.names.fresh("j" if column == "n" else "l")
        waiting = _known(body)
        waiting[column] = [other, *_simple(column, [other])] + waiting[column]
        first = _atom_with(draw, draw(st.sampled_from(able)), column, local, waiting)
        return f"{first}, {_atom_with(draw, draw(st.sampled_from(able)), column, other, terms)}"
    if second == "compare":
        return f"{first}, {local} {draw(st.sampled_from(COMPARISONS))} {_term(draw, body, column)}"
    if second == "negate":
        return f"{first}, !{draw(_atom(draw(st.sampled_from(body.lower)), terms))}"
    if second == "join":
        return f"{draw(_atom(draw(st.sampled_from(body.lower)), terms))}, {first}"
    return first


def _disjunction_inside(draw: DrawFn, body: Body, able: list[Relation], column: str, local: str) -> str:
    """Two ways that bind `local` and nothing else, without `_`; beside them there may be a comparison, also with a further aggregate."""
    terms = {c: body.grounded[c] * 2 + CONSTANTS[c][:2] + _simple(c, [local] if c == column else body.grounded[c]) for c in TYPES}
    ways = [_atom_with(draw, draw(st.sampled_from(able)), column, local, terms) for _ in range(2)]
    further = f"count : {{ {draw(_atom(draw(st.sampled_from(body.lower)), terms))} }}" if column == "n" else _term(draw, body, column)
    beside = draw(st.sampled_from(["", "", f"{local} {draw(st.sampled_from(COMPARISONS))} {further}"]))
    return f"({' ; '.join(ways)}), {beside}" if beside else " ; ".join(ways)


def _atom_with(draw: DrawFn, relation: Relation, column: str, variable: str, terms: dict[str, list[str]]) -> str:
    place = draw(st.sampled_from([i for i, c in enumerate(relation.columns) if c == column]))
    chosen = [variable if i == place else draw(st.sampled_from(terms[c])) for i, c in enumerate(relation.columns)]
    return f"{relation.name}({', '.join(chosen)})"


def _choice(draw: DrawFn, body: Body) -> list[str]:
    """A disjunction in parentheses: of tests, or of ways to ground one new variable."""
    column = draw(st.sampled_from("ns"))
    able = [r for r in body.lower if column in r.columns]
    if able and draw(st.sampled_from([False, True])):
        variable = body.names.fresh("v" if column == "n" else "w")
        way = _atom_with(draw, draw(st.sampled_from(able)), column, variable, _known(body))
        other = f"{variable} = {_term(draw, body, column)}"
        body.ground(column, variable)
        return [f"({draw(st.sampled_from([f'{other} ; {way}', f'{way} ; {other}']))})"]
    return [f"({_way(draw, body)} ; {_way(draw, body)})"]


def _way(draw: DrawFn, body: Body, deeper: int = 1) -> str:
    """One side of a disjunction of tests: it may have a variable of its own, or ways within."""
    kind = draw(st.sampled_from(["test", "own", "within"][: 2 + deeper]))
    column = draw(st.sampled_from("ns"))
    able = [r for r in body.sources if column in r.columns]
    if kind == "own" and able:
        own = body.names.fresh("o" if column == "n" else "q")
        atom = _atom_with(draw, draw(st.sampled_from(able)), column, own, _known(body))
        return f"{atom}, {own} {draw(st.sampled_from(COMPARISONS))} {_term(draw, body, column)}"
    if kind == "within":
        return f"{_test(draw, body, body.sources)}, ({_way(draw, body, 0)} ; {_way(draw, body, 0)})"
    return _test(draw, body, body.sources)


def _group(draw: DrawFn, body: Body) -> list[str]:
    """A negated group of tests. It may hold only lower layers."""
    joint = draw(st.sampled_from([" ; ", ", "]))
    return [f"!({_test(draw, body, body.lower)}{joint}{_test(draw, body, body.lower)})"]


def _test(draw: DrawFn, body: Body, relations: list[Relation]) -> str:
    """A comparison or an atom over what is grounded already."""
    if draw(st.booleans()):
        return _comparison(draw, body)[0]
    relation = draw(st.sampled_from(relations))
    return draw(_atom(relation, _known(body)))
