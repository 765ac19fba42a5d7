"""Decodes the chunks of the Gemini stream: pure, one decoder for each answer.

Field names are those of the API's reference. At most one block is open: text, thinking, or a call
in pieces. What a part does with it:

| part | open block | new block |
|---|---|---|
| text or thought, unsigned, same fields | continues | – |
| text or thought, signed or with other fields | ends | text or thinking, open |
| empty text with fields, such as a signature | ends | opaque |
| functionCall, whole | ends | call, begun and ended at once |
| functionCall in pieces, the first (it has the name) | ends | call, open |
| functionCall in pieces, a later one | continues; ends without `willContinue` | – |
| anything else with fields | ends | opaque |

A signature stays on the part it came with. The stream has no end mark, so an answer is whole when
it has said why it stopped and the connection ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tape.formats.wire import drop_fields, encode_json, pack_raw
from tape.model.entries import NO_JSON, Usage

from ....errors import ContentFiltered, MalformedHistory, ModelError
from ...provider_errors import remove_keys
from ...types import (
    Finish,
    OpaqueBlock,
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
from ..json_values import parse_counts
from ..meter import AnswerMeter
from .chunks import ArgumentPieces, decode_chunk, decode_fields, decode_function

if TYPE_CHECKING:
    from collections.abc import Iterator

    from msgspec import Raw

    from ...models import Preset
    from ..failures import ProviderFailures
    from ..json_values import WireObject
    from .chunks import GeminiChunk

_COUNTED = (
    "promptTokenCount", "cachedContentTokenCount", "thoughtsTokenCount",
    "candidatesTokenCount", "totalTokenCount",
)  # fmt: skip
_SIGNATURE = "thoughtSignature"
_GROUNDING = ("webSearchQueries", "groundingChunks", "groundingSupports")
"""What is kept of what the provider found: queries, pages, and which words are from which."""
_CUT_UP = frozenset({"partialArgs", "willContinue"})
"""Fields of a call whose arguments arrive in pieces."""
_UNSAID = "FINISH_REASON_UNSPECIFIED"
_STOPS: dict[str, StopReason] = {
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "LANGUAGE": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
    "ESCALATION": "content_filter",
    "MODEL_ARMOR": "content_filter",
    "PUP_LIMITED_DISABLED": "content_filter",
}
_UNREADABLE = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"})
"""Stops after which the same question may well get a proper answer."""
_UNSIGNED = "MISSING_THOUGHT_SIGNATURE"


class _OpenPart(NamedTuple):
    """A block of text or thinking that the next part may continue."""

    place: int
    is_thought: bool
    wire: Raw
    """Fields of the part besides its text, in the API's form."""

    def build_start(self) -> StreamEvent:
        return ReasoningStart(self.place) if self.is_thought else TextStart(self.place)

    def build_delta(self, text: str) -> StreamEvent:
        kind = ReasoningDelta if self.is_thought else TextDelta
        return kind(self.place, text)

    def build_end(self) -> StreamEvent:
        kind = ReasoningEnd if self.is_thought else TextEnd
        return kind(self.place, self.wire)


class _PiecewiseCall(NamedTuple):
    """A call whose arguments arrive in pieces."""

    place: int
    pieces: ArgumentPieces
    wire: WireObject


class GoogleStreamDecoder:
    """Turns the `data` of the stream's events into ours, and collects usage and stop reason."""

    def __init__(self, failures: ProviderFailures, preset: Preset) -> None:
        self.meter = AnswerMeter(preset.sizes, failures)
        self.finished = False  # only the end of the connection says so
        self._failures = failures
        self._started = False
        self._stop: str | None = None
        self._counts: dict[str, int] = {}
        self._searches = 0
        self._grounding: WireObject = {}
        self._blocks = 0
        self._calls = 0
        self._open: _OpenPart | None = None
        self._cut_up: _PiecewiseCall | None = None

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """Yield the stream events of one chunk.

        Raises the error a chunk tells of, ContentFiltered for a prompt that was refused,
        StreamError for a chunk or an answer that makes no sense.
        """
        try:
            yield from self._handle_chunk(decode_chunk(data))
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            raise self._failures.build_stream_error(f"sent a malformed chunk: {error}") from error

    def split_answer(self, answer: WireObject) -> list[WireObject]:
        """Return a whole answer, or one chunk of it, as the event of a stream."""
        return [answer] if "candidates" in answer else []

    def finish_with_error(self, error: ModelError) -> Iterator[StreamEvent]:
        """Yield the last events of a stream that ended, or stopped with `error`."""
        if self._stop is None:
            yield StreamFailure(error, self.usage())
        else:
            yield from self.finish()

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the ends of open blocks, and of the answer."""
        yield from self._close_open()
        if self._grounding:
            yield OpaqueBlock(self._take_index(), pack_raw({"groundingMetadata": self._grounding}))
        stop = self._stop or _UNSAID
        if failed := self._find_failure(stop):
            yield StreamFailure(failed, self.usage())
            return
        reason = _STOPS.get(stop, "stop")
        # the API says STOP for calls too
        if self._calls and reason != "content_filter":
            reason = "tool_calls"
        yield Finish(reason, self.usage(), stop)

    def usage(self) -> Usage:
        """Return the usage so far; input is without cached ones, output with thoughts."""
        count = self._counts.get
        prompt, cached = count("promptTokenCount", 0), count("cachedContentTokenCount")
        thoughts = count("thoughtsTokenCount")
        output = count("candidatesTokenCount", 0) + (thoughts or 0)
        return Usage(
            input=max(prompt - (cached or 0), 0),
            output=output,
            reasoning=thoughts,
            cache_read=cached,
            total=count("totalTokenCount", prompt + output),
            server_tools={"web_search": self._searches} if self._searches else None,
        )

    def _handle_chunk(self, chunk: GeminiChunk) -> Iterator[StreamEvent]:
        if chunk.error:
            raise self._failures.parse_error(chunk.error)
        # a count that is null or left out keeps its older value
        self._counts |= parse_counts(chunk.usage_metadata or {}, _COUNTED)
        if not self._started and (chunk.candidates or chunk.model_version or chunk.response_id):
            self._started = True
            yield StreamStart(chunk.model_version or "", chunk.response_id)
        for candidate in chunk.candidates or ():
            if candidate is None or candidate.index:
                continue  # others were not asked for
            if grounding := candidate.grounding_metadata:
                self._note_grounding(grounding)
            for part in (candidate.content and candidate.content.parts) or ():
                yield from self._handle_part(part)
            if candidate.finish_reason and candidate.finish_reason != _UNSAID:
                self._stop = candidate.finish_reason
        feedback = chunk.prompt_feedback
        # A refused prompt has no candidate, so no stop reason will come.
        if feedback and feedback.block_reason and self._stop is None:
            name, reason = self._failures.provider, feedback.block_reason
            detail = f": {feedback.block_reason_message}" if feedback.block_reason_message else ""
            why = remove_keys(f"{name} refused the prompt ({reason}){detail}", self._failures.key)
            raise ContentFiltered(why, provider=name)

    def _note_grounding(self, grounding: WireObject) -> None:
        """Keep what the provider found on the web: it comes whole, or grows from chunk to chunk."""
        queries = grounding.get("webSearchQueries")
        if isinstance(queries, list):
            self._searches = max(self._searches, len(queries))
        chosen = {name: grounding[name] for name in _GROUNDING if grounding.get(name)}
        if chosen:
            self.meter.keep_value(chosen)
            self._grounding |= chosen

    def _handle_part(self, raw: Raw) -> Iterator[StreamEvent]:
        part = decode_fields(raw)
        match part:
            case {"text": str(text), **fields}:
                yield from self._add_text(text, fields)
            case {"functionCall": dict(function), **fields}:
                # "partialArgs" or "willContinue", or no name while a call is open: a piece
                if function.keys() & _CUT_UP or (self._cut_up and "name" not in function):
                    yield from self._add_call_piece(function, fields)
                else:
                    yield from self._add_call(raw, drop_fields(function, "name", "args"), fields)
            case {**fields} if fields:
                yield from self._add_opaque(part)

    def _add_text(self, text: str, fields: WireObject) -> Iterator[StreamEvent]:
        is_thought, is_signed = "thought" in fields, _SIGNATURE in fields
        # The API sends a signature alone, behind the text it signs, and refuses the next request
        # without it.
        if not text and not is_thought and fields:
            yield from self._add_opaque({"text": text, **fields})
        if not text and not (is_thought and is_signed):
            return
        wire = pack_raw(fields) if fields else NO_JSON
        # continue the open block, unless this part is signed or has other fields
        if is_signed or self._open is None or self._open[1:] != (is_thought, wire):
            yield from self._close_open()
            self._open = _OpenPart(self._take_index(), is_thought, wire)
            yield self._open.build_start()
        if text:
            yield self._open.build_delta(text)

    def _add_call(
        self, raw: Raw, function: WireObject, fields: WireObject
    ) -> Iterator[StreamEvent]:
        call = decode_function(raw)
        yield from self._close_open()
        # a call comes whole, so it begins and ends at once
        index, args, extra_fields = (
            self._take_index(),
            bytes(call.args).decode(),
            {**fields, **function},
        )
        self._calls += 1
        yield ToolCallStart(index, call.name, call.id or "")
        if args != "null":
            yield ToolCallDelta(index, args)
        yield ToolCallEnd(index, pack_raw(extra_fields) if extra_fields else NO_JSON)

    def _add_call_piece(self, function: WireObject, fields: WireObject) -> Iterator[StreamEvent]:
        """Add a piece of a call; the first one has the name, the last has no `willContinue`."""
        name, provider_id = function.get("name"), function.get("id")
        if name:
            yield from self._close_open()
            self._cut_up = _PiecewiseCall(self._take_index(), ArgumentPieces(), fields)
            self._calls += 1
            yield ToolCallStart(self._cut_up.place, name, provider_id or "")
        if self._cut_up is None:
            raise ValueError("a piece of no call")
        for piece in function.get("partialArgs") or ():
            self.meter.keep_bytes(self._cut_up.pieces.add_piece(piece))
        if not function.get("willContinue"):
            yield from self._close_open()

    def _add_opaque(self, part: WireObject) -> Iterator[StreamEvent]:
        yield from self._close_open()
        yield OpaqueBlock(self._take_index(), pack_raw(part))

    def _close_open(self) -> Iterator[StreamEvent]:
        if self._open is not None:
            yield self._open.build_end()
            self._open = None
        if self._cut_up is not None:
            place, pieces, fields = self._cut_up
            self._cut_up = None
            yield ToolCallDelta(place, encode_json(pieces.args).decode())
            yield ToolCallEnd(place, pack_raw(fields) if fields else NO_JSON)

    def _take_index(self) -> int:
        self._blocks += 1
        return self._blocks - 1

    def _find_failure(self, stop: str) -> ModelError | None:
        """Return what is wrong with an answer that stopped so; None when nothing is."""
        if stop in _UNREADABLE:
            return self._failures.build_stream_error(
                f"could not read what its model wrote ({stop})"
            )
        # The history lost a signature on its way, perhaps to another model: the loop sends it again
        # without what only its own provider understands.
        if stop == _UNSIGNED:
            why = f"{self._failures.provider} misses a thought signature ({stop})"
            return MalformedHistory(why, provider=self._failures.provider)
        # An answer may end before its first part; as a failure of the stream it is tried again.
        if not self._blocks and stop not in _STOPS:
            return self._failures.build_stream_error(f"sent an empty answer ({stop})")
        return None
