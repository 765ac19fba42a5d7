"""Sessions of pi, `~/.pi/agent/sessions/FOLDER/*.jsonl`, → steps.

entry of pi                  entry of the tape
message: user                user
message: assistant           assistant; ids of calls become ours
message: toolResult          tool.result
message: bashExecution       context of a note, or a note where no model was to see it
message: custom              context of a hook
custom_message               context of a hook
branch_summary               context of a note
compaction                   anchor: its summary and the entries it keeps
model_change                 model
thinking_level_change        model, with the effort
label                        a label, as far as its name may be one, and custom
session_info                 the title
anything else                custom `pi.<type>`, whole
"""

from __future__ import annotations

import re
from base64 import b64decode
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ...model.entries import (
    NO_JSON,
    Anchor,
    Assistant,
    Context,
    Cost,
    Custom,
    Failure,
    Image,
    Model,
    Note,
    Opaque,
    Text,
    Thinking,
    Tokens,
    ToolResult,
    Usage,
    User,
)
from ..parsing import build_tool_call, build_wire, to_plain_text
from ..wire import drop_fields, pack_raw
from .pi_file import parse_pi_session, split_branches
from .steps import (
    REPEATED,
    ROOT,
    SourceSession,
    SourceStep,
    read_count,
    read_object,
    read_text,
    read_time,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from msgspec import Raw

    from ...model.entries import Block, Content, Payload
    from ..wire import Put, WireObject
    from .pi_file import PiEntry, PiSession

TOOL = "pi"
FORMAT = "pi-session-jsonl"
_APIS = {
    "anthropic-messages": "anthropic-messages",
    "openai-completions": "openai-chat",
    "openai-responses": "openai-responses",
    "google-generative-ai": "google-generate",
}
"""pi's names of APIs → ours; others stay as they are."""
_STOPS = {"toolUse": "tool_calls", "stop": "stop", "length": "length", "error": "error"}
_UNDERSTOOD = frozenset({"label", "session_info"})
"""Types of entries that are kept whole although all of them is used."""
_CALL_FIELDS = ("type", "id", "name", "arguments")
_SUMMARY_OF_BRANCH = "Summary of a branch that was left:\n\n"


def is_session_line(value: WireObject) -> bool:
    """Return whether an object is the header of a session of pi."""
    return value.get("type") == "session" and isinstance(value.get("id"), str)


def read_session(read_lines: Callable[[], Iterable[bytes]], name: str) -> SourceSession:
    """Return the session in a file of pi, of any version up to 3; raise UsageError for another."""
    file = parse_pi_session(b"\n".join(read_lines()))

    def read_steps(put: Put) -> Iterator[SourceStep]:
        session.damaged = file.skipped
        session.left_out[REPEATED] = file.repeated
        return _StepReader(session, file, put).read()

    names = [entry.get("name") for entry in file.entries if entry.get("type") == "session_info"]
    session = SourceSession(
        TOOL,
        FORMAT,
        file.header["id"] or name,
        read_steps,
        cwd=read_text(file.header.get("cwd")) or None,
        created=min(_read_times(file), default=None),
        title=next(
            (name for name in reversed(names) if isinstance(name, str) and name.strip()), None
        ),
        newest=str(file.entries[-1].get("id")) if file.entries else None,
        forked_from=_read_parent_session(file.header),
        version=file.version,
    )
    for entry in file.entries:
        label = entry.get("label")
        if entry.get("type") == "label" and isinstance(label, str):
            session.labels[label] = str(entry.get("targetId"))
    return session


def _read_times(file: PiSession) -> Iterator[int]:
    """Yield the times of a file; those of its entries are older where it was forked."""
    for entry in (file.header, *file.entries):
        if (time := read_time(entry.get("timestamp"))) is not None:
            yield time


def _read_parent_session(header: PiEntry) -> tuple[str, ...]:
    """Return the id of the session that this one was forked from: its file is `TIME_ID.jsonl`."""
    stem = read_text(header.get("parentSession")).removesuffix(".jsonl")
    parent = re.split(r"[/\\_]", stem)[-1]
    return (parent,) if parent else ()


class _StepReader:
    """Reads the branches of a session, one after the other."""

    def __init__(self, session: SourceSession, file: PiSession, put: Put) -> None:
        self.session, self.file, self.put = session, file, put
        self.by_id = {str(entry.get("id")): entry for entry in file.entries}
        self.calls: dict[tuple[str, Any], str] = {}
        """Id of an answer, pi's id of a call in it → our id."""
        self.provider = self.model = ""

    def read(self) -> Iterator[SourceStep]:
        """Yield the steps of all branches: that of the newest entry first."""
        for branch in split_branches(self.file.entries):
            parent = ROOT if branch.base is None else branch.base
            for entry in branch.entries:
                identity, time = str(entry.get("id")), read_time(entry.get("timestamp"))
                payloads = tuple(self._convert_entry(entry))
                kept_from = str(entry.get("firstKeptEntryId"))
                yield SourceStep(identity, parent, time, payloads, kept_from)
                parent = identity

    def _convert_entry(self, entry: PiEntry) -> list[Payload]:  # noqa: PLR0911 (a table)
        """Return what an entry becomes: one payload, and where it says more than we keep, more."""
        message = entry.get("message")
        match entry.get("type"):
            case "message" if isinstance(message, dict):
                return self._convert_message(entry, message)
            case "custom_message":
                return [Context("user", "hook", self._read_content(entry.get("content")))]
            case "branch_summary":
                text = _SUMMARY_OF_BRANCH + to_plain_text(entry.get("summary") or "")
                return [_build_note(text), _keep_whole(entry)]
            case "compaction":
                return self._convert_compaction(entry)
            case "model_change":
                self.provider = to_plain_text(entry.get("provider") or "")
                self.model = to_plain_text(entry.get("modelId") or "")
                return [Model(self.provider, self.model)]
            case "thinking_level_change":
                effort = to_plain_text(entry.get("thinkingLevel") or "")
                return [Model(self.provider, self.model, effort)]
            case kind:
                if kind not in _UNDERSTOOD:
                    self.session.unknown[str(kind)] += 1
                return [_keep_whole(entry)]

    def _convert_compaction(self, entry: PiEntry) -> list[Payload]:
        before = read_count(entry.get("tokensBefore"))
        anchor = Anchor(
            kind="compaction",
            summary=to_plain_text(entry.get("summary") or ""),
            tokens=Tokens(before, 0) if before else None,
            reason="compacted by pi",
        )
        details = entry.get("details")
        return [anchor, Custom("pi.compaction", pack_raw(details))] if details else [anchor]

    def _convert_message(self, entry: PiEntry, message: PiEntry) -> list[Payload]:
        content = message.get("content")
        match message.get("role"):
            case "user":
                return [User(self._read_content(content))]
            case "assistant":
                return [self._build_answer(entry, message)]
            case "toolResult":
                return [self._build_result(entry, message)]
            case "bashExecution":
                text, is_hidden = _describe_command(message), message.get("excludeFromContext")
                note = Note(text) if is_hidden is True else _build_note(text)
                return [note, _keep_whole(entry)]
            case "custom":
                return [Context("user", "hook", self._read_content(content))]
            case role:
                self.session.unknown[f"message_{role}"] += 1
                return [_keep_whole(entry)]

    def _build_answer(self, entry: PiEntry, message: PiEntry) -> Assistant:
        usage, api = read_object(message.get("usage")), message.get("api")
        stop, error = message.get("stopReason"), message.get("errorMessage")
        total_cost = read_object(usage.get("cost")).get("total")
        self.provider = to_plain_text(message.get("provider") or "")
        self.model = to_plain_text(message.get("model") or "")
        reads, writes = read_count(usage.get("cacheRead")), read_count(usage.get("cacheWrite"))
        return Assistant(
            content=self._read_content(message.get("content"), str(entry.get("id"))),
            provider=self.provider,
            api=_APIS.get(to_plain_text(api or ""), to_plain_text(api or "")),
            model=self.model,
            stop_reason=_STOPS.get(to_plain_text(stop or ""), to_plain_text(stop or "stop")),
            usage=Usage(
                input=read_count(usage.get("input")),
                output=read_count(usage.get("output")),
                cache_read=reads or None,
                cache_write=writes or None,
                total=read_count(usage.get("totalTokens")),
            ),
            cost=Cost("USD", float(total_cost)) if isinstance(total_cost, int | float) else None,
            response_id=message["responseId"]
            if isinstance(message.get("responseId"), str)
            else None,
            error=Failure("ProviderError", to_plain_text(error)) if error else None,
        )

    def _build_result(self, entry: PiEntry, message: PiEntry) -> ToolResult:
        details = message.get("details")
        return ToolResult(
            call_id=self._find_call(entry, message.get("toolCallId")),
            name=to_plain_text(message.get("toolName") or ""),
            content=self._read_content(message.get("content")),
            is_error=message.get("isError") is True,
            details=NO_JSON if details is None else pack_raw(details),
        )

    def _read_content(self, content: Any, answer: str | None = None) -> Content:
        """Return blocks; calls in the answer with the id `answer` get ids of ours."""
        if not isinstance(content, list):
            return (Text(text=to_plain_text(content or "")),)
        blocks: list[Block] = []
        for place, piece in enumerate(content):
            value = read_object(piece)
            match value.get("type"):
                case "text" if isinstance(value.get("text"), str):
                    blocks.append(Text(text=value["text"], wire=_keep_rest(value, "text")))
                case "thinking" if isinstance(value.get("thinking"), str):
                    is_redacted = value.get("redacted") is True
                    rest = _keep_rest(value, "thinking", "redacted")
                    blocks.append(Thinking(text=value["thinking"], redacted=is_redacted, wire=rest))
                case "toolCall" if answer is not None:
                    ours = f"c_{sha256(answer.encode()).hexdigest()[:8]}_{place}"
                    self.calls[answer, value.get("id")] = ours
                    arguments, more = value.get("arguments"), drop_fields(value, *_CALL_FIELDS)
                    blocks.append(build_tool_call(ours, value.get("name"), arguments, more))
                case "image" if (picture := _decode_base64(value.get("data"))) is not None:
                    mime = to_plain_text(value.get("mimeType") or "image/png")
                    blocks.append(Image(blob=self.put(picture), mime=mime))
                case _:
                    blocks.append(Opaque(raw=pack_raw(piece)))
        return tuple(blocks)

    def _find_call(self, entry: PiEntry, call: Any) -> str:
        """Return our id of the call that a result answers: that of the nearest answer above it."""
        at, seen = str(entry.get("parentId")), set[str]()
        while at in self.by_id and at not in seen:
            if (at, call) in self.calls:
                return self.calls[at, call]
            seen.add(at)
            at = str(self.by_id[at].get("parentId"))
        return to_plain_text(call or "")


def _build_note(text: str) -> Context:
    return Context("user", "note", (Text(text=text),))


def _keep_whole(entry: PiEntry) -> Custom:
    return Custom(f"pi.{entry['type']}", pack_raw(entry))


def _keep_rest(value: PiEntry, *used: str) -> Raw:
    return build_wire(drop_fields(value, "type", *used))


def _describe_command(message: PiEntry) -> str:
    """Return a command that the person ran, as the model of pi got it."""
    text = f"Ran `{message.get('command')}`\n```\n{message.get('output') or '(no output)'}\n```"
    if message.get("cancelled") is True:
        return f"{text}\n\n(command cancelled)"
    code = message.get("exitCode")
    return f"{text}\n\nCommand exited with code {code}" if code else text


def _decode_base64(value: Any) -> bytes | None:
    with suppress(ValueError, TypeError):
        return b64decode(value, validate=True)
    return None
