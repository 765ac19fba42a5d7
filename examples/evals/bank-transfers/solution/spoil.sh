#!/bin/bash
# A lock that its own thread cannot take again: an audit that asks the bank hangs.
bash "$(dirname "$0")/solve.sh"
sed -i 's/threading.RLock()/threading.Lock()/' bank.py
