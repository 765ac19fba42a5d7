"""Sub-agents of a session: started, told more, waited for and ended; each run is on the tape."""

from __future__ import annotations

import asyncio
import json

import pytest

from gong.repl.commands.table import answer_command
from gong.tools.agent_runs import AgentOrder
from tape.model.entries import AgentEnd, AgentStart, Context, ToolResult, User, join_texts
from tests.gong.agent.conftest import call, seen, types
from tests.gong.subagents.conftest import AFTER_AGENT, branch_types, marks, results

WAIT = {"tool_calls": [call("bash", command="sleep 60")]}
DONE = {"text": "done"}


async def test_a_task_has_a_history_of_its_own_and_its_result_is_a_tool_result(stage):
    """M192: own history, shared environment; the result as the result of the call."""
    write = {"tool_calls": [call("write", path="hello.txt", content="hi\n")]}
    session = await stage.run(stage.task(write, {"text": "written"}, description="say hello"))
    assert results(session) == ["written"]
    assert (stage.folder / "hello.txt").read_text() == "hi\n"
    assert types(session)[-5:] == [
        *("tool.start", "agent.start", "agent.end", "tool.result", "assistant")
    ]
    assert branch_types(session, "agent-1") == [
        *("start", "branch", "user", "assistant", "approval", "checkpoint", "tool.start"),
        *("tool.result", "assistant"),
    ]
    [start] = [one.data for one in session.recorder.path if isinstance(one.data, AgentStart)]
    assert start == AgentStart("agent-1", "general-purpose", "do it", "agent-1")
    [end] = [one.data for one in session.recorder.path if isinstance(one.data, AgentEnd)]
    assert (end.agent, end.result, end.status) == ("agent-1", "written", "completed")
    assert end.usage.total > 0


async def test_the_spawning_tools(stage):
    """M191: an id; more input; output, success and turns; close; the status."""
    session = await stage.run(
        stage.spawn({"text": "one"}, {"text": "two"}),
        call("wait", agent_id="agent-1"),
        call("send_input", agent_id="agent-1", message="and?"),
        call("wait", agent_id="agent-1"),
        call("close_agent", agent_id="agent-1"),
        call("send_input", agent_id="agent-1", message="once more"),
    )
    *shown, refused = results(session)
    assert [json.loads(one) for one in shown] == [
        {"agent_id": "agent-1", "status": "running"},
        {"output": "one", "success": True, "turns_used": 1, "status": "completed"},
        {"agent_id": "agent-1", "status": "running"},
        {"output": "two", "success": True, "turns_used": 1, "status": "completed"},
        {"agent_id": "agent-1", "status": "completed"},
    ]
    assert refused == "Tool error (send_input): agent-1 was closed: start another one"
    assert marks(session) == [("agent-1", "start"), ("agent-1", "completed")] * 2
    prompts = [
        join_texts(entry.data.content)
        for entry in session.recorder.tape.entries(session.recorder.tape.head("agent-1"))
        if isinstance(entry.data, User)
    ]
    assert prompts == ["do it", "and?"]


async def test_a_task_in_the_background_is_read_by_its_id(stage):
    """M193: Task with run_in_background, TaskOutput with block and timeout."""
    slow = {"text": "late", "delay_ms": 300}
    session = await stage.run(
        stage.task(slow, run_in_background=True),
        call("TaskOutput", task_id="agent-1", block=False),
        call("TaskOutput", task_id="agent-1", timeout=60_000),
    )
    started, running, ended = results(session)
    assert started == "Started in the background as agent-1. You get a message when it ends."
    assert "agent-1 running" in running
    assert ended == "late\n\n[agent-1 completed, 1 model call]"
    assert "context" not in types(session), "who has read the end is not told of it again"


async def test_a_task_is_recorded_as_programs_read_it(stage):
    """M224: type, output, error, the times it was created and completed."""
    session = await stage.session(
        {"tool_calls": [stage.task({"text": "fine"})]},
        {"tool_calls": [stage.task({"error": {"class": "InvalidRequest", "message": "broken"}})]},
        DONE,
    )
    seen_events = await seen(session, "go")
    ended = [one for one in seen_events if one.kind == "tool_end"]
    good, bad = (json.loads(bytes(one.details)) for one in ended)
    assert [one.status for one in ended] == ["completed", "error"]
    assert (good["type"], good["status"], good["output"]) == ("agent", "completed", "fine")
    assert good["created_at"] <= good["completed_at"]
    assert (bad["status"], bad["error"]) == ("failed", "broken")


async def test_the_end_of_a_run_in_the_background_is_reported_at_the_next_border(stage):
    session = await stage.run(
        stage.task({"text": "found it"}, run_in_background=True, description="look around"),
        AFTER_AGENT,
    )
    [told] = [one.data for one in session.recorder.path if isinstance(one.data, Context)]
    assert (told.role, told.origin) == ("user", "note")
    assert join_texts(told.content) == (
        "The sub-agent agent-1 (general-purpose: look around) has ended: completed.\nfound it"
    )


async def test_tasks_of_one_answer_run_side_by_side(stage):
    """Each waits for a file that the other one makes."""
    meet = "touch {0}; for i in $(seq 300); do [ -e {1} ] && exit; sleep 0.1; done; exit 1"
    one, two = (
        [{"tool_calls": [call("bash", command=meet.format(*names))]}, {"text": names[0]}]
        for names in (("a", "b"), ("b", "a"))
    )
    session = await stage.run((stage.task(*one), stage.task(*two)))
    assert results(session) == ["a", "b"]
    assert [entry for entry in marks(session) if entry[1] == "start"] == [
        ("agent-1", "start"),
        ("agent-2", "start"),
    ]
    assert marks(session)[:2] == [("agent-1", "start"), ("agent-2", "start")]


async def test_sub_agents_start_no_others(stage):
    """M011, M192: max_subagent_depth is 1."""
    inner = stage.task({"text": "deep"})
    session = await stage.run(stage.task({"tool_calls": [inner]}, {"text": "shallow"}))
    assert session.setup.config.max_subagent_depth == 1
    assert results(session) == ["shallow"]
    tape = session.recorder.tape
    [refused] = [
        join_texts(entry.data.content)
        for entry in tape.entries(tape.head("agent-1"))
        if entry.type == "tool.result"
    ]
    assert refused.startswith("Unknown tool: Task")


async def test_a_deeper_limit_lets_sub_agents_start_others(stage):
    inner = stage.task({"text": "deep"})
    answers = ({"tool_calls": [inner]}, {"text": "shallow"})
    session = await stage.run(stage.task(*answers), max_subagent_depth=2)
    assert results(session) == ["shallow"]
    branches = session.recorder.tape.refs().branches
    assert [*branches] == ["main", "agent-1", "agent-1-1"]
    assert session.recorder.tape.refs().current == "main"


async def test_no_sub_agents_at_all(stage):
    session = await stage.run(stage.task({"text": "x"}), max_subagent_depth=0)
    [refused] = results(session)
    assert "sub-agents may be 0 deep" in refused
    assert marks(session) == []


async def test_a_sub_agent_has_a_limit_of_turns(stage):
    """C13: 50 model calls unless it is said; 0 is no limit."""
    look = {"tool_calls": [call("ls")]}
    again = [{"tool_calls": [call("ls", path=".", limit=n)]} for n in range(1, 60)]
    session = await stage.run(
        stage.spawn(look, {"tool_calls": [call("ls", limit=9)]}, DONE, max_turns=2),
        call("wait", agent_id="agent-1"),
        stage.task(*again, DONE),
        stage.spawn(*again, DONE, max_turns=0),
        call("wait", agent_id="agent-3"),
        loop_detection=False,
    )
    _, few, fifty, _, all_ = results(session)
    assert json.loads(few)["turns_used"] == 2
    assert json.loads(few)["success"] is False
    assert "agent-2 failed" in fifty
    assert "total_turns: 50" in fifty
    assert json.loads(all_) == {
        "output": "done",
        "success": True,
        "turns_used": 60,
        "status": "completed",
    }


async def test_the_limit_of_background_runs_is_kept(stage):
    spawns = [stage.spawn(WAIT) for _ in range(3)]
    session = await stage.run(*spawns, call("close_agent", agent_id="agent-1"), max_subagents=2)
    assert results(session)[2] == (
        "Tool error (spawn_agent): 2 sub-agents run already (agent-1, agent-2), which is the"
        " maximum: wait for one, or end one"
    )
    assert json.loads(results(session)[3]) == {"agent_id": "agent-1", "status": "cancelled"}


async def test_a_close_in_the_same_answer_waits_for_the_calls_before_it(stage):
    """M019, C12: a close does not run beside the wait before it."""
    slow = stage.spawn({"text": "the result", "delay_ms": 300})
    session = await stage.run(
        slow, [call("wait", agent_id="agent-1"), call("close_agent", agent_id="agent-1")]
    )
    waited, closed = map(json.loads, results(session)[1:])
    assert (waited["output"], waited["success"]) == ("the result", True)
    assert closed == {"agent_id": "agent-1", "status": "completed"}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"text": "half", "stop_reason": "length"}, "half\n\nthe answer was cut at the limit"),
        ({}, "the answer is empty"),
        ({"thinking": "hm"}, "the answer has no text: the model only thought"),
        ({"text": "no", "stop_reason": "content_filter"}, "no\n\nthe answer ended early"),
    ],
    ids=["cut", "empty", "thinking", "filter"],
)
async def test_an_answer_that_is_not_whole_fails_m237(stage, answer, said):
    """M237: the model that asked is told, with the words that came."""
    session = await stage.run(stage.task(answer, answer))
    (text,) = results(session)
    assert text.startswith(f"agent-1 failed: {said}")
    spawn = stage.spawn(answer, answer)
    session = await stage.run(spawn, call("wait", agent_id="agent-1"))
    waited = json.loads(results(session)[1])
    assert waited["output"].startswith(said)
    assert (waited["success"], waited["status"]) == (False, "failed")


@pytest.mark.parametrize("how", ["wait", "Task"])
async def test_a_reading_call_waits_for_the_subagent_before_it(stage, how):
    """M019, C12: it finds what the sub-agent wrote."""
    write = {"tool_calls": [call("write", path="made", content="new")], "delay_ms": 100}
    child = [write, {"text": "done"}]
    read = call("read", path="made")
    if how == "wait":
        session = await stage.run(stage.spawn(*child), [call("wait", agent_id="agent-1"), read])
    else:
        session = await stage.run([stage.task(*child), read])
    assert results(session)[-1] == "new"


async def test_more_input_in_the_same_answer_comes_before_the_wait_after_it(stage):
    one = stage.spawn({"text": "one", "delay_ms": 100}, {"text": "two"})
    more = [
        call("wait", agent_id="agent-1"),
        call("send_input", agent_id="agent-1", message="and?"),
        call("wait", agent_id="agent-1"),
    ]
    session = await stage.run(one, more)
    first, _, second = map(json.loads, results(session)[1:])
    assert (first["output"], second["output"]) == ("one", "two")


async def test_tasks_that_are_waited_for_take_turns(stage):
    session = await stage.run(
        [stage.task({"text": str(n), "delay_ms": 50}) for n in range(5)], max_subagents=2
    )
    assert results(session) == ["0", "1", "2", "3", "4"]


async def test_all_of_a_long_result_is_reached_from_the_end_event(stage):
    """M221: also where the model gets a part of it."""
    said = "".join(f"finding {n}\n" for n in range(9_000))
    session = await stage.session({"tool_calls": [stage.task({"text": said})]}, DONE)
    [end] = [event for event in await seen(session, "go") if event.kind == "tool_end"]
    assert session.read_output(end) == said
    assert len(results(session)[0]) < len(said)


LONG = "".join(f"finding {n:05}\n" for n in range(3_000))
SHORT = f"{LONG[:10_000]}\n\n[WARNING: Tool output was truncated. 22000 characters were removed"


@pytest.mark.parametrize("way", ["Task", "TaskOutput", "wait", "told"])
async def test_a_parent_sees_both_ends_of_20000_characters(stage, way):
    """M113: by whichever tool it asks, or is told of the end."""
    if way == "Task":
        calls = [stage.task({"text": LONG})]
    else:
        ask = {
            "TaskOutput": call("TaskOutput", task_id="agent-1"),
            "wait": call("wait", agent_id="agent-1"),
            "told": AFTER_AGENT,
        }
        calls = [stage.spawn({"text": LONG}), ask[way]]
    session = await stage.run(*calls)
    [shown] = [
        text
        for one in (entry.data for entry in session.recorder.path)
        if isinstance(one, ToolResult | Context)
        and "finding" in (text := join_texts(one.content))
        and (way == "told") == isinstance(one, Context)
    ]
    said = json.loads(shown)["output"] if way == "wait" else shown
    begun = said[said.index("finding") :]
    assert begun.startswith(SHORT)
    assert LONG[-10_000:] in said
    assert len(begun) < 20_300


async def test_the_limit_of_a_result_can_be_set(stage):
    """M113: also while the session runs."""
    task = stage.task({"text": LONG})
    session = await stage.session(
        {"tool_calls": [task]},
        {"tool_calls": [task]},
        DONE,
        tool_output_limits={"spawn_agent": 2_000},
    )
    session.subscribe(
        lambda event: (
            event.kind == "tool_end" and session.configure(tool_output_limits={"spawn_agent": 100})
        )
    )
    await seen(session, "go")
    lengths = [len(text) for text in results(session)]
    assert [2_000 < lengths[0] < 2_300, 100 < lengths[1] < 400] == [True, True]


async def test_the_stop_of_the_parent_stops_its_sub_agents(stage):
    speaks = {"tool_calls": [call("bash", command="echo begun; sleep 60")]}
    answers = [{"tool_calls": [stage.spawn(WAIT)]}, {"tool_calls": [stage.task(speaks)]}]
    session = await stage.session(*answers, DONE)

    def stop(event):
        if event.kind == "tool_update" and event.agent == "agent-2":
            session.abort()

    session.subscribe(stop, agents=True)
    await seen(session, "go")
    await asyncio.wait({one.task for one in session.subagents.values()})
    assert sorted(marks(session)) == [
        ("agent-1", "cancelled"),
        ("agent-1", "start"),
        ("agent-2", "cancelled"),
        ("agent-2", "start"),
    ]
    assert results(session)[-1] == "It was stopped, and its sub-agent with it."
    assert branch_types(session, "agent-2")[-2:] == ["tool.result", "error"]


async def test_the_close_of_the_parent_ends_its_sub_agents(stage):
    session = await stage.run(stage.spawn(WAIT))
    assert marks(session) == [("agent-1", "start")]
    kinds = []
    session.subscribe(lambda event: kinds.append(event.kind))
    await session.close()
    assert kinds == ["subagent_end", "session_end"]
    with stage.reopened("main") as again:
        ends = [one.data.status for one in again.path if isinstance(one.data, AgentEnd)]
    assert ends == ["cancelled"]


async def test_events_of_a_sub_agent_carry_its_id(stage):
    """M039: they are flagged, and only those who ask for them get them."""
    session = await stage.session({"tool_calls": [stage.task({"text": "hi"})]}, DONE)
    mine, all_ = [], []
    session.subscribe(mine.append)
    session.subscribe(all_.append, agents=True)
    await seen(session, "go")
    assert [one.kind for one in mine if one.agent] == ["subagent_start", "subagent_end"]
    assert [one.kind for one in all_ if one.agent == "agent-1"] == [
        *("subagent_start", "session_start", "user_input", "agent_start", "turn_start"),
        *("agent_state", "message_start", "message_update", "message_end", "turn_end"),
        *("agent_state", "agent_end", "session_end", "subagent_end"),
    ]
    said = [one for one in all_ if one.kind == "message_update" and one.agent]
    assert [(one.delta, one.branch) for one in said] == [("hi", "agent-1")]


async def test_costs_of_sub_agents_are_those_of_the_session(stage):
    session = await stage.run(stage.task({"text": "hi there, all of you"}))
    tape = session.recorder.tape
    usage = [
        entry.data.usage.total
        for branch in ("main", "agent-1")
        for entry in tape.entries(tape.head(branch))
        if entry.type == "assistant"
    ]
    assert session.run_state.spend.usage.total == sum(usage)
    assert session.run_state.spend.calls == 3


async def test_a_session_knows_its_sub_agents(stage):
    """M010: the record of a session has its sub-agents."""
    session = await stage.run(stage.task({"text": "hi"}))
    assert {name: one.status for name, one in session.subagents.items()} == {"agent-1": "completed"}


async def test_a_sub_agent_on_a_tape_of_its_own(stage):
    """M009: a host composes agents, too."""
    session = await stage.session(DONE)
    await seen(session, "go")
    order = AgentOrder("look", model=stage.script({"text": "hi"}), own_tape=True)
    report = await session.find_agents().run(order)
    assert (report.output, report.success) == ("hi", True)
    [start] = [one.data for one in session.recorder.path if isinstance(one.data, AgentStart)]
    assert start.branch is None
    with stage.store.open(start.tape) as tape:
        assert [one.type for one in tape.entries(tape.head())] == ["start", "user", "assistant"]
        assert tape.title() == "look"


async def test_impossible_orders_are_reported(stage):
    session = await stage.run(
        stage.task({"text": "x"}, subagent_type="nonsense"),
        call("Task", prompt="go", model="nobody/x"),
        call("wait", agent_id="agent-7"),
        stage.spawn({"text": "x"}, working_dir="/etc"),
    )
    kind, model, unknown, outside = results(session)
    assert "there is no type of sub-agent 'nonsense': there are general-purpose, Explore" in kind
    assert "unknown model" in model
    assert "there is no sub-agent agent-7; there are: none" in unknown
    assert "/etc is outside of" in outside
    assert marks(session) == []


async def test_a_working_dir_that_is_no_folder_is_named(stage):
    """Nothing was there that could be gone."""
    (stage.folder / "file.txt").write_text("x\n")
    session = await stage.run(
        stage.spawn({"text": "x"}, working_dir="nosuch"),
        stage.spawn({"text": "x"}, working_dir="file.txt"),
    )
    missing, file = results(session)
    assert "working_dir: nosuch does not exist" in missing
    assert "working_dir: file.txt is a file, not a folder" in file
    assert marks(session) == []


async def test_a_sub_agent_works_in_a_folder_below(stage):
    (stage.folder / "api").mkdir()
    pwd = {"tool_calls": [call("bash", command="pwd > here")]}
    await stage.run(
        stage.spawn(pwd, {"text": "ok"}, working_dir="api"), call("wait", agent_id="agent-1")
    )
    assert (stage.folder / "api/here").read_text().strip() == str(stage.folder / "api")


@pytest.mark.parametrize("tools", ["spawn_agent,send_input,wait,close_agent", "Task,TaskOutput"])
async def test_a_session_with_one_family_of_tools_only(stage, tools):
    """The sub-agents get the tools that any session has."""
    write = {"tool_calls": [call("write", path="hello.txt", content="hi\n")]}
    start = stage.task if "Task" in tools else stage.spawn
    calls = [start(write, {"text": "written"})]
    if "wait" in tools:
        calls.append(call("wait", agent_id="agent-1"))
    session = await stage.run(*calls, tools=tuple(tools.split(",")))
    assert session.setup.tools.active == tuple(tools.split(","))
    assert "written" in results(session)[-1]
    assert (stage.folder / "hello.txt").exists()


async def test_a_run_may_be_narrowed_to_some_tools(stage):
    """M193: allowed_tools may narrow a run."""
    write = {"tool_calls": [call("write", path="hello.txt", content="hi\n")]}
    await stage.run(stage.task(write, {"text": "no"}, allowed_tools=["Read"]))
    assert not (stage.folder / "hello.txt").exists()


@pytest.mark.parametrize("kind", ["Explore", "Plan", "code-review"])
async def test_types_that_only_read_change_nothing(stage, kind):
    """M193: the types that there are."""
    calls = [
        call("write", path="a", content="x"),
        call("bash", command="touch b"),
        call("bash", command="cat README"),
    ]
    (stage.folder / "README").write_text("read me")
    session = await stage.run(stage.task({"tool_calls": calls}, {"text": "ok"}, subagent_type=kind))
    assert [one.name for one in stage.folder.iterdir()] == ["README"]
    tape = session.recorder.tape
    texts = [
        join_texts(entry.data.content)
        for entry in tape.entries(tape.head("agent-1"))
        if entry.type == "tool.result"
    ]
    assert texts[0].startswith("Unknown tool: write")
    assert "read me" in texts[2]


async def test_agents_are_listed_and_stopped_in_the_terminal(stage):
    """And one that was stopped can be told nothing more."""
    session = await stage.run(stage.task({"text": "hi"}), stage.spawn(WAIT))
    host = stage.hosts[0]
    rows = answer_command("/agents", host, busy=False).text.split("\n")
    assert rows[0].startswith("agent-1  general-purpose  completed, 1 model call, ")
    assert rows[0].endswith(" tokens: do it")
    assert rows[1].startswith("agent-2  general-purpose  running, ")
    assert rows[3] == "general-purpose: any work of several steps, with every tool"
    stopped = await answer_command("/agents stop agent-2", host, busy=False).later
    assert stopped.text == "agent-2 is cancelled"
    assert session.subagents["agent-2"].status == "cancelled"
    assert answer_command("/agents x", host, busy=False).failed


async def test_a_report_has_the_cost(stage):
    session = await stage.session(DONE)
    await seen(session, "go")
    report = await session.find_agents().run(AgentOrder("x", model=stage.script({"text": "hi"})))
    assert report.cost == 0.0
    assert report.usage.total > 0
