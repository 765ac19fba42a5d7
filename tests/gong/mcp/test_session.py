"""Servers of a session, in real processes: their tools are offered, run and asked about (M182)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import pytest

from gong.agent import events
from gong.config import PermissionSettings
from gong.repl.commands import mcp
from gong.repl.commands.table import answer_command
from tape.model.entries import Approval, Audio, Context, Image, ToolResult, join_texts
from tests import warm
from tests.gong.agent.conftest import call, seen
from tests.gong.mcp.conftest import SAMPLE
from tests.gong.mcp.sample_server import NOTHING, ODD

DEFAULT = {"permissions": PermissionSettings()}


def results(session):
    """Return the results on the path of a session."""
    return [one.data for one in session.recorder.path if isinstance(one.data, ToolResult)]


def texts(session):
    return [join_texts(one.content) for one in results(session)]


async def test_tools_of_a_server_are_offered_in_order_with_their_schemas(stage):
    """M182: what all providers take is left as it is; a boolean in a schema's place is not."""
    session = await stage.session({"text": "hello"})
    before = session.setup.tools.active
    await seen(session, "hi")
    own = session.setup.tools.active[len(before) :]
    assert own == tuple(f"sample__{name}" for name in sorted(own_name for own_name in NAMES))
    specs = {spec.name: spec for spec in session.setup.tools.specs()}
    taken = {**ODD, "properties": {**ODD["properties"], "any": {}}}
    assert (
        bytes(specs["sample__echo"].parameters) == json.dumps(taken, separators=(",", ":")).encode()
    )
    assert json.loads(bytes(specs["sample__zeta"].parameters)) == NOTHING


NAMES = ("zeta", "echo", "ask", "media", "numbers", "steps", "sleep", "die", "grow", "long", "env")


async def test_results_keep_what_a_server_sent(stage):
    tools = [call("sample__media"), call("sample__numbers"), call("sample__long")]
    session = await stage.session({"tool_calls": tools}, {"text": "done"})
    await seen(session, "hi")
    media, numbers, long = results(session)
    assert [type(one) for one in media.content if type(one) in {Image, Audio}] == [Image, Audio]
    assert "[Resource memo://2]\ninside" in join_texts(media.content)
    assert join_texts(numbers.content) == '{"n": [1, 2]}'
    assert json.loads(bytes(numbers.details))["structured"] == {"n": [1, 2]}
    assert "truncated" in join_texts(long.content)
    assert session.recorder.tape.load(long.full).decode() == "row\n" * 5000


async def test_progress_and_log_messages_are_output_so_far(stage):
    session = await stage.session({"tool_calls": [call("sample__steps")]}, {"text": "done"})
    shown = [
        one for one in await seen(session, "hi") if isinstance(one, events.ToolExecutionUpdate)
    ]
    assert [one.output for one in shown] == ["1/2 half\n", "info: a log line\n"]


@pytest.fixture(params=["http", "sse"])
def served(request):
    """The sample server on a port of its own; its entry of mcp.json."""
    command = [sys.executable, str(Path(__file__).parent / "sample_server.py"), request.param]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        address = f"http://127.0.0.1:{process.stdout.readline().strip()}"
        path = {"http": "/mcp", "sse": "/sse"}[request.param]
        yield {"type": request.param, "url": address + path}
        process.kill()


async def test_a_server_is_reached_over_http(served, stage):
    """M182: streamable HTTP, and the older transport with server-sent events."""
    stage.use(remote=served)
    asks = {"tool_calls": [call("remote__echo", text="over there")]}
    session = await stage.session(asks, {"text": "done"})
    await seen(session, "hi")
    (result,) = results(session)
    assert (join_texts(result.content), result.is_error) == (str({"text": "over there"}), False)


async def test_without_a_rule_nothing_of_a_server_runs(stage):
    """M182: annotations of the server allow nothing."""
    session = await stage.session(
        {"tool_calls": [call("sample__echo", text="a")]}, {"text": "done"}, **DEFAULT
    )
    await seen(session, "hi")
    (result,) = results(session)
    assert result.is_error
    (said,) = [one.data for one in session.recorder.path if isinstance(one.data, Approval)]
    assert (said.decision, said.by) == ("deny", "headless")
    assert said.reason == (
        "sample__echo is not known to only read (the server sample says that it only reads)"
    )


async def test_a_rule_about_the_server_allows_its_tools(stage):
    permissions = PermissionSettings(allow=("mcp__sample",))
    session = await stage.session(
        {"tool_calls": [call("sample__echo", text="a")]}, {"text": "done"}, permissions=permissions
    )
    await seen(session, "hi")
    assert texts(session) == ["{'text': 'a'}"]


async def test_plan_mode_refuses_them(stage):
    permissions = PermissionSettings(mode="plan")
    session = await stage.session(
        {"tool_calls": [call("sample__echo")]}, {"text": "done"}, permissions=permissions
    )
    await seen(session, "hi")
    assert [one.is_error for one in results(session)] == [True]


async def test_a_question_of_a_server_is_declined_without_a_person(stage):
    session = await stage.session({"tool_calls": [call("sample__ask")]}, {"text": "done"})
    await seen(session, "hi")
    assert texts(session) == ["decline None"]


async def test_a_question_of_a_server_is_asked_and_defaults_apply(stage):
    session = await stage.session({"tool_calls": [call("sample__ask")]}, {"text": "done"})
    session.ask_person()
    asked = []
    async with aclosing(session.submit("hi")) as stream:
        async for event in stream:
            if isinstance(event, events.QuestionAsked):
                asked.append([one.question for one in event.questions])
                answers = "Answer" if len(asked) == 1 else ["(leave out)", "green", "7"]
                session.answer(event.question_id, answers)
    assert asked == [
        ["The MCP server sample asks: Who are you?"],
        ["name", "colour", "age (integer, at least 1)"],
    ]
    assert texts(session) == ["accept {'name': 'Ada', 'colour': 'g', 'age': 7}"]


async def test_changed_tools_are_offered_from_the_next_turn(stage):
    session = await stage.session(
        {"tool_calls": [call("sample__grow")]}, {"text": "one"}, {"text": "two"}
    )
    await seen(session, "hi")
    source = session.setup.sources[0]
    while "sample__grown" not in session.setup.tools.active:
        await asyncio.sleep(0.01)  # the event is on its way
        await source.offer(session.setup.tools, has_person=False)
    assert session.setup.tools.active[-1] == "sample__grown"


async def test_a_dead_server_is_started_again_with_the_next_call(stage):
    dies, lives = [call("sample__die")], [call("sample__echo", text="b")]
    session = await stage.session({"tool_calls": dies}, {"tool_calls": lives}, {"text": "done"})
    told = [one for one in await seen(session, "hi") if isinstance(one, events.Warn)]
    died, lived = texts(session)
    assert died.startswith("Tool error (sample__die): the MCP server sample is down")
    assert lived == "{'text': 'b'}"
    assert len(told) <= 1
    assert session.setup.sources[0].connections["sample"].starts == 2


async def test_a_server_that_fails_is_left_out_with_one_warning(stage):
    """M182"""
    stage.use(
        dead={"command": sys.executable, "args": ["-c", "raise SystemExit(1)"]}, sample=SAMPLE
    )
    session = await stage.session({"text": "one"}, {"text": "two"})
    told = [one.message for one in await seen(session, "a") if isinstance(one, events.Warn)]
    told += [one.message for one in await seen(session, "b") if isinstance(one, events.Warn)]
    assert len(told) == 1
    assert told[0].startswith("MCP server dead is left out: ")
    assert "sample__echo" in session.setup.tools.active


async def test_what_a_server_says_on_its_error_output_is_in_its_log(stage):
    session = await stage.session({"text": "one"})
    await seen(session, "hi")
    log = stage.folder.parent / ".local/state/gong/mcp/sample.log"
    assert log.read_text() == "the sample starts\n"


async def test_secrets_of_the_environment_stay_out_of_a_server(stage, monkeypatch):
    stage.use(sample={**SAMPLE, "env": {**SAMPLE["env"], "OWN": "1"}})
    session = await stage.session({"tool_calls": [call("sample__env")]}, {"text": "done"})
    session.setup.sources[0]._environ = {**session.setup.sources[0]._environ, "X_API_KEY": "k"}
    await seen(session, "hi")
    assert "'OWN'" in texts(session)[0]
    assert "X_API_KEY" not in texts(session)[0]


async def test_chosen_tools_may_name_those_of_a_server(stage):
    session = await stage.session({"text": "one"}, tools=("read", "sample__echo"))
    await seen(session, "hi")
    assert session.setup.tools.active == ("read", "sample__echo")


async def test_chosen_tools_without_any_of_a_server_start_none(stage):
    session = await stage.session({"text": "one"}, tools=("read",))
    await seen(session, "hi")
    assert session.setup.tools.active == ("read",)
    assert session.setup.sources == ()


async def test_a_server_of_a_project_needs_trust(stage):
    stage.use()
    (stage.folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"sample": SAMPLE}}))
    session = await stage.session({"text": "one"})
    await seen(session, "hi")
    assert not any("__" in name for name in session.setup.tools.active)
    assert stage.warnings == [
        "not trusted, so without effect: .mcp.json (gong trust shows and allows it)"
    ]


async def test_a_person_sees_the_servers_and_starts_one_again(stage):
    host = await stage.host({"text": "one"})
    assert answer_command("/mcp", host, busy=False).text == "sample  starts with the next prompt"
    await seen(host.session, "hi")
    shown = answer_command("/mcp", host, busy=False).text
    assert shown.startswith("sample  ready  ask, die, echo")
    again = answer_command("/mcp sample", host, busy=False)
    assert (await again.later).text == shown
    assert host.session.setup.sources[0].connections["sample"].starts == 2
    assert answer_command("/mcp none", host, busy=False).failed


async def test_no_process_is_left_after_the_session(stage):
    session = await stage.session({"text": "one"})
    await seen(session, "hi")
    await session.close()
    assert session.setup.sources[0].connections["sample"].state == "stopped"


async def test_the_tools_of_servers_are_in_the_request_that_is_shown(stage):
    """`gong context` shows what `gong chat` sends, and names servers that fail."""
    dead = {"command": sys.executable, "args": ["-c", "raise SystemExit(1)"]}
    stage.use(sample=SAMPLE, dead=dead)
    session = await stage.session({"text": "one"})
    await seen(session, "hi")
    offered = [spec.name for spec in session.setup.tools.specs()]
    model = session.setup.model.name
    await session.close()
    home = str(stage.folder.parent)
    env = {"PATH": os.environ["PATH"], "HOME": home, "TAPE_HOME": f"{home}/store"}
    command = [warm.BIN / "gong", "context", "--json", "-m", model]
    done = warm.run_text(command, cwd=stage.folder, env=env)
    assert [one["name"] for one in json.loads(done.stdout)["request"]["tools"]] == offered
    assert "sample__echo" in offered
    assert done.stderr.startswith("gong: MCP server dead is left out: ")


def documents(session):
    path = (one.data for one in session.recorder.path)
    return [join_texts(one.content) for one in path if isinstance(one, Context)]


async def test_resources_and_prompts_of_a_server_are_named_in_a_prompt(stage):
    """M182"""
    session = await stage.session({"text": "a"}, {"text": "b"}, {"text": "c"}, {"text": "d"})
    await seen(session, "compare @sample:memo://1, and @nobody:memo://1 with a@b:c")
    assert documents(session) == ['<resource name="sample:memo://1">\na memo\n</resource>']
    await seen(session, "/sample:explain why tides rise")
    assert documents(session)[1:] == [
        '<prompt server="sample" name="explain" role="user">\nExplain why tides rise.\n</prompt>'
    ]
    await seen(session, "/sample:explain topic=tides")
    assert "Explain tides." in documents(session)[2]
    shown = await seen(session, "/sample:explain")
    assert [one.message for one in shown if isinstance(one, events.Warn)] == [
        "/sample:explain needs topic: /sample:explain TOPIC"
    ]
    assert len(documents(session)) == 3


async def test_what_a_server_does_not_have_is_a_warning(stage):
    session = await stage.session({"text": "a"})
    shown = await seen(session, "/sample:nothing @sample:memo://gone")
    said = [one.message for one in shown if isinstance(one, events.Warn)]
    assert said[0] == "sample has no prompt nothing; it has: explain"
    assert mcp.is_server_prompt("/sample:nothing", stage.hosts[0])
    assert not mcp.is_server_prompt("/other:nothing", stage.hosts[0])
