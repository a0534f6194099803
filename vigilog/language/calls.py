"""Calls of domains, before anything is checked: `in(x, d:f(args))` becomes an atom of a relation that holds what was answered, and rows become plain columns.

A call has two relations beside it: what was answered, `d_f(args…, results…)`, which is a base relation, and what is asked for, `m_d_f(args…)`, which rules derive from what stands before the call: all literals that its arguments need, and all
that can be decided then. Calls are taken in the order in which their arguments become known. `.call` says which function answers.

A row `r` has fields `r.name`, which are variables from the beginning; `r = s` and `r != s` compare all fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from vigilog.core.errors import Findings, did_you_mean
from vigilog.core.spans import Span
from vigilog.core.values import BOOLEAN
from vigilog.domains.domain import Domain, DomainError, Signature
from vigilog.domains.opening import located, opened
from vigilog.language import syntax
from vigilog.language.parts import names, subterms, terms, variables
from vigilog.language.printer import show_statement
from vigilog.language.program import Program
from vigilog.language.safety import grounded_by


@dataclass(frozen=True)
class Call:
    """A call in a rule: the function, its fixed arguments, the others, and what its results are matched with."""

    relation: str
    demand: str
    args: tuple[syntax.Term, ...]
    results: tuple[syntax.Term, ...]
    negated: bool
    span: Span

    @property
    def atom(self) -> syntax.Atom:
        return syntax.Atom(self.relation, (*self.args, *self.results), self.span)

    @property
    def literal(self) -> syntax.Literal:
        return syntax.Negation(self.atom, self.span) if self.negated else self.atom


def with_places(program: Program, facts: Path, beside: Path) -> Program:
    """The program whose domains are where they are, wherever the process runs."""
    if not program.directed("domain"):
        return program

    def placed(one: syntax.Directive) -> syntax.Directive:
        return (
            replace(one, options=tuple(located(one.option.get("kind", ""), one.option, facts, beside).items()))
            if one.kind == "domain"
            else one
        )

    return replace(program, directives=tuple(map(placed, program.directives)))


def with_calls(program: Program, findings: Findings) -> Program:
    """The program without calls; as it is, if there are none."""
    program = program.with_rules(tuple(_with_arithmetic(rule) for rule in program.rules))
    if not any(_is_call(term) for rule in program.rules for term in _all_terms(rule)):
        return program
    return _Calls(program, findings).resolved()


ARITHMETIC = {"arith:plus": "+", "arith:minus": "-", "arith:times": "*"}
ORDER = {"arith:great": ">", "arith:greater": ">", "arith:less": "<"}


def _with_arithmetic(rule: syntax.Rule) -> syntax.Rule:
    """The rule in which the built-in domain `arith` is what it says: sums, and numbers greater or less than another, of which there is no end.

    >>> from vigilog.language.parser import parse
    >>> from vigilog.language.printer import show_statement
    >>> show_statement(_with_arithmetic(parse("p(x, y) :- q(x), in(y, arith:plus(x, 1)), in(y, arith:greater(x)).").rules[0]))
    'p(x, y) :- q(x), y = x + 1, y > x.'
    """

    def said(literal: syntax.Literal) -> syntax.Literal:
        match literal:
            case syntax.Atom(relation="in", args=(result, syntax.Functor(name=name, args=(left, right)))) if name in ARITHMETIC:
                return syntax.Builtin("=", (result, syntax.Functor(ARITHMETIC[name], (left, right), span=literal.span)), literal.span)
            case syntax.Atom(relation="in", args=(result, syntax.Functor(name=name, args=(other,)))) if name in ORDER:
                return syntax.Builtin(ORDER[name], (result, other), literal.span)
            case _:
                return literal

    return (
        replace(rule, body=tuple(map(said, rule.body)))
        if any(isinstance(part, syntax.Atom) and part.relation == "in" for part in rule.body)
        else rule
    )


def _all_terms(rule: syntax.Rule) -> Iterator[syntax.Term]:
    for term in terms(rule):
        yield from subterms(term, into_aggregates=True)


def _is_call(term: syntax.Term) -> bool:
    return isinstance(term, syntax.Functor) and ":" in term.name


class _Calls:
    def __init__(self, program: Program, findings: Findings) -> None:
        self.program, self.findings = program, findings
        self.taken = set(program.relations)
        self.declared: dict[tuple[str, ...], Call] = {}
        self.declarations: list[syntax.Declaration] = []
        self.directives: list[syntax.Directive] = []
        self.rules: list[syntax.Rule] = []
        self.domains: dict[str, Domain] = {}

    def resolved(self) -> Program:
        for rule in self.program.rules:
            try:
                self.rules.append(self._deferred(rule) if rule.heads[0].relation in self.program.deferred else self._rule(rule))
            except DomainError as reason:
                self.findings.error("domain", reason.message, rule.span)
        return replace(
            self.program,
            declarations=(*self.program.declarations, *self.declarations),
            directives=(*self.program.directives, *self.directives),
            rules=tuple(self.rules),
        )

    # -- a rule

    def _rule(self, rule: syntax.Rule) -> syntax.Rule:
        rows: dict[str, tuple[str, ...]] = {}  # variables that stand for rows, with their fields
        for literal in rule.body:
            match literal:
                case syntax.Atom(relation="in", args=(syntax.Variable(name=name), syntax.Functor() as call)) if _is_call(call):
                    signature = self._signature(call)[2]
                    if signature.row:
                        rows[name] = tuple(field for field, _ in signature.results)
                case _:
                    pass
        self._check_fields(rule, rows)
        body = tuple(part for literal in rule.body for part in self._compared(literal, rows))
        mentioned = {variable.name for part in (*body, *rule.heads) for variable in variables(part, into_aggregates=True)}
        calls: dict[int, Call] = {}
        for index, literal in enumerate(body):
            match literal:
                case syntax.Atom(relation="in", args=(result, syntax.Functor() as call)) if _is_call(call):
                    calls[index] = self._call(call, result, mentioned, negated=False)
                case syntax.Negation(literal=syntax.Atom(relation="in", args=(result, syntax.Functor() as call))) if _is_call(call):
                    calls[index] = self._call(call, result, mentioned, negated=True)
                case _ if any(_is_call(inner) for term in terms(literal) for inner in subterms(term, into_aggregates=True)):
                    hint = "name the part with the call as a relation of its own"
                    message = "a call stands in in(x, d:f(…)) or !in(x, d:f(…)), by itself in a rule"
                    self.findings.error("unsupported", message, literal.span, hint=hint)
                case _:
                    pass
        self._demand(rule, body, calls)
        return replace(rule, body=tuple(calls[index].literal if index in calls else literal for index, literal in enumerate(body)))

    def _check_fields(self, rule: syntax.Rule, rows: dict[str, tuple[str, ...]]) -> None:
        for variable in variables(rule, into_aggregates=True):
            row, dot, field = variable.name.partition(".")
            if dot and row not in rows:
                self.findings.error("unknown-field", f"{row} is no row of a call, so it has no field {field}", variable.span)
            elif dot and field not in rows[row]:
                hint = did_you_mean(field, rows[row]) or f"its fields are {', '.join(rows[row])}"
                self.findings.error("unknown-field", f"{row} has no field {field}", variable.span, hint=hint)

    def _compared(self, literal: syntax.Literal, rows: dict[str, tuple[str, ...]]) -> tuple[syntax.Literal, ...]:
        """A comparison of two rows, field by field."""
        match literal:
            case syntax.Builtin(op="=" | "!=", args=(syntax.Variable(name=one), syntax.Variable(name=two))) if one in rows and two in rows:
                pairs = [
                    syntax.Builtin(
                        literal.op,
                        (syntax.Variable(f"{one}.{field}", span=literal.span), syntax.Variable(f"{two}.{field}", span=literal.span)),
                        literal.span,
                    )
                    for field in rows[one]
                    if field in rows[two]
                ]
                if literal.op == "=" or len(pairs) == 1:
                    return tuple(pairs)
                return (syntax.Disjunction(tuple((pair,) for pair in pairs), literal.span),)
            case _:
                return (literal,)

    def _deferred(self, rule: syntax.Rule) -> syntax.Rule:
        """A rule whose calls are made when its relation is asked for (W_P): what stands beside them is a relation of its own, and is kept; the rest is remembered as a rule over it."""
        beside = tuple(part for part in rule.body if not any(_is_call(inner) for term in terms(part) for inner in subterms(term)))
        known = grounded_by(beside, set(), names(rule))
        kept = tuple(part for part in beside if isinstance(part, syntax.Atom) or _decided(part, known, names(rule)))
        rest = tuple(part for part in rule.body if not isinstance(part, syntax.Atom) or part not in kept)
        wanted = names(rule.heads[0]).union(*map(names, rest))
        columns: dict[str, str] = {}  # the variables of atoms that the rest needs, with their types
        for part in kept:
            if isinstance(part, syntax.Atom) and part.relation in self.program.relations:
                for arg, attribute in zip(part.args, self.program.relations[part.relation].attributes, strict=False):
                    if isinstance(arg, syntax.Variable) and arg.name in wanted:
                        columns.setdefault(arg.name, attribute.type_name)
        shared = tuple(syntax.Variable(name, span=rule.span) for name in columns)
        atoms = self._free(f"{rule.heads[0].relation}_atoms")
        self.declarations.append(
            syntax.Declaration(
                atoms, tuple(syntax.Attribute(name, type_, span=rule.span) for name, type_ in columns.items()), (), rule.span
            )
        )
        whole = replace(rule, body=(syntax.Atom(atoms, shared, rule.span), *rest))
        self.directives.append(
            syntax.Directive("deferred", rule.heads[0].relation, (("atoms", atoms), ("rule", show_statement(whole))), rule.span)
        )
        return replace(rule, heads=(syntax.Atom(atoms, shared, rule.span),), body=kept)

    # -- a call

    def _domain(self, name: str) -> Domain:
        if name not in self.domains:
            said = {directive.relation: directive for directive in self.program.directed("domain")}
            if name not in said:
                hint = did_you_mean(name, said) or "state it: .domain name(kind=…)"
                raise DomainError(name, f"there is no such domain ({hint})")
            prefix = f"{name}:"
            stated = {
                directive.relation.removeprefix(prefix): directive.options
                for directive in self.program.directives
                if directive.kind in ("table", "function") and directive.relation.startswith(prefix)
            }
            self.domains[name] = opened(name, said[name].option, stated)
        return self.domains[name]

    def _signature(self, call: syntax.Functor) -> tuple[str, tuple[str, ...], Signature]:
        """The function of a call, its fixed arguments, and what it takes and gives."""
        name, _, function = call.name.partition(":")
        domain = self._domain(name)
        number = domain.fixed(function)
        fixed = call.args[:number]
        if len(fixed) < number or not all(isinstance(arg, syntax.Constant) and isinstance(arg.value, str) for arg in fixed):
            raise DomainError(name, f"{function} takes {number} texts first, which the program states")
        texts = tuple(str(arg.value) for arg in fixed if isinstance(arg, syntax.Constant))
        signature = domain.signature(function, texts)
        if len(call.args) - number != len(signature.parameters):
            wanted = ", ".join([*(repr(text) for text in texts), *(f"{column}: {type_}" for column, type_ in signature.parameters)])
            raise DomainError(name, f"{function} takes {wanted or 'nothing'}, and {len(call.args)} arguments stand here")
        return function, texts, signature

    def _call(self, call: syntax.Functor, result: syntax.Term, mentioned: set[str], *, negated: bool) -> Call:
        function, fixed, signature = self._signature(call)
        known = self._declared(call.name.partition(":")[0], function, fixed, signature, call.span)
        args = call.args[len(fixed) :]
        results: tuple[syntax.Term, ...]
        if isinstance(result, syntax.Wildcard):
            results = tuple(syntax.Wildcard(span=call.span) for _ in signature.results)
        elif signature.row:
            if not isinstance(result, syntax.Variable) or negated:
                raise DomainError(call.name.partition(":")[0], f"{function} gives rows, which in(x, …) names by a variable")
            fields = (f"{result.name}.{field}" for field, _ in signature.results)
            results = tuple(
                syntax.Variable(field, span=call.span) if field in mentioned else syntax.Wildcard(span=call.span) for field in fields
            )
        else:
            truth = signature.results[0][1] == BOOLEAN and isinstance(result, syntax.Constant) and result.value in (0, 1)
            results = (
                (syntax.Constant(bool(result.value), span=result.span),) if truth and isinstance(result, syntax.Constant) else (result,)
            )
        return replace(known, args=args, results=results, negated=negated, span=call.span)

    def _declared(self, domain: str, function: str, fixed: tuple[str, ...], signature: Signature, span: Span) -> Call:
        key = (domain, function, *fixed)
        if key not in self.declared:
            stem = "_".join("".join(character if character.isalnum() else "_" for character in part) for part in key)
            relation, demand, asked = self._free(stem), self._free(f"m_{stem}"), self._free(f"{stem}_asked")
            taken = tuple(syntax.Attribute(f"of_{column}", str(type_), span=span) for column, type_ in signature.parameters)
            given = tuple(syntax.Attribute(column, str(type_), span=span) for column, type_ in signature.results)
            self.declarations += [
                syntax.Declaration(relation, (*taken, *given), (), span),
                syntax.Declaration(demand, taken, (), span),
                syntax.Declaration(asked, taken, (), span),
            ]
            said = [("domain", domain), ("function", function), ("demand", demand), ("asked", asked)]
            said += [(f"fixed{number}", text) for number, text in enumerate(fixed)]
            self.directives.append(syntax.Directive("call", relation, tuple(said), span))
            self.declared[key] = Call(relation, demand, (), (), False, span)
        return self.declared[key]

    def _free(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    # -- what is asked for

    def _demand(self, rule: syntax.Rule, body: tuple[syntax.Literal, ...], calls: dict[int, Call]) -> None:
        """A rule for each call: its arguments, where everything holds that stands before it."""
        scope = names(rule).union(*map(names, body))
        placed: list[syntax.Literal] = [literal for index, literal in enumerate(body) if index not in calls]
        waiting = dict(calls)
        while waiting:
            known = grounded_by(tuple(placed), set(), scope)
            ready = next((index for index, call in waiting.items() if set().union(*map(names, call.args)) <= known), None)
            if ready is None:
                call = next(iter(waiting.values()))
                missing = ", ".join(sorted(set[str]().union(*map(names, call.args)) - known))
                rule_ = f"a call is asked with values; {call.relation} needs all of its arguments"
                self.findings.error(
                    "ungrounded",
                    f"{missing} has no values to ask with",
                    call.span,
                    rule=rule_,
                    hint=f"bind {missing} by an atom, or by another call",
                )
                return
            call = waiting.pop(ready)
            before = tuple(literal for literal in placed if _decided(literal, known, scope))
            self.rules.append(syntax.Rule((syntax.Atom(call.demand, call.args, call.span),), before, rule.span, rule))
            placed.append(call.literal)


def _decided(literal: syntax.Literal, known: set[str], scope: set[str]) -> bool:
    """Whether a literal binds, or concerns known variables only."""
    match literal:
        case syntax.Atom():
            return True
        case _:
            inside = {variable.name for variable in variables(literal, into_aggregates=True)} & scope
            return inside <= known
