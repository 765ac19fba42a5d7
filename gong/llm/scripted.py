"""The model `scripted/FILE.json`: plays the answers of a file, one a call (docs/scripted-model.md).

A provider starts at the first answer. An answer counts as used once it was requested, even if it
fails or is cut off. The functions that cut an answer into events and count it, a word for
a token, also serve the offline model.
"""

from __future__ import annotations

import re
from asyncio import sleep
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self, assert_never

import msgspec
from msgspec import Meta, Raw, Struct, field

from tape.model.entries import Text, Thinking, ToolCall, Usage
from tape.text import format_count

from .. import errors
from ..errors import ConfigurationError, ModelError, ScriptEnded
from .types import (
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StopReason,
    StreamEvent,
    StreamFailure,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator

    from .types import Request


_WORD = re.compile(r"\s*\S+|\s+")
_BLANKLESS = re.compile(r"\S+")
_ARGUMENTS_PIECE = 16


def iter_text_events(index: int, text: str, size: int | None = None) -> Iterator[StreamEvent]:
    """Yield the events of a text block, word by word or `size` characters at a time."""
    yield TextStart(index)
    for piece in _split_pieces(text, size):
        yield TextDelta(index, piece)
    yield TextEnd(index)


def iter_thinking_events(index: int, text: str, size: int | None = None) -> Iterator[StreamEvent]:
    """Yield the events of a thinking block."""
    yield ReasoningStart(index)
    for piece in _split_pieces(text, size):
        yield ReasoningDelta(index, piece)
    yield ReasoningEnd(index)


def iter_call_events(
    index: int, name: str, provider_id: str, arguments: str, size: int | None = None
) -> Iterator[StreamEvent]:
    """Yield the events of a tool call; `arguments` is its JSON text."""
    yield ToolCallStart(index, name, provider_id)
    for piece in _split_pieces(arguments, size or _ARGUMENTS_PIECE):
        yield ToolCallDelta(index, piece)
    yield ToolCallEnd(index)


def count_usage(request: Request, answer: Iterable[str]) -> Usage:
    """Return what a call costs when a word is a token; `answer` is the texts sent back."""
    inputs = [request.system]
    for block in (block for message in request.messages for block in message.content):
        match block:
            case Text() | Thinking():
                inputs.append(block.text)
            case ToolCall():
                inputs.append(block.args_text or bytes(block.args).decode())
            case _:
                pass  # pictures and files have no words
    input_tokens, answered = (sum(map(_count_words, texts)) for texts in (inputs, answer))
    return Usage(input=input_tokens, output=answered, total=input_tokens + answered)


def _count_words(text: str) -> int:
    """Return the number of words, without a list of them: a prompt may have millions."""
    return sum(1 for _ in _BLANKLESS.finditer(text))


def _split_pieces(text: str, size: int | None) -> list[str]:
    """Return `text` in parts that joined are the text again."""
    if size is None:
        return _WORD.findall(text)
    return [text[start : start + size] for start in range(0, len(text), size)]


_Milliseconds = Annotated[float, Meta(ge=0)]
_Pieces = Annotated[int, Meta(ge=1)]
_FAILURES: dict[str, type[ModelError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, ModelError)
}


class _Strict(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a script; a misspelt key in it is an error."""


class ScriptedText(_Strict, frozen=True, tag="text"):
    """A text block of an answer."""

    text: str


class ScriptedThinking(_Strict, frozen=True, tag="thinking"):
    """A thinking block of an answer."""

    text: str


class ScriptedCall(_Strict, frozen=True, tag="tool_call"):
    """A tool call; `args_text` replaces `args` and need not be valid JSON."""

    name: str
    args: dict[str, Raw] = field(default_factory=dict)
    args_text: str | None = None

    @property
    def arguments(self) -> str:
        """The text the model is to write as arguments."""
        return msgspec.json.encode(self.args).decode() if self.args_text is None else self.args_text


class ScriptedUsage(_Strict, frozen=True):
    """The usage of an answer; `total` is the sum of the others."""

    input: int = 0
    output: int = 0
    reasoning: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None

    def to_usage(self) -> Usage:
        """Return it with its total."""
        total = self.input + self.output + (self.cache_read or 0) + (self.cache_write or 0)
        return Usage(
            self.input, self.output, self.reasoning, self.cache_read, self.cache_write, total
        )


class ScriptedFailure(_Strict, frozen=True):
    """How an answer fails: immediately or behind `after` characters of text."""

    kind: str = field(name="class")
    message: str = "scripted failure"
    status: int | None = None
    retry_after: float | None = None
    after: Annotated[int, Meta(ge=0)] | None = None

    def to_error(self) -> ModelError:
        """Return the error to fail with."""
        return _FAILURES[self.kind](
            self.message,
            provider=ScriptedProvider.name,
            status=self.status,
            retry_after=self.retry_after,
        )


ScriptedBlock = ScriptedText | ScriptedThinking | ScriptedCall


class ScriptedAnswer(_Strict, frozen=True):
    """One answer of a script; `blocks` replaces thinking, text and calls."""

    text: str = ""
    thinking: str = ""
    tool_calls: tuple[ScriptedCall, ...] = ()
    blocks: tuple[ScriptedBlock, ...] = ()
    stop_reason: StopReason | None = None
    usage: ScriptedUsage | None = None
    delay_ms: _Milliseconds = 0
    chunk: _Pieces | None = None
    chunk_delay_ms: _Milliseconds = 0
    error: ScriptedFailure | None = None

    def list_blocks(self) -> tuple[ScriptedBlock, ...]:
        """Return the blocks in order."""
        thinking = (ScriptedThinking(self.thinking),) if self.thinking else ()
        text = (ScriptedText(self.text),) if self.text else ()
        return self.blocks or (*thinking, *text, *self.tool_calls)


class Script(_Strict, frozen=True):
    """A whole file, when it is not just the array of its answers."""

    answers: tuple[ScriptedAnswer, ...]


_DECODER = msgspec.json.Decoder(Script | tuple[ScriptedAnswer, ...])


class ScriptedProvider:
    """Replays `answers`; `path` is used in its messages."""

    name = "scripted"
    api = "scripted"
    endpoint = "scripted"

    def __init__(self, path: str, answers: tuple[ScriptedAnswer, ...]) -> None:
        self.path = path
        self.answers = answers
        self.played = 0

    @classmethod
    def from_file(cls, path: str) -> Self:
        """Read a script; ConfigurationError names the file and the key that is wrong."""
        try:
            script = _DECODER.decode(Path(path).read_bytes())
        except OSError as error:
            raise ConfigurationError(f"script {path}: {error.strerror or error}") from error
        except (msgspec.MsgspecError, ValueError) as error:
            raise ConfigurationError(f"script {path}: {error}") from error
        answers = script.answers if isinstance(script, Script) else script
        for number, answer in enumerate(answers):
            # what the shape alone does not forbid
            where = f"script {path}: answer {number}"
            if answer.blocks and (answer.text or answer.thinking or answer.tool_calls):
                raise ConfigurationError(
                    f"{where}: `blocks` cannot be combined with text, thinking, tool_calls"
                )
            if answer.error and answer.error.kind not in _FAILURES:
                known = ", ".join(sorted(_FAILURES))
                raise ConfigurationError(
                    f"{where}: `error.class` is {answer.error.kind!r}: use one of {known}"
                )
        return cls(path, answers)

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Play the next answer; Failed with ScriptEnded when there is none."""
        if self.played == len(self.answers):
            count = format_count(len(self.answers), "answer")
            why = f"script {self.path} has {count} and was asked for one more"
            yield StreamFailure(ScriptEnded(why, provider=self.name))
            return
        answer = self.answers[self.played]
        self.played += 1
        await sleep(answer.delay_ms / 1000)
        for event in _iter_events(answer, request):
            if isinstance(event, TextDelta | ReasoningDelta | ToolCallDelta):
                await sleep(answer.chunk_delay_ms / 1000)
            yield event

    async def close(self) -> None:
        """Do nothing: there is no connection."""


def _iter_events(answer: ScriptedAnswer, request: Request) -> Iterator[StreamEvent]:
    failure, usage = answer.error, answer.usage and answer.usage.to_usage()
    if failure is None or failure.after is not None:
        yield StreamStart(request.model)
        yield from _iter_block_events(answer, failure.after if failure else None)
    if failure is not None:
        yield StreamFailure(failure.to_error(), usage or Usage())
        return
    blocks = answer.list_blocks()
    calls = any(isinstance(block, ScriptedCall) for block in blocks)
    texts = [block.arguments if isinstance(block, ScriptedCall) else block.text for block in blocks]
    reason = answer.stop_reason or ("tool_calls" if calls else "stop")
    yield Finish(reason, usage or count_usage(request, texts))


def _iter_block_events(answer: ScriptedAnswer, characters: int | None) -> Iterator[StreamEvent]:
    """Yield the events of an answer, up to `limit` characters of its text."""
    for event in _iter_whole_events(answer):
        if characters == 0:
            return
        if isinstance(event, TextDelta) and characters is not None:
            event = TextDelta(event.index, event.delta[:characters])  # noqa: PLW2901
            characters -= len(event.delta)
        yield event


def _iter_whole_events(answer: ScriptedAnswer) -> Iterator[StreamEvent]:
    for index, block in enumerate(answer.list_blocks()):
        match block:
            case ScriptedText():
                yield from iter_text_events(index, block.text, answer.chunk)
            case ScriptedThinking():
                yield from iter_thinking_events(index, block.text, answer.chunk)
            case ScriptedCall():
                provider_id = f"scripted_{index}"
                yield from iter_call_events(
                    index, block.name, provider_id, block.arguments, answer.chunk
                )
            case _:
                assert_never(block)
