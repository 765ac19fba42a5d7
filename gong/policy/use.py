"""One program with its arguments and what is around it: what every check looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .expansion import Arguments
    from .places import PathContext


@dataclass(frozen=True, slots=True)
class Invocation:
    """One program with its arguments, and what is around it."""

    name: str
    """In lower case, without its folder; empty when an expansion decides it."""
    arguments: Arguments
    places: PathContext
    before: tuple[Invocation, ...] = ()
    """What its pipeline runs before it."""
    inside: tuple[Invocation, ...] = ()
    """What the substitutions among its arguments run."""
    given: tuple[str, ...] = ()
    """Texts it may read from standard input, as far as they are known."""
    read: Arguments = ()
    """Files that are redirected into it."""
