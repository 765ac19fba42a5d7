"""A small shop."""

import sys
from dataclasses import dataclass, field

VAT = 19


def net(cents, quantity=1):
    """Return the price of a quantity without tax."""
    return cents * quantity


def gross(cents, quantity=1):
    """Return the price of a quantity with tax, rounded down to a cent."""
    return net(cents, quantity) * (100 + VAT) // 100


class Empty(Exception):
    """Too little is there."""


class Stock:
    """How many of each product are there."""

    def __init__(self, **counts):
        self.counts = counts

    def take(self, name, quantity):
        if self.counts.get(name, 0) < quantity:
            raise Empty(name)
        self.counts[name] -= quantity


@dataclass
class Order:
    """What somebody bought: (name, quantity, cents) each."""

    customer: str
    lines: list = field(default_factory=list)

    def total(self):
        return sum(gross(cents, quantity) for _, quantity, cents in self.lines)


def place_order(stock, order):
    """Take everything from the stock, or nothing; return the total."""
    taken = []
    try:
        for name, quantity, _ in order.lines:
            stock.take(name, quantity)
            taken.append((name, quantity))
    except Empty:
        for name, quantity in taken:
            stock.counts[name] += quantity
        raise
    return order.total()


if __name__ == "__main__":
    print(gross(int(sys.argv[2]), int(sys.argv[1])))
