"""Which tool result of a path answers which call: the rule of `tape.repair`, as indices; pure.

The first result after a call answers it; if an id repeats, its newest call counts; the calls of a
stopped or failed answer have no results.

Context usage: tokens of a view, from counts of providers and from estimates.

A provider's count is used only if it is of the current view. The count of an answer from before an
anchor, an elision or a change of model is of another view, and is ignored.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from tape.context.repair import NOT_SENT
from tape.model.entries import (
    NO_JSON,
    Assistant,
    Audio,
    Context,
    Custom,
    Document,
    Image,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    User,
    select_tool_calls,
)

from ..llm.tokens import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tape.context.view import Message
    from tape.model.entries import BlobRef, Block, Content, Payload, Usage
    from tape.model.line import Entry

    from ..llm.types import Request, ToolSpec


class CallPair(NamedTuple):
    """A call and its result, as indices of entries."""

    id: str
    call: int
    """Index of the answer that contains the call."""
    result: int | None
    """Index of the result; None if there is none."""


def pair_calls(entries: Sequence[Entry]) -> list[CallPair]:
    """Return the calls of a path that are sent, in order; an id twice in one answer is one call."""
    asked: list[tuple[str, int]] = []
    results: list[int | None] = []
    waiting: dict[str, int] = {}
    for place, entry in enumerate(entries):
        data = entry.data
        if type(data) is ToolResult:
            at = waiting.pop(data.call_id, None)
            if at is not None:
                results[at] = place
        elif type(data) is Assistant:
            calls = dict.fromkeys([call.id for call in select_tool_calls(data.content)])
            for call in calls:
                waiting.pop(call, None)
            if is_sent_answer(data):
                for call in calls:
                    waiting[call] = len(asked)
                    asked.append((call, place))
                    results.append(None)
    return [CallPair(*call, result) for call, result in zip(asked, results, strict=True)]


def is_sent_answer(data: Payload) -> bool:
    """Return whether a payload is an answer that is sent to models again."""
    return type(data) is Assistant and data.stop_reason not in NOT_SENT


def is_turn_start(data: Payload) -> bool:
    """Return whether a payload is a prompt, or input queued like one, that may start a turn."""
    return type(data) is User or (type(data) is Context and data.role != "system")


ELIDED, TRUNCATED = "gong.elided", "gong.truncated"
REDUCTION_KINDS = frozenset({ELIDED, TRUNCATED})
"""Kinds of custom entries that shorten the results that are sent (`elide.py`)."""

MESSAGE_TOKENS = 4
"""Tokens of a message besides its content."""
IMAGE_TOKENS = 1_200
_TOOL_TOKENS = 8
"""Tokens of a tool besides its name, description and schema."""
_PDF_BYTES_PER_TOKEN, _PDF_PAGE_TOKENS, _MAX_PDF_PAGES = 25, 1_500, 100
"""Bytes of a PDF per token; a PDF has at least one page, and providers take at most 100."""
_AUDIO_BYTES_PER_TOKEN = 500
_CHARS_PER_TOKEN = 4
_NEARLY_FULL_SHARE = 0.8
_UNCOUNTED_APIS = frozenset({"rules"})
"""Wire APIs of models without tokenizer, whose usage is a count of words."""


class ContextSize(NamedTuple):
    """The size of a model's context, in tokens."""

    tokens: int
    exact: bool
    """Whether a provider counted it, except for what followed its answer; else estimated."""


class TokenMemo:
    """Cache of estimates by object identity; it holds its objects, so that no id is reused."""

    def __init__(self, most: int, most_tokens: int) -> None:
        self.most, self.most_tokens = most, most_tokens
        self.known: dict[int, tuple[object, int]] = {}
        self.held = 0

    def keep(self, value: object, tokens: int) -> int:
        """Store the tokens of a new value, and drop the oldest values above the size limit."""
        while self.known and (len(self.known) >= self.most or self.held >= self.most_tokens):
            for key in [*islice(self.known, (len(self.known) + 1) // 2)]:
                self.held -= self.known.pop(key)[1]
        self.known[id(value)] = (value, tokens)
        self.held += tokens
        return tokens


_MEMO = TokenMemo(most=100_000, most_tokens=16_000_000)
_MEMO_MIN_CHARS = 200
"""Characters from which on a text is cached by itself."""


def count_content_tokens(content: Content) -> int:
    """Return the estimated tokens of content; cached for the same object."""
    known = _MEMO.known.get(id(content))
    if known is not None:
        return known[1]
    return _MEMO.keep(content, sum(map(_count_block_tokens, content)))


def count_text_tokens(text: str) -> int:
    """Return the estimated tokens of a text; a long text is cached."""
    if len(text) < _MEMO_MIN_CHARS:
        return estimate_tokens(text)
    known = _MEMO.known.get(id(text))
    return known[1] if known is not None else _MEMO.keep(text, estimate_tokens(text))


def count_message_tokens(message: Message) -> int:
    """Return the estimated tokens of a message."""
    return count_content_tokens(message.content) + MESSAGE_TOKENS


def count_messages_tokens(messages: Sequence[Message]) -> int:
    """Return the estimated tokens of messages; 0 for none."""
    known, total = _MEMO.known, MESSAGE_TOKENS * len(messages)
    for message in messages:
        found = known.get(id(message.content))
        total += found[1] if found is not None else count_content_tokens(message.content)
    return total


def count_fixed_tokens(system: str, tools: Iterable[ToolSpec]) -> int:
    """Return the estimated tokens of system prompt and tools in every call."""
    return _estimate_text(system) + sum(map(count_tool_tokens, tools))


def count_tool_tokens(tool: ToolSpec) -> int:
    """Return the estimated tokens of a tool's definition."""
    schema = bytes(tool.parameters).decode()
    return _TOOL_TOKENS + _estimate_text(f"{tool.name} {tool.description} {schema}")


@lru_cache(maxsize=1_000)
def _estimate_text(text: str) -> int:
    return estimate_tokens(text)


def count_entry_tokens(entry: Entry) -> int:
    """Return the estimated tokens of an entry in a view; 0 if it is not sent."""
    data = entry.data
    if (
        type(data) is User
        or type(data) is Context
        or type(data) is ToolResult
        or is_sent_answer(data)
    ):
        return count_content_tokens(data.content) + MESSAGE_TOKENS  # type: ignore[attr-defined]
    return 0


def measure_context(request: Request, entries: Sequence[Entry], *, since: int = 0) -> ContextSize:
    """Return the size of a call that is about to be made.

    It is the provider's count for the newest answer that is still valid for the view, plus an
    estimate of what came after it; without one, an estimate of the whole `request`.
    `entries` are those in view; the first `since` of them come from before the newest anchor.
    """
    for place in range(len(entries) - 1, since - 1, -1):
        data = entries[place].data
        if type(data) is Custom and data.kind in REDUCTION_KINDS:
            break
        if type(data) is Assistant and is_sent_answer(data) and data.model == request.model:
            counted = 0 if data.api in _UNCOUNTED_APIS else count_total_tokens(data.usage)
            if counted:
                tail = sum(map(count_entry_tokens, entries[place + 1 :]))
                return ContextSize(counted + tail, exact=True)
    fixed = count_fixed_tokens(request.system, request.tools)
    return ContextSize(fixed + count_messages_tokens(request.messages), exact=False)


def count_total_tokens(usage: Usage) -> int:
    """Return all tokens of a call: prompt, cached or not, and answer."""
    parts = usage.input + (usage.cache_read or 0) + (usage.cache_write or 0) + usage.output
    return usage.total or parts


def build_fill_warning(tokens: int, window: int | None) -> str | None:
    """Return the warning for a context window over 80 % full; None below, or if unknown."""
    if not window or tokens <= _NEARLY_FULL_SHARE * window:
        return None
    return f"Context usage at ~{round(100 * tokens / window)}% of context window"


def estimate_by_characters(messages: Iterable[Message]) -> int:
    """Return the rough rule of one token for four characters of text, calls and thinking."""
    blocks = (block for message in messages for block in message.content)
    return ceil(sum(map(_count_characters, blocks)) / _CHARS_PER_TOKEN)


def _count_characters(block: Block) -> int:
    match block:
        case Text(text=text) | Thinking(text=text):
            return len(text)
        case ToolCall():
            return len(block.name) + len(_read_call_arguments(block))
    return 0


def _count_block_tokens(block: Block) -> int:
    match block:
        case Text(text=text):
            return count_text_tokens(text)
        case Thinking(text=text):
            return (
                count_text_tokens(text) if block.wire != NO_JSON else 0
            )  # sent only to the model that wrote it
        case ToolCall():
            return MESSAGE_TOKENS + estimate_tokens(block.name) + _count_argument_tokens(block)
        case Image() | Document() | Audio():
            return _count_media_tokens(block.blob, block.mime)
        case Opaque(raw=raw):
            return ceil(len(bytes(raw)) / _CHARS_PER_TOKEN)
    return 0  # of an unknown type: never sent


def _count_media_tokens(blob: BlobRef, mime: str) -> int:
    if mime.startswith("image/"):
        return IMAGE_TOKENS
    if mime.startswith("audio/"):
        return ceil(blob.bytes / _AUDIO_BYTES_PER_TOKEN)
    if mime.startswith("text/"):
        return ceil(blob.bytes / _CHARS_PER_TOKEN)
    return min(
        max(_PDF_PAGE_TOKENS, blob.bytes // _PDF_BYTES_PER_TOKEN), _MAX_PDF_PAGES * _PDF_PAGE_TOKENS
    )


def _read_call_arguments(call: ToolCall) -> str:
    return call.args_text if call.args_text is not None else bytes(call.args).decode()


def _count_argument_tokens(call: ToolCall) -> int:
    """Return the tokens of a call's arguments, cached by the object that repair passes on."""
    known = _MEMO.known.get(id(call.args))
    if known is not None:
        return known[1]
    tokens = estimate_tokens(_read_call_arguments(call))
    return tokens if call.args is NO_JSON else _MEMO.keep(call.args, tokens)
