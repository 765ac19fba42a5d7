"""What a server answered, as the result of a tool: texts, pictures, sounds and files as blocks.

    in the answer                 for the model
    ----------------------------  ---------------------------------------------------------------
    text                          the text
    a picture models can see      words that say what it is, and the picture
    a sound, another file         words that say what it is and where it was saved; a sound, too
    a resource with text          its address and its text
    a link to a resource          its address, name and description
    only `structuredContent`      that as JSON

`structuredContent` and `_meta` are in the details, for people and programs.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import mcp_types as types
from msgspec import Struct

from tape.model.entries import Audio, BlobRef, Text

from ..llm.picture_sources import detect_picture_type
from ..tools.limits import format_size
from ..tools.output_storage import FolderStorage, build_temporary_path
from ..tools.pictures import show_picture
from ..tools.tool import ToolOutcome

if TYPE_CHECKING:
    from tape.model.entries import Block

    from ..tools.tool import ToolContext


class McpDetails(Struct, frozen=True, omit_defaults=True):
    """Which tool of which server answered, and what only programs read of the answer."""

    server: str
    tool: str
    structured: Any = None
    """Its `structuredContent`: any JSON; null where there is none."""
    meta: dict[str, Any] = {}


async def build_outcome(
    server: str, tool: str, result: types.CallToolResult, context: ToolContext
) -> ToolOutcome:
    """Return the result of a call as the model gets it."""
    blocks: list[Block] = []
    for one in result.content:
        blocks += await _build_blocks(f"{server} {tool}", one, context)
    if not blocks and result.structured_content is not None:
        blocks.append(Text(json.dumps(result.structured_content, ensure_ascii=False)))
    if not blocks:
        blocks.append(Text(f"{tool} {'failed' if result.is_error else 'answered'} without words."))
    details = McpDetails(server, tool, result.structured_content, result.meta or {})
    # Texts are read as one, so each ends its line before the next
    last = max((at for at, one in enumerate(blocks) if isinstance(one, Text)), default=-1)
    spaced = tuple(
        Text(f"{one.text}\n")
        if isinstance(one, Text) and at < last and not one.text.endswith("\n")
        else one
        for at, one in enumerate(blocks)
    )
    return ToolOutcome(spaced, details, is_error=result.is_error is True)


async def _build_blocks(
    source: str, content: types.ContentBlock, context: ToolContext
) -> tuple[Block, ...]:
    match content:
        case types.TextContent(text=text):
            return (Text(text),)
        case types.ImageContent(data=data, mime_type=mime):
            return await _build_media(f"picture of {source}", data, mime, context)
        case types.AudioContent(data=data, mime_type=mime):
            return await _build_media(f"sound of {source}", data, mime, context)
        case types.ResourceLink(uri=uri, name=name, description=about, mime_type=mime):
            kind = f", {mime}" if mime else ""
            said = f": {about}" if about else ""
            return (Text(f"[Resource {uri} ({name}{kind}){said}]"),)
        case types.EmbeddedResource(resource=resource):
            return await build_resource_blocks(resource, context)


async def build_resource_blocks(
    resource: types.TextResourceContents | types.BlobResourceContents, context: ToolContext
) -> tuple[Block, ...]:
    """Return a resource as blocks: its address, and what is in it."""
    if isinstance(resource, types.TextResourceContents):
        return (Text(f"[Resource {resource.uri}]\n{resource.text}"),)
    mime = resource.mime_type or "application/octet-stream"
    return await _build_media(f"resource {resource.uri}", resource.blob, mime, context)


async def _build_media(
    what: str, encoded: str, mime: str, context: ToolContext
) -> tuple[Block, ...]:
    """Return bytes as blocks; what no model can look at is saved, and the words say where."""
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return (Text(f"[The {what} is not base64: {mime}]"),)
    seen = detect_picture_type(data)
    if seen is not None:
        return (await show_picture(what, data, seen, context)).content
    blob, path = await _save_bytes(data, context)
    words = Text(f"[The {what}: {mime}, {format_size(len(data))}, saved to {path}]")
    if mime.startswith("audio/"):
        return (words, Audio(blob=blob, mime=mime))
    return (words,)


async def _save_bytes(data: bytes, context: ToolContext) -> tuple[BlobRef, str]:
    """Keep bytes beside the tape; return their blob and the path of a file with them."""
    digest = hashlib.sha256(data).hexdigest()
    storage = context.storage or FolderStorage(
        build_temporary_path(context.env.temporary_directory)
    )
    with TemporaryDirectory(prefix="gong-mcp-") as folder:
        file = Path(folder, digest)  # the name that a folder of outputs keeps
        await asyncio.to_thread(file.write_bytes, data)
        path = await storage.adopt(str(file))
    return BlobRef(digest, len(data)), path
