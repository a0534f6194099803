"""A match on kinds of literals or terms names all of them, so that mypy finds the places that do not know a new one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import vigilog
from vigilog.language import syntax

ROOT = Path(vigilog.__file__).parent
KINDS = [{kind.__name__ for kind in get_args(union)} for union in (syntax.Literal, syntax.Term)]
REFUSING = ("assert_never", "assert ", "raise ", "findings.error")


def kinds(case: ast.match_case) -> Iterator[str]:
    """The classes that a case names on its first level."""
    for pattern in case.pattern.patterns if isinstance(case.pattern, ast.MatchOr) else [case.pattern]:
        inner = pattern.pattern if isinstance(pattern, ast.MatchAs) and pattern.pattern else pattern
        if isinstance(inner, ast.MatchClass):
            yield ast.unparse(inner.cls).rpartition(".")[2]


def passing(match: ast.Match) -> bool:
    """Whether a match tells several kinds apart, and lets any other kind pass."""
    told, last = {kind for case in match.cases for kind in kinds(case)}, match.cases[-1]
    anything = isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None and last.guard is None
    refused = any(word in ast.unparse(last) for word in REFUSING)
    return any(len(told & union) > 1 for union in KINDS) and anything and not refused


def test_no_match_lets_kinds_pass_that_it_does_not_name() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted(ROOT.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Match) and passing(node)
    ]
    assert found == []
