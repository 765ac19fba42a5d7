"""A session of pi → a tape: its branches are branches, its compactions anchors, its times times.

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
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import TapeError
from ..formats.parsing import build_tool_call, build_wire, to_plain_text
from ..formats.wire import drop_fields, pack_raw
from ..model.entries import (
    NO_JSON,
    Anchor,
    Assistant,
    Context,
    Cost,
    CoveredRange,
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
from ..store.store import Store
from .import_ import ImportReport, record_tape
from .pi_session import parse_pi_session, split_branches

if TYPE_CHECKING:
    from msgspec import Raw

    from ..model.entries import Block, Content, Payload
    from ..model.line import Entry
    from ..store.store import Beginning
    from ..store.tape import Tape
    from ..store.writer import Writer
    from .pi_session import PiBranch, PiEntry, PiSession

_APIS = {
    "anthropic-messages": "anthropic-messages",
    "openai-completions": "openai-chat",
    "openai-responses": "openai-responses",
    "google-generative-ai": "google-generate",
}
"""pi's names of APIs → ours; others stay as they are."""
_STOPS = {"toolUse": "tool_calls", "stop": "stop", "length": "length", "error": "error"}
_NO_LABEL = re.compile(r"[^a-z0-9._-]+")
_MAX_LABEL = 48  # characters, as tape.md §1 has it
_CALL_FIELDS = ("type", "id", "name", "arguments")
_SUMMARY_OF_BRANCH = "Summary of a branch that was left:\n\n"


class SessionImportReport(ImportReport, frozen=True):
    """The result of importing a session of another agent."""

    branches: int
    skipped: int
    """Number of lines that are no entries, and were left out."""
    version: int
    """Version of the file."""


def import_pi_session(store: Store, data: bytes, beginning: Beginning) -> SessionImportReport:
    """Create a tape from a session file of pi, of any version up to 3.

    The tape works in the session's folder. Importing the same file again adds nothing. Raises
    UsageError for another kind of file, and then creates nothing.
    """
    session = parse_pi_session(data)
    branches = split_branches(session.entries)
    digest = sha256(data).hexdigest()
    recorder = _SessionRecorder(session, branches)
    prompts = (_get_prompt(one) for branch in branches for one in branch.entries)
    identity = sha256(f"session of pi\n{digest}\n".encode()).hexdigest()[:32]
    cwd = session.header.get("cwd")
    beginning = beginning._replace(
        cwd=cwd if isinstance(cwd, str) and cwd else beginning.cwd,
        slug=next(filter(None, prompts), ""),
        program=f"{beginning.program} (import from pi)",
    )
    timed = Store(store.path, clock=recorder.read_time, random=store.random, durable=store.durable)
    made = record_tape(timed, identity, beginning, recorder.record)
    count = len(session.entries) + 1
    added = recorder.written * made.is_new
    return SessionImportReport(
        identity, made.path, added, count, 0, len(branches), session.skipped, session.version
    )


class _Recorded(NamedTuple):
    """The newest entry of the tape after an entry of the session."""

    id: str
    n: int


class _SessionRecorder:
    """Records the branches of a session, one after the other."""

    def __init__(self, session: PiSession, branches: list[PiBranch]) -> None:
        self.branches = branches
        self.by_id = {str(one.get("id")): one for one in session.entries}
        self.time = _read_time(session.header.get("timestamp"), 0)
        """Time of the entry that is written, in microseconds since 1970."""
        self.ends: dict[str, _Recorded] = {}
        """Where the entries of the tape end that an entry of the session became."""
        self.starts: dict[str, _Recorded] = {}
        """Where they begin."""
        self.calls: dict[tuple[str, Any], str] = {}
        """Id of an answer, pi's id of a call in it → our id."""
        self.provider = self.model = ""
        self.written = 1
        """Entries of the tape so far, its start included."""

    def read_time(self) -> int:
        """Return the time of the entry that is written: a clock."""
        return self.time

    def record(self, tape: Tape, writer: Writer) -> None:
        """Write all branches; `writer` is that of the first."""
        start = _Recorded(writer.head.entry, writer.head.header.n)
        for number, branch in enumerate(self.branches):
            if number == 0:
                self._record_branch(tape, writer, branch, start)
                writer.barrier()
                continue
            base = tape.find_entry(self.ends.get(branch.base or "", start).id)[0].head
            with tape.writer(tape.fork(base, why="import")) as other:
                self._record_branch(tape, other, branch, start)
        for entry in self.by_id.values():
            self._name_entry(tape, entry)

    def _record_branch(
        self, tape: Tape, writer: Writer, branch: PiBranch, start: _Recorded
    ) -> None:
        for entry in branch.entries:
            self.time = _read_time(entry.get("timestamp"), self.time)
            identity = str(entry.get("id"))
            if entry.get("type") == "compaction":
                made = [self._record_compaction(tape, writer, entry, start)]
                if entry.get("details"):
                    made.append(writer.append(Custom("pi.compaction", pack_raw(entry["details"]))))
            else:
                made = [writer.append(one) for one in self._convert_entry(tape, entry)]
            self.written += len(made)
            self.starts[identity] = _Recorded(made[0].id, made[0].n)
            self.ends[identity] = _Recorded(made[-1].id, made[-1].n)

    def _record_compaction(
        self, tape: Tape, writer: Writer, entry: PiEntry, start: _Recorded
    ) -> Entry:
        writer.barrier()
        head = tape.head(writer.branch)
        end, before = head.header.n, _read_count(entry.get("tokensBefore"))
        first = self.starts.get(str(entry.get("firstKeptEntryId")))
        count = end - first.n + 1 if first is not None else 0
        covered = tape.find_ancestor(head, count).head if 0 < count < end else head
        return writer.anchor(
            Anchor(
                kind="compaction",
                summary=to_plain_text(entry.get("summary") or ""),
                kept=tape.newest(head, count),
                covers=CoveredRange(start.id, covered.entry, covered.header.n - start.n + 1),
                tokens=Tokens(before, 0) if before else None,
                reason="compacted by pi",
            )
        )

    def _convert_entry(self, tape: Tape, entry: PiEntry) -> list[Payload]:
        """Return what an entry becomes: one payload, and where it says more than we keep, more."""
        message = entry.get("message")
        match entry.get("type"):
            case "message" if isinstance(message, dict):
                return self._convert_message(tape, entry, message)
            case "custom_message":
                return [Context("user", "hook", self._read_content(tape, entry.get("content")))]
            case "branch_summary":
                text = _SUMMARY_OF_BRANCH + to_plain_text(entry.get("summary") or "")
                return [_build_note(text), _keep_whole(entry)]
            case "model_change":
                self.provider = to_plain_text(entry.get("provider") or "")
                self.model = to_plain_text(entry.get("modelId") or "")
                return [Model(self.provider, self.model)]
            case "thinking_level_change":
                effort = to_plain_text(entry.get("thinkingLevel") or "")
                return [Model(self.provider, self.model, effort)]
            case _:
                return [_keep_whole(entry)]

    def _convert_message(self, tape: Tape, entry: PiEntry, message: PiEntry) -> list[Payload]:
        content = message.get("content")
        match message.get("role"):
            case "user":
                return [User(self._read_content(tape, content))]
            case "assistant":
                return [self._build_answer(tape, entry, message)]
            case "toolResult":
                return [self._build_result(tape, entry, message)]
            case "bashExecution":
                text, is_hidden = _describe_command(message), message.get("excludeFromContext")
                told = Note(text) if is_hidden is True else _build_note(text)
                return [told, _keep_whole(entry)]
            case "custom":
                return [Context("user", "hook", self._read_content(tape, content))]
            case _:
                return [_keep_whole(entry)]

    def _build_answer(self, tape: Tape, entry: PiEntry, message: PiEntry) -> Assistant:
        usage, api = _read_object(message.get("usage")), message.get("api")
        stop, error = message.get("stopReason"), message.get("errorMessage")
        total_cost = _read_object(usage.get("cost")).get("total")
        self.provider = to_plain_text(message.get("provider") or "")
        self.model = to_plain_text(message.get("model") or "")
        reads, writes = _read_count(usage.get("cacheRead")), _read_count(usage.get("cacheWrite"))
        return Assistant(
            content=self._read_content(tape, message.get("content"), str(entry.get("id"))),
            provider=self.provider,
            api=_APIS.get(to_plain_text(api or ""), to_plain_text(api or "")),
            model=self.model,
            stop_reason=_STOPS.get(to_plain_text(stop or ""), to_plain_text(stop or "stop")),
            usage=Usage(
                input=_read_count(usage.get("input")),
                output=_read_count(usage.get("output")),
                cache_read=reads or None,
                cache_write=writes or None,
                total=_read_count(usage.get("totalTokens")),
            ),
            cost=Cost("USD", float(total_cost)) if isinstance(total_cost, int | float) else None,
            response_id=message["responseId"]
            if isinstance(message.get("responseId"), str)
            else None,
            error=Failure("ProviderError", to_plain_text(error)) if error else None,
        )

    def _build_result(self, tape: Tape, entry: PiEntry, message: PiEntry) -> ToolResult:
        details = message.get("details")
        return ToolResult(
            call_id=self._find_call(entry, message.get("toolCallId")),
            name=to_plain_text(message.get("toolName") or ""),
            content=self._read_content(tape, message.get("content")),
            is_error=message.get("isError") is True,
            details=NO_JSON if details is None else pack_raw(details),
        )

    def _read_content(self, tape: Tape, content: Any, answer: str | None = None) -> Content:
        """Return blocks; calls in the answer with the id `answer` get ids of ours."""
        if not isinstance(content, list):
            return (Text(text=to_plain_text(content or "")),)
        blocks: list[Block] = []
        for place, piece in enumerate(content):
            value = _read_object(piece)
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
                    given, more = value.get("arguments"), drop_fields(value, *_CALL_FIELDS)
                    blocks.append(build_tool_call(ours, value.get("name"), given, more))
                case "image" if (picture := _decode_base64(value.get("data"))) is not None:
                    mime = to_plain_text(value.get("mimeType") or "image/png")
                    blocks.append(Image(blob=tape.blobs.put(picture), mime=mime))
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

    def _name_entry(self, tape: Tape, entry: PiEntry) -> None:
        """Set the label or the title that an entry gives, as far as it can be one."""
        name = entry.get("label") if entry.get("type") == "label" else entry.get("name")
        target = self.ends.get(str(entry.get("targetId")))
        if not isinstance(name, str) or not name.strip():
            return
        if entry.get("type") == "session_info":
            tape.rename(name)
        elif entry.get("type") == "label" and target is not None:
            label = _NO_LABEL.sub("-", name.lower()).strip("-._")[:_MAX_LABEL]
            with suppress(TapeError):  # the entry itself keeps the name as it was
                tape.label(label, target.id)


def _build_note(text: str) -> Context:
    return Context("user", "note", (Text(text=text),))


def _keep_whole(entry: PiEntry) -> Custom:
    return Custom(f"pi.{entry['type']}", pack_raw(entry))


def _keep_rest(value: PiEntry, *used: str) -> Raw:
    return build_wire(drop_fields(value, "type", *used))


def _describe_command(message: PiEntry) -> str:
    """Return a command that the person ran, as the model of pi was told of it."""
    text = f"Ran `{message.get('command')}`\n```\n{message.get('output') or '(no output)'}\n```"
    if message.get("cancelled") is True:
        return f"{text}\n\n(command cancelled)"
    code = message.get("exitCode")
    return f"{text}\n\nCommand exited with code {code}" if code else text


def _get_prompt(entry: PiEntry) -> str:
    """Return the text of a prompt; "" for other entries."""
    message = _read_object(entry.get("message"))
    content = message.get("content") if message.get("role") == "user" else None
    pieces = content if isinstance(content, list) else [{"text": content}]
    texts = (_read_object(piece).get("text") for piece in pieces)
    return " ".join(text for text in texts if isinstance(text, str)).strip()


def _read_object(value: Any) -> PiEntry:
    return value if isinstance(value, dict) else {}


def _read_count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _read_time(value: Any, before: int) -> int:
    """Return microseconds since 1970; `before` where it has none."""
    with suppress(ValueError, TypeError, OverflowError):
        return round(datetime.fromisoformat(value).timestamp() * 1_000_000)
    return before


def _decode_base64(value: Any) -> bytes | None:
    with suppress(ValueError, TypeError):
        return b64decode(value, validate=True)
    return None
