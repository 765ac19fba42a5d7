#!/bin/bash
# Parameters and brackets, but % and _ still match anything.
bash "$(dirname "$0")/solve.sh"
sed -i "s/(instr(lower(title), lower(?)) OR instr(lower(text), lower(?)))/(title LIKE '%' || ? || '%' OR text LIKE '%' || ? || '%')/" notes.py
