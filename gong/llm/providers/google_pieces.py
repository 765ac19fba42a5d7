"""Arguments of a call that come bit by bit, each with the JSON path of its place: pure.

Hosts of the Gemini wire may cut arguments up; the Gemini API itself sends them whole.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .values import WireObject

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[(['\"])(.*?)\3\]")
_VALUES = ("stringValue", "numberValue", "boolValue")


class Pieces:
    """Puts the arguments of one call together."""

    def __init__(self) -> None:
        self.args: WireObject = {}
        self._growing = ""
        """Path of the text that goes on."""

    def take(self, piece: WireObject) -> None:
        """Put a piece in its place; raises ValueError or TypeError for one that has none."""
        path = str(piece["jsonPath"])
        value = next((piece[name] for name in _VALUES if piece.get(name) is not None), None)
        steps = _steps(path)
        inside, last = self.args, steps[-1]
        for step, following in pairwise(steps):
            inside = _entered(inside, step, following)
        if path == self._growing:
            value = _at(inside, last) + (value or "")
        _put(inside, last, value)
        self._growing = path if piece.get("willContinue") else ""


def _steps(path: str) -> list[str | int]:
    """Return the names and indices of a path such as $.edits[0].text."""
    found = list(_STEP.finditer(path, 1))
    if not found or "$" + "".join(one[0] for one in found) != path:
        raise ValueError(f"no path: {path!r}")
    return [int(one[2]) if one[2] else one[1] or one[4] for one in found]


def _entered(inside: Any, step: str | int, following: str | int) -> Any:
    """Return what is at a step, made where it is not yet there."""
    if _at(inside, step) is None:
        _put(inside, step, [] if isinstance(following, int) else {})
    return _at(inside, step)


def _at(inside: Any, step: str | int) -> Any:
    if isinstance(inside, dict):
        return inside.get(step)
    return inside[step] if isinstance(step, int) and step < len(inside) else None


def _put(inside: Any, step: str | int, value: Any) -> None:
    """Set a field or an item; a list grows by one item at most."""
    if isinstance(inside, list) and step == len(inside):
        inside.append(value)
    elif isinstance(inside, list) == isinstance(step, int):
        inside[step] = value
    else:
        raise TypeError(f"{step!r} has no place in {inside!r}")
