"""`gong acp` in a process of its own, driven by the client of the protocol's package."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from acp import RequestError, image_block, resource_link_block, spawn_agent_process, text_block
from acp.helpers import embedded_text_resource, resource_block
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    FileSystemCapabilities,
    McpServerStdio,
    ReadTextFileResponse,
    RequestPermissionResponse,
    WriteTextFileResponse,
)
from msgspec import Raw

from gong import __version__
from gong.acp.updates import _build_sources
from gong.cli.acp import list_offered_models
from gong.config import Settings
from gong.hosting.hub import HostOffer, SessionHub
from tape.model.entries import Text
from tests import warm
from tests.gong.env.sandbox.world import needs_bubblewrap

SERVER = str(Path(__file__).parent.parent / "mcp/sample_server.py")
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()


class Client:
    """An editor: it notes updates, and answers questions about calls as it is told."""

    def __init__(self, choice):
        self.choice, self.updates, self.asked, self.questions = choice, [], [], []
        self.was_asked = asyncio.Event()
        self.unsaved, self.written, self.read, self.saves = {}, {}, [], True

    async def request_permission(self, session_id, tool_call, options, **_):
        self.asked.append((tool_call.title, [option.option_id for option in options]))
        self.questions.append(tool_call)
        self.was_asked.set()
        if self.choice == "wait":
            await asyncio.sleep(60)
        if self.choice is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        outcome = AllowedOutcome(outcome="selected", option_id=self.choice)
        return RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)

    async def read_text_file(self, session_id, path, **_):
        self.read.append(path)
        if path not in self.unsaved:
            raise RequestError.resource_not_found(path)
        return ReadTextFileResponse(content=self.unsaved[path])

    async def write_text_file(self, session_id, path, content, **_):
        self.written[path] = content
        if self.saves:
            Path(path).write_text(content)  # noqa: ASYNC240
        return WriteTextFileResponse()

    def on_connect(self, conn):
        pass

    async def ext_method(self, method, params):
        return {}

    async def ext_notification(self, method, params):
        pass

    @property
    def kinds(self):
        return [update.session_update for update in self.updates]

    @property
    def text(self):
        return "".join(
            one.content.text for one in self.updates if one.session_update == "agent_message_chunk"
        )


async def delete(agent, session):
    """Ask for what the client of the package has no method for."""
    await agent._conn.send_request("session/delete", {"sessionId": session})


@pytest.fixture
def edit(tmp_path):
    """Open a connection: `async with edit(choice) as (client, agent, folder)`."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "notes.txt").write_text("a zebra\n")

    @asynccontextmanager
    async def opened(choice="once", *, files=False, answers=None, tools=()):
        client = Client(choice)
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
        (tmp_path / "script.json").write_text(json.dumps(answers))
        if tools:
            config = tmp_path / ".config/gong/config.toml"
            config.parent.mkdir(parents=True)
            config.write_text(f"tools = {json.dumps(tools)}")
        model = "offline/rules" if answers is None else f"scripted/{tmp_path}/script.json"
        command = [str(warm.find_commands() / "gong"), "acp", "-m", model]
        async with spawn_agent_process(client, *command, env=env, cwd=work) as (agent, process):
            fs = FileSystemCapabilities(read_text_file=True, write_text_file=True)
            offered = ClientCapabilities(fs=fs if files else None)
            await agent.initialize(protocol_version=1, client_capabilities=offered)
            yield client, agent, str(work)
        assert process.returncode == 0

    return opened


async def test_a_prompt_runs_and_its_updates_come_before_the_answer(edit):
    async with edit() as (client, agent, folder):
        made = await agent.new_session(cwd=folder, mcp_servers=[])
        done = await agent.prompt(
            session_id=made.session_id, prompt=[text_block("run touch zebra.txt && echo done")]
        )
        assert (done.stop_reason, done.usage.total_tokens > 0) == ("end_turn", True)
        assert client.text.endswith("printed: done")
        assert client.asked == [("bash touch zebra.txt && echo done", ["once", "always", "no"])]
        calls = [one for one in client.updates if one.session_update.startswith("tool_call")]
        assert [one.status for one in calls] == [
            *("pending", "in_progress", "in_progress", "completed"),
        ]
        assert calls[2].content[0].content.text == "done\n"
        assert (calls[0].kind, calls[0].raw_input) == (
            *("execute", {"command": "touch zebra.txt && echo done"}),
        )
        assert "usage_update" in client.kinds
        assert os.path.exists(f"{folder}/zebra.txt")  # noqa: ASYNC240, PTH110


async def test_an_answer_that_is_not_whole_says_why(edit):
    """M237: in `_meta` of the answer to the prompt; a whole one says nothing."""
    empty, cut = {"text": ""}, {"text": "half", "stop_reason": "length"}
    async with edit(answers=[empty, empty, cut, {"text": "whole"}]) as (_, agent, folder):
        made = await agent.new_session(cwd=folder, mcp_servers=[])
        done = [
            await agent.prompt(session_id=made.session_id, prompt=[text_block("go")])
            for _ in range(3)
        ]
    assert [(one.stop_reason, one.field_meta["gong"].get("incomplete")) for one in done] == [
        ("end_turn", "the answer is empty"),
        ("max_tokens", "the answer was cut at the limit of its length (max_output_tokens)"),
        ("end_turn", None),
    ]


@pytest.mark.parametrize("choice", ["no", None])
async def test_a_call_that_is_denied_does_not_run(edit, choice):
    async with edit(choice) as (client, agent, folder):
        made = await agent.new_session(cwd=folder, mcp_servers=[])
        await agent.prompt(session_id=made.session_id, prompt=[text_block("run touch a.txt")])
        assert [one.status for one in client.updates if one.session_update == "tool_call_update"][
            -1
        ] == "failed"
        assert not os.path.exists(f"{folder}/a.txt")  # noqa: ASYNC240, PTH110


async def test_cancel_stops_a_run_that_waits(edit):
    async with edit("wait") as (client, agent, folder):
        made = await agent.new_session(cwd=folder, mcp_servers=[])
        running = asyncio.create_task(
            agent.prompt(session_id=made.session_id, prompt=[text_block("run touch a.txt")])
        )
        await asyncio.wait_for(client.was_asked.wait(), 30)
        await agent.cancel(session_id=made.session_id)
        assert (await running).stop_reason == "cancelled"


async def test_load_shows_a_session_again_and_resume_does_not(edit):
    async with edit() as (client, agent, folder):
        made = await agent.new_session(cwd=folder, mcp_servers=[])
        first = made.session_id
        await agent.prompt(session_id=first, prompt=[text_block("run echo zebra")])
        await agent.close_session(session_id=first)
        (listed,) = (await agent.list_sessions(cwd=folder)).sessions
        assert (listed.session_id, listed.title, listed.cwd) == (first, "run echo zebra", folder)
        client.updates.clear()
        await agent.load_session(cwd=folder, session_id=first, mcp_servers=[])
        assert client.kinds == [
            *("user_message_chunk", "tool_call", "tool_call_update", "agent_message_chunk"),
            "available_commands_update",
        ]
        assert client.updates[0].message_id != client.updates[3].message_id
        await agent.close_session(session_id=first)
        client.updates.clear()
        await agent.resume_session(session_id=first, cwd=folder, mcp_servers=[])
        assert client.kinds in ([], ["available_commands_update"])
        await agent.prompt(session_id=first, prompt=[text_block("run echo otter")])
        assert client.text.endswith("otter")


async def test_mode_model_and_effort_change(edit):
    async with edit("no") as (client, agent, folder):
        made = await agent.new_session(cwd=folder, mcp_servers=[])
        assert {one.id: one.category for one in made.config_options} == {
            "mode": "mode",
            "model": "model",
            "effort": "thought_level",
        }
        await agent.set_session_mode(session_id=made.session_id, mode_id="bypass")
        changed = await agent.set_config_option(
            config_id="effort", session_id=made.session_id, value="high"
        )
        current = {one.id: one.current_value for one in changed.config_options}
        assert (current["mode"], current["effort"]) == ("bypass", "high")
        assert "current_mode_update" in client.kinds
        await agent.prompt(session_id=made.session_id, prompt=[text_block("run touch a.txt")])
        assert client.asked == []
        for wrong in (("model", "nobody/nothing"), ("colour", "red"), ("mode", "mad")):
            with pytest.raises(RequestError):
                await agent.set_config_option(
                    config_id=wrong[0], session_id=made.session_id, value=wrong[1]
                )


async def test_files_and_pictures_go_along_with_a_prompt(edit):
    async with edit() as (client, agent, folder):
        made = await agent.new_session(cwd=folder, mcp_servers=[])
        resource = embedded_text_resource("file:///src/a.py", "x = 'otter'")
        await agent.prompt(
            session_id=made.session_id,
            prompt=[
                text_block("think about"),
                resource_link_block("notes", f"file://{folder}/notes.txt"),
                resource_block(resource),
                image_block(PIXEL, "image/png"),
            ],
        )
        await agent.close_session(session_id=made.session_id)
        client.updates.clear()
        await agent.load_session(cwd=folder, session_id=made.session_id, mcp_servers=[])
        blocks = [one.content for one in client.updates if "user" in one.session_update]
        assert [one.data for one in blocks if one.type == "image"] == [PIXEL]
        shown = "".join(one.text for one in blocks if one.type == "text")
        assert f"@{folder}/notes.txt" in shown
        assert "x = 'otter'" in shown


async def test_errors_name_what_is_wrong(edit):
    async with edit() as (_, agent, folder):
        made = await agent.new_session(cwd=folder, mcp_servers=[])
        with pytest.raises(RequestError, match="no session 'none' is open here"):
            await agent.prompt(session_id="none", prompt=[text_block("x")])
        with pytest.raises(RequestError):
            await agent.load_session(cwd=folder, session_id="0" * 32, mcp_servers=[])
        with pytest.raises(RequestError):
            await agent.list_sessions(cursor="x")
        with pytest.raises(RequestError):
            await agent.fork_session(session_id="x", cwd=folder)
        with pytest.raises(RequestError, match="is not the id of a session"):
            await delete(agent, made.session_id[:8])
        with pytest.raises(RequestError):
            await agent.new_session(cwd="/nowhere/at/all", mcp_servers=[])


async def test_a_fork_begins_in_another_session_also_at_an_entry_of_it(edit):
    async with edit() as (client, agent, folder):
        made = await agent.new_session(cwd=folder, mcp_servers=[])
        await agent.prompt(session_id=made.session_id, prompt=[text_block("run echo zebra")])
        await agent.close_session(session_id=made.session_id)
        client.updates.clear()
        await agent.load_session(cwd=folder, session_id=made.session_id, mcp_servers=[])
        answer = next(one.message_id for one in client.updates if "agent" in one.session_update)
        whole = await agent.fork_session(session_id=made.session_id, cwd=folder)
        await agent.prompt(session_id=whole.session_id, prompt=[text_block("run echo otter")])
        part = await agent.fork_session(
            session_id=made.session_id, cwd=folder, tape={"at": answer[:12]}
        )
        assert len({made.session_id, whole.session_id, part.session_id}) == 3
        listed = (await agent.list_sessions(cwd=folder)).sessions
        entries = {one.session_id: one.field_meta["tape"]["entries"] for one in listed}
        assert entries[whole.session_id] > 1


async def test_a_deleted_session_is_in_the_trash(edit, tmp_path):
    async with edit() as (_, agent, folder):
        made = await agent.new_session(cwd=folder, mcp_servers=[])
        await agent.prompt(session_id=made.session_id, prompt=[text_block("run echo zebra")])
        await delete(agent, made.session_id)
        await delete(agent, made.session_id)
        assert (await agent.list_sessions(cwd=folder)).sessions == []
        assert len([*tmp_path.glob(".tape/trash/*")]) == 1


def call(name, **args):
    return [{"tool_calls": [{"name": name, "args": args}]}, {"text": "done"}]


async def test_the_servers_of_the_editor_offer_their_tools(edit):
    async with edit("always", answers=call("own__echo", text="an otter")) as (
        client,
        agent,
        folder,
    ):
        server = McpServerStdio(name="own", command=sys.executable, args=[SERVER], env=[])
        made = await agent.new_session(cwd=folder, mcp_servers=[server])
        await agent.prompt(session_id=made.session_id, prompt=[text_block("say it")])
        end = next(one for one in client.updates if one.session_update == "tool_call_update"
                   and one.status == "completed")  # fmt: skip
        assert "an otter" in end.content[0].content.text


async def test_what_is_not_saved_is_read(edit):
    async with edit("always", files=True, answers=call("read", path="notes.txt")) as opened:
        client, agent, folder = opened
        client.unsaved[f"{folder}/notes.txt"] = "an otter that is not saved\n"
        made = await agent.new_session(cwd=folder, mcp_servers=[])
        await agent.prompt(session_id=made.session_id, prompt=[text_block("read it")])
        end = next(one for one in client.updates if one.session_update == "tool_call_update"
                   and one.status == "completed")  # fmt: skip
        assert "an otter that is not saved" in end.content[0].content.text


@pytest.mark.parametrize("saves", [True, False])
async def test_a_write_goes_through_the_editor_and_is_on_the_disk_in_every_case(edit, saves):
    answers = call("write", path="made.txt", content="a heron\n")
    async with edit("always", files=True, answers=answers) as (client, agent, folder):
        client.saves = saves
        made = await agent.new_session(cwd=folder, mcp_servers=[])
        await agent.prompt(session_id=made.session_id, prompt=[text_block("write it")])
        assert client.written == {f"{folder}/made.txt": "a heron\n"}
        assert Path(folder, "made.txt").read_text() == "a heron\n"  # noqa: ASYNC240


@needs_bubblewrap
async def test_a_write_outside_of_the_sandbox_does_not_reach_the_editor(edit, tmp_path):
    config = tmp_path / ".config/gong/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('sandbox = "workspace-write"\npermissions.mode = "bypass"\n')
    answers = [
        {"tool_calls": [{"name": "write", "args": {"path": path, "content": "a heron\n"}}]}
        for path in ("../made.txt", "made.txt")
    ]
    answers.append({"text": "done"})
    async with edit(files=True, answers=answers) as (client, agent, folder):
        made = await agent.new_session(cwd=folder, mcp_servers=[])
        await agent.prompt(session_id=made.session_id, prompt=[text_block("write it")])
    assert [*client.written] == [f"{folder}/made.txt"]
    assert not (tmp_path / "made.txt").exists()


@needs_bubblewrap
async def test_an_editor_chooses_the_sandbox_of_a_session(edit, tmp_path):
    """M179: a field of session/new, and what is none."""
    async with edit("once") as (_, agent, folder):
        made = await agent.new_session(
            cwd=folder, mcp_servers=[], gong={"sandbox": "workspace-write"}
        )
        await agent.set_session_mode(session_id=made.session_id, mode_id="bypass")
        text = text_block("run echo x > ../outside; echo y > inside")
        await agent.prompt(session_id=made.session_id, prompt=[text])
        for wrong in ("all", []):
            with pytest.raises(RequestError):
                await agent.new_session(cwd=folder, mcp_servers=[], gong={"sandbox": wrong})
    assert (tmp_path / "work/inside").exists()
    assert not (tmp_path / "outside").exists()


async def test_further_folders_of_a_session_are_worked_in(edit, tmp_path):
    other = f"{tmp_path}/other"
    async with edit("no") as (_, agent, folder):
        made = await agent.new_session(cwd=folder, mcp_servers=[], additional_directories=[other])
        await agent.prompt(session_id=made.session_id, prompt=[text_block("run echo a")])
        with pytest.raises(RequestError):
            await agent.new_session(cwd=folder, mcp_servers=[], additional_directories=["relative"])
    hub = SessionHub(None, lambda _: Settings(), {}, lambda _: None, program="x")
    front = hub._build_front("/", offer=HostOffer(folders=(other,)))
    assert front.settings.permissions.folders == (other,)


async def test_a_request_to_cancel_a_prompt_stops_it(edit):
    async with edit("wait") as (client, agent, folder):
        made = await agent.new_session(cwd=folder, mcp_servers=[])
        sent = []
        agent._conn.add_observer(lambda event: sent.append(event.message))
        running = asyncio.create_task(
            agent.prompt(session_id=made.session_id, prompt=[text_block("run touch a.txt")])
        )
        await asyncio.wait_for(client.was_asked.wait(), 30)
        prompt = next(one for one in sent if one.get("method") == "session/prompt")
        for wanted in ("none", prompt["id"]):
            await agent._conn.send_notification("$/cancel_request", {"requestId": wanted})
        assert (await running).stop_reason == "cancelled"


async def test_skills_are_commands_that_can_be_typed(edit):
    async with edit() as (client, agent, folder):
        made = await agent.new_session(cwd=folder, mcp_servers=[])
        await agent.prompt(session_id=made.session_id, prompt=[text_block("run echo zebra")])
        told = next(one for one in client.updates if "commands" in one.session_update)
        commands = {one.name: one for one in told.available_commands}
        assert {"commit", "review-pr"} <= {*commands}
        assert commands["review-pr"].input.root.hint


PATCH = """*** Begin Patch
*** Update File: notes.txt
@@
-a zebra
+an otter
*** Add File: sub/new.txt
+new
*** End Patch"""
CHANGES = {
    "edit": (
        {"path": "notes.txt", "oldText": "zebra", "newText": "heron"},
        [("notes.txt", "zebra", "heron")],
        [("notes.txt", "a zebra\n", "a heron\n")],
    ),
    "edit_file": (
        {"file_path": "notes.txt", "old_string": "zebra", "new_string": "heron"},
        [("notes.txt", "zebra", "heron")],
        [("notes.txt", "a zebra\n", "a heron\n")],
    ),
    "replace": (
        {"file_path": "notes.txt", "old_string": "zebra", "new_string": "heron"},
        [("notes.txt", "zebra", "heron")],
        [("notes.txt", "a zebra\n", "a heron\n")],
    ),
    "write": (
        {"path": "notes.txt", "content": "b\n"},
        [("notes.txt", "a zebra\n", "b\n")],
        [("notes.txt", "a zebra\n", "b\n")],
    ),
    "write_file": (
        {"file_path": "new.txt", "content": "b\n"},
        [("new.txt", None, "b\n")],
        [("new.txt", None, "b\n")],
    ),
    "apply_patch": (
        {"input": PATCH},
        [("notes.txt", "a zebra\n", "an otter\n"), ("sub/new.txt", None, "new\n")],
        [("notes.txt", "a zebra\n", "an otter\n"), ("sub/new.txt", None, "new\n")],
    ),
}


def read_diffs(update, folder):
    """Return the diffs of an update, their paths relative to a folder."""
    return [
        (one.path.removeprefix(f"{folder}/"), one.old_text, one.new_text)
        for one in update.content or ()
        if one.type == "diff"
    ]


@pytest.mark.parametrize("tool", CHANGES)
async def test_a_change_is_shown_as_a_diff_before_it_after_it_and_on_load(edit, tool):
    arguments, planned, done = CHANGES[tool]
    read = {"tool_calls": [{"name": "read", "args": {"path": "notes.txt"}}]}
    answers = [read, *call(tool, **arguments)]
    async with edit("once", answers=answers, tools=["read", tool]) as (client, agent, folder):
        made = await agent.new_session(cwd=folder, mcp_servers=[])
        await agent.prompt(session_id=made.session_id, prompt=[text_block("do it")])
        paths = [f"{folder}/{path}" for path, _, _ in planned]
        (question,) = client.questions
        begun = [one for one in client.updates if one.session_update == "tool_call"][-1]
        assert question.field_meta["details"]["diff" if tool != "apply_patch" else "files"]
        for one in (begun, question):
            assert read_diffs(one, folder) == planned
            assert [place.path for place in one.locations] == paths
        steps = [one for one in client.updates if one.session_update == "tool_call_update"]
        assert {one.tool_call_id for one in steps} > {begun.tool_call_id}
        own = [one for one in steps if one.tool_call_id == begun.tool_call_id]
        assert [one.status for one in own] == ["in_progress", "completed"]
        assert {(one.title, one.kind) for one in own} == {(begun.title, "edit")}
        assert [one.raw_input for one in own] == [arguments, arguments]
        assert read_diffs(own[-1], folder) == done
        assert [place.path for place in own[-1].locations] == paths
        await agent.close_session(session_id=made.session_id)
        client.updates.clear()
        await agent.load_session(cwd=folder, session_id=made.session_id, mcp_servers=[])
        again = [one for one in client.updates if "tool_call" in one.session_update][-2:]
        assert [(one.title, one.kind, one.raw_input) for one in again] == [
            (begun.title, "edit", arguments)
        ] * 2
        assert read_diffs(again[-1], folder) == done
        assert [place.path for place in again[-1].locations] == paths


async def test_a_change_that_failed_shows_no_diff_at_its_end(edit):
    answers = call("edit", path="notes.txt", oldText="tiger", newText="x")
    async with edit("once", answers=answers) as (client, agent, folder):
        made = await agent.new_session(cwd=folder, mcp_servers=[])
        await agent.prompt(session_id=made.session_id, prompt=[text_block("do it")])
        (end,) = [one for one in client.updates if getattr(one, "status", "") == "failed"]
        assert [one.type for one in end.content] == ["content"]
        assert end.locations[0].path == f"{folder}/notes.txt"


async def test_usage_comes_after_the_results_of_an_answer(edit):
    calls = [{"name": "read", "args": {"path": "notes.txt"}} for _ in range(2)]
    answers = [{"tool_calls": calls}, {"text": "done"}]
    async with edit("once", answers=answers) as (client, agent, folder):
        made = await agent.new_session(cwd=folder, mcp_servers=[])
        await agent.prompt(session_id=made.session_id, prompt=[text_block("do it")])
        assert [one for one in client.kinds if one != "available_commands_update"] == [
            *("tool_call", "tool_call"),
            *("tool_call_update",) * 4,
            "usage_update",
            "agent_message_chunk",
            "usage_update",
        ]
        sizes = [one.size for one in client.updates if one.session_update == "usage_update"]
        assert sizes == [0, 0]  # the window of a scripted model is not known


async def test_models_that_are_named_are_offered_and_answers_say_which_one_runs(edit, tmp_path):
    config = tmp_path / ".config/gong/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('model = "scripted/configured.json"\n')
    async with edit("once", answers=[{"text": "hello"}]) as (_, agent, folder):
        made = await agent.new_session(cwd=folder, mcp_servers=[])
        own = f"scripted/{tmp_path}/script.json"
        chosen = next(one for one in made.config_options if one.id == "model")
        assert chosen.current_value == own
        assert [one.value for one in chosen.options][:2] == [own, "scripted/configured.json"]
        assert made.field_meta == {"gong": {"model": own}}
        done = await agent.prompt(session_id=made.session_id, prompt=[text_block("hi")])
        assert done.field_meta == {"gong": {"model": own}}


def test_the_model_of_the_environment_is_offered_beside_that_of_the_file(tmp_path):
    config = tmp_path / ".config/gong/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('model = "scripted/file.json"\n[aliases]\nfast = "scripted/fast.json"\n')
    environ = {"HOME": str(tmp_path), "GONG_MODEL": "fast"}
    assert list_offered_models("scripted/flag.json", environ, str(tmp_path)) == [
        "scripted/flag.json",
        "scripted/fast.json",
        "scripted/file.json",
    ]
    assert list_offered_models("nobody/none", {"HOME": str(tmp_path)}, str(tmp_path)) == [
        "scripted/file.json"
    ]


def write_line(identity, method, **params):
    """Return a request as a line."""
    message = {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}
    return json.dumps(message).encode() + b"\n"


DEEP = b"[" * 200_000 + b"]" * 200_000


@pytest.mark.parametrize("is_file", [True, False])
def test_lines_that_are_no_request_are_answered_and_the_connection_lives(tmp_path, is_file):
    """M178: an answer that nobody waits for is an error."""
    lines = [
        b"not JSON\n",
        DEEP + b"\n",
        b'{"id": 1, "method": "initialize", "params": ' + DEEP + b"}\n",
        b"[]\n",
        b'{"id": [1], "method": "initialize"}\n',
        b'{"jsonrpc": "2.0", "id": 7, "result": {}}\n',
        b'{"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": {}}}\n',
        b"\n",
        write_line(2, "initialize", protocolVersion=1),
        write_line(3, "session/list", cwd=str(tmp_path)).strip(),
    ]
    asked, answered = tmp_path / "in", tmp_path / "out"
    asked.write_bytes(b"".join(lines))
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    command = [warm.BIN / "gong", "acp"]
    if is_file:
        with asked.open("rb") as reads, answered.open("wb") as writes:
            done = subprocess.run(
                command, stdin=reads, stdout=writes, stderr=-1, check=True, env=env
            )
        out = answered.read_bytes()
    else:
        done = subprocess.run(
            command, input=asked.read_bytes(), capture_output=True, check=True, env=env
        )
        out = done.stdout
    found = [json.loads(line) for line in out.splitlines()]
    codes = [(one["id"], one.get("error", {}).get("code")) for one in found]
    assert codes[-1][1] is codes[-2][1] is None
    assert sorted(one for one, _ in codes[-2:]) == [2, 3]
    assert codes[:-2] == [(None, -32700)] * 3 + [(None, -32600)] * 3
    assert found[5]["error"]["message"] == "no request 7 waits for an answer"
    assert done.stderr == b""


def test_what_is_no_text_is_marked_and_what_is_no_name_is_refused(tmp_path):
    """Half a surrogate pair, bytes that are not UTF-8, zero bytes, and no base64."""
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    command = [warm.BIN / "gong", "acp", "-m", "offline/rules"]
    process = subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, env=env)
    number = 0

    def ask(method, **params):
        nonlocal number
        number += 1
        line = write_line(number, method, **params).replace(b"BYTE", b"\xff")
        process.stdin.write(line)
        process.stdin.flush()
        for line in process.stdout:
            if (answer := json.loads(line)).get("id") == number:
                return answer.get("result", answer.get("error"))
        return None

    where = {"cwd": str(tmp_path), "mcpServers": []}
    session = ask("session/new", **where)["sessionId"]
    for cwd in ("", f"{tmp_path}\0"):
        assert ask("session/new", **{**where, "cwd": cwd})["code"] == -32602
    assert ask("session/new", **where, additionalDirectories=["/a\0"])["code"] == -32602
    assert ask("session/list", cursor="9" * 5000)["code"] == -32602
    picture = {"type": "image", "data": "abcde", "mimeType": "image/png"}
    linked = {"type": "resource", "resource": {"uri": "file:///a", "text": "kept out"}}
    for blocks in ([linked, picture], []):
        assert ask("session/prompt", sessionId=session, prompt=blocks)["code"] == -32602
    words = [{"type": "text", "text": "a\ud800b\0cBYTEd"}]
    assert ask("session/prompt", sessionId=session, prompt=words)["stopReason"] == "end_turn"
    _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, b"")
    tape = subprocess.run(
        [warm.BIN / "tape", "cat", "--json"], env=env, cwd=tmp_path, capture_output=True, check=True
    )
    (said,) = [one for one in json.loads(tape.stdout) if one["type"] == "user"]
    assert [one["text"] for one in said["data"]["content"]] == ["a\ufffdb\ufffdc\ufffdd"]
    assert b"kept out" not in tape.stdout


def test_the_entry_of_the_registry_is_that_of_this_version():
    entry = json.loads(Path("docs/acp-agent.json").read_text("utf-8"))
    assert (entry["id"], entry["version"], entry["license"]) == ("gong", __version__, "MIT")
    assert entry["distribution"]["uvx"] == {"package": "gong[acp]", "args": ["acp"]}


def test_the_pages_that_an_answer_cites_are_its_last_words():
    note = b'{"type":"url_citation","url":"https://a.example/","title":"Page A"}'
    cited = Text("It is 42.", wire=Raw(b'{"annotations":[' + note + b"]}"))
    (update,) = _build_sources("e1", (cited,))
    assert (update.session_update, update.message_id) == ("agent_message_chunk", "e1")
    assert update.content.text == "\n\nSources:\n[1] Page A – https://a.example/"
    assert [*_build_sources("e1", (Text("plain"),))] == []
