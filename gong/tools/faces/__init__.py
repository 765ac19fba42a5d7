"""The tools under the names and with the arguments that model families are used to.

Each is a thin face: what it does is done by the tool of the default profile.
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
    """Return every face as it is set, each by its own name."""
    return (
        *reading(tuning),
        *changing(tuning),
        *searching(tuning),
        *listing(tuning),
        shell(limits=limits_for("shell", tuning), tuning=tuning),
    )


FACES = faces()
"""Every face as it comes."""
