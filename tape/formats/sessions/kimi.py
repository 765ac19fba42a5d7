"""Sessions of Kimi CLI, `~/.kimi/sessions/MD5/UUID/context.jsonl`, → steps.

Each line is a message {role, content, tool_calls?, tool_call_id?}, or a record whose role begins
with `_`. A compaction, a revert and /clear move the file to `context_1.jsonl`, the next time to
`context_2.jsonl`, and begin a new one, whose first line is the system prompt, or checkpoint 0: all
are read, oldest first. The line {"role": "_session", "id", "work_dir", "title"} is not Kimi's: it
tells what stands beside the files. Written after Kimi CLI 1.52.

    message                            becomes
    ---------------------------------  --------------------------------------------------------
    user; `<system>` text alone        user; context
    assistant                          an answer: `think` parts, words, calls
    tool                               the result of a call
    user that begins with "Previous    anchor; the copies that follow it stay in view
    context has been compacted"
    _system_prompt                     custom `kimi.system_prompt`
    _usage, _checkpoint                –
    anything else                      custom `kimi.<role>`, whole

    context_1   a b c d     a──b──c──d
    context     a b e              └──e       (reverted: the same beginning is the same steps)
"""

from __future__ import annotations

from hashlib import md5
from typing import TYPE_CHECKING

from ...model.entries import (
    NO_JSON,
    Anchor,
    Context,
    Custom,
    Text,
    Thinking,
    User,
)
from ..openai_chat.parse import OpenAIChatReader
from ..parsing import CallBinder
from ..wire import encode_json, pack_raw
from .chat_messages import read_chat_message
from .steps import (
    ROOT,
    SourceSession,
    SourceStep,
    decode_object,
    join_paragraphs,
    read_list,
    read_object,
    read_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from ...model.entries import Payload
    from ..wire import Put, WireObject

TOOL = "kimi"
FORMAT = "kimi-cli-context"
_SESSION = "_session"
_PROMPT = "_system_prompt"
_SILENT = frozenset({"_usage", "_checkpoint", _SESSION})
_RECORDS = _SILENT | {_PROMPT}
_TALK = frozenset({"user", "assistant", "tool", "system"})
_COMPACTED = "<system>Previous context has been compacted"


def is_session_line(value: WireObject) -> bool:
    """Return whether an object is a record of a context file; messages alone do not tell."""
    role = value.get("role")
    return isinstance(role, str) and role in _RECORDS


def describe_session(folder: Path, state: WireObject, settings: WireObject) -> bytes:
    """Return what `state.json` and `kimi.json` say of the session in a folder, as a first line."""
    rows = map(read_object, read_list(settings.get("work_dirs")))
    places = [read_text(row.get("path")) for row in rows]
    hashed = folder.parent.name.rpartition("_")[2]
    place = next((place for place in places if _hash_place(place) == hashed), None)
    facts = {"id": folder.name, "work_dir": place, "title": state.get("custom_title")}
    return encode_json({"role": _SESSION, **facts})


def _hash_place(place: str) -> str:
    """Return the name that Kimi gives the folder of the sessions of a place."""
    return md5(place.encode(), usedforsecurity=False).hexdigest()


def read_session(read_lines: Callable[[], Iterable[bytes]], name: str) -> SourceSession:
    """Return the session in a file; `name` is that of its folder."""
    facts: WireObject = {}
    for line in read_lines():
        facts = decode_object(line) or {}
        break
    if facts.get("role") != _SESSION:
        facts = {}

    def read_steps(put: Put) -> Iterator[SourceStep]:
        return _StepReader(session, put).read(read_lines())

    session = SourceSession(
        TOOL,
        FORMAT,
        read_text(facts.get("id")) or name,
        read_steps,
        cwd=read_text(facts.get("work_dir")) or None,
        title=read_text(facts.get("title")) or None,
    )
    return session


class _StepReader:
    """Reads the messages of the files of one session."""

    def __init__(self, session: SourceSession, put: Put) -> None:
        self.session = session
        self.reader = OpenAIChatReader(put, CallBinder())
        self.steps: dict[tuple[str, bytes], str] = {}
        """Step before, message → the step that it became."""

    def read(self, lines: Iterable[bytes]) -> Iterator[SourceStep]:
        """Yield a step for each message that an earlier file does not have."""
        before: list[tuple[bytes, str]] = []
        for number, messages in enumerate(self._split_files(lines)):
            here: list[tuple[bytes, str]] = []
            yield from self._read_file(number, messages, before, here)
            before = here

    def _split_files(self, lines: Iterable[bytes]) -> Iterator[list[WireObject]]:
        part: list[WireObject] = []
        last = ""
        for line in lines:
            value = decode_object(line)
            if value is None:
                self.session.damaged += bool(line.strip())
                continue
            role = read_text(value.get("role"))
            is_first = role == "_checkpoint" and value.get("id") == 0 and last != _PROMPT
            if (role == _PROMPT or is_first) and part:
                yield part
                part = []
            if role not in _SILENT:
                part.append(value)
            last = role
        yield part

    def _read_file(
        self,
        file: int,
        messages: list[WireObject],
        before: list[tuple[bytes, str]],
        here: list[tuple[bytes, str]],
    ) -> Iterator[SourceStep]:
        """Yield the steps of one file; `here` gets its messages with the steps that they are."""
        packed = [encode_json(message) for message in messages]
        tip, copies = ROOT, 0
        for number, value in enumerate(messages):
            if copies:
                copies -= 1
                continue
            step = self.steps.get((tip, packed[number]))
            if step is None:
                step, kept_from = f"{file}:{number}", None
                payloads: tuple[Payload, ...]
                if _is_summary(value):
                    copies = _count_copies(before, packed[number + 1 :])
                    kept_from = before[-copies][1] if copies else None
                    parent = before[-1][1] if before else tip
                    payloads = (_build_anchor(value),)
                else:
                    parent, payloads = (
                        tip,
                        tuple(self._convert(value, read_text(value.get("role")))),
                    )
                yield SourceStep(step, parent, None, payloads, kept_from)
                self.steps[tip, packed[number]] = step
            here.append((packed[number], step))
            tip = step

    def _convert(self, value: WireObject, role: str) -> Iterator[Payload]:
        if role == _PROMPT:
            yield Custom(f"{TOOL}.system_prompt", pack_raw(value))
            return
        if role not in _TALK:
            yield self.session.keep_whole(role or "line", value)
            return
        texts = _list_texts(value)
        hidden = (
            role == "user"
            and all(text.startswith("<system>") for text in texts)
            and len(texts) == len(_list_parts(value))
        )
        thinking = [
            Thinking(
                read_text(part.get("think")),
                wire=pack_raw({"encrypted": part["encrypted"]})
                if part.get("encrypted")
                else NO_JSON,
            )
            for part in _list_parts(value)
            if part.get("type") == "think"
        ]
        content = value.get("content")
        if isinstance(content, list):
            content = [part for part in content if read_object(part).get("type") != "think"]
        message = {**value, "content": content}
        for payload in read_chat_message(
            self.reader, message, provider="kimi", model="", thinking=thinking
        ):
            if hidden and isinstance(payload, User):
                yield Context("user", TOOL, payload.content or (Text(""),))
            else:
                yield payload


def _is_summary(value: WireObject) -> bool:
    texts = _list_texts(value)
    return value.get("role") == "user" and bool(texts) and texts[0].startswith(_COMPACTED)


def _build_anchor(value: WireObject) -> Anchor:
    summary = join_paragraphs(_list_texts(value)[1:])
    return Anchor(kind="compaction", summary=summary, reason="compacted by Kimi CLI")


def _count_copies(before: list[tuple[bytes, str]], after: list[bytes]) -> int:
    """Return how many of the last messages of a file follow its summary again."""
    last = [message for message, _ in before]
    most = min(len(last), len(after))
    return next((n for n in range(most, 0, -1) if last[-n:] == after[:n]), 0)


def _list_parts(value: WireObject) -> list[WireObject]:
    content = value.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [read_object(part) for part in read_list(content)]


def _list_texts(value: WireObject) -> list[str]:
    return [
        read_text(part.get("text")) for part in _list_parts(value) if part.get("type") == "text"
    ]
