"""Transcripts of Claude Code, `~/.claude/projects/FOLDER/UUID.jsonl`, → steps.

Every line names its parent. One answer of the model is in several lines with one `message.id`,
perhaps with results of its calls between them, so a line's parent is not always what came before.
Lines are written again when a session is resumed, compacted or forked: the first of a uuid counts.

    line of the file                     step
    -----------------------------------  ---------------------------------------------------------
    a1 (parent u1, message M, a call)    M: all blocks of M, with the usage of its last line
    r1 (parent a1, the call's result)    r1, after M
    a2 (parent r1, message M, a call)    – (part of M)
    r2 (parent a2, the call's result)    r2, after r1: results of one answer are in a row
    u2 (parent r2)                       u2, after r2
    u3 (parent a1, a prompt)             u3, after r2 too, so a branch begins there

Sub-agents (`isSidechain`) are sessions of their own: in a file of theirs, or among the lines of the
session that started them. A compaction is a boundary and the summary after it. Lines that are no
part of the conversation stay whole where they stood.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from ...ids import compute_tape_id
from ...model.entries import (
    NO_JSON,
    AgentEnd,
    AgentStart,
    Anchor,
    Assistant,
    Context,
    Failure,
    Git,
    Meta,
    Text,
    Tokens,
    ToolCall,
    ToolResult,
    Usage,
    User,
    join_texts,
)
from ...store.blobs import HEAD_CHARACTERS
from ..anthropic.parse import AnthropicReader
from ..parsing import CallBinder, to_plain_text
from ..wire import pack_raw
from .steps import (
    NEWEST,
    NOT_WHOLE,
    ROOT,
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

TOOL = "claude"
FORMAT = "claude-code-jsonl"
_TALK = frozenset({"user", "assistant"})
_TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
"""Type of a line that names the session → its field."""
_STOPS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
NO_MODEL = "<synthetic>"
"""The model of an answer that Claude Code wrote itself, as of an error."""
_NOT_TYPED = re.compile(
    r"\s*(?:<(?:command-name|local-command-\w+|bash-(?:input|stdout|stderr))>"
    r"|\[Request interrupted by user)"
)
"""How lines begin that Claude Code writes as the user's: of its own commands, which no model sees
when they are given, of the shell, and of an interruption."""
_COMMAND = re.compile(
    r"\s*<command-message>.*?</command-message>\s*<command-name>(.*?)</command-name>"
    r"(?:\s*<command-args>(.*?)</command-args>)?\s*\Z",
    re.DOTALL,
)
"""A slash command that is a prompt; the next line has its text."""
_SAVED = re.compile(
    r"\s*<persisted-output>\nOutput too large \([^\n]*\)\. Full output saved to: ([^\n]+)\n"
)
"""How the text of a result begins whose whole output is in a file beside the session."""
_MAX_WAITING = 1000
"""Lines that wait for the rest of an answer; after that it is taken as it is."""


def is_session_line(value: WireObject) -> bool:
    """Return whether an object is a line of a transcript: any of its first ones will do."""
    kind = read_text(value.get("type"))
    if kind in _TALK | {"system", "attachment", "progress"}:
        return "uuid" in value and ("sessionId" in value or "parentUuid" in value)
    kinds = {*_TITLES, "file-history-snapshot", "queue-operation", "permission-mode", "last-prompt"}
    return kind in kinds and bool({"sessionId", "leafUuid", "messageId"} & value.keys())


def read_session(read_lines: Callable[[], Iterable[bytes]], name: str) -> SourceSession:
    """Return the session in a transcript; `name` is the file's name without its ending.

    `read_lines` gives its lines from the beginning, each time it is called.
    """
    scan = _Scan()
    ids = ReadIds()
    for line in read_lines():
        value = decode_object(line)
        if value is not None and not ids.is_repeated(value.get("uuid")):
            scan.add(value)
    is_agent = scan.side_lines > 0 and not scan.main_lines
    session = name if _is_uuid(name) or not scan.session else scan.session
    if is_agent:
        session = f"{scan.session or name}/{scan.agent or name.removeprefix('agent-')}"
    children = () if is_agent else tuple(scan.sidechains)
    source = _build_session(read_lines, scan, session, None)
    if not is_agent:
        source.forked_from = tuple(other for other in scan.sessions if other != session)
    source.children = tuple(
        _build_session(read_lines, scan, f"{session}/{child}", child) for child in children
    )
    for child, chain in zip(source.children, children, strict=True):
        child.forked_from = tuple(f"{ancestor}/{chain}" for ancestor in source.forked_from)
    return source


def _build_session(
    read_lines: Callable[[], Iterable[bytes]], scan: _Scan, session: str, chain: str | None
) -> SourceSession:
    def read_steps(put: Put) -> Iterator[SourceStep]:
        return _StepReader(source, scan, chain, put).read(read_lines())

    git = Git(scan.branch, None, dirty=False) if scan.branch else None
    source = SourceSession(TOOL, FORMAT, session, read_steps, scan.cwd, git, scan.created)
    source.strip_changes = strip_full_output
    return source


def strip_full_output(payload: Payload) -> Payload:
    """Return a result without its full output: its file is deleted after some weeks."""
    return replace(payload, full=None) if isinstance(payload, ToolResult) else payload


def _is_uuid(text: str) -> bool:
    parts = text.split("-")
    return [len(part) for part in parts] == [8, 4, 4, 4, 12]


class _AgentCall(NamedTuple):
    """A call that started a sub-agent."""

    kind: str
    task: str


class _Scan:
    """What a first reading of the file finds: where it worked, what belongs together."""

    def __init__(self) -> None:
        self.session = ""
        self.sessions: dict[str, None] = {}
        """Sessions that its lines name as theirs, or as those they were copied from."""
        self.agent = ""
        self.cwd: str | None = None
        self.branch = ""
        self.created: int | None = None
        self.main_lines = self.side_lines = 0
        self.names_parents = False
        """Whether any line names the one it follows."""
        self.parts: Counter[tuple[str, str]] = Counter()
        """(chain, message id) → lines with it that are left to read."""
        self.chains: dict[str, str] = {}
        """Id of a line of a sub-agent → the chain it is in."""
        self.sidechains: dict[str, None] = {}
        """Chains of sub-agents in this file."""
        self.calls: dict[str, _AgentCall] = {}
        """Id of a call of a tool that starts agents → what it asks for."""
        self.agents: dict[str, str] = {}
        """Id of such a call → the agent, as its result or its first prompt says."""

    def add(self, line: WireObject) -> None:
        """Take note of one line."""
        kind = read_text(line.get("type"))
        if kind not in _TALK | {"system"}:
            return
        self.session = self.session or read_text(line.get("sessionId"))
        for named in (line, read_object(line.get("forkedFrom"))):
            if origin := read_text(named.get("sessionId")):
                self.sessions[origin] = None
        self.cwd = self.cwd or read_text(line.get("cwd")) or None
        self.branch = self.branch or read_text(line.get("gitBranch"))
        self.created = self.created or read_time(line.get("timestamp"))
        self.names_parents |= isinstance(line.get("parentUuid"), str)
        message = read_object(line.get("message"))
        chain = self.find_chain(line)
        if line.get("isSidechain") is True:
            self.side_lines += 1
            self.agent = self.agent or read_text(line.get("agentId"))
        else:
            self.main_lines += kind in _TALK
        if kind == "assistant" and (identity := read_text(message.get("id"))):
            self.parts[chain, identity] += 1
        for piece in map(read_object, read_list(message.get("content"))):
            self._note_agent(line, piece)

    def find_chain(self, line: WireObject) -> str:
        """Return the chain of a line: "" for the conversation, else that of a sub-agent."""
        if line.get("isSidechain") is not True:
            return ""
        identity, parent = read_text(line.get("uuid")), read_text(line.get("parentUuid"))
        if identity not in self.chains:
            chain = read_text(line.get("agentId")) or self.chains.get(parent) or identity
            self.chains[identity] = chain
            self.sidechains[chain] = None
            if not read_text(line.get("agentId")):
                self._match_prompt(line, chain)
        return self.chains[identity]

    def _match_prompt(self, line: WireObject, chain: str) -> None:
        """Bind a sub-agent to the call that has its first prompt."""
        content = read_object(line.get("message")).get("content")
        texts = [read_text(read_object(piece).get("text")) for piece in read_list(content)]
        prompt = content if isinstance(content, str) else "".join(texts)
        for call, agent_call in self.calls.items():
            if agent_call.task == prompt and call not in self.agents and prompt:
                self.agents[call] = chain
                return

    def _note_agent(self, line: WireObject, piece: WireObject) -> None:
        arguments = read_object(piece.get("input"))
        match piece.get("type"):
            case "tool_use" if (
                isinstance(arguments.get("prompt"), str) and "subagent_type" in arguments
            ):
                agent_call = _AgentCall(read_text(arguments["subagent_type"]), arguments["prompt"])
                self.calls[read_text(piece.get("id"))] = agent_call
            case "tool_result":
                agent = read_text(read_object(line.get("toolUseResult")).get("agentId"))
                if agent:
                    self.agents[read_text(piece.get("tool_use_id"))] = agent


class _Answer:
    """The lines of one answer so far."""

    def __init__(self, first: WireObject, chain: str) -> None:
        self.lines = [first]
        self.key = (chain, read_text(read_object(first.get("message")).get("id")))


class _StepReader:
    """Reads the steps of the conversation, or of one sub-agent in the same file."""

    def __init__(self, session: SourceSession, scan: _Scan, chain: str | None, put: Put) -> None:
        self.session, self.scan, self.chain, self.put = session, scan, chain, put
        self.reader = AnthropicReader(put, CallBinder())
        self.left = {key: count for key, count in scan.parts.items() if count > 1}
        self.aliases: dict[str, str] = {}
        """Id of a line → the step it became, or that of what it hangs on."""
        self.ends: dict[str, str] = {}
        """Step of an answer → the newest result of its calls."""
        self.answers: dict[str, str] = {}
        """Step of a result → the step of its answer."""
        self.cwd = scan.cwd
        self.count = 0
        self.tokens = 0
        """Tokens before the compaction whose summary comes next."""

    def read(self, lines: Iterable[bytes]) -> Iterator[SourceStep]:
        """Yield the steps of a file's lines."""
        for line in self._join_answers(lines):
            yield from (
                self._convert_answer(line) if isinstance(line, _Answer) else self._convert(line)
            )

    def _join_answers(self, lines: Iterable[bytes]) -> Iterator[_Answer | WireObject]:
        """Yield lines, and answers where they begin: what follows one waits until it is whole."""
        queue: deque[_Answer | WireObject] = deque()
        open_answers: dict[tuple[str, str], _Answer] = {}
        for line in self._read_lines(lines):
            answer = _Answer(line, self.scan.find_chain(line))
            if line.get("type") != "assistant":
                queue.append(line)
            elif answer.key in open_answers:
                open_answers[answer.key].lines.append(line)
            else:
                open_answers[answer.key] = answer
                queue.append(answer)
            left = self.left.get(answer.key, 1) - 1
            if left > 0:
                self.left[answer.key] = left
            else:
                self.left.pop(answer.key, None)
                open_answers.pop(answer.key, None)
            while queue and (
                not isinstance(first := queue[0], _Answer)
                or first.key not in open_answers
                or len(queue) > _MAX_WAITING
            ):
                queue.popleft()
                if isinstance(first, _Answer):
                    open_answers.pop(first.key, None)
                yield first
        yield from queue

    def _read_lines(self, lines: Iterable[bytes]) -> Iterator[WireObject]:
        """Yield the lines of the chain that is read; count those repeated, or not readable."""
        ids = ReadIds(self.session)
        for line in lines:
            value = decode_object(line)
            if value is not None and self._is_mine(value):
                if not ids.is_repeated(value.get("uuid")):
                    yield value
            elif value is None and line.strip():
                self.session.damaged += self.chain is None

    def _is_mine(self, line: WireObject) -> bool:
        is_side = line.get("isSidechain") is True
        if self.chain is not None:
            return is_side and self.scan.find_chain(line) == self.chain
        return not is_side or not self.scan.main_lines

    def _find_parent(self, line: WireObject) -> str:
        """Return the step that a line follows: after all results, where it follows an answer."""
        parent = line.get("parentUuid") or line.get("logicalParentUuid")
        if not isinstance(parent, str):
            return NEWEST if self.count and not self._may_begin(line) else ROOT
        step = self.aliases.get(parent)
        if step is None:  # its line is damaged, or in another file
            return NEWEST if self.count else ROOT
        answer = self.answers.get(step, step)
        return self.ends.get(answer, answer)

    def _may_begin(self, line: WireObject) -> bool:
        """Return whether a line without a parent begins the conversation once more.

        Answers and results do not; no line does in a file whose lines name no parents.
        """
        content = read_object(line.get("message")).get("content")
        kinds = {read_object(piece).get("type") for piece in read_list(content)}
        is_prompt = line.get("type") != "assistant" and "tool_result" not in kinds
        return is_prompt and self.scan.names_parents

    def _begin_step(self, line: WireObject) -> tuple[str, str]:
        """Return a step's id, which no other step has, and its parent."""
        parent = self._find_parent(line)
        self.count += 1
        identity = read_text(line.get("uuid"))
        if not identity:
            identity = f"#{self.count}"
        self.aliases[identity] = identity
        return identity, parent

    def _convert(self, line: WireObject) -> Iterator[SourceStep]:
        kind = read_text(line.get("type"))
        time = read_time(line.get("timestamp"))
        is_said = kind == "user" and isinstance(line.get("message"), dict)
        if kind == "system" and line.get("subtype") == "compact_boundary":
            self.tokens = read_count(read_object(line.get("compactMetadata")).get("preTokens"))
        elif kind in _TITLES:
            self.session.title = read_text(line.get(_TITLES[kind])) or self.session.title
        if not is_said and not (kind == "system" and self.tokens):
            if isinstance(line.get("uuid"), str) and (parent := self._find_parent(line)) != NEWEST:
                self.aliases.setdefault(line["uuid"], parent)
            custom = self.session.keep_whole(kind, line)
            yield SourceStep(None, NEWEST, time, (custom,))
            return
        identity, parent = self._begin_step(line)
        if not is_said:
            custom = self.session.keep_whole("compact_boundary", line)
            yield SourceStep(identity, parent, time, (custom,))
            return
        yield from self._note_folder(line, parent, time)
        payloads = tuple(self._convert_user(line))
        if any(isinstance(payload, ToolResult) for payload in payloads):
            answer = self.answers.get(parent, parent)
            self.answers[identity], self.ends[answer] = answer, identity
        yield SourceStep(identity, parent, time, payloads)

    def _note_folder(self, line: WireObject, parent: str, time: int | None) -> Iterator[SourceStep]:
        """Yield a remark if the session works in another folder from this line on."""
        cwd = read_text(line.get("cwd"))
        if cwd and self.cwd and cwd != self.cwd and parent != ROOT:
            self.cwd = cwd
            yield SourceStep(None, NEWEST, time, (Meta(cwd=cwd),))

    def _convert_user(self, line: WireObject) -> Iterator[Payload]:
        message = line["message"]
        pieces = [read_object(piece) for piece in read_list(message.get("content"))]
        payloads = [*self.reader.read_element({**message, "role": "user"})]
        if line.get("isCompactSummary") is True:
            texts = [
                join_texts(payload.content) for payload in payloads if isinstance(payload, User)
            ]
            tokens, self.tokens = self.tokens, 0
            yield Anchor(
                kind="compaction",
                summary="".join(texts),
                tokens=Tokens(tokens, 0) if tokens else None,
                reason="compacted by Claude Code",
            )
            return
        results = iter(piece for piece in pieces if piece.get("type") == "tool_result")
        details = line.get("toolUseResult")
        for payload in payloads:
            if isinstance(payload, ToolResult):
                call = read_text(next(results, {}).get("tool_use_id"))
                whole = replace(payload, details=NO_JSON if details is None else pack_raw(details))
                whole = self._add_full_output(whole, read_object(details))
                yield from self._wrap_result(whole, call, read_object(details))
                details = None
            elif isinstance(payload, User) and (
                line.get("isMeta") is True or _NOT_TYPED.match(join_texts(payload.content))
            ):
                yield Context("user", "note", payload.content)
            elif isinstance(payload, User) and (
                typed := _read_command(join_texts(payload.content))
            ):
                yield self.session.keep_whole("command", line)
                yield User((Text(typed),))
            else:
                yield payload

    def _add_full_output(self, result: ToolResult, details: WireObject) -> ToolResult:
        """Return a result with its whole output, where that is in a file beside the session."""
        saved = _SAVED.match(join_texts(result.content))
        path = read_text(details.get("persistedOutputPath")) or (saved[1] if saved else "")
        if not path:
            return result
        data = self.session.read_beside(path)
        if data is None:
            self.session.left_out[NOT_WHOLE] += 1
            return result
        head = data[: 4 * HEAD_CHARACTERS].decode(errors="replace")[:HEAD_CHARACTERS]
        return replace(result, full=replace(self.put(data), head=head))

    def _wrap_result(self, result: ToolResult, call: str, details: WireObject) -> Iterator[Payload]:
        """Yield a result, between the beginning and the end of the sub-agent that gave it."""
        agent = self.scan.agents.get(call)
        if agent is None:
            yield result
            return
        agent_call = self.scan.calls.get(call, _AgentCall("", ""))
        tape = compute_tape_id(TOOL, f"{self.session.id}/{agent}")
        yield AgentStart(agent, agent_call.kind or "general-purpose", agent_call.task, tape=tape)
        yield result
        status = read_text(details.get("status")) or ("failed" if result.is_error else "completed")
        usage = _read_usage(read_object(details.get("usage")))
        yield AgentEnd(agent, join_texts(result.content), status, usage)

    def _convert_answer(self, answer: _Answer) -> Iterator[SourceStep]:
        first, last = answer.lines[0], answer.lines[-1]
        identity, parent = self._begin_step(first)
        for line in answer.lines:
            self.aliases[read_text(line.get("uuid"))] = identity
        yield from self._note_folder(first, parent, read_time(first.get("timestamp")))
        messages = [read_object(line.get("message")) for line in answer.lines]
        content = [piece for message in messages for piece in _list_pieces(message)]
        payloads = self.reader.read_element({"role": "assistant", "content": content})
        converted = tuple(
            self._complete(payload, messages, last) if isinstance(payload, Assistant) else payload
            for payload in payloads
        )
        yield SourceStep(identity, parent, read_time(first.get("timestamp")), converted)

    def _complete(
        self, answer: Assistant, messages: list[WireObject], last: WireObject
    ) -> Assistant:
        """Return an answer with what its lines say beside its content."""
        stops = [stop for message in messages if (stop := message.get("stop_reason"))]
        stop, model = to_plain_text(stops[-1]) if stops else "", messages[-1].get("model")
        error = None
        if last.get("isApiErrorMessage") is True:
            error = Failure("ProviderError", join_texts(answer.content) or "the call failed")
        name = read_text(messages[0].get("id"))
        is_calling = any(isinstance(block, ToolCall) for block in answer.content)
        usual = "tool_calls" if is_calling else "stop"
        return replace(
            answer,
            provider="" if model == NO_MODEL else "anthropic",
            model=read_text(model),
            stop_reason="error" if error else _STOPS.get(stop, usual),
            raw_stop=stop or None,
            usage=_read_usage(read_object(messages[-1].get("usage"))),
            response_id=name or None,
            error=error,
        )


def _list_pieces(message: WireObject) -> list[Any]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return read_list(content)


def _read_usage(usage: WireObject) -> Usage:
    """Return the tokens of an answer: what was cached is not counted as input."""
    sent, received = read_count(usage.get("input_tokens")), read_count(usage.get("output_tokens"))
    reads = read_count(usage.get("cache_read_input_tokens"))
    writes = read_count(usage.get("cache_creation_input_tokens"))
    hour = read_object(usage.get("cache_creation")).get("ephemeral_1h_input_tokens")
    searches = read_count(read_object(usage.get("server_tool_use")).get("web_search_requests"))
    return Usage(
        input=sent,
        output=received,
        cache_read=reads or None,
        cache_write=writes or None,
        total=sent + received + reads + writes,
        cache_write_hour=read_count(hour) or None,
        server_tools={"web_search": searches} if searches else None,
    )


def _read_command(text: str) -> str:
    """Return a slash command as it was typed; "" for any other text."""
    match = _COMMAND.match(text)
    return (
        " ".join(filter(None, (part and part.strip() for part in match.groups()))) if match else ""
    )
