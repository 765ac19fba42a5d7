#!/bin/bash
# Right but for the deadline, which it looks at before a wait, not at its end.
bash "$(dirname "$0")/solve.sh"
sed -i 's/clock() + wait - start > deadline/clock() - start > deadline/' retry.py
