"""`hints`: the patterns whose hints are in a text, found by one look at it."""

from __future__ import annotations

from random import Random

from tape.masking.hints import select_patterns
from tape.masking.patterns import PATTERNS


def test_the_patterns_are_those_of_which_a_hint_is_there() -> None:
    hints = [hint for pattern in PATTERNS for hint in pattern.hints]
    random = Random(7)
    pieces = [*hints, *(hint[:3] for hint in hints), "A", " ", "-", "_"]
    for _ in range(2_000):
        text = "".join(random.choices(pieces, k=random.randrange(6))).title()
        assert select_patterns(text) == [
            pattern
            for pattern in PATTERNS
            if any(hint in text.lower() for hint in pattern.hints)
            or (not pattern.hints and pattern.expression.search(text))
        ]
