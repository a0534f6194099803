"""The parts of Soufflé that Vigilog does not have, by the words that give them away."""

from __future__ import annotations

DIRECTIVES = {
    ".comp": "components",
    ".init": "components",
    ".override": "components",
    ".functor": "user-defined functors",
    ".lattice": "lattices",
    ".symbol_type": "the old form of type declarations (write .type Name <: symbol)",
    ".number_type": "the old form of type declarations (write .type Name <: number)",
    ".include": "includes",
    ".once": "includes",
}

QUALIFIERS = {
    "eqrel": "equivalence relations (eqrel)",
    "choice-domain": "choice domains",
    "override": "components",
    "btree_delete": "subsumption",
}

CHARACTERS = {
    "[": "records and [ ]",
    "]": "records and [ ]",
    "@": "user-defined functors (@f)",
    "$": "algebraic data types and counters ($)",
}

FUNCTORS = {
    "ord": "ord, whose value depends on the order of evaluation",
    "autoinc": "autoinc, whose value depends on the order of evaluation",
    "range": "the generator range",
    "as": "type casts (as)",
}

VARIABLES = {"nil": "records and nil"}
