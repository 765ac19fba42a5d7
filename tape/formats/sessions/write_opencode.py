"""One branch of a tape → the document that `opencode import` reads.

entry             message of OpenCode
----------------  ------------------------------------------------------------------------
user, context     user, its words and files as parts; what no person said is synthetic
assistant         assistant, with reasoning, words and tool parts
tool.result       the state of the tool part that called; a call without one is pending
anchor            user with a compaction part, then an assistant marked as its summary
anything else     nothing

Messages and parts are read in the order of their ids, so an id begins with the place. It also
depends on the session, because ids are unique in the database that all sessions are in.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from ...clock import parse_timestamp
from ...model.entries import (
    Anchor,
    Assistant,
    Context,
    Document,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    User,
    join_texts,
)
from ...model.summary import render_summary
from ...text import extract_title
from ..wire import build_decoded_arguments, encode_json, load_base64

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...model.entries import Content
    from ...model.line import Entry
    from ..wire import WireObject
    from .outline import TapeOutline

_VERSION = "1.18.33"
"""The version of OpenCode whose documents these are."""
_UNKNOWN = "unknown"
_FINISH = {"stop": "stop", "tool_calls": "tool-calls", "length": "length"}


def name_session(tape: str, branch: str) -> str:
    """Return the id of a branch of a tape; by the first half of it an import finds the tape."""
    return f"ses_{tape[:16]}{sha256(f'{tape}:{branch}'.encode()).hexdigest()[:10]}"


def write_session(tape: TapeOutline) -> Iterator[bytes]:
    """Yield the one line of the document."""
    writer = _Writer(tape)
    for entry, _ in tape.entries:
        writer.add_entry(entry)
    times = [_read_milliseconds(entry) for entry, _ in tape.entries]
    document = {
        "info": {
            "id": writer.session,
            "slug": f"tape-{tape.id[:8]}",
            "projectID": "global",
            "directory": tape.cwd,
            "title": tape.title or _find_first_words(tape) or "A session",
            "version": _VERSION,
            "time": {"created": times[0], "updated": max(times)},
        },
        "messages": writer.messages,
    }
    yield encode_json(document)


def _find_first_words(tape: TapeOutline) -> str | None:
    """Return the beginning of the first prompt, as a title."""
    prompts = (placed.entry.data for placed in tape.entries)
    titles = (
        extract_title(join_texts(prompt.content)) for prompt in prompts if isinstance(prompt, User)
    )
    return next(filter(None, titles), None)


def _read_milliseconds(entry: Entry) -> int:
    return parse_timestamp(entry.time) // 1000


class _Writer:
    """The messages so far."""

    def __init__(self, tape: TapeOutline) -> None:
        self.tape = tape
        self.session = name_session(tape.id, tape.branch)
        self.messages: list[WireObject] = []
        self._prompt = ""
        """Id of the newest message of the user."""
        self._calls: dict[str, WireObject] = {}
        """Call → its part."""
        answers = [
            placed.entry.data for placed in tape.entries if isinstance(placed.entry.data, Assistant)
        ]
        first = next((answer for answer in answers if answer.model), None)
        self._model = _name_model(first) if first else _name_model(Assistant(()))

    def add_entry(self, entry: Entry) -> None:
        """Add what an entry says."""
        match entry.data:
            case User(content=content):
                self._add_prompt(entry, self._build_files(content, is_synthetic=False))
            case Context(content=content):
                self._add_prompt(entry, self._build_files(content, is_synthetic=True))
            case Assistant() as message:
                self._add_answer(entry, message)
            case ToolResult() as result:
                self._end_call(entry, result)
            case Anchor(summary=summary):
                self._add_prompt(entry, [{"type": "compaction", "auto": True}])
                text = render_summary(summary)
                answer = Assistant((Text(text),), self._model["providerID"])
                self._add_answer(entry, answer, {"summary": True})

    def _add_prompt(self, entry: Entry, parts: list[WireObject]) -> None:
        info = {
            "role": "user",
            "time": {"created": _read_milliseconds(entry)},
            "agent": "build",
            "model": self._model,
        }
        self._prompt = self._add_message(entry, info, parts)

    def _add_message(self, entry: Entry, info: WireObject, parts: list[WireObject]) -> str:
        place = f"{len(self.messages):012x}"
        digest = sha256(f"{self.session}:{entry.id}:{place}".encode()).hexdigest()
        identity = f"msg_{place}{digest[:14]}"
        owner = {"sessionID": self.session, "messageID": identity}
        for number, part in enumerate(parts):
            part.update({"id": f"prt_{place}{number:04x}{digest[:10]}", **owner})
        info = {"id": identity, "sessionID": self.session, **info}
        self.messages.append({"info": info, "parts": parts})
        return identity

    def _add_answer(self, entry: Entry, answer: Assistant, more: WireObject | None = None) -> None:
        if answer.model:
            self._model = _name_model(answer)
        usage, thought = answer.usage, answer.usage.reasoning or 0
        time = _read_milliseconds(entry)
        error = answer.error
        info = {
            "role": "assistant",
            "parentID": self._prompt or f"msg_{'0' * 26}",
            "time": {"created": time - answer.duration_ms, "completed": time},
            **self._model,
            "mode": "build",
            "agent": "build",
            "path": {"cwd": self.tape.cwd, "root": self.tape.cwd},
            "cost": answer.cost.amount if answer.cost else 0,
            "tokens": {
                "input": usage.input,
                "output": max(usage.output - thought, 0),
                "reasoning": thought,
                "cache": {"read": usage.cache_read or 0, "write": usage.cache_write or 0},
            },
            "finish": _FINISH.get(answer.stop_reason, answer.stop_reason),
            **(more or {}),
        }
        if error is not None:
            info["error"] = {"name": "UnknownError", "data": {"message": error.message}}
        parts: list[WireObject] = []
        for block in answer.content:
            match block:
                case Text(text=text) if text:
                    parts.append({"type": "text", "text": text})
                case Thinking(text=text) if text:
                    times = {"start": time, "end": time}
                    parts.append({"type": "reasoning", "text": text, "time": times})
                case ToolCall():
                    parts.append(self._begin_call(block))
                case Image() | Document():
                    parts += self._build_files((block,), is_synthetic=False)
        self._add_message(entry, info, parts)

    def _begin_call(self, call: ToolCall) -> WireObject:
        state = {"status": "pending", "input": build_decoded_arguments(call), "raw": ""}
        part = {"type": "tool", "callID": call.id, "tool": call.name, "state": state}
        self._calls[call.id] = part
        return part

    def _end_call(self, entry: Entry, result: ToolResult) -> None:
        """Write how a call ended; a second result, or one of no call, is left out."""
        part = self._calls.pop(result.call_id, None)
        if part is None:
            return
        end = _read_milliseconds(entry)
        state: WireObject = {
            "status": "error" if result.is_error else "completed",
            "input": part["state"]["input"],
            "error" if result.is_error else "output": join_texts(result.content),
            "metadata": {},
            "time": {"start": end - result.duration_ms, "end": end},
        }
        owner = {key: part[key] for key in ("sessionID", "messageID")}
        files = [
            {"id": f"{part['id']}{number:02x}", **owner, **file}
            for number, file in enumerate(self._build_files(result.content, is_synthetic=False))
            if file["type"] == "file"
        ]
        if not result.is_error:
            state |= {"title": "", **({"attachments": files} if files else {})}
        part["state"] = state

    def _build_files(self, content: Content, *, is_synthetic: bool) -> list[WireObject]:
        """Return the words and files of a message as parts; a missing file is left out."""
        parts: list[WireObject] = []
        for block in content:
            match block:
                case Text(text=text):
                    mark = {"synthetic": True} if is_synthetic else {}
                    parts.append({"type": "text", "text": text, **mark})
                case Image(blob=blob, mime=mime) | Document(blob=blob, mime=mime):
                    data = load_base64(blob, self.tape.load)
                    name = getattr(block, "name", None)
                    file = {"type": "file", "mime": mime, "url": f"data:{mime};base64,{data}"}
                    file |= {"filename": name} if name else {}
                    parts += [file] if data is not None else []
        return parts


def _name_model(answer: Assistant) -> WireObject:
    return {"providerID": answer.provider or _UNKNOWN, "modelID": answer.model or _UNKNOWN}
