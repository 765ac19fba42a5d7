"""A conversation as a page of Markdown: a header, the texts, calls and results collapsed.

Unreadable entries are reported and left out; `render.conversation` gives the texts.
"""

from __future__ import annotations

from functools import partial
from html import escape
from typing import TYPE_CHECKING

from msgspec import Struct

from ..clock import shorten_timestamp
from ..errors import Damaged
from ..files.git_patch import is_binary
from ..masking.secrets import mask_json, mask_text
from ..model.entries import Assistant, Meta, SideUsage, Start, ToolResult, join_texts
from ..model.line import decode_line, read_header
from ..render.commonmark import escape_markdown, quote_code
from ..render.entries import Conversation, RenderOptions
from ..render.markdown import render_end_markdown, render_result_markdown, render_turn_markdown
from ..text import shorten_to_width

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..model.entries import BlobRef
    from ..model.line import Entry
    from ..store.path import Source
    from ..store.refs import Head
    from ..store.tape import Tape

_SUMMARY_COLUMNS = 80
"""Width of the summary line of a collapsed part."""


class MaskCount(Struct):
    """Counts of masked secrets in a page, updated while it is read."""

    secrets: int = 0
    entries: int = 0


class _PageFacts(Struct):
    """The facts in the header of a page."""

    first: str = ""
    last: str = ""
    models: dict[str, None] = {}
    cost: float | None = None
    repository: str | None = None
    person: str | None = None
    machine: str | None = None


def render_markdown(
    tape: Tape, head: Head, *, masks: MaskCount | None, skipped: Callable[[str], None]
) -> Iterator[str]:
    """Yield the lines of the page of a path, read twice; with `masks` secrets are masked.

    Entries that cannot be read are reported to `skipped`.
    """
    facts = _PageFacts()
    for entry in _read_entries(tape, head, None, lambda _: None):
        facts.first, facts.last = facts.first or entry.time, entry.time
        if isinstance(data := entry.data, Assistant | SideUsage):
            if data.model:
                facts.models[f"{data.provider}/{data.model}"] = None
            if data.cost is not None:
                facts.cost = (facts.cost or 0.0) + data.cost.amount
        elif isinstance(data, Start | Meta):
            facts.person = data.person or facts.person
            facts.machine = data.machine or facts.machine
            if data.cwd is not None:
                facts.repository = data.repository
    yield from _render_page_header(tape, head, facts, masks)
    conversation = Conversation(RenderOptions(partial(_load_masked, tape, masks)))
    for entry in _read_entries(tape, head, masks, skipped):
        match entry.data:
            case ToolResult() as result:
                yield from _render_result(conversation, result)
            case _:
                yield from render_turn_markdown(conversation, entry)
    yield from render_end_markdown(conversation)


def _load_masked(tape: Tape, masks: MaskCount | None, ref: BlobRef) -> bytes:
    """Return the bytes of a changed file; secrets in a text are masked."""
    data = tape.load(ref)
    if masks is None or is_binary(data):
        return data
    text, secrets = mask_text(data.decode("utf-8", "surrogateescape"))
    masks.secrets += secrets
    return text.encode("utf-8", "surrogateescape")


def _read_entries(
    tape: Tape, head: Head, masks: MaskCount | None, skipped: Callable[[str], None]
) -> Iterator[Entry]:
    for segment in tape.path(head):
        for offset, line in segment.read_checked_lines(skipped):
            try:
                line.decode()  # the decoder does not check raw parts of an entry
                yield _decode_masked(line, segment.source, masks)
            except (Damaged, ValueError, RecursionError) as error:
                skipped(f"{segment.phase}: line at byte {offset} cannot be read: {error}")


def _decode_masked(line: bytes, source: Source, masks: MaskCount | None) -> Entry:
    if masks is None:
        return decode_line(line, source.expand)
    before = masks.secrets

    def expand(ref: BlobRef) -> str:
        text, secrets = mask_text(source.expand(ref))
        masks.secrets += secrets
        return text

    start = read_header(line).data
    data, secrets = mask_json(line[start:-1])
    entry = decode_line(line[:start] + data + b"}", expand)
    masks.secrets += secrets
    masks.entries += masks.secrets > before
    return entry


def _render_page_header(
    tape: Tape, head: Head, facts: _PageFacts, masks: MaskCount | None
) -> Iterator[str]:
    title = tape.title() or "A session"
    heading = shorten_to_width(mask_text(title).text if masks else title, 200)
    yield f"# {escape_markdown(heading)}"
    yield ""
    yield f"- Tape `{tape.id}`, branch `{head.branch}`, entry `{head.entry[:12]}`"
    yield f"- {shorten_timestamp(facts.first)} to {shorten_timestamp(facts.last)} UTC"
    if facts.models:
        models = (quote_code(shorten_to_width(model, 200)) for model in facts.models)
        yield f"- Models: {', '.join(models)}"
    if facts.cost is not None:
        yield f"- Cost: ${facts.cost:.2f}"
    if facts.repository or facts.person:
        places = (("Repository", facts.repository), ("Person", facts.person))
        for name, text in (*places, ("Machine", facts.machine)):
            if text:
                masked = mask_text(text).text if masks else text
                yield f"- {name}: {quote_code(shorten_to_width(masked, 200))}"
    yield ""


def _render_result(conversation: Conversation, result: ToolResult) -> list[str]:
    """Return a result with its call and its changes, collapsed below its first words."""
    call = conversation.take_call(result)
    heading = " ".join(call.head) if call else f"{result.name}: {join_texts(result.content)}"
    body: list[str] = []
    for part in render_result_markdown(conversation, result, call):
        body += (*part, "")
    summary = f"{'✗' if result.is_error else '✓'} {heading}"
    short = escape(shorten_to_width(summary, _SUMMARY_COLUMNS), quote=False)
    start = f"<details><summary>{short}</summary>"
    return [start, "", *body, "</details>", ""]
