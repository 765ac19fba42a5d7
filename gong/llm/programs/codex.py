"""The program codex: its lines hold whole items, or an item so far.

| line | here |
|---|---|
| `item.updated`, `item.completed` | a message or thinking, all of it so far |
| an item or a line `error` | a warning: the answer continues |
| `turn.completed`, `turn.failed` | the end, or the error |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tape.model.entries import Usage

from ..provider_errors import build_provider_error, shorten_text
from ..wires.json_values import parse_count, read_object
from .answer_writer import AnswerWriter
from .program_call import ProgramStart

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...errors import ModelError
    from ..models import Preset
    from ..types import StreamEvent
    from ..wires.failures import ProviderFailures
    from ..wires.json_values import WireObject
    from .answer_writer import Kind
    from .program_call import ProgramCall

PACKAGE = "@openai/codex"
_KINDS: dict[object, Kind] = {"agent_message": "text", "reasoning": "thinking"}
_MAX_WARNING = 300
_OFF = ("shell_tool", "multi_agent", "goals", "apps")
"""Its own features that bring tools."""


def build_start(call: ProgramCall) -> ProgramStart:
    """Return the command: a sandbox that only reads, no session of its own, few of its tools."""
    arguments = [
        *("exec", "--json", "--ephemeral", "--skip-git-repo-check", "--ignore-rules"),
        *("-s", "read-only", "-c", 'web_search="disabled"'),
    ]
    for feature in _OFF:
        arguments += ["--disable", feature]
    if call.system:
        file = call.folder / "system.md"
        file.write_text(call.system, "utf-8")
        arguments += ["-c", f"model_instructions_file={_encode_toml(str(file))}"]
    if call.model:
        arguments += ["-m", call.model]
    if call.effort:
        arguments += ["-c", f"model_reasoning_effort={_encode_toml(call.effort)}"]
    return ProgramStart((*arguments, "-"), call.prompt, {})


def remove_session(call: ProgramCall, environ: Mapping[str, str]) -> None:
    """Do nothing: it kept none."""


class CodexOutput:
    """Reads the lines of one answer."""

    def __init__(self, failures: ProviderFailures, _preset: Preset) -> None:
        self.finished = False
        self._failures = failures
        self._writer = AnswerWriter()

    def feed(self, line: WireObject) -> Iterator[StreamEvent]:
        """Yield the stream events of one line; raises ModelError."""
        match line.get("type"):
            case "thread.started":
                yield from self._writer.start("", str(line.get("thread_id") or "") or None)
            case "item.updated" | "item.completed":
                yield from self._decode_item(read_object(line.get("item")))
            case "error":
                self._warn(line.get("message"))
            case "turn.completed":
                self.finished = True
                yield from self._writer.finish(_read_usage(read_object(line.get("usage"))))
            case "turn.failed":
                raise self._build_error(read_object(line.get("error")).get("message"))

    def _decode_item(self, item: WireObject) -> Iterator[StreamEvent]:
        text, kind = item.get("text"), _KINDS.get(item.get("type"))
        if kind is not None and isinstance(text, str):
            yield from self._writer.add_whole(kind, str(item.get("id")), text)
        elif item.get("type") == "error":
            self._warn(item.get("message"))

    def _warn(self, text: object) -> None:
        name = self._failures.provider
        self._writer.warnings.append(f"{name}: {shorten_text(str(text), _MAX_WARNING)}")

    def _build_error(self, message: object) -> ModelError:
        """Return the error that a message tells of, which may be JSON of the API."""
        text = str(message or "")
        if text.startswith("{"):
            try:
                return self._failures.parse_error(msgspec.json.decode(text).get("error"))
            except (ValueError, AttributeError, RecursionError):
                pass
        return build_provider_error(self._failures.provider, None, text)


def _encode_toml(text: str) -> str:
    """Return a text as TOML has it: as JSON, where it has no odd characters."""
    return msgspec.json.encode(text).decode()


def _read_usage(counts: WireObject) -> Usage:
    sent, read, write, received, thought = (
        parse_count(counts.get(name)) or 0
        for name in (
            *("input_tokens", "cached_input_tokens", "cache_write_input_tokens"),
            *("output_tokens", "reasoning_output_tokens"),
        )
    )
    uncached = max(sent - read - write, 0)
    return Usage(uncached, received, thought or None, read or None, write or None, sent + received)
