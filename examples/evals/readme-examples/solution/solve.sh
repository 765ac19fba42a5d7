#!/bin/bash
python3 - <<'PY'
from pathlib import Path

file = Path("README.md")
text = file.read_text()
for old, new in {
    "3500 m": "3500.00 m",
    "--unit cm --precision 0": "--to cm --digits 0",
    "183cm": "183 cm",
    "--quiet --precision 0": "--bare --digits 0",
    "km --quiet": "km --bare",
    "error: parsec": "units.py: unknown unit parsec",
    "| `--unit` | chooses the unit of the result |": "| `--to` | chooses the unit of the result |\n| `--digits` | sets the decimals of the result |",
    "| `--quiet` |": "| `--bare` |",
    "`0`, or `1` for anything that goes wrong": "`0`; `2` for wrong usage, `3` for an unknown unit and `4` for a value without a number",
}.items():
    text = text.replace(old, new)
file.write_text(text)
PY
