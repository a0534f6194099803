"""Checks that everything a program names is there, once, and used with the right number of arguments."""

from __future__ import annotations

from collections.abc import Collection
from typing import assert_never

from vigilog.core.errors import Findings, counted, did_you_mean
from vigilog.language import syntax
from vigilog.language.conditions import CONDITIONS, check_condition, check_conditions
from vigilog.language.functors import FUNCTORS
from vigilog.language.options import check_options
from vigilog.language.parts import subterms
from vigilog.language.program import Program
from vigilog.language.slips import MEAN

MAX_COLUMNS = 100


def check_names(program: Program, findings: Findings) -> Program:
    """Gives the program without the rules in which something is wrong: the others can be checked further."""
    _check_declarations(program, findings)
    for directive in program.directives:
        _check_directive(program, directive, findings)
    _check_directed_once(program, findings)
    check_conditions(program, findings)
    _check_places(program, findings)
    sound = []
    for rule in program.rules:
        before = len(findings.items)
        _check_rule(program, rule, findings)
        sound += [rule] * (len(findings.items) == before)
    for definition in program.aggregates:
        for rule in definition.rules:
            for arg in rule.heads[0].args:
                _check_term(program, arg, findings)
            _check_body(program, rule.body, findings)
    return program.with_rules(tuple(sound))


def _check_declarations(program: Program, findings: Findings) -> None:
    first: dict[str, syntax.Declaration] = {}
    for declaration in program.declarations:
        name = declaration.relation
        if name in first:
            findings.error(
                "duplicate",
                f"{name} is declared twice",
                declaration.span,
                rule=f"a relation is declared once; {name} is at {first[name].span}",
            )
        first.setdefault(name, declaration)
        if declaration.arity > MAX_COLUMNS:
            findings.error(
                "range", f"{name} has {declaration.arity} columns", declaration.span, rule=f"a relation has at most {MAX_COLUMNS}"
            )
        seen: set[str] = set()
        for attribute in declaration.attributes:
            if attribute.name in seen:
                findings.error("duplicate", f"{name} has two columns named {attribute.name}", attribute.span)
            seen.add(attribute.name)


def _check_directive(program: Program, directive: syntax.Directive, findings: Findings) -> None:
    if directive.kind in ("domain", "table", "function"):
        return  # looked at where calls are
    if directive.kind in CONDITIONS:
        check_options(directive, findings)
        check_condition(program, directive, findings)
        return
    if not _known(program, directive.relation, directive, findings):
        return
    if directive.kind in ("call", "deferred"):
        return
    if directive.kind == "key":
        _check_key(program, directive, findings)
        return
    check_options(directive, findings)


def _check_key(program: Program, directive: syntax.Directive, findings: Findings) -> None:
    columns = program.relations[directive.relation].columns
    for column in dict.fromkeys(name for name, _ in directive.options):
        if column not in columns:
            hint = did_you_mean(column, columns) or f"its columns are {', '.join(columns)}"
            findings.error("key", f"{directive.relation} has no column {column}", directive.span, hint=hint)
    if len(directive.option) < len(directive.options):
        findings.error("duplicate", f"the key of {directive.relation} names a column twice", directive.span)


def _check_directed_once(program: Program, findings: Findings) -> None:
    for kind, what in (("input", "source"), ("key", "key"), ("limitsize", "limit")):
        _check_once(program, kind, what, findings)


def _check_once(program: Program, kind: str, what: str, findings: Findings) -> None:
    first: dict[str, syntax.Directive] = {}
    for directive in program.directed(kind):
        if directive.relation in first:
            rule = f"a relation has one {what}; the first is at {first[directive.relation].span}"
            code = "duplicate" if kind == "limitsize" else kind
            findings.error(code, f"{directive.relation} has two .{kind} directives", directive.span, rule=rule)
        first.setdefault(directive.relation, directive)


def _check_places(program: Program, findings: Findings) -> None:
    """No two results go to one place."""
    first: dict[tuple[str, str], syntax.Directive] = {}
    for directive in program.directed("output"):
        option = directive.option
        format_ = option.get("IO", "file")
        name = option.get("name" if format_ == "table" else "filename", directive.relation)
        key = ("table" if format_ == "table" else "file", name if "filename" in option else f"{name} as {format_}")
        if format_ != "stdout" and key in first:
            findings.error("duplicate", f"{directive.relation} goes to the same place as {first[key].relation}", directive.span)
        first.setdefault(key, directive)


def _check_rule(program: Program, rule: syntax.Rule, findings: Findings) -> None:
    for head in rule.heads:
        _check_atom(program, head, findings)
        for arg in head.args:
            if any(isinstance(term, syntax.Wildcard) for term in subterms(arg)):
                findings.error(
                    "wildcard",
                    "_ cannot stand in a head",
                    arg.span,
                    rule="every value of a derived row must be known",
                    hint="use a variable that the body binds",
                )
            _check_term(program, arg, findings)
    _check_body(program, rule.body, findings)


def _check_body(program: Program, body: tuple[syntax.Literal, ...], findings: Findings) -> None:
    for literal in body:
        match literal:
            case syntax.Atom():
                _check_atom(program, literal, findings)
                for arg in literal.args:
                    if not isinstance(arg, syntax.Wildcard):
                        _check_operand(program, arg, findings)
            case syntax.Negation():
                _check_body(program, (literal.literal,), findings)
            case syntax.Disjunction():
                for branch in literal.branches:
                    _check_body(program, branch, findings)
            case syntax.SetOf():
                for arg in (literal.target, literal.result):
                    _check_operand(program, arg, findings)
                _check_body(program, literal.body, findings)
            case syntax.Builtin():
                least, most = _arity(literal)
                if not least <= len(literal.args) <= most:
                    wanted = f"{least}" if least == most else f"{least} or {most}"
                    findings.error("arity", f"{literal.op} takes {wanted} arguments, not {len(literal.args)}", literal.span)
                for arg in literal.args:
                    _check_operand(program, arg, findings)
            case syntax.Truth():
                pass
            case _:
                assert_never(literal)


def _arity(literal: syntax.Builtin) -> tuple[int, int]:
    """How many arguments a test or an aggregate over a set takes, at least and at most."""
    if literal.definition is not None:
        return len(literal.definition.attributes), len(literal.definition.attributes)
    least = syntax.LIBRARY[literal.op] + 1 if literal.op in syntax.LIBRARY else 2
    return least, least + (literal.op in syntax.LIBRARY and literal.op != "top")


def _check_operand(program: Program, term: syntax.Term, findings: Findings) -> None:
    """A term that is computed: no `_` in it outside an aggregate."""
    for inner in subterms(term):
        if isinstance(inner, syntax.Wildcard):
            findings.error(
                "wildcard",
                "_ has no value to compute with",
                inner.span,
                rule="_ may stand only as an argument of its own in an atom of a body",
                hint="use a variable",
            )
    _check_term(program, term, findings)


def _check_term(program: Program, term: syntax.Term, findings: Findings) -> None:
    for inner in subterms(term):
        match inner:
            case syntax.Functor():
                _check_functor(program, inner, findings)
            case syntax.Aggregate():
                if inner.target is not None:
                    _check_operand(program, inner.target, findings)
                _check_body(program, inner.body, findings)
            case syntax.Variable() | syntax.Wildcard() | syntax.Constant():
                pass
            case _:
                assert_never(inner)


def _check_functor(program: Program, functor: syntax.Functor, findings: Findings) -> None:
    signature = FUNCTORS.get(functor.name)
    if signature is None:
        hint = MEAN if functor.name.lower() in ("avg", "average") else did_you_mean(functor.name, FUNCTORS)
        if functor.name in program.relations:
            hint = f"{functor.name} is a relation: give it a literal of its own"
        findings.error(
            "unknown-functor", f"there is no functor {functor.name}", functor.span, rule="docs/language.md lists the functors", hint=hint
        )
    elif not signature.accepts(len(functor.args)):
        least = len(signature.args)
        wanted = f"{least} or more arguments" if signature.variadic else counted(least, "argument")
        findings.error("arity", f"{functor.name} takes {wanted}, not {len(functor.args)}", functor.span)


def _check_atom(program: Program, atom: syntax.Atom, findings: Findings) -> None:
    if not _known(program, atom.relation, atom, findings):
        return
    declaration = program.relations[atom.relation]
    if len(atom.args) != declaration.arity:
        columns = ", ".join(declaration.columns)
        findings.error(
            "arity",
            f"{atom.relation} has {_columns(declaration.arity)}, but {_columns(len(atom.args))} stand{'s' if len(atom.args) == 1 else ''} here",
            atom.span,
            rule=f"{atom.relation}({columns}) is declared at {declaration.span}",
            hint="use _ for a column you do not need" if len(atom.args) < declaration.arity else "",
        )


def _known(program: Program, name: str, place: syntax.Atom | syntax.Directive, findings: Findings) -> bool:
    if name in program.relations:
        return True
    names: Collection[str] = program.relations
    hint = did_you_mean(name, names) or f"declare it: .decl {name}(…)"
    if name.lower() == "not":
        hint = "negation is written !: !e(x, y)"
    findings.error("unknown-relation", f"there is no relation {name}", place.span, rule="every relation is declared by .decl", hint=hint)
    return False


def _columns(number: int) -> str:
    return counted(number, "column") if number else "no columns"
