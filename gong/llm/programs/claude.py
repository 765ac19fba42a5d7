"""The program claude: its lines hold the events of Anthropic's API, or whole messages.

| line | here |
|---|---|
| `stream_event` | an event of the API |
| `assistant` | the message so far, where no events come |
| `result` | the end, or the error |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from tape.formats.sessions.claude import NO_MODEL
from tape.model.entries import Usage

from ..provider_errors import build_provider_error
from ..types import Finish, StreamStart
from ..wires.anthropic.stream import AnthropicStreamDecoder
from ..wires.json_values import parse_count, read_object, read_objects
from .answer_writer import AnswerWriter
from .program_call import ProgramStart

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..models import Preset
    from ..types import StopReason, StreamEvent
    from ..wires.failures import ProviderFailures
    from ..wires.json_values import WireObject
    from .program_call import ProgramCall

PACKAGE = "@anthropic-ai/claude-code"


def build_start(call: ProgramCall) -> ProgramStart:
    """Return the command: no tools, no settings and no session of its own."""
    arguments = [
        *("-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"),
        *("--tools", "", "--setting-sources", "", "--strict-mcp-config"),
        "--no-session-persistence",
    ]
    if call.system:
        file = call.folder / "system.md"
        file.write_text(call.system, "utf-8")
        arguments += ["--system-prompt-file", str(file)]
    if call.model:
        arguments += ["--model", call.model]
    if call.effort:
        arguments += ["--effort", call.effort]
    return ProgramStart(tuple(arguments), call.prompt, {})


def remove_session(call: ProgramCall, environ: Mapping[str, str]) -> None:
    """Do nothing: it kept none."""


class ClaudeOutput:
    """Reads the lines of one answer."""

    def __init__(self, failures: ProviderFailures, preset: Preset) -> None:
        self.finished = False
        self._failures, self._preset = failures, preset
        self._decoder: AnthropicStreamDecoder | None = None
        self._writer = AnswerWriter()
        self._usage = Usage()
        self._blocks = 0
        """Those of the messages before this one."""
        self._count = 0
        self._has_events = False

    def feed(self, line: WireObject) -> Iterator[StreamEvent]:
        """Yield the stream events of one line; raises ModelError."""
        match line.get("type"):
            case "stream_event":
                yield from self._decode_event(read_object(line.get("event")))
            case "assistant" if not self._has_events:
                message = read_object(line.get("message"))
                if message.get("model") == NO_MODEL:
                    return  # the text of an error, which the result has, too
                yield from self._writer.start(str(message.get("model") or ""))
                for block in read_objects(message.get("content"), "text"):
                    text = block.get("text")
                    if isinstance(text, str):
                        name = str(message.get("id"))
                        yield from self._writer.add_whole("text", name, text)
            case "result":
                yield from self._end(line)

    def _decode_event(self, event: WireObject) -> Iterator[StreamEvent]:
        if event.get("type") == "message_start":
            self._end_message()
            self._decoder = AnthropicStreamDecoder(self._failures, self._preset)
        if self._decoder is None:
            return
        for part in self._decoder.feed(msgspec.json.encode(event)):
            if isinstance(part, StreamStart):
                if not self._has_events:
                    self._has_events = True
                    yield part
                continue
            index = getattr(part, "index", None)
            if index is None:
                yield part
                continue
            self._count = max(self._count, self._blocks + index + 1)
            yield replace(part, index=self._blocks + index)

    def _end_message(self) -> None:
        if self._decoder is not None:
            self._usage += self._decoder.usage()
        self._decoder, self._blocks = None, self._count

    def _end(self, line: WireObject) -> Iterator[StreamEvent]:
        if line.get("is_error") or line.get("subtype") != "success":
            status = line.get("api_error_status")
            raise build_provider_error(
                self._failures.provider,
                status if isinstance(status, int) else None,
                str(line.get("result") or line.get("errors") or line.get("subtype") or ""),
            )
        self.finished = True
        if self._has_events:
            self._end_message()
            reason = line.get("stop_reason")
            stop: StopReason = "length" if reason == "max_tokens" else "stop"
            yield Finish(stop, self._usage, str(reason or "end_turn"))
        else:
            yield from self._writer.finish(_read_usage(read_object(line.get("usage"))))


def _read_usage(counts: WireObject) -> Usage:
    sent, received, read, write = (
        parse_count(counts.get(name)) or 0
        for name in (
            *("input_tokens", "output_tokens"),
            *("cache_read_input_tokens", "cache_creation_input_tokens"),
        )
    )
    total = sent + received + read + write
    return Usage(sent, received, None, read or None, write or None, total)
