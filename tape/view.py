"""The view: what of a path stands before the model, from its newest anchor on (tape.md §6).

Pure: the same path always gives the same view. `repair.py` makes sendable messages of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from msgspec import Struct

from .blocks import Content
from .entries import Anchor
from .line import Entry
from .summaries import render_summary

if TYPE_CHECKING:
    from collections.abc import Sequence

Role = Literal["system", "user", "assistant", "tool"]


class Message(Struct, frozen=True, omit_defaults=True, gc=False):
    """One message as a provider-neutral value; `call_id` and `name` stand for role "tool" only."""

    role: Role
    content: Content
    call_id: str | None = None
    name: str | None = None
    is_error: bool = False


class View(Struct, frozen=True, gc=False):
    """The part of a path a model call is built from, oldest first."""

    summary: str | None
    """Text of the newest anchor's summary; None when there is no anchor."""
    kept: tuple[Entry, ...]
    """Entries before the anchor that it keeps in view."""
    entries: tuple[Entry, ...]
    """Entries after the anchor, or of the whole path."""


def view(path: Sequence[Entry], kept: Sequence[Entry] = ()) -> View:
    """Return the view of a path given oldest first; `kept` is what its newest anchor keeps."""
    kinds = [type(entry.data) for entry in path]
    if Anchor not in kinds:
        return View(None, (), tuple(path))
    newest = len(kinds) - 1 - kinds[::-1].index(Anchor)
    anchor = cast("Anchor", path[newest].data)
    return View(render_summary(anchor.summary), tuple(kept), tuple(path[newest + 1 :]))
