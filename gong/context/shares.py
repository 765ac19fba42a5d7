"""Context usage by part: system, documents, tools, summary and each turn; pure.

The parts are estimates. If a provider counted the whole, they are scaled so that they add up to
its count.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct

from tape.blocks import text_of
from tape.entries import Context, User
from tape.repair import Target, sendable
from tape.text import fitted, single, width

from .meter import message_tokens, text_tokens, tool_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tape.line import Entry
    from tape.view import Message, View

    from ..llm.types import Request
    from .meter import Size

_LABEL = 60
_NAME, _BAR = 34, 20
_ANYBODY = Target("", "", "")
_EARLIER = "(the rest of an earlier turn)"


class Share(Struct, frozen=True, omit_defaults=True):
    """The tokens of one part; `entry` is the id of a turn's prompt."""

    kind: Literal["system", "document", "tools", "summary", "turn"]
    label: str
    tokens: int
    entry: str | None = None


class Meter(Struct, frozen=True):
    """The context usage of the next call."""

    parts: tuple[Share, ...]
    """The parts in the order in which they are sent, without empty ones."""
    total: int
    """Tokens of all parts."""
    exact: bool
    """Whether the provider counted `total`, except for what followed its answer."""
    window: int | None
    percent: float | None
    """Percentage of the context window, to one decimal; None if its size is unknown."""


def meter(
    request: Request,
    view: View,
    *,
    documents: Mapping[str, str] | None = None,
    window: int | None = None,
    size: Size | None = None,
) -> Meter:
    """Return the context usage of a call made from `view`.

    `documents` are texts by name that are in the system prompt and shown as own parts; `size` is
    the result of `context_tokens` for the call.
    """
    parts = [*_fixed(request, documents or {}), *_turns(view, request.messages)]
    parts = [part for part in parts if part.tokens]
    if size is not None:
        parts = _scaled(parts, size.tokens)
    total = sum(part.tokens for part in parts)
    percent = round(100 * total / window, 1) if window else None
    return Meter(tuple(parts), total, size is not None and size.exact, window, percent)


def _fixed(request: Request, documents: Mapping[str, str]) -> Iterator[Share]:
    texts = {name: text_tokens(text) for name, text in documents.items()}
    inside = sum(texts[name] for name, text in documents.items() if text in request.system)
    yield Share("system", "system prompt", max(text_tokens(request.system) - inside, 0))
    for name, tokens in texts.items():
        yield Share("document", name, tokens)
    tools = len(request.tools)
    tokens = sum(map(tool_tokens, request.tools))
    yield Share("tools", f"{tools} tool{'s' * (tools != 1)}", tokens)


class _Begin(NamedTuple):
    """A turn's prompt."""

    entry: str
    label: str


def _turns(view: View, messages: Sequence[Message]) -> list[Share]:
    """Return the summary and the turns; input queued during a turn starts none."""
    said = iter(_said((*view.kept, *view.entries)))
    parts: list[Share] = []
    for place, message in enumerate(messages):
        tokens = message_tokens(message)
        if place == 0 and view.summary:
            parts.append(Share("summary", "summary of earlier messages", tokens))
            continue
        begin = next(said, None) if message.role in {"user", "system"} else None
        if begin is not None:
            parts.append(Share("turn", begin.label, tokens, begin.entry))
        elif parts and parts[-1].kind == "turn":
            last = parts[-1]
            parts[-1] = Share("turn", last.label, last.tokens + tokens, last.entry)
        else:
            parts.append(Share("turn", _EARLIER, tokens))
    return parts


def _said(entries: Sequence[Entry]) -> Iterator[_Begin | None]:
    """Yield for each message that is no answer or result the turn that it starts, or None."""
    for entry in entries:
        data = entry.data
        if type(data) is User and sendable(data.content, _ANYBODY, foreign=True):
            label = single(text_of(data.content))[:_LABEL].rstrip()
            yield _Begin(entry.id, label or "(no text)")
        elif type(data) is Context and sendable(data.content, _ANYBODY, foreign=True):
            yield None


def _scaled(parts: list[Share], total: int) -> list[Share]:
    """Return the parts, scaled so that they add up to `total`."""
    ends = [0, *accumulate(part.tokens for part in parts)]
    whole = ends[-1] or 1
    scaled = [end * total // whole for end in ends]
    return [
        Share(part.kind, part.label, scaled[place + 1] - scaled[place], part.entry)
        for place, part in enumerate(parts)
    ]


def text(of: Meter, turns: int = 20) -> str:
    """Return a meter as lines of at most 80 columns; only the newest `turns` one by one."""
    parts = _folded(of.parts, turns)
    whole = of.window or of.total or 1
    lines = [_line(part.label, part.tokens, whole) for part in parts]
    about = "" if of.exact else "about "
    total = f"{about}{of.total:,} tokens"
    if of.window:
        total += f" of {of.window:,} ({of.percent:.1f} %)"
    return "\n".join([*lines, total])


def _folded(parts: Sequence[Share], most: int) -> list[Share]:
    """Return the parts, with older turns combined into one."""
    turns = [part for part in parts if part.kind == "turn"]
    if len(turns) <= most:
        return [*parts]
    older = turns[: len(turns) - most]
    one = Share(
        "turn",
        f"{len(older)} earlier turn{'s' * (len(older) > 1)}",
        sum(part.tokens for part in older),
    )
    return [*(part for part in parts if part.kind != "turn"), one, *turns[len(older) :]]


def _line(label: str, tokens: int, whole: int) -> str:
    name = fitted(label, _NAME)
    filled = min(round(_BAR * tokens / whole), _BAR)
    bar = "█" * filled + "░" * (_BAR - filled)
    padded = name + " " * (_NAME - width(name))
    return f"{padded} {tokens:>10,} {100 * tokens / whole:>5.1f} %  {bar}"
