#!/bin/bash
# Right but for time: a record of an unknown kind does not move the clock.
bash "$(dirname "$0")/solve.sh"
sed -i 's/        time += passed/        time += passed if kind in KINDS else 0/' decode.py
