"""Random programs that are recursive through `min` or `max`, with views above them, and rows for their inputs."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.properties.programs import Facts

DECLARED = """
.decl e_ssu(x: symbol, y: symbol, w: unsigned)
.decl s_su(x: symbol, d: unsigned)
.decl b_s(x: symbol)
.input e_ssu
.input s_su
.input b_s
"""
ABOVE = """
.decl missing(x: symbol)
.decl level(d: unsigned, n: number)
.decl widest(d: unsigned)
.decl pair(x: symbol, y: symbol)
.output missing
.output level
.output widest
.output pair
missing(x) :- e_ssu(x, _, _), !{best}.
level(d, n) :- {value}, n = count : { {value_of_z} }.
widest(d) :- d = max c : { {value_c} }.
pair(x, y) :- {value_x}, {value_y}, x < y, !b_s(x).
"""
NAMES = "abcd"


@st.composite
def improving_programs(draw: DrawFn) -> tuple[str, Facts]:
    op = draw(st.sampled_from(["min", "max"]))
    step = draw(
        st.sampled_from(["c + w", "c", "max(c, w)", "c + 1", "max(c + w, 2)"] if op == "min" else ["c - w", "c", "min(c, w)", "c - 1"])
    )
    first, pairs = draw(st.booleans()), draw(st.booleans())

    def best(name: str, key: str, value: str, start: str = '"a"') -> str:
        """An atom of a relation that keeps the best, with its value in the first column or in the last."""
        cells = [*([start] if pairs else []), key]
        return f"{name}({', '.join([value, *cells] if first else [*cells, value])})"

    columns = [*(["o: symbol"] if pairs else []), "x: symbol"]
    declared = [f".decl {name}({', '.join(['d: unsigned', *columns] if first else [*columns, 'd: unsigned'])})" for name in ("p", "q")]
    bound = draw(st.sampled_from(["", "", ", d < 9" if op == "min" else ", d > 1", ", d <= 7" if op == "min" else ", 2 <= d"]))
    extra = draw(st.sampled_from(["", "", ", !b_s(y)", ", b_s(_)", ", seen(x)"]))
    start = "o" if pairs else ""

    def rule(name: str, read: str) -> str:
        inner = f"{best(read, 'x', 'c', start)}, e_ssu(x, y, w), e = {step}{extra}"
        outer = "e_ssu(_, y, _)" + (", e_ssu(o, _, _)" if pairs else "")
        return f"{best(name, 'y', 'd', start)} :- {outer}, d = {op} e : {{ {inner} }}{bound}."

    other = draw(st.booleans())
    rules = [rule("p", "q" if other else "p")]
    if other:
        rules.append(rule("q", "p"))
        rules.append(f"{best('q', 'x', 'd', 'x')} :- {best('p', 'x', 'd', 'x')}, b_s(x).")
    rules.append(f"{best('p', 'x', 'd', 'x')} :- s_su(x, d).")
    more = [
        f"{best('p', 'y', 'd', start)} :- {best('p', 'x', 'd', start)}, e_ssu(x, y, 1).",
        f"{best('p', 'x', '4', 'x')} :- b_s(x).",
        best("p", '"c"', "3") + ".",
        f"{best('p', 'y', step.replace('w', '2'), start)} :- {best('p', 'x', 'c', start)}, e_ssu(y, x, _).",
    ]
    if pairs and op == "min":
        more.append(f"{best('p', 'y', 'd', 'o')} :- {best('p', 'x', 'a', 'o')}, {best('p', 'y', 'b', 'x')}, d = a + b.")
    rules += draw(st.lists(st.sampled_from(more), max_size=2, unique=True))
    if "seen" in extra:
        rules += [f"seen(x) :- {best('p', 'x', '_', '_')}.", "seen(x) :- b_s(x), seen(y), e_ssu(y, x, _).", "seen(x) :- s_su(x, _)."]
        declared.append(".decl seen(x: symbol)")
    filled = {
        "{best}": best("p", "x", "_", "_"),
        "{value}": best("p", "_", "d", "_"),
        "{value_of_z}": best("p", "z", "d", "_"),
        "{value_c}": best("p", "_", "c", "_"),
        "{value_x}": best("p", "x", "d", "_"),
        "{value_y}": best("p", "y", "d", "_"),
    }
    above = ABOVE
    for gap, atom in filled.items():
        above = above.replace(gap, atom)
    text = "\n".join([DECLARED, *declared, ".output p", *([".output q"] if other else []), *draw(st.permutations(rules)), above])
    names, small = st.sampled_from(NAMES), st.integers(0, 5)
    edges = draw(st.lists(st.tuples(names, names, small), min_size=3, max_size=12))
    starts = draw(st.lists(st.tuples(names, st.integers(0, 9)), max_size=3))
    return text, {"e_ssu": [*edges], "s_su": [*starts], "b_s": draw(st.lists(st.tuples(names), max_size=3))}


@st.composite
def improving_changes(draw: DrawFn, facts: Facts) -> list[dict[str, dict[str, list[tuple[object, ...]]]]]:
    """Transactions that mostly take away what is there."""
    names, small = st.sampled_from(NAMES), st.integers(0, 5)
    near = {"e_ssu": st.tuples(names, names, small), "s_su": st.tuples(names, small), "b_s": st.tuples(names)}

    def part(of: str) -> st.SearchStrategy[list[tuple[object, ...]]]:
        rows = st.sampled_from(facts[of]) | near[of] if facts[of] else near[of]
        return st.lists(rows, max_size=3)

    found = []
    for _ in range(draw(st.integers(1, 4))):
        found.append({side: {of: draw(part(of)) for of in near} for side in ("delete", "insert")})
    return found
