"""Builds the syntax tree while the parser reduces: one method for each rule of `grammar.lark`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from threading import Lock
from typing import Any, assert_never

from lark import Token, Transformer, v_args

from vigilog.core.errors import Findings
from vigilog.core.spans import Span
from vigilog.core.values import FLOAT, SYMBOL
from vigilog.language import refused, syntax
from vigilog.language.syntax_errors import SyntaxErrors

MAX_DEPTH = 100
PRECEDENCE = {
    operator: level
    for level, operators in enumerate(("lor", "lxor", "land", "bor", "bxor", "band", "bshl bshr bshru", "+ -", "* / %"))
    for operator in operators.split()
}
_ESCAPES = {**dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True)), '"': '"', "'": "'", "\\": "\\", "?": "?"}
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)


class _Call:
    """`name(args)`: an atom where a literal stands, a functor where a term stands."""

    def __init__(self, name: str, args: tuple[syntax.Term, ...], span: Span) -> None:
        self.name, self.args, self.span = name, args, span


class _Parenthesis:
    """`( body )` that is no single term: a body where a literal stands, a tuple where a term stands and each of its parts is one."""

    def __init__(self, branches: _Branches, span: Span) -> None:
        self.branches, self.span = branches, span

    @property
    def tuple(self) -> bool:
        """Whether it may be a tuple."""
        return len(self.branches) == 1 and all(isinstance(part, syntax.Term | _Call | _Parenthesis) for part in self.branches[0])


_Branches = tuple[tuple[Any, ...], ...]


@v_args(inline=True)
class Builder(SyntaxErrors, Transformer[Token, Any]):
    """Builds nodes while the parser reduces, bottom up, so that nothing here recurses into a deep tree."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = Lock()

    def _begin(self, name: str, findings: Findings) -> list[syntax.Statement]:
        self.file, self.findings = name, findings
        self.depths: dict[int, tuple[object, int]] = {}  # by identity; the node is kept so that no other takes its id
        self.deep_line = 0
        self.statements: list[syntax.Statement] = []
        return self.statements

    # -- declarations and directives

    def declaration(self, keyword: Token, relations: list[Token], attributes: list[syntax.Attribute] | None, *qualifiers: Token) -> None:
        for relation in relations:
            if relation in syntax.TESTS:
                rule = f"{' and '.join(syntax.TESTS)} are words of the language"
                message = f"{relation} is a test of two symbols, so no relation can be called that"
                self.findings.error("reserved", message, self._span(relation), rule=rule, hint="take another name")
            kept = tuple(str(qualifier) for qualifier in qualifiers)
            self.statements.append(syntax.Declaration(str(relation), tuple(attributes or ()), kept, self._span(relation)))

    def names_list(self, *relations: Token) -> list[Token]:
        return list(relations)

    def attributes(self, *attributes: syntax.Attribute) -> list[syntax.Attribute]:
        return list(attributes)

    def attribute(self, name: Token, type_name: Token) -> syntax.Attribute:
        return syntax.Attribute(str(name), str(type_name), span=self._span(name, type_name))

    def set_type(self, name: Token, opening: Token, element: Token, closing: Token) -> Token:
        return self._type_token(f"{name}<{element}>", name, closing)

    def tuple_type(self, *parts: Token) -> Token:
        return self._type_token(f"({', '.join(parts)})", parts[0], parts[-1])

    def _type_token(self, text: str, first: Token, last: Token) -> Token:
        token = Token("NAME", text, line=first.line, column=first.column)
        token.end_line, token.end_column = last.end_line, last.end_column
        return token

    def definition(
        self, keyword: Token, name: Token, attributes: list[syntax.Attribute] | None, _: Token | None, python: Token | None
    ) -> None:
        class_path = "" if python is None else self._unescaped(python)
        self.statements.append(syntax.Definition(str(name), tuple(attributes or ()), class_path, span=self._span(name, python or name)))

    def type_name(self, name: Token, precision: Token | None, scale: Token | None) -> Token:
        if precision is None:
            return name
        assert scale is not None
        end = Token("NAME", f"{name}({precision},{scale})", line=name.line, column=name.column)
        end.end_line, end.end_column = scale.end_line, (scale.end_column or 1) + 1
        return end

    def subtype(self, keyword: Token, name: Token, _: Token, parent: Token) -> None:
        self.statements.append(syntax.TypeDefinition(str(name), (str(parent),), True, self._span(name, parent)))

    def union_type(self, keyword: Token, name: Token, *members: Token) -> None:
        self.statements.append(syntax.TypeDefinition(str(name), tuple(map(str, members)), False, self._span(name, members[-1])))

    def directive(self, keyword: Token, *directed: tuple[Token, list[tuple[str, str]]]) -> None:
        for relation, options in directed:
            self.statements.append(syntax.Directive(str(keyword)[1:], str(relation), tuple(options), self._span(relation)))

    def key(self, keyword: Token, relation: Token, columns: list[Token]) -> None:
        options = tuple((str(column), "") for column in columns)
        self.statements.append(syntax.Directive("key", str(relation), options, self._span(relation, columns[-1])))

    def pragma(self, keyword: Token, key: Token, value: Token | None) -> None:
        words = [keyword, key] if value is None else [keyword, key, value]
        self.statements.append(syntax.Ignored(" ".join(words), self._span(keyword, words[-1])))

    def plan(self, keyword: Token, *orders: str) -> None:
        self.statements.append(syntax.Ignored(f"{keyword} {', '.join(orders)}", self._span(keyword)))

    def order(self, version: Token, *places: Token | None) -> str:
        return f"{version}:({', '.join(place for place in places if place is not None)})"

    def directed(self, relation: Token, options: list[tuple[str, str]] | None) -> tuple[Token, list[tuple[str, str]]]:
        return relation, options or []

    def options(self, *options: tuple[str, str]) -> list[tuple[str, str]]:
        return list(options)

    def option(self, key: Token, field: Token | None, value: str) -> tuple[str, str]:
        return f"{key}{field or ''}", value

    def table(self, keyword: Token, domain: Token, table: Token, columns: list[syntax.Attribute]) -> None:
        options = tuple((column.name, column.type_name) for column in columns)
        self.statements.append(syntax.Directive("table", f"{domain}:{table}", options, self._span(domain, columns[-1])))

    def function(
        self,
        keyword: Token,
        domain: Token,
        name: Token,
        parameters: list[syntax.Attribute] | None,
        _: Token,
        results: list[syntax.Attribute],
    ) -> None:
        options = [*((column.name, column.type_name) for column in parameters or ()), ("->", "")]
        options += [(column.name, column.type_name) for column in results]
        self.statements.append(syntax.Directive("function", f"{domain}:{name}", tuple(options), self._span(domain, results[-1])))

    def option_value(self, value: Token) -> str:
        return self._unescaped(value) if value.type == "STRING" else str(value)

    # -- rules

    def fact(self, heads: tuple[syntax.Atom, ...]) -> None:
        self.statements.append(syntax.Rule(heads, (), self._span(heads[0], heads[-1])))

    def rule(self, heads: tuple[syntax.Atom, ...], body: _Branches) -> None:
        literals = self._conjoined(self._closed(body))
        last = literals[-1] if literals else heads[-1]
        self.statements.append(syntax.Rule(heads, literals, self._span(heads[0], last)))

    def heads(self, *calls: _Call) -> tuple[syntax.Atom, ...]:
        return tuple(syntax.Atom(call.name, call.args, call.span) for call in calls)

    def body(self, *branches: tuple[Any, ...]) -> _Branches:
        return branches

    def conjunction(self, *parts: Any) -> tuple[Any, ...]:
        return parts

    def _closed(self, body: _Branches) -> tuple[tuple[syntax.Literal, ...], ...]:
        """The branches of a body with every part taken for a literal."""
        return tuple(tuple(literal for part in branch for literal in self._literals(part)) for branch in body)

    def _conjoined(self, branches: tuple[tuple[syntax.Literal, ...], ...]) -> tuple[syntax.Literal, ...]:
        """A body as a conjunction: its only branch, or one disjunction."""
        if len(branches) == 1:
            return branches[0]
        flat = [inner for branch in branches for inner in _flattened(branch)]
        whole = syntax.Disjunction(tuple(flat), self._span(flat[0][0], flat[-1][-1]))
        return (self._bounded(whole, [part for branch in flat for part in branch]),)

    def _literals(self, part: Any) -> tuple[syntax.Literal, ...]:
        match part:
            case _Call():
                name, args, span = part.name, part.args, part.span
                return (self._as_deep(syntax.Builtin(name, args, span) if name in syntax.TESTS else syntax.Atom(name, args, span), args),)
            case _Parenthesis():
                return self._conjoined(self._closed(part.branches))
            case syntax.Disjunction(branches=(alone,)):
                return alone
            case _ if isinstance(part, syntax.Literal):
                return (part,)
            case syntax.Constant(value=bool(value), span=span):
                return (syntax.Truth(value, span),)
            case _:
                rule = "a body is made of atoms r(…), their negation !r(…), and comparisons"
                self.findings.error("syntax", "this term stands where a literal should", self._span(part), rule=rule)
                return (syntax.Truth(True, part.span),)

    def negation(self, mark: Token, part: Any) -> Any:
        """Negation moves inwards (De Morgan), so that only atoms and tests are ever negated."""
        literals = tuple(self._negated(literal, self._span(mark, part)) for literal in self._literals(part))
        if len(literals) == 1:
            return literals[0]
        return _Parenthesis(tuple((literal,) for literal in literals), self._span(mark, part))

    def _negated(self, literal: syntax.Literal, span: Span) -> syntax.Literal:
        match literal:
            case syntax.Negation():
                return literal.literal
            case syntax.Truth():
                return syntax.Truth(not literal.value, span)
            case syntax.Builtin() if literal.op in _OPPOSITE:
                return syntax.Builtin(_OPPOSITE[literal.op], literal.args, span)
            case syntax.Disjunction():
                return self._negated_disjunction(literal, span)
            case syntax.SetOf():
                rule = "a setof has no empty groups, so where it does not hold it says nothing"
                hint = "name it as a relation, and negate that"
                self.findings.error("syntax", "a setof cannot be negated", span, rule=rule, hint=hint)
                return syntax.Truth(True, span)
            case syntax.Atom() | syntax.Builtin():
                return syntax.Negation(literal, span)
            case _:
                assert_never(literal)

    def _negated_disjunction(self, literal: syntax.Disjunction, span: Span) -> syntax.Literal:
        """`!(a, b ; c)` is `(!a ; !b), !c`: a conjunction, given as a disjunction of one branch for the caller to open."""
        parts: list[syntax.Literal] = []
        for branch in literal.branches:
            ways = tuple(self._literals(self._negated(part, span)) for part in branch)
            inner = [part for way in ways for part in way]
            parts.extend(ways[0] if len(ways) == 1 else (self._bounded(syntax.Disjunction(ways, span), inner),))
        negated: syntax.Literal = self._bounded(syntax.Disjunction((tuple(parts),), span), parts)
        return negated

    # -- terms

    def comparison(self, left: Any, operator: Token, right: Any) -> syntax.Builtin:
        args = (self._term(left), self._term(right))
        compared: syntax.Builtin = self._as_deep(syntax.Builtin(str(operator), args, self._span(left, right)), args)
        return compared

    def call(self, name: Token, args: tuple[syntax.Term, ...] | None) -> _Call:
        return _Call(str(name), args or (), self._span(name, args[-1] if args else name))

    def field(self, name: Token, field: Token) -> syntax.Term:
        """`row.field`: a variable of its own, until it is known what the row is."""
        return syntax.Variable(f"{name}{field}", span=self._span(name, field))

    def domain_call(self, domain: Token, name: Token, args: tuple[syntax.Term, ...] | None) -> syntax.Term:
        """`d:f(…)`, which only `in` may have."""
        built: syntax.Term = self._bounded(
            syntax.Functor(f"{domain}:{name}", args or (), span=self._span(domain, args[-1] if args else name)), args or ()
        )
        return built

    def operation(self, *parts: Any) -> syntax.Term:
        """`a + b * c …`: operators and operands in turn, joined by precedence, from the left."""
        operands, operators = [parts[0]], list[str]()

        def join() -> None:
            right, left = operands.pop(), operands.pop()
            operands.append(self._functor(operators.pop(), (left, right), self._span(left, right)))

        for operator, operand in zip(parts[1::2], parts[2::2], strict=True):
            while operators and PRECEDENCE[operators[-1]] >= PRECEDENCE[operator]:
                join()
            operators.append(str(operator))
            operands.append(operand)
        while operators:
            join()
        joined: syntax.Term = operands[0]
        return joined

    def power(self, base: Any, operator: Token, exponent: Any) -> syntax.Term:
        return self._functor("^", (base, exponent), self._span(base, exponent))

    def unary(self, operator: Token, operand: Any) -> syntax.Term:
        span = self._span(operator, operand)
        if operator == "-" and isinstance(operand, syntax.Constant) and _negatable(operand):
            return syntax.Constant(-operand.value, span=span)  # type: ignore[operator]  # a number, see _negatable
        return self._functor("neg" if operator == "-" else str(operator), (operand,), span)

    def _functor(self, name: str, args: tuple[Any, ...], span: Span) -> syntax.Term:
        inner = tuple(self._term(arg) for arg in args)
        built: syntax.Term = self._bounded(syntax.Functor(name, inner, span=span), inner)
        return built

    def variable(self, name: Token) -> syntax.Term:
        if str(name) in refused.VARIABLES:
            self._unsupported(refused.VARIABLES[str(name)], name)
        return syntax.Variable(str(name), span=self._span(name))

    def wildcard(self, token: Token) -> syntax.Wildcard:
        return syntax.Wildcard(span=self._span(token))

    def integer(self, token: Token) -> syntax.Constant:
        text = str(token).lower()
        digits = text.rstrip("u")
        base = {"0x": 16, "0b": 2}.get(digits[:2], 10)
        if len(digits) > 64 + 2:
            self.findings.error("range", "this number is too large for every type", self._span(token), rule="numbers have 64 bits")
            return syntax.Constant(0, span=self._span(token))
        return syntax.Constant(int(digits, base), unsigned=text.endswith("u"), span=self._span(token))

    def floating(self, token: Token) -> syntax.Constant:
        exponent = str(token).lower().partition("e")[2]
        if len(exponent.lstrip("+-0")) > 4:
            self.findings.error("range", "this number is too large, or too small, for every type", self._span(token), rule=FLOAT.form)
            return syntax.Constant(Decimal(0), span=self._span(token))
        return syntax.Constant(Decimal(str(token)), span=self._span(token))

    def string(self, token: Token) -> syntax.Constant:
        return syntax.Constant(self._unescaped(token), span=self._span(token))

    def truth(self, token: Token) -> syntax.Constant:
        return syntax.Constant(token.type == "TRUE", span=self._span(token))

    def keyword_call(self, operator: Token, *args: Any) -> _Call:
        return _Call(str(operator), self.arguments(*args), self._span(operator, args[-1]))

    def setof(self, keyword: Token, target: Any, body: Any, result: Any) -> syntax.SetOf:
        term, literals = self._term(target), self._literals(body)
        if any(isinstance(literal, syntax.Negation | syntax.Builtin | syntax.Truth) for literal in literals) and not isinstance(
            body, _Parenthesis
        ):
            rule = "a setof ranges over an atom, over another setof, or over a body in parentheses"
            self.findings.error("syntax", "a setof cannot range over this alone", self._span(body), rule=rule)
        made = syntax.SetOf(term, literals, self._term(result), self._span(keyword, result))
        bounded: syntax.SetOf = self._bounded(made, (term, *literals))
        return bounded

    def count(self, operator: Token, body: tuple[syntax.Literal, ...]) -> syntax.Term:
        built: syntax.Term = self._bounded(syntax.Aggregate("count", None, body, span=self._span(operator, body[-1])), body)
        return built

    def aggregate(self, operator: Token, target: Any, body: tuple[syntax.Literal, ...]) -> syntax.Term:
        inner = self._term(target)
        span = self._span(operator, body[-1])
        built: syntax.Term = self._bounded(syntax.Aggregate(str(operator), inner, body, span=span), (inner, *body))
        return built

    def braces(self, body: Any) -> tuple[syntax.Literal, ...]:
        return self._literals(body) if isinstance(body, _Call) else self._conjoined(self._closed(body))

    def parenthesis(self, body: _Branches) -> Any:
        if len(body) == 1 and len(body[0]) == 1 and isinstance(body[0][0], syntax.Term | _Call | _Parenthesis):
            return body[0][0]
        node = _Parenthesis(body, self._span(body[0][0], body[-1][-1]))
        if node.tuple:
            return self._bounded(node, body[0])  # whether it is one is known only where it stands
        node.branches = self._closed(body)
        return self._as_deep(node, [part for branch in node.branches for part in branch])

    def set_literal(self, brace: Token, args: tuple[syntax.Term, ...] | None) -> syntax.Term:
        return self._functor("{}", args or (), self._span(brace, args[-1] if args else brace))

    def adding(self, element: Any, rest: Any) -> syntax.Term:
        return self._functor("{|}", (element, rest), self._span(element, rest))

    def arguments(self, *args: Any) -> tuple[syntax.Term, ...]:
        return tuple(self._term(arg) for arg in args)

    def _term(self, part: Any) -> syntax.Term:
        match part:
            case _Call():
                if part.name in refused.FUNCTORS:
                    self._unsupported(refused.FUNCTORS[part.name], part)
                built: syntax.Term = self._bounded(syntax.Functor(part.name, part.args, span=part.span), part.args)
                return built
            case _Parenthesis(tuple=True, branches=(parts,)):
                return self._functor("()", parts, part.span)
            case _ if isinstance(part, syntax.Term):
                return part
            case _:
                rule = "terms are variables, constants and what is computed from them"
                self.findings.error("syntax", "this literal stands where a term should", self._span(part), rule=rule)
                return syntax.Wildcard(span=part.span)

    def _as_deep(self, literal: Any, args: Iterable[Any]) -> Any:
        """The literal, known to nest as deep as its arguments do."""
        depth = max((self.depths[id(arg)][1] for arg in args if id(arg) in self.depths), default=0)
        if depth:
            self.depths[id(literal)] = (literal, depth)
        return literal

    def _bounded(self, node: Any, inner: Iterable[Any]) -> Any:
        """The node, with its depth noted; one that nests too deep is refused and cut off."""
        depth = 1 + max((self.depths[id(part)][1] for part in inner if id(part) in self.depths), default=0)
        if depth <= MAX_DEPTH:
            self.depths[id(node)] = (node, depth)
            return node
        if depth == MAX_DEPTH + 1 and self.deep_line != node.span.line:
            self.deep_line = node.span.line
            self.findings.error(
                "nesting",
                f"this nests more than {MAX_DEPTH} levels deep",
                node.span,
                rule=f"terms and parentheses nest at most {MAX_DEPTH} levels",
                hint="name a part of it by a relation or a variable of its own",
            )
        return syntax.Constant(0, span=node.span) if isinstance(node, syntax.Term) else syntax.Truth(True, node.span)

    def _unescaped(self, token: Token) -> str:
        def character(escape: re.Match[str]) -> str:
            body = escape[1]
            if body[0] in "xuU" and len(body) > 1:
                code = int(body[1:], 16)
                if code == 0:
                    self.findings.error("range", "the character U+0000 cannot stand in a symbol", self._span(token), rule=SYMBOL.form)
                    return ""
                if 0 < code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF:
                    return chr(code)
            elif body in _ESCAPES:
                return _ESCAPES[body]
            place = Span(
                self.file,
                token.line or 1,
                (token.column or 1) + 1 + escape.start(),
                token.line or 1,
                (token.column or 1) + 1 + escape.end(),
            )
            escapes = " ".join(f"\\{key}" for key in _ESCAPES)
            self.findings.error("syntax", f"there is no escape {escape[0]}", place, rule=f"escapes are {escapes} \\xHH \\uHHHH \\UHHHHHHHH")
            return ""

        return _ESCAPE.sub(character, str(token)[1:-1])


_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def _flattened(branch: tuple[syntax.Literal, ...]) -> tuple[tuple[syntax.Literal, ...], ...]:
    """`a ; (b ; c)` is `a ; b ; c`."""
    return branch[0].branches if len(branch) == 1 and isinstance(branch[0], syntax.Disjunction) else (branch,)


def _negatable(constant: syntax.Constant) -> bool:
    return (
        isinstance(constant.value, int | Decimal) and not isinstance(constant.value, bool) and not constant.unsigned and constant.value >= 0
    )
