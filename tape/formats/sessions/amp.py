"""Threads of Amp, `~/.local/share/amp/threads/T-ID.json`, → steps.

A thread is one document with messages much like those of Anthropic's API. Amp publishes no format,
and newer versions keep threads on a server: this is that of files of January to March 2026.

    message                      becomes
    ---------------------------  --------------------------------------------------------------
    user, its words              user
    user, `tool_result`          the result of a call: `run.result`, or `run.error` as an error
    assistant                    an answer, with model and tokens of `usage`
    another role                 custom `amp.<role>`, whole
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from msgspec.structs import replace

from ...model.entries import Assistant, Git, Usage
from ...repository import name_repository
from ..anthropic.parse import AnthropicReader
from ..parsing import CallBinder, to_plain_text
from .steps import (
    NEWEST,
    ReadIds,
    SourceSession,
    SourceStep,
    decode_object,
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

TOOL = "amp"
FORMAT = "amp-thread"
_FAILED = frozenset({"error", "cancelled", "rejected-by-user"})


def is_session_line(value: WireObject) -> bool:
    """Return whether an object is a thread."""
    return read_text(value.get("id")).startswith("T-") and isinstance(value.get("messages"), list)


def read_session(read_lines: Callable[[], Iterable[bytes]], name: str) -> SourceSession:
    """Return the session of a thread; `name` is the file's name without its ending."""
    thread = decode_object(b"\n".join(read_lines())) or {}
    messages = read_list(thread.get("messages"))
    trees = read_list(read_object(read_object(thread.get("env")).get("initial")).get("trees"))
    tree = read_object(trees[0]) if trees else {}
    place = unquote(urlsplit(read_text(tree.get("uri"))).path)
    branch = read_text(read_object(tree.get("repository")).get("ref")).removeprefix("refs/heads/")

    def read_steps(put: Put) -> Iterator[SourceStep]:
        reader = AnthropicReader(put, CallBinder())
        ids = ReadIds(session)
        for number, value in enumerate(messages):
            message = read_object(value)
            if ids.is_repeated(message.get("messageId")):
                continue
            sent = read_object(message.get("meta")).get("sentAt")
            time = read_time(sent or read_object(message.get("usage")).get("timestamp"))
            payloads = tuple(_convert_message(session, reader, message, value))
            yield SourceStep(f"#{number}", NEWEST, time, payloads)

    session = SourceSession(
        TOOL,
        FORMAT,
        read_text(thread.get("id")) or name,
        read_steps,
        cwd=place or None,
        git=Git(branch, None, dirty=False) if branch else None,
        created=read_time(thread.get("created")),
        title=read_text(thread.get("title")) or None,
        repository=name_repository(read_text(read_object(tree.get("repository")).get("url"))),
    )
    return session


def _convert_message(
    session: SourceSession, reader: AnthropicReader, message: WireObject, value: Any
) -> Iterator[Payload]:
    role = message.get("role")
    if read_text(role) not in {"user", "assistant"}:
        yield session.keep_whole(read_text(role) or "message", value)
        return
    pieces = [_convert_piece(piece) for piece in read_list(message.get("content"))]
    usage = read_object(message.get("usage"))
    for payload in reader.read_element({"role": role, "content": pieces}):
        if not isinstance(payload, Assistant):
            yield payload
            continue
        state = read_object(message.get("state"))
        stop = {"tool_use": "tool_calls", "max_tokens": "length"}
        yield replace(
            payload,
            provider="amp",
            model=read_text(usage.get("model")),
            usage=_read_usage(usage),
            stop_reason=stop.get(read_text(state.get("stopReason")), "stop"),
            partial=read_text(state.get("type")) in {"cancelled", "streaming"},
        )


def _convert_piece(value: Any) -> Any:
    """Return a block as Anthropic's API has it."""
    piece = read_object(value)
    match piece.get("type"):
        case "tool_use":
            return {key: piece.get(key) for key in ("type", "id", "name", "input")}
        case "tool_result":
            run = read_object(piece.get("run"))
            failed = read_text(run.get("status")) in _FAILED
            output = run.get("error") or run.get("reason") if failed else run.get("result")
            return {
                "type": "tool_result",
                "tool_use_id": piece.get("toolUseID"),
                "content": to_plain_text("" if output is None else output),
                **({"is_error": True} if failed else {}),
            }
        case "image":
            source = {**read_object(piece.get("source"))}
            if "mediaType" in source:
                source["media_type"] = source.pop("mediaType")
            return {**piece, "source": source}
    return value


def _read_usage(usage: WireObject) -> Usage:
    sent, received, reads, writes = (
        read_count(usage.get(name))
        for name in (
            "inputTokens", "outputTokens",
            "cacheReadInputTokens", "cacheCreationInputTokens",
        )
    )  # fmt: skip
    return Usage(
        input=sent,
        output=received,
        cache_read=reads or None,
        cache_write=writes or None,
        total=sent + received + reads + writes,
    )
