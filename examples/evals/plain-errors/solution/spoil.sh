#!/bin/bash
# One line for everything, with the text of the exception: that says neither field nor line.
cat > invoices.py <<'PY'
"""Sums up invoices: invoices.py FILE..."""

import json
import sys

if not sys.argv[1:]:
    print("usage: invoices.py FILE...", file=sys.stderr)
    sys.exit(2)
code = 0
for name in sys.argv[1:]:
    try:
        with open(name) as file:
            invoice = json.load(file)
        total = sum(item["quantity"] * item["price"] for item in invoice["items"])
        print(f"{invoice['customer']}: {total:.2f}", flush=True)
    except Exception as error:
        print(f"{name}: {error}", file=sys.stderr)
        code = 1
sys.exit(code)
PY
