"""The passes, in their order. Each is a function `Program -> Program`, and programs and goals take the same ones.

The law of a pass: what a relation of the program has stays under its name. A pass may add relations and rules, and read others in the place of some, but whoever asks for a relation finds its rows there. So the rule of
a goal can be rewritten by itself, over a program that has been.

What is kept in a data folder is known by the rules that come out of the passes (`engine/compiled.py`): a pass that changes the rules of a relation changes its fingerprint, and what is stored of it is computed anew
when the folder is opened next. Nobody is told of that, for its rows are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from vigilog.language.program import Program
from vigilog.language.syntax import Declaration, Rule
from vigilog.rewriting.program.collecting import collect
from vigilog.rewriting.program.normalize import normalize
from vigilog.rewriting.program.unfold import unfold

Pass = Callable[[Program], Program]

PASSES: tuple[Pass, ...] = (collect, normalize, unfold)


def rewrite(program: Program) -> Program:
    program = replace(program, frames=())  # what they say is among the other parts
    for step in PASSES:
        program = step(program)
    return program


def with_goal(plain: Program, declaration: Declaration, rule: Rule) -> Program:
    """A program that has been rewritten, with the rules that answer a goal; without any for it if it can never hold."""
    asked = rewrite(replace(plain, declarations=(*plain.declarations, declaration), rules=(rule,)))
    return replace(asked, rules=(*plain.rules, *asked.rules))
