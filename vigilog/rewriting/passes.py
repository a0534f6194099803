"""The passes, in their order. Each is a function `Program -> Program`."""

from __future__ import annotations

from collections.abc import Callable

from vigilog.language.syntax import Program
from vigilog.rewriting.program.normalize import normalize

Pass = Callable[[Program], Program]

EVALUATION: tuple[Pass, ...] = (normalize,)


def rewrite(program: Program, passes: tuple[Pass, ...] = EVALUATION) -> Program:
    for step in passes:
        program = step(program)
    return program
