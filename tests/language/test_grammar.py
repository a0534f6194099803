"""The grammar has no conflicts but those that are meant: Lark settles each by shifting, without a word."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
from lark import Lark, logger

import vigilog.language
from vigilog.language.parser import parse
from vigilog.language.printer import show


def test_conflicts_are_those_that_are_meant(caplog: pytest.LogCaptureFixture) -> None:
    text = Path(vigilog.language.__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    before = logger.level
    logger.setLevel(logging.DEBUG)
    try:
        Lark(text, start=["program", "refused"], parser="lalr", lexer="basic", debug=True)
    finally:
        logger.setLevel(before)
    found = re.findall(r"Shift/Reduce conflict for terminal (\w+)", caplog.text)
    assert found == ["COMMA"] * 5, caplog.text  # a body in parentheses, or a tuple: each on a comma, and as meant


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("p(x) :- q(x), n = sum x : r(x).", "p(x) :- q(x), n = sum x : { r(x) }."),
        ("x(y) :- q(y), y = z.q(z) :- r(z).", "x(y) :- q(y), y = z.\nq(z) :- r(z)."),
        (".decl p(x: number) updatable .decl q(x: number) // constrained", ".decl p(x: number) updatable\n.decl q(x: number)"),
        (
            ".decl p(x: number) constrained // so\n.output p p(updatable) :- q(updatable), updatable != deferred.",
            ".decl p(x: number) constrained\n.output p\np(updatable) :- q(updatable), updatable != deferred.",
        ),
        ("p(x) :- in(r, d:f(x, 1 + 2)), x = r.a.", "p(x) :- in(r, d:f(x, 1 + 2)), x = r.a."),
        ("in(x, y) :- in(y, x), !in(x, x).", "in(x, y) :- in(y, x), !in(x, x)."),
        (".decl constrained(updatable: number) constrained deferred(1).", ".decl constrained(updatable: number) constrained\ndeferred(1)."),
        (
            ".decl constrained(x: number) .decl updatable(y: number) updatable .output constrained, updatable .input deferred",
            ".decl constrained(x: number)\n.decl updatable(y: number) updatable\n.output constrained\n.output updatable\n.input deferred",
        ),
        (".type deferred = number .decl p(x: deferred) deferred", ".type deferred = number\n.decl p(x: deferred) deferred"),
        ("p(deferred) :- q(x), deferred = x + 1 + updatable band 1.", "p(deferred) :- q(x), deferred = x + 1 + updatable band 1."),
        ("p(x) :- q(x), x = constrained.q(z) :- r(z).", "p(x) :- q(x), x = constrained.\nq(z) :- r(z)."),
        ("p(x) :- in(constrained, d:all()), x = constrained.updatable.", "p(x) :- in(constrained, d:all()), x = constrained.updatable."),
        ('.domain d(kind=sql, query.q="SELECT 1")', '.domain d(kind="sql", query.q="SELECT 1")'),
        (".domain d(kind=file, path=p, refresh=10s)", '.domain d(kind=file, path="p", refresh="10s")'),
        (".function w:t(c: symbol) -> (x: float)", ".function w:t(c: symbol) -> (x: float)"),
        (".table d:t(c: symbol, n: number)", ".table d:t(c: symbol, n: number)"),
        ("p(x) :- q(x), x != 1.5, x<-1.", "p(x) :- q(x), x != 1.5, x < -1."),
    ],
)
def test_what_might_be_read_in_two_ways(text: str, shown: str) -> None:
    assert show(parse(text)) == shown
    assert show(parse(shown)) == shown
