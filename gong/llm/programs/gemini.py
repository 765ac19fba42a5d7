"""The program gemini: its lines hold pieces of text.

| line | here |
|---|---|
| `message` of the assistant | a piece with `delta`, else all of it so far |
| `error` | a warning: the answer continues |
| `result` | the end, or the error |
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tape.model.entries import Usage

from ...private_files import locate_home
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
    from .program_call import ProgramCall

PACKAGE = "@google/gemini-cli"
_NO_TOOLS = '[[rule]]\ntoolName = "*"\ndecision = "deny"\npriority = 999\n'
_MAX_WARNING = 300
_ID_CHARS = 8


def build_start(call: ProgramCall) -> ProgramStart:
    """Return the command: every tool is denied, and its session has an id that we know."""
    policy = call.folder / "policy.toml"
    policy.write_text(_NO_TOOLS, "utf-8")
    arguments = [
        *("--output-format", "stream-json", "--skip-trust", "--policy", str(policy)),
        *("--extensions", "none", "--session-id", call.session),
    ]
    variables = {}
    if call.system:
        file = call.folder / "system.md"
        file.write_text(call.system, "utf-8")
        variables["GEMINI_SYSTEM_MD"] = str(file)
    if call.model:
        arguments += ["-m", call.model]
    return ProgramStart(tuple(arguments), call.prompt, variables)


def remove_session(call: ProgramCall, environ: Mapping[str, str]) -> None:
    """Remove the file of the call's session: the program cannot be told to keep none."""
    home = environ.get("GEMINI_CLI_HOME") or locate_home(environ)
    chats = Path(home, ".gemini", "tmp").glob(f"*/chats/session-*-{call.session[:_ID_CHARS]}.json*")
    for file in chats:
        with suppress(OSError):
            if call.session in file.read_text("utf-8", "replace"):
                file.unlink()


class GeminiOutput:
    """Reads the lines of one answer."""

    def __init__(self, failures: ProviderFailures, _preset: Preset) -> None:
        self.finished = False
        self._failures = failures
        self._writer = AnswerWriter()

    def feed(self, line: WireObject) -> Iterator[StreamEvent]:
        """Yield the stream events of one line; raises ModelError."""
        match line.get("type"):
            case "init":
                session = str(line.get("session_id") or "")
                yield from self._writer.start(str(line.get("model") or ""), session or None)
            case "message" if line.get("role") == "assistant":
                text = line.get("content")
                if isinstance(text, str) and line.get("delta"):
                    yield from self._writer.add_piece("text", text)
                elif isinstance(text, str):
                    yield from self._writer.add_whole("text", "message", text)
            case "error":
                text = shorten_text(str(line.get("message")), _MAX_WARNING)
                self._writer.warnings.append(f"{self._failures.provider}: {text}")
            case "result" if line.get("status") == "success":
                self.finished = True
                yield from self._writer.finish(_read_usage(read_object(line.get("stats"))))
            case "result":
                raise self._build_error(read_object(line.get("error")).get("message"))

    def _build_error(self, message: object) -> ModelError:
        """Return the error that a message tells of: JSON of the API in brackets, or words."""
        text = str(message or "")
        match = re.search(r"\{.*\}", text)
        if match:
            with suppress(ValueError, AttributeError, RecursionError):
                return self._failures.parse_error(msgspec.json.decode(match[0]).get("error"))
        return build_provider_error(self._failures.provider, None, text)


def _read_usage(counts: WireObject) -> Usage:
    sent, received, read, total = (
        parse_count(counts.get(name)) or 0
        for name in ("input_tokens", "output_tokens", "cached", "total_tokens")
    )
    thought = max(total - sent - received, 0)
    return Usage(
        max(sent - read, 0), received + thought, thought or None, read or None, None, total
    )
