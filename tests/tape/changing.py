"""Sessions whose calls changed files, for tests of what shows them."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING

from msgspec import Raw

from tape.model.entries import Assistant, ChangedFile, Text, ToolCall, ToolResult, ToolStart

if TYPE_CHECKING:
    from tape.store.tape import Tape
    from tape.store.writer import Writer

REGULAR = "100644"


class Session:
    """Calls and their results, one after the other."""

    def __init__(self, tape: Tape, writer: Writer) -> None:
        self.tape, self.writer = tape, writer
        self.calls = 0

    def change(
        self,
        path: str,
        before: bytes | None,
        after: bytes | None,
        *,
        source: str | None = None,
        modes: tuple[str, str] = (REGULAR, REGULAR),
    ) -> ChangedFile:
        """Return what became of a file, with its bytes stored."""
        blobs = [None if data is None else self.tape.blobs.put(data) for data in (before, after)]
        op = "modified"
        if before is None:
            op = "created"
        elif after is None:
            op = "deleted"
        elif source is not None:
            op = "renamed"
        elif before == after:
            op = "mode"
        return ChangedFile(
            path,
            op,
            source,
            before=None if before is None else sha256(before).hexdigest(),
            after=None if after is None else sha256(after).hexdigest(),
            before_mode=None if before is None else modes[0],
            mode=None if after is None else modes[1],
            before_blob=blobs[0],
            after_blob=blobs[1],
        )

    def run(
        self,
        name: str,
        args: object,
        *files: ChangedFile,
        text: str = "done",
        said: str = "",
        is_error: bool = False,
    ) -> str:
        """Record a call and its result; return the id of the result's entry."""
        self.calls += 1
        call = f"c_00000000_{self.calls}"
        block = (
            ToolCall(id=call, name=name, args_text=args)
            if isinstance(args, str)
            else ToolCall(id=call, name=name, args=Raw(json.dumps(args).encode()))
        )
        self.writer.append(
            Assistant((*((Text(said),) if said else ()), block), stop_reason="tool_calls")
        )
        self.writer.append(ToolStart(call, name))
        result = ToolResult(call, name, (Text(text),), is_error=is_error, files=files)
        return self.writer.append(result).id
