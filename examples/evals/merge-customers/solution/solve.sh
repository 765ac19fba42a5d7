#!/bin/bash
cat > merge.py <<'PY'
"""Merges two lists of customers: merge.py SHOP NEWS writes customers.csv."""

import csv
import re
import sys
from datetime import datetime


def read_rows(name, delimiter):
    with open(name, encoding="utf-8-sig", newline="") as file:
        yield from csv.DictReader(file, delimiter=delimiter)


def clean_phone(text):
    number = re.sub(r"[^+\d]", "", text)
    if number.startswith("00"):
        return "+" + number[2:]
    return "+49" + number[1:] if number.startswith("0") else number


def clean_day(text):
    for form in ("%Y-%m-%d", "%d.%m.%Y"):
        try:
            return datetime.strptime(text.strip(), form).strftime("%Y-%m-%d")
        except ValueError:
            pass
    return ""


def main(shop, news):
    customers = {}
    for row in [*read_rows(shop, ","), *read_rows(news, ";")]:
        email = row["email"].strip().lower()
        if "@" not in email:
            continue
        name, phone = " ".join(row["name"].split()), clean_phone(row["phone"])
        days = [day for day in (clean_day(row["since"]),) if day]
        if old := customers.get(email):
            name = max(old[0], name, key=len)
            phone = old[1] or phone
            days += [old[2]] if old[2] else []
        customers[email] = (name, phone, min(days, default=""))
    with open("customers.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("email", "name", "phone", "since"))
        writer.writerows((email, *customers[email]) for email in sorted(customers))


main(*sys.argv[1:])
PY
