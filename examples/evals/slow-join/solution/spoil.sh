#!/bin/bash
# Fast, but of customers who share a number it takes the last in place of the first.
bash "$(dirname "$0")/solve.sh"
sed -i 's/by_number.setdefault(customer\["number"\], customer)/by_number[customer["number"]] = customer/' orders.py
