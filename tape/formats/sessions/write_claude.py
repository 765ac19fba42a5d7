"""A tape → a transcript that Claude Code lists, reads and resumes, with every branch.

entry                        line
---------------------------  ----------------------------------------------------------
user, context                user (`isMeta` for context)
assistant                    assistant, one line with the whole message
tool.result                  user, with the result
anchor                       system `compact_boundary`, and user `isCompactSummary`
anything else                nothing: its children hang on what it hung on
the title                    custom-title
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...model.entries import Anchor, Assistant, Context, Meta, Start, Thinking, ToolResult
from ...model.summary import render_summary
from ..anthropic.emit import API, AnthropicOptions, build_encoder
from ..encoder import CallIds
from ..wire import encode_json, get_provider_fields
from .claude import NO_MODEL
from .outline import format_uuid, shorten_time, to_message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...context.view import Message
    from ...model.line import Entry
    from ..wire import WireObject
    from .outline import TapeOutline

_STOPS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}
_VERSION = "2.1.330"
"""The version of Claude Code whose files these are like."""


def build_file_name(tape: TapeOutline) -> str:
    """Return where in its folder Claude Code looks for a session."""
    project = re.sub(r"[^a-zA-Z0-9]", "-", tape.cwd)
    return f"projects/{project}/{tape.uuid}.jsonl"


def write_session(tape: TapeOutline) -> Iterator[bytes]:
    """Yield the lines of the transcript, without newlines."""
    yield from map(encode_json, _Writer(tape).build_lines())


class _Writer:
    def __init__(self, tape: TapeOutline) -> None:
        self.tape, self.cwd = tape, tape.cwd
        options = AnthropicOptions(verbatim=True, system_in_place=True)
        self.style = build_encoder(options, tape.load).form
        self.ids = CallIds(self.style.ids)
        self.lines: dict[str, str | None] = {}
        """Entry → the line that what follows it names as its parent."""
        self.answers: set[str] = set()
        """Ids of messages so far."""

    def build_lines(self) -> Iterator[WireObject]:
        if self.tape.title:
            title = self.tape.title
            yield {"type": "custom-title", "customTitle": title, "sessionId": self.tape.uuid}
        for entry, before in self.tape.entries:
            parent = self.lines.get(before or "")
            if isinstance(entry.data, Anchor):
                yield from self._build_compaction(entry, entry.data, parent)
                continue
            if isinstance(entry.data, Start | Meta) and entry.data.cwd:
                self.cwd = entry.data.cwd
            line = self._build_line(entry, parent)
            self.lines[entry.id] = parent if line is None else format_uuid(entry.id)
            if line is not None:
                yield line

    def _build_base(self, entry: Entry, kind: str, parent: str | None) -> WireObject:
        return {
            "parentUuid": parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": self.cwd,
            "sessionId": self.tape.uuid,
            "version": _VERSION,
            "gitBranch": self.tape.git_branch,
            "type": kind,
            "uuid": format_uuid(entry.id),
            "timestamp": shorten_time(entry.time),
        }

    def _build_line(self, entry: Entry, parent: str | None) -> WireObject | None:
        data = entry.data
        message = to_message(data)
        if message is None:
            return None
        if isinstance(data, Assistant):
            self.ids.begin_answer()
        parts = [*self._encode_parts(message, getattr(data, "api", ""))]
        if not parts:
            return None
        if isinstance(data, Assistant):
            line = self._build_base(entry, "assistant", parent)
            return line | {"message": self._build_answer(entry, data, parts)}
        line = self._build_base(entry, "user", parent)
        line["message"] = {"role": "user", "content": _shorten_content(parts)}
        if isinstance(data, ToolResult):
            line["message"]["content"] = parts
        if isinstance(data, Context):
            line["isMeta"] = True
        return line

    def _encode_parts(self, message: Message, api: str) -> Iterator[WireObject]:
        """Yield the blocks of a message; thinking only with the API's seal.

        Claude Code sends what its file has, and the API refuses a session with any other thinking.
        """
        if message.role != "assistant":
            yield from (part.value for part in self.style.parts(message, self.ids))
            return
        for block in message.content:
            if not isinstance(block, Thinking):
                part_message = replace(message, content=(block,))
                yield from (part.value for part in self.style.parts(part_message, self.ids))
                continue
            fields = get_provider_fields(block, API) if api == API else {}
            if block.redacted and fields.get("data"):
                yield {"type": "redacted_thinking", **fields}
            elif not block.redacted and fields.get("signature"):
                yield {"type": "thinking", "thinking": block.text, **fields}

    def _build_answer(self, entry: Entry, answer: Assistant, parts: list[WireObject]) -> WireObject:
        usage = answer.usage
        own = f"msg_{entry.id[:24]}"
        identity = answer.response_id or own
        if identity in self.answers:  # lines of one id are one message to Claude Code
            identity = own
        self.answers.add(identity)
        raw_stop = answer.raw_stop if answer.api == API else None
        return {
            "id": identity,
            "type": "message",
            "role": "assistant",
            "model": answer.model or NO_MODEL,
            "content": parts,
            "stop_reason": raw_stop or _STOPS.get(answer.stop_reason, "end_turn"),
            "stop_sequence": None,
            "usage": {
                "input_tokens": usage.input,
                "cache_creation_input_tokens": usage.cache_write or 0,
                "cache_read_input_tokens": usage.cache_read or 0,
                "output_tokens": usage.output,
            },
        }

    def _build_compaction(
        self, entry: Entry, anchor: Anchor, parent: str | None
    ) -> Iterator[WireObject]:
        """Yield the boundary of an anchor, and its summary."""
        summary = anchor.summary
        text = render_summary(summary)
        before = anchor.tokens.before if anchor.tokens else 0
        boundary = format_uuid(entry.id[8:])
        yield {
            **self._build_base(entry, "system", None),
            "uuid": boundary,
            "subtype": "compact_boundary",
            "logicalParentUuid": parent,
            "content": "Conversation compacted",
            "level": "info",
            "compactMetadata": {"trigger": "manual", "preTokens": before},
        }
        yield {
            **self._build_base(entry, "user", boundary),
            "message": {"role": "user", "content": text},
            "isCompactSummary": True,
        }
        self.lines[entry.id] = format_uuid(entry.id)


def _shorten_content(parts: list[WireObject]) -> str | list[WireObject]:
    """Return plain words alone as a text, and anything else as a list."""
    if len(parts) == 1 and parts[0].keys() == {"type", "text"}:
        return str(parts[0]["text"])
    return parts
