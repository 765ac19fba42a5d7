"""Converts lengths."""

import argparse
import sys

METRES = {"mm": 0.001, "cm": 0.01, "m": 1.0, "km": 1000.0, "in": 0.0254, "ft": 0.3048, "mi": 1609.344}


def main():
    parser = argparse.ArgumentParser(prog="units.py")
    parser.add_argument("value", help="a number with a unit, as 3.5km")
    parser.add_argument("--to", default="m", metavar="UNIT", help="the unit of the result (m)")
    parser.add_argument("--digits", type=int, default=2, help="decimals of the result (2)")
    parser.add_argument("--bare", action="store_true", help="print the number without its unit")
    args = parser.parse_args()
    number = args.value.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = args.value[len(number) :] or "m"
    if unit not in METRES or args.to not in METRES:
        print(f"units.py: unknown unit {unit if unit not in METRES else args.to}", file=sys.stderr)
        sys.exit(3)
    try:
        result = float(number) * METRES[unit] / METRES[args.to]
    except ValueError:
        print(f"units.py: {number!r} is no number", file=sys.stderr)
        sys.exit(4)
    print(f"{result:.{args.digits}f}" + ("" if args.bare else f" {args.to}"))


if __name__ == "__main__":
    main()
