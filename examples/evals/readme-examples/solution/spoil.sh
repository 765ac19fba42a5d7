#!/bin/bash
# Corrects commands and options, but not all of the outputs, and no exit codes.
sed -i 's/--unit/--to/; s/--precision/--digits/; s/--quiet/--bare/; s/^error: parsec/units.py: unknown unit parsec/' README.md
