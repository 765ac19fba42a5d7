"""How full a model's window is: tokens of a view, from what providers count and from estimates.

A provider's count is taken where one stands for the view as it is now: that of an answer from
before an anchor, an elision or a change of model stands for another one, and never counts.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from tape.blocks import NO_JSON, Audio, Document, Image, Opaque, Text, Thinking, ToolCall
from tape.entries import Assistant, Context, Custom, ToolResult, User

from ..llm.tokens import estimate
from .pairing import is_sent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tape.blocks import BlobRef, Block, Content
    from tape.entries import Usage
    from tape.line import Entry
    from tape.view import Message

    from ..llm.types import Request, ToolSpec

ELIDED, TRUNCATED = "gong.elided", "gong.truncated"
LESSENED = frozenset({ELIDED, TRUNCATED})
"""Kinds of custom entries from which on less is sent of results (`elide.py`)."""

MESSAGE_TOKENS = 4
"""What a message takes besides its content."""
IMAGE_TOKENS = 1_200
_TOOL_TOKENS = 8
"""What a tool takes besides its name, description and schema."""
_PDF_BYTES, _PAGE_TOKENS, _PAGES = 25, 1_500, 100
"""Bytes of a PDF for a token; a PDF has at least one page, and no provider takes more than 100."""
_AUDIO_BYTES = 500
_CHARACTERS = 4
_NEARLY_FULL = 0.8
_UNCOUNTED = frozenset({"rules"})
"""Wire APIs of models that have no tokenizer: what they call usage is a count of words."""


class Size(NamedTuple):
    """How much stands before a model."""

    tokens: int
    exact: bool
    """A provider counted it, but for what came after its answer; otherwise all is estimated."""


class Memo:
    """What was estimated before, by identity: what is remembered is held, so no id is reused."""

    def __init__(self, most: int, most_tokens: int) -> None:
        self.most, self.most_tokens = most, most_tokens
        self.known: dict[int, tuple[object, int]] = {}
        self.held = 0

    def keep(self, value: object, tokens: int) -> int:
        """Remember how many tokens a new value takes, and forget the oldest where it is much."""
        while self.known and (len(self.known) >= self.most or self.held >= self.most_tokens):
            for key in [*islice(self.known, (len(self.known) + 1) // 2)]:
                self.held -= self.known.pop(key)[1]
        self.known[id(value)] = (value, tokens)
        self.held += tokens
        return tokens


_MEMO = Memo(most=100_000, most_tokens=16_000_000)
_LONG = 200
"""Characters from which on a text is worth remembering by itself."""


def tokens_of(content: Content) -> int:
    """Return about how many tokens content takes; the same content again costs next to nothing."""
    known = _MEMO.known.get(id(content))
    if known is not None:
        return known[1]
    return _MEMO.keep(content, sum(map(_block_tokens, content)))


def text_tokens(text: str) -> int:
    """Return about how many tokens a text has; the same long text again costs next to nothing."""
    if len(text) < _LONG:
        return estimate(text)
    known = _MEMO.known.get(id(text))
    return known[1] if known is not None else _MEMO.keep(text, estimate(text))


def message_tokens(message: Message) -> int:
    """Return about how many tokens a message takes."""
    return tokens_of(message.content) + MESSAGE_TOKENS


def messages_tokens(messages: Sequence[Message]) -> int:
    """Return about how many tokens messages take; 0 for none."""
    known, total = _MEMO.known, MESSAGE_TOKENS * len(messages)
    for message in messages:
        found = known.get(id(message.content))
        total += found[1] if found is not None else tokens_of(message.content)
    return total


def fixed_tokens(system: str, tools: Iterable[ToolSpec]) -> int:
    """Return about how many tokens stand before the messages of every call."""
    return _estimated(system) + sum(map(tool_tokens, tools))


def tool_tokens(tool: ToolSpec) -> int:
    """Return about how many tokens the definition of a tool takes."""
    schema = bytes(tool.parameters).decode()
    return _TOOL_TOKENS + _estimated(f"{tool.name} {tool.description} {schema}")


@lru_cache(maxsize=1_000)
def _estimated(text: str) -> int:
    return estimate(text)


def entry_tokens(entry: Entry) -> int:
    """Return about how many tokens an entry takes in a view; 0 for those that are not sent."""
    data = entry.data
    if type(data) is User or type(data) is Context or type(data) is ToolResult or is_sent(data):
        return tokens_of(data.content) + MESSAGE_TOKENS  # type: ignore[attr-defined]
    return 0


def context_tokens(request: Request, entries: Sequence[Entry], *, since: int = 0) -> Size:
    """Return the size of a call that is about to be made.

    What the provider counted for the newest answer of its model that still stands for the view,
    and an estimate of what came after it; without one, an estimate of all of `request`.
    `entries` are those in view; the first `since` of them come from before the newest anchor.
    """
    for place in range(len(entries) - 1, since - 1, -1):
        data = entries[place].data
        if type(data) is Custom and data.kind in LESSENED:
            break
        if type(data) is Assistant and is_sent(data) and data.model == request.model:
            counted = 0 if data.api in _UNCOUNTED else total_tokens(data.usage)
            if counted:
                tail = sum(map(entry_tokens, entries[place + 1 :]))
                return Size(counted + tail, exact=True)
    fixed = fixed_tokens(request.system, request.tools)
    return Size(fixed + messages_tokens(request.messages), exact=False)


def total_tokens(usage: Usage) -> int:
    """Return all tokens of a call: prompt, cached or not, and answer."""
    parts = usage.input + (usage.cache_read or 0) + (usage.cache_write or 0) + usage.output
    return usage.total or parts


def warning(tokens: int, window: int | None) -> str | None:
    """Return what to say of a window more than 80 % full; None below, or where it is unknown."""
    if not window or tokens <= _NEARLY_FULL * window:
        return None
    return f"Context usage at ~{round(100 * tokens / window)}% of context window"


def quarter_of_characters(messages: Iterable[Message]) -> int:
    """Return the rough rule of one token for four characters of text, calls and thinking."""
    blocks = (block for message in messages for block in message.content)
    return ceil(sum(map(_characters, blocks)) / _CHARACTERS)


def _characters(block: Block) -> int:
    match block:
        case Text(text=text) | Thinking(text=text):
            return len(text)
        case ToolCall():
            return len(block.name) + len(_arguments(block))
    return 0


def _block_tokens(block: Block) -> int:
    match block:
        case Text(text=text):
            return text_tokens(text)
        case Thinking(text=text):
            return text_tokens(text) if block.wire != NO_JSON else 0  # goes to whom wrote it only
        case ToolCall():
            return MESSAGE_TOKENS + estimate(block.name) + _argument_tokens(block)
        case Image() | Document() | Audio():
            return _media_tokens(block.blob, block.mime)
        case Opaque(raw=raw):
            return ceil(len(bytes(raw)) / _CHARACTERS)
    return 0  # of an unknown type: never sent


def _media_tokens(blob: BlobRef, mime: str) -> int:
    if mime.startswith("image/"):
        return IMAGE_TOKENS
    if mime.startswith("audio/"):
        return ceil(blob.bytes / _AUDIO_BYTES)
    if mime.startswith("text/"):
        return ceil(blob.bytes / _CHARACTERS)
    return min(max(_PAGE_TOKENS, blob.bytes // _PDF_BYTES), _PAGES * _PAGE_TOKENS)


def _arguments(call: ToolCall) -> str:
    return call.args_text if call.args_text is not None else bytes(call.args).decode()


def _argument_tokens(call: ToolCall) -> int:
    """Return the tokens of a call's arguments, remembered by what repair passes on unchanged."""
    known = _MEMO.known.get(id(call.args))
    if known is not None:
        return known[1]
    tokens = estimate(_arguments(call))
    return tokens if call.args is NO_JSON else _MEMO.keep(call.args, tokens)
