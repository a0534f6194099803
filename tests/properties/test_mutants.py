"""Golden programs in which a few tokens are others: each is refused as a program, or stopped, or means the same to all."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.golden import Case, cases
from tests.treatments import examples
from vigilog import reference
from vigilog.core.errors import DataError, ProgramError, Stopped
from vigilog.engine.evaluate import evaluate
from vigilog.engine.places import inputs
from vigilog.executors.watch import Watch
from vigilog.files import reader
from vigilog.language.check import check
from vigilog.language.parser import parse
from vigilog.language.printer import show
from vigilog.rewriting.passes import rewrite

CASES = cases()
TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|[A-Za-z_?][\w?]*|\d[\w.]*|:-|[!<>]=|\.\w+|\s+|.', re.DOTALL)
POOL = sorted({token for case in CASES for token in TOKEN.findall(case.program)})


@st.composite
def mutants(draw: DrawFn) -> tuple[Case, str]:
    case = draw(st.sampled_from(CASES))
    tokens = TOKEN.findall(case.program)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from([place for place, token in enumerate(tokens) if token.strip()]))
        alike = sorted({token for token in tokens if _kind(token) == _kind(tokens[place])})
        tokens[place] = draw(st.one_of(st.sampled_from(alike), st.sampled_from(alike), st.sampled_from(POOL), st.just(" ")))
    return case, "".join(tokens)


def _kind(token: str) -> str:
    return "word" if token[:1].isalpha() else "number" if token[:1].isdigit() else "blank" if token.isspace() else "sign"


@examples(400)
@given(mutants())
def test_a_mutant_is_refused_or_means_the_same(drawn: tuple[Case, str]) -> None:
    case, text = drawn
    try:
        program = check(text).program
        plain = rewrite(program)
    except ProgramError:
        return
    written = parse(text)
    assert parse(show(written)) == written
    try:
        with TemporaryDirectory() as folder:
            case.write_facts(Path(folder))
            facts = {name: list(reader.rows(place)) for name, place in inputs(program, Path(folder)).items()}
        found = evaluate(program, facts, "embedded", Watch(max_rounds=40, timeout=20))
    except (DataError, Stopped):  # the rows may fit no more, and it may never come to an end
        return
    expected = reference.evaluate(program, facts)
    again = evaluate(check(show(plain)).program, facts, "embedded")
    for relation in program.outputs:
        assert found[relation] == expected[relation] == again[relation], relation
