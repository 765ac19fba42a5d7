"""The types of a model call: request, stream events, response; provider-neutral values.

Messages are made of `tape` blocks. A stream ends with exactly one `Finish` or `Failed`; it never
raises into its reader.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Raw, Struct, field

from tape.context.view import Message
from tape.model.entries import (
    NO_JSON,
    BlobRef,
    Content,
    Thinking,
    ToolCall,
    Usage,
    join_texts,
    select_tool_calls,
)

from ..errors import ModelError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

PAUSE_STOP = "pause_turn"
"""The `raw_stop` of an answer that is to be sent back unchanged."""
StopReason = Literal["stop", "length", "tool_calls", "content_filter", "error", "aborted"]
ChoiceMode = Literal["auto", "none", "required", "named"]


class Grammar(Struct, frozen=True):
    """The grammar of free text."""

    syntax: Literal["lark", "regex"]
    definition: str


class ToolSpec(Struct, frozen=True, omit_defaults=True):
    """A tool definition for a model; `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: Raw
    freeform: Grammar | None = None
    """Grammar of free-text input, if the provider supports it; else JSON by `parameters`."""


class ToolChoice(Struct, frozen=True):
    """Whether the model may, must not or must call a tool; `name` only with mode "named"."""

    mode: ChoiceMode = "auto"
    name: str | None = None


class ResponseFormat(Struct, frozen=True):
    """The required format of an answer; `schema` is a JSON Schema of an object."""

    name: str
    schema: Raw
    strict: bool = False
    """The schema names every field as required and allows no others."""


class Request(Struct, frozen=True, kw_only=True):
    """One model call. `model` is the provider's own id, what follows `provider/`."""

    model: str
    messages: Sequence[Message]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop_sequences: tuple[str, ...] = ()
    reasoning_effort: Literal["low", "medium", "high", "xhigh"] | None = None
    session: str | None = None
    """Tape id, sent to providers that cache by key."""
    metadata: dict[str, str] | None = None
    """Metadata that the provider stores with the call; Anthropic accepts only a `user_id`."""
    options: Raw = NO_JSON
    """A provider's own options, a JSON object merged into the request body."""
    provider: str | None = None
    """Name of the provider, if the caller leaves the routing to the client."""
    response_format: ResponseFormat | None = None
    """Only for providers that have `native_objects`."""
    load: Callable[[BlobRef], bytes] | None = None
    """Returns the bytes of a picture or file, or raises NotFound; without it they are not sent."""
    raw: bool = False
    """Whether to store the provider's events, for the response's `raw`."""


class Allowance(Struct, frozen=True):
    """The state of a rate limit."""

    limit: int | None = None
    remaining: int | None = None
    reset: float | None = None
    """Seconds from the start of the answer until the limit is fully reset."""


class RateLimit(Struct, frozen=True):
    """Rate limits from the headers of an answer; None if not given."""

    requests: Allowance | None = None
    tokens: Allowance | None = None


class Response(Struct, frozen=True, kw_only=True):
    """A complete answer."""

    content: Content
    stop_reason: StopReason
    usage: Usage
    model: str
    raw_stop: str | None = None
    response_id: str | None = None
    warnings: tuple[str, ...] = ()
    """What of the request was left out, because the provider has no place for it, and what the
    provider complained of when the answer was whole."""
    rate_limit: RateLimit | None = None
    raw: tuple[Raw, ...] = ()
    """The provider's events as received, if the request asked for them."""

    @property
    def is_paused(self) -> bool:
        """Whether the provider paused without calls: the answer, sent back as it is, continues."""
        return self.raw_stop == PAUSE_STOP and bool(self.content) and not self.tool_calls

    @property
    def text(self) -> str:
        """The text blocks, concatenated."""
        return join_texts(self.content)

    @property
    def reasoning(self) -> str:
        """The thinking blocks, concatenated."""
        return "".join(block.text for block in self.content if isinstance(block, Thinking))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls in order."""
        return select_tool_calls(self.content)


class _StreamEventBase(Struct, frozen=True, tag_field="type"):
    pass


class StreamStart(_StreamEventBase, frozen=True, tag="stream_start"):
    """The provider started to answer."""

    model: str
    response_id: str | None = None


class TextStart(_StreamEventBase, frozen=True, tag="text_start"):
    """A text block begins; `index` is its place in the content."""

    index: int


class TextDelta(_StreamEventBase, frozen=True, tag="text_delta"):
    """More of a text block."""

    index: int
    delta: str


class TextEnd(_StreamEventBase, frozen=True, tag="text_end"):
    """A text block is whole."""

    index: int
    wire: Raw = NO_JSON


class ReasoningStart(_StreamEventBase, frozen=True, tag="reasoning_start"):
    """A thinking block begins."""

    index: int


class ReasoningDelta(_StreamEventBase, frozen=True, tag="reasoning_delta"):
    """More of a thinking block."""

    index: int
    delta: str


class ReasoningEnd(_StreamEventBase, frozen=True, tag="reasoning_end"):
    """A thinking block is whole; `wire` holds its signature in the provider's own form."""

    index: int
    wire: Raw = NO_JSON
    redacted: bool = False


class ToolCallStart(_StreamEventBase, frozen=True, tag="tool_call_start"):
    """A tool call begins; `provider_id` is the provider's id for it."""

    index: int
    name: str
    provider_id: str


class ToolCallDelta(_StreamEventBase, frozen=True, tag="tool_call_delta"):
    """More of a call's arguments, a piece of JSON text."""

    index: int
    delta: str


class ToolCallEnd(_StreamEventBase, frozen=True, tag="tool_call_end"):
    """A call is whole; `wire` holds what the provider wants back with it."""

    index: int
    wire: Raw = NO_JSON


class OpaqueBlock(_StreamEventBase, frozen=True, tag="opaque_block"):
    """A whole block of the provider's own, such as a server-side tool's: never a call of ours."""

    index: int
    raw: Raw


class Finish(_StreamEventBase, frozen=True, tag="finish"):
    """The answer is whole."""

    stop_reason: StopReason
    usage: Usage
    raw_stop: str | None = None
    why: str | None = None
    """The provider's explanation of a refusal."""
    warnings: tuple[str, ...] = ()
    rate_limit: RateLimit | None = None
    raw: tuple[Raw, ...] = ()
    """These three as in Response."""


class StreamFailure(Struct, frozen=True):
    """The call failed; nothing follows. It has no tag: it is never encoded."""

    error: ModelError
    usage: Usage = field(default_factory=Usage)


StreamEvent = (
    StreamStart
    | TextStart
    | TextDelta
    | TextEnd
    | ReasoningStart
    | ReasoningDelta
    | ReasoningEnd
    | ToolCallStart
    | ToolCallDelta
    | ToolCallEnd
    | OpaqueBlock
    | Finish
    | StreamFailure
)


class Provider(Protocol):
    """Anything that answers a request: the seam between the agent and every model.

    One that takes a `response_format` has an attribute `native_objects` that is True. One that
    cannot be told everything about tools has a method `supports_tool_choice` from a mode to bool.
    """

    name: str
    """The part of a model name before the slash."""
    api: str
    """Wire API, such as anthropic-messages; `wire` data is only sent back to the same API."""
    endpoint: str
    """Base address, or the provider's name if it has none."""

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Answer with stream events; cancelling or closing it closes the connection."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...
