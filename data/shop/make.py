"""Write shop.sql and shop_schema.txt: the same bytes every time.

    python data/shop/make.py [FOLDER]

FOLDER is this one by default. Only `Random.random()` is used, the one sequence that Python keeps the same
from version to version. The rows are made so that a query which knows the schema but not the rules of
shop_kb.jsonl goes wrong: every `# Trap` below is one way to.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TypeVar

from tables import Row, Value, dump, schema_text
from words import CAMPAIGNS, CATEGORIES, COUNTRIES, FAMILY, GIVEN, MAKES, NOTES

SEED = 20250630
LAST_DAY = date(2025, 6, 30)
T = TypeVar("T")


class Dice:
    """Choices that depend on nothing but the seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed).random

    def chance(self, share: float) -> bool:
        return self.random() < share

    def number(self, low: int, high: int) -> int:
        """Between `low` and `high`, both possible."""
        return low + int(self.random() * (high - low + 1))

    def pick(self, options: Sequence[T]) -> T:
        return options[self.number(0, len(options) - 1)]

    def weighted(self, options: Sequence[tuple[T, int]]) -> T:
        return self.pick([option for option, weight in options for _ in range(weight)])

    def some(self, options: Sequence[T], count: int) -> list[T]:
        left = list(options)
        return [left.pop(self.number(0, len(left) - 1)) for _ in range(min(count, len(left)))]

    def moment(self, day: date) -> datetime:
        return datetime(day.year, day.month, day.day, self.number(6, 22), self.number(0, 59))


@dataclass
class Order:
    """An order with what the later tables need to know of it."""

    id: int
    customer: int
    placed: datetime
    state: str
    test: bool
    fee: int
    lines: list[tuple[int, int, int, int | None]]
    """product, pieces, price in cents, discount in cents or None"""

    @property
    def valid(self) -> bool:
        return not self.test and self.state not in ("draft", "cancelled")

    @property
    def due(self) -> int:
        """Cents, shipping included."""
        return self.fee + sum(pieces * price - (off or 0) for _, pieces, price, off in self.lines)


def money(cents: int) -> Decimal:
    return Decimal(cents) / Decimal(100) + Decimal("0.00")


def make_products(dice: Dice) -> tuple[list[Row], list[Row], dict[int, int]]:
    """Categories, products, and the price in cents by product."""
    ids = {name: number for number, (name, _, _) in enumerate(CATEGORIES, 1)}
    categories: list[Row] = [(ids[name], name, ids.get(parent or "")) for name, parent, _ in CATEGORIES]
    products: list[Row] = []
    prices = {}
    for name, _, nouns in CATEGORIES:  # Trap: some products hang on a main category, with no level between.
        for noun in nouns.split("|"):
            for make in dice.some(MAKES, 2):
                product = 101 + len(products)
                price = dice.number(5, 120) * 100 + dice.pick((0, 50, 90, 95))
                cost = price * dice.number(48, 92) // 100
                launched = date(2022, 6, 1) + timedelta(dice.number(0, 700))
                gone = dice.chance(0.12)
                attributes: dict[str, object] = {"size": {"weight_g": dice.number(2, 160) * 50}}
                if dice.chance(0.6):
                    label, recycled = dice.pick(("leaf", "none")), dice.number(0, 90)
                    attributes["eco"] = {"label": label, "recycled_pct": recycled}
                products.append((
                    product, ids[name], f"{make} {noun}", money(price), cost,
                    dice.chance(0.5 if gone else 0.93),  # Trap: withdrawn products may still be listed.
                    launched, LAST_DAY - timedelta(dice.number(5, 300)) if gone else None,
                    attributes if dice.chance(0.95) else None,
                ))  # fmt: skip
                prices[product] = price
    return categories, products, prices


def make_stock(dice: Dice, products: Sequence[int]) -> list[Row]:
    rows: list[Row] = []
    for product in products:
        for warehouse in ("Kassel", "Linz"):
            on_hand = 0 if dice.chance(0.08) else dice.number(5, 140)
            reserved = on_hand * dice.number(0, 70) // 100
            damaged = (on_hand - reserved) * dice.pick((0, 0, 5, 15, 40)) // 100
            rows.append((product, warehouse, on_hand, reserved, damaged))
    return rows


def make_customers(dice: Dice, count: int) -> list[Row]:
    rows: list[Row] = []
    for customer in range(1, count + 1):
        given, family = dice.pick(GIVEN), dice.pick(FAMILY)
        email: Value = f"{given}.{family}{customer}@example.org".lower()
        if dice.chance(0.12):
            email = dice.pick((None, ""))  # Trap: NULL beside ''.
        contact: dict[str, object] = {"channel": dice.pick(("email", "post", "phone"))}
        if dice.chance(0.85):
            contact["newsletter"] = dice.chance(0.6)
        preferences: dict[str, object] = {"contact": contact, "language": dice.pick(("de", "en", "fr"))}
        if dice.chance(0.7):
            tier = dice.weighted((("G", 2), ("S", 4), ("B", 6)))
            preferences["loyalty"] = {"tier": tier, "points": dice.number(0, 4000)}
        rows.append((
            customer, f"{given} {family}", email, dice.weighted(COUNTRIES),
            date(2022, 11, 1) + timedelta(dice.number(0, 900)),
            # Trap: the state of the login, which says nothing about buying.
            dice.weighted((("active", 14), ("dormant", 4), ("closed", 2))),
            dice.weighted(((None, 2), ("private", 9), ("business", 3), ("vip", 3))),
            dice.weighted(((None, 6), ("", 3), ("friend", 2), ("newspaper", 1))),
            preferences if dice.chance(0.96) else None,
        ))  # fmt: skip
    return rows


def make_campaigns(dice: Dice) -> list[Row]:
    rows: list[Row] = []
    for number, (name, medium, start, days, spent) in enumerate(CAMPAIGNS, 1):
        first = date.fromisoformat(start)
        clicks = dice.number(300, 2500)
        reach = {"impressions": clicks * dice.number(20, 60), "clicks": clicks}
        metrics: dict[str, object] = {"reach": reach}
        if spent:  # Trap: what was spent lies in the JSON, in cents, and is not the budget.
            metrics["cost"] = {"spent_cents": spent * 100, "agency": dice.pick(("Larch & Co", "in-house"))}
        budget = dice.number(6, 80) * 10_000
        rows.append((number, name, medium, first, first + timedelta(days), budget, metrics))
    return rows


def make_orders(dice: Dice, customers: Sequence[Row], prices: dict[int, int], count: int) -> list[Order]:
    """Orders in the order of time, with their lines."""
    buyers = dice.some(customers, len(customers) * 4 // 5)
    until = {b[0]: LAST_DAY - timedelta(dice.number(100, 500) if dice.chance(0.5) else 0) for b in buyers}
    placed = []
    for _ in range(count):
        buyer = buyers[int(len(buyers) * dice.random() ** 1.5)]
        first, last = buyer[4], until[buyer[0]]
        assert isinstance(first, date) and isinstance(buyer[0], int)
        day = first + timedelta(dice.number(0, max(0, (last - first).days)))
        placed.append((dice.moment(day), buyer[0]))
    orders = []
    for number, (moment, customer) in enumerate(sorted(placed), 1001):
        fresh = (LAST_DAY - moment.date()).days
        fate = ((("shipped", 3), ("placed", 5)), (("delivered", 97), ("shipped", 3)))[fresh > 6]
        done = dice.weighted(fate)
        state = dice.weighted(((done, 86), ("cancelled", 9), ("draft", 5)))
        test = dice.chance(0.05)
        lines = []
        for product in dice.some(list(prices), dice.weighted(((1, 4), (2, 4), (3, 2), (4, 1)))):
            pieces = dice.number(20, 60) if test else dice.weighted(((1, 6), (2, 3), (3, 1)))
            price = prices[product] * dice.pick((90, 100, 100, 100)) // 100
            off = dice.weighted(((None, 5), (0, 2), (pieces * price // 10, 2)))  # Trap: NULL is no discount.
            lines.append((product, pieces, price, off))
        orders.append(Order(number, customer, moment, state, test, dice.pick((0, 490, 690)), lines))
    return orders


def order_rows(dice: Dice, orders: Sequence[Order], campaigns: Sequence[Row]) -> list[Row]:
    rows: list[Row] = []
    for order in orders:
        running = [c[0] for c in campaigns if str(c[3]) <= str(order.placed.date()) <= str(c[4])]
        campaign = running[0] if running and dice.chance(0.6) else None
        channel = dice.weighted((("w", 8), ("a", 5), ("m", 4), ("p", 2)))
        coupon = dice.weighted(((None, 6), ("", 3), ("WELCOME10", 1), ("GARDEN5", 1), ("THANKS", 1)))
        rows.append((
            order.id, order.customer, campaign, order.placed, order.state, order.test,
            channel, coupon, order.fee,
        ))  # fmt: skip
    return rows


def payment_rows(dice: Dice, orders: Sequence[Order]) -> list[Row]:
    rows: list[Row] = []
    for order in orders:
        if order.state == "draft":
            continue
        parts = [("captured", order.due)]
        if order.test:
            parts = [("simulated", order.due)]
        elif order.state == "cancelled":
            parts = [(dice.pick(("refunded", "failed")), order.due)]
        elif dice.chance(0.07):  # Trap: too little was paid.
            parts = [("captured", order.due - dice.number(1, 4) * order.due // 10)]
        elif dice.chance(0.05):  # Trap: reserved on the card, never collected.
            parts = [("authorised", order.due)]
        elif dice.chance(0.06):
            half = order.due // 2
            parts = [("captured", half), ("captured", order.due - half)]
        if dice.chance(0.1):  # Trap: a failed attempt before the one that worked.
            parts.insert(0, ("failed", order.due))
        for number, (state, amount) in enumerate(parts):
            paid = order.placed + timedelta(minutes=3 + 5 * number)
            method = dice.pick(("card", "wallet", "invoice"))
            rows.append((len(rows) + 1, order.id, method, state, amount, paid))
    return rows


def shipment_rows(dice: Dice, orders: Sequence[Order]) -> list[Row]:
    rows: list[Row] = []
    for order in orders:
        if not order.valid or order.state == "placed":
            continue
        carrier = dice.weighted((("Nordpost", 5), ("Kestrel", 3), ("Tandem", 2)))
        shipped = order.placed + timedelta(hours=dice.number(5, 40))
        promised = (order.placed + timedelta(days=5)).date()
        slow = {"Nordpost": 0.1, "Kestrel": 0.18, "Tandem": 0.3}[carrier]
        days = dice.number(6, 12) if dice.chance(slow) else dice.number(3, 5)
        # Trap: a parcel that never arrived has no delivery to compare with the promise.
        arrived = None
        if order.state == "delivered":
            day = min((order.placed + timedelta(days=days)).date(), LAST_DAY)
            arrived = max(dice.moment(day), shipped + timedelta(minutes=40))
        code = "DLV" if arrived else dice.pick(("TRN", "HUB"))
        tracking: dict[str, object] = {"scans": dice.number(2, 9), "last": {"code": code}}
        rows.append((len(rows) + 1, order.id, carrier, shipped, promised, arrived, tracking))
    return rows


def return_rows(dice: Dice, orders: Sequence[Order]) -> list[Row]:
    rows: list[Row] = []
    for order in orders:
        for line, (_, pieces, price, _) in enumerate(order.lines, 1):
            if not order.valid or order.state != "delivered" or not dice.chance(0.15):
                continue
            state = dice.weighted((("accepted", 3), ("refunded", 5), ("rejected", 3), ("requested", 2)))
            reason = dice.weighted((("DMG", 3), ("WRG", 2), ("LAT", 2), ("SIZ", 3), ("CHG", 4)))
            back = dice.number(1, pieces)
            day = min(LAST_DAY, order.placed.date() + timedelta(dice.number(6, 30)))
            refund = money(back * price) if state in ("accepted", "refunded") else None
            rows.append((len(rows) + 1, order.id, line, back, reason, state, day, refund))
    return rows


def review_rows(dice: Dice, orders: Sequence[Order], customers: int, products: Sequence[int], count: int) -> list[Row]:
    bought = [(line[0], order.customer) for order in orders if order.valid for line in order.lines]
    rows: list[Row] = []
    for number in range(count):
        buyer = dice.chance(0.65)
        product, customer = dice.pick(bought) if buyer else (dice.pick(products), dice.number(1, customers))
        stars = dice.weighted(((5, 5), (4, 5), (3, 3), (2, 2), (1, 1))) if buyer else dice.pick((1, 5, 5))
        # Trap: verified speaks of the e-mail address, not of the purchase; NULL beside '' and blanks.
        text = dice.weighted(((None, 3), ("", 2), ("   ", 1), (dice.pick(NOTES), 8)))
        day = LAST_DAY - timedelta(dice.number(0, 800))
        rows.append((number + 1, product, customer, stars, dice.chance(0.6), text, day))
    return rows


def ticket_rows(dice: Dice, orders: Sequence[Order], count: int) -> list[Row]:
    rows: list[Row] = []
    for number in range(1, count + 1):
        order = dice.pick(orders)
        topic = dice.weighted((("delivery", 5), ("refund", 4), ("product", 4), ("account", 3), ("spam", 4)))
        opened = order.placed + timedelta(hours=dice.number(2, 400))
        opened = min(opened, datetime(2025, 6, 29, 9, 30))
        waited = dice.pick((30, 90, 200, 400, 900, 1300, 2000)) + dice.number(0, 20)
        replied = opened + timedelta(minutes=waited)
        first: Value = replied if topic != "spam" and dice.chance(0.9) else None
        closed = replied + timedelta(hours=dice.number(1, 90))
        done = closed if first and dice.chance(0.85) and closed.date() <= LAST_DAY else None
        # Trap: 4 is the most urgent, 1 the least.
        priority = dice.weighted(((1, 6), (2, 5), (3, 3), (4, 2)))
        about = order.id if topic in ("delivery", "refund", "product") else None
        rating = dice.number(1, 5) if done and dice.chance(0.5) else None
        rows.append((number, order.customer, about, topic, priority, opened, first, done, rating))
    return rows


def make() -> dict[str, list[Row]]:
    """All rows of the shop by table."""
    dice = Dice(SEED)
    categories, products, prices = make_products(dice)
    customers, campaigns = make_customers(dice, 300), make_campaigns(dice)
    orders = make_orders(dice, customers, prices, 900)
    lines: list[Row] = [
        (order.id, number, product, pieces, money(price), None if off is None else money(off))
        for order in orders
        for number, (product, pieces, price, off) in enumerate(order.lines, 1)
    ]
    return {
        "categories": categories,
        "products": products,
        "stock_levels": make_stock(dice, list(prices)),
        "customers": customers,
        "campaigns": campaigns,
        "orders": order_rows(dice, orders, campaigns),
        "order_items": lines,
        "payments": payment_rows(dice, orders),
        "shipments": shipment_rows(dice, orders),
        "returns": return_rows(dice, orders),
        "reviews": review_rows(dice, orders, len(customers), list(prices), 450),
        "support_tickets": ticket_rows(dice, orders, 260),
    }


def main(folder: Path) -> None:
    rows = make()
    for name, text in (("shop.sql", dump(rows)), ("shop_schema.txt", schema_text(rows))):
        with (folder / name).open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent)
