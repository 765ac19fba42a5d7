from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec import Struct

from gong.agent import events
from gong.tools import tool
from tape.model.entries import Assistant, Context, Error, Repair, ToolResult, ToolStart, join_texts
from tests.gong.agent.conftest import call, seen, types


def results(session):
    found = [e.data for e in session.recorder.path if isinstance(e.data, ToolResult)]
    return [(one.name, join_texts(one.content), one.is_error) for one in found]


async def test_every_step_of_a_tool_round_is_an_entry(stage):
    """J9-1.2"""
    (stage.folder / "a.txt").write_text("hello\n")
    session = await stage.session(
        {"tool_calls": [call("read", path="a.txt")]}, {"text": "It says hello."}
    )
    await seen(session, "read a.txt")
    assert types(session) == [
        "start", "user", "assistant", "approval", "tool.start", "tool.result", "assistant",
    ]  # fmt: skip
    assert results(session) == [("read", "hello\n", False)]


async def test_tools_are_called_one_after_another_as_the_task_needs_them(stage):
    """J9-1.3: the model reads, edits what it read, and reads again."""
    file = stage.folder / "a.txt"
    file.write_text("one\ntwo\n")
    session = await stage.session(
        {"tool_calls": [call("read", path="a.txt")]},
        {"tool_calls": [call("edit", path="a.txt", oldText="two", newText="three")]},
        {"tool_calls": [call("bash", command="cat a.txt")]},
        {"text": "It says three."},
    )
    await seen(session, "make it three")
    assert file.read_text() == "one\nthree\n"
    found = results(session)
    assert [(name, failed) for name, _, failed in found] == [
        ("read", False), ("edit", False), ("bash", False),
    ]  # fmt: skip
    assert (found[0][1], found[2][1]) == ("one\ntwo\n", "one\nthree\n")
    assert join_texts(session.recorder.path[-1].data.content) == "It says three."


class Barriers:
    """An observer of a tape's writer that counts its syncs."""

    def __init__(self):
        self.count = 0

    def on_begin(self, tape): ...

    def find_holder(self, tape, branch): ...

    def on_barrier(self, tape, changes):
        self.count += 1

    def on_end(self, tape, changes): ...

    def on_redact(self, tape): ...


async def test_a_round_that_only_reads_is_synced_once(stage):
    """tape.md §5.4: one barrier covers the answer, the starts and the results of safe calls."""
    (stage.folder / "a.txt").write_text("one\n")
    barriers, counts = Barriers(), []
    session = await stage.session(
        {"tool_calls": [call("read", path="a.txt"), call("ls")]},
        {"tool_calls": [call("read", path="a.txt"), call("bash", command="echo hi")]},
        {"text": "done"},
    )

    def watch(event):
        if isinstance(event, events.RunStart):
            session.recorder.tape.projection = barriers
        elif isinstance(event, events.TurnEnd):
            counts.append(barriers.count)

    session.subscribe(watch)
    await seen(session, "go")
    # The prompt and the results · the answer, before bash begins, the results · the last answer.
    assert counts == [2, 5, 6]


async def test_what_the_path_says_is_what_the_tape_says(stage):
    session = await stage.session(
        {"tool_calls": [call("bash", command="echo hi")]}, {"text": "done"}
    )
    await seen(session, "go")
    path = session.recorder.path
    await session.close()
    with stage.reopened() as recorder:
        assert recorder.path == path


async def test_events_of_a_run_begin_and_end_it_in_order(stage):
    """The run's events come in order, its start first and its end last."""
    session = await stage.session({"tool_calls": [call("ls", path=".")]}, {"text": "empty"})
    kinds = [type(event).__name__ for event in await seen(session, "look")]
    folded = [
        kind for at, kind in enumerate(kinds) if kind != "MessageUpdate" or kinds[at - 1] != kind
    ]
    assert folded == [
        *("SessionStart", "UserInput", "RunStart"),
        *("TurnStart", "AgentState", "MessageStart", "MessageUpdate", "MessageEnd"),
        *("AgentState", "ToolExecutionStart", "ToolExecutionEnd", "TurnEnd"),
        *("TurnStart", "AgentState", "MessageStart", "MessageUpdate", "MessageEnd", "TurnEnd"),
        *("AgentState", "RunEnd"),
    ]


async def test_results_keep_the_order_and_ids_of_their_calls(stage):
    """M008 J9-4.6: each result is bound to its own call's id."""
    for name in "abc":
        (stage.folder / name).write_text(name)
    calls = [call("read", path=name) for name in "abc"]
    session = await stage.session({"tool_calls": calls}, {"text": "abc"})
    await seen(session, "read them")
    answer = next(e.data for e in session.recorder.path if isinstance(e.data, Assistant))
    found = [e.data for e in session.recorder.path if isinstance(e.data, ToolResult)]
    assert [one.call_id for one in found] == [block.id for block in answer.content]
    assert [join_texts(one.content) for one in found] == ["a", "b", "c"]


async def test_an_unknown_tool_and_wrong_arguments_are_results_the_model_sees(stage):
    session = await stage.session(
        {"tool_calls": [call("fly"), call("read", path=["no"])]}, {"text": "sorry"}
    )
    await seen(session, "go")
    (one, two) = results(session)
    assert one[2]
    assert one[1].startswith("Unknown tool: fly")
    assert two[2]
    assert two[1].startswith("Invalid arguments for tool: read")
    assert ToolStart not in {type(entry.data) for entry in session.recorder.path}


async def test_steering_skips_the_rest_of_a_batch_and_comes_before_the_next_call(stage):
    """M027: the rest of the batch is answered as skipped, then the message is injected."""
    calls = [call("bash", command="echo one"), call("bash", command="echo two")]
    session = await stage.session({"tool_calls": calls}, {"text": "ok"})
    session.subscribe(
        lambda event: (
            session.steer("stop that")
            if isinstance(event, events.ToolExecutionStart) and not session.list_queued()
            else None
        )
    )
    await seen(session, "go")
    assert results(session) == [
        ("bash", "one\n", False),
        ("bash", "Skipped due to queued user message", True),
    ]
    assert types(session)[-3:] == ["tool.result", "context", "assistant"]
    [steering] = [e.data for e in session.recorder.path if e.type == "context"]
    assert steering == Context("user", "steering", steering.content)
    assert join_texts(steering.content) == "stop that"


async def test_a_follow_up_runs_after_the_answer_with_the_context_kept(stage):
    """M029 J9-1.5: a follow-up is served when nothing else is left, as a cycle of its own."""
    session = await stage.session({"text": "first"}, {"text": "second"})
    session.follow_up("and then?")
    kinds = [type(event) for event in await seen(session, "go")]
    assert kinds.count(events.TurnStart) == 2
    assert types(session) == ["start", "user", "assistant", "context", "assistant"]
    assert [(one.role, join_texts(one.content)) for one in session.list_messages()] == [
        ("user", "go"),
        ("assistant", "first"),
        ("user", "and then?"),
        ("assistant", "second"),
    ]


async def test_the_limit_of_turns_stops_softly_and_says_so(stage):
    forever = [{"tool_calls": [call("ls", path=".")]}] * 3
    session = await stage.session(*forever, max_rounds=2)
    found = await seen(session, "go")
    assert [event.limit for event in found if isinstance(event, events.TurnLimit)] == ["round"]
    assert found[-1].turns == 2
    assert types(session)[-1] == "tool.result"


async def test_a_failure_after_text_keeps_it_and_leaves_it_out_of_the_next_call(stage):
    failing = {
        "text": "half an answer",
        "error": {"class": "ServerError", "message": "boom", "after": 4},
    }
    session = await stage.session(failing, {"text": "whole"})
    found = await seen(session, "go")
    assert [e.error_class for e in found if isinstance(e, events.RunFailure)] == ["ServerError"]
    said = [e.data for e in session.recorder.path if isinstance(e.data, Assistant)]
    assert [(one.stop_reason, one.partial, join_texts(one.content)) for one in said] == [
        ("error", True, "half")
    ]
    await seen(session, "again")
    assert types(session)[-3:] == ["user", "repair", "assistant"]
    (repair,) = [e.data for e in session.recorder.path if isinstance(e.data, Repair)]
    assert len(repair.dropped) == 1


@pytest.mark.parametrize("kind", ["RateLimited", "ServerError", "NetworkError"])
async def test_a_failure_before_the_first_word_is_tried_again(stage, kind):
    """M208: 429, 5xx and the network."""
    session = await stage.session(
        {"error": {"class": kind, "message": "slow down", "retry_after": 0.01}},
        {"text": "here"},
    )
    found = await seen(session, "go")
    assert any(isinstance(event, events.Warn) and "slow down" in event.message for event in found)
    assert types(session) == ["start", "user", "error", "assistant"]


async def test_an_abort_in_a_tool_kills_it_and_records_what_is_known(stage):
    """M087 J9-1.6 J9-4.2"""
    command = "echo begun; sleep 60"
    session = await stage.session(
        {"tool_calls": [call("bash", command=command)] * 2}, {"text": "ok"}
    )
    session.subscribe(
        lambda event: session.abort() if isinstance(event, events.ToolExecutionUpdate) else None
    )
    async with asyncio.timeout(10):
        found = await seen(session, "go")
    assert found[-1].stop_reason == "aborted"
    assert results(session) == [("bash", "begun\n\nCommand aborted", True)]
    assert types(session)[-1] == "error"
    await seen(session, "go on")
    (repair,) = [e.data for e in session.recorder.path if isinstance(e.data, Repair)]
    assert [one.text for one in repair.injected] == [
        "No result provided: the user stopped it before it ran."
    ]


async def test_an_abort_in_an_answer_keeps_its_partial_text(stage):
    """M005: partial content is kept when it is real."""
    slow = {"text": "one two three", "chunk": 3, "chunk_delay_ms": 30}
    session = await stage.session(slow, {"text": "ok"})
    session.subscribe(
        lambda event: session.abort() if isinstance(event, events.MessageUpdate) else None
    )
    found = await seen(session, "go")
    assert found[-1].stop_reason == "aborted"
    last = [e.data for e in session.recorder.path]
    assert (last[-2].stop_reason, last[-2].partial) == ("aborted", True)
    assert join_texts(last[-2].content).strip()
    assert isinstance(last[-1], Error)


async def test_an_abort_before_the_first_word_leaves_no_answer(stage):
    """M005: an empty partial is dropped."""
    session = await stage.session({"text": "late", "delay_ms": 5000})
    session.subscribe(
        lambda event: session.abort() if isinstance(event, events.TurnStart) else None
    )
    found = await seen(session, "go")
    assert types(session) == ["start", "user", "error"]
    assert found[-1].stop_reason == "aborted"


def remove(path):
    Path(path).unlink(missing_ok=True)


class VanishingFiles:
    """An environment in which a file is gone as soon as it was seen."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)

    async def file_exists(self, path, root=None):
        found = await self._inner.file_exists(path, root)
        remove(path)
        return found


@pytest.mark.parametrize("name", ["read", "edit"])
async def test_a_file_that_vanishes_after_it_was_seen_is_an_error_result(stage, name):
    """M233 J9-5.5: and the run continues."""
    (stage.folder / "a.txt").write_text("one\n")
    args = {"path": "a.txt"} | ({"oldText": "one", "newText": "two"} if name == "edit" else {})
    session = await stage.session({"tool_calls": [call(name, **args)]}, {"text": "It is gone."})
    session.use_environment(VanishingFiles(session.setup.env))
    found = await seen(session, "go")
    said = "ENOENT: no such file or directory: a.txt" if name == "read" else "File not found: a.txt"
    assert results(session) == [(name, said, True)]
    assert (found[-1].stop_reason, found[-1].turns) == ("stop", 2)


class Who(Struct):
    who: str


@pytest.mark.parametrize("replay", ["safe", "unsafe"])
async def test_calls_that_change_nothing_run_side_by_side_and_others_do_not(stage, replay):
    """M019: each safe call waits for all three; results keep the order of the calls."""
    session = await stage.session(
        {"tool_calls": [call("meet", who=name) for name in "abc"]}, {"text": "ok"}
    )
    inside, most, all_here = set(), [], asyncio.Event()

    async def meet(asked, context):
        inside.add(asked.who)
        most.append(len(inside))
        if len(inside) == 3:
            all_here.set()
        if replay == "safe":
            async with asyncio.timeout(60):
                await all_here.wait()
        else:
            await asyncio.sleep(0)
        inside.discard(asked.who)
        return tool.ToolOutcome.from_text(asked.who)

    tools = session.setup.tools
    tools.register(tool.AgentTool("meet", "Meet the others.", Who, meet, replay=replay))
    tools.set_active(("meet",))
    await seen(session, "go")
    assert results(session) == [("meet", name, False) for name in "abc"]
    assert most == ([1, 2, 3] if replay == "safe" else [1, 1, 1])
