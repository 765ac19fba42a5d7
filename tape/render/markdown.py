"""A conversation → Markdown, turn by turn: no words of somebody pass for a heading of the page.

It says what `entries` says of each entry, with the same options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model.entries import Assistant, Block, Context, Payload, Text, ToolResult, User
from ..text import to_single_line
from .commonmark import contain_markdown, escape_markdown, fence_code
from .entries import (
    SPOKEN,
    Conversation,
    describe_event,
    describe_stop,
    describe_turn,
    is_call_repeated,
    is_silent,
    render_block,
    render_changes,
    render_parts,
    split_visible_lines,
)
from .sources import list_sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..model.line import Entry
    from .calls import RenderedCall


def render_conversation(entries: Iterable[Entry], *, markdown: bool = False) -> Iterator[str]:
    """Yield the lines of a whole conversation; nothing is cut."""
    conversation = Conversation()
    for entry in entries:
        if markdown:
            yield from render_turn_markdown(conversation, entry)
        else:
            yield from _split_lines(conversation.render_turn(entry))
    if markdown:
        yield from render_end_markdown(conversation)
    else:
        yield from _split_lines(conversation.end())


def render_turn_markdown(conversation: Conversation, entry: Entry) -> Iterator[str]:
    """Yield what an entry adds to a conversation, as lines of Markdown."""
    data = entry.data
    if type(data) in {User, Assistant}:
        yield from render_end_markdown(conversation)
    if type(data) in SPOKEN:
        yield from (f"## {escape_markdown(describe_turn(entry))}", "")
        for part in _render_parts_markdown(conversation, data):
            yield from (*part, "")
    elif not conversation.note_start(data) and not is_silent(data):
        note = to_single_line(describe_event(entry))
        yield from (f"*{escape_markdown(note)}*", "")
        if changes := [*render_changes(data, conversation.options)]:
            yield from (*fence_code(changes, "diff"), "")


def render_end_markdown(conversation: Conversation) -> Iterator[str]:
    """Yield the calls that got no result, as lines of Markdown."""
    for call in conversation.take_waiting():
        for part in _render_call_markdown(call):
            yield from (*part, "")


def _render_call_markdown(call: RenderedCall, *, is_done: bool = False) -> Iterator[list[str]]:
    if call.place:
        yield [f"*{escape_markdown(call.place)}*"]
    yield fence_code(_split_lines(call.head), "console" if call.head[0].startswith("$") else "")
    if not call.body or is_done:
        return
    if call.is_markdown:
        yield contain_markdown(_split_lines(call.body))
    else:
        yield fence_code(_split_lines(call.body), "diff" if call.is_patch else "")


def _split_lines(parts: Iterable[str]) -> list[str]:
    return [line for part in parts for line in part.split("\n")]


def _render_parts_markdown(conversation: Conversation, data: Payload) -> Iterator[list[str]]:
    """Yield the content of an entry, part by part, as lines of Markdown."""
    match data:
        case ToolResult():
            yield from render_result_markdown(conversation, data, conversation.take_call(data))
        case Assistant():
            for block in conversation.note_calls(data).content:  # type: ignore[attr-defined]
                yield _render_block_markdown(block)
            if sources := list_sources(data.content):
                lines = [f"{n}. {source}" for n, source in enumerate(sources, 1)]
                yield ["Sources:", "", *contain_markdown(lines)]
            if describe_stop(data):
                yield [f"*{escape_markdown(to_single_line(describe_stop(data)))}*"]
        case User(content=content) | Context(content=content):
            yield from map(_render_block_markdown, content)
        case _:
            yield contain_markdown(_split_lines(render_parts(data)))


def render_result_markdown(
    conversation: Conversation, result: ToolResult, call: RenderedCall | None
) -> Iterator[list[str]]:
    """Yield a result, part by part, as lines of Markdown: its call, its output, its changes."""
    if call is not None:
        is_done = (bool(result.files) and not result.is_error) or is_call_repeated(result, call)
        yield from _render_call_markdown(call, is_done=is_done)
    if output := _split_lines(render_parts(result)) if result.content else [""]:
        yield fence_code(output)
    if result.files:
        yield fence_code([*render_changes(result, conversation.options)], "diff")


def _render_block_markdown(block: Block) -> list[str]:
    match block:
        case Text(text=text):
            return contain_markdown(split_visible_lines(text))
        case _:
            lines = (part for line in render_block(block) for part in split_visible_lines(line))
            return [f"> {line}".rstrip() for line in contain_markdown(list(lines))]
