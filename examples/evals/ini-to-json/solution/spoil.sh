#!/bin/bash
# Takes configparser, which knows nothing of quotes, nested sections and arrays, and lowers keys.
cat > convert.py <<'PY'
import configparser
import json
import sys

parser = configparser.ConfigParser(strict=False, interpolation=None)
with open(sys.argv[1]) as file:
    parser.read_string("[DEFAULT]\n" + file.read())
made = dict(parser["DEFAULT"])
for name in parser.sections():
    made[name] = dict(parser[name])
print(json.dumps(made, indent=2))
PY
