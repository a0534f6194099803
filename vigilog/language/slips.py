"""Slips of the pen: what people write who know another language, and what they would write in this one.

A parser only knows which token cannot stand where it does. `slip` looks at the tokens around it.

>>> from vigilog.language.parser import parse
>>> parse("p(x) :- q(x, y), x == y.")
Traceback (most recent call last):
...
vigilog.core.errors.ProgramError: program:1:20: error[syntax]: there is no '=='
  p(x) :- q(x, y), x == y.
                     ^^
  fix:  equality is written =
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lark import Token

from vigilog.core.errors import did_you_mean

QUALIFIERS = ("btree", "brie", "inline", "no_inline", "magic", "no_magic", "overridable", "constrained", "updatable", "deferred")
DIRECTIVE = ("DECL", "TYPE", "IO_DIRECTIVE", "KEY", "AGGREGATE", "TABLE", "FUNCTION", "PRAGMA", "PLAN")
AGGREGATES = ("COUNT", "SUM", "MIN", "MAX", "MEAN")
KEYWORDS = (*AGGREGATES, "SETOF")
RULE_FORM = "a rule is written head :- body."
NULLS = ("null", "none")  # as others write them; here these are names of variables
NO_NULLS = "there are no nulls: a row without a value is left out, or is in a relation of its own"
MEAN = "the mean is an aggregate: n = mean y : { e(x, y) }"

# Signs of other languages, and how they are written here.
_SIGNS = {
    "==": "equality is written =",
    "===": "equality is written =",
    "<>": "inequality is written !=",
    "\\=": "inequality is written !=",
    "=<": "it is written <=",
    "=>": "it is written >=",
    "\\+": "negation is written !: !e(x, y)",
    "~": "negation is written !: !e(x, y)",
    "¬": "negation is written !: !e(x, y)",
    "∧": "and is written ,",
    "∨": "or is written ;",
    "≠": "inequality is written !=",
    "≤": "it is written <=",
    "≥": "it is written >=",
    "&&": "and is written ,",
    "&": "and is written ,",
    "||": "or is written ;",
    "|": "or is written ;",
    "**": "a power is written ^",
    "+=": "a variable has one value: give the sum another name, z = y + 1",
    "-=": "a variable has one value: give the difference another name, z = y - 1",
    "--": "a comment begins with //",
    "%": "a comment begins with //",
    "?": "a choice is a disjunction: (x > 1, z = y ; x <= 1, z = 2)",
    "?-": "what is shown is said by .output; a question is asked by vigilog ask",
    "'": 'strings stand in double quotes: "text"',
}
_ARROWS = ("<-", "<--", "<=", "=>", "->", "←", ":=", "=", ":", "::=", "if", "where", "when")
_WORDS = {
    "and": "and is written ,",
    "or": "or is written ;",
    "mod": "the remainder is written %: y % 2",
    "div": "division is written /",
    "in": "that a row is in a relation is an atom: e(x, y)",
    "like": 'a pattern is a test: match("a.*", s)',
    "between": "write both bounds: 1 <= x, x <= 3",
    "is": NO_NULLS,
}
_STATEMENTS = {
    "select": "a view is a rule: p(x, y) :- e(x, y), x < y.",
    "with": "a view is a rule: p(x, y) :- e(x, y), x < y.",
    "insert": "a fact is written e(1, 2).",
    "create": "a relation is declared by .decl e(x: number, y: symbol)",
    "alter": "a relation is declared by .decl e(x: number, y: symbol)",
    "drop": "a relation is there if a .decl declares it",
    "update": "rows are changed by transactions (vigilog watch, vigilog tell), not by a program",
    "delete": "rows are changed by transactions (vigilog watch, vigilog tell), not by a program",
    "merge": "rows are changed by transactions (vigilog watch, vigilog tell), not by a program",
}


@dataclass(frozen=True)
class Slip:
    """What is wrong with the tokens from `first` to `last`, and what to write instead."""

    message: str
    first: Token
    last: Token
    hint: str


@dataclass(frozen=True)
class _Place:
    """The token that cannot stand where it does, with those around it; behind the last one there is none."""

    tokens: Sequence[Token]
    index: int
    start: int  # of the statement

    def word(self, offset: int = 0) -> str:
        place = self.index + offset
        return str(self.tokens[place]) if self.start <= place < len(self.tokens) else ""

    def token(self, offset: int = 0) -> Token:
        return self.tokens[self.index + offset]

    def sign(self) -> tuple[str, int, int]:
        """The signs without blanks between them that the token is one of, and where they begin and end."""
        first = last = min(self.index, len(self.tokens) - 1)
        while first > self.start and _joined(self.tokens[first - 1], self.tokens[first]):
            first -= 1
        while last + 1 < len(self.tokens) and _joined(self.tokens[last], self.tokens[last + 1]):
            last += 1
        return "".join(map(str, self.tokens[first : last + 1])), first, last

    @property
    def in_head(self) -> bool:
        return ":-" not in self.tokens[self.start : self.index]


def slip(tokens: Sequence[Token], index: int, start: int) -> Slip | None:
    """What was meant by the statement from `start` on, in which the token at `index` cannot stand; None if that is not known."""
    place = _Place(tokens, index, start)
    looks = _LOOKS if index < len(tokens) else (_qualifier,)  # at the end of the text nothing stands where it cannot
    return next((meant for look in looks if (meant := look(place)) is not None), None)


def number_slip(text: str) -> str:
    """What to write instead of a text that begins like a number and is none.

    >>> number_slip("0b12"), number_slip("1_000"), number_slip("0o17")
    ('a binary number has the digits 0 and 1', 'write 1000', 'there are no octal numbers: write 15')
    """
    body = text.lower()
    if body[:2] == "0b":
        return "a binary number has the digits 0 and 1"
    if body[:2] == "0x":
        return "a hexadecimal number has the digits 0 to 9 and a to f"
    if body[:2] == "0o" and set(body[2:]) <= set("01234567") and body[2:]:
        return f"there are no octal numbers: write {int(body, 8)}"
    if body.replace("_", "").isdigit():
        return f"write {text.replace('_', '')}"
    return "a number has digits only; a name does not begin with one"


def statement_start(tokens: Sequence[Token], index: int) -> int:
    """Where the statement begins in which the token at `index` cannot stand: behind a full stop, or at a directive, which may be complete before the token."""
    start = min(index, len(tokens) - 1)
    while start > 0 and tokens[start - 1] != "." and (start == index or tokens[start].type not in (*DIRECTIVE, "REFUSED_DIRECTIVE")):
        start -= 1
    return start


def behind_directive(tokens: Sequence[Token], start: int, index: int) -> int:
    """Where the statement begins that follows a directive without a full stop between them, if that is complete before `index`; `start` otherwise."""
    if tokens[start].type not in DIRECTIVE:
        return start
    position, depth = start + 1, 0
    while position < len(tokens):
        word, token = str(tokens[position]), tokens[position]
        depth += {"(": 1, ")": -1}.get(word, 0)
        going_on = depth > 0 or word in (")", *_LINKS) or token.type in ("QUALIFIER", "STRING")
        if not going_on and str(tokens[position - 1]) not in _LINKS and position > start + 1:
            break
        position += 1
    return position if position <= index else start


_LINKS = (",", "|", "=", "<:", ":")  # what holds the parts of a directive together


# -- what may have been meant


def _qualifier(place: _Place) -> Slip | None:
    """`.decl e(x: number) input`: a word behind a declaration is read as the beginning of a statement."""
    word = place.word(-1)
    directive = next((at for at in range(place.start - 1, -1, -1) if place.tokens[at].type in DIRECTIVE or place.tokens[at] == "."), -1)
    if place.index != place.start + 1 or directive < 0 or place.tokens[directive].type != "DECL" or not word.isidentifier():
        return None
    if place.token(-1).line != place.token(-2).line:
        return None
    relation = place.tokens[directive + 1]
    if word in ("input", "output", "printsize"):
        hint = f"that is a directive of its own: .{word} {relation}"
    else:
        hint = did_you_mean(word, QUALIFIERS) or f"qualifiers are {', '.join(QUALIFIERS)}"
    return Slip(f"there is no qualifier {word}", place.token(-1), place.token(-1), hint)


def _untyped(place: _Place) -> Slip | None:
    """`.decl e(x, y)`."""
    if place.tokens[place.start].type == "DECL" and place.word() in (",", ")") and place.word(-2) in ("(", ","):
        return Slip(f"the column {place.word(-1)} has no type", place.token(-1), place.token(-1), f"write {place.word(-1)}: number")
    return None


def _sql(place: _Place) -> Slip | None:
    first = place.tokens[place.start]
    hint = _STATEMENTS.get(str(first).lower())
    if hint is None or place.index != place.start + 1 or place.word() in ("(", ".", ",", ":-"):
        return None
    return Slip(f"'{first}' begins a statement of SQL", first, first, hint)


def _arrow(place: _Place) -> Slip | None:
    """`p(x) <- q(x)`."""
    sign, first, last = place.sign()
    if not place.in_head or place.tokens[first - 1] != ")" or sign.lower() not in _ARROWS:
        return None
    return Slip(f"'{sign}' cannot stand between a head and a body", place.tokens[first], place.tokens[last], RULE_FORM)


def _called_aggregate(place: _Place) -> Slip | None:
    """`sum(y)`, as SQL has it."""
    for position in range(place.start, min(place.index, len(place.tokens) - 1)):
        token = place.tokens[position]
        if token.type in AGGREGATES and place.tokens[position + 1] == "(" and _closes(place, position + 1):
            target = "" if token.type == "COUNT" else " y"
            hint = f"write p(x, n) :- e(x, _), n = {token}{target} : {{ e(x, y) }}."
            return Slip(f"{token} is an aggregate, and says what it ranges over", token, token, hint)
    return None


def _closes(place: _Place, opening: int) -> bool:
    """Whether the parenthesis opened at a place is closed right before the error, or the error is that it is opened."""
    depth = 0
    for position in range(opening, place.index):
        depth += {"(": 1, ")": -1}.get(str(place.tokens[position]), 0)
        if depth == 0:
            return position == place.index - 1 and place.word() != ":"
    called = place.word() == ")" and place.index == opening + 2  # count(y): of a set there would be more
    return called or opening == place.index or opening == place.index - 1


def _aggregate(place: _Place) -> Slip | None:
    """`count { … }`, `count x : { … }`, `sum : { … }`, `avg x : { … }`."""
    before = place.token(-1) if place.index > place.start else None
    if before is None:
        return None
    if before.type == "COUNT":
        return Slip("count counts what stands in braces behind a colon", before, before, "write count : { e(x, _) }")
    if before.type in AGGREGATES:
        return Slip(f"it is not said what {before} is of, or what it ranges over", before, before, f"write {before} y : {{ e(x, y) }}")
    behind = list(map(str, place.tokens[place.index : place.index + 10]))
    if before.type == "NAME" and any(pair == (":", "{") for pair in pairwise(behind)):
        hint = MEAN if str(before).lower() in ("avg", "average") else "aggregates are count, sum, min, max, mean"
        return Slip(f"there is no aggregate {before}", before, before, hint)
    return None


def _negation(place: _Place) -> Slip | None:
    if place.word(-1).lower() != "not":
        return None
    return Slip(f"there is no '{place.word(-1)}'", place.token(-1), place.token(-1), f"negation is written !: !{place.word()}(…)")


def _word(place: _Place) -> Slip | None:
    hint = _WORDS.get(place.word().lower())
    return None if hint is None else Slip(f"there is no '{place.word()}'", place.token(), place.token(), hint)


def _chain(place: _Place) -> Slip | None:
    """`1 < x < 3`."""
    if place.token().type not in ("COMPARE", "LESS", "MORE", "EQUALS"):
        return None
    for position in range(place.index - 1, place.start, -1):
        token = place.tokens[position]
        if token.type in ("COMPARE", "LESS", "MORE", "EQUALS") and position < place.index - 1:
            middle = " ".join(map(str, place.tokens[position + 1 : place.index]))
            hint = f"write {token.value.join((place.tokens[position - 1] + ' ', ' ' + middle))}, {middle} {place.word()} {place.word(1)}"
            return Slip("a comparison has two sides", token, place.token(), hint)
        if str(token) in (",", ":-", ";", "(", "{") or token.type in ("COMPARE", "LESS", "MORE", "EQUALS"):
            return None
    return None


def _sign(place: _Place) -> Slip | None:
    sign, first, last = place.sign()
    if sign not in _SIGNS or (sign == "%" and place.index != place.start):
        return None
    return Slip(f"there is no '{sign}'", place.tokens[first], place.tokens[last], _SIGNS[sign])


def _empty(place: _Place) -> Slip | None:
    """A part that is missing: `p(x) :- .`, `q(x), .`, `:- q(x).`"""
    if place.word() == "." and place.word(-1) == ":-":
        return Slip("the body is empty", place.token(-1), place.token(), "a fact is written without :-")
    if place.word() == ":-" and place.index == place.start:
        return Slip("the head is empty", place.token(), place.token(), RULE_FORM)
    if place.word(-1) == "," and place.word() in (",", ".", ")", "}", ";"):
        return Slip("nothing stands behind this comma", place.token(-1), place.token(-1), "leave it out, or write what is missing")
    return None


def _head(place: _Place) -> Slip | None:
    """`!p(x) :- …`, `p(x) ; q(x) :- …`."""
    if place.word() == "!" and place.index == place.start:
        return Slip("a head cannot be negated", place.token(), place.token(), "a rule says what holds; what no rule derives does not")
    if place.word() == ";" and place.in_head:
        return Slip("a head has no ;", place.token(), place.token(), "several heads, which all hold, stand with , between them")
    return None


def _open(place: _Place) -> Slip | None:
    """A parenthesis or brace that is open when the statement ends."""
    if place.word() not in (".", ":-"):
        return None
    open_: list[Token] = []
    for token in place.tokens[place.start : place.index]:
        if str(token) in ("(", "{"):
            open_.append(token)
        elif str(token) in (")", "}") and open_:
            open_.pop()
    if not open_:
        return None
    return Slip(f"this {open_[-1]} is not closed", open_[-1], open_[-1], f"close it with {')' if open_[-1] == '(' else '}'}")


def _stop(place: _Place) -> Slip | None:
    """A line that begins a statement, or a literal, where nothing ended the one before it."""
    if place.index <= place.start or place.tokens[place.start].type in DIRECTIVE:
        return None
    before, token = place.token(-1), place.token()
    begins = token.type in DIRECTIVE or (token.type == "NAME" and place.word(1) == "(")
    ends = before.type in ("NAME", "STRING") or before[-1] in ")}" or before[-1].isdigit()
    if not begins or not ends or token.line == before.line:
        return None
    hint = "a full stop or a comma is missing before it"
    return Slip(f"'{token}' cannot stand here, after '{before}'", token, token, hint)


def _form(place: _Place) -> Slip | None:
    """A directive that is written in another way."""
    hint = _FORMS.get(place.tokens[place.start].type)
    if hint is None or place.index == place.start:
        return None
    return Slip(f"'{place.word()}' cannot stand here, after '{place.word(-1)}'", place.token(), place.token(), hint)


_FORMS = {
    "DECL": "a declaration is written .decl name(column: type, column: type)",
    "TYPE": "a type is written .type Name <: symbol, or .type Name = One | Other",
    "IO_DIRECTIVE": "a directive is written .input name, or .input name(option=value, option=value)",
    "KEY": "a key is written .key name(column, column)",
    "AGGREGATE": "an aggregate is written .aggregate name(s: set<number>, r: number), and then its rules",
    "PRAGMA": 'a pragma is written .pragma "name" "value"',
    "PLAN": "a plan is written .plan 0:(2, 1)",
}

_LOOKS: tuple[Callable[[_Place], Slip | None], ...] = (
    _qualifier,
    _untyped,
    _sql,
    _arrow,
    _called_aggregate,
    _negation,
    _word,
    _aggregate,
    _sign,
    _chain,
    _empty,
    _head,
    _open,
    _stop,
    _form,
)


def adjacent(left: Token, right: Token) -> bool:
    """Whether there is nothing between two tokens."""
    return (left.end_line, left.end_column) == (right.line, right.column)


def _joined(left: Token, right: Token) -> bool:
    """Whether two tokens are signs without a blank between them."""
    return adjacent(left, right) and all(not (token[0].isalnum() or token[0] in '_"().,;{}!') for token in (left, right))
