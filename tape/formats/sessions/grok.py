"""Sessions of Grok Build, `~/.grok/sessions/CWD/UUID/`, → steps.

A session is a folder. `sessions/sources` gives its files as the lines of one: `summary.json`, what
`compaction_checkpoints` holds, `chat_history.jsonl` (what the model gets, which is rewritten) and
`updates.jsonl` (what people see, which only grows).

    update                                becomes
    ------------------------------------  -----------------------------------------------------
    user_message_chunk                    user, chunks of one prompt together; context where it
                                          is hidden
    agent_thought_chunk,                  an answer; `turn_completed` gives its tokens and cost
    agent_message_chunk, tool_call
    tool_call_update, completed or failed the result, with the text of `chat_history` if it is there
    turn_completed without an answer      usage; a note where the turn was cut off
    auto_compact_completed                anchor
    rewind_marker                         what follows is a branch from before that prompt
    subagent_spawned, subagent_finished   the sub-agent, whose session is another folder
    what is shown only while it runs      nothing
    anything else                         custom `grok.<type>`, whole

Without updates, or where they lack prompts, the lines of `chat_history` are read instead:

    user                                  user; context where nobody typed it; a summary: anchor
    reasoning and assistant               an answer
    tool_result                           the result of a call
    system                                context
    anything else                         custom `grok.<type>`, whole
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ...ids import compute_tape_id
from ...model.entries import (
    NO_JSON,
    AgentEnd,
    AgentStart,
    Anchor,
    Assistant,
    Context,
    Cost,
    Git,
    Note,
    Opaque,
    SideUsage,
    Text,
    Thinking,
    Tokens,
    ToolResult,
    Usage,
    User,
)
from ..parsing import (
    CallBinder,
    build_tool_call,
    to_file_block,
    to_file_block_from_url,
    to_plain_text,
)
from ..wire import encode_json, pack_raw
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

    from ...model.entries import Block, Payload
    from ..wire import Put, WireObject

TOOL = "grok"
FORMAT = "grok-session"
_PROVIDER = "xai"
_TICKS = 10_000_000_000
"""Ticks of a US dollar."""
_CHAT = frozenset(
    {"system", "user", "assistant", "reasoning", "tool_result", "backend_tool_call"},
)
_QUERY = re.compile(r"\s*<user_query>\n?(.*?)\n?</user_query>\s*", re.DOTALL)
_OMITTED = "[Tool result omitted"
_SUMMARY = "compaction_meta"
_ANSWERS = frozenset({"agent_thought_chunk", "agent_message_chunk", "tool_call"})
_SHOWN = frozenset({
    "plan", "available_commands_update", "current_mode_update", "hook_execution",
    "auto_compact_started", "compaction_checkpoint", "subagent_progress",
    "session_info_update", "last_turn_summary", "response_completed", "usage_update",
})  # fmt: skip
"""Updates that are shown while the session runs, or repeated by others."""


def is_session_line(value: WireObject) -> bool:
    """Return whether an object is a line of one of a session's files."""
    if "sessionUpdate" in read_object(read_object(value.get("params")).get("update")):
        return True
    if read_text(value.get("type")) in {"tool_result", "reasoning", "assistant"}:
        return "tool_call_id" in value or "model_id" in value or "encrypted_content" in value
    info = read_object(value.get("info"))
    return "cwd" in info and ("current_model_id" in value or "generated_title" in value)


def read_session(read_lines: Callable[[], Iterable[bytes]], name: str) -> SourceSession:
    """Return the session in a folder; `name` is that of the folder."""
    summary: WireObject = {}
    prompts = updates = answers = 0
    for line in read_lines():
        value = decode_object(line) or {}
        kind = _get_update(value).get("sessionUpdate")
        if "info" in value and not kind:
            summary = value
        updates += kind == "user_message_chunk"
        prompts += value.get("type") == "user" and _is_typed(value)
        answers += value.get("type") == "assistant"
    from_updates = updates + 1 >= prompts and (updates > 0 or answers == 0)
    info = read_object(summary.get("info"))
    branch = read_text(summary.get("head_branch"))
    commit = read_text(summary.get("head_commit")) or None

    def read_steps(put: Put) -> Iterator[SourceStep]:
        session.damaged = 0
        model = read_text(summary.get("current_model_id"))
        reader = _UpdateReader if from_updates else _ChatReader
        return reader(session, put, model).read(read_lines())

    session = SourceSession(
        TOOL,
        FORMAT,
        read_text(info.get("id")) or name,
        read_steps,
        cwd=read_text(info.get("cwd")) or None,
        git=Git(branch or None, commit, dirty=False) if branch or commit else None,
        created=read_time(summary.get("created_at")),
        title=read_text(summary.get("generated_title"))
        or read_text(summary.get("session_summary"))
        or None,
        project=read_text(summary.get("git_root_dir")) or None,
        strip_changes=strip_changes,
    )
    return session


def strip_changes(payload: Payload) -> Payload:
    """Return an entry without what Grok may leave out, or name otherwise, another time."""
    if isinstance(payload, ToolResult):
        return replace(payload, content=(), details=NO_JSON)
    if isinstance(payload, Assistant):
        return replace(payload, provider="", model="")
    return payload


def _get_update(value: WireObject) -> WireObject:
    return read_object(read_object(value.get("params")).get("update"))


def _is_typed(line: WireObject) -> bool:
    """Return whether somebody typed a prompt of `chat_history`."""
    if line.get("synthetic_reason") not in (None, "interjection"):
        return False
    return not _join_words(line.get("content")).lstrip().startswith("<user_info>")


def _join_words(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n\n".join(read_text(read_object(piece).get("text")) for piece in read_list(content))


class _Reader:
    """What both readers do."""

    def __init__(self, session: SourceSession, put: Put, model: str) -> None:
        self.session, self.put, self.model = session, put, model
        self.calls = CallBinder()
        self.tip = ROOT
        self.count = 0

    def place(self, time: int | None, *payloads: Payload) -> SourceStep:
        """Return the next step, after the newest one."""
        self.count += 1
        step = SourceStep(f"#{self.count}", self.tip, time, payloads)
        self.tip = f"#{self.count}"
        return step

    def read_block(self, value: Any) -> Block:
        """Return a block of the Agent Client Protocol, or of `chat_history`."""
        match value:
            case str(text) | {"type": "text", "text": str(text)}:
                return Text(text)
            case {"type": "image", "url": str(url)}:
                block = to_file_block_from_url(url, self.put, {})
            case {"type": "image" | "audio", "data": data, "mimeType": mime}:
                block = to_file_block(data, mime, self.put, {})
            case {"type": "resource", "resource": {"text": str(text)}}:
                return Text(text)
            case _:
                block = None
        return block or Opaque(raw=pack_raw(value))

    def read_call(self, identity: Any, name: Any, arguments: Any) -> Block:
        """Return a call."""
        ours = self.calls.call(identity if isinstance(identity, str) else None, to_plain_text(name))
        return build_tool_call(
            ours, name, arguments, {"id": identity} if isinstance(identity, str) else {}
        )


class _ChatReader(_Reader):
    """Reads `chat_history.jsonl`."""

    def __init__(self, session: SourceSession, put: Put, model: str) -> None:
        super().__init__(session, put, model)
        self.thoughts: list[Thinking] = []
        """Reasoning of the answer that follows."""

    def read(self, lines: Iterable[bytes]) -> Iterator[SourceStep]:
        """Yield a step for each message."""
        for line in lines:
            value = decode_object(line)
            if value is None:
                self.session.damaged += bool(line.strip())
            elif "type" in value and (payloads := [*self._convert(value)]):
                yield self.place(None, *payloads)
        if self.thoughts:
            yield self.place(None, Assistant(tuple(self.thoughts), partial=True))

    def _convert(self, line: WireObject) -> Iterator[Payload]:
        content = line.get("content")
        pieces = content if isinstance(content, list) else [content] if content else []
        kind = read_text(line.get("type"))
        if self.thoughts and kind not in {"reasoning", "assistant", "backend_tool_call"}:
            yield Assistant(tuple(self.thoughts), provider=_PROVIDER, model=self.model)
            self.thoughts = []
        match kind:
            case "system":
                yield Context("system", "system", tuple(map(self.read_block, pieces)))
            case "user" if line.get("synthetic_reason") == _SUMMARY:
                reason = "compacted by Grok Build"
                yield Anchor(kind="compaction", summary=_join_words(content), reason=reason)
            case "user":
                blocks = tuple(map(_unwrap_query, map(self.read_block, pieces))) or (Text(""),)
                yield User(blocks) if _is_typed(line) else Context("user", TOOL, blocks)
            case "reasoning":
                self.thoughts.append(_read_reasoning(line))
            case "assistant":
                yield self._read_answer(line, pieces)
            case "tool_result":
                identity = line.get("tool_call_id")
                call = self.calls.result(identity if isinstance(identity, str) else None)
                parts = [*pieces, *read_list(line.get("images"))] or [""]
                yield ToolResult(call.id, call.name, tuple(map(self.read_block, parts)))
            case _:
                yield self.session.keep_whole(kind or "line", line)

    def _read_answer(self, line: WireObject, pieces: list[Any]) -> Assistant:
        calls = [read_object(call) for call in read_list(line.get("tool_calls"))]
        self.calls.begin_answer(encode_json([pieces, calls]))
        called = [
            self.read_call(call.get("id"), call.get("name") or "", call.get("arguments"))
            for call in calls
        ]
        blocks = (*self.thoughts, *map(self.read_block, pieces), *called)
        self.thoughts = []
        return Assistant(
            blocks,
            provider=_PROVIDER,
            model=read_text(line.get("model_id")) or self.model,
            stop_reason="tool_calls" if calls else "stop",
        )


class _UpdateReader(_Reader):
    """Reads `updates.jsonl`, with what `chat_history.jsonl` says about the same calls."""

    def __init__(self, session: SourceSession, put: Put, model: str) -> None:
        super().__init__(session, put, model)
        self.results: dict[str, str] = {}
        """Id of a call → the text of its result, as the model got it."""
        self.requests: dict[str, WireObject] = {}
        """Id of a call → the call, as the model wrote it."""
        self.summaries: dict[str, str] = {}
        """Id of a checkpoint → the summary of that compaction; "" is that of the newest one."""
        self.checkpoint = ""
        self.prompt: list[Block] = []
        self.prompt_key: tuple[Any, bool] = (None, False)
        """Number of the prompt whose chunks are being read, and whether it is hidden."""
        self.before: list[str] = []
        """Prompt → the step before it."""
        self.thought = self.words = ""
        self.called: list[tuple[str, str, Any]] = []
        self.time: int | None = None
        """When the prompt or the answer that is being read began."""
        self.answered: set[str] = set()
        self.ids = ReadIds(session)

    def read(self, lines: Iterable[bytes]) -> Iterator[SourceStep]:
        """Yield a step for each prompt, answer, result and the like."""
        for line in lines:
            value = decode_object(line)
            if value is None:
                self.session.damaged += bool(line.strip())
                continue
            update = _get_update(value)
            if not update:
                self._note_chat(value)
                continue
            params = read_object(value.get("params"))
            stamp = read_object(params.get("_meta")).get("agentTimestampMs")
            time = read_time(stamp) or read_time(value.get("timestamp"))
            kind = read_text(update.get("sessionUpdate"))
            yield from self._convert(kind, update, time)
        yield from self._end_prompt()
        yield from self._end_answer()

    def _note_chat(self, value: WireObject) -> None:
        """Take note of a line of another file of the session."""
        for item in map(read_object, read_list(value.get("compacted_history"))):
            if item.get("synthetic_reason") == _SUMMARY:
                words = _join_words(item.get("content"))
                self.summaries[read_text(value.get("checkpoint_id"))] = words
        if value.get("synthetic_reason") == _SUMMARY:
            self.summaries[""] = _join_words(value.get("content"))
        elif value.get("type") == "tool_result":
            text = _join_words(value.get("content"))
            if not text.startswith(_OMITTED):
                self.results[read_text(value.get("tool_call_id"))] = text
        for call in map(read_object, read_list(value.get("tool_calls"))):
            self.requests[read_text(call.get("id"))] = call

    def _convert(self, kind: str, update: WireObject, time: int | None) -> Iterator[SourceStep]:
        if kind in _SHOWN:
            self.checkpoint = read_text(update.get("checkpoint_id")) or self.checkpoint
            return
        if kind == "user_message_chunk":
            yield from self._end_answer()
            yield from self._add_to_prompt(update, time)
            return
        yield from self._end_prompt()
        if kind in _ANSWERS:
            self._add_to_answer(kind, update, time)
        elif kind == "turn_completed":
            yield from self._end_turn(update, time)
        elif kind != "tool_call_update" or read_text(update.get("status")) in {
            "completed",
            "failed",
        }:
            yield from self._end_answer()
            yield from self._convert_event(kind, update, time)

    def _add_to_answer(self, kind: str, update: WireObject, time: int | None) -> None:
        if not (self.thought or self.words or self.called):
            self.time = time
        words = read_text(read_object(update.get("content")).get("text"))
        if kind == "agent_thought_chunk":
            self.thought += words
        elif kind == "agent_message_chunk":
            self.words += words
        else:
            self._add_call(update)

    def _convert_event(
        self, kind: str, update: WireObject, time: int | None
    ) -> Iterator[SourceStep]:
        match kind:
            case "tool_call_update":
                yield from self._convert_result(update, time)
            case "auto_compact_completed":
                yield self.place(time, self._read_anchor(update))
            case "rewind_marker":
                self._rewind(read_count(update.get("target_prompt_index")))
            case "subagent_spawned" | "subagent_finished":
                yield self.place(time, self._read_agent(kind, update))
            case _:
                yield self.place(time, self.session.keep_whole(kind or "update", update))

    def _add_to_prompt(self, update: WireObject, time: int | None) -> Iterator[SourceStep]:
        meta = read_object(update.get("_meta"))
        key = meta.get("promptIndex"), meta.get("hideFromScrollback") is True
        if self.prompt and key != self.prompt_key:
            yield from self._end_prompt()
        self.model = read_text(meta.get("modelId")) or self.model
        if not self.prompt:
            self.prompt_key, self.time = key, time
        block = self.read_block(update.get("content"))
        if self.prompt and isinstance(block, Text) and isinstance(self.prompt[-1], Text):
            self.prompt[-1] = Text(self.prompt[-1].text + block.text)
        else:
            self.prompt.append(block)

    def _end_prompt(self) -> Iterator[SourceStep]:
        if not self.prompt:
            return
        blocks, self.prompt = tuple(self.prompt), []
        index, is_hidden = self.prompt_key
        if isinstance(index, int) and 0 <= index <= len(self.before):
            del self.before[index:]
        self.before.append(self.tip)
        yield self.place(self.time, Context("user", TOOL, blocks) if is_hidden else User(blocks))

    def _rewind(self, prompt: int) -> None:
        """Go back to before a prompt."""
        if prompt < len(self.before):
            self.tip = self.before[prompt]
            del self.before[prompt:]

    def _add_call(self, update: WireObject) -> None:
        identity = read_text(update.get("toolCallId"))
        if self.ids.is_repeated(identity):
            return
        request = self.requests.get(identity, {})
        tool = read_object(read_object(update.get("_meta")).get("x.ai/tool"))
        name = read_text(tool.get("name")) or read_text(request.get("name"))
        arguments = update.get("rawInput")
        if arguments is None:
            arguments = request.get("arguments")
        self.called.append((identity, name or read_text(update.get("title")), arguments))

    def _end_answer(self, ended: WireObject | None = None) -> Iterator[SourceStep]:
        """Yield the answer that was being read; `ended` is the end of its turn."""
        if not (self.thought or self.words or self.called):
            return
        self.calls.begin_answer(encode_json([self.words, self.called]))
        blocks: list[Block] = [Thinking(self.thought)] if self.thought else []
        blocks += [Text(self.words)] if self.words else []
        blocks += [self.read_call(*call) for call in self.called]
        has_calls = bool(self.called)
        self.thought, self.words, self.called = "", "", []
        reason = read_text((ended or {}).get("stop_reason"))
        usage, cost = _read_usage(read_object((ended or {}).get("usage")))
        answer = Assistant(
            tuple(blocks),
            provider=_PROVIDER,
            model=self.model,
            stop_reason="tool_calls" if has_calls else "stop",
            raw_stop=reason or None,
            usage=usage,
            cost=cost,
            partial=reason in {"cancelled", "interrupted", "error"},
        )
        yield self.place(self.time, answer)

    def _end_turn(self, update: WireObject, time: int | None) -> Iterator[SourceStep]:
        if self.thought or self.words or self.called:
            yield from self._end_answer(update)
            return
        usage, cost = _read_usage(read_object(update.get("usage")))
        reason = read_text(update.get("stop_reason"))
        payloads: list[Payload] = []
        if usage != Usage():
            payloads.append(SideUsage("turn", _PROVIDER, self.model, usage, cost))
        if reason not in {"", "end_turn"}:
            payloads.append(Note(f"the turn ended: {reason}"))
        if payloads:
            yield self.place(time, *payloads)

    def _convert_result(self, update: WireObject, time: int | None) -> Iterator[SourceStep]:
        identity = read_text(update.get("toolCallId"))
        if identity in self.answered:
            return
        self.answered.add(identity)
        call = self.calls.result(identity or None)
        raw = update.get("rawOutput")
        parts = [read_object(part) for part in read_list(update.get("content"))]
        blocks = [self.read_block(part.get("content")) for part in parts if "content" in part]
        text = self.results.get(identity) or read_text(read_object(raw).get("output_for_prompt"))
        if text:
            blocks = [Text(text), *(block for block in blocks if not isinstance(block, Text))]
        if not blocks:
            blocks = [Text(to_plain_text(raw) if raw is not None else "")]
        others = [part for part in parts if "content" not in part]  # such as diffs
        rest = {**({"rawOutput": raw} if raw else {}), **({"content": others} if others else {})}
        yield self.place(
            time,
            ToolResult(
                call.id,
                call.name or read_text(update.get("title")),
                tuple(blocks),
                update.get("status") == "failed",
                details=pack_raw(rest) if rest else NO_JSON,
            ),
        )

    def _read_anchor(self, update: WireObject) -> Anchor:
        preview = read_text(update.get("summary_preview"))
        summary = self.summaries.get(self.checkpoint) or preview or self.summaries.get("")
        before, after = (read_count(update.get(key)) for key in ("tokens_before", "tokens_after"))
        return Anchor(
            kind="compaction",
            summary=summary or "Grok Build compacted the session; its summary is not there.",
            tokens=Tokens(before, after) if before or after else None,
            reason="compacted by Grok Build",
        )

    def _read_agent(self, kind: str, update: WireObject) -> Payload:
        names = ("child_session_id", "subagent_id")
        agent = next((name for key in names if (name := read_text(update.get(key)))), "")
        if kind == "subagent_spawned":
            role = read_text(update.get("subagent_type")) or "subagent"
            task = read_text(update.get("description"))
            tape = compute_tape_id(TOOL, agent) if agent else None
            return AgentStart(agent, role, task, tape=tape)
        status = read_text(update.get("status")) or "completed"
        return AgentEnd(agent, to_plain_text(update.get("output") or ""), status)


def _unwrap_query(block: Block) -> Block:
    match = _QUERY.search(block.text) if isinstance(block, Text) else None
    return Text(match[1]) if match else block


def _read_reasoning(line: WireObject) -> Thinking:
    pieces = read_list(line.get("content")) or read_list(line.get("summary"))
    text = join_paragraphs(read_text(read_object(piece).get("text")) for piece in pieces)
    fields = {name: line[name] for name in ("id", "encrypted_content") if line.get(name)}
    return Thinking(text, wire=pack_raw(fields) if fields else NO_JSON)


def _read_usage(usage: WireObject) -> tuple[Usage, Cost | None]:
    """Return the tokens of a turn, and what it cost; what was given includes what was cached."""
    sent, received = read_count(usage.get("inputTokens")), read_count(usage.get("outputTokens"))
    cached = read_count(usage.get("cachedReadTokens"))
    ticks = read_count(usage.get("costUsdTicks"))
    tokens = Usage(
        input=max(sent - cached, 0),
        output=received,
        reasoning=read_count(usage.get("reasoningTokens")) or None,
        cache_read=cached or None,
        total=max(sent, cached) + received,
    )
    return tokens, Cost("USD", ticks / _TICKS) if ticks else None
