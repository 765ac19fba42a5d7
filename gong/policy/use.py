"""One program with its arguments and what is around it: what every check looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .expansion import Arguments
    from .places import Places


@dataclass(frozen=True, slots=True)
class Use:
    """One program with its arguments, and what is around it."""

    name: str
    """In lower case, without its folder; empty when an expansion decides it."""
    arguments: Arguments
    places: Places
    before: tuple[Use, ...] = ()
    """What its pipeline runs before it."""
    inside: tuple[Use, ...] = ()
    """What the substitutions among its arguments run."""
    given: tuple[str, ...] = ()
    """Texts it may read from standard input, as far as they are known."""
    read: Arguments = ()
    """Files that are redirected into it."""
