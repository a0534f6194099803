"""Programs that come in sections: each is a program of its own, which parses, is stratified, and adds to what is known.

Maintenance cannot be one stratified program: what is asked depends on what was deleted, and what was deleted on what was answered. So it comes in sections that are
evaluated one after the other. Sections with the same title run together: whenever one of lower rank has something to do, it goes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from vigilog.core.errors import Findings
from vigilog.language.parts import definitions
from vigilog.language.printer import show_statement
from vigilog.language.program import Program
from vigilog.language.strata import check_stratified, dependencies, improved
from vigilog.language.syntax import Atom, Declaration, Literal, Rule, Variable
from vigilog.rewriting.demand.demand import ranks
from vigilog.rewriting.naming import Naming


@dataclass(frozen=True)
class Section:
    """Some rules with the declarations they need. What has no rule here is known from before."""

    title: str
    program: Program
    rank: int | None = None

    @property
    def heading(self) -> str:
        return self.title if self.rank is None else f"{self.title}, rank {self.rank}"


def show_sections(sections: Iterable[Section]) -> str:
    """All sections as one text: declarations first, then each section's rules under a comment. A section parses together with the declarations."""
    sections = tuple(sections)
    declared = {name: declaration for section in sections for name, declaration in section.program.relations.items()}
    lines = [show_statement(declaration) for declaration in declared.values()]
    defined = {definition.name: definition for section in sections for definition in section.program.aggregates}
    for definition in defined.values():
        lines += [show_statement(definition), *map(show_statement, definition.rules)]
    for section in sections:
        lines += ["", f"// {section.heading}", *map(show_statement, section.program.rules)]
    return "\n".join(lines)


def section(title: str, rules: Iterable[Rule], declarations: Mapping[str, Declaration], rank: int | None = None) -> Section:
    """The section with these rules. Columns get the built-in types behind named ones, since bindings that are passed on do not keep the names."""
    rules = tuple(dict.fromkeys(rules))
    used = {atom.relation for rule in rules for atom in (rule.head, *(atom for atom, _ in dependencies(rule)))}
    declared = tuple(_plain(declaration) for name, declaration in declarations.items() if name in used)
    return Section(title, Program(declarations=declared, rules=rules, aggregates=tuple(definitions(rules).values())), rank)


def by_rank(
    title: str, rules: Sequence[Rule], declarations: dict[str, Declaration], levels: Mapping[str, int], naming: Naming
) -> list[Section]:
    """The rules as one section, if that is stratified; otherwise as several, in an order in which what is negated or aggregated is complete when it is read."""
    whole = section(title, rules, declarations)
    findings = Findings()
    check_stratified(whole.program, findings)
    if not findings.errors and not improved(whole.program):
        return [whole]
    groups: list[list[Rule]] = [[]]
    for rank, rule in sorted(zip(ranks(rules, levels), rules, strict=True), key=lambda pair: pair[0]):
        if rank == 0:
            groups[0].append(rule)
            continue
        copied, rule = _through_copy(rule, declarations, naming)
        groups[0] += copied
        for group in groups[1:]:
            if ranks(group[:1], levels) == [rank] and not any(_feeds(rule, other) or _feeds(other, rule) for other in group):
                group.append(rule)
                break
        else:
            groups.append([rule])
    return [section(title, group, declarations, rank) for rank, group in enumerate(groups) if group]


def _feeds(rule: Rule, other: Rule) -> bool:
    return any(atom.relation == rule.head.relation for atom, _ in dependencies(other))


def _through_copy(rule: Rule, declarations: dict[str, Declaration], naming: Naming) -> tuple[list[Rule], Rule]:
    """A rule that reads what it derives reads a copy instead, which a rule of rank 0 fills: so it goes only one step before the questions about that step are answered."""
    relation = rule.head.relation
    if not any(atom.relation == relation for atom, _ in dependencies(rule)):
        return [], rule
    copy = naming.fresh("sup")
    declaration = declarations[copy] = replace(declarations[relation], relation=copy)
    columns = tuple(Variable(attribute.name, attribute.type) for attribute in declaration.attributes)

    def copied(literal: Literal) -> Literal:
        return replace(literal, relation=copy) if isinstance(literal, Atom) and literal.relation == relation else literal

    return [rule.derive(Atom(copy, columns), body=(Atom(relation, columns),))], replace(rule, body=tuple(map(copied, rule.body)))


def _plain(declaration: Declaration) -> Declaration:
    attributes = tuple(replace(attribute, type_name=str(attribute.type)) for attribute in declaration.attributes)
    return replace(declaration, attributes=attributes, qualifiers=())
