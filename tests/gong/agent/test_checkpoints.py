"""What calls do to files, on the tape: a checkpoint before them, their changes in the result."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256

import pytest

from gong.agent.rewind import plan_undo
from gong.checkpoints.file_recorder import IN_BACKGROUND
from gong.checkpoints.rewind_report import describe_plan, describe_report
from gong.config import CheckpointSettings, PermissionSettings
from gong.errors import FilesElsewhere
from tape.model.entries import Checkpoint, ToolResult, ToolStart
from tape.store.store import Store
from tests.gong.agent.conftest import call, seen
from tests.gong.env.memory import MemoryEnvironment

OLD, NEW = "one\n", "two\n"
FREE = {"permissions": PermissionSettings(mode="bypass", read_before_write=False)}


def digest(text):
    return sha256(text.encode()).hexdigest()


async def run(stage, *calls, **settings):
    """Run calls one after the other, and return the session."""
    turns = [{"tool_calls": [one]} for one in calls]
    session = await stage.session(*turns, {"text": "done"}, **{**FREE, **settings})
    session.use_tools(session.setup.tools.names)
    await seen(session, "go")
    return session


def payloads(session, kind):
    return [one.data for one in session.recorder.path if isinstance(one.data, kind)]


def bytes_of(session, ref):
    return session.recorder.tape.load(ref).decode()


PATCH = "*** Begin Patch\n*** Update File: a.txt\n-one\n+two\n*** End Patch\n"
CHANGES = {
    "edit": call("edit", path="a.txt", oldText="one", newText="two"),
    "write": call("write", path="a.txt", content="two\n"),
    "edit_file": call("edit_file", file_path="a.txt", old_string="one", new_string="two"),
    "write_file": call("write_file", file_path="a.txt", content="two\n"),
    "replace": call("replace", file_path="a.txt", old_string="one", new_string="two"),
    "apply_patch": call("apply_patch", input=PATCH),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_a_file_tool_records_the_file_before_and_after(stage, name):
    (stage.folder / "a.txt").write_text(OLD)
    (stage.folder / "a.txt").chmod(0o640)
    session = await run(stage, CHANGES[name])
    (checkpoint,) = payloads(session, Checkpoint)
    (start,) = payloads(session, ToolStart)
    (result,) = payloads(session, ToolResult)
    assert not result.is_error
    assert checkpoint.call_id == start.call_id == result.call_id
    assert checkpoint.why == "tool"
    (state,) = checkpoint.files
    assert (state.path, state.mode, state.before.digest) == ("a.txt", "100640", digest(OLD))
    (change,) = result.files
    assert (change.path, change.op, change.before, change.after, change.mode) == (
        *("a.txt", "modified", digest(OLD), digest(NEW), "100640"),
    )
    assert bytes_of(session, change.before_blob) == OLD
    assert bytes_of(session, change.after_blob) == NEW


async def test_the_checkpoint_comes_before_the_start_of_its_call(stage):
    session = await run(stage, call("write", path="deep/new.txt", content=NEW))
    kinds = [one.type for one in session.recorder.path]
    assert kinds.index("checkpoint") == kinds.index("tool.start") - 1
    (checkpoint,), (result,) = payloads(session, Checkpoint), payloads(session, ToolResult)
    assert [(one.path, one.before, one.mode) for one in checkpoint.files] == [
        ("deep/new.txt", None, None)
    ]
    (change,) = result.files
    assert (change.op, change.before, change.after) == ("created", None, digest(NEW))


async def test_a_patch_records_every_file_and_a_moved_one_once(stage):
    for name in ("a.txt", "b.txt", "c.txt"):
        (stage.folder / name).write_text(f"{name}\n")
    patch = (
        "*** Begin Patch\n*** Delete File: a.txt\n*** Update File: b.txt\n*** Move to: d/b.txt\n"
        "*** Add File: e.txt\n+new\n*** Update File: c.txt\n-c.txt\n+changed\n*** End Patch\n"
    )
    session = await run(stage, call("apply_patch", input=patch))
    (result,) = payloads(session, ToolResult)
    assert [(one.path, one.op, one.source) for one in result.files] == [
        ("a.txt", "deleted", None),
        ("c.txt", "modified", None),
        ("d/b.txt", "renamed", "b.txt"),
        ("e.txt", "created", None),
    ]
    (checkpoint,) = payloads(session, Checkpoint)
    assert {one.path for one in checkpoint.files} == {
        *("a.txt", "b.txt", "c.txt", "d/b.txt", "e.txt")
    }


async def test_refused_and_failed_calls_record_no_changes(stage):
    (stage.folder / "a.txt").write_text(OLD)
    refused = await run(stage, CHANGES["edit"], permissions=PermissionSettings(mode="default"))
    assert payloads(refused, Checkpoint) == []
    failed = await run(stage, call("edit", path="a.txt", oldText="absent", newText="x"))
    (result,) = payloads(failed, ToolResult)
    assert result.is_error
    assert result.files == ()


async def test_reading_calls_record_nothing(stage):
    (stage.folder / "a.txt").write_text(OLD)
    calls = [call("read", path="a.txt"), call("ls"), call("grep", pattern="one")]
    session = await run(stage, *calls)
    assert payloads(session, Checkpoint) == []
    assert [one.files for one in payloads(session, ToolResult)] == [(), (), ()]


async def test_a_file_behind_a_link_is_recorded_where_it_is(stage):
    (stage.folder / "a.txt").write_text(OLD)
    (stage.folder / "link").symlink_to("a.txt")
    session = await run(stage, call("edit", path="link", oldText="one", newText="two"))
    (result,) = payloads(session, ToolResult)
    assert [(one.path, one.op) for one in result.files] == [("a.txt", "modified")]


async def test_a_file_outside_of_the_folder_has_its_whole_path(stage, tmp_path):
    file = tmp_path / "outside.txt"
    session = await run(stage, call("write", path=str(file), content=NEW))
    (result,) = payloads(session, ToolResult)
    assert [one.path for one in result.files] == [str(tmp_path.resolve() / "outside.txt")]


async def test_the_same_bytes_again_are_no_change(stage):
    (stage.folder / "a.txt").write_text(OLD)
    session = await run(stage, call("write", path="a.txt", content=OLD))
    assert payloads(session, ToolResult)[0].files == ()


async def test_a_command_that_changes_nothing_adds_no_entry(stage):
    (stage.folder / "a.txt").write_text(OLD)
    quiet = call("bash", command="test -e a.txt || touch a.txt")
    session = await run(stage, call("bash", command="echo more >> a.txt"), quiet, quiet)
    (checkpoint,) = payloads(session, Checkpoint)
    assert [one.path for one in checkpoint.files] == ["a.txt"]
    first, *others = payloads(session, ToolResult)
    assert [(one.path, one.op) for one in first.files] == [("a.txt", "modified")]
    assert [one.files for one in others] == [(), ()]


async def test_a_reading_command_records_nothing(stage):
    (stage.folder / "a.txt").write_text(OLD)
    session = await run(stage, call("bash", command="cat a.txt | wc -l"))
    assert payloads(session, Checkpoint) == []


async def test_a_file_that_a_file_tool_wrote_is_not_listed_again(stage):
    session = await run(
        stage, call("write", path="a.txt", content=NEW), call("bash", command="touch b.txt")
    )
    (checkpoint,) = payloads(session, Checkpoint)
    assert [(one.path, one.before) for one in checkpoint.files] == [("a.txt", None)]
    assert [one.path for one in payloads(session, ToolResult)[1].files] == ["b.txt"]


async def test_a_continued_session_lists_only_what_changed_since(stage):
    for name in ("a.txt", "b.txt"):
        (stage.folder / name).write_text(OLD)
    first = await run(stage, call("bash", command="touch c.txt"))
    await first.close()
    (stage.folder / "b.txt").write_text("by a person\n")
    turn = {"tool_calls": [call("bash", command="touch d.txt")]}
    again = await stage.session(turn, {"text": "done"}, recorder=stage.reopened(), **FREE)
    await seen(again, "go")
    newest = payloads(again, Checkpoint)[-1]
    assert [one.path for one in newest.files] == ["b.txt"]


async def test_the_commands_setting_leaves_file_tools_recorded(stage):
    off = CheckpointSettings(commands=False)
    calls = call("bash", command="touch c.txt"), call("write", path="a.txt", content=NEW)
    session = await run(stage, *calls, checkpoints=off)
    (checkpoint,) = payloads(session, Checkpoint)
    assert [one.path for one in checkpoint.files] == ["a.txt"]
    assert payloads(session, ToolResult)[0].files == ()


async def test_a_command_in_the_background_says_what_is_not_recorded_with_it(stage):
    session = await run(stage, call("bash", command="touch c.txt", run_in_background=True))
    (checkpoint,) = payloads(session, Checkpoint)
    assert IN_BACKGROUND in checkpoint.not_covered


async def test_the_tapes_themselves_are_never_recorded(stage):
    stage.store = Store(stage.folder / ".tape")
    session = await run(stage, call("bash", command="touch c.txt"))
    assert payloads(session, Checkpoint) == []
    assert [one.path for one in payloads(session, ToolResult)[0].files] == ["c.txt"]


async def test_what_a_stopped_command_changed_is_recorded(stage):
    (stage.folder / "a.txt").write_text(OLD)
    command = "echo two > a.txt; echo ready; sleep 60"
    session = await stage.session({"tool_calls": [call("bash", command=command)]}, **FREE)
    session.subscribe(lambda event: session.abort() if event.kind == "tool_update" else None)
    with suppress(asyncio.CancelledError):
        await seen(session, "go")
    (result,) = payloads(session, ToolResult)
    assert result.is_error
    assert [(one.path, one.op, one.after) for one in result.files] == [
        ("a.txt", "modified", digest(NEW))
    ]


async def test_another_environment_records_file_tools_and_says_so(stage):
    session = await stage.session(
        {"tool_calls": [call("bash", command="touch c.txt")]},
        {"tool_calls": [call("write", path="a.txt", content=NEW)]},
        {"text": "done"},
        **FREE,
    )
    session.use_environment(Elsewhere(session.setup.env))
    await seen(session, "go")
    first, second = payloads(session, Checkpoint)
    assert first.not_covered == ("What commands change in this environment is not recorded.",)
    assert [(one.path, one.mode) for one in second.files] == [("a.txt", None)]
    assert [(one.op, one.after) for one in payloads(session, ToolResult)[1].files] == [
        ("created", digest(NEW))
    ]


@pytest.mark.parametrize("records", [True, False])
async def test_files_of_another_environment_are_never_undone_here(stage, records):
    """A file of this machine has the same name, and what the other one was left with."""
    other = MemoryEnvironment({"calc.py": b"a - b\n"}, str(stage.folder))
    (stage.folder / "calc.py").write_text("a + b\n")
    (stage.folder / "new.txt").write_text(NEW)
    edit = call("edit", path="calc.py", oldText="a - b", newText="a + b")
    session = await stage.session(
        {"tool_calls": [edit, call("write", path="new.txt", content=NEW)]},
        {"text": "done"},
        {"tool_calls": [call("write", path="here.txt", content=NEW)]},
        {"text": "done"},
        **FREE,
    )
    if not records:
        session.setup = replace(session.setup, file_recorder=None)
    here = session.use_environment(other)
    await seen(session, "go")
    assert other.files[f"{stage.folder}/calc.py"] == b"a + b\n"
    for plan in (plan_undo, lambda one: plan_undo(one, scope="files")):
        with pytest.raises(FilesElsewhere, match="changed in memory, not on this machine") as told:
            plan(session)
        assert told.value.paths == tuple(
            f"memory:{stage.folder}/{name}" for name in ("calc.py", "new.txt")
        )
    session.use_environment(here)
    await seen(session, "and here")
    report = session.apply_rewind(plan_undo(session))
    assert [one.path for one in report.restored] == [str(stage.folder / "here.txt")] * records
    assert (stage.folder / "calc.py").read_text() == "a + b\n"
    assert (stage.folder / "new.txt").read_text() == NEW
    with pytest.raises(FilesElsewhere):
        plan_undo(session)
    session.apply_rewind(plan_undo(session, scope="talk"))
    assert (stage.folder / "new.txt").read_text() == NEW
    assert other.files[f"{stage.folder}/new.txt"] == NEW.encode()


async def test_an_undo_names_the_place_where_unrecorded_changes_stay(stage):
    """A command in another environment: nobody recorded its files."""
    other = MemoryEnvironment({}, str(stage.folder))
    session = await stage.session(
        {"tool_calls": [call("bash", command="make")]}, {"text": "done"}, {"text": "here"}, **FREE
    )
    here = session.use_environment(other)
    await seen(session, "go")
    session.use_environment(here)
    await seen(session, "and here")
    stays = "what commands changed in memory is not recorded and stays there"
    assert plan_undo(session).unrecorded == ()
    plan = plan_undo(session, 2)
    assert describe_plan(plan, 80, how_to_overwrite="x")[-1] == f"{stays}."
    assert plan_undo(session, 2, scope="talk").unrecorded == ()
    report = session.apply_rewind(plan)
    assert describe_report(report, redo="/redo") == (
        f"Undone: 2 prompts, 0 files restored; /redo reverses it; {stays}"
    )


class Elsewhere:
    """An environment that is no local one: it does what the one inside does."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)
