"""Generated tables of a shop, the same on every machine, as Parquet files.

A value is a hash of the row's number, so any part of a table can be made without the rest, and a later version of a table without the earlier one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

Row = tuple[int | str, ...]

REGIONS = [f"region {number}" for number in range(8)]
CATEGORIES = [f"category {number}" for number in range(20)]
FILES = 4  # of orders
PART = 1_000_000  # orders that are made at once

PROGRAM = """
.decl orders(id: number, customer: number, product: number, quantity: number, day: number)
.input orders(IO=parquet)
.key orders(id)
.decl customers(id: number, name: symbol, region: symbol)
.input customers(IO=parquet)
.key customers(id)
.decl products(id: number, category: symbol, price: number)
.input products(IO=parquet)
.key products(id)
.decl blocked(customer: number)
.input blocked(IO=parquet)
.decl employees(id: number, boss: number, name: symbol)
.input employees(IO=parquet)
.key employees(id)

// a join of three relations, with negation: a quarter of the orders
.decl shippable(id: number, customer: symbol, product: number)
.output shippable
shippable(o, name, p) :- orders(o, c, p, q, _), q > 9, customers(c, name, _), products(p, _, _), !blocked(c).

// a recursion
.decl above(employee: number, boss: number)
.output above
above(e, b) :- employees(e, b, _), b >= 0.
above(e, b) :- employees(e, m, _), above(m, b).

// a count for each blocked customer
.decl waiting(customer: number, orders: number)
.output waiting
waiting(c, n) :- blocked(c), n = count : { orders(_, c, _, _, _) }.

// an aggregate on top of the recursion
.decl team(boss: number, size: number)
.output team
team(b, n) :- employees(b, _, _), n = count : { above(_, b) }, n > 0.

// a sum over a join, for each region and category
.decl region(name: symbol)
region(r) :- customers(_, _, r).
.decl category(name: symbol)
category(k) :- products(_, k, _).
.decl revenue(region: symbol, category: symbol, total: number)
.output revenue
revenue(r, k, t) :- region(r), category(k), t = sum price * q : { orders(_, c, p, q, _), customers(c, _, r), products(p, k, price) }.
"""


@dataclass(frozen=True)
class Shop:
    """The sizes of the tables.

    >>> Shop.of(3_000_000)
    Shop(orders=3000000, customers=200000, products=5000, blocked=2000, employees=5000)
    >>> shop = Shop.of(30_000)
    >>> shop.order(7) == shop.order(7), shop.employee(0)
    (True, (0, -1, 'employee 0'))
    """

    orders: int
    customers: int
    products: int
    blocked: int
    employees: int

    @classmethod
    def of(cls, orders: int) -> Shop:
        customers = max(100, orders // 15)
        return cls(orders, customers, min(5_000, max(50, orders // 600)), max(10, customers // 100), min(5_000, max(50, orders // 600)))

    def order(self, number: int, version: int = 0) -> Row:
        return self._rows(self._orders(number, number + 1, version))[0]

    def new_orders(self, first: int, rows: int) -> list[Row]:
        return self._rows(self._orders(first, first + rows, 0))

    def customer(self, number: int) -> Row:
        return number, f"customer {number}", REGIONS[_hash(number, 11) % len(REGIONS)]

    def product(self, number: int) -> Row:
        return number, CATEGORIES[_hash(number, 12) % len(CATEGORIES)], 1 + _hash(number, 13) % 500

    def employee(self, number: int) -> Row:
        """Everybody's boss has a smaller number; the first has none."""
        return number, _hash(number, 14) % number if number else -1, f"employee {number}"

    @cached_property
    def blocked_customers(self) -> list[int]:
        return [number * self.customers // self.blocked for number in range(self.blocked)]

    def write(self, folder: Path) -> None:
        """Writes all tables into a folder, those of `orders` in several files."""
        import pyarrow as pa
        from pyarrow import parquet

        folder.mkdir(parents=True)
        tables: dict[str, tuple[tuple[str, ...], list[Row]]] = {
            "customers": (("id", "name", "region"), [self.customer(number) for number in range(self.customers)]),
            "products": (("id", "category", "price"), [self.product(number) for number in range(self.products)]),
            "blocked": (("customer",), [(number,) for number in self.blocked_customers]),
            "employees": (("id", "boss", "name"), [self.employee(number) for number in range(self.employees)]),
        }
        for name, (columns, rows) in tables.items():
            table = pa.table([list(cells) for cells in zip(*rows, strict=True)], names=list(columns))
            parquet.write_table(table, folder / f"{name}.parquet")
        self.write_orders(folder / "orders.parquet", 0, self.orders)

    def write_orders(self, place: Path, first: int, last: int, versions: int = 0) -> None:
        """Writes the orders from one number to another; with `versions`, one in so many has another quantity than before."""
        from pyarrow import parquet

        place.mkdir(parents=True)
        bounds = [first + (last - first) * number // FILES for number in range(FILES + 1)]
        for number, (start, end) in enumerate(pairwise(bounds)):
            table = self._orders(start, start + 1, 0)
            with parquet.ParquetWriter(place / f"part-{number}.parquet", table.schema) as file:
                for part in range(start, end, PART):
                    file.write_table(self._orders(part, min(part + PART, end), versions))

    def _orders(self, first: int, last: int, versions: int) -> pa.Table:
        import numpy as np
        import pyarrow as pa

        number = np.arange(first, last, dtype=np.int64)
        quantity = 1 + _hashes(number, 3) % 12
        if versions:
            quantity = np.where(number % versions == 0, 1 + quantity % 12, quantity)
        columns = {
            "id": number,
            "customer": _hashes(number, 1) % self.customers,
            "product": _hashes(number, 2) % self.products,
            "quantity": quantity,
            "day": _hashes(number, 4) % 365,
        }
        return pa.table(columns)

    @staticmethod
    def _rows(table: pa.Table) -> list[Row]:
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _hashes(numbers: NDArray[np.int64], salt: int) -> NDArray[np.int64]:
    """Numbers that look like chance, by the finalizer of splitmix64."""
    import numpy as np

    mixed = numbers.astype(np.uint64) + np.uint64(salt * 0x9E3779B97F4A7C15 % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(1)).astype(np.int64)


def _hash(number: int, salt: int) -> int:
    import numpy as np

    return int(_hashes(np.array([number], dtype=np.int64), salt)[0])
