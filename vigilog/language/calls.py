"""Calls of domains, before anything is checked: `in(x, d:f(args))` becomes an atom of a relation that holds what was answered, and rows become plain columns.

A call has two relations beside it: what was answered, `d_f(args…, results…)`, which is a base relation, and what is asked for, `m_d_f(args…)`, which rules derive from what stands before the call: all literals that its arguments need, and all
that can be decided then. Calls are taken in the order in which their arguments become known. `.call` says which function answers.

A row `r` has fields `r.name`, which are variables from the beginning; `r = s` and `r != s` compare all fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import assert_never

from vigilog.core.errors import Findings, did_you_mean
from vigilog.core.spans import Span
from vigilog.core.values import BOOLEAN
from vigilog.domains.domain import Domain, DomainError, Signature
from vigilog.domains.opening import located, opened
from vigilog.language import syntax
from vigilog.language.parts import aggregates, map_terms, names, subterms, terms, variables
from vigilog.language.printer import show_statement, show_term
from vigilog.language.program import Program
from vigilog.language.safety import grounded_by
from vigilog.language.strata import dependencies


@dataclass(frozen=True)
class Call:
    """A call in a rule: the function with its fixed arguments, the others, and what its results are matched with."""

    key: tuple[str, ...]
    relation: str
    demand: str
    args: tuple[syntax.Term, ...]
    results: tuple[syntax.Term, ...]
    negated: bool
    span: Span
    equal: tuple[syntax.Builtin, ...] = ()  # what is said of its results besides

    @property
    def wants(self) -> set[str]:
        """The variables that it is asked with."""
        return set[str]().union(*map(names, self.args))

    @property
    def atom(self) -> syntax.Atom:
        return syntax.Atom(self.relation, (*self.args, *self.results), self.span)

    @property
    def literal(self) -> syntax.Literal:
        return syntax.Negation(self.atom, self.span) if self.negated else self.atom

    @property
    def literals(self) -> tuple[syntax.Literal, ...]:
        return (self.literal, *self.equal)


@dataclass(frozen=True)
class Inside:
    """A literal with calls inside its aggregates; `bodies` are those of these aggregates, with their calls."""

    literal: syntax.Literal
    bodies: tuple[tuple[tuple[syntax.Literal, ...], Calls], ...]
    wants: set[str]

    @property
    def literals(self) -> tuple[syntax.Literal, ...]:
        return (self.literal,)


Calls = dict[int, "Call | Inside"]  # by their places in a body


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
    if any(is_call(term) for rule in program.rules for term in all_terms(rule)):
        program = _Calls(program, findings).resolved()
    return without_idle_calls(program)


def without_idle_calls(program: Program) -> Program:
    """The program without calls that no rule has any more: those of rules that were replaced."""
    while True:
        read = {atom.relation for rule in program.rules for atom, _ in dependencies(rule)}
        idle = [directive for directive in program.directed("call") if directive.relation not in read]
        if not idle:
            return program
        gone = {name for directive in idle for name in (directive.relation, directive.option.get("demand"), directive.option.get("asked"))}
        program = replace(
            program,
            declarations=tuple(one for one in program.declarations if one.relation not in gone),
            directives=tuple(one for one in program.directives if one.kind != "call" or one.relation not in gone),
            rules=tuple(rule for rule in program.rules if rule.heads[0].relation not in gone),
        )


ARITHMETIC = {"arith:plus": "+", "arith:minus": "-", "arith:times": "*"}
ORDER = {"arith:great": ">", "arith:greater": ">", "arith:less": "<"}


def _with_arithmetic(rule: syntax.Rule) -> syntax.Rule:
    """The rule in which the built-in domain `arith` is what it says: sums, and numbers greater or less than another, of which there is no end.

    >>> from vigilog.language.parser import parse
    >>> from vigilog.language.printer import show_statement, show_term
    >>> show_statement(_with_arithmetic(parse("p(x, y) :- q(x), in(y, arith:plus(x, 1)), in(y, arith:greater(x)).").rules[0]))
    'p(x, y) :- q(x), y = x + 1, y > x.'
    """

    def translated(literal: syntax.Literal) -> syntax.Literal:
        match literal:
            case syntax.Atom(relation="in", args=(result, syntax.Functor(name=name, args=(left, right)))) if name in ARITHMETIC:
                return syntax.Builtin("=", (result, syntax.Functor(ARITHMETIC[name], (left, right), span=literal.span)), literal.span)
            case syntax.Atom(relation="in", args=(result, syntax.Functor(name=name, args=(other,)))) if name in ORDER:
                return syntax.Builtin(ORDER[name], (result, other), literal.span)
            case syntax.Negation():
                inner = translated(literal.literal)
                assert isinstance(inner, syntax.Atom | syntax.Builtin), "it stays what can be negated"
                return replace(literal, literal=inner)
            case syntax.Disjunction():
                return replace(literal, branches=tuple(tuple(map(translated, branch)) for branch in literal.branches))
            case syntax.Atom() | syntax.Builtin() | syntax.Truth() | syntax.SetOf():
                return map_terms(literal, inside)
            case _:
                assert_never(literal)

    def inside(term: syntax.Term) -> syntax.Term:
        match term:
            case syntax.Aggregate():
                return replace(term, body=tuple(map(translated, term.body)))
            case syntax.Functor():
                return replace(term, args=tuple(map(inside, term.args)))
            case syntax.Variable() | syntax.Wildcard() | syntax.Constant():
                return term
            case _:
                assert_never(term)

    if not any(map(is_arithmetic, all_terms(rule))):
        return rule
    return replace(rule, body=tuple(map(translated, rule.body)))


def all_terms(rule: syntax.Rule) -> Iterator[syntax.Term]:
    for term in terms(rule):
        yield from subterms(term, into_aggregates=True)


def is_arithmetic(term: syntax.Term) -> bool:
    return isinstance(term, syntax.Functor) and (term.name in ARITHMETIC or term.name in ORDER)


def is_call(term: syntax.Term) -> bool:
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
        self.counted: set[str] = set()  # relations of calls inside aggregates, which count all that differs
        self.answered: dict[str, tuple[str, ...]] = {}  # the results of calls that rules have which were checked before
        for directive in program.directed("call"):
            option = directive.option
            if not {directive.relation, option.get("asked"), option.get("demand")} <= program.relations.keys():
                continue
            columns = program.relations[directive.relation].columns
            fixed = (option[f"fixed{number}"] for number in range(len(option)) if f"fixed{number}" in option)
            key = (option["domain"], option["function"], *fixed)
            self.declared[key] = Call(key, directive.relation, option["demand"], (), (), False, directive.span)
            self.answered[directive.relation] = columns[program.relations[option["asked"]].arity :]

    def resolved(self) -> Program:
        for rule in [branch for whole in self.program.rules for branch in _branches(whole)]:
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
        rows = self._rows(rule)
        self._check_fields(rule, rows)
        heads = set[str]().union(*map(names, rule.heads))
        body, calls = self._taken(rule.body, rows, heads)
        self._demand(rule, body, calls, ())
        plain = replace(rule, body=_substituted(body, calls), origin=rule.source if calls else rule.origin)
        for variable in variables(plain, into_aggregates=True):
            if variable.name in rows:
                hint = f"name its fields, like {variable.name}.{rows[variable.name][0]}"
                self.findings.error(
                    "unsupported", f"{variable.name} is a row of a call, and no relation holds one", variable.span, hint=hint
                )
                break
        return plain

    def _rows(self, rule: syntax.Rule) -> dict[str, tuple[str, ...]]:
        """The variables that stand for rows, with their fields."""
        rows: dict[str, tuple[str, ...]] = {}
        for literal in _all_literals(rule.body):
            match literal:
                case syntax.Atom(relation="in", args=(syntax.Variable(name=name), syntax.Functor() as call)) if is_call(call):
                    signature = self._function(call)[2]
                    if signature.row:
                        rows[name] = tuple(field for field, _ in signature.results)
                case syntax.Atom() if literal.relation in self.answered:
                    for arg in literal.args:
                        if isinstance(arg, syntax.Variable) and "." in arg.name:
                            rows[arg.name.partition(".")[0]] = self.answered[literal.relation]
                case _:
                    pass
        self._add_same(rule, rows)
        return rows

    def _taken(
        self, body: tuple[syntax.Literal, ...], rows: dict[str, tuple[str, ...]], outside: set[str]
    ) -> tuple[tuple[syntax.Literal, ...], Calls]:
        """A body without rows, and its calls. `outside` are names that stand elsewhere, too."""
        flat = tuple(self._spread(part, rows) for literal in body for part in self._compared(literal, rows))
        mentioned = outside.union(*(names(part, into_aggregates=True) for part in flat))
        calls: Calls = {}
        for index, literal in enumerate(flat):
            match literal:
                case syntax.Atom(relation="in", args=(result, syntax.Functor() as call)) if is_call(call):
                    calls[index] = self._call(call, result, mentioned, negated=False)
                case syntax.Negation(literal=syntax.Atom(relation="in", args=(result, syntax.Functor() as call))) if is_call(call):
                    calls[index] = self._call(call, result, mentioned, negated=True)
                case syntax.Atom() | syntax.Builtin() if any(_has_calls(part.body) for part in aggregates(literal)):
                    calls[index] = self._inside(literal, rows, mentioned)
                case _ if _has_calls((literal,)):
                    hint = "name the part with the call as a relation of its own"
                    message = "a call stands in in(x, d:f(…)) or !in(x, d:f(…)), in a rule or an aggregate"
                    self.findings.error("unsupported", message, literal.span, hint=hint)
                case syntax.Atom() | syntax.Negation() | syntax.Builtin() | syntax.Truth() | syntax.Disjunction() | syntax.SetOf():
                    pass
                case _:
                    assert_never(literal)
        return flat, calls

    def _inside(self, literal: syntax.Literal, rows: dict[str, tuple[str, ...]], mentioned: set[str]) -> Inside:
        """A literal whose aggregates have calls."""
        bodies: list[tuple[tuple[syntax.Literal, ...], Calls]] = []
        wants: set[str] = set()

        def taken(term: syntax.Term) -> syntax.Term:
            match term:
                case syntax.Aggregate() if _has_calls(term.body):
                    target = names(term.target) if term.target is not None else set[str]()
                    body, calls = self._taken(term.body, rows, mentioned | target)
                    self.counted |= {call.relation for call in calls.values() if isinstance(call, Call)}
                    bodies.append((body, calls))
                    wants.update(*(call.wants for call in calls.values()))
                    return replace(term, body=_substituted(body, calls))
                case syntax.Functor():
                    return replace(term, args=tuple(map(taken, term.args)))
                case syntax.Variable() | syntax.Wildcard() | syntax.Constant() | syntax.Aggregate():
                    return term
                case _:
                    assert_never(term)

        substituted = map_terms(literal, taken)
        return Inside(substituted, tuple(bodies), wants)

    def _add_same(self, rule: syntax.Rule, rows: dict[str, tuple[str, ...]]) -> None:
        """What equals a row is one."""
        equal = [literal.args for literal in rule.body if isinstance(literal, syntax.Builtin) and literal.op == "="]
        pairs = [(one.name, two.name) for one, two in equal if isinstance(one, syntax.Variable) and isinstance(two, syntax.Variable)]
        more = True
        while more:
            new = {two: rows[one] for pair in pairs for one, two in (pair, pair[::-1]) if one in rows and two not in rows}
            rows |= new
            more = bool(new)

    def _check_fields(self, rule: syntax.Rule, rows: dict[str, tuple[str, ...]]) -> None:
        for variable in variables(rule, into_aggregates=True):
            row, dot, field = variable.name.partition(".")
            if dot and row not in rows:
                self.findings.error("unknown-field", f"{row} is no row of a call, so it has no field {field}", variable.span)
            elif dot and field not in rows[row]:
                hint = did_you_mean(field, rows[row]) or f"its fields are {', '.join(rows[row])}"
                self.findings.error("unknown-field", f"{row} has no field {field}", variable.span, hint=hint)

    def _spread(self, literal: syntax.Literal, rows: dict[str, tuple[str, ...]]) -> syntax.Literal:
        """A call whose arguments are single values: in the place of each row that it takes stand that row's fields."""
        match literal:
            case syntax.Atom(relation="in", args=(result, syntax.Functor() as call)) if is_call(call):
                return replace(literal, args=(result, replace(call, args=self._flat(call, rows))))
            case syntax.Negation(literal=syntax.Atom(relation="in", args=(_, syntax.Functor() as call)) as atom) if is_call(call):
                flat = self._spread(atom, rows)
                assert isinstance(flat, syntax.Atom), "it stays what it is"
                return replace(literal, literal=flat)
            case syntax.Atom() | syntax.Negation() | syntax.Builtin() | syntax.Truth() | syntax.Disjunction() | syntax.SetOf():
                return literal
            case _:
                assert_never(literal)

    def _flat(self, call: syntax.Functor, rows: dict[str, tuple[str, ...]]) -> tuple[syntax.Term, ...]:
        domain = call.name.partition(":")[0]
        function, fixed, signature = self._function(call)
        given = call.args[len(fixed) :]
        if len(given) != len(signature.arguments):
            wanted = ", ".join([*(repr(text) for text in fixed), *(f"{column}: {type_}" for column, type_ in signature.parameters)])
            raise DomainError(domain, f"{function} takes {wanted or 'nothing'}, and {len(call.args)} arguments stand here")
        args = list(call.args[: len(fixed)])
        for arg, fields in zip(given, signature.arguments, strict=True):
            row = rows.get(arg.name) if isinstance(arg, syntax.Variable) else None
            if fields is None:
                if row is not None:
                    hint = f"name a field, like {show_term(arg)}.{row[0]}"
                    raise DomainError(domain, f"{function} takes a single value, and {show_term(arg)} is a row ({hint})")
                args.append(arg)
                continue
            missing = [field for field in fields if row is None or field not in row]
            if missing or not isinstance(arg, syntax.Variable):
                raise DomainError(domain, f"{function} takes a row with {', '.join(fields)}, and {show_term(arg)} has no {missing[0]}")
            args += [syntax.Variable(f"{arg.name}.{field}", span=arg.span) for field in fields]
        return tuple(args)

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
        beside = tuple(part for part in rule.body if not _has_calls((part,)))
        grounded = grounded_by(beside, set(), names(rule))
        kept = tuple(part for part in beside if isinstance(part, syntax.Atom) or _decided(part, grounded, names(rule)))
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
            directives = {directive.relation: directive for directive in self.program.directed("domain")}
            if name not in directives:
                hint = did_you_mean(name, directives) or "state it: .domain name(kind=…)"
                raise DomainError(name, f"there is no such domain ({hint})")
            prefix = f"{name}:"
            stated = {
                directive.relation.removeprefix(prefix): directive.options
                for directive in self.program.directives
                if directive.kind in ("table", "function") and directive.relation.startswith(prefix)
            }
            self.domains[name] = opened(name, directives[name].option, stated)
        return self.domains[name]

    def _function(self, call: syntax.Functor) -> tuple[str, tuple[str, ...], Signature]:
        """The function of a call, its fixed arguments, and what it takes and gives."""
        name, _, function = call.name.partition(":")
        if name == "arith":
            there = [qualified.partition(":")[2] for qualified in (*ARITHMETIC, *ORDER)]
            if function in there:
                wanted = "two numbers" if call.name in ARITHMETIC else "one number"
                raise DomainError(name, f"{function} takes {wanted}, and {len(call.args)} arguments stand here")
            hint = did_you_mean(function, there) or f"there are {', '.join(there)}"
            raise DomainError(name, f"there is no function {function} ({hint})")
        domain = self._domain(name)
        number = domain.fixed(function)
        fixed = call.args[:number]
        if len(fixed) < number or not all(isinstance(arg, syntax.Constant) and isinstance(arg.value, str) for arg in fixed):
            raise DomainError(name, f"{function} takes {'a text' if number == 1 else 'two texts'} first, which the program states")
        texts = tuple(str(arg.value) for arg in fixed if isinstance(arg, syntax.Constant))
        signature = domain.signature(function, texts)
        return function, texts, signature

    def _call(self, call: syntax.Functor, result: syntax.Term, mentioned: set[str], *, negated: bool) -> Call:
        function, fixed, signature = self._function(call)
        declared = self._declared(call.name.partition(":")[0], function, fixed, signature, call.span)
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
        return replace(declared, args=args, results=results, negated=negated, span=call.span)

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
            options = [("domain", domain), ("function", function), ("demand", demand), ("asked", asked)]
            options += [(f"fixed{number}", text) for number, text in enumerate(fixed)]
            self.directives.append(syntax.Directive("call", relation, tuple(options), span))
            self.declared[key] = Call(key, relation, demand, (), (), False, span)
        return self.declared[key]

    def _free(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    # -- what is asked for

    def _demand(self, rule: syntax.Rule, body: tuple[syntax.Literal, ...], calls: Calls, prefix: tuple[syntax.Literal, ...]) -> None:
        """A rule for each call: its arguments, where everything holds that stands before it. `prefix` holds outside of the body."""
        scope = names(rule).union(*(names(part) for part in (*prefix, *body)))
        placed = [*prefix, *(literal for index, literal in enumerate(body) if index not in calls)]
        waiting = dict(calls)
        while waiting:
            grounded = grounded_by(tuple(placed), set(), scope)
            ready = next((index for index, call in waiting.items() if call.wants & self._bound(call, scope) <= grounded), None)
            if ready is None:
                ready = next((index for index, call in waiting.items() if isinstance(call, Call) and self._enumerated(call)), None)
                if ready is None:
                    self._unasked(next(iter(waiting.values())), grounded, scope)
                    return
                enumerated = self._enumerated(calls[ready])
                assert enumerated is not None, "it was just looked for"
                calls[ready] = waiting[ready] = enumerated
            call = waiting.pop(ready)
            before = tuple(literal for literal in placed if _decided(literal, grounded, scope))
            if isinstance(call, Call):
                self.rules.append(syntax.Rule((syntax.Atom(call.demand, call.args, call.span),), before, rule.span, rule))
            else:
                for inner, own in call.bodies:
                    self._demand(rule, inner, own, before)
            placed += call.literals

    def _bound(self, call: Call | Inside, scope: set[str]) -> set[str]:
        """The variables among those that a call is asked with that are bound outside of its aggregate, if it stands in one."""
        return call.wants if isinstance(call, Call) else scope

    def _unasked(self, call: Call | Inside, grounded: set[str], scope: set[str]) -> None:
        missing = ", ".join(sorted(call.wants & self._bound(call, scope) - grounded))
        self.findings.error(
            "ungrounded",
            f"{missing} has no values to ask with",
            call.literal.span,
            rule=f"a call is asked with values, all of {self._pattern(call) if isinstance(call, Call) else 'its arguments'}",
            hint=f"bind {missing} by an atom, or by another call",
        )

    def _pattern(self, call: Call) -> str:
        """How a function is asked."""
        domain, function, *fixed = call.key
        columns = [f"{column}: {type_}" for column, type_ in self._domain(domain).signature(function, fixed).parameters]
        return f"{domain}:{function}({', '.join([*(json.dumps(text) for text in fixed), *columns])})"

    def _enumerated(self, call: Call | Inside) -> Call | None:
        """The rows of a table with a value that nothing binds: all rows, of which it is that value. None of what has no end."""
        if not isinstance(call, Call) or call.negated or call.key[1] != "select_eq" or self._kind(call.key[0]) not in ("file", "sql"):
            return None
        name, _, table, column = call.key
        signature = self._domain(name).signature("all", (table,))
        declared = self._declared(name, "all", (table,), signature, call.span)
        place = [field for field, _ in signature.results].index(column)
        value, given = call.args[0], call.results[place]
        if isinstance(given, syntax.Wildcard):
            return replace(declared, results=(*call.results[:place], value, *call.results[place + 1 :]), span=call.span)
        return replace(declared, results=call.results, span=call.span, equal=(syntax.Builtin("=", (given, value), call.span),))

    def _kind(self, domain: str) -> str:
        return next(one.option.get("kind", "") for one in self.program.directed("domain") if one.relation == domain)


def _has_calls(literals: tuple[syntax.Literal, ...]) -> bool:
    return any(is_call(inner) for literal in literals for term in terms(literal) for inner in subterms(term, into_aggregates=True))


def _all_literals(body: tuple[syntax.Literal, ...]) -> Iterator[syntax.Literal]:
    """The literals of a body and of its aggregates."""
    for literal in body:
        yield literal
        for aggregate in aggregates(literal):
            yield from _all_literals(aggregate.body)


def _substituted(body: tuple[syntax.Literal, ...], calls: Calls) -> tuple[syntax.Literal, ...]:
    """The body with what was made of its calls."""
    return tuple(part for index, literal in enumerate(body) for part in (calls[index].literals if index in calls else (literal,)))


def _branches(rule: syntax.Rule) -> Iterator[syntax.Rule]:
    """A rule for each branch of a disjunction in which a call stands.

    >>> from vigilog.language.parser import parse
    >>> [show_statement(one) for one in _branches(parse("p(x) :- q(x), (r(x) ; in(x, d:f(1))).").rules[0])]
    ['p(x) :- q(x), r(x).', 'p(x) :- q(x), in(x, d:f(1)).']
    """
    for index, literal in enumerate(rule.body):
        if isinstance(literal, syntax.Disjunction) and _has_calls((literal,)):
            for branch in literal.branches:
                yield from _branches(replace(rule, body=(*rule.body[:index], *branch, *rule.body[index + 1 :])))
            return
    yield rule


def _decided(literal: syntax.Literal, grounded: set[str], scope: set[str]) -> bool:
    """Whether a literal binds, or concerns known variables only."""
    match literal:
        case syntax.Atom():
            return True
        case _:
            inside = {variable.name for variable in variables(literal, into_aggregates=True)} & scope
            return inside <= grounded
