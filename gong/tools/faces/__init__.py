"""Tool variants: the tools with the names and arguments that model families are used to.

Each variant is thin: the tool of the default profile does the work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..settings import Tuning
from ..shell import shell
from .changing import changing
from .limits import limits_for
from .listing import listing
from .reading import reading
from .searching import searching

if TYPE_CHECKING:
    from ..tool import Tool


def faces(tuning: Tuning = Tuning()) -> tuple[Tool, ...]:  # noqa: B008 (a frozen value)
    """Return all tool variants with their settings, by name."""
    return (
        *reading(tuning),
        *changing(tuning),
        *searching(tuning),
        *listing(tuning),
        shell(limits=limits_for("shell", tuning), tuning=tuning),
    )


FACES = faces()
"""All tool variants with default settings."""
