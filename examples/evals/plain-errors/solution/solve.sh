#!/bin/bash
cat > invoices.py <<'PY'
"""Sums up invoices: invoices.py FILE..."""

import json
import math
import os
import sys
import unicodedata


class Fault(Exception):
    """What is wrong with a file."""


def read_field(holder, name, path, kind, article):
    if name not in holder:
        raise Fault(f"the field {path} is missing")
    if not isinstance(holder[name], kind):
        raise Fault(f"the field {path} is not {article}")
    return holder[name]


def read_number(item, name, path):
    number = read_field(item, name, f"{path}.{name}", (int, float), "a number of 0 or more")
    if isinstance(number, bool) or not math.isfinite(number) or number < 0:
        raise Fault(f"the field {path}.{name} is not a number of 0 or more")
    return number


def sum_up(name):
    """Return the line of an invoice."""
    try:
        with open(name, "rb") as file:
            text = file.read().decode("utf-8")
        invoice = json.loads(text)
    except OSError as error:
        raise Fault(error.strerror) from error
    except UnicodeDecodeError as error:
        raise Fault("not UTF-8") from error
    except json.JSONDecodeError as error:
        raise Fault(f"not JSON (line {error.lineno})") from error
    except RecursionError as error:
        raise Fault("not JSON (line 1)") from error
    if not isinstance(invoice, dict):
        raise Fault("the invoice is not an object")
    customer = read_field(invoice, "customer", "customer", str, "text")
    total = 0
    for number, item in enumerate(read_field(invoice, "items", "items", list, "a list")):
        path = f"items[{number}]"
        if not isinstance(item, dict):
            raise Fault(f"the field {path} is not an object")
        quantity = read_number(item, "quantity", path)
        total += quantity * read_number(item, "price", path)
    return f"{customer}: {total:.2f}"


def main(names):
    if not names:
        print("usage: invoices.py FILE...", file=sys.stderr)
        return 2
    code = 0
    for name in names:
        try:
            print(sum_up(name), flush=True)
        except Fault as fault:
            shown = "".join("?" if unicodedata.category(char) == "Cc" else char for char in name)
            print(f"{shown}: {fault}", file=sys.stderr)
            code = 1
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
    return code


sys.exit(main(sys.argv[1:]))
PY
