#!/bin/bash
cat > orders.py <<'PY'
"""Sums of orders by customer."""


class Items:
    """What was bought, each once, in order; those without a hash are searched one by one."""

    def __init__(self):
        self.order, self.hashed, self.others = [], set(), []

    def add(self, item):
        try:
            if item in self.hashed:
                return
            self.hashed.add(item)
        except TypeError:
            if item in self.others:
                return
            self.others.append(item)
        self.order.append(item)


def summarise(orders, customers, blocked):
    """Return [name, total, items] of each customer, in the order of first orders.

    Orders of unknown customers and of blocked addresses (without case) are left out. `items` has
    what was bought, each once, in the order of first purchases.
    """
    by_number = {}
    for customer in customers:
        by_number.setdefault(customer["number"], customer)
    addresses = {address.lower() for address in blocked}
    rows = {}
    for order in orders:
        customer = by_number.get(order["customer"])
        if customer is None or customer["email"].lower() in addresses:
            continue
        row = rows.setdefault(customer["name"], [0, Items()])
        row[0] += order["cents"]
        for item in order["items"]:
            row[1].add(item)
    return [[name, total, items.order] for name, (total, items) in rows.items()]
PY
