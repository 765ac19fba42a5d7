"""The view: what of a path stands before the model, from its newest anchor on (tape.md §6).

Pure: the same path always gives the same view. `repair.py` makes sendable messages of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from .blocks import Content
from .entries import Anchor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .line import Entry

Role = Literal["system", "user", "assistant", "tool"]


class Message(Struct, frozen=True, omit_defaults=True, gc=False):
    """One message as a provider-neutral value; `call_id` and `name` stand for role "tool" only."""

    role: Role
    content: Content
    call_id: str | None = None
    name: str | None = None
    is_error: bool = False


class View(Struct, frozen=True, gc=False):
    """The part of a path a model call is built from: oldest first, whole entries."""

    anchor: Anchor | None
    kept: tuple[Entry, ...]
    entries: tuple[Entry, ...]
