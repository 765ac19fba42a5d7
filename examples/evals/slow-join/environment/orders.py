"""Sums of orders by customer."""


def find_customer(customers, number):
    """Return the first customer with a number, or None."""
    for customer in customers:
        if customer["number"] == number:
            return customer
    return None


def summarise(orders, customers, blocked):
    """Return [name, total, items] of each customer, in the order of first orders.

    Orders of unknown customers and of blocked addresses (without case) are left out. `items` has
    what was bought, each once, in the order of first purchases.
    """
    rows = []
    for order in orders:
        customer = find_customer(customers, order["customer"])
        if customer is None or customer["email"].lower() in [address.lower() for address in blocked]:
            continue
        for row in rows:
            if row[0] == customer["name"]:
                break
        else:
            row = [customer["name"], 0, []]
            rows.append(row)
        row[1] += order["cents"]
        for item in order["items"]:
            if item not in row[2]:
                row[2] = row[2] + [item]
    return rows
