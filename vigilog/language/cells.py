"""What is known of the type of a term, while the types of a rule are being found."""

from __future__ import annotations

from dataclasses import dataclass

from vigilog.core.values import BUILTIN, FLOAT, NUMBER, SYMBOL, Type, set_type, tuple_type
from vigilog.language.functors import ANY, INTEGERS, NUMERIC


@dataclass
class Cell:
    """What is known of the type of some terms; joined cells lead to one."""

    kinds: frozenset[str]
    type: Type | None = None
    reason: str = ""
    parts: list[Cell] | None = None  # of a set or a tuple, which has no type before these do
    joined: Cell | None = None
    broken: bool = False  # an error was told already; no other follows from it

    @staticmethod
    def of(type_: Type | None, reason: str = "") -> Cell:
        """The cell of a type that is known."""
        if type_ is None or not type_.parts:
            return Cell(ANY, type_, reason)
        return Cell(frozenset({type_.kind}), None, reason, [Cell.of(part) for part in type_.parts])

    def root(self) -> Cell:
        cell = self
        while cell.joined is not None:
            cell = cell.joined
        return cell

    def resolved(self) -> Type:
        cell = self.root()
        if cell.type is not None:
            return cell.type
        if cell.parts is not None:
            made = [part.resolved() for part in cell.parts]
            return set_type(made[0]) if cell.kinds == {"set"} else tuple_type(*made)
        if cell.kinds == {"set"}:
            return set_type(NUMBER)
        return next((t for t in (NUMBER, FLOAT, SYMBOL, *BUILTIN.values()) if t.kind in cell.kinds), SYMBOL)

    def __str__(self) -> str:
        cell = self.root()
        if cell.type is not None or cell.parts is not None:
            return f"a {cell.resolved()}" + (f" ({cell.reason})" if cell.reason else "")
        return {
            frozenset({"symbol", "date", "timestamp"}): "text in quotes",
            frozenset({"float", "decimal"}): "a number with a point or an exponent",
            ANY: "of any type",
            NUMERIC: "numeric",
            INTEGERS: "an integer",
        }.get(cell.kinds, "a " + " or ".join(sorted(cell.kinds)))
