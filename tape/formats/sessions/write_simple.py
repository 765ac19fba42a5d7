"""One branch of a tape → a session in the Simple format of txcript.

entry          message
-------------  -----------------------
user, context  role user
assistant      role assistant
tool.result    role user, tool_result
anchor         role user, the summary
the tape       id, cwd, title
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...model.entries import (
    Anchor,
    Assistant,
    Context,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    User,
)
from ...model.summary import render_summary
from ..wire import build_decoded_arguments, encode_json, load_base64
from .outline import shorten_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...model.entries import Block, Content
    from ..wire import WireObject
    from .outline import TapeOutline


def write_session(tape: TapeOutline) -> Iterator[bytes]:
    """Yield the one line of the document."""
    messages: list[WireObject] = []
    model = ""
    for entry, _ in tape.entries:
        match entry.data:
            case User(content=content) | Context(content=content):
                messages.append({"role": "user", "content": _build_blocks(tape, content)})
            case Anchor(summary=summary):
                messages.append({"role": "user", "content": render_summary(summary)})
            case Assistant() as answer:
                model = answer.model or model
                blocks = _build_blocks(tape, answer.content)
                messages.append({"role": "assistant", "content": blocks})
            case ToolResult() as result:
                piece = {
                    "type": "tool_result",
                    "tool_use_id": result.call_id,
                    "content": _build_blocks(tape, result.content),
                    "is_error": result.is_error,
                }
                messages.append({"role": "user", "content": [piece]})
    document = {
        "id": tape.uuid,
        "timestamp": shorten_time(tape.created),
        "cwd": tape.cwd,
        **({"title": tape.title} if tape.title else {}),
        **({"model": model} if model else {}),
        **({"git_branch": tape.git_branch} if tape.git_branch else {}),
        "messages": messages,
    }
    yield encode_json(document)


def _build_blocks(tape: TapeOutline, content: Content) -> list[WireObject]:
    return [encoded for block in content if (encoded := _build_block(tape, block)) is not None]


def _build_block(tape: TapeOutline, block: Block) -> WireObject | None:
    match block:
        case Text():
            return {"type": "text", "text": block.text}
        case Thinking():
            return {"type": "thinking", "thinking": block.text} if block.text else None
        case ToolCall():
            arguments = build_decoded_arguments(block)
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": arguments}
        case Image():
            data = load_base64(block.blob, tape.load)
            if data is not None:
                source = {"type": "base64", "media_type": block.mime, "data": data}
                return {"type": "image", "source": source}
    return None
