"""Entries → text for people: one line, a paragraph, a whole conversation, plain or Markdown.

Pure. Nothing that stands on a tape reaches a terminal as a control: `visible` shows what would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import msgspec

from .blocks import (
    Audio,
    Block,
    Document,
    Image,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    Unknown,
    text_of,
    tool_calls,
)
from .commonmark import contained, escaped, fenced
from .entries import (
    Anchor,
    Approval,
    Assistant,
    Branch,
    Context,
    Error,
    Model,
    Note,
    Repair,
    Start,
    ToolResult,
    ToolStart,
    User,
)
from .payload import Unread
from .summaries import summary_text
from .text import SHORT, fitted, single, visible, width

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .blocks import BlobRef, Content
    from .entries import Payload
    from .line import Entry

__all__ = [
    "SHORT",
    "beginning",
    "content_lines",
    "conversation",
    "fitted",
    "oneline",
    "readable",
    "single",
    "visible",
    "width",
]


def beginning(ref: BlobRef) -> str:
    """Return what stands for a long text where its beginning is enough."""
    return f"{ref.head}… ({ref.bytes} bytes)"


def oneline(entry: Entry, columns: int = 100) -> str:
    """Return an entry on one line: short id, type, and the beginning of what it says."""
    start = visible(f"{entry.id[:SHORT]}  {entry.type:<11}  ")
    return start + fitted(_gist(entry.data), max(columns - width(start), 20))


def _gist(data: Payload) -> str:
    match data:
        case User(content=content):
            return _words(content)
        case Assistant():
            calls = "  ".join(_call_text(call) for call in tool_calls(data.content))
            return "  ".join(filter(None, (_stopped(data), text_of(data.content), calls)))
        case ToolResult():
            return f"{data.name}: {'error: ' * data.is_error}{_words(data.content)}"
        case Context():
            return f"{data.origin}: {_words(data.content)}"
        case _:
            return _facts(data)


def _facts(data: Payload) -> str:
    """Return what the entries around a conversation say, in a few words."""
    match data:
        case Start():
            return f"{data.program} in {data.cwd}"
        case Branch():
            return f"{data.branch} from {data.base.entry[:SHORT]} ({data.why or 'fork'})"
        case Anchor():
            return f"{data.kind} on {data.branch}: {summary_text(data.summary)}"
        case Model():
            return f"{data.provider}/{data.model} {data.effort or ''}".rstrip()
        case Unread():
            return f"({data.why}) {_raw(data.raw)}"
        case _:
            return _remark(data)


def _remark(data: Payload) -> str:
    match data:
        case ToolStart():
            return f"{data.name} {_raw(data.args)}".rstrip()
        case Repair():
            return f"{data.kind}: {data.why}"
        case Error():
            return f"{data.kind}: {data.message}"
        case Approval():
            return f"{data.decision} by {data.by}" + (f": {data.reason}" if data.reason else "")
        case Note():
            return data.text
        case _:
            return msgspec.json.encode(data).decode("utf-8", "replace")


def _raw(raw: msgspec.Raw) -> str:
    return bytes(raw).decode("utf-8", "replace")


def _words(content: Content) -> str:
    return " ".join(line for block in content for line in _block(block))


def _stopped(answer: Assistant) -> str:
    """Return how an answer ended, where that is worth a word."""
    if answer.error is not None:
        return f"({answer.stop_reason}: {answer.error.message})"
    return "" if answer.stop_reason in {"stop", "tool_calls"} else f"({answer.stop_reason})"


def readable(entry: Entry, most: int | None = None) -> list[str]:
    """Return an entry as lines: a heading, then what it says, cut behind `most` lines if given."""
    body = list(_body(entry.data))
    if most is not None and len(body) > most:
        body = [*body[:most], f"… {len(body) - most} more lines"]
    heading = f"{entry.type} {entry.id[:12]} · {entry.n} · {_time(entry)}{_by(entry.data)}"
    return [single(heading), *(f"  {line}".rstrip() for line in body)]


def _body(data: Payload) -> Iterator[str]:
    """Yield the lines of what an entry says, visible."""
    match data:
        case User(content=content) | Context(content=content):
            yield from content_lines(content)
        case Assistant():
            yield from content_lines(data.content)
            yield from _lines(_stopped(data))
        case ToolResult():
            yield from content_lines(data.content)
            if data.whole is not None:
                yield "in full:"
                yield from _lines(data.whole)
        case Anchor():
            yield from _lines(summary_text(data.summary))
        case _:
            yield from _lines(_facts(data))


def content_lines(content: Content) -> Iterator[str]:
    """Yield the lines of a message's blocks, visible."""
    for block in content:
        yield from (part for line in _block(block) for part in _lines(line))


def _lines(text: str) -> list[str]:
    return visible(text).rstrip("\n").split("\n") if text else []


def _block(block: Block) -> Iterator[str]:
    """Yield a block as text: words as they are, everything else named."""
    match block:
        case Text(text=text):
            yield text
        case Thinking(text=text):
            yield f"(thinking) {text}" if text else "(thinking, not shown by its provider)"
        case ToolCall():
            yield _call_text(block)
        case Image(blob=blob, mime=mime) | Audio(blob=blob, mime=mime):
            yield f"[{mime}, {blob.bytes} bytes, blob {blob.hash[:12]}]"
        case Document(blob=blob, mime=mime, name=name):
            yield f"[{name or mime}, {blob.bytes} bytes, blob {blob.hash[:12]}]"
        case Opaque(raw=raw):
            yield f"[provider's own block] {_raw(raw)}"
        case Unknown(raw=raw):
            yield f"[unknown block] {_raw(raw)}"
        case _:
            assert_never(block)


def _call_text(call: ToolCall) -> str:
    arguments = call.args_text if call.args_text is not None else _raw(call.args)
    return f"→ {call.name} {arguments}".rstrip()


def _time(entry: Entry) -> str:
    return f"{entry.time[:10]} {entry.time[11:19]}"


def _by(data: Payload) -> str:
    """Return who or what an entry is from, where its type does not say."""
    match data:
        case Assistant():
            return f" · {data.provider}/{data.model}" if data.model else ""
        case ToolResult():
            return f" · {data.name}" + " · error" * data.is_error
        case Context():
            return f" · {data.role}, {data.origin}"
        case Anchor():
            return f" · {data.kind}"
        case _:
            return ""


_SPOKEN = (User, Assistant, ToolResult, Context, Anchor)
_SILENT = (ToolStart,)  # its call has been shown


def conversation(entries: Iterable[Entry], *, markdown: bool = False) -> Iterator[str]:
    """Yield the lines of a whole conversation; nothing is cut."""
    for entry in entries:
        if isinstance(entry.data, _SPOKEN):
            yield from _spoken_markdown(entry) if markdown else [*_spoken(entry), ""]
        elif not isinstance(entry.data, _SILENT):
            first, *more = _lines(f"{entry.type}: {_facts(entry.data)}")
            note = escaped(single(" ".join([first, *more])))
            rest = map(_unlike_heading, more)
            yield from [f"*{note}*", ""] if markdown else [f"· {first}", *rest, ""]


def _spoken(entry: Entry) -> Iterator[str]:
    yield single(f"── {entry.type}{_by(entry.data)} · {_time(entry)}")
    yield from map(_unlike_heading, _body(entry.data))


def _unlike_heading(line: str) -> str:
    """Return a line of somebody's words set in where it would pass for a line of ours."""
    return f" {line}" if line.startswith(("── ", "· ")) else line


def _spoken_markdown(entry: Entry) -> Iterator[str]:
    heading = f"{entry.type}{_by(entry.data)} · {_time(entry)}"
    yield from (f"## {escaped(single(heading))}", "")
    for part in _parts_markdown(entry.data):
        yield from (*part, "")


def _parts_markdown(data: Payload) -> Iterator[list[str]]:
    """Yield what an entry says, part by part, as lines of Markdown."""
    match data:
        case ToolResult():
            yield fenced(list(_body(data)))
        case Assistant(content=content):
            yield from map(_block_markdown, content)
            if _stopped(data):
                yield [f"*{escaped(single(_stopped(data)))}*"]
        case User(content=content) | Context(content=content):
            yield from map(_block_markdown, content)
        case _:
            yield contained(list(_body(data)))


def _block_markdown(block: Block) -> list[str]:
    match block:
        case Text(text=text):
            return contained(_lines(text))
        case ToolCall():
            return fenced(_lines(_call_text(block)))
        case _:
            shown = (part for line in _block(block) for part in _lines(line))
            return [f"> {line}".rstrip() for line in contained(list(shown))]
