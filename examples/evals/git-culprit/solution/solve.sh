#!/bin/bash
set -e
git clone -q -b main history.bundle shop
cd shop
git config user.name Solver
git config user.email solver@example.org
git bisect start main "$(git rev-list --max-parents=0 main)" > /dev/null
git bisect run sh -c 'test "$(python3 -B price.py 3 250)" = 750' > /dev/null
culprit=$(git rev-parse refs/bisect/bad)
git bisect reset > /dev/null 2>&1
git log -1 --format=%s "$culprit" > ../culprit.txt
git revert --no-edit "$culprit" > /dev/null
