#!/bin/bash
# Copies the names into the package when it is imported: all is loaded, and the tax stays as it was.
bash "$(dirname "$0")/solve.sh"
cat > shop/__init__.py <<'PY'
"""A small shop."""

from .orders import Order, place_order
from .prices import VAT, gross, net
from .stock import Empty, Stock
PY
