#!/bin/bash
# Takes the other side in every conflict, so that only the last branch works.
set -e
git clone -q -b main work.bundle invoice
cd invoice
git config user.name Solver
git config user.email solver@example.org
git merge -q -X theirs -m "Merge currency" origin/currency
git merge -q -X theirs -m "Merge csv" origin/csv
