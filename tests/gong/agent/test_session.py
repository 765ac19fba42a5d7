from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from gong.agent import events
from gong.agent.session import SessionState
from gong.errors import ConfigurationError, SessionBusy, SessionClosed
from tape.errors import Busy
from tape.model.entries import NO_JSON, Assistant, join_texts
from tests.gong.agent.conftest import call, seen, types


async def test_nothing_is_on_disk_before_the_first_prompt(stage):
    session = await stage.session({"text": "hi"})
    assert stage.store.folders() == []
    await seen(session, "hello there")
    (name,) = stage.store.folders()
    assert "-hello-there-" in name


async def test_a_second_prompt_during_a_run_is_refused(stage):
    """M006 J9-1.7: one run at a time."""
    session = await stage.session({"text": "slow", "delay_ms": 900_000})
    begun = asyncio.Event()
    session.subscribe(lambda _: begun.set())
    run = asyncio.create_task(seen(session, "one"))
    await begun.wait()
    assert session.state is SessionState.PROCESSING
    with pytest.raises(SessionBusy):
        await seen(session, "two")
    session.abort()
    await run
    assert session.state is SessionState.IDLE
    assert types(session) == ["start", "user", "error"]


async def test_an_empty_prompt_is_refused_and_leaves_nothing(stage):
    session = await stage.session({"text": "hi"})
    with pytest.raises(ConfigurationError):
        await seen(session, "  \n")
    assert session.state is SessionState.IDLE
    assert stage.store.folders() == []


async def test_leaving_the_events_early_stops_the_run(stage):
    session = await stage.session(
        {"tool_calls": [call("bash", command="sleep 60")]}, {"text": "ok"}
    )
    stream = session.submit("go")
    async with asyncio.timeout(10):
        async for event in stream:
            if isinstance(event, events.ToolExecutionStart):
                break
        await stream.aclose()
    assert session.state is SessionState.IDLE
    assert session.recorder.path[-1].type == "error"


async def test_steering_while_idle_comes_with_the_next_prompt(stage):
    """M028: words for an idle session are delivered with the next submit."""
    session = await stage.session({"text": "ok"})
    session.steer("be brief")
    found = await seen(session, "go")
    assert types(session) == ["start", "user", "context", "assistant"]
    [said] = [event for event in found if isinstance(event, events.SteeringInjected)]
    assert (said.text, said.origin) == ("be brief", "steering")
    [steering] = [e.data for e in session.recorder.path if e.type == "context"]
    assert (steering.role, join_texts(steering.content)) == ("user", "be brief")


async def test_a_fork_continues_from_the_newest_entry_and_leaves_the_old_branch_alone(stage):
    session = await stage.session({"text": "one"}, {"text": "two"}, {"text": "three"})
    await seen(session, "first")
    main = session.recorder.head()
    branch = session.fork("try")
    await seen(session, "second")
    assert (branch, session.recorder.branch) == ("try", "try")
    tape = session.recorder.tape
    assert tape.head("main").entry == main.entry
    assert [e.type for e in tape.entries(tape.head("try"))] == [
        "start", "user", "assistant", "branch", "user", "assistant",
    ]  # fmt: skip


async def test_a_change_of_model_is_recorded(stage):
    """A change of model stands on the tape."""
    first = await stage.host({"text": "one"})
    other = await stage.host({"text": "two"})
    await seen(first.session, "hi")
    first.session.use_model(other.session.setup.model)
    await seen(first.session, "and you?")
    assert types(first.session) == ["start", "user", "assistant", "model", "user", "assistant"]


async def test_a_closed_session_takes_no_prompt(stage):
    session = await stage.session({"text": "hi"})
    await session.close()
    await session.close()
    assert session.state is SessionState.CLOSED
    with pytest.raises(SessionClosed):
        await seen(session, "hello")


async def test_a_second_session_on_a_tape_writes_a_branch_of_its_own(stage):
    one = await stage.session({"text": "one"}, {"text": "one more"})
    await seen(one, "first")
    beside = stage.reopened()
    two = await stage.session({"text": "two"}, recorder=beside)
    assert (beside.writer.instead_of, beside.branch) == ("main", "main.2")
    await seen(two, "from the other side")
    await seen(one, "again")
    tape = one.recorder.tape
    said = {
        branch: [
            join_texts(e.data.content)
            for e in tape.entries(tape.head(branch))
            if isinstance(e.data, Assistant)
        ]
        for branch in ("main", "main.2")
    }
    assert said == {"main": ["one", "one more"], "main.2": ["one", "two"]}
    with pytest.raises(Busy):
        stage.reopened("main")


async def test_a_script_that_ends_too_early_is_a_failure_with_its_reason(stage):
    session = await stage.session({"tool_calls": [call("ls", path=".")]})
    found = await seen(session, "go")
    (failure,) = [event for event in found if isinstance(event, events.RunFailure)]
    assert (failure.error_class, failure.exit_code) == ("ScriptEnded", 1)
    assert types(session)[-1] == "error"


def run_ends(found):
    """Return the events that end tool calls, the warnings, and how the run ended."""
    ends = [event for event in found if isinstance(event, events.ToolExecutionEnd)]
    warnings = [event for event in found if isinstance(event, events.Warn)]
    return ends, warnings, found[-1]


async def test_a_refusal_is_named_permission_denied_for_programs_m050(stage):
    """M050: what the danger floor refuses has the kind of its error, as event and on the tape."""
    session = await stage.session(
        {"tool_calls": [call("bash", command="rm -rf /")]}, {"text": "then not"}
    )
    ends, warnings, last = run_ends(await seen(session, "go"))
    recorded = next(e.data for e in session.recorder.path if e.type == "tool.result")
    assert [bytes(one.details) for one in (*ends, recorded)] == [
        b'{"error_kind":"PermissionDenied"}'
    ] * 2
    assert recorded.is_error
    assert (warnings, last.stop_reason) == ([], "stop")


async def test_a_policy_that_fails_refuses_the_call_and_the_run_continues(stage):
    session = await stage.session(
        {"tool_calls": [call("bash", command="touch made")]}, {"text": "so be it"}
    )

    async def broken(_):
        raise ValueError("no such rule")

    session.setup = replace(session.setup, policy=broken)
    ends, warnings, last = run_ends(await seen(session, "go"))
    said = "Not run: the policy that decides about calls failed: ValueError: no such rule"
    assert [(join_texts(one.content), one.is_error) for one in ends] == [(said, True)]
    assert [bytes(one.details) for one in ends] == [b'{"error_kind":"PermissionDenied"}']
    (warning,) = warnings
    assert warning.message == ("the policy failed, so bash was not run: ValueError: no such rule")
    assert "in broken" in warning.trace
    assert last.stop_reason == "stop"
    assert not (stage.folder / "made").exists()


async def test_a_watcher_that_fails_is_reported_once_and_the_run_continues(stage):
    session = await stage.session(
        {"tool_calls": [call("ls", path=".")]}, {"text": "done"}, {"text": "and again"}
    )
    after = []

    def broken(event):
        raise RuntimeError("no screen")

    leave = session.subscribe(broken)
    session.subscribe(after.append)
    _, warnings, last = run_ends(await seen(session, "go"))
    (warning,) = warnings
    assert warning.message == (
        "a watcher of events failed: RuntimeError: no screen; this is reported once"
    )
    assert "in broken" in warning.trace
    assert last.stop_reason == "stop"
    assert last in after
    _, warnings, _ = run_ends(await seen(session, "once more"))
    assert warnings == []
    leave()
    leave()


async def test_the_system_prompt_names_the_tools_of_its_call(stage):
    """Also after the tools have changed."""
    session = await stage.session({"text": "one"}, {"text": "two"}, tools=("read", "edit"))
    await seen(session, "go")

    def request():
        return session.build_run_context().prepare_next_call().request

    assert "Use `edit` to change a part of a file." in request().system
    session.setup.tools.set_active(["read_file", "shell"])
    assert "Use `shell` to run commands." in request().system
    assert [tool.name for tool in request().tools] == ["read_file", "shell"]


async def test_another_model_brings_the_tools_of_its_family(stage):
    """M128 M133: from the next call on, and its prompt names them."""
    host = await stage.host({"text": "one"}, {"text": "two"})
    (stage.folder / "CLAUDE.md").write_text("for Claude")
    session = host.session
    await seen(session, "go")
    session.use_model(host.models.describe("anthropic/claude-sonnet-4-5"))
    model = session.setup.model
    assert (model.provider, model.id, model.profile) == (
        *("anthropic", "claude-sonnet-4-5", "anthropic"),
    )
    assert (model.window, model.reasons, callable(model.stream)) == (200_000, True, True)
    assert model.options == NO_JSON
    request = session.build_run_context().prepare_next_call().request
    assert [tool.name for tool in request.tools][:3] == ["read_file", "write_file", "edit_file"]
    assert "for Claude" in request.system
    session.use_model(host.models.describe("offline/rules"))
    again = session.build_run_context().prepare_next_call().request
    assert [tool.name for tool in again.tools][:1] == ["read"]


async def test_the_prompt_is_the_same_bytes_in_every_turn(stage):
    """M133: files and git change, the prompt of a running session does not."""
    (stage.folder / "AGENTS.md").write_text("one")
    host = await stage.host({"text": "one"}, {"text": "two"})
    texts = set()
    for turn in range(2):
        await seen(host.session, "go")
        (stage.folder / "AGENTS.md").write_text(f"turn {turn}")
        request = host.session.build_run_context().prepare_next_call().request
        texts.add((request.system, tuple(bytes(one.parameters) for one in request.tools)))
    assert len(texts) == 1


async def test_an_answer_that_is_coming_is_the_last_message(stage):
    """M004: the start appends it, each update replaces it, the end installs the final one."""
    session = await stage.session({"text": "one two three", "chunk": 4}, {"text": "four"})
    seen_messages = []

    def watch(event):
        if event.kind in {"message_start", "message_update", "message_end"}:
            last = session.list_messages()[-1]
            text = join_texts(last.content)
            seen_messages.append((event.kind, len(session.list_messages()), last.role, text))

    session.subscribe(watch)
    assert session.list_messages() == ()
    await seen(session, "go")
    assert seen_messages == [
        ("message_start", 2, "assistant", ""),
        *(
            ("message_update", 2, "assistant", text)
            for text in ("one ", "one two ", "one two thre")
        ),
        ("message_update", 2, "assistant", "one two three"),
        ("message_end", 2, "assistant", "one two three"),
    ]
    assert session.list_messages()[-1].content == session.recorder.path[-1].data.content
    await seen(session, "more")
    assert [one.role for one in session.list_messages()] == ["user", "assistant"] * 2


async def test_a_stopped_answer_is_no_longer_coming(stage):
    session = await stage.session({"text": "one two three", "chunk": 4, "chunk_delay_ms": 20})
    session.subscribe(lambda event: event.kind == "message_update" and session.abort())
    await seen(session, "go")
    assert session.run_state.answer is None


async def test_the_form_of_answers_can_be_changed_and_ended(stage):
    """M009: as everything of a session, from the next run on."""
    shapes = [{"properties": {name: {"type": "integer"}}, "required": [name]} for name in "ab"]
    session = await stage.session(
        *({"tool_calls": [call("structured_output", **{name: 1})]} for name in "ab"),
        {"text": "any words"},
    )
    for name, shape in zip("ab", shapes, strict=True):
        session.require_object({"type": "object", **shape})
        await seen(session, "go")
        assert session.object_answer == {name: 1}
    session.require_object(None)
    assert "structured_output" not in session.setup.tools.active
    ended = await seen(session, "go")
    assert (session.object_answer, ended[-1].stop_reason) == (None, "stop")
    with pytest.raises(ConfigurationError, match="does not describe an object"):
        session.require_object({"type": "string"})
