#!/bin/bash
cat > mask.py <<'PY'
"""Copies standard input to standard output, with secrets replaced."""

import re
import sys

KEYS = re.compile(rb"password|secret|token|api[_-]?key", re.IGNORECASE)
# Possessive repetitions: a long line without secrets is read once.
ADDRESS = re.compile(rb"((?<=[A-Za-z0-9+.-])://[^\s:/?#'\"@]*+:)([^\s/?#'\"]*+)")
BEARER = re.compile(rb"(authorization: (?:bearer|basic) )[^\s'\"]++", re.IGNORECASE)
NAME = re.compile(rb'(?<![A-Za-z0-9_-])([A-Za-z0-9_-]++)"?[ \t]*+[=:][ \t]*+')
VALUE = re.compile(rb'"(?:[^"\\]|\\.)*+"|[^\s,;&}]++', re.DOTALL)


def mask_address(match):
    password, at, host = match[2].rpartition(b"@")
    return match[1] + b"***@" + host if at and password else match[0]


def mask_value(value):
    if value == b'""':
        return value
    quoted = len(value) > 1 and value.startswith(b'"') and value.endswith(b'"')
    return b'"***"' if quoted else b"***"


def mask_named(line):
    """Mask one value after the other: only the value of a secret is read."""
    made, position = [], 0
    for name in NAME.finditer(line):
        if name.start() < position or not KEYS.search(name[1]):
            continue
        if value := VALUE.match(line, name.end()):
            made += (line[position : name.end()], mask_value(value[0]))
            position = value.end()
    return b"".join((*made, line[position:]))


for line in iter(sys.stdin.buffer.readline, b""):
    masked = BEARER.sub(rb"\1***", ADDRESS.sub(mask_address, line))
    sys.stdout.buffer.write(mask_named(masked))
    sys.stdout.buffer.flush()
PY
