"""Shows what becomes of a program: its plain rules, its strata, its SQL."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from vigilog.language.printer import show, show_statement
from vigilog.language.program import Program
from vigilog.language.strata import components
from vigilog.language.syntax import Atom, Rule
from vigilog.planning.dialect import Dialect
from vigilog.planning.layout import Layout
from vigilog.planning.select import Choice, select


def explain_rules(program: Program) -> str:
    """The plain program, which parses again."""
    return show(program)


def explain_strata(program: Program) -> str:
    """The plain program in the order of its evaluation, one stratum after the other; it parses again."""
    parts = [show(replace(program, rules=()))]
    for number, component in enumerate(components(program), start=1):
        kind = "recursive, to a fixpoint" if component.recursive else "once"
        kind += ", of which the best is kept" if component.best else ""
        parts.append(f"\n// stratum {number}: {component} ({kind})")
        parts += [show_statement(rule) for rule in component.rules]
    return "\n".join(parts)


def explain_sql(program: Program, dialect: Dialect) -> str:
    """The statement of each rule; for a recursive rule one for each place that recent rows are read from."""
    layout = Layout(program)
    parts = []
    for component in components(program):
        for rule in component.candidates.rules:
            if not rule.body:
                continue
            parts.append(f"-- {rule.source.span}: {show_statement(rule)}")
            recursive: list[int | None] = [
                i for i, part in enumerate(rule.body) if isinstance(part, Atom) and part.relation in component.relations
            ]
            parts += [_statement(rule, layout, dialect, place) for place in recursive or [None]]
    return "\n".join(parts)


def _statement(rule: Rule, layout: Layout, dialect: Dialect, first: int | None) -> str:
    def table(index: int, atom: Atom) -> str:
        name = layout.tables[atom.relation]
        return f"{name}_recent" if index == first else name

    chosen = select(rule, layout, dialect, Choice(first=first, table=table))

    def literal(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Placeholder):
            return node
        value = chosen.parameters[node.name]
        return exp.Literal.string(value) if isinstance(value, str) else exp.Literal.number(repr(value))

    return chosen.sql.transform(literal).sql(dialect.name, normalize_functions=False, pretty=True) + ";\n"
