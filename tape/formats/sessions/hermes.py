"""Sessions of Hermes Agent: `hermes sessions export`, and the rows of its database, → steps.

    {id, model, started_at, cwd, git_branch, title, …, messages: [row, …], agents: [{id, …}]}

Rows are in the order of their ids, which the source writes in `messages` of `state.db`; what is
rewound stays there as a row that is not active. `agents` are the sessions of sub-agents.

    row                               becomes
    --------------------------------  ---------------------------------------------------------
    user                              user; hidden from people: context
    assistant                         an answer: reasoning, words, `tool_calls`
    tool                              the result of a call; denied or failed as an error
    `_compressed_summary`             anchor; what follows its end marker: user
    a copy of an earlier row          nothing; after a summary it says from where on that keeps
    active 0, compacted 0, no copy    (rewound) a branch of its own
    system                            context
    another role                      custom `hermes.<role>`, whole

    rows       1  2  3(compacted)  4(rewound)  5(summary)  6(copy of 3)  7
    steps      1──2──3──5(keeps 3)──7,  3──4
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ...ids import compute_tape_id
from ...model.entries import (
    NO_JSON,
    AgentEnd,
    AgentStart,
    Anchor,
    Assistant,
    Context,
    Git,
    Opaque,
    Text,
    Thinking,
    ToolResult,
    Usage,
    User,
    join_texts,
)
from ..parsing import CallBinder, build_tool_call, to_file_block_from_url, to_plain_text
from ..wire import decode_json, encode_json, pack_raw
from .database import DAMAGED_LINE, SessionDatabase, decode_column, read_session_row, select_objects
from .steps import (
    ROOT,
    SourceSession,
    SourceStep,
    decode_documents,
    decode_object,
    read_count,
    read_list,
    read_object,
    read_text,
    read_time,
    strip_model,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from ...model.entries import Block, Payload
    from ..wire import Put, WireObject

TOOL = "hermes"
FORMAT = "hermes-export"
_STRUCTURED = "\0json:"
"""Begins content that is no string."""
_SUMMARIES = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:")
"""Begin summaries of versions without a column for them."""
_SUMMARY_END = "--- END OF CONTEXT SUMMARY"
_STOPS = {"stop": "stop", "tool_calls": "tool_calls", "length": "length"}
_REASONING = ("reasoning_details", "codex_reasoning_items", "codex_message_items")
_DELEGATE = "delegate_task"


def is_session_line(value: WireObject) -> bool:
    """Return whether an object is an exported session."""
    return isinstance(value.get("messages"), list) and "started_at" in value and "source" in value


def read_session(read_lines: Callable[[], Iterable[bytes]], name: str) -> SourceSession:
    """Return the first session in an export, with the others; `name` is that of the file."""
    documents, damaged = decode_documents([*read_lines()])
    first, *others = documents or [{}]
    session = _build_session(first, name, damaged)
    session.children = tuple(_build_session(document, name, 0) for document in others)
    return session


def _build_session(document: WireObject, name: str, damaged: int) -> SourceSession:
    rows = [read_object(row) for row in read_list(document.get("messages"))]
    branch = read_text(document.get("git_branch"))

    def read_steps(put: Put) -> Iterator[SourceStep]:
        session.damaged = damaged
        return _StepReader(session, put, document).read(rows)

    session = SourceSession(
        TOOL,
        FORMAT,
        read_text(document.get("id")) or name,
        read_steps,
        cwd=read_text(document.get("cwd")) or None,
        git=Git(branch, None, dirty=False) if branch else None,
        created=read_time(document.get("started_at")),
        title=read_text(document.get("title")) or None,
        strip_changes=strip_model,
    )
    main = [number for number, is_main in enumerate(_find_main(rows)) if is_main]
    session.newest = f"#{main[-1]}" if main else None
    return session


def _build_key(row: WireObject) -> bytes:
    """Return what a row has in common with its copies."""
    names = ("role", "content", "timestamp", "tool_call_id", "tool_calls", "tool_name")
    return encode_json([row.get(name) for name in names])


def _find_main(rows: list[WireObject]) -> list[bool]:
    """Return for each row whether it is on the path that the session continues.

    Copies are not: the row that they are copies of is there in their place.
    """
    alive = {
        _build_key(row) for row in rows if _is_set(row, "active", 1) or _is_set(row, "compacted", 0)
    }
    seen: set[bytes] = set()
    main: list[bool] = []
    for row in rows:
        key = _build_key(row)
        main.append(key in alive and key not in seen)
        seen.add(key)
    return main


def _is_set(row: WireObject, name: str, default: int) -> bool:
    return row.get(name, default) not in (0, None, False)


class _StepReader:
    """Reads the rows of one session."""

    def __init__(self, session: SourceSession, put: Put, document: WireObject) -> None:
        self.session, self.put = session, put
        self.model = read_text(document.get("model"))
        self.provider = read_text(document.get("billing_provider"))
        self.calls = CallBinder()
        self.agents = [read_object(agent) for agent in read_list(document.get("agents"))]
        """Sub-agents that were not come across yet."""

    def read(self, rows: list[WireObject]) -> Iterator[SourceStep]:
        """Yield a step for each row that is not a copy."""
        main = _find_main(rows)
        first: dict[bytes, int] = {}
        before = tip = ROOT
        for number, row in enumerate(rows):
            key = _build_key(row)
            if key in first:
                continue
            first[key] = number
            identity = f"#{number}"
            kept_from = self._find_kept(rows, number, first) if self._is_summary(row) else None
            parent = tip if main[number] else before
            payloads = tuple(self._convert(row))
            yield SourceStep(identity, parent, read_time(row.get("timestamp")), payloads, kept_from)
            before = identity
            tip = identity if main[number] else tip

    def _is_summary(self, row: WireObject) -> bool:
        marked = _is_set(row, "_compressed_summary", 0)
        return read_text(row.get("role")) in {"user", "assistant"} and (
            marked or read_text(row.get("content")).startswith(_SUMMARIES)
        )

    def _find_kept(
        self, rows: list[WireObject], summary: int, first: dict[bytes, int]
    ) -> str | None:
        """Return the first row that stays in view; copies of it and the next ones follow."""
        number = first.get(_build_key(rows[summary + 1])) if summary + 1 < len(rows) else None
        return None if number is None else f"#{number}"

    def _convert(self, row: WireObject) -> Iterator[Payload]:
        content = _decode_value(row.get("content"))
        role = read_text(row.get("role"))
        if self._is_summary(row):
            yield from self._convert_summary(content)
            return
        match role:
            case "user":
                blocks = tuple(self._read_blocks(content)) or (Text(""),)
                hidden = row.get("display_kind") == "hidden"
                yield Context("user", TOOL, blocks) if hidden else User(blocks)
            case "assistant":
                yield self._read_answer(row, content)
            case "tool":
                yield from self._convert_result(row, content)
            case "system":
                yield Context("system", "system", tuple(self._read_blocks(content)))
            case _:
                yield self.session.keep_whole(role or "row", row)

    def _convert_summary(self, content: Any) -> Iterator[Payload]:
        text = join_texts(tuple(self._read_blocks(content)))
        summary, marker, rest = text.partition(_SUMMARY_END)
        yield Anchor(kind="compaction", summary=summary.strip(), reason="compacted by Hermes")
        after = rest.partition("---")[2].strip() if marker else ""
        if after:
            yield User((Text(after),))

    def _read_blocks(self, content: Any) -> Iterator[Block]:
        if isinstance(content, str):
            if content:
                yield Text(content)
            return
        pieces = content if isinstance(content, list) else [content]
        for piece in pieces:
            match piece:
                case None:
                    continue
                case str(text) | {"type": "text" | "input_text", "text": str(text)}:
                    yield Text(text)
                case {"type": "image_url" | "input_image", "image_url": given}:
                    url = given.get("url") if isinstance(given, dict) else given
                    yield to_file_block_from_url(url, self.put, {}) or Opaque(raw=pack_raw(piece))
                case _:
                    yield Opaque(raw=pack_raw(piece))

    def _read_answer(self, row: WireObject, content: Any) -> Assistant:
        self.calls.begin_answer(encode_json([row.get("content"), row.get("tool_calls")]))
        blocks: list[Block] = []
        thought = read_text(row.get("reasoning_content")) or read_text(row.get("reasoning"))
        fields = {
            name: value
            for name in _REASONING
            if (value := _decode_value(row.get(name), plain=True))
        }
        if thought or fields:
            blocks.append(Thinking(thought, wire=pack_raw(fields) if fields else NO_JSON))
        blocks += self._read_blocks(content)
        calls = _decode_value(row.get("tool_calls"), plain=True)
        for call in map(read_object, read_list(calls)):
            function, identity = (
                read_object(call.get("function")),
                call.get("id") or call.get("call_id"),
            )
            name = to_plain_text(function.get("name") or "")
            ours = self.calls.call(identity if isinstance(identity, str) else None, name)
            rest = {"id": identity} if isinstance(identity, str) else {}
            blocks.append(build_tool_call(ours, name, function.get("arguments"), rest))
        stop = read_text(row.get("finish_reason"))
        written = read_count(row.get("token_count"))
        return Assistant(
            tuple(blocks),
            provider=self.provider,
            model=self.model,
            stop_reason=_STOPS.get(stop, "tool_calls" if calls else "stop"),
            raw_stop=stop or None,
            usage=Usage(output=written, total=written),
        )

    def _convert_result(self, row: WireObject, content: Any) -> Iterator[Payload]:
        call_id, name = row.get("tool_call_id"), read_text(row.get("tool_name")) or None
        call = self.calls.result(call_id if isinstance(call_id, str) else None, name)
        blocks = tuple(self._read_blocks(content)) or (Text(""),)
        disposition = read_text(row.get("effect_disposition"))
        answer = decode_object(join_texts(blocks).encode()) or {}
        failed = (
            disposition == "denied" or answer.get("success") is False or bool(answer.get("error"))
        )
        details = pack_raw({"effect_disposition": disposition}) if disposition else NO_JSON
        result = ToolResult(call.id, call.name or name or "", blocks, failed, details=details)
        ended = self._take_agents(row) if result.name == _DELEGATE else []
        for agent in ended:
            identity = read_text(agent.get("id"))
            yield AgentStart(identity, _DELEGATE, "", tape=compute_tape_id(TOOL, identity))
        yield result
        for agent in ended:
            status = "failed" if "error" in read_text(agent.get("end_reason")) else "completed"
            yield AgentEnd(read_text(agent.get("id")), "", status)

    def _take_agents(self, row: WireObject) -> list[WireObject]:
        """Return the sub-agents that began before the result of the call that started them."""
        now = read_time(row.get("timestamp")) or 0
        started = [
            agent for agent in self.agents if (read_time(agent.get("started_at")) or 0) <= now
        ]
        self.agents = [agent for agent in self.agents if agent not in started]
        return started


def _decode_value(value: Any, *, plain: bool = False) -> Any:
    """Return a column that may hold JSON as text: marked as such, or `plain`."""
    if not isinstance(value, str) or not (plain or value.startswith(_STRUCTURED)):
        return value
    try:
        return decode_json(value.removeprefix(_STRUCTURED))
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
        return value


def _read_database(database: sqlite3.Connection, session: str, _file: Path) -> list[bytes] | None:
    row = read_session_row(database, "sessions", session)
    if row is None:
        return None
    query = "SELECT * FROM messages WHERE session_id = ? ORDER BY id"
    messages, all_read = select_objects(database, query, session)
    query = "SELECT * FROM sessions WHERE parent_session_id = ? ORDER BY started_at, id"
    children, _ = select_objects(database, query, session)
    agents = [
        {name: child.get(name) for name in ("id", "started_at", "ended_at", "end_reason")}
        for child in children
        if decode_column(child.get("model_config")).get("_delegate_from") == session
    ]
    line = msgspec.json.encode({**row, "messages": messages, "agents": agents})
    return [line, *[DAMAGED_LINE] * (not all_read)]


DATABASE = SessionDatabase(
    "sessions",
    "started_at",
    _read_database,
    "coalesce(s.title, '') || ' ' || (SELECT count(*) || ' ' || max(t.id) || ' ' ||"
    " total(t.active) || ' ' || total(t.compacted) FROM messages t WHERE t.session_id = s.id)",
)
