"""Which patterns may match in a text: those of which a hint is in it; pure.

Hints are looked for together, by one expression that reads the text once. It finds the shortest of
those that hold one another, and only where that is, the longer ones are looked for.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from .patterns import PATTERNS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .patterns import SecretPattern

    Letters = dict[str, "Letters"]


class _Hints(NamedTuple):
    """The hints of all patterns, prepared."""

    cores: re.Pattern[str]
    """Finds each place of a hint that holds no other one."""
    numbers: dict[str, tuple[tuple[str, int], ...]]
    """Such a hint → the hints that hold it, each with the number of its pattern."""
    others: tuple[int, ...]
    """The numbers of patterns without hints."""


def select_patterns(text: str) -> list[SecretPattern]:
    """Return the patterns that can match in a text or in JSON, in their order."""
    hints, lower = _prepare_hints(), text.lower()
    chosen = {number for number in hints.others if PATTERNS[number].expression.search(text)}
    for core in {*hints.cores.findall(lower)}:
        chosen.update(number for hint, number in hints.numbers[core] if hint in lower)
    return [PATTERNS[number] for number in sorted(chosen)]


@cache
def _prepare_hints() -> _Hints:
    pairs = [(hint, number) for number, pattern in enumerate(PATTERNS) for hint in pattern.hints]
    words = {hint for hint, _ in pairs}
    cores = {hint for hint in words if not any(word in hint for word in words - {hint})}
    numbers = {core: tuple(pair for pair in pairs if core in pair[0]) for core in cores}
    others = tuple(number for number, pattern in enumerate(PATTERNS) if not pattern.hints)
    return _Hints(re.compile(f"(?=({_build_expression(cores)}))"), numbers, others)


def _build_expression(words: Iterable[str]) -> str:
    """Return an expression for words of which none begins another, each letter looked at once."""
    tree: Letters = {}
    for word in words:
        node = tree
        for letter in word:
            node = node.setdefault(letter, {})
    return _build_branches(tree)


def _build_branches(tree: Letters) -> str:
    branches = [re.escape(letter) + _build_branches(rest) for letter, rest in sorted(tree.items())]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})" if branches else ""
