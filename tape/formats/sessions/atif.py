"""Trajectories in ATIF (Harbor) → steps.

ATIF                                     becomes
---------------------------------------  ------------------------------------------------
step of the user, of the system          user, context; an anchor if `extra` says so
step of the agent                        an answer: thinking, words, calls; then its results
`subagent_trajectory_ref` of a result    agent.start and agent.end around it
`subagent_trajectories`                  a tape each
a copied step, anything else             custom `atif.<what>`, whole
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    User,
    join_texts,
)
from ..parsing import CallBinder, build_tool_call, to_file_block_from_url, to_plain_text
from ..wire import encode_json, pack_raw
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

    from ...model.entries import Block, Content, Payload
    from ..wire import Put, WireObject

TOOL = "atif"
_STOPS = frozenset({"stop", "length", "tool_calls", "content_filter", "error", "aborted"})
_ANCHORS = ("compaction", "handoff", "merge")


def is_session_line(value: WireObject) -> bool:
    """Return whether an object is a trajectory."""
    return read_text(value.get("schema_version")).startswith("ATIF-") and "steps" in value


def read_session(read_lines: Callable[[], Iterable[bytes]], name: str) -> SourceSession:
    """Return the session of a trajectory; `name` is that of the file."""
    document = decode_object(b"\n".join(read_lines())) or {}
    return _build_atif(document, read_text(document.get("session_id")) or name)


def _build_atif(document: WireObject, identity: str) -> SourceSession:
    steps = read_list(document.get("steps"))
    extra = read_object(document.get("extra"))

    def read_steps(put: Put) -> Iterator[SourceStep]:
        return _AtifReader(session, put).read(steps)

    branch = read_text(extra.get("git_branch"))
    times = (read_time(read_object(step).get("timestamp")) for step in steps)
    session = SourceSession(
        TOOL,
        read_text(document.get("schema_version")) or TOOL,
        identity,
        read_steps,
        cwd=read_text(extra.get("cwd")) or None,
        git=Git(branch, None, dirty=False) if branch else None,
        created=next(times, None),
        title=read_text(extra.get("title")) or None,
        repository=read_text(extra.get("repository")) or None,
        person=read_text(extra.get("person")) or None,
        machine=read_text(extra.get("machine")) or None,
    )
    cost = read_object(document.get("final_metrics")).get("total_cost_usd")
    if isinstance(cost, int | float) and not isinstance(cost, bool):
        session.cost = float(cost)
    agents = map(read_object, read_list(document.get("subagent_trajectories")))
    session.children = tuple(
        _build_atif(agent, f"{identity}/{read_text(agent.get('trajectory_id'))}")
        for agent in agents
    )
    return session


class _AtifReader:
    """Reads the steps of one trajectory."""

    def __init__(self, session: SourceSession, put: Put) -> None:
        self.session, self.put = session, put
        self.calls = CallBinder()

    def read(self, steps: list[Any]) -> Iterator[SourceStep]:
        """Yield a step for each of the trajectory."""
        ids = ReadIds(self.session)
        for number, value in enumerate(steps):
            step = read_object(value)
            if ids.is_repeated(step.get("step_id")):
                continue
            time = read_time(step.get("timestamp"))
            name = read_count(step.get("step_id")) or number
            yield SourceStep(f"#{name}", NEWEST, time, tuple(self._convert(step, value)))

    def _convert(self, step: WireObject, value: Any) -> Iterator[Payload]:
        extra = read_object(step.get("extra"))
        content = self._read_content(step.get("message"))
        if step.get("is_copied_context") is True:
            yield self.session.keep_whole("copied_context", value)
            return
        match step.get("source"):
            case "agent":
                yield from self._convert_answer(step, extra, content)
            case "user" | "system" if extra.get("anchor") in _ANCHORS:
                yield Anchor(
                    kind=extra["anchor"], summary=join_texts(content), reason="as the file says"
                )
            case "user" if "origin" not in extra:
                yield User(content or (Text(""),))
            case "user" | "system":
                role = read_text(step["source"])
                yield Context(role, read_text(extra.get("origin")) or role, content)
            case _:
                yield self.session.keep_whole("step", value)

    def _read_content(self, message: Any) -> Content:
        if not isinstance(message, list):
            return (Text(text),) if (text := to_plain_text(message or "")) else ()
        blocks: list[Block] = []
        for part in map(read_object, message):
            path = read_text(read_object(part.get("source")).get("path"))
            if isinstance(part.get("text"), str):
                blocks.append(Text(part["text"]))
            else:
                file = to_file_block_from_url(path.partition("#")[0], self.put, {})
                blocks.append(file or Opaque(raw=pack_raw(part)))
        return tuple(blocks)

    def _convert_answer(
        self, step: WireObject, extra: WireObject, words: Content
    ) -> Iterator[Payload]:
        self.calls.begin_answer(encode_json(step))
        calls = [*map(self._read_call, map(read_object, read_list(step.get("tool_calls"))))]
        thought = read_text(step.get("reasoning_content"))
        metrics = read_object(step.get("metrics"))
        cost, stop = metrics.get("cost_usd"), read_text(extra.get("stop_reason"))
        yield Assistant(
            content=(*([Thinking(thought)] if thought else []), *words, *calls),
            provider=read_text(extra.get("provider")),
            model=read_text(step.get("model_name")),
            stop_reason=stop if stop in _STOPS else "tool_calls" if calls else "stop",
            usage=_read_usage(metrics),
            cost=Cost("USD", float(cost)) if isinstance(cost, int | float) else None,
        )
        results = read_list(read_object(step.get("observation")).get("results"))
        for result in map(read_object, results):
            yield from self._convert_result(result)

    def _read_call(self, call: WireObject) -> ToolCall:
        name, identity = to_plain_text(call.get("function_name") or ""), call.get("tool_call_id")
        ours = self.calls.call(identity if isinstance(identity, str) else None, name)
        return build_tool_call(ours, name, call.get("arguments"), {})

    def _convert_result(self, result: WireObject) -> Iterator[Payload]:
        identity, extra = result.get("source_call_id"), read_object(result.get("extra"))
        call = self.calls.result(identity if isinstance(identity, str) else None)
        content = self._read_content(result.get("content"))
        agents = [
            read_text(read_object(reference).get("trajectory_id"))
            for reference in read_list(result.get("subagent_trajectory_ref"))
        ]
        for agent in filter(None, agents):
            child = f"{self.session.id}/{agent}"
            yield AgentStart(agent, "agent", "", tape=compute_tape_id(TOOL, child))
        is_error = extra.get("is_error") is True
        yield ToolResult(call.id, call.name, content, is_error, details=NO_JSON)
        for agent in filter(None, agents):
            yield AgentEnd(agent, join_texts(content), "failed" if is_error else "completed")


def _read_usage(metrics: WireObject) -> Usage:
    """Return the tokens of an answer: `prompt_tokens` has those that were cached."""
    reads = read_count(metrics.get("cached_tokens"))
    writes = read_count(read_object(metrics.get("extra")).get("cache_write_tokens"))
    sent, received = (
        read_count(metrics.get(f"{kind}_tokens")) for kind in ("prompt", "completion")
    )
    return Usage(
        input=max(sent - reads - writes, 0),
        output=received,
        cache_read=reads or None,
        cache_write=writes or None,
        total=sent + received,
    )
