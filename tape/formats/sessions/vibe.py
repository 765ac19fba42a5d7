"""Sessions of Mistral Vibe, `~/.vibe/logs/session/session_TIME_ID/messages.jsonl`, → steps.

Each line is a message in the shape of OpenAI's Chat API, with fields of Vibe's own. The line
before them is `meta.json` of the same folder, which knows the session, its folder, its model and
git. Messages have no times. Written after Vibe 3.0.

    message                           becomes
    --------------------------------  ---------------------------------------------------------
    user                              user, with its pictures
    `injected` user                   context
    `context_boundary` compaction     anchor
    assistant                         an answer: `reasoning_content`, words, calls
    tool                              the result of a call
    anything else                     custom `vibe.<role>`, whole
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ...model.entries import NO_JSON, Anchor, Context, Git, ToolResult, User
from ..openai_chat.parse import OpenAIChatReader
from ..parsing import CallBinder, to_plain_text
from ..wire import pack_raw
from .chat_messages import read_chat_message
from .steps import (
    NEWEST,
    ReadIds,
    SourceSession,
    SourceStep,
    decode_object,
    read_list,
    read_object,
    read_text,
    read_time,
    strip_model,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ...model.entries import Payload
    from ..wire import Put, WireObject

TOOL = "vibe"
FORMAT = "vibe-session"
_ROLES = frozenset({"user", "assistant", "tool", "system"})
_CHAT_FIELDS = ("role", "content", "reasoning_content", "tool_call_id", "name")
_OWN_FIELDS = frozenset({"message_id", "reasoning_message_id", "injected", "user_display_content"})


def is_session_line(value: WireObject) -> bool:
    """Return whether an object is a session's `meta.json`, or one of its messages."""
    if "session_id" in value and isinstance(value.get("environment"), dict):
        return "start_time" in value
    return read_text(value.get("role")) in _ROLES and bool(_OWN_FIELDS & value.keys())


def read_session(read_lines: Callable[[], Iterable[bytes]], name: str) -> SourceSession:
    """Return the session in a folder; `name` is that of the folder."""
    facts: WireObject = {}
    for line in read_lines():
        facts = decode_object(line) or {}
        break
    if "session_id" not in facts:
        facts = {}
    settings = read_object(facts.get("config"))
    model = read_text(settings.get("model_name")) or read_text(settings.get("active_model"))

    def read_steps(put: Put) -> Iterator[SourceStep]:
        reader = OpenAIChatReader(put, CallBinder())
        number = 0
        ids = ReadIds(session)
        for line in read_lines():
            value = decode_object(line)
            if value is None:
                session.damaged += bool(line.strip())
            elif "role" in value or "session_id" not in value:
                if ids.is_repeated(value.get("message_id")):
                    continue
                number += 1
                payloads = tuple(_convert_message(session, reader, value, model))
                yield SourceStep(f"#{number}", NEWEST, None, payloads)

    branch, commit = read_text(facts.get("git_branch")), read_text(facts.get("git_commit"))
    session = SourceSession(
        TOOL,
        FORMAT,
        read_text(facts.get("session_id")) or name,
        read_steps,
        cwd=read_text(read_object(facts.get("environment")).get("working_directory")) or None,
        git=Git(branch or None, commit or None, dirty=False) if branch or commit else None,
        created=read_time(facts.get("start_time")),
        title=read_text(facts.get("title")) or None,
        strip_changes=strip_model,
    )
    return session


def _convert_message(
    session: SourceSession, reader: OpenAIChatReader, value: WireObject, model: str
) -> Iterator[Payload]:
    role = read_text(value.get("role"))
    content = to_plain_text(value.get("content") or "")
    if role not in _ROLES:
        yield session.keep_whole(role or "message", value)
        return
    if value.get("context_boundary") == "compaction":
        yield Anchor(kind="compaction", summary=content, reason="compacted by Vibe")
        return
    message = {name: value[name] for name in _CHAT_FIELDS if value.get(name) is not None}
    calls = [_convert_call(call) for call in read_list(value.get("tool_calls"))]
    if calls:
        message["tool_calls"] = calls
    pictures = [*filter(None, map(_convert_picture, read_list(value.get("images"))))]
    if pictures:
        message["content"] = [{"type": "text", "text": content}, *pictures]
    for payload in read_chat_message(reader, message, provider="mistral", model=model):
        if isinstance(payload, User) and value.get("injected"):
            yield Context("user", TOOL, payload.content)
        elif isinstance(payload, ToolResult):
            yield _add_outcome(payload, value)
        else:
            yield payload


def _convert_call(value: Any) -> WireObject:
    """Return a call as the API has it."""
    call = read_object(value)
    called = read_object(call.get("function"))
    function = {"name": called.get("name") or "", "arguments": called.get("arguments") or "{}"}
    fields = {"id": call["id"]} if isinstance(call.get("id"), str) else {}
    return {**fields, "type": "function", "function": function}


def _convert_picture(value: Any) -> WireObject | None:
    """Return a picture as the API has it; None for one in a file of its own."""
    picture = read_object(value)
    source = read_object(picture.get("source"))
    data = read_text(source.get("data")) or read_text(picture.get("data"))
    if not data:
        path = read_text(source.get("path")) or read_text(picture.get("path"))
        return {"type": "text", "text": f"[picture {path}]"} if path else None
    mime = read_text(picture.get("mime_type")) or "image/png"
    return {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{data}"}}


def _add_outcome(result: ToolResult, value: WireObject) -> ToolResult:
    """Return a result with what Vibe keeps of it beside its text."""
    outcome = read_object(value.get("tool_result"))
    failed = bool(outcome.get("cancelled")) or "<tool_error>" in to_plain_text(value.get("content"))
    return replace(result, is_error=failed, details=pack_raw(outcome) if outcome else NO_JSON)
