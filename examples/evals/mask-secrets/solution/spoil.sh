#!/bin/bash
# The usual expressions: values in quotes are cut at blanks, and the first @ ends a password.
cat > mask.py <<'PY'
import re
import sys

for line in iter(sys.stdin.buffer.readline, b""):
    line = re.sub(rb"(://[^:/@\s]*:)[^@\s]*@", rb"\1***@", line)
    line = re.sub(rb"(?i)(authorization: (?:bearer|basic) )[^\s'\"]+", rb"\1***", line)
    line = re.sub(rb'(?i)((?:password|secret|token|api[_-]?key)"?\s*[=:]\s*"?)[^\s",;&}]+', rb"\1***", line)
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
PY
