"""Context usage by part: system, documents, tools, summary and each turn; pure.

The parts are estimates. If a provider counted the whole, they are scaled so that they add up to
its count.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct

from tape.context.view import Target, select_visible_blocks
from tape.model.entries import Context, User, join_texts
from tape.text import measure_width, shorten_to_width, to_single_line

from .tokens import count_message_tokens, count_text_tokens, count_tool_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tape.context.view import Message, View
    from tape.model.line import Entry

    from ..llm.types import Request
    from .tokens import ContextSize

_LABEL_CHARS = 60
_NAME_COLUMNS, _BAR_COLUMNS = 34, 20
_ANY_TARGET = Target("", "", "")
_EARLIER_LABEL = "(the rest of an earlier turn)"


class UsageShare(Struct, frozen=True, omit_defaults=True):
    """The tokens of one part; `entry` is the id of a turn's prompt."""

    kind: Literal["system", "document", "tools", "summary", "turn"]
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
    documents: Mapping[str, str] | None = None,
    window: int | None = None,
    size: ContextSize | None = None,
) -> ContextUsage:
    """Return the context usage of a call made from `view`.

    `documents` are texts by name that are in the system prompt and shown as own parts; `size` is
    the result of `context_tokens` for the call.
    """
    parts = [
        *_measure_fixed_parts(request, documents or {}),
        *_measure_turns(view, request.messages),
    ]
    parts = [part for part in parts if part.tokens]
    if size is not None:
        parts = _scale_parts(parts, size.tokens)
    total = sum(part.tokens for part in parts)
    percent = round(100 * total / window, 1) if window else None
    return ContextUsage(tuple(parts), total, size is not None and size.exact, window, percent)


def _measure_fixed_parts(request: Request, documents: Mapping[str, str]) -> Iterator[UsageShare]:
    texts = {name: count_text_tokens(text) for name, text in documents.items()}
    inside = sum(texts[name] for name, text in documents.items() if text in request.system)
    yield UsageShare("system", "system prompt", max(count_text_tokens(request.system) - inside, 0))
    for name, tokens in texts.items():
        yield UsageShare("document", name, tokens)
    tools = len(request.tools)
    tokens = sum(map(count_tool_tokens, request.tools))
    yield UsageShare("tools", f"{tools} tool{'s' * (tools != 1)}", tokens)


class _TurnStart(NamedTuple):
    """A turn's prompt."""

    entry: str
    label: str


def _measure_turns(view: View, messages: Sequence[Message]) -> list[UsageShare]:
    """Return the summary and the turns; input queued during a turn starts none."""
    said = iter(_find_turn_starts((*view.kept, *view.entries)))
    parts: list[UsageShare] = []
    for place, message in enumerate(messages):
        tokens = count_message_tokens(message)
        if place == 0 and view.summary:
            parts.append(UsageShare("summary", "summary of earlier messages", tokens))
            continue
        begin = next(said, None) if message.role in {"user", "system"} else None
        if begin is not None:
            parts.append(UsageShare("turn", begin.label, tokens, begin.entry))
        elif parts and parts[-1].kind == "turn":
            last = parts[-1]
            parts[-1] = UsageShare("turn", last.label, last.tokens + tokens, last.entry)
        else:
            parts.append(UsageShare("turn", _EARLIER_LABEL, tokens))
    return parts


def _find_turn_starts(entries: Sequence[Entry]) -> Iterator[_TurnStart | None]:
    """Yield for each message that is no answer or result the turn that it starts, or None."""
    for entry in entries:
        data = entry.data
        if type(data) is User and select_visible_blocks(data.content, _ANY_TARGET, foreign=True):
            label = to_single_line(join_texts(data.content))[:_LABEL_CHARS].rstrip()
            yield _TurnStart(entry.id, label or "(no text)")
        elif type(data) is Context and select_visible_blocks(
            data.content, _ANY_TARGET, foreign=True
        ):
            yield None


def _scale_parts(parts: list[UsageShare], total: int) -> list[UsageShare]:
    """Return the parts, scaled so that they add up to `total`."""
    ends = [0, *accumulate(part.tokens for part in parts)]
    whole = ends[-1] or 1
    scaled = [end * total // whole for end in ends]
    return [
        UsageShare(part.kind, part.label, scaled[place + 1] - scaled[place], part.entry)
        for place, part in enumerate(parts)
    ]


def render_context_usage(of: ContextUsage, turns: int = 20) -> str:
    """Return a meter as lines of at most 80 columns; only the newest `turns` one by one."""
    parts = _fold_turns(of.parts, turns)
    whole = of.window or of.total or 1
    lines = [_render_usage_row(part.label, part.tokens, whole) for part in parts]
    about = "" if of.exact else "about "
    total = f"{about}{of.total:,} tokens"
    if of.window:
        total += f" of {of.window:,} ({of.percent:.1f} %)"
    return "\n".join([*lines, total])


def _fold_turns(parts: Sequence[UsageShare], most: int) -> list[UsageShare]:
    """Return the parts, with older turns combined into one."""
    turns = [part for part in parts if part.kind == "turn"]
    if len(turns) <= most:
        return [*parts]
    older = turns[: len(turns) - most]
    one = UsageShare(
        "turn",
        f"{len(older)} earlier turn{'s' * (len(older) > 1)}",
        sum(part.tokens for part in older),
    )
    return [*(part for part in parts if part.kind != "turn"), one, *turns[len(older) :]]


def _render_usage_row(label: str, tokens: int, whole: int) -> str:
    name = shorten_to_width(label, _NAME_COLUMNS)
    filled = min(round(_BAR_COLUMNS * tokens / whole), _BAR_COLUMNS)
    bar = "█" * filled + "░" * (_BAR_COLUMNS - filled)
    padded = name + " " * (_NAME_COLUMNS - measure_width(name))
    return f"{padded} {tokens:>10,} {100 * tokens / whole:>5.1f} %  {bar}"
