"""CReaM as the paper prints it (Mohapatra and Genesereth, figure 1), with the rules that are right where the printed ones are not.

A view over sets is rewritten over an auxiliary view that keeps all variables of the set's body. `_ins` and `_del` are the net changes of what a set is collected from. (Δ1) is a new group; (Δ2) and (Δ3) are groups that only gain
and only lose elements; a group that does both is found at once. (Γ) asks for another proof, whose planet may be any.

>>> from vigilog.language.check import check
>>> text = ".decl t(v: symbol, d: symbol, l: symbol) .decl p(v: symbol, w: set<symbol>) p(v, w) :- setof(d, t(v, d, l), w)."
>>> print(cream(check(text).program, ["p"]).partition("// ")[2])
p: the paper's form (Mohapatra & Genesereth, figure 1)
p_aux(v, l, w) :- setof(d, t(v, d, l), w).
p(v, w) :- p_aux(v, l, w).
p_proofs(v, w, n) :- p(v, w), n = count : { p_aux(v, l, w) }.
p_aux_plus(v, l, w) :- setof(d, t_ins(v, d, l), w), !p_aux(v, l, _).
p_aux_plus(v, l, w) :- p_aux(v, l, o), setof(d, t_ins(v, d, l), p), !t_del(v, _, l), w = union(o, p).
p_aux_plus(v, l, w) :- p_aux(v, l, o), setof(d, t_del(v, d, l), m), !t_ins(v, _, l), w = minus(o, m), w != {}.
p_aux_plus(v, l, w) :- p_aux(v, l, o), setof(d, t_del(v, d, l), m), setof(d, t_ins(v, d, l), p), w = union(minus(o, m), p).
p_aux_minus(v, l, o) :- p_aux(v, l, o), t_ins(v, _, l).
p_aux_minus(v, l, o) :- p_aux(v, l, o), t_del(v, _, l).
p_aux_new(v, l, o) :- p_aux(v, l, o), !p_aux_minus(v, l, o).
p_aux_new(v, l, o) :- p_aux_plus(v, l, o).
p_new(v, w) :- p_aux_new(v, l, w).
p_plus(v, w) :- p_aux_plus(v, l, w), !p(v, w).
p_minus(v, w) :- p_aux_minus(v, l, w), !p_new(v, w).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from vigilog.core.values import Type
from vigilog.language.parts import collected, map_terms, names, variables
from vigilog.language.printer import show_literal, show_term
from vigilog.language.program import Program
from vigilog.language.safety import grounded_by, names_of
from vigilog.language.syntax import Atom, Builtin, Literal, Rule, SetOf, Term, Variable, Wildcard
from vigilog.rewriting.naming import Naming


def cream(program: Program, views: Iterable[str], beside: Collection[str] = ()) -> str:
    """The paper's form of the views of a checked program that are one rule over setofs and what is computed from them, as one program with what declares the relations `beside`; empty if there are none."""
    texts, declared = [], set(beside)
    for view in views:
        rules = [rule for rule in program.rules if any(head.relation == view for head in rule.heads)]
        if len(rules) == 1 and _fits(rules[0]):
            form = _Form(program, rules[0], beside)
            rest = form.rules()
            texts.append("\n".join([*form.declarations(declared), *rest]))
            declared |= form.declared.keys() | {f".input {name}" for name in form.given}
    return "\n\n".join(texts)


def _fits(rule: Rule) -> bool:
    """Whether a rule has one head of variables, and a body of setofs over sets that variables name and of what is computed."""
    plain = all(isinstance(literal, Builtin | SetOf) for literal in rule.body) and any(isinstance(part, SetOf) for part in rule.body)
    named = all(isinstance(part.result, Variable) for part in rule.body if isinstance(part, SetOf))
    told = [arg.name for arg in rule.heads[0].args if isinstance(arg, Variable)]
    return plain and named and len(rule.heads) == 1 and len(set(told)) == len(rule.heads[0].args)


class _Form:
    """The form of one view."""

    def __init__(self, program: Program, rule: Rule, beside: Collection[str]) -> None:
        self.program, self.rule, self.view = program, rule, rule.heads[0].relation
        self.names, self.beside = Naming(program.relations), beside
        self.declared: dict[str, str] = {}
        self.given: list[str] = []
        self.taken = names(rule, into_aggregates=True).union(
            *(names(part) | collected(part) for part in rule.body if isinstance(part, SetOf))
        )

    def naming(self, relation: str, kind: str) -> str:
        """What is made of a relation; what is run may have something else under the names that are the paper's own."""
        name = self.names(relation, kind)
        while name in self.beside and (kind.startswith("aux") or kind in ("rows", "proofs")):
            name += "_"
        return name

    def declarations(self, before: Collection[str]) -> list[str]:
        """The declarations of relations that are not known, and whence those come whose rows are given."""
        read = (f".input {name}" for name in dict.fromkeys(self.given))
        more = [line if line.split()[1] in self.program.relations else f"{line}(missing=empty)" for line in read if line not in before]
        proofs = self.naming(self.view, "proofs")
        return [*(line for name, line in self.declared.items() if name not in before), *more, f".output {proofs}"]

    def rules(self) -> list[str]:
        sets = [part for part in self.rule.body if isinstance(part, SetOf)]
        atoms = {id(part): self.auxiliary(part, f"aux{number}" if number > 1 else "aux") for number, part in enumerate(sets, start=1)}
        head = show_literal(self.rule.heads[0])
        own = self.program.relations[self.view].types
        new, plus, minus = (self.name(kind, own) for kind in ("new", "plus", "minus"))
        number = self.fresh("n")
        args = ", ".join([*map(show_term, self.rule.heads[0].args), number])
        proofs = self.naming(self.view, "proofs")
        self.declare(proofs, own, "number")
        self.declare(self.view, own)
        lines = [
            *(line for _, aux, _ in atoms.values() for line in aux),
            f"{head} :- {self.body(atoms)}.",
            f"{proofs}({args}) :- {head}, {number} = count : {{ {self.body(atoms)} }}.",
            *(line for _, _, changes in atoms.values() for line in changes),
            f"{self.called(new)} :- {self.body(atoms, dict.fromkeys(atoms, 'new'))}.",
        ]
        for key in atoms:
            gained = {other: "plus" if other == key else "new" for other in atoms}
            lines.append(f"{self.called(plus)} :- {self.body(atoms, gained)}, !{head}.")
        for key in atoms:
            lines.append(f"{self.called(minus)} :- {self.body(atoms, {key: 'minus'})}, !{self.called(new)}.")
        return [f"// {self.view}: the paper's form (Mohapatra & Genesereth, figure 1)", *lines]

    def called(self, relation: str) -> str:
        return show_literal(replace(self.rule.heads[0], relation=relation))

    def body(self, atoms: dict[int, tuple[Atom, list[str], list[str]]], kinds: dict[int, str] | None = None) -> str:
        """The rule's body over the auxiliary views, or over what becomes of them."""
        shown = []
        for part in self.rule.body:
            if id(part) in atoms:
                atom, kind = atoms[id(part)][0], (kinds or {}).get(id(part), "")
                shown.append(show_literal(replace(atom, relation=self.naming(atom.relation, kind) if kind else atom.relation)))
            else:
                shown.append(show_literal(part))
        return ", ".join(shown)

    def auxiliary(self, part: SetOf, kind: str) -> tuple[Atom, list[str], list[str]]:
        """The atom of an auxiliary view, the rules that define it, and those that change it."""
        typed = {variable.name: variable for literal in part.body for variable in variables(literal)}
        outer = [name for name in typed if name in grounded_by(part.body, set(), names_of(part)) - collected(part)]
        assert isinstance(part.result, Variable), "the set has a name"
        aux = self.naming(self.view, kind)
        types = [*(typed[name].type for name in outer), part.result.type]
        for suffix in ("", "plus", "minus", "new"):
            self.declare(self.naming(aux, suffix) if suffix else aux, [type_ for type_ in types if type_ is not None])
        source, rules = self.source(part, [typed[name] for name in outer], typed)
        w, o, p, m = show_term(part.result), *(self.fresh(name) for name in "opm")
        target = show_term(part.target)
        ins, gone = (replace(source, relation=self.change(source.relation, suffix)) for suffix in ("ins", "del"))

        def atom(relation: str, last: str) -> str:
            return f"{relation}({', '.join([*outer, last])})"

        def some(of: Atom) -> str:
            bound = map_terms(of, lambda term: Wildcard() if names(term) and names(term) <= collected(part) else term)
            return show_literal(bound)

        def gathered(of: Atom, into: str) -> str:
            return f"setof({target}, {show_literal(of)}, {into})"

        plus, minus, new = (self.naming(aux, suffix) for suffix in ("plus", "minus", "new"))
        old = atom(aux, o)
        changes = [
            f"{atom(plus, w)} :- {gathered(ins, w)}, !{atom(aux, '_')}.",
            f"{atom(plus, w)} :- {old}, {gathered(ins, p)}, !{some(gone)}, {w} = union({o}, {p}).",
            f"{atom(plus, w)} :- {old}, {gathered(gone, m)}, !{some(ins)}, {w} = minus({o}, {m}), {w} != {{}}.",
            f"{atom(plus, w)} :- {old}, {gathered(gone, m)}, {gathered(ins, p)}, {w} = union(minus({o}, {m}), {p}).",
            f"{atom(minus, o)} :- {old}, {some(ins)}.",
            f"{atom(minus, o)} :- {old}, {some(gone)}.",
            f"{atom(new, o)} :- {old}, !{atom(minus, o)}.",
            f"{atom(new, o)} :- {atom(plus, o)}.",
        ]
        args = (*(typed[name] for name in outer), part.result)
        return Atom(aux, args), [*rules, f"{atom(aux, w)} :- {gathered(source, w)}."], changes

    def source(self, part: SetOf, outer: Sequence[Variable], typed: dict[str, Variable]) -> tuple[Atom, list[str]]:
        """The atom whose rows a set is collected from, and its rule if it is a relation of its own."""
        match part.body:
            case (Atom() as atom,) if all(isinstance(arg, Variable) for arg in atom.args) and self.base(atom.relation):
                self.given.append(atom.relation)
                self.declare(atom.relation, self.program.relations[atom.relation].types)
                return atom, []
        args: tuple[Term, ...] = (*outer, *(typed[name] for name in typed if name in collected(part)))
        atom = Atom(self.naming(self.view, "rows"), args)
        self.declare(atom.relation, [arg.type for arg in args if isinstance(arg, Variable) and arg.type is not None])
        for read in (literal for literal in _atoms(part.body) if self.base(literal.relation)):
            self.given.append(read.relation)
            self.declare(read.relation, self.program.relations[read.relation].types)
        return atom, [f"{show_literal(atom)} :- {', '.join(map(show_literal, part.body))}."]

    def change(self, relation: str, suffix: str) -> str:
        name = self.naming(relation, suffix)
        types = self.program.relations[relation].types if relation in self.program.relations else None
        self.declared[name] = (
            self.declared[relation].replace(f".decl {relation}(", f".decl {name}(") if types is None else self.declaration(name, types)
        )
        self.given.append(name)
        return name

    def base(self, relation: str) -> bool:
        return all(head.relation != relation for rule in self.program.rules for head in rule.heads)

    def fresh(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        return name

    def name(self, kind: str, types: Sequence[Type]) -> str:
        name = self.naming(self.view, kind)
        self.declare(name, types)
        return name

    def declare(self, name: str, types: Sequence[Type], *more: str) -> None:
        self.declared[name] = self.declaration(name, types, *more)

    def declaration(self, name: str, types: Sequence[Type], *more: str) -> str:
        return f".decl {name}({', '.join(f'c{place}: {type_}' for place, type_ in enumerate([*map(str, types), *more], start=1))})"


def _atoms(body: Iterable[Literal]) -> list[Atom]:
    return [literal for literal in body if isinstance(literal, Atom)]
