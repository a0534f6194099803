"""The recipes of CONTRIBUTING: one of each is added to a copy of the tree. The places that a recipe lists suffice; and whoever stops after the first is told the others, by a test or by mypy."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.treatments import SIZE

pytestmark = pytest.mark.apart

ROOT = Path(__file__).parents[2]
Edit = Callable[[str], str]


def entry(table: str, text: str) -> Edit:
    """Puts an entry into a table: a dictionary, tuple or set."""
    return lambda page: _replaced(rf"^({table}(?:: [^=]*)? = (?:frozenset\()?[({{])", rf"\g<1>{text}, ", page)


def after(line: str, text: str) -> Edit:
    return lambda page: _replaced(rf"^({line}.*\n)", rf"\g<1>{text}\n", page)


def _replaced(pattern: str, new: str, page: str) -> str:
    changed, number = re.subn(pattern, new, page, count=1, flags=re.MULTILINE)
    assert number == 1, f"nothing is like {pattern}"
    return changed


def written(text: str) -> Edit:
    """A file of its own."""
    return lambda _: text


PASS = '''\
"""Each literal of a body once.

>>> from vigilog.language.check import check
>>> from vigilog.language.printer import show_statement
>>> show_statement(once(check(".decl p, q(x: number) p(x) :- q(x), q(x).").program).rules[0])
'p(x) :- q(x).'
"""

from __future__ import annotations

from dataclasses import replace

from vigilog.language.program import Program


def once(program: Program) -> Program:
    return program.with_rules(tuple(replace(rule, body=tuple(dict.fromkeys(rule.body))) for rule in program.rules))
'''
STRATEGY = '''\
"""`eager`: the view is stored."""

from __future__ import annotations

from vigilog.rewriting.maintenance.strategies.strategy import Strategy

EAGER = Strategy("eager", "the view is stored", keeper="rederiving")
'''
LITERAL = '''
@dataclass(frozen=True)
class Between:
    """`term between low and high`."""

    term: Term
    low: Term
    high: Term
    span: Span = field(default=NOWHERE, compare=False, repr=False)

'''
DIFFERENCE = 'binary(exp.Sub, call("max", target), call("min", target.copy()))'

# For each recipe its places under vigilog/, in order, with what is written there. The first is where one begins.
RECIPES: dict[str, list[tuple[str, Edit]]] = {
    "a functor": [
        ("language/functors.py", entry("FUNCTORS", '"reverse": Signature((SYMBOL,), SYMBOL)')),
        ("language/functors.py", entry("_MEANING", '"reverse": lambda text: text[::-1]')),
    ],
    "an aggregate": [
        (
            "language/functors.py",
            entry("AGGREGATES", '"spread": Aggregator(Signature((NUMBER,), NUMBER), lambda _, values: max(values) - min(values))'),
        ),
        ("language/grammar.lark", lambda page: after('MEAN: "mean"', 'SPREAD: "spread"')(page.replace("(SUM |", "(SPREAD | SUM |"))),
        ("planning/sqlite.py", entry("AGGREGATES", f'"spread": lambda _, __, target: {DIFFERENCE}')),
        ("planning/sparksql.py", entry("AGGREGATES", f'"spread": Aggregated(lambda _, target: {DIFFERENCE}, SparkDialect.as_it_is)')),
        ("planning/duckdb.py", entry("AGGREGATES", f'"spread": Aggregated(lambda _, target: {DIFFERENCE}, DuckDbDialect.as_it_is)')),
    ],
    "a source or a format": [
        ("language/options.py", entry("FILES", '"tsv"')),
        ("engine/places.py", entry("ENDINGS", '"tsv": "tsv"')),
        ("files/place.py", entry("TEXT_FORMATS", '"tsv"')),
        ("files/reader.py", entry("TEXTS", '"tsv": _rows')),
        ("files/writer.py", entry("TEXTS", '"tsv": _lines')),
        ("spark/sources.py", entry("TEXTS", '"tsv": (_delimited, cells.from_text)')),
    ],
    "a pass": [
        ("rewriting/program/once.py", written(PASS)),
        (
            "rewriting/passes.py",
            lambda page: entry("PASSES", "once")(after("from vigilog.language", "from vigilog.rewriting.program.once import once")(page)),
        ),
    ],
    "a strategy": [
        ("rewriting/maintenance/strategies/eager.py", written(STRATEGY)),
        (
            "rewriting/maintenance/strategies/__init__.py",
            lambda page: after("from __future__", "from vigilog.rewriting.maintenance.strategies.eager import EAGER")(
                page.replace("in (EXTERNAL,", "in (EAGER, EXTERNAL,")
            ),
        ),
    ],
}
# What beginners are told by which test of tests/test_tables.py.
TOLD = """
_MEANING in language/functors.py lacks reverse
docs/language.md lacks reverse
language/grammar.lark lacks spread
AGGREGATES in planning/sqlite.py lacks spread
AGGREGATES in planning/sparksql.py lacks spread
AGGREGATES in planning/duckdb.py lacks spread
docs/language.md lacks spread
ENDINGS in engine/places.py lacks tsv
COLUMNAR in spark/sources.py lacks tsv
COLUMNAR in spark/sinks.py lacks tsv
docs/sources.md lacks IO=tsv
"""
CASES = {
    "programs/recipe-functor.case": """\
A functor that Python computes.
--- program
.decl q, p(x: symbol)
.input q
.output p
p(reverse(x)) :- q(x), strlen(reverse(x)) = 3.
--- facts q
abc
xy
--- expect p
cba
""",
    "programs/recipe-source.case": """\
A format of text.
--- program
.decl q, p(x: symbol, n: number)
.input q(IO=tsv, filename="q.facts")
.output p(IO=tsv)
p(x, n + 1) :- q(x, n), q(x, n).
--- facts q
a	1
--- expect p
a	2
""",
    "changes/recipe-aggregate.case": """\
An aggregate that has no value over nothing.
--- program
.decl q, p(g: symbol, x: number)
.input q
.output p
p(g, n) :- q(g, _), n = spread x : { q(g, x) }.
--- facts q
a	1
a	9
b	4
--- change {"delete": {"q": [["a", 9]]}, "insert": {"q": [["b", 7]]}}
+p	a	0
+p	b	3
-p	a	8
-p	b	0
--- change {"delete": {"q": [["a", 1]]}}
-p	a	0
""",
}


def recipe(name: str) -> str:
    """What CONTRIBUTING says about adding something."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.search(rf"^\*\*{name}\?\*\*.*?(?=^\*\*|^##)", page, re.MULTILINE | re.DOTALL)
    assert found, f"CONTRIBUTING.md has no recipe for {name}"
    return found[0]


def copied(folder: Path) -> Path:
    for part in ("vigilog", "tests", "docs", ".mypy_cache"):
        if (ROOT / part).exists():
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "pyproject.toml", folder)
    return folder


def change(root: Path, place: str, edit: Edit) -> None:
    path = root / "vigilog" / place
    path.write_text(edit(path.read_text(encoding="utf-8") if path.exists() else ""), encoding="utf-8")


def ran(root: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-m", *arguments], cwd=root, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_lists_its_places(name: str) -> None:
    text = recipe(name)
    folders = {place.rpartition("/")[0] + "/" for place, edit in RECIPES[name] if not (ROOT / "vigilog" / place).exists()}
    files = {place for place, _ in RECIPES[name] if (ROOT / "vigilog" / place).exists()}
    assert [place for place in sorted(files | folders) if f"`{place}`" not in text] == []


def test_who_begins_is_told_the_other_places(tmp_path: Path) -> None:
    root = copied(tmp_path)
    for name, places in RECIPES.items():
        change(root, *places[0])
        if name == "a strategy":
            change(root, *places[1])  # one file and one line
    change(
        root,
        "language/syntax.py",
        lambda page: page.replace("Term = Variable |", f"{LITERAL}\nTerm = Variable |").replace(
            "Literal = Atom |", "Literal = Between | Atom |"
        ),
    )
    status, said = ran(root, "pytest", "-q", "-p", "no:cacheprovider", "tests/test_tables.py")
    assert status == 1
    assert [line for line in TOLD.split("\n") if line not in said] == []
    status, said = ran(root, "mypy", "vigilog")
    named = {path.removeprefix("vigilog/") for path in re.findall(r'^(\S+?):\d+: error: .*"Between"; expected "Never"', said, re.MULTILINE)}
    assert status == 1 and said.count(": error:") == said.count('"Between"; expected "Never"'), said
    listed = set(re.findall(r"`((?:language/|reference)\S*?\.py)`", recipe("a literal"))) - {"language/syntax.py", "language/builder.py"}
    assert listed <= named, "what the recipe lists, mypy names"
    assert {place for place in named if place.startswith("language/")} <= listed | {"language/builder.py"}


def test_the_places_listed_suffice(tmp_path: Path) -> None:
    """Under the reference, on SQLite, by every strategy; in a long run on Spark, too."""
    root = copied(tmp_path)
    for places in RECIPES.values():
        for place, edit in places:
            change(root, place, edit)
    for page, line in (("language.md", "`reverse(x)`, `spread x : { … }`"), ("sources.md", "`tsv`")):
        with (root / "docs" / page).open("a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")
    for name, text in CASES.items():
        (root / "tests" / name).write_text(text, encoding="utf-8")
    chosen = "recipe- or test_tables or once" if SIZE == "long" else "(recipe- or test_tables or once) and not spark"
    tests = [
        "tests/test_tables.py",
        "tests/executors/test_programs.py",
        "tests/engine/test_changes.py",
        "vigilog/rewriting/program/once.py",
    ]
    status, said = ran(root, "pytest", "-q", "-p", "no:cacheprovider", *tests, "-k", chosen)
    assert status == 0, said
    status, said = ran(root, "mypy", "vigilog")
    assert status == 0, said
