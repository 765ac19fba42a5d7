#!/bin/bash
# Renames one by one, so that a photo whose name is taken keeps its old one.
bash "$(dirname "$0")/solve.sh"
sed -i '/renaming/d' rename.sh
echo 'for i in "${!old[@]}"; do mv -n -- "./${old[i]}" "./${new[i]}"; done' >> rename.sh
