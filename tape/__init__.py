"""tape: an event-sourced store for coding-agent sessions.

    from tape import Beginning, Text, User, open_store

    store, index = open_store(path)
    with store.create(Beginning(cwd="/src", program="me/1")) as tape, tape.writer() as writer:
        writer.append(User((Text("Hello"),)))

Names load when they are first used, so that the command line starts fast.
"""

from __future__ import annotations

TYPE_CHECKING = False  # the module that has this name takes a tenth of the time of `tape ls`
if TYPE_CHECKING:
    from .context.repair import Repaired
    from .context.view import Message, Target, View
    from .errors import (
        Ambiguous,
        Busy,
        Damaged,
        InvalidEntry,
        InvalidName,
        NewerFormat,
        NotFound,
        OlderFormat,
        Overtaken,
        TapeError,
        UsageError,
        WriteFailed,
    )
    from .history.follow import Follower, Gained, Moved
    from .index.library import Library, open_store
    from .index.projection import Index
    from .index.records import TapeRow
    from .model.entries import (
        Anchor,
        Assistant,
        Block,
        Content,
        Context,
        Note,
        Payload,
        Summary,
        Text,
        Thinking,
        ToolCall,
        ToolResult,
        ToolStart,
        Usage,
        User,
    )
    from .model.line import Entry
    from .store.refs import Head
    from .store.store import Beginning, Store
    from .store.tape import Hit, Tape
    from .store.writer import Writer

__version__ = "0.1.0"

__all__ = [
    "Ambiguous",
    "Anchor",
    "Assistant",
    "Beginning",
    "Block",
    "Busy",
    "Content",
    "Context",
    "Damaged",
    "Entry",
    "Follower",
    "Gained",
    "Head",
    "Hit",
    "Index",
    "InvalidEntry",
    "InvalidName",
    "Library",
    "Message",
    "Moved",
    "NewerFormat",
    "NotFound",
    "Note",
    "OlderFormat",
    "Overtaken",
    "Payload",
    "Repaired",
    "Store",
    "Summary",
    "Tape",
    "TapeError",
    "TapeRow",
    "Target",
    "Text",
    "Thinking",
    "ToolCall",
    "ToolResult",
    "ToolStart",
    "Usage",
    "UsageError",
    "User",
    "View",
    "WriteFailed",
    "Writer",
    "open_store",
]

_ROOM = {
    "Ambiguous": "errors",
    "Anchor": "entries",
    "Assistant": "entries",
    "Beginning": "store",
    "Block": "blocks",
    "Busy": "errors",
    "Content": "blocks",
    "Context": "entries",
    "Damaged": "errors",
    "Entry": "line",
    "Follower": "follow",
    "Gained": "follow",
    "Head": "branches",
    "Hit": "tape",
    "Index": "index",
    "InvalidEntry": "errors",
    "InvalidName": "errors",
    "Library": "index",
    "Message": "view",
    "Moved": "follow",
    "NewerFormat": "errors",
    "NotFound": "errors",
    "Note": "entries",
    "OlderFormat": "errors",
    "Overtaken": "errors",
    "Payload": "entries",
    "Repaired": "repair",
    "Store": "store",
    "Summary": "entries",
    "Tape": "tape",
    "TapeError": "errors",
    "TapeRow": "index",
    "Target": "repair",
    "Text": "blocks",
    "Thinking": "blocks",
    "ToolCall": "blocks",
    "ToolResult": "entries",
    "ToolStart": "entries",
    "Usage": "entries",
    "UsageError": "errors",
    "User": "entries",
    "View": "view",
    "WriteFailed": "errors",
    "Writer": "writer",
    "open_store": "index",
}


def __getattr__(name: str) -> object:
    """Load the room of a public name on first use."""
    room = _ROOM.get(name)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 (the command line needs no public name)

    value = globals()[name] = getattr(import_module(f".{room}", __name__), name)
    return value
