"""What a host sees and sets: the envelope of events, and limits that end a run by themselves."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import asdict, replace

import msgspec
import pytest

from gong.agent import events
from gong.agent.session_config import SessionConfig
from gong.errors import ConfigurationError
from gong.tools.bash import build_shell_tool

from .conftest import call, seen, types

LOOK = {"tool_calls": [call("ls", path=".")]}


def kinds(found):
    return [event.kind for event in found]


def only(found, kind):
    return [event for event in found if event.kind == kind]


async def test_every_event_has_its_envelope_m033(stage):
    """M035: the start and the end of the session are around all of them."""
    session = await stage.session(LOOK, {"text": "done"})
    all_seen = []
    session.subscribe(all_seen.append)
    await seen(session, "go")
    await session.close()
    assert kinds(all_seen)[0] == "session_start"
    assert kinds(all_seen)[-1] == "session_end"
    assert [event.sequence for event in all_seen] == [*range(1, len(all_seen) + 1)]
    recorder = session.recorder
    assert {(e.session, e.branch) for e in all_seen} == {(recorder.tape.id, "main")}
    assert [e.time for e in all_seen] == sorted(e.time for e in all_seen)
    document = msgspec.json.decode(msgspec.json.encode(all_seen[1]))
    assert list(document) == ["kind", "text", "entry", "time", "session", "branch", "sequence"]


async def test_what_happens_before_the_first_prompt_is_reported_after_the_start(stage):
    """M035: words that wait, and words that were withdrawn."""
    session = await stage.session({"text": "done"})
    all_seen = []
    session.subscribe(all_seen.append)
    session.withdraw(session.steer("no").id)
    session.follow_up("later")
    assert all_seen == []
    await seen(session, "go")
    await session.close()
    told = ["session_start", "message_queued", "message_withdrawn", "message_queued", "user_input"]
    assert kinds(all_seen)[:5] == told
    assert kinds(all_seen)[-1] == "session_end"
    assert [event.sequence for event in all_seen] == [*range(1, len(all_seen) + 1)]
    assert {event.session for event in all_seen} == {session.recorder.tape.id}


async def test_agent_state_follows_the_run_m025(stage):
    session = await stage.session(
        {"tool_calls": [call("ls", path="."), call("find", pattern="*")]}, {"text": "done"}
    )
    states = only(await seen(session, "go"), "agent_state")
    assert [(one.state, one.detail, one.iteration) for one in states] == [
        ("thinking", "", 1),
        ("tool_calling", "ls, find", 1),
        ("thinking", "", 2),
        ("finished", "", 2),
    ]


async def test_tool_events_have_a_status_and_the_arguments_so_far_m036(stage):
    script = {"tool_calls": [call("bash", command="echo " + "x" * 400)], "chunk": 7}
    session = await stage.session(script, {"tool_calls": [call("read", path="none")]}, {"text": ""})
    found = await seen(session, "go")
    parts = [event for event in only(found, "message_update") if event.part == "tool_call"]
    parsed = [msgspec.json.decode(part.arguments) for part in parts if bytes(part.arguments)]
    commands = [one["command"] for one in parsed if one.get("command")]
    assert len(commands) > 10
    assert all(later.startswith(sooner) for sooner, later in itertools.pairwise(commands))
    assert len(parsed) < len(parts) * 0.7, "a parse for each piece would be quadratic"
    assert {event.status for event in only(found, "tool_start")} == {"running"}
    assert [event.status for event in only(found, "tool_end")] == ["completed", "error"]


async def test_progress_carries_the_end_of_all_output_so_far(stage):
    """M218"""
    command = "for i in 1 2 3; do echo $i; sleep 0.05; done"
    session = await stage.session({"tool_calls": [call("bash", command=command)]}, {"text": "ok"})
    updates = only(await seen(session, "go"), "tool_update")
    assert "".join(one.output for one in updates) == updates[-1].tail == "1\n2\n3\n"


@pytest.mark.parametrize(
    ("settings", "limit", "turns"),
    [
        ({"max_rounds": 3}, "round", 3),
        ({"max_turns": 2}, "total_turns", 2),
        ({"max_seconds": 0.3}, "time", None),
    ],
)
async def test_each_limit_ends_a_run_that_does_not_end_and_says_which_m015_m016(
    stage, settings, limit, turns
):
    """M208: and the session is idle. M025: its last state is "error"."""
    files = [{"tool_calls": [call("bash", command=f"sleep 0.05; echo {n}")]} for n in range(40)]
    session = await stage.session(*files, loop_detection=False, **settings)
    found = await seen(session, "go")
    [reached] = only(found, "turn_limit")
    assert reached.limit == limit
    assert turns in {None, reached.turns}
    assert only(found, "agent_state")[-1].state == "error"
    if turns:  # M016: the text of the row, in the state; the run ends softly all the same (C15)
        state = only(found, "agent_state")[-1]
        assert (state.state, state.detail) == ("error", f"达到最大迭代次数 {turns}")
    assert found[-1].kind == "agent_end"
    assert session.state == "idle"
    assert types(session)[-1] == ("error" if limit == "time" else "tool.result")


async def test_the_limit_of_the_cost_ends_a_run_that_does_not_end_m183(stage):
    """M183: between two calls; the event says what was spent."""
    turn = {"tool_calls": [call("bash", command="true")], "usage": {"input": 300, "output": 0}}
    name = f"scripted/{stage.folder.parent / 'script0.json'}"
    prices = {name: {"price": {"input": 1_000.0, "output": 1_000.0}}}
    session = await stage.session(*[turn] * 40, loop_detection=False, max_cost=1.0, models=prices)
    found = await seen(session, "go")
    [reached] = only(found, "cost_limit")
    assert (reached.spent, reached.limit) == (pytest.approx(1.2), 1.0)
    state = only(found, "agent_state")[-1]
    assert (state.state, state.detail) == ("error", "the cost limit of $1 is reached")
    assert (found[-1].kind, found[-1].turns, session.state) == ("agent_end", 4, "idle")


async def test_the_time_limit_stops_a_command_that_hangs_and_the_session_continues(stage):
    """With a longer limit where a busy machine does not start the command within it."""
    hanging = {"tool_calls": [call("bash", command="echo begun; tail -f /dev/null")]}
    for seconds in (0.3, 3, 30):
        session = await stage.session(hanging, {"text": "next"}, max_seconds=seconds)
        found = await seen(session, "go")
        assert only(found, "turn_limit")[0].value == seconds
        error = session.recorder.path[-1].data
        assert error.message == f"stopped at the time limit of {seconds} s"
        if only(found, "tool_update"):
            break
    result = session.recorder.path[-2].data
    assert "begun" in result.content[0].text
    assert (await seen(session, "again"))[-1].stop_reason == "stop"


async def test_a_person_may_let_a_run_continue_beyond_its_rounds(stage):
    """Nothing but words of their own is said to the model."""
    session = await stage.session(*[LOOK] * 9, loop_detection=False, max_rounds=2)
    session.ask_person()
    answers, questions = iter(["Continue", "look elsewhere", "Stop"]), []

    def answer(event):
        if event.kind == "question":
            questions.append(event.questions[0].question)
            session.answer(event.question_id, next(answers))

    loop = asyncio.get_running_loop()
    session.subscribe(lambda event: loop.call_soon(answer, event))
    found = await seen(session, "go")
    asked = "The limit of 2 rounds of tool calls for one prompt is reached. Continue?"
    assert questions == [asked] * 3
    [reached] = only(found, "turn_limit")
    assert (reached.limit, reached.turns) == ("round", 6)
    assert [event.text for event in only(found, "steering_injected")] == ["look elsewhere"]
    assert types(session).count("context") == 1


async def test_rounds_are_counted_from_zero_for_each_prompt_and_turns_are_not(stage):
    """M015: the units are "round" for one input and "turn" for the session."""
    session = await stage.session(
        *[LOOK] * 3, {"text": "a"}, *[LOOK] * 9, max_rounds=4, max_turns=6
    )
    assert only(await seen(session, "one"), "turn_limit") == []
    [reached] = only(await seen(session, "two"), "turn_limit")
    assert (reached.limit, reached.value, reached.turns) == ("total_turns", 6, 2)


async def test_a_model_that_repeats_itself_is_warned_once_and_then_stopped_m018(stage):
    session = await stage.session(*[LOOK] * 60)
    found = await seen(session, "go")
    told = only(found, "loop_detection")
    assert [one.stopped for one in told] == [False, False, True]
    steered = [event.text for event in only(found, "steering_injected")]
    assert "".join(steered) == (
        "Loop detected: the last 10 tool calls follow a repeating pattern."
        " Try a different approach."
    )
    assert types(session).count("context") == 1
    assert found[-1].turns == 30


async def test_loop_detection_can_be_switched_off(stage):
    session = await stage.session(*[LOOK] * 20, {"text": "done"}, loop_detection=False)
    found = await seen(session, "go")
    assert only(found, "loop_detection") == []
    assert found[-1].turns == 21


async def test_a_limit_set_during_a_run_holds_from_the_next_call(stage):
    session = await stage.session(*[LOOK] * 9, loop_detection=False)
    session.subscribe(
        lambda event: event.kind == "tool_end" and session.configure(max_tool_rounds_per_input=2)
    )
    [reached] = only(await seen(session, "go"), "turn_limit")
    assert reached.turns == 2


async def test_a_model_chosen_during_a_run_answers_the_next_call_m024(stage):
    host = await stage.host(LOOK, {"text": "never"})
    other = stage.folder / "other.json"
    other.write_text('[{"text": "from the other"}]')
    session = host.session
    before = session.setup.model.name
    model = host.models.choose(f"scripted/{other}")
    session.subscribe(lambda event: event.kind == "tool_end" and session.use_model(model))
    found = await seen(session, "go")
    assert types(session)[-2:] == ["model", "assistant"]
    assert session.recorder.path[-1].data.content[0].text == "from the other"
    [selected] = only(found, "model_select")
    assert (selected.model, selected.previous) == (model.name, before)


def test_limits_have_the_defaults_of_the_mission():
    """M011: None is the timeout of the tool, 10 000 ms for those of 001 (C1), and no effort."""
    assert asdict(SessionConfig()) == {
        "max_turns": 0,
        "max_tool_rounds_per_input": 200,
        "max_cost": 0.0,
        "max_seconds": 0.0,
        "max_output_tokens": 0,
        "effort": None,
        "default_command_timeout_ms": None,
        "max_command_timeout_ms": 600_000,
        "tool_output_limits": {},
        "tool_line_limits": {},
        "read_before_write": False,
        "max_subagent_depth": 1,
        "max_subagent_turns": 50,
        "max_subagents": 4,
        "enable_loop_detection": True,
        "loop_detection_window": 10,
    }
    assert "10000 if absent" in build_shell_tool().description


def test_limits_of_a_session_are_checked():
    with pytest.raises(ConfigurationError, match=r"^tool_line_limits is .*: expected `int` >="):
        SessionConfig(tool_line_limits={"shell": 0})
    with pytest.raises(ConfigurationError, match="max_turns is -1"):
        SessionConfig(max_turns=-1)
    with pytest.raises(ConfigurationError, match="effort is 'hihg': choose one of none, low"):
        SessionConfig(effort="hihg")


def test_every_event_is_of_a_known_kind():
    """M033: text is message_*, calls are tool_*, the end of processing is agent_end."""
    all_kinds = {one.__struct_config__.tag for one in events.Event.__args__}
    assert {
        *("session_start", "session_end", "user_input", "agent_start", "agent_end"),
        *("turn_start", "turn_end", "message_start", "message_update", "message_end"),
        *("tool_start", "tool_update", "tool_end", "steering_injected", "turn_limit"),
        *("loop_detection", "model_select", "agent_state", "approval_request", "hook_error"),
        *("warning", "error"),
    } <= all_kinds


@pytest.mark.parametrize("closes", [True, False])
async def test_a_refused_key_closes_a_session_of_a_library_and_leaves_a_front_end_idle_c46_m208(
    stage, closes
):
    refused = {"error": {"class": "AuthenticationError", "message": "bad key"}}
    session = await stage.session(refused, {"text": "again"})
    session.setup = replace(session.setup, closes_without_key=closes)
    all_seen = []
    session.subscribe(all_seen.append)
    await seen(session, "go")
    assert kinds(all_seen)[-1] == ("session_end" if closes else "agent_end")
    assert session.state == ("closed" if closes else "idle")


async def test_an_abort_ends_in_idle_c46(stage):
    session = await stage.session({"tool_calls": [call("bash", command="sleep 30")]}, {"text": "x"})
    session.subscribe(lambda event: event.kind == "tool_start" and session.abort())
    assert (await seen(session, "go"))[-1].stop_reason == "aborted"
    assert session.state == "idle"


@pytest.mark.parametrize("lines", [3, 9_000, 900_000])
async def test_the_whole_output_is_reached_from_the_end_event_m034(stage, lines):
    """M034: whatever its size: shown, beside the result, or in a blob of the tape."""
    session = await stage.session(
        {"tool_calls": [call("bash", command=f"seq 1 {lines}")]}, {"text": "done"}
    )
    [end] = only(await seen(session, "go"), "tool_end")
    assert session.read_output(end) == "".join(f"{n}\n" for n in range(1, lines + 1))


@pytest.mark.parametrize("family", ["default", "anthropic"])
async def test_limits_of_results_change_from_the_next_call_on(stage, family):
    """For the tools of every family; chosen and registered tools stay, and so does a model's."""
    name = "bash" if family == "default" else "shell"
    printing = {"tool_calls": [call(name, command="seq 1 50")]}
    session = await stage.session(
        printing, printing, {"text": "ok"}, tools=(family,), tool_line_limits={name: 40}
    )
    before = session.setup.tools.active
    session.subscribe(
        lambda event: event.kind == "tool_end" and session.configure(tool_line_limits={name: 10})
    )
    shown = [one.content[0].text for one in await seen(session, "go") if one.kind == "tool_end"]
    lines = [len([one for one in text.split("\n") if one.isdigit()]) for text in shown]
    assert lines == [40, 10]
    assert session.setup.tools.active == before
    session.use_model(session.setup.model)
    assert session.setup.tuning.line_limits == {name: 10}
    with pytest.raises(ConfigurationError, match="no_tool has no limit of its own"):
        session.configure(tool_output_limits={"no_tool": 10})
