"""What is done to the tables, in this order: one operation is one line of the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench.pipeline.data import REGIONS, Row, Shop

Wish = Mapping[str, Mapping[str, Sequence[Row]]]


@dataclass(frozen=True)
class Change:
    """One row of a relation changes, another each time. `reads` are the views that are computed from the relation."""

    name: str
    relation: str
    reads: tuple[str, ...]
    wish: Callable[[Shop, int], Wish]


@dataclass(frozen=True)
class Bulk:
    """Many rows of `orders` change, by a file: they are `new`, or the file is a version of all, one in so many of which is another."""

    name: str
    new: int = 0
    versions: int = 0
    relation = "orders"
    reads = ("shippable", "waiting", "revenue")


@dataclass(frozen=True)
class Look:
    """A view is asked for as a whole, as Arrow."""

    name: str
    view: str


@dataclass(frozen=True)
class Whole:
    """`init` makes everything from files, `verify` computes everything anew; `ask` is a process that starts, answers a goal and ends."""

    name: str


Operation = Change | Bulk | Look | Whole


def operations(shop: Shop) -> list[Operation]:
    large = shop.orders >= 1_000_000
    return [
        Whole("init"),
        Change("blocked, one row", "blocked", ("shippable", "waiting"), _blocked),
        Change("customers, name", "customers", ("shippable", "revenue"), _renamed),
        Change("customers, region", "customers", ("shippable", "revenue"), _moved),
        Change("products, price", "products", ("shippable", "revenue"), _priced),
        Change("orders, quantity", "orders", ("shippable", "waiting", "revenue"), _ordered),
        Change("employees, boss", "employees", ("above", "team"), _promoted),
        Bulk("orders, 20,000 new" if large else "orders, new", new=20_000 if large else 200),
        Bulk("orders, 35,000 differences" if large else "orders, differences", versions=max(20, shop.orders // 17_500)),
        Look("view of shippable", "shippable"),
        Look("view of revenue", "revenue"),
        Whole("verify"),
        Whole("ask"),
    ]


def _blocked(shop: Shop, turn: int) -> Wish:
    """A customer is blocked; the next time it is so no more."""
    customer = shop.blocked_customers[turn // 2] + 1
    return {"delete" if turn % 2 else "insert": {"blocked": [(customer,)]}}


def _renamed(shop: Shop, turn: int) -> Wish:
    number, name, region = shop.customer((1_000 * turn + 3) % shop.customers)  # who is not blocked
    return {"upsert": {"customers": [(number, f"{name}, renamed", region)]}}


def _moved(shop: Shop, turn: int) -> Wish:
    number, name, region = shop.customer((1_000 * turn + 7) % shop.customers)
    other = REGIONS[(REGIONS.index(str(region)) + 1) % len(REGIONS)]
    return {"upsert": {"customers": [(number, name, other)]}}


def _priced(shop: Shop, turn: int) -> Wish:
    number, category, price = shop.product(10 * turn % shop.products)
    return {"upsert": {"products": [(number, category, int(price) + 1)]}}


def _ordered(shop: Shop, turn: int) -> Wish:
    return {"upsert": {"orders": [shop.order(10_007 * turn % shop.orders, version=1)]}}


def _promoted(shop: Shop, turn: int) -> Wish:
    number, _, name = shop.employee(1 + 30 * turn % (shop.employees - 1))
    return {"upsert": {"employees": [(number, 0, name)]}}
