#!/bin/bash
# Right but for the rule about two restricted day fields: it wants both to match.
bash "$(dirname "$0")/solve.sh"
sed -i 's/(any(found) if either else all(found))/all(found)/' cron.py
