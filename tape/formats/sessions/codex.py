"""Rollouts of Codex, `~/.codex/sessions/Y/M/D/rollout-*.jsonl`, → steps.

A rollout is a log in one line: `{timestamp, type, payload}`, or the bare payloads of old versions.

    line                                         becomes
    -------------------------------------------  -------------------------------------------------
    response_item: reasoning, message of the     one answer, up to the next message, output or
    model, calls                                 count of tokens
    response_item: message of the user           user; what Codex wrote in their name is context
    response_item: output of a call              tool.result
    event_msg: user_message, agent_message       nothing where a response_item says the same, else
                                                 user, assistant
    event_msg: token_count                       the usage of the answer before it; without one,
                                                 and if it counts more, a usage entry
    event_msg: thread_rolled_back                the next step follows the one before that prompt
    turn_context                                 model, where it changes; the folder, too
    compacted                                    anchor
    anything else                                custom `codex.<type>`, whole
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ...model.entries import (
    Anchor,
    Assistant,
    Context,
    Git,
    Meta,
    Model,
    SideUsage,
    Text,
    Thinking,
    ToolResult,
    Usage,
    User,
    join_texts,
)
from ...repository import name_repository
from ..openai_responses.parse import OpenAIResponsesReader
from ..parsing import CallBinder, to_file_block_from_url
from ..wire import drop_fields, encode_json
from .steps import (
    COVERED,
    ROOT,
    UNKNOWN_COUNT,
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

TOOL = "codex"
FORMAT = "codex-rollout-jsonl"
_TYPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_BARE = frozenset({"message", "reasoning", "function_call", "function_call_output"})
"""Types of the payloads of old versions, which stand without a wrapping."""
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
_EVENTS = {"user_message": "user", "agent_message": "assistant"}
_WRITTEN_BY_CODEX = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions")
"""How messages begin that Codex gives its model in the user's name."""


def is_session_line(value: WireObject) -> bool:
    """Return whether an object is a line of a rollout: its first one, best of all."""
    if read_text(value.get("type")) in _TYPES:
        return isinstance(value.get("payload"), dict)
    if read_text(value.get("type")) in _BARE:
        return "uuid" not in value and "message" not in value and "parentId" not in value
    return "type" not in value and {"id", "timestamp", "instructions"} <= value.keys()


def read_session(read_lines: Callable[[], Iterable[bytes]], name: str) -> SourceSession:
    """Return the session in a rollout; `name` is the file's name without its ending."""
    facts: WireObject = {}
    texts: Counter[tuple[str, str]] = Counter()
    named: list[str] = []
    for line in read_lines():
        value = _unwrap_line(decode_object(line) or {})
        payload = read_object(value.get("payload"))
        if value.get("type") == "session_meta":
            facts = facts or {"timestamp": value.get("timestamp"), **payload}
            named += [read_text(payload.get("forked_from_id")), read_text(payload.get("id"))]
        elif value.get("type") == "response_item" and payload.get("type", "message") == "message":
            texts[read_text(payload.get("role")), _join_content(payload)] += 1
        elif value.get("type") == "response_item" and payload.get("type") == "reasoning":
            texts["reasoning", ""] += 1

    def read_steps(put: Put) -> Iterator[SourceStep]:
        return _StepReader(session, facts, Counter(texts), put).read(read_lines())

    git = read_object(facts.get("git"))
    branch, commit = read_text(git.get("branch")), read_text(git.get("commit_hash"))
    session = SourceSession(
        TOOL,
        FORMAT,
        read_text(facts.get("id")) or name,
        read_steps,
        cwd=read_text(facts.get("cwd")) or None,
        git=Git(branch or None, commit or None, dirty=False) if branch or commit else None,
        created=read_time(facts.get("timestamp")),
        repository=name_repository(read_text(git.get("repository_url"))),
    )
    session.forked_from = tuple(
        name for name in dict.fromkeys(named) if name not in {"", session.id}
    )
    return session


def _unwrap_line(value: WireObject) -> WireObject:
    """Return a line as new versions write it."""
    if isinstance(value.get("payload"), dict):
        return value
    if "type" not in value and "id" in value and "record_type" not in value:
        return {"timestamp": value.get("timestamp"), "type": "session_meta", "payload": value}
    if read_text(value.get("type")) in _BARE | _OUTPUTS | {"local_shell_call", "custom_tool_call"}:
        return {**_select_time(value), "type": "response_item", "payload": value}
    return value


def _find_identity(value: WireObject, line: bytes) -> Any:
    """Return what a line shares with no other: the id of its item or call, else all of it.

    Two outputs of a call are two lines, unless they are the same. Two lines with one time and the
    same words are one line, written twice.
    """
    item = read_object(_unwrap_line(value).get("payload"))
    call = read_text(item.get("call_id"))
    if read_text(value.get("type")) in {"response_item", *_BARE, *_OUTPUTS} and call:
        output = encode_json(item["output"]) if "output" in item else b""
        return b" ".join((f"{item.get('type')} {call} {item.get('name')}".encode(), output))
    return line if "timestamp" in value else None


def _select_time(value: WireObject) -> WireObject:
    return {"timestamp": value["timestamp"]} if "timestamp" in value else {}


def _convert_shell_call(item: WireObject) -> WireObject:
    """Return a call of the provider's own shell tool as the call of a function."""
    call = item.get("call_id") or item.get("id")
    if item.get("type") != "local_shell_call" or not call:
        return item
    action = read_object(item.get("action"))
    arguments = encode_json(drop_fields(action, "type")).decode()
    rest = drop_fields(item, "action")
    return {
        **rest,
        "type": "function_call",
        "name": "local_shell",
        "arguments": arguments,
        "call_id": call,
    }


def _join_content(payload: WireObject) -> str:
    content = payload.get("content")
    if isinstance(content, str):
        return content
    return "".join(read_text(read_object(piece).get("text")) for piece in read_list(content))


class _StepReader:
    """Reads the steps of one rollout, whose model calls are what waits for its usage."""

    def __init__(
        self, session: SourceSession, facts: WireObject, texts: Counter[tuple[str, str]], put: Put
    ) -> None:
        self.session, self.texts, self.put = session, texts, put
        self.reader = OpenAIResponsesReader(put, CallBinder())
        self.cwd = read_text(facts.get("cwd"))
        self.provider = read_text(facts.get("model_provider")) or "openai"
        self.model = self.effort = ""
        self.items: list[WireObject] = []
        """Items of the answer that is read."""
        self.since: int | None = None
        """Time of the first of them."""
        self.waiting: list[tuple[int | None, list[Payload]]] = []
        """The answer before, and what came since: it waits for its usage."""
        self.total: Any = None
        """The session's tokens, as they were counted last."""
        self.prompts: list[str] = []
        """The step before each prompt, oldest first."""
        self.parent, self.count = ROOT, 0
        self.ids = ReadIds(session)

    def read(self, lines: Iterable[bytes]) -> Iterator[SourceStep]:
        """Yield the steps of a file's lines."""
        for line in lines:
            if not line.strip():
                continue
            value = decode_object(line)
            if value is None:
                self.session.damaged += 1
            elif not self.ids.is_repeated(_find_identity(value, line)):
                yield from self._convert(_unwrap_line(value))
        self._end_answer()
        yield from self._release()

    def _convert(self, line: WireObject) -> Iterator[SourceStep]:
        payload, time = read_object(line.get("payload")), read_time(line.get("timestamp"))
        match line.get("type"):
            case "response_item" if payload:
                yield from self._take_item(payload, time)
            case "event_msg" if payload:
                yield from self._take_event(payload, time, line)
            case "turn_context" if payload:
                yield from self._take_context(payload, time)
            case "session_meta" if self.count == 0 and not self.items:
                yield from self._add(self.session.keep_whole("session_meta", line), time)
            case "compacted":
                self._end_answer()
                yield from self._release()
                summary = read_text(payload.get("message"))
                anchor = Anchor(kind="compaction", summary=summary, reason="compacted by Codex")
                yield self._build_step(time, [anchor])
                if "replacement_history" in payload:
                    yield from self._add(self.session.keep_whole("compacted", line), time)
            case kind:
                name = read_text(kind) or read_text(line.get("record_type")) or "line"
                yield from self._add(self.session.keep_whole(name, line), time)

    def _take_item(self, item: WireObject, time: int | None) -> Iterator[SourceStep]:
        item = _convert_shell_call(item)
        kind = read_text(item.get("type", "message"))
        is_message = kind == "message"
        if kind in _OUTPUTS:
            self._end_answer()
            yield from self._add(*self._read_result(item), time)
        elif kind == "agent_message":
            self._end_answer()
            context = Context("user", "note", (Text(_join_content(item)),))
            yield from self._add(context, self.session.keep_whole("agent_message", item), time)
        elif is_message and item.get("role") != "assistant":
            self._end_answer()
            for payload in self.reader.read_payloads([{**item, "type": "message"}]):
                yield from self._take_words(payload, time)
        else:
            has_said = any(item.get("type", "message") != "reasoning" for item in self.items)
            has_message = any(item.get("type", "message") == "message" for item in self.items)
            if (kind == "reasoning" and has_said) or (is_message and has_message):
                self._end_answer()
            if not self.items:
                yield from self._release()
                self.since = time
            self.items.append({"type": kind, **item})

    def _read_result(self, item: WireObject) -> Iterator[Payload]:
        """Yield a result; older versions write an object: the text, and whether it succeeded."""
        output = read_object(item.get("output"))
        has_failed = output.get("success") is False
        if isinstance(output.get("content"), str | list):
            item = {**item, "output": output["content"]}
        for payload in self.reader.read_payloads([item]):
            yield (
                replace(payload, is_error=True)
                if has_failed and isinstance(payload, ToolResult)
                else payload
            )

    def _take_words(self, payload: Payload, time: int | None) -> Iterator[SourceStep]:
        """Yield a message that is not the model's."""
        if isinstance(payload, User):
            text = join_texts(payload.content).lstrip()
            if text.startswith(_WRITTEN_BY_CODEX):
                payload = Context("user", "note", payload.content)
            else:
                yield from self._release()
                self.prompts.append(self.parent)
        yield from self._add(payload, time)

    def _take_event(
        self, event: WireObject, time: int | None, line: WireObject
    ) -> Iterator[SourceStep]:
        kind = read_text(event.get("type"))
        match kind:
            case "user_message" | "agent_message":
                text, role = read_text(event.get("message")), _EVENTS[kind]
                if self.texts[role, text] > 0:
                    self.texts[role, text] -= 1
                    self.session.left_out[COVERED] += 1
                    return
                self._end_answer()
                if role == "user":
                    urls = read_list(event.get("images"))
                    blocks = [to_file_block_from_url(url, self.put, {}) for url in urls]
                    content = (Text(text), *(block for block in blocks if block is not None))
                    yield from self._take_words(User(content), time)
                else:
                    yield from self._release()
                    self.waiting.append((time, [self._name_model(Assistant((Text(text),)))]))
            case "agent_reasoning" if self.texts["reasoning", ""]:
                self.session.left_out[COVERED] += 1  # it is the summary of a reasoning item
            case "agent_reasoning":
                thought = Assistant((Thinking(read_text(event.get("text"))),))
                self._end_answer()
                yield from self._release()
                self.waiting.append((time, [self._name_model(thought)]))
            case "token_count":
                self._end_answer()
                yield from self._count_tokens(read_object(event.get("info")), time)
            case "thread_rolled_back":
                self._end_answer()
                yield from self._release()
                turns = read_count(event.get("num_turns"))
                self.parent = self.prompts[-turns] if 0 < turns <= len(self.prompts) else ROOT
                self.prompts = self.prompts[: -turns or None]
            case _:
                custom = self.session.keep_whole(kind or "event_msg", line)
                yield from self._add(custom, time)

    def _count_tokens(self, info: WireObject, time: int | None) -> Iterator[SourceStep]:
        last, total = read_object(info.get("last_token_usage")), info.get("total_token_usage")
        if not last or (total is not None and total == self.total):
            self.session.left_out[UNKNOWN_COUNT if info and not last else COVERED] += 1
            return
        self.total = total
        usage = _read_usage(last)
        for _, group in reversed(self.waiting):
            for place, payload in enumerate(group):
                if isinstance(payload, Assistant):
                    group[place] = replace(payload, usage=usage)
                    yield from self._release()
                    return
        yield from self._add(SideUsage("answer", self.provider, self.model, usage), time)

    def _take_context(self, context: WireObject, time: int | None) -> Iterator[SourceStep]:
        model, effort = read_text(context.get("model")), read_text(context.get("effort"))
        cwd = read_text(context.get("cwd"))
        if (model or self.model, effort, cwd) == (self.model, self.effort, self.cwd):
            self.session.left_out[COVERED] += 1
        if model and (model, effort) != (self.model, self.effort):
            self._end_answer()
            self.model, self.effort = model, effort
            yield from self._add(Model(self.provider, model, effort or None), time)
        if cwd and self.cwd and cwd != self.cwd:
            self._end_answer()
            self.cwd = cwd
            yield from self._add(Meta(cwd=cwd), time)

    def _end_answer(self) -> None:
        """Make an answer of the items so far; it waits for its usage."""
        if not self.items:
            return
        items, self.items = self.items, []
        payloads = [
            self._name_model(payload) if isinstance(payload, Assistant) else payload
            for payload in self.reader.read_payloads(items)
        ]
        self.waiting.append((self.since, payloads))

    def _name_model(self, answer: Assistant) -> Assistant:
        return replace(
            answer, provider=self.provider, api=self.reader.api, model=self.model, endpoint=""
        )

    def _add(self, *parts: Any) -> Iterator[SourceStep]:
        """Yield a step, or let it wait behind an answer that waits."""
        *payloads, time = parts
        if self.waiting:
            self.waiting.append((time, payloads))
        else:
            yield self._build_step(time, payloads)

    def _release(self) -> Iterator[SourceStep]:
        """Yield the answer that waited, and what came since."""
        waiting, self.waiting = self.waiting, []
        for time, payloads in waiting:
            yield self._build_step(time, payloads)

    def _build_step(self, time: int | None, payloads: list[Payload]) -> SourceStep:
        self.count += 1
        step = SourceStep(str(self.count), self.parent, time, tuple(payloads))
        self.parent = str(self.count)
        return step


def _read_usage(counted: WireObject) -> Usage:
    """Return the tokens of an answer: what was cached is not counted as input."""
    sent, received = (
        read_count(counted.get("input_tokens")),
        read_count(counted.get("output_tokens")),
    )
    cached = min(read_count(counted.get("cached_input_tokens")), sent)
    return Usage(
        input=sent - cached,
        output=received,
        reasoning=read_count(counted.get("reasoning_output_tokens")) or None,
        cache_read=cached or None,
        total=read_count(counted.get("total_tokens")) or sent + received,
    )
