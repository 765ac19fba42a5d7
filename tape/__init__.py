"""tape: an event-sourced store for coding-agent sessions.

    from tape import Beginning, Text, User, open_store

    store, index = open_store(path)
    with store.create(Beginning(cwd="/work", program="me/1")) as tape, tape.writer() as writer:
        writer.append(User((Text("Hello"),)))

Names load when they are first used, so that the command line starts fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .blocks import Block, Content, Text, Thinking, ToolCall
    from .branches import Head
    from .entries import Assistant, Context, Note, Payload, ToolResult, ToolStart, Usage, User
    from .errors import (
        Ambiguous,
        Busy,
        Damaged,
        InvalidEntry,
        InvalidName,
        NewerFormat,
        NotFound,
        Overtaken,
        TapeError,
        UsageError,
        WriteFailed,
    )
    from .index import Index, Library, TapeRow, open_store
    from .line import Entry
    from .repair import Repaired, Target
    from .store import Beginning, Store
    from .tape import Tape
    from .view import Message, View
    from .writer import Writer

_ROOMS = {
    "blocks": ("Block", "Content", "Text", "Thinking", "ToolCall"),
    "branches": ("Head",),
    "entries": (
        "Assistant",
        "Context",
        "Note",
        "Payload",
        "ToolResult",
        "ToolStart",
        "Usage",
        "User",
    ),
    "errors": (
        "Ambiguous",
        "Busy",
        "Damaged",
        "InvalidEntry",
        "InvalidName",
        "NewerFormat",
        "NotFound",
        "Overtaken",
        "TapeError",
        "UsageError",
        "WriteFailed",
    ),
    "index": ("Index", "Library", "TapeRow", "open_store"),
    "line": ("Entry",),
    "repair": ("Repaired", "Target"),
    "store": ("Beginning", "Store"),
    "tape": ("Tape",),
    "view": ("Message", "View"),
    "writer": ("Writer",),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}
__all__ = [*sorted(_ROOM_OF), "__version__"]  # noqa: PLE0604 (the names above)


def __getattr__(name: str) -> object:
    """Load the room of a public name on first use."""
    room = _ROOM_OF.get(name)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{room}", __name__), name)
    globals()[name] = value
    return value
