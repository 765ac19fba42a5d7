"""Entries → text for people: one line, a paragraph, a whole conversation, plain or Markdown; pure.

Nothing in a tape reaches a terminal as a control character: `show_controls` makes it visible. In a
conversation no words of somebody pass for a heading of ours.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, assert_never

import msgspec

from .clock import render_time
from .commonmark import contain_markdown, escape_markdown, fence_code
from .model.entries import (
    Anchor,
    Approval,
    Assistant,
    Audio,
    Block,
    Branch,
    Context,
    Document,
    Error,
    Image,
    Model,
    Note,
    Opaque,
    Repair,
    Start,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolStart,
    Unknown,
    User,
    join_texts,
    select_tool_calls,
)
from .model.line import Unread
from .model.summary import render_summary
from .text import SHORT, measure_width, shorten_to_width, show_controls, to_single_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .model.entries import BlobRef, Content, Payload
    from .model.line import Entry


def render_blob_head(ref: BlobRef) -> str:
    """Return the beginning of a blob's text and its size in bytes, to show in its place."""
    return f"{ref.head}… ({ref.bytes} bytes)"


def name_reason(why: str) -> str:
    """Return why a branch began or moved (tape.md §4) as people read it."""
    return "continued" if why == "go-on" else why


def _name_anchor(anchor: Anchor) -> str:
    """Return what an anchor is: `Merged 'try-redis' (12 entries, 3 prompts)`, `handoff on main`."""
    other, covers = anchor.merged, anchor.covers
    if other is None:
        return f"{anchor.kind} on {anchor.branch}"
    if anchor.reason.startswith("merged "):
        text = f"M{anchor.reason[1:]}"
    else:
        count = f" ({covers.count} {'entry' if covers.count == 1 else 'entries'})" if covers else ""
        text = f"{'Left' if other.reason == 'left' else 'Merged'} {other.branch!r}{count}"
    return f"{text}, {len(other.picks)} picked" if other.picks else text


def render_entry_line(entry: Entry, columns: int = 100) -> str:
    """Return an entry on one line: short id, type, and the beginning of its content."""
    start = show_controls(f"{entry.id[:SHORT]}  {entry.type:<11}  ")
    return start + shorten_to_width(
        _summarize_entry(entry.data), max(columns - measure_width(start), 20)
    )


def _summarize_entry(data: Payload) -> str:
    match data:
        case User(content=content):
            return _join_content(content)
        case Assistant():
            calls = "  ".join(_render_call(call) for call in select_tool_calls(data.content))
            return "  ".join(filter(None, (_describe_stop(data), join_texts(data.content), calls)))
        case ToolResult():
            return f"{data.name}: {'error: ' * data.is_error}{_join_content(data.content)}"
        case Context():
            return f"{data.origin}: {_join_content(data.content)}"
        case _:
            return _describe_payload(data)


def _decode_raw_json(raw: msgspec.Raw) -> str:
    return bytes(raw).decode("utf-8", "replace")


def _describe_payload(data: Payload) -> str:
    """Return the content of an entry that is not part of the conversation, in a few words."""
    match data:
        case Start():
            return f"{data.program} in {data.cwd}"
        case Branch():
            return (
                f"{data.branch} from {data.base.entry[:SHORT]} ({name_reason(data.why or 'fork')})"
            )
        case Anchor():
            return f"{_name_anchor(data)}: {render_summary(data.summary)}"
        case Model():
            return f"{data.provider}/{data.model} {data.effort or ''}".rstrip()
        case Unread():
            return f"({data.why}) {_decode_raw_json(data.raw)}"
        case _:
            return _describe_minor_payload(data)


def _describe_minor_payload(data: Payload) -> str:
    match data:
        case ToolStart():
            return f"{data.name} {_decode_raw_json(data.args)}".rstrip()
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


def _join_content(content: Content) -> str:
    return " ".join(line for block in content for line in _render_block(block))


def _describe_stop(answer: Assistant) -> str:
    """Return how an answer ended, "" if it ended normally."""
    if answer.error is not None:
        return f"({answer.stop_reason}: {answer.error.message})"
    return "" if answer.stop_reason in {"stop", "tool_calls"} else f"({answer.stop_reason})"


def render_entry(entry: Entry, most: int | None = None) -> list[str]:
    """Return an entry as lines: a heading, then its content, cut after `most` lines if given."""
    body = list(_render_entry_body(entry.data))
    if most is not None and len(body) > most:
        body = [*body[:most], f"… {len(body) - most} more lines"]
    heading = f"{entry.type} {entry.id[:12]} · {entry.n} · {_format_entry_time(entry)}"
    heading += _describe_author(entry.data)
    return [to_single_line(heading), *(f"  {line}".rstrip() for line in body)]


def _render_entry_body(data: Payload) -> Iterator[str]:
    """Yield the lines of an entry's content, made visible."""
    for part in _render_parts(data):
        yield from part.split("\n")


def _render_parts(data: Payload) -> Iterator[str]:
    """Yield the content of an entry, made visible, in parts of whole lines."""
    match data:
        case User(content=content) | Context(content=content):
            yield from _render_blocks(content)
        case Assistant():
            yield from _render_blocks(data.content)
            yield from _show_text(_describe_stop(data))
        case ToolResult():
            yield from _render_blocks(data.content)
            if data.whole is not None:
                yield "in full:"
                yield from _show_text(data.whole)
        case Anchor():
            if data.kind == "merge":
                yield from _show_text(f"{_name_anchor(data)}\n")
            yield from _show_text(render_summary(data.summary))
        case _:
            yield from _show_text(_describe_payload(data))


def render_content(content: Content) -> Iterator[str]:
    """Yield the lines of a message's blocks, made visible."""
    for part in _render_blocks(content):
        yield from part.split("\n")


def _render_blocks(content: Content) -> Iterator[str]:
    for block in content:
        if type(block) is Text:  # nearly all
            yield from _show_text(block.text)
        else:
            for text in _render_block(block):
                yield from _show_text(text)


def _show_text(text: str) -> tuple[str, ...]:
    """Return a text made visible, without the newlines at its end; nothing for an empty one."""
    return (show_controls(text).rstrip("\n"),) if text else ()


def _split_visible_lines(text: str) -> list[str]:
    return [line for part in _show_text(text) for line in part.split("\n")]


def _render_block(block: Block) -> Iterator[str]:
    """Yield a block as text; blocks other than text are named."""
    match block:
        case Text(text=text):
            yield text
        case Thinking(text=text):
            yield f"(thinking) {text}" if text else "(thinking, not shown by its provider)"
        case ToolCall():
            yield _render_call(block)
        case Image(blob=blob, mime=mime) | Audio(blob=blob, mime=mime):
            yield f"[{mime}, {blob.bytes} bytes, blob {blob.hash[:12]}]"
        case Document(blob=blob, mime=mime, name=name):
            yield f"[{name or mime}, {blob.bytes} bytes, blob {blob.hash[:12]}]"
        case Opaque(raw=raw):
            yield f"[provider's own block] {_decode_raw_json(raw)}"
        case Unknown(raw=raw):
            yield f"[unknown block] {_decode_raw_json(raw)}"
        case _:
            assert_never(block)


def _render_call(call: ToolCall) -> str:
    arguments = call.args_text if call.args_text is not None else _decode_raw_json(call.args)
    return f"→ {call.name} {arguments}".rstrip()


def _format_entry_time(entry: Entry) -> str:
    return render_time(entry.time)


def _describe_author(data: Payload) -> str:
    """Return the author or origin of an entry, if its type does not imply it."""
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
_SILENT = (ToolStart,)  # its call was shown already


def render_conversation(entries: Iterable[Entry], *, markdown: bool = False) -> Iterator[str]:
    """Yield the lines of a whole conversation; nothing is cut."""
    for entry in entries:
        if not markdown:
            text = render_turn(entry)
            yield from text.split("\n") if text else ()
        elif isinstance(entry.data, _SPOKEN):
            yield from (f"## {escape_markdown(_describe_turn(entry))}", "")
            for part in _render_parts_markdown(entry.data):
                yield from (*part, "")
        elif not isinstance(entry.data, _SILENT):
            note = to_single_line(_describe_event(entry))
            yield from (f"*{escape_markdown(note)}*", "")


def render_turn(entry: Entry) -> str:
    """Return what an entry adds to a conversation as text, all its lines at once.

    It ends with a blank line; it is empty where the entry adds nothing.
    """
    if isinstance(entry.data, _SPOKEN):
        parts = (_indent_headings(part) for part in _render_parts(entry.data))
        return "\n".join([f"── {_describe_turn(entry)}", *parts, ""])
    if isinstance(entry.data, _SILENT):
        return ""
    first, *more = _split_visible_lines(_describe_event(entry))
    return "\n".join([f"· {first}", *map(_indent_headings, more), ""])


def _describe_turn(entry: Entry) -> str:
    """Return who spoke, and when, on one line."""
    author = _show_author(f"{entry.type}{_describe_author(entry.data)}")
    return f"{author} · {to_single_line(_format_entry_time(entry))}"


_show_author = lru_cache(maxsize=256)(to_single_line)
"""A conversation has few authors."""


def _describe_event(entry: Entry) -> str:
    return f"{entry.type}: {_describe_payload(entry.data)}"


def _indent_headings(text: str) -> str:
    """Return content with each line indented that looks like a heading of this page."""
    if "── " in text or "· " in text:
        return re.sub(r"^(?=── |· )", " ", text, flags=re.MULTILINE)
    return text


def _render_parts_markdown(data: Payload) -> Iterator[list[str]]:
    """Yield the content of an entry, part by part, as lines of Markdown."""
    match data:
        case ToolResult():
            yield fence_code(list(_render_entry_body(data)))
        case Assistant(content=content):
            yield from map(_render_block_markdown, content)
            if _describe_stop(data):
                yield [f"*{escape_markdown(to_single_line(_describe_stop(data)))}*"]
        case User(content=content) | Context(content=content):
            yield from map(_render_block_markdown, content)
        case _:
            yield contain_markdown(list(_render_entry_body(data)))


def _render_block_markdown(block: Block) -> list[str]:
    match block:
        case Text(text=text):
            return contain_markdown(_split_visible_lines(text))
        case ToolCall():
            return fence_code(_split_visible_lines(_render_call(block)))
        case _:
            shown = (part for line in _render_block(block) for part in _split_visible_lines(line))
            return [f"> {line}".rstrip() for line in contain_markdown(list(shown))]
