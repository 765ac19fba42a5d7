#!/bin/bash
# Right but for the time zones: it takes the hour as it is written.
bash "$(dirname "$0")/solve.sh"
sed -i 's/time.astimezone(UTC)/time/' report.py
