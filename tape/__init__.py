"""tape: an event-sourced store for coding-agent sessions.

    from tape import Beginning, Text, User, open_store

    store, index = open_store(path)
    with store.create(Beginning(cwd="/src", program="me/1")) as tape, tape.writer() as writer:
        writer.append(User((Text("Hello"),)))

Names load when they are first used, so that the command line starts fast.
"""

from __future__ import annotations

from .version import __version__ as __version__

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
    from .index.library import Library
    from .index.projection import Index
    from .index.reader import TapeRow
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
    from .remote.opening import open_store
    from .store.key_values import KeyValues
    from .store.refs import Head
    from .store.store import Beginning, Store
    from .store.tape import Hit, Tape
    from .store.writer import Writer

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
    "KeyValues",
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
    "Anchor": "model.entries",
    "Assistant": "model.entries",
    "Beginning": "store.store",
    "Block": "model.entries",
    "Busy": "errors",
    "Content": "model.entries",
    "Context": "model.entries",
    "Damaged": "errors",
    "Entry": "model.line",
    "Follower": "history.follow",
    "Gained": "history.follow",
    "Head": "store.refs",
    "Hit": "store.tape",
    "Index": "index.projection",
    "InvalidEntry": "errors",
    "InvalidName": "errors",
    "KeyValues": "store.key_values",
    "Library": "index.library",
    "Message": "context.view",
    "Moved": "history.follow",
    "NewerFormat": "errors",
    "NotFound": "errors",
    "Note": "model.entries",
    "OlderFormat": "errors",
    "Overtaken": "errors",
    "Payload": "model.entries",
    "Repaired": "context.repair",
    "Store": "store.store",
    "Summary": "model.entries",
    "Tape": "store.tape",
    "TapeError": "errors",
    "TapeRow": "index.reader",
    "Target": "context.view",
    "Text": "model.entries",
    "Thinking": "model.entries",
    "ToolCall": "model.entries",
    "ToolResult": "model.entries",
    "ToolStart": "model.entries",
    "Usage": "model.entries",
    "UsageError": "errors",
    "User": "model.entries",
    "View": "context.view",
    "WriteFailed": "errors",
    "Writer": "store.writer",
    "open_store": "remote.opening",
}


def __getattr__(name: str) -> object:
    """Load the room of a public name on first use."""
    room = _ROOM.get(name)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 (the command line needs no public name)

    value = globals()[name] = getattr(import_module(f".{room}", __name__), name)
    return value
