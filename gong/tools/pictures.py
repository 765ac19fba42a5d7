"""A picture as a result: its bytes beside the tape, and words that say what it is."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from typing import TYPE_CHECKING

from tape.blocks import BlobRef, Image, Text

from .tool import ToolResult
from .truncate import format_size
from .truncation.storage import TapeStorage

if TYPE_CHECKING:
    from .tool import ToolContext

MAX_BYTES = 4_718_592
"""4.5 MB: what models take as one picture."""


async def shown_picture(path: str, data: bytes, mime: str, context: ToolContext) -> ToolResult:
    """Return the picture, or words alone where it is too large or nothing could hold it."""
    what = f"{path}: {mime}, {format_size(len(data))}"
    if len(data) > MAX_BYTES:
        limit = format_size(MAX_BYTES)
        return ToolResult.error(
            f"Cannot show {what}: over {limit}. Make it smaller with bash, then read that."
        )
    if not isinstance(context.storage, TapeStorage):
        return ToolResult.from_text(f"[Picture {what}. It can only be shown in a session.]")
    kept = await asyncio.to_thread(_temporary, data)
    await context.storage.adopt(kept)
    blob = BlobRef(hashlib.sha256(data).hexdigest(), len(data))
    return ToolResult((Text(f"[Picture {what}]"), Image(blob=blob, mime=mime)))


def _temporary(data: bytes) -> str:
    handle, path = tempfile.mkstemp(prefix="gong-picture-")
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    return path
