"""Sessions of Qwen Code, `~/.qwen/projects/FOLDER/chats/UUID.jsonl`, → steps.

Each line is a record {uuid, parentUuid, sessionId, timestamp, type, subtype?, cwd, gitBranch,
message?}; `message` is a content of the Gemini API. Written after its source of November 2026.

    record                            becomes
    --------------------------------  ---------------------------------------------------------
    user, without a subtype           user
    user with one (a notification)    context
    assistant                         an answer, with model and tokens of `usageMetadata`
    tool_result                       the result of each call; what Qwen shows in `details`
    system, chat_compression          anchor; `compressedHistory` ends with what stays in view
    system, custom_title              the title of the session
    system, slash_command             note: the command that was typed
    system: settings, telemetry,      –; what follows one follows its parent
    snapshots of files
    anything else                     custom `qwen.<subtype or type>`, whole

A record whose parent is not the newest one begins a branch: so does what follows a rewind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...model.entries import (
    NO_JSON,
    Anchor,
    Assistant,
    Context,
    Git,
    Note,
    ToolResult,
    Usage,
    User,
)
from ..gemini.parse import GeminiReader
from ..parsing import CallBinder, to_plain_text
from ..wire import drop_fields, encode_json, pack_raw
from .steps import (
    ROOT,
    ReadIds,
    SourceSession,
    SourceStep,
    decode_object,
    join_paragraphs,
    read_count,
    read_list,
    read_object,
    read_text,
    read_time,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ...model.entries import Payload
    from ..wire import Put, WireObject

TOOL = "qwen"
FORMAT = "qwen-code-chat"
_TYPES = frozenset({"user", "assistant", "tool_result", "system"})
_FIELDS = frozenset({"uuid", "parentUuid", "sessionId", "version"})
_SILENT = frozenset({
    "ui_telemetry", "attribution_snapshot", "file_history_snapshot", "custom_title",
    "session_model", "session_approval_mode", "session_source", "parent_session",
    "session_execution_engine", "session_sources_snapshot", "user_text_elements",
    "branch_checkpoint", "turn_result", "rewind", "agent_session_ready",
})  # fmt: skip
"""Subtypes of records that say nothing about the conversation."""
_FAILED = frozenset({"error", "cancelled"})


def is_session_line(value: WireObject) -> bool:
    """Return whether an object is a record of a chat."""
    is_record = read_text(value.get("type")) in _TYPES and value.keys() >= _FIELDS
    has_words = "parts" in read_object(value.get("message")) or "systemPayload" in value
    return is_record and has_words


def read_session(read_lines: Callable[[], Iterable[bytes]], name: str) -> SourceSession:
    """Return the session in a chat; `name` is the file's name without its ending."""
    first: WireObject = {}
    title = ""
    for line in read_lines():
        value = decode_object(line) or {}
        first = first or (value if is_session_line(value) else {})
        if value.get("subtype") == "custom_title":
            title = read_text(read_object(value.get("systemPayload")).get("customTitle"))
    branch = read_text(first.get("gitBranch"))
    identity, agent = read_text(first.get("sessionId")) or name, read_text(first.get("agentId"))

    def read_steps(put: Put) -> Iterator[SourceStep]:
        return _StepReader(session, put).read(read_lines())

    session = SourceSession(
        TOOL,
        FORMAT,
        f"{identity}/{agent}" if agent and first.get("isSidechain") is True else identity,
        read_steps,
        cwd=read_text(first.get("cwd")) or None,
        git=Git(branch, None, dirty=False) if branch else None,
        created=read_time(first.get("timestamp")),
        title=title or None,
    )
    return session


class _StepReader:
    """Reads the records of one chat."""

    def __init__(self, session: SourceSession, put: Put) -> None:
        self.session = session
        self.reader = GeminiReader(put, CallBinder())
        self.parents: dict[str, str] = {}
        """Record → the step that what follows it follows."""
        self.by_message: dict[bytes, str] = {}
        """Content → the newest step with it."""

    def read(self, lines: Iterable[bytes]) -> Iterator[SourceStep]:
        """Yield a step for each record that says something."""
        newest = ROOT
        ids = ReadIds(self.session)
        for line in lines:
            record = decode_object(line)
            if record is None:
                self.session.damaged += bool(line.strip())
                continue
            identity = read_text(record.get("uuid"))
            if ids.is_repeated(identity):
                continue
            if not identity:
                payload = self.session.keep_whole("record", record)
                yield SourceStep(None, newest, None, (payload,))
                continue
            parent_id = record.get("parentUuid")
            parent = ROOT if parent_id is None else self.parents.get(read_text(parent_id), newest)
            if read_text(record.get("subtype")) in _SILENT:
                self.parents[identity] = parent
                continue
            kept_from = self._find_kept(record)
            payloads = tuple(self._convert(record))
            self.parents[identity] = newest = identity
            self.by_message[encode_json(record.get("message"))] = identity
            yield SourceStep(
                identity, parent, read_time(record.get("timestamp")), payloads, kept_from
            )

    def _find_kept(self, record: WireObject) -> str | None:
        """Return the first step that stays in view after a compression."""
        if record.get("subtype") != "chat_compression":
            return None
        history = read_list(read_object(record.get("systemPayload")).get("compressedHistory"))
        first = None
        for content in reversed(history):
            step = self.by_message.get(encode_json(content))
            if step is None:
                break
            first = step
        return first

    def _convert(self, record: WireObject) -> Iterator[Payload]:
        kind, subtype = read_text(record.get("type")), read_text(record.get("subtype"))
        payload = read_object(record.get("systemPayload"))
        message = read_object(record.get("message"))
        if subtype == "chat_compression":
            yield Anchor(
                kind="compaction",
                summary=self._find_summary(read_list(payload.get("compressedHistory"))),
                reason="compressed by Qwen Code",
                other=pack_raw(drop_fields(payload, "compressedHistory")),
            )
        elif subtype == "slash_command" and payload.get("phase") == "invocation":
            yield Note(to_plain_text(payload.get("rawCommand") or ""))
        elif not message or (kind == "system" and not subtype):
            yield self.session.keep_whole(subtype or kind or "record", record)
        elif kind == "assistant":
            yield from self._convert_answer(record, message)
        else:
            prompt = {**message, "role": "user"}
            for entry in self.reader.read_element(prompt):
                if isinstance(entry, ToolResult):
                    yield _add_display(entry, read_object(record.get("toolCallResult")))
                elif subtype and isinstance(entry, User):
                    yield Context("user", TOOL, entry.content)
                else:
                    yield entry

    def _find_summary(self, history: list[object]) -> str:
        """Return the words before what stays in view."""
        texts = []
        for content in history:
            if encode_json(content) in self.by_message:
                break
            parts = map(read_object, read_list(read_object(content).get("parts")))
            if read_object(content).get("role") != "model":
                texts += [read_text(part.get("text")) for part in parts]
        return join_paragraphs(texts)

    def _convert_answer(self, record: WireObject, message: WireObject) -> Iterator[Payload]:
        for payload in self.reader.read_element({**message, "role": "model"}):
            if not isinstance(payload, Assistant):
                yield payload
                continue
            yield replace(
                payload,
                provider="qwen",
                model=read_text(record.get("model")),
                usage=_read_usage(read_object(record.get("usageMetadata"))),
            )


def _add_display(result: ToolResult, display: WireObject) -> ToolResult:
    """Return a result with what Qwen shows of it, and whether the call failed."""
    rest = drop_fields(display, "responseParts", "callId")
    failed = result.is_error or read_text(display.get("status")) in _FAILED
    return replace(result, is_error=failed, details=pack_raw(rest) if rest else NO_JSON)


def _read_usage(usage: WireObject) -> Usage:
    """Return the tokens of an answer: what was cached is not counted as input."""
    prompt = read_count(usage.get("promptTokenCount"))
    cached = min(read_count(usage.get("cachedContentTokenCount")), prompt)
    thoughts = read_count(usage.get("thoughtsTokenCount"))
    received, total = (
        read_count(usage.get(f"{kind}TokenCount")) for kind in ("candidates", "total")
    )
    if prompt + received != total:  # else the answer's tokens have those of its thoughts in them
        received += thoughts
    return Usage(
        input=prompt - cached,
        output=received,
        reasoning=thoughts or None,
        cache_read=cached or None,
        total=total or prompt + received,
    )
