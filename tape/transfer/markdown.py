"""A conversation as a page of Markdown: a header, the words, calls and their results folded away.

What cannot be read is told and left out; the words themselves are `render.conversation`'s.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ..blocks import ToolCall
from ..clock import moment
from ..commonmark import code, escaped
from ..entries import Assistant, SideUsage, ToolResult
from ..errors import Damaged
from ..line import decode, read_header
from ..render import conversation, fitted
from .masking import masked, masked_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..blocks import BlobRef
    from ..branches import Head
    from ..line import Entry
    from ..path import Source
    from ..tape import Tape

_WIDE = 80
"""Columns of the line that stands for what is folded away."""


class Masks(Struct):
    """What was masked in a page, counted while it is read."""

    secrets: int = 0
    entries: int = 0


class _Facts(Struct):
    """What the header of a page says."""

    first: str = ""
    last: str = ""
    models: dict[str, None] = {}
    cost: float | None = None


def markdown(
    tape: Tape, head: Head, *, masks: Masks | None, skipped: Callable[[str], None]
) -> Iterator[str]:
    """Yield the lines of the page of a path, read twice; with `masks` secrets are masked.

    `skipped` is told of entries that cannot be read.
    """
    facts = _Facts()
    for entry in _entries(tape, head, None, lambda _: None):
        _note(facts, entry)
    yield from _header(tape, head, facts, masks)
    for entry in _entries(tape, head, masks, skipped):
        yield from _shown(entry)


def _entries(
    tape: Tape, head: Head, masks: Masks | None, skipped: Callable[[str], None]
) -> Iterator[Entry]:
    for segment in tape.path(head):
        for offset, line in segment.checked_lines(skipped):
            try:
                line.decode()  # raw parts of an entry are not looked at by the decoder
                yield _entry(line, segment.source, masks)
            except (Damaged, ValueError, RecursionError) as error:
                skipped(f"{segment.phase}: line at byte {offset} cannot be read: {error}")


def _entry(line: bytes, source: Source, masks: Masks | None) -> Entry:
    if masks is None:
        return decode(line, source.expand)
    before = masks.secrets

    def expand(ref: BlobRef) -> str:
        text, secrets = masked(source.expand(ref))
        masks.secrets += secrets
        return text

    start = read_header(line).data
    data, secrets = masked_json(line[start:-1])
    entry = decode(line[:start] + data + b"}", expand)
    masks.secrets += secrets
    masks.entries += masks.secrets > before
    return entry


def _note(facts: _Facts, entry: Entry) -> None:
    facts.first, facts.last = facts.first or entry.time, entry.time
    data = entry.data
    if isinstance(data, Assistant | SideUsage):
        if data.model:
            facts.models[f"{data.provider}/{data.model}"] = None
        if data.cost is not None:
            facts.cost = (facts.cost or 0.0) + data.cost.amount


def _header(tape: Tape, head: Head, facts: _Facts, masks: Masks | None) -> Iterator[str]:
    title = tape.title() or "A session"
    shown = fitted(masked(title).text if masks else title, 200)
    yield f"# {escaped(shown)}"
    yield ""
    yield f"- Tape `{tape.id}`, branch `{head.branch}`, entry `{head.entry[:12]}`"
    yield f"- {moment(facts.first)} to {moment(facts.last)} UTC"
    if facts.models:
        yield f"- Models: {', '.join(code(fitted(model, 200)) for model in facts.models)}"
    if facts.cost is not None:
        yield f"- Cost: ${facts.cost:.2f}"
    yield ""


def _shown(entry: Entry) -> Iterator[str]:
    data = entry.data
    if isinstance(data, Assistant):
        yield from _answer(entry, data)
    elif isinstance(data, ToolResult):
        words = " ".join(block.text for block in data.content if hasattr(block, "text"))
        yield from _folded(f"{'✗' if data.is_error else '✓'} {data.name}: {words}", _body(entry))
    else:
        yield from conversation([entry], markdown=True)


def _answer(entry: Entry, data: Assistant) -> Iterator[str]:
    """Yield an answer block by block, its calls folded."""
    heading, blank, *end = conversation(
        [replace(entry, data=replace(data, content=()))], markdown=True
    )
    yield from (heading, blank)
    for block in data.content:
        body = _body(replace(entry, data=Assistant((block,))))
        if isinstance(block, ToolCall):
            yield from _folded(_called(block), body)
        else:
            yield from body
    yield from end


def _called(call: ToolCall) -> str:
    given = call.args_text if call.args_text is not None else bytes(call.args).decode()
    return f"→ {call.name} {given}"


def _body(entry: Entry) -> list[str]:
    """Return what an entry says, without its heading."""
    return list(conversation([entry], markdown=True))[2:]


def _folded(summary: str, body: list[str]) -> list[str]:
    start = f"<details><summary>{escape(fitted(summary, _WIDE), quote=False)}</summary>"
    return [start, "", *body, "</details>", ""]
