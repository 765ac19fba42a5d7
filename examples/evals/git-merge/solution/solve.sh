#!/bin/bash
set -e
git clone -q -b main work.bundle invoice
cd invoice
git config user.name Solver
git config user.email solver@example.org
git merge -q origin/currency > /dev/null || true
write_invoice() {
    cat > invoice.py <<'PY'
import argparse
import csv
import json
import sys
from decimal import ROUND_HALF_UP, Decimal


def read_lines(name):
    with open(name) as file:
        return json.load(file, parse_float=Decimal, parse_int=Decimal)


def round_amount(amount):
    return amount.quantize(Decimal("0.01"), ROUND_HALF_UP)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--currency")
    parser.add_argument("--csv", action="store_true")
    args = parser.parse_args()
    currency = (args.currency or "").upper()
    lines = [
        (line["name"], line["quantity"], round_amount(line["quantity"] * line["price"]))
        for line in read_lines(args.file)
    ]
    if args.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(["name", "quantity", "amount", "currency"])
        writer.writerows((*line, currency or "EUR") for line in lines)
        return
    suffix = f" {currency}" if currency else ""
    for name, _, amount in lines:
        print(f"{name}: {amount:.2f}{suffix}")
    print(f"total: {sum(amount for *_, amount in lines):.2f}{suffix}")


main()
PY
}
write_invoice
git commit -qam "Merge currency"
git merge -q origin/csv > /dev/null || true
write_invoice
git commit -qam "Merge csv"
