"""Chats of Gemini CLI, `~/.gemini/tmp/PROJECT/chats/session-*.json` or `.jsonl`, → steps.

A chat is one JSON document with `messages`, or since 0.40 a header and a message on each line; a
line `{"$set":{…}}` changes the header and may bring messages; a repeated message replaces
the first. A line `{"$rewindTo":ID}` ends the branch before that message, or before the first one
where none has this id: what follows begins another branch.

    message                          becomes
    -------------------------------  ----------------------------------------------------------
    user                             user; context where it says what the session is about
    user, with results only          nothing where they stand beside their calls, else results
    gemini, model                    an answer: thoughts, words, calls; then a result for each
                                     call that has one
    info, error, warning             note
    an element of `history`          as the API's own contents
    anything else                    custom `gemini.<type>`, whole
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ...model.entries import (
    NO_JSON,
    Assistant,
    Context,
    Note,
    Text,
    Thinking,
    ToolResult,
    Usage,
    User,
    join_texts,
)
from ..gemini.parse import GeminiReader
from ..parsing import CallBinder, build_tool_call, to_plain_text
from ..wire import drop_fields, encode_json, pack_raw
from .steps import (
    COVERED,
    REPEATED,
    ROOT,
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

    from ...model.entries import Block, Payload
    from ..wire import Put, WireObject

TOOL = "gemini"
FORMAT = "gemini-cli-chat"
_ANSWERS = frozenset({"gemini", "model"})
_REMARKS = frozenset({"info", "error", "warning"})
_CALL_FIELDS = ("id", "name", "args", "result", "resultDisplay", "status", "timestamp")
_CONTEXT_MARK = "<session_context>"
_CONTEXT = "This is the Gemini CLI."
_FOLDER = (
    r"(?:Workspace Directories:\*\*|working in the following directories:)\s+- (.+)"
    r"|working in the directory: (.+)"
)
_HEADER = frozenset({"projectHash", "startTime", "lastUpdated"})


def is_session_line(value: WireObject) -> bool:
    """Return whether an object is a chat, or the header of one."""
    is_chat = isinstance(value.get("messages"), list) or isinstance(value.get("history"), list)
    return (is_chat and bool({*_HEADER, "start_time"} & value.keys())) or (
        "sessionId" in value and len(_HEADER & value.keys()) > 1
    )


def read_session(read_lines: Callable[[], Iterable[bytes]], name: str) -> SourceSession:
    """Return the session in a chat; `name` is the file's name without its ending."""
    chat = _read_chat(read_lines())
    header = chat.header

    def read_steps(put: Put) -> Iterator[SourceStep]:
        session.damaged = chat.damaged
        session.left_out.update(chat.left_out)
        return _StepReader(session, put).read(chat)

    session = SourceSession(
        TOOL,
        FORMAT,
        read_text(header.get("sessionId")) or name,
        read_steps,
        cwd=_find_folder(header) or chat.find_folder(),
        created=read_time(header.get("startTime") or header.get("start_time")),
        title=read_text(header.get("summary")) or None,
        newest=chat.find_newest_step(),
    )
    return session


def _find_folder(header: WireObject) -> str | None:
    return next(filter(None, map(read_text, read_list(header.get("directories")))), None)


@dataclass
class _Message:
    """A message of a chat, in its last version."""

    step: str
    """Id of its step."""
    parent: str
    """Id of the step it follows."""
    value: Any


class _Chat:
    """The header of a chat, and its messages as a tree."""

    def __init__(self) -> None:
        self.header: WireObject = {}
        self.messages: list[_Message] = []
        self.current: dict[str, _Message] = {}
        """Id → message of the current branch."""
        self.damaged = 0
        """Lines that are lost."""
        self.left_out: Counter[str] = Counter()

    def add(self, value: Any) -> None:
        """Add a message; of one that is written again only the last version counts."""
        number = len(self.messages)
        identity = read_text(read_object(value).get("id"))
        before = self.current.get(identity or f"#{number}")
        if before is not None:
            self.left_out[REPEATED if before.value == value else COVERED] += 1
            before.value = value
            return
        message = _Message(f"{identity or 'message'}#{number}", self._find_end(), value)
        self.messages.append(message)
        self.current[identity or f"#{number}"] = message

    def rewind(self, identity: str) -> None:
        """Leave the branch before a message; before the first one where none has this id."""
        ids = [*self.current]
        for gone in ids[ids.index(identity) if identity in ids else 0 :]:
            del self.current[gone]

    def find_newest_step(self) -> str | None:
        """Return the step at which the chat is; None if that is the last one of all."""
        end = self._find_end()
        return None if not self.messages or end == self.messages[-1].step else end

    def find_folder(self) -> str | None:
        """Return the folder that Gemini CLI tells its model of before the first prompt."""
        first = read_object(self.messages[0].value) if self.messages else {}
        parts = read_list(first.get("content"))
        text = "".join(read_text(read_object(part).get("text")) for part in parts)
        match = re.search(_FOLDER, text) if _CONTEXT in text else None
        return (match[1] or match[2]).strip() if match else None

    def _find_end(self) -> str:
        return next(reversed(self.current.values())).step if self.current else ROOT


def _read_chat(lines: Iterable[bytes]) -> _Chat:
    chat = _Chat()
    data = b"\n".join(lines)
    whole = decode_object(data)
    if whole is not None and ("messages" in whole or "history" in whole):
        chat.header = whole
        for message in read_list(whole.get("messages") or whole.get("history")):
            chat.add(message)
        return chat
    for line in filter(bytes.strip, data.split(b"\n")):
        value = decode_object(line)
        if value is None:
            chat.damaged += 1
        elif isinstance(value.get("$set"), dict):
            chat.header.update(value["$set"])
            for message in read_list(value["$set"].get("messages")):
                chat.add(message)
        elif isinstance(value.get("$rewindTo"), str):
            chat.rewind(value["$rewindTo"])
        elif not chat.header and "type" not in value:
            chat.header = value
        else:
            chat.add(value)
    return chat


class _StepReader:
    """Reads the messages of one chat."""

    def __init__(self, session: SourceSession, put: Put) -> None:
        self.session = session
        self.reader = GeminiReader(put, CallBinder())
        self.answered: set[str] = set()
        """Calls whose result stands beside them; newer versions write it a second time."""

    def read(self, chat: _Chat) -> Iterator[SourceStep]:
        """Yield a step for each message."""
        model = read_text(read_object(chat.header.get("meta")).get("model"))
        for node in chat.messages:
            message = read_object(node.value)
            time = read_time(message.get("timestamp") or message.get("ts"))
            payloads = tuple(self._convert(message, model) if message else self._keep(node.value))
            yield SourceStep(node.step, node.parent, time, payloads)

    def _keep(self, value: Any) -> list[Payload]:
        return [self.session.keep_whole("message", value)]

    def _convert(self, message: WireObject, model: str) -> Iterator[Payload]:
        kind = read_text(message.get("type"))
        if "parts" in message and kind in {"", "user", *_ANSWERS}:
            role = kind or read_text(message.get("role"))
            role = "model" if role in _ANSWERS else "user"
            for payload in self.reader.read_element({"role": role, "parts": message["parts"]}):
                if isinstance(payload, Assistant) and kind:
                    yield self._name_model(payload, message, model)
                else:
                    yield payload
        elif kind == "user":
            yield from self._convert_user(message.get("content"))
        elif kind in _ANSWERS:
            yield from self._convert_answer(message, model)
        elif kind in _REMARKS:
            yield Note(to_plain_text(message.get("content") or ""))
        else:
            yield self.session.keep_whole(kind or "message", message)

    def _convert_user(self, content: Any) -> Iterator[Payload]:
        """Yield a message in the user's name: a prompt, facts for the model, or results again."""
        pieces = [read_object(piece) for piece in read_list(content)]
        if not pieces or not all("functionResponse" in piece for piece in pieces):
            blocks = tuple(self._read_words(content)) or (Text(""),)
            is_told = join_texts(blocks).startswith(_CONTEXT_MARK)
            yield Context("user", "note", blocks) if is_told else User(blocks)
            return
        for piece in pieces:
            if read_text(read_object(piece["functionResponse"]).get("id")) in self.answered:
                self.session.left_out[COVERED] += 1
            else:
                yield from self.reader.read_element({"role": "user", "parts": [piece]})

    def _read_words(self, content: Any) -> list[Block]:
        pieces = content if isinstance(content, list) else [content] if content else []
        return [self.reader.read_block(piece) for piece in pieces]

    def _convert_answer(self, message: WireObject, model: str) -> Iterator[Payload]:
        self.reader.calls.begin_answer(encode_json(message))
        blocks: list[Block] = []
        for thought in map(read_object, read_list(message.get("thoughts"))):
            words = (read_text(thought.get("subject")), read_text(thought.get("description")))
            blocks.append(Thinking(join_paragraphs(words)))
        blocks += self._read_words(message.get("content"))
        calls = [read_object(call) for call in read_list(message.get("toolCalls"))]
        for call in calls:
            name = to_plain_text(call.get("name") or "")
            ours = self.reader.assign_call_id(call.get("id"), name)
            rest = {"id": call["id"]} if isinstance(call.get("id"), str) else {}
            blocks.append(build_tool_call(ours, name, call.get("args"), rest))
        yield self._name_model(self.reader.build_answer(tuple(blocks)), message, model)
        for call in calls:
            yield from self._convert_result(call)

    def _name_model(self, answer: Assistant, message: WireObject, model: str) -> Assistant:
        return replace(
            answer,
            provider="google",
            model=read_text(message.get("model")) or model,
            usage=_read_usage(read_object(message.get("tokens"))),
        )

    def _convert_result(self, call: WireObject) -> Iterator[Payload]:
        results = [
            read_object(piece.get("functionResponse"))
            for piece in map(read_object, read_list(call.get("result")))
            if "functionResponse" in piece
        ]
        status = read_text(call.get("status"))
        if not results and status not in {"error", "cancelled"}:
            return
        rest = drop_fields(call, *_CALL_FIELDS[:4])
        details = NO_JSON if not rest else pack_raw(rest)
        if not results:
            text = to_plain_text(call.get("resultDisplay") or status)
            results = [{"name": call.get("name"), "response": {"error": text}}]
        self.answered.add(read_text(call.get("id")))
        response = {**results[0], "id": call.get("id"), "name": call.get("name")}
        part = {"functionResponse": {k: v for k, v in response.items() if v is not None}}
        for payload in self.reader.read_element({"role": "user", "parts": [part]}):
            if isinstance(payload, ToolResult):
                is_error = payload.is_error or status in {"error", "cancelled"}
                yield replace(payload, is_error=is_error, details=details)
            else:
                yield payload


def _read_usage(tokens: WireObject) -> Usage:
    """Return the tokens of an answer: what was cached is not counted as input."""
    cached = min(read_count(tokens.get("cached")), read_count(tokens.get("input")))
    sent, thoughts = read_count(tokens.get("input")) - cached, read_count(tokens.get("thoughts"))
    received = read_count(tokens.get("output")) + thoughts
    return Usage(
        input=sent,
        output=received,
        reasoning=thoughts or None,
        cache_read=cached or None,
        total=read_count(tokens.get("total")) or sent + received + cached,
    )
