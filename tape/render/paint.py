"""What a line of a call or of a change is, to colour it; how it looks is the caller's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

Kind = Literal["command", "call", "header", "hunk", "added", "removed", "note"]
"""What a line is."""

Paint = Callable[[Kind, str], str]
"""Returns a line in the colours of its kind."""


def leave_plain(_: Kind, text: str) -> str:
    """Return a line as it is: the `paint` of pipes and files."""
    return text
