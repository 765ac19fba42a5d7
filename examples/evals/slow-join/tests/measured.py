"""Measures summarise(): timing.py [DIVISOR], with a part of the data by default."""

import random
import sys
import time

from orders import summarise


def make(divisor, seed=1):
    chance = random.Random(seed)
    count = 20_000 // divisor
    customers = [
        {"number": chance.randrange(count), "name": f"customer {chance.randrange(count)}", "email": f"C{n}@x.org"}
        for n in range(count)
    ]
    orders = [
        {"customer": chance.randrange(count + 5), "cents": n, "items": [f"item {chance.randrange(9)}", n]}
        for n in range(3 * count)
    ]
    return orders, customers, [f"c{3 * n}@X.ORG" for n in range(3 * count // 2)]


if __name__ == "__main__":
    data = make(int(sys.argv[1]) if sys.argv[1:] else 100)
    start = time.perf_counter()
    summarise(*data)
    print(f"{time.perf_counter() - start:.2f} s")
