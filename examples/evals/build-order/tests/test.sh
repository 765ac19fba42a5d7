#!/bin/bash
# Judges the folder it is started in: the reward is 1 if every check passes, else 0.
logs=${VERIFIER_LOGS:-/logs/verifier}
mkdir -p "$logs"
if python3 "$(dirname "$0")/check.py"; then reward=1; else reward=0; fi
echo "$reward" > "$logs/reward.txt"
