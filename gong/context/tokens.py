"""Context usage in tokens: counts of providers where they hold, estimates elsewhere; pure.

A provider's count is used only if it is of the current view. The count of an answer from before an
anchor, an elision or a change of model is of another view, and is ignored:

    view       [ A(summary)  5  6  7 ]   the answer 7 counted 9,000, and came after A: exact
               [ A(summary)  5  6 ]      6 was answered before A: everything is estimated
    then       + results of 7            9,000 + an estimate of the results

`pair_calls` says which tool result of a path answers which call, by the rule of
`tape.context.repair`, as indices: the first result after a call answers it; if an id repeats, its
newest call counts; the calls of a stopped or failed answer have no results.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

from tape.context.repair import NOT_SENT
from tape.model.entries import (
    NO_JSON,
    Assistant,
    Audio,
    Context,
    Document,
    Image,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    User,
    read_arguments,
    select_tool_calls,
)

from ..llm.tokens import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tape.context.view import Message
    from tape.model.entries import Block, Content, Payload, Usage
    from tape.model.line import Entry

    from ..llm.types import ToolSpec


class CallPair(NamedTuple):
    """A call and its result, as indices of entries."""

    id: str
    call: int
    """Index of the answer that contains the call."""
    result: int | None
    """Index of the result; None if there is none."""


def pair_calls(entries: Sequence[Entry]) -> list[CallPair]:
    """Return the calls of a path that are sent, in order; an id twice in one answer is one call."""
    calls_in_order: list[tuple[str, int]] = []
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
                    waiting[call] = len(calls_in_order)
                    calls_in_order.append((call, place))
                    results.append(None)
    return [CallPair(*call, result) for call, result in zip(calls_in_order, results, strict=True)]


def is_sent_answer(data: Payload) -> bool:
    """Return whether a payload is an answer that is sent to models again."""
    return type(data) is Assistant and data.stop_reason not in NOT_SENT


def is_turn_start(data: Payload) -> bool:
    """Return whether a payload is a prompt, or input queued like one, that may start a turn."""
    return type(data) is User or (type(data) is Context and data.role != "system")


ELIDED, TRUNCATED = "gong.elided", "gong.truncated"
REDUCTION_KINDS = frozenset({ELIDED, TRUNCATED})
"""Kinds of custom entries that shorten the results that are sent (`trim.py`)."""

MESSAGE_TOKENS = 4
"""Tokens of a message besides its content."""
IMAGE_TOKENS = 1_200
_TOOL_TOKENS = 8
"""Tokens of a tool besides its name, description and schema."""
_PDF_BYTES_PER_TOKEN, _PDF_PAGE_TOKENS, _MAX_PDF_PAGES = 25, 1_500, 100
"""Bytes of a PDF per token; a PDF has at least one page, and providers take at most 100."""
CHARS_PER_TOKEN = 4
_MEDIA_BYTES_PER_TOKEN = {"audio": 500, "text": CHARS_PER_TOKEN}
NEARLY_FULL_SHARE = 0.8
"""Share of the context window above which a warning is given."""
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
_MEMO_MIN_TOKENS = 64
"""Tokens from which on content is cached: a short one is estimated as fast as it is found."""


_READ_BYTES, _SAMPLE_STEP, _RECENT_BYTES = 4_000_000, 32, 50_000
"""Bytes of text that are all read; behind them one message in so many is; and how much of what was
read tells the density of the others."""


def count_content_tokens(content: Content) -> int:
    """Return the estimated tokens of content; cached for the same object."""
    known = _MEMO.known.get(id(content))
    if known is not None:
        return known[1]
    tokens = sum(map(_count_block_tokens, content))
    return tokens if tokens < _MEMO_MIN_TOKENS else _MEMO.keep(content, tokens)


def count_text_tokens(text: str) -> int:
    """Return the estimated tokens of a text; a long text is cached."""
    if len(text) < _MEMO_MIN_CHARS:
        return estimate_tokens(text)
    known = _MEMO.known.get(id(text))
    return known[1] if known is not None else _MEMO.keep(text, estimate_tokens(text))


class SampledEstimate:
    """The tokens of messages one after the other: all are read at first, then one in 32.

    The first 4 MB of text, about a million tokens, are estimated message by message: whether they
    fit a context window never depends on a sample. Behind them every 32nd message is read, and the
    others get as many tokens as their bytes have in those read lately. Of 160 MB, all of which
    took 11 s of processor time, the total is within 1 % after 0.7 s.
    """

    __slots__ = ("_bytes", "_place", "_seen", "_tokens")

    def __init__(self) -> None:
        self._place = self._seen = 0
        self._bytes = self._tokens = 0
        """Of the messages read lately: bytes at most, and estimated tokens."""

    def count(self, content: Content) -> int:
        """Return the tokens of the next content."""
        size = compute_token_bound(content)
        self._place += 1
        self._seen += size
        if self._seen > _READ_BYTES and self._place % _SAMPLE_STEP and self._bytes:
            return size * self._tokens // self._bytes
        tokens = count_content_tokens(content)
        self._bytes += size
        self._tokens += tokens
        if self._bytes > _RECENT_BYTES:
            self._bytes //= 2
            self._tokens //= 2
        return tokens


def count_message_tokens(message: Message) -> int:
    """Return the estimated tokens of a message."""
    return count_content_tokens(message.content) + MESSAGE_TOKENS


def count_messages_tokens(messages: Iterable[Message]) -> int:
    """Return the estimated tokens of messages; 0 for none."""
    known, total = _MEMO.known, 0
    for message in messages:
        counted = known.get(id(message.content))
        total += counted[1] if counted is not None else count_content_tokens(message.content)
        total += MESSAGE_TOKENS
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


_SENT_PAYLOADS = frozenset({User, Context, ToolResult})


def get_sent_content(data: Payload) -> Content | None:
    """Return the content of an entry in a view; None if it is not sent."""
    if type(data) in _SENT_PAYLOADS or is_sent_answer(data):
        return data.content  # type: ignore[attr-defined, no-any-return]
    return None


def count_entry_tokens(entry: Entry) -> int:
    """Return the estimated tokens of an entry in a view; 0 if it is not sent."""
    content = get_sent_content(entry.data)
    return 0 if content is None else count_content_tokens(content) + MESSAGE_TOKENS


def compute_token_bound(content: Content) -> int:
    """Return at least as many tokens as `count_content_tokens`, without reading the texts.

    A text has at most as many tokens as bytes in UTF-8.
    """
    tokens = 0
    block: Any
    for block in content:  # by exact types, as in `tape.context.repair`
        kind = type(block)
        if kind is Text:
            tokens += _count_bytes(block.text)
        elif kind is ToolCall:
            tokens += (
                MESSAGE_TOKENS + _count_bytes(block.name) + _count_bytes(read_arguments(block))
            )
        elif kind is Thinking:
            tokens += _count_bytes(block.text) if block.wire != NO_JSON else 0
        else:
            tokens += _count_block_tokens(block)
    return tokens


def _count_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def read_counted_tokens(answer: Assistant, model: str) -> int:
    """Return what a provider counted up to the end of an answer of this model; 0 for nothing."""
    if answer.model != model or answer.api in _UNCOUNTED_APIS or not is_sent_answer(answer):
        return 0
    return count_total_tokens(answer.usage)


def count_total_tokens(usage: Usage) -> int:
    """Return all tokens of a call: prompt, cached or not, and answer."""
    parts = usage.input + (usage.cache_read or 0) + (usage.cache_write or 0) + usage.output
    return usage.total or parts


def build_fill_warning(tokens: int, window: int | None) -> str | None:
    """Return the warning for a context window over 80 % full; None below, or if unknown."""
    if not window or tokens <= NEARLY_FULL_SHARE * window:
        return None
    return f"Context usage at ~{round(100 * tokens / window)}% of context window"


def estimate_by_characters(messages: Iterable[Message]) -> int:
    """Return the rough rule of one token for four characters of text, calls and thinking."""
    characters = 0
    for block in (block for message in messages for block in message.content):
        match block:
            case Text(text=text) | Thinking(text=text):
                characters += len(text)
            case ToolCall():
                characters += len(block.name) + len(read_arguments(block))
    return ceil(characters / CHARS_PER_TOKEN)


def _count_block_tokens(block: Block) -> int:
    match block:
        case Text(text=text):
            return count_text_tokens(text)
        case Thinking(text=text):
            # Sent only to the model that wrote it.
            return count_text_tokens(text) if block.wire != NO_JSON else 0
        case ToolCall():
            known = _MEMO.known.get(id(block.args))  # the object that repair passes on
            tokens = known[1] if known is not None else estimate_tokens(read_arguments(block))
            if known is None and block.args is not NO_JSON:
                _MEMO.keep(block.args, tokens)
            return MESSAGE_TOKENS + estimate_tokens(block.name) + tokens
        case Image() | Document() | Audio():
            return _count_media_tokens(block.mime.partition("/")[0], block.blob.bytes)
        case Opaque(raw=raw):
            return ceil(len(bytes(raw)) / CHARS_PER_TOKEN)
    return 0  # of an unknown type: never sent


def _count_media_tokens(media: str, size: int) -> int:
    if media == "image":
        return IMAGE_TOKENS
    if media in _MEDIA_BYTES_PER_TOKEN:
        return ceil(size / _MEDIA_BYTES_PER_TOKEN[media])
    most = _MAX_PDF_PAGES * _PDF_PAGE_TOKENS
    return min(max(_PDF_PAGE_TOKENS, size // _PDF_BYTES_PER_TOKEN), most)
