"""Context usage by part: system prompt, tools, summary and each turn; pure.

The parts are estimates. If a provider counted the whole, they are scaled so that they add up to
its count.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from tape.context.view import Target, select_visible_blocks
from tape.model.entries import Context, User, join_texts
from tape.text import measure_width, shorten_to_width, to_single_line

from .tokens import (
    MESSAGE_TOKENS,
    SampledEstimate,
    count_message_tokens,
    count_text_tokens,
    count_tool_tokens,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tape.context.view import Message, View
    from tape.model.line import Entry

    from ..llm.types import Request
    from .instructions import InstructionFile
    from .tokens import ContextSize

_LABEL_CHARS = 60
_READ_MESSAGES = 500
"""Newest messages that are all read, as their turns are shown one by one."""
_NAME_COLUMNS, _BAR_COLUMNS = 34, 20
_ANY_TARGET = Target("", "", "")
_EARLIER_LABEL = "(the rest of an earlier turn)"


class UsageShare(Struct, frozen=True, omit_defaults=True):
    """The tokens of one part; `entry` is the id of a turn's prompt."""

    kind: Literal["system", "instructions", "tools", "summary", "turn"]
    label: str
    tokens: int
    entry: str | None = None


class ContextUsage(Struct, frozen=True):
    """The context usage of the next call."""

    parts: tuple[UsageShare, ...]
    """The parts in the order in which they are sent, without empty ones."""
    total: int
    """Tokens of all parts."""
    exact: bool
    """Whether the provider counted `total`, except for what followed its answer."""
    window: int | None
    percent: float | None
    """Percentage of the context window, to one decimal; None if its size is unknown."""


def measure_context_usage(
    request: Request,
    view: View,
    *,
    window: int | None = None,
    size: ContextSize | None = None,
    instructions: Sequence[InstructionFile] = (),
) -> ContextUsage:
    """Return the context usage of a call made from `view`.

    `size` is the result of `PreparedRequest.measure` for the call; `instructions` are the files
    that its system prompt contains.
    """
    tools = len(request.tools)
    files = [
        UsageShare("instructions", file.name, count_text_tokens(file.text)) for file in instructions
    ]
    own = count_text_tokens(request.system) - sum(part.tokens for part in files)
    parts = [
        UsageShare("system", "system prompt", max(own, 0)),
        *files,
        UsageShare(
            "tools", f"{tools} tool{'s' * (tools != 1)}", sum(map(count_tool_tokens, request.tools))
        ),
        *_measure_turns(view, request.messages),
    ]
    parts = [part for part in parts if part.tokens]
    if size is not None:  # scale the parts so that they add up to it
        ends = [0, *accumulate(part.tokens for part in parts)]
        scaled = [end * size.tokens // (ends[-1] or 1) for end in ends]
        parts = [
            replace(part, tokens=end - begin)
            for part, (begin, end) in zip(parts, pairwise(scaled), strict=True)
        ]
    total = sum(part.tokens for part in parts)
    percent = round(100 * total / window, 1) if window else None
    return ContextUsage(tuple(parts), total, size is not None and size.exact, window, percent)


def _measure_turns(view: View, messages: Sequence[Message]) -> list[UsageShare]:
    """Return the summary and the turns; input queued during a turn starts none."""
    starts = iter(_find_turn_starts((*view.kept, *view.entries)))
    parts: list[UsageShare] = []
    count = SampledEstimate().count  # as the size was measured: what that read is known
    counts = [count(message.content) + MESSAGE_TOKENS for message in messages]
    counts[-_READ_MESSAGES:] = map(count_message_tokens, messages[-_READ_MESSAGES:])
    for place, (message, tokens) in enumerate(zip(messages, counts, strict=True)):
        if place == 0 and view.summary:
            parts.append(UsageShare("summary", "summary of earlier messages", tokens))
            continue
        start = next(starts, None) if message.role in {"user", "system"} else None
        if start is not None:
            parts.append(replace(start, tokens=tokens))
        elif parts and parts[-1].kind == "turn":
            parts[-1] = replace(parts[-1], tokens=parts[-1].tokens + tokens)
        else:
            parts.append(UsageShare("turn", _EARLIER_LABEL, tokens))
    return parts


def _find_turn_starts(entries: Sequence[Entry]) -> Iterator[UsageShare | None]:
    """Yield for each message that is no answer or result the turn that it starts, or None."""
    for entry in entries:
        data = entry.data
        if type(data) is User and select_visible_blocks(data.content, _ANY_TARGET, foreign=True):
            label = to_single_line(join_texts(data.content))[:_LABEL_CHARS].rstrip()
            yield UsageShare("turn", label or "(no text)", 0, entry.id)
        elif isinstance(data, Context) and select_visible_blocks(
            data.content, _ANY_TARGET, foreign=True
        ):
            yield None


def render_context_usage(of: ContextUsage, turns: int = 20) -> str:
    """Return context usage as lines of at most 80 columns; only the newest `turns` one by one."""
    parts, whole = [*of.parts], of.window or of.total or 1
    places = [place for place, part in enumerate(parts) if part.kind == "turn"]
    if len(places) > turns:  # combine the older turns, which come before the others
        first, older = places[0], len(places) - turns
        tokens = sum(part.tokens for part in parts[first : first + older])
        label = f"{older} earlier turn{'s' * (older > 1)}"
        parts[first : first + older] = [UsageShare("turn", label, tokens)]
    lines = []
    for part in parts:
        name = shorten_to_width(part.label, _NAME_COLUMNS)
        filled = min(round(_BAR_COLUMNS * part.tokens / whole), _BAR_COLUMNS)
        bar = "█" * filled + "░" * (_BAR_COLUMNS - filled)
        padded = name + " " * (_NAME_COLUMNS - measure_width(name))
        percent = 100 * part.tokens / whole
        lines.append(f"{padded} {part.tokens:>10,} {percent:>5.1f} %  {bar}")
    total = f"{'' if of.exact else 'about '}{of.total:,} tokens"
    if of.window:
        total += f" of {of.window:,} ({of.percent:.1f} %)"
    return "\n".join([*lines, total])
