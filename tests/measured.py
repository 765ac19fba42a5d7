"""Which share of the statements the tests run, against what is wanted: the end of `make coverage`.

Commands that tests start count, too, where they are given `MEASURED` with their environment.
"""

from __future__ import annotations

import io
import os
import sys
from typing import NamedTuple

MEASURED = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
"""What a process of a test needs in its environment to be counted: nothing in a usual run."""


class Goal(NamedTuple):
    """A part of the code, and how many percent of its statements must be run."""

    name: str
    include: tuple[str, ...]
    omit: tuple[str, ...]
    percent: int


TERMINAL = ("gong/repl/*", "gong/cli/*")
GOALS = (
    Goal("store", ("tape/*",), (), 80),
    Goal("engine", ("gong/*",), TERMINAL, 80),
    Goal("terminal", TERMINAL, (), 60),
)


def main() -> int:
    """Print the share of each part; return 1 where one is below its goal."""
    from coverage import Coverage  # the tests that start commands do without

    measured = Coverage()
    measured.load()
    missed = 0
    for goal in GOALS:
        found = measured.report(include=goal.include, omit=goal.omit or None, file=io.StringIO())
        print(f"coverage of the {goal.name}: {found:.1f} % ({goal.percent} % wanted)")
        missed += found < goal.percent
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
