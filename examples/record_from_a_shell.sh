#!/bin/sh
# Record from any language through `tape append`: JSON lines in, one id per line out.
# Run it with a folder for the store: sh examples/record_from_a_shell.sh /tmp/tapes
set -eu
TAPE_HOME=$1
export TAPE_HOME

tape=$(tape new --title "Deploy")
tape append "$tape" <<'LINES'
{"type": "user", "data": {"content": [{"type": "text", "text": "Deploy it."}]}}
{"type": "note", "data": {"text": "deployed by hand"}}
LINES
tape log "$tape" --oneline
