#!/bin/bash
# Blames the last change of the file, and puts the whole file back to what it was at first.
set -e
git clone -q -b main history.bundle shop
cd shop
git log -1 --format=%s -- rates.py > ../culprit.txt
git checkout -q "$(git rev-list --max-parents=0 main)" -- rates.py
git -c user.name=Solver -c user.email=solver@example.org commit -qm "Put the discount back"
