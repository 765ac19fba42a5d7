"""Sums up invoices: invoices.py FILE..."""

import json
import sys

for name in sys.argv[1:]:
    invoice = json.load(open(name))
    total = 0
    for item in invoice["items"]:
        total += item["quantity"] * item["price"]
    print(f"{invoice['customer']}: {total:.2f}", flush=True)
