#!/bin/bash
# Usage: backup.sh SOURCE TARGET
set -e
mkdir -p $2
n=0
for f in `cd $1; find . -type f -name "[!.]*"`; do
    if [ $1/$f -nt $2/$f ]; then
        mkdir -p `dirname $2/$f`
        cp $1/$f $2/$f
        n=$((n + 1))
    fi
done
echo copied $n
