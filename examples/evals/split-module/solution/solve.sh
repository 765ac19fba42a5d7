#!/bin/bash
set -e
mkdir shop
cat > split.py <<'PY'
import re
from pathlib import Path

text = Path("shop.py").read_text()
part = lambda start, end: text[text.index(start) : text.index(end)].rstrip() + "\n"
prices, stock = part("VAT =", "class Empty"), part("class Empty", "@dataclass")
orders = part("@dataclass", "if __name__")
Path("shop/prices.py").write_text('"""Prices and tax."""\n\n' + prices)
Path("shop/stock.py").write_text('"""What is there."""\n\n\n' + stock)
Path("shop/orders.py").write_text(
    '"""Orders of customers."""\n\nfrom dataclasses import dataclass, field\n\n'
    "from .prices import gross\nfrom .stock import Empty\n\n\n" + orders
)
PY
python3 split.py
rm split.py shop.py
cat > shop/__init__.py <<'PY'
"""A small shop; its modules are loaded when a name of them is used."""

import importlib
import sys
from types import ModuleType

_HOMES = {
    "VAT": "prices", "net": "prices", "gross": "prices",
    "Stock": "stock", "Empty": "stock",
    "Order": "orders", "place_order": "orders",
}


class _Shop(ModuleType):
    """The tax is that of `prices`, wherever it is read or changed."""

    def __getattr__(self, name):
        if name not in _HOMES:
            raise AttributeError(f"module 'shop' has no attribute {name!r}")
        return getattr(importlib.import_module(f"shop.{_HOMES[name]}"), name)

    def __setattr__(self, name, value):
        if name == "VAT":
            importlib.import_module("shop.prices").VAT = value
        else:
            super().__setattr__(name, value)

    def __dir__(self):
        return [*super().__dir__(), *_HOMES]


sys.modules[__name__].__class__ = _Shop
PY
cat > shop/__main__.py <<'PY'
"""Prints the price of a quantity with tax: python3 -m shop QUANTITY CENTS."""

import sys

from .prices import gross

print(gross(int(sys.argv[2]), int(sys.argv[1])))
PY
