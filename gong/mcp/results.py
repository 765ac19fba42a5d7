"""What a server answered, as the result of a tool: texts, pictures, sounds and files as blocks.

    in the answer                 for the model
    ----------------------------  ---------------------------------------------------------------
    text                          the text
    a picture models can see      words that say what it is, and the picture
    a sound, another file         words that say what it is and where it was saved; a sound, too
    a resource with text          its address and its text
    a link to a resource          its address, name and description
    `structuredContent`           that as JSON, where no text says the same
    one that is not as the tool   what there is, and what is wrong
    said it would be

`structuredContent` and `_meta` are in the details, too, for people and programs.
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

from ..env.wrappers import find_temporary_folder
from ..llm.picture_sources import detect_picture_type
from ..tools.limits import format_size
from ..tools.output_storage import FolderStorage, build_temporary_path
from ..tools.pictures import show_picture
from ..tools.tool import ToolOutcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tape.model.entries import Block

    from ..tools.tool import ToolContext

_MAX_FAULT = 500
"""Characters of what is wrong with a result."""


class McpDetails(Struct, frozen=True, omit_defaults=True):
    """Which tool of which server answered, and what only programs read of the answer."""

    server: str
    tool: str
    structured: Any = None
    """Its `structuredContent`: any JSON; null where there is none."""
    meta: dict[str, Any] = {}


def describe_unfit_result(result: types.CallToolResult, schema: Any) -> str:
    """Return how a result differs from the schema that its tool named; empty where it does not."""
    if schema is None or result.is_error:
        return ""
    if result.structured_content is None and "structured_content" not in result.model_fields_set:
        return "[The tool has an output schema but did not return structured content]"
    from jsonschema.exceptions import SchemaError, best_match  # it loads slowly
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    judge = validator_for(schema)
    try:
        judge.check_schema(schema)
        fault = best_match(
            judge(schema, registry=Registry()).iter_errors(result.structured_content)
        )
    except (SchemaError, Unresolvable, RecursionError):
        return ""  # a schema that says nothing about the result
    if fault is None:
        return ""
    where = ".".join(str(step) for step in fault.absolute_path)
    fault_text = (
        fault.message if len(fault.message) <= _MAX_FAULT else f"{fault.message[:_MAX_FAULT]}…"
    )
    return (
        f"[Not as the output schema of the tool says: {where}{': ' if where else ''}{fault_text}]"
    )


async def build_outcome(
    server: str, tool: str, result: types.CallToolResult, context: ToolContext, remark: str = ""
) -> ToolOutcome:
    """Return the result of a call as the model gets it; a remark about it is at its end."""
    blocks: list[Block] = []
    for content in result.content:
        blocks += await _build_blocks(f"{server} {tool}", content, context)
    structured = result.structured_content
    if structured is not None and not _is_said(structured, result.content):
        blocks.append(Text(json.dumps(structured, ensure_ascii=False)))
    if remark:
        blocks.append(Text(remark))
    if not blocks:
        blocks.append(Text(f"{tool} {'failed' if result.is_error else 'answered'} without words."))
    details = McpDetails(server, tool, result.structured_content, result.meta or {})
    # Texts are read as one, so each ends its line before the next
    last = max((at for at, block in enumerate(blocks) if isinstance(block, Text)), default=-1)
    spaced = tuple(
        Text(f"{block.text}\n")
        if isinstance(block, Text) and at < last and not block.text.endswith("\n")
        else block
        for at, block in enumerate(blocks)
    )
    return ToolOutcome(spaced, details, is_error=result.is_error is True)


def _is_said(structured: Any, content: Sequence[types.ContentBlock]) -> bool:
    """Return whether the texts of a result are its structured content.

    Servers repeat it as JSON, or the value of its only field: as JSON or as it is, and a list
    item by item.
    """
    texts = [block.text for block in content if isinstance(block, types.TextContent)]
    values = [structured]
    if isinstance(structured, dict) and len(structured) == 1:
        values += structured.values()
    items = [_read_json(text) for text in texts]
    return any(
        value in items or value in texts or (isinstance(value, list) and value in (items, texts))
        for value in values
    )


def _read_json(text: str) -> Any:
    """Return the value of a JSON text; of another text the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


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
            note = f": {about}" if about else ""
            return (Text(f"[Resource {uri} ({name}{kind}){note}]"),)
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
        build_temporary_path(find_temporary_folder(context.env))
    )
    with TemporaryDirectory(prefix="gong-mcp-") as folder:
        file = Path(folder, digest)  # the name that a folder of outputs keeps
        await asyncio.to_thread(file.write_bytes, data)
        path = await storage.adopt(str(file))
    return BlobRef(digest, len(data)), path
