"""The eighteen scenarios of hooks (J10), each by its number: real tools, real tape, a script.

M169–M173 and M216 in whole: the three kinds, their order, their errors.
"""

import asyncio
import dataclasses
import threading
import time

import msgspec
import pytest

from gong.agent import events
from gong.agent.session import SessionState
from gong.config import CompactionSettings
from gong.errors import SessionBusy
from gong.hooks import HANDLED, Allow, Ask, Block
from gong.policy.permissions import ApprovalAnswer, PermissionPolicy
from gong.policy.rules import RuleSet, parse_rule
from tape.model.entries import Context, ToolResult, User, join_texts
from tests.gong.agent.conftest import call, seen, types
from tests.gong.env.memory import MemoryEnvironment
from tests.gong.hooks.conftest import of, result_texts

ECHO = {"tool_calls": [call("bash", command="echo out")]}
DONE = {"text": "done"}


def hook(**methods):
    """Return an object with these methods, each without self."""
    return type("Made", (), {name: staticmethod(one) for name, one in methods.items()})()


async def watched(stage, *answers):
    """Return what a hook that watches saw of a whole session, by kind."""
    saw = []
    session, _ = await stage.run([hook(on_event=saw.append)], *answers)
    await session.close()
    return {kind: [one for one in saw if one["kind"] == kind] for kind in {e["kind"] for e in saw}}


async def test_1_1_a_finished_tool_is_reported_to_watching_hooks(stage):
    """J10-1.1, M040, M169: it only reads."""
    stage.write("a.txt", "content\n")
    saw = await watched(stage, {"tool_calls": [call("read", path="a.txt")]}, DONE)
    (end,) = saw["tool_end"]
    assert (end["name"], end["content"][0]["text"]) == ("read", "content\n")


async def test_1_2_start_and_end_of_a_run_are_reported_in_order(stage):
    """J10-1.2, M040: the start has the prompt, the end how long it took and how many steps."""
    saw = []
    session, _ = await stage.run([hook(on_event=saw.append)], ECHO, DONE)
    await session.close()
    kinds = [one["kind"] for one in saw]
    assert (kinds[0], kinds[-1]) == ("session_start", "session_end")
    assert kinds.index("agent_start") < kinds.index("turn_start") < kinds.index("agent_end")
    (start,) = [one for one in saw if one["kind"] == "agent_start"]
    assert start["prompt"] == "go"
    (end,) = [one for one in saw if one["kind"] == "agent_end"]
    assert end["steps"] == 2
    assert end["duration_ms"] >= 0


async def test_1_3_the_end_of_a_turn_names_its_tool_calls(stage):
    """J10-1.3, M040: a turn has its number and how long it took."""
    saw = await watched(stage, ECHO, DONE)
    assert [one["turn"] for one in saw["turn_start"]] == [1, 2]
    first, second = saw["turn_end"]
    assert first["duration_ms"] >= 0
    assert [one["name"] for one in first["calls"]] == ["bash"]
    assert (first["tool_calls"], second["calls"]) == (1, [])


async def test_another_model_and_a_failing_hook_are_reported_to_watching_hooks(stage):
    """M040: model select with both names, and hook error with the hook, its point and why."""
    saw = []
    session = await stage.hooked([hook(on_event=saw.append, on_context=broken)], DONE, DONE)
    first = session.setup.model
    session.use_model(dataclasses.replace(first, id="another"))
    await seen(session, "go")
    await session.close()
    (selected,) = [one for one in saw if one["kind"] == "model_select"]
    assert (selected["model"], selected["previous"]) == ("scripted/another", first.name)
    (failed,) = [one for one in saw if one["kind"] == "hook_error"]
    assert (failed["hook"], failed["point"], failed["error"]) == (
        *("Made", "context", "RuntimeError: boom"),
    )


async def test_2_1_a_gate_that_says_nothing_lets_a_call_run(stage):
    """J10-2.1, M170."""
    asked = []
    gate = hook(before_tool_call=lambda tool, args: asked.append((tool, args)))
    _, happened = await stage.run([gate], ECHO, DONE)
    assert result_texts(happened) == ["out\n"]
    assert asked == [("bash", {"command": "echo out"})]


async def test_2_2_a_gate_blocks_a_call_and_the_model_reads_why(stage):
    """J10-2.2, M170: the call does not run, and a decision is recorded."""
    gate = hook(before_tool_call=lambda tool, _: Block("需要确认") if tool == "bash" else None)
    touch = {"tool_calls": [call("bash", command="touch ran")]}
    session, happened = await stage.run([gate], touch, DONE)
    assert result_texts(happened) == ["Blocked by a hook: 需要确认"]
    assert not (stage.folder / "ran").exists()
    entries = [entry.data for entry in session.recorder.path]
    (approval,) = [one for one in entries if type(one).entry_type == "approval"]
    assert (approval.decision, approval.by, approval.reason) == ("deny", "hook", "需要确认")
    assert types(session)[-3:] == ["approval", "tool.result", "assistant"]


@pytest.mark.parametrize("command", ["rm -rf /", "git push --force origin main"])
async def test_a_hook_blocks_commands_that_destroy(stage, command):
    """M092 J2-5.7: with its words, before any environment is asked to run them."""

    def gate(tool, args):
        return Block("危险命令需要确认") if args["command"] == command else None

    script = {"tool_calls": [call("bash", command=command)]}
    session = await stage.hooked([hook(before_tool_call=gate)], script, DONE)
    memory = MemoryEnvironment()
    session.use_environment(memory)
    happened = await seen(session, "go")
    assert result_texts(happened) == ["Blocked by a hook: 危险命令需要确认"]
    assert memory.commands == []


async def test_2_3_the_first_block_stops_and_later_hooks_are_not_asked(stage):
    """J10-2.3, M169: hooks are asked in the order of registration."""
    asked = []

    def gate(name, answer):
        return hook(before_tool_call=lambda *_: asked.append(name) or answer)

    hooks = [gate("a", None), gate("b", Block("禁止")), gate("c", None)]
    _, happened = await stage.run(hooks, ECHO, DONE)
    assert result_texts(happened) == ["Blocked by a hook: 禁止"]
    assert asked == ["a", "b"]


async def test_2_4_a_gate_cancels_an_automatic_compaction(stage):
    """J10-2.4, M171, M165: the session stays as it was, and the run goes on."""
    asked = []
    gate = hook(before_session_op=lambda op, meta: asked.append((op, meta["trigger"])) or False)
    settings = CompactionSettings(limit=3000, keep=500)
    long = {"text": "word " * 3000}
    session = await stage.hooked([gate], long, DONE, compaction=settings)
    await seen(session, "one")
    before = types(session)
    happened = await seen(session, "two")
    assert ("compact", "auto") in asked
    assert not of(events.CompactionEnd, happened)
    assert types(session) == [*before, "user", "assistant"]
    assert "a hook cancelled the compaction" in of(events.Warn, happened)[-1].message


async def test_3_1_a_result_is_changed_before_the_model_reads_it(stage):
    """J10-3.1, M172: the original stays on the tape as the full text."""
    stage.write("env.txt", "API_KEY=abc\n")

    def redact(_tool, result):
        return {"content": result["content"].replace("API_KEY", "[REDACTED]")}

    read = {"tool_calls": [call("read", path="env.txt")]}
    session, happened = await stage.run([hook(on_tool_result=redact)], read, DONE)
    assert result_texts(happened) == ["[REDACTED]=abc\n"]
    (result,) = [e.data for e in session.recorder.path if isinstance(e.data, ToolResult)]
    assert (join_texts(result.content), result.whole) == ("[REDACTED]=abc\n", "API_KEY=abc\n")


async def test_3_1_b_a_hook_can_keep_the_original_off_the_tape(stage):
    """J10-3.1: `full: None` leaves nothing of it."""
    stage.write("env.txt", "API_KEY=abc\n")
    redact = hook(on_tool_result=lambda *_: {"content": "gone", "full": None})
    read = {"tool_calls": [call("read", path="env.txt")]}
    session, _ = await stage.run([redact], read, DONE)
    (result,) = [e.data for e in session.recorder.path if isinstance(e.data, ToolResult)]
    assert (join_texts(result.content), result.full) == ("gone", None)


async def test_3_2_changes_of_a_result_are_chained(stage):
    """J10-3.2, M169, M172 (pi #1280): the output of one is what the next one gets."""
    hooks = [
        hook(on_tool_result=lambda _, result, tail=tail: result["content"] + tail)
        for tail in ("[a]", "[b]")
    ]
    _, happened = await stage.run(hooks, ECHO, DONE)
    assert result_texts(happened) == ["out\n[a][b]"]


async def test_3_3_a_partial_change_keeps_the_other_fields(stage):
    """J10-3.3, M172, M054 TOOLRES-006: details such as the exit code stay."""
    change = hook(on_tool_result=lambda *_: {"content": "changed"})
    saw = []
    look = hook(on_tool_result=lambda _, result: saw.append(result))
    _, happened = await stage.run([change, look], ECHO, DONE)
    (end,) = of(events.ToolExecutionEnd, happened)
    assert msgspec.json.decode(end.details)["exit_code"] == 0
    assert (saw[0]["content"], saw[0]["details"]["exit_code"]) == ("changed", 0)


async def test_details_change_by_themselves(stage):
    """M230: the text stays; what the next hook gets, the event and the tape have them."""
    saw = []

    def mark(_tool, result):
        return {"details": {**result["details"], "checked": [True, None]}}

    hooks = [hook(on_tool_result=mark), hook(on_tool_result=lambda _, one: saw.append(one))]
    session, happened = await stage.run(hooks, ECHO, DONE)
    assert result_texts(happened) == ["out\n"]
    (end,) = of(events.ToolExecutionEnd, happened)
    (recorded,) = [e.data for e in session.recorder.path if isinstance(e.data, ToolResult)]
    for details in (saw[0]["details"], *map(msgspec.json.decode, (end.details, recorded.details))):
        assert (details["exit_code"], details["checked"]) == (0, [True, None])


@pytest.mark.parametrize("details", [3, "x", [1], {"a": object()}])
async def test_details_that_are_no_object_of_json_change_nothing(stage, details):
    """M230"""
    wrong = hook(on_tool_result=lambda *_: {"details": details})
    _, happened = await stage.run([wrong], ECHO, DONE)
    (end,) = of(events.ToolExecutionEnd, happened)
    assert msgspec.json.decode(end.details)["exit_code"] == 0
    assert [one.point for one in of(events.HookError, happened)] == ["tool_result"]


async def test_a_field_that_no_result_has_is_named(stage):
    """A misspelt field changes nothing, and the user reads which."""
    wrong = hook(on_tool_result=lambda *_: {"content": "changed", "contents": "x"})
    _, happened = await stage.run([wrong], ECHO, DONE)
    assert result_texts(happened) == ["out\n"]
    (told,) = of(events.HookError, happened)
    assert told.error.startswith("on_tool_result: a result has no contents: its fields are content")


async def test_no_details_leaves_none(stage):
    """As `full: None` leaves no full text."""
    _, happened = await stage.run([hook(on_tool_result=lambda *_: {"details": None})], ECHO, DONE)
    (end,) = of(events.ToolExecutionEnd, happened)
    assert msgspec.json.decode(end.details or b"{}") == {}
    assert not of(events.HookError, happened)


@pytest.mark.parametrize("decision", ["deny", False, {"decision": "block"}])
async def test_a_decision_that_cannot_be_read_allows_nothing(stage, decision):
    """Without a person the call is denied; the fault is reported."""
    guard = hook(before_tool_call=lambda *_: decision)
    _, happened = await stage.run([guard], ECHO, DONE)
    assert "out\n" not in result_texts(happened)
    assert of(events.HookError, happened)


async def test_3_4_messages_of_a_call_are_changed_and_the_tape_is_not(stage):
    """J10-3.4, M172: what is sent has the message, what is recorded has not."""
    sent = []

    def add(messages):
        return [*messages, {"role": "system", "content": "be brief"}]

    hooks = [hook(on_context=add), hook(on_context=sent.append)]
    session, _ = await stage.run(hooks, ECHO, DONE)
    assert [one[-1]["content"][0]["text"] for one in normal(sent)] == ["be brief"] * 2
    assert "be brief" not in str([entry.data for entry in session.recorder.path])


def normal(sent):
    """Return messages with texts as blocks."""
    return [
        [
            {**one, "content": [{"type": "text", "text": one["content"]}]}
            if isinstance(one["content"], str)
            else one
            for one in messages
        ]
        for messages in sent
    ]


async def test_3_5_input_is_changed(stage):
    """J10-3.5, M172."""
    change = hook(on_input=lambda text, images: {"你好": "hello"}[text])
    session, happened = await stage.run([change], DONE, prompt="你好")
    assert of(events.RunStart, happened)[0].prompt == "hello"
    (user,) = [e.data for e in session.recorder.path if isinstance(e.data, User)]
    assert join_texts(user.content) == "hello"


async def test_3_6_input_that_a_hook_handled_goes_no_further(stage):
    """J10-3.6, M172: later hooks are not asked, the input is not recorded, no model is called."""
    asked = []
    hooks = [hook(on_input=lambda *_: HANDLED), hook(on_input=lambda *_: asked.append(1))]
    session, happened = await stage.run(hooks)
    assert [type(event) for event in happened] == [events.SessionStart, events.RunEnd]
    assert (asked, types(session), session.state) == ([], ["start"], SessionState.IDLE)


async def test_3_7_messages_are_added_before_the_agent_starts(stage):
    """J10-3.7, M172: they are in the context, and so are those of the next hook."""
    sent = []

    def add(name):
        extra = {"role": "user", "content": f"extra {name}"}
        return hook(on_before_agent=lambda prompt, system: (prompt + name, system + name, [extra]))

    hooks = [add("a"), add("b"), hook(on_context=sent.append)]
    session, _ = await stage.run(hooks, DONE)
    entries = [entry.data for entry in session.recorder.path]
    (user,) = [one for one in entries if isinstance(one, User)]
    assert join_texts(user.content) == "goab"
    added = [one for one in entries if isinstance(one, Context)]
    assert [(one.origin, join_texts(one.content)) for one in added] == [
        ("hook", "extra a"),
        ("hook", "extra b"),
    ]
    assert "extra b" in str(sent[0][-1])


def broken(*_):
    raise RuntimeError("boom")


async def test_4_1_a_hook_that_raises_does_not_stop_the_next(stage):
    """J10-4.1, M173."""
    hooks = [hook(on_tool_result=broken), hook(on_tool_result=lambda _, one: one["content"] + "b")]
    _, happened = await stage.run(hooks, ECHO, DONE)
    assert result_texts(happened) == ["out\nb"]
    (error,) = of(events.HookError, happened)
    assert (error.hook, error.point, error.error) == ("Made", "tool_result", "RuntimeError: boom")
    assert of(events.RunEnd, happened)[0].stop_reason == "stop"


async def test_4_2_the_error_of_a_hook_has_its_whole_trace(stage):
    """J10-4.2, M173."""
    _, happened = await stage.run([hook(before_tool_call=broken)], ECHO, DONE)
    (error,) = of(events.HookError, happened)
    assert "in broken" in error.trace
    assert error.trace.endswith("RuntimeError: boom\n")
    assert result_texts(happened) == ["out\n"]


@pytest.mark.parametrize(("reason", "said"), [(3, "(no text, but int)"), (None, ""), ("a", "a")])
async def test_a_block_whose_reason_is_no_text_blocks_all_the_same(stage, reason, said):
    gate = hook(before_tool_call=lambda *_: Block(reason))
    _, happened = await stage.run([gate], ECHO, DONE)
    (text,) = result_texts(happened)
    assert text.endswith(said)
    assert "out" not in text
    assert of(events.RunEnd, happened)[0].stop_reason == "stop"


def leave(*_):
    raise SystemExit(3)


async def leave_later(*_):
    raise SystemExit(3)


@pytest.mark.parametrize("method", [leave, leave_later])
@pytest.mark.parametrize("point", ["on_input", "on_context", "before_tool_call", "on_tool_result"])
async def test_a_hook_that_exits_fails_like_one_that_raises(stage, point, method):
    _, happened = await stage.run([hook(**{point: method})], ECHO, DONE)
    errors = {error.error for error in of(events.HookError, happened)}
    assert errors == {"it raised SystemExit"}
    assert result_texts(happened) == ["out\n"]
    assert of(events.RunEnd, happened)[0].stop_reason == "stop"


async def test_a_hook_that_exits_leaves_a_fork_alone(stage):
    session, _ = await stage.run([hook(before_session_op=leave)], DONE)
    assert session.fork("other") == "other"


async def test_4_3_a_hook_that_is_too_slow_is_skipped(stage):
    """J10-4.3, M173: a hook that sleeps for ten seconds holds the run up for its limit only."""
    release = threading.Event()
    slow = hook(on_tool_result=lambda *_: release.wait(10))
    slow.timeout = 0.05
    begun = time.monotonic()
    _, happened = await stage.run([slow], ECHO, DONE)
    assert time.monotonic() - begun < 10
    release.set()
    (error,) = of(events.HookError, happened)
    assert error.error == "no answer in 0.05 s"
    assert result_texts(happened) == ["out\n"]


async def test_4_3_b_a_slow_gate_blocks_where_that_is_wished(stage):
    """J10-4.3, M173: a hook that guards something says on_failure = "block"."""

    async def stay(*_):
        await asyncio.Event().wait()

    slow = hook(before_tool_call=stay)
    slow.timeout, slow.on_failure = 0.05, "block"
    _, happened = await stage.run([slow], ECHO, DONE)
    assert result_texts(happened) == [
        "Blocked by a hook: the hook Made failed: no answer in 0.05 s"
    ]


async def test_5_1_hooks_are_registered_by_the_settings(stage, monkeypatch):
    """J10-5.1, M173: a module, or an object of one."""
    (stage.folder / "safety.py").write_text(
        "from gong.hooks import Block\n"
        "class Safety:\n"
        "    def before_tool_call(self, tool, args):\n"
        "        return Block('by settings')\n"
    )
    monkeypatch.syspath_prepend(str(stage.folder))
    _, happened = await stage.run([], ECHO, DONE, hooks=({"python": "safety:Safety"},))
    assert result_texts(happened) == ["Blocked by a hook: by settings"]


async def test_5_2_hooks_are_registered_by_the_host(stage):
    """J10-5.2, M173: as an argument at the start; a class is as good as an object."""

    class Custom:
        @staticmethod
        def before_tool_call(_tool, _args):
            return Block("by the host")

    _, happened = await stage.run([Custom], ECHO, DONE)
    assert result_texts(happened) == ["Blocked by a hook: by the host"]


async def test_hooks_cannot_change_shared_data(stage):
    """M169, M173: what a hook does to what it was given, nobody else sees."""

    def spoil_call(_tool, args):
        args["command"] = "echo spoiled"

    def spoil_result(_tool, result):
        result["content"] = "spoiled"
        result["details"].clear()

    def spoil_messages(messages):
        messages.clear()

    spoiler = hook(
        before_tool_call=spoil_call, on_tool_result=spoil_result, on_context=spoil_messages
    )
    saw = []
    look = hook(
        before_tool_call=lambda _, args: saw.append(args),
        on_context=lambda messages: saw.append(len(messages)),
    )
    _, happened = await stage.run([spoiler, look], ECHO, DONE)
    assert result_texts(happened) == ["out\n"]
    assert saw == [1, {"command": "echo out"}, 3]


@pytest.mark.parametrize("point", ["on_input", "on_context", "before_tool_call", "on_stop"])
async def test_a_hook_that_waits_for_the_end_of_its_run_does_not_dead_lock(stage, point):
    """M216: it gets an error at once, in a coroutine and in a thread."""
    said, sessions = [], []

    async def wait(*_):
        try:
            await sessions[0].wait_until_idle()
        except SessionBusy as error:
            said.append(str(error))

    session = await stage.hooked([hook(**{point: wait})], ECHO, DONE)
    sessions.append(session)
    happened = await seen(session, "go")
    assert of(events.RunEnd, happened)[0].stop_reason == "stop"
    assert set(said) == {"this code is part of the run, so it cannot wait for its end"}
    await session.wait_until_idle()


async def test_a_thread_of_a_hook_that_waits_for_the_run_does_not_dead_lock(stage):
    """M216."""
    loop, said, sessions = asyncio.get_running_loop(), [], []

    def wait(*_):
        future = asyncio.run_coroutine_threadsafe(sessions[0].wait_until_idle(), loop)
        try:
            future.result()
        except SessionBusy as error:
            said.append(error)

    session = await stage.hooked([hook(before_tool_call=wait)], ECHO, DONE)
    sessions.append(session)
    assert result_texts(await seen(session, "go")) == ["out\n"]
    assert len(said) == 1


async def test_the_points_of_a_run_come_in_their_order(stage):
    """M216, M023: the order of a run with one call, and the operations with their facts."""
    order = []

    def note(name):
        return lambda *_: order.append(name)

    names = ("on_session_start", "on_input", "on_before_agent", "on_context")
    names = (*names, "before_tool_call", "on_tool_result", "on_stop")
    await stage.run([hook(**{name: note(name) for name in names})], ECHO, DONE)
    assert order == [
        *("on_session_start", "on_input", "on_before_agent"),
        *("on_context", "before_tool_call", "on_tool_result"),
        *("on_context", "on_stop"),
    ]


async def test_a_fork_is_asked_about_and_can_be_cancelled(stage):
    """M171, M216: with the branch it leaves."""
    asked = []
    gate = hook(before_session_op=lambda op, meta: asked.append((op, meta)) or op != "fork")
    session, _ = await stage.run([gate], DONE)
    with pytest.raises(Exception, match="a hook cancelled the fork"):
        session.fork("other")
    ((op, meta),) = asked
    assert (op, meta["name"], meta["branch"]) == ("fork", "other", "main")
    assert session.recorder.branch == "main"


async def test_a_hook_keeps_the_agent_working_but_not_for_ever(stage):
    """M174 (Stop): its reason goes to the model; after eight times in a row the run ends."""
    asked = []
    gate = hook(on_stop=lambda text: asked.append(text) or Block("run the tests"))
    session, happened = await stage.run([gate], *[{"text": f"t{n}"} for n in range(9)])
    assert asked == [f"t{n}" for n in range(9)]
    texts = [join_texts(e.data.content) for e in session.recorder.path if e.type == "context"]
    assert texts == ["run the tests"] * 8
    assert of(events.Warn, happened)[-1].message == (
        "hooks kept the run from ending 8 times: it ends now"
    )


async def test_answers_of_a_wrong_kind_are_errors_and_change_nothing(stage):
    """M173."""
    wrong = hook(
        on_input=lambda *_: 7,
        on_before_agent=lambda *_: ("a", "b", [{"content": 3}]),
        on_context=lambda _: [{"role": "nobody", "content": "x"}],
        before_tool_call=lambda *_: Allow({"cmd": 1}),
        on_tool_result=lambda *_: {"content": 3},
    )
    _, happened = await stage.run([wrong], ECHO, DONE)
    assert result_texts(happened) == ["out\n"]
    points = [one.point for one in of(events.HookError, happened)]
    assert points == ["input", "before_agent", "context", "tool_call", "tool_result", "context"]


async def test_a_call_that_a_hook_sends_to_approval_does_not_run_without_a_person(stage):
    """M170: `Ask` is a refusal without a person, and `Allow` changes arguments."""
    _, happened = await stage.run([hook(before_tool_call=lambda *_: Ask("look"))], ECHO, DONE)
    (text,) = result_texts(happened)
    assert text.startswith("Not run: it needs a permission, and there is no one to ask (look).")
    allow = hook(before_tool_call=lambda *_: Allow({"command": "echo allowed"}))
    _, happened = await stage.run([allow], ECHO, DONE)
    assert result_texts(happened) == ["allowed\n"]


@pytest.mark.parametrize(
    ("answer", "deny", "asked", "said"),
    [
        (None, (), 1, "ok\n"),
        (Allow(), (), 0, "ok\n"),
        (Allow(), ("Bash",), 0, None),
        (Ask("look"), (), 1, "ok\n"),
    ],
)
async def test_wishes_of_hooks_rank_between_the_rules_and_the_mode(
    stage, answer, deny, asked, said
):
    """Lessons: deny beats allow, and a hook's allow does not beat a rule of denial."""
    requests = []

    async def ask(request):
        requests.append(request)
        return ApprovalAnswer("once")

    session = await stage.hooked([hook(before_tool_call=lambda *_: answer)], TOUCH, DONE)
    rules = RuleSet(deny=tuple(map(parse_rule, deny)))
    policy = PermissionPolicy(str(stage.folder), str(stage.home), rules=rules, ask=ask)
    session.setup = dataclasses.replace(session.setup, policy=policy)
    (text,) = result_texts(await seen(session, "go"))
    assert len(requests) == asked
    assert (text == said) if said else not (stage.folder / "made").exists()


TOUCH = {"tool_calls": [call("bash", command="touch made; echo ok")]}
