"""A call goes through its steps in one order, and one that fails a step reaches none behind it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from msgspec import Struct

from gong.policy.decision import Verdict
from gong.tools.tool import AgentTool, ToolOutcome
from tape.model.entries import ToolResult, join_texts
from tests.gong.agent.conftest import call, seen
from tests.gong.env.memory import MemoryEnvironment


class Words(Struct, frozen=True):
    text: str


async def test_a_call_is_looked_up_checked_approved_run_cut_emitted_and_returned(stage):
    """M048: lookup, validation, approval, execution, truncation, event, result."""
    session = await stage.session(
        {
            "tool_calls": [
                call("nosuch", text="lookup"),
                call("say", text=7),
                call("say", text="denied"),
                call("say", text="long"),
            ]
        },
        {"text": "done"},
    )
    steps, ends = [], []

    async def decide(prepared):
        text = prepared.values["text"]
        steps.append(("approval", text))
        return Verdict(allowed=text != "denied", text="Not this one.")

    async def say(arguments, context):
        steps.append(("execute", arguments.text))
        return ToolOutcome.from_text("line\n" * 2500)

    session.setup.tools.register(AgentTool("say", "Say it.", Words, say))
    session.setup.tools.set_active(("say",))
    session.setup = replace(session.setup, policy=decide)

    def watch(event):
        if event.kind == "tool_end":
            ends.append(event)
            steps.append(("emit", join_texts(event.content)[:13]))
        if event.kind == "message_start":
            steps.append(("call of the model",))

    session.subscribe(watch)
    await seen(session, "go")
    assert steps == [
        ("call of the model",),
        *(("emit", "Unknown tool:"), ("emit", "Invalid argum")),
        *(("approval", "denied"), ("emit", "Not this one.")),
        *(("approval", "long"), ("execute", "long"), ("emit", "line\nline\nlin")),
        ("call of the model",),
    ]
    returned = [e.data for e in session.recorder.path if isinstance(e.data, ToolResult)]
    assert [one.is_error for one in returned] == [True, True, True, False]
    assert "\n...500 lines truncated...\n" in join_texts(returned[-1].content)
    [end] = [event for event in ends if event.kept is not None]
    assert session.read_output(end) == "line\n" * 2500


class SlowDisk(MemoryEnvironment):
    """Files that take for ever to write."""

    def __init__(self, files, folder, begun):
        super().__init__(files, folder)
        self._begun = begun

    async def write_file(self, path, data, root=None):
        self._begun()
        await asyncio.Event().wait()


async def test_a_stopped_edit_says_so_and_the_file_stays(stage):
    """M075: "Operation aborted"."""
    edit = call("edit", path="a.txt", oldText="one", newText="two")
    session = await stage.session({"tool_calls": [edit]}, {"text": "never"})
    session.configure(read_before_write=False)
    disk = SlowDisk({"a.txt": b"one"}, str(stage.folder), session.abort)
    session.use_environment(disk)
    assert (await seen(session, "go"))[-1].stop_reason == "aborted"
    [result] = [e.data for e in session.recorder.path if isinstance(e.data, ToolResult)]
    assert (join_texts(result.content), result.is_error) == ("Operation aborted", True)
    assert list(disk.files.values()) == [b"one"]
