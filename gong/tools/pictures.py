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

from tape.model.entries import BlobRef, Image, Text

from ..env.wrappers import find_temporary_folder
from .limits import format_size
from .output_storage import FolderStorage, build_temporary_path
from .picture_resize import (
    MAX_PICTURE_BYTES,
    MAX_PICTURE_FILE,
    MAX_PICTURE_SIDE,
    PillowMissing,
    is_small_enough,
    read_picture_size,
    resize_picture,
)
from .tool import ToolOutcome

if TYPE_CHECKING:
    from .picture_resize import PictureSize
    from .tool import ToolContext

_MODEL_LIMITS = f"{MAX_PICTURE_SIDE}x{MAX_PICTURE_SIDE} pixels"


class PictureDetails(Struct, frozen=True):
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


async def show_picture(path: str, data: bytes, mime: str, context: ToolContext) -> ToolOutcome:
    """Return words and the picture, or only words where it is too large and stays so."""
    size, max_bytes = read_picture_size(data, mime), context.max_picture_bytes
    what = f"{path}: {_describe_picture(mime, size, data)}"
    if is_small_enough(data, size, max_bytes):
        return await _build_picture_result(
            path, f"[Picture {what}]", _ShownPicture(data, mime, size), context
        )
    try:
        resized = await asyncio.to_thread(resize_picture, data, size, max_bytes)
    except PillowMissing:
        return ToolOutcome.error(
            f"Cannot show {what}: {_describe_limits(max_bytes)}. Install what makes it smaller:"
            " pip install 'gong[images]'. Or make it smaller with bash, then read that."
        )
    except ValueError as error:
        return ToolOutcome.error(f"Cannot show {what}: {error}.")
    description = _describe_picture(resized.mime, resized.size, resized.data)
    # How places in what is shown become places of the file.
    factor = resized.original.width / resized.size.width
    scale = f" Multiply coordinates by {factor:.2f} for those of the file." if factor != 1 else ""
    caption = f"[Picture {what}, shown as {description}.{scale}]"
    return await _build_picture_result(
        path, caption, _ShownPicture(resized.data, resized.mime, resized.size), context, len(data)
    )


class _ShownPicture(NamedTuple):
    """What a model gets to see."""

    data: bytes
    mime: str
    size: PictureSize | None


async def _build_picture_result(
    path: str,
    caption: str,
    picture: _ShownPicture,
    context: ToolContext,
    original_size: int | None = None,
) -> ToolOutcome:
    data, mime, size = picture
    digest = hashlib.sha256(data).hexdigest()
    temporary = build_temporary_path(find_temporary_folder(context.env))
    # A file that has the hash as its name, or a blob on a tape.
    with TemporaryDirectory(prefix="gong-picture-") as folder:
        file = Path(folder, digest)
        await asyncio.to_thread(file.write_bytes, data)
        stored_blob = await (context.storage or FolderStorage(temporary)).adopt(str(file))
    details = PictureDetails(
        path=path,
        mime=mime,
        width=size.width if size else None,
        height=size.height if size else None,
        byte_size=len(data),
        original_size=original_size or len(data),
        resized=original_size is not None,
        kept=stored_blob,
    )
    blob = BlobRef(digest, len(data))
    return ToolOutcome((Text(caption), Image(blob=blob, mime=mime)), details)


def _describe_limits(max_bytes: int) -> str:
    if max_bytes < MAX_PICTURE_FILE:
        return f"models take {_MODEL_LIMITS}, and max_image_size is {format_size(max_bytes)}"
    return f"models take {_MODEL_LIMITS} and {format_size(MAX_PICTURE_BYTES)} in base64"


def _describe_picture(mime: str, size: PictureSize | None, data: bytes) -> str:
    pixels = f" {size.width}x{size.height}," if size else ""
    return f"{mime},{pixels} {format_size(len(data))}"
