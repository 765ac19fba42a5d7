"""What calls do to files, on the tape: a checkpoint before them, their changes in the result."""

from __future__ import annotations

from hashlib import sha256

import pytest

from gong.config import PermissionSettings
from tape.model.entries import Checkpoint, ToolResult, ToolStart
from tests.gong.agent.conftest import call, seen

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
