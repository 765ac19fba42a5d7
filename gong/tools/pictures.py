"""A picture as a result: words that say what it is, and its bytes beside the tape.

What is larger than models take is made smaller first, where that can be done.
"""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from tape.blocks import BlobRef, Image, Text

from .picture_size import size_of
from .resizing import MAX_BYTES, MAX_SIDE, Missing, fits, resized
from .tool import ToolResult
from .truncate import format_size
from .truncation.service import temporary_folder
from .truncation.storage import FolderStorage

if TYPE_CHECKING:
    from .picture_size import Size
    from .resizing import Resized
    from .tool import ToolContext

LIMITS = f"{MAX_SIDE}x{MAX_SIDE} pixels and {format_size(MAX_BYTES)} in base64"


class Details(Struct, frozen=True):
    """The picture that is shown; width and height in pixels, None if unknown."""

    path: str
    mime: str
    width: int | None
    height: int | None
    byte_size: int
    original_size: int
    """Bytes of the file."""
    resized: bool
    kept: str
    """Path of a file with the bytes that are shown."""


async def shown_picture(path: str, data: bytes, mime: str, context: ToolContext) -> ToolResult:
    """Return words and the picture, or only words where it is too large and stays so."""
    size = size_of(data, mime)
    what = f"{path}: {_measures(mime, size, data)}"
    if fits(data, size):
        return await _result(path, f"[Picture {what}]", _Shown(data, mime, size), context)
    try:
        made = await asyncio.to_thread(resized, data, size)
    except Missing:
        return ToolResult.error(
            f"Cannot show {what}: models take {LIMITS}. Install what makes it smaller:"
            " pip install 'gong[images]'. Or make it smaller with bash, then read that."
        )
    except ValueError as error:
        return ToolResult.error(f"Cannot show {what}: {error}.")
    said = (
        f"[Picture {what}, shown as {_measures(made.mime, made.size, made.data)}.{_factor(made)}]"
    )
    return await _result(path, said, _Shown(made.data, made.mime, made.size), context, len(data))


class _Shown(NamedTuple):
    """What a model gets to see."""

    data: bytes
    mime: str
    size: Size | None


async def _result(
    path: str, said: str, shown: _Shown, context: ToolContext, original_size: int | None = None
) -> ToolResult:
    data, mime, size = shown
    details = Details(
        path=path,
        mime=mime,
        width=size.width if size else None,
        height=size.height if size else None,
        byte_size=len(data),
        original_size=original_size or len(data),
        resized=original_size is not None,
        kept=await _kept(data, context),
    )
    blob = BlobRef(hashlib.sha256(data).hexdigest(), len(data))
    return ToolResult((Text(said), Image(blob=blob, mime=mime)), details)


def _measures(mime: str, size: Size | None, data: bytes) -> str:
    pixels = f" {size.width}x{size.height}," if size else ""
    return f"{mime},{pixels} {format_size(len(data))}"


def _factor(made: Resized) -> str:
    """Return how places in what is shown become places of the file; nothing where they are."""
    factor = made.original.width / made.size.width
    return "" if factor == 1 else f" Multiply coordinates by {factor:.2f} for those of the file."


async def _kept(data: bytes, context: ToolContext) -> str:
    """Return the path of a file with these bytes and their hash as its name: a blob on a tape."""
    storage = context.storage or FolderStorage(temporary_folder(context.env.temporary_directory))
    with TemporaryDirectory(prefix="gong-picture-") as folder:
        file = Path(folder, hashlib.sha256(data).hexdigest())
        await asyncio.to_thread(file.write_bytes, data)
        return await storage.adopt(str(file))
