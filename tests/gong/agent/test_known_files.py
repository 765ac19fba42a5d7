"""Files that have to be read before they are changed, in whole sessions."""

from __future__ import annotations

import pytest

from gong.config import PermissionSettings
from tape.model.entries import ToolResult, join_texts
from tests.gong.agent.conftest import call, seen

PATCH = "*** Begin Patch\n*** Update File: a.txt\n-one\n+two\n*** End Patch\n"
EDIT = call("edit", path="a.txt", oldText="one", newText="two")
CHANGES = {
    "edit": EDIT,
    "write": call("write", path="a.txt", content="two\n"),
    "edit_file": call("edit_file", file_path="a.txt", old_string="one", new_string="two"),
    "apply_patch": call("apply_patch", input=PATCH),
}
READ = call("read", path="a.txt")


async def run(stage, *calls, **settings):
    """Return the results of calls made one after the other: is it an error, and its text."""
    (stage.folder / "a.txt").write_text("one\n")
    turns = [{"tool_calls": [one]} for one in calls]
    session = await stage.session(*turns, {"text": "done"}, **settings)
    session.use_tools(session.setup.tools.names)
    await seen(session, "go")
    results = [one.data for one in session.recorder.path if isinstance(one.data, ToolResult)]
    return [(one.is_error, join_texts(one.content)) for one in results]


@pytest.mark.parametrize("name", CHANGES)
async def test_a_file_is_read_before_it_is_changed_m180(stage, name):
    """M180 C27: every tool that changes files refuses until the file was read."""
    refused, _, changed = await run(stage, CHANGES[name], READ, CHANGES[name])
    assert refused[0]
    assert "a.txt is there and has not been read in this session: read it first." in refused[1]
    assert not changed[0]
    assert (stage.folder / "a.txt").read_text() == "two\n"


@pytest.mark.parametrize("name", CHANGES)
async def test_a_file_that_a_command_changed_is_read_again_m180(stage, name):
    """M180: bytes count, whoever wrote them; nothing of the other's change is lost."""
    command = call("bash", command="echo more >> a.txt")
    refused, _, changed = (await run(stage, READ, command, CHANGES[name], READ, CHANGES[name]))[2:]
    assert refused[0]
    assert "a.txt was changed since it was last read: read it again" in refused[1]
    assert not changed[0]


async def test_new_files_and_own_changes_are_known_m180(stage):
    """M180: what the session wrote itself, it knows; a file touched with the same bytes, too."""
    results = await run(
        stage,
        call("write", path="b.txt", content="one\n"),
        call("bash", command="touch -d 2001-01-01 b.txt"),
        call("edit", path="b.txt", oldText="one", newText="two"),
        call("write", path="./b.txt", content="three\n"),
    )
    assert [is_error for is_error, _ in results] == [False] * 4


async def test_a_link_and_its_file_are_one_m180(stage):
    (stage.folder / "link").symlink_to("a.txt")
    results = await run(stage, call("read", path="link"), EDIT)
    assert [is_error for is_error, _ in results] == [False] * 2


async def test_the_guard_is_a_setting_m180(stage):
    """M180: off by setting, and where no tool could read."""
    off = PermissionSettings(mode="bypass", read_before_write=False)
    assert not (await run(stage, EDIT, permissions=off))[0][0]


async def test_without_a_tool_that_reads_nothing_is_asked_for_m180(stage):
    (stage.folder / "a.txt").write_text("one\n")
    session = await stage.session({"tool_calls": [EDIT]}, {"text": "done"}, tools=("edit", "bash"))
    await seen(session, "go")
    assert (stage.folder / "a.txt").read_text() == "two\n"


@pytest.mark.parametrize("changed", [False, True])
async def test_a_continued_session_knows_what_the_tape_shows_unless_it_changed_since_m180(
    stage, changed
):
    file = stage.folder / "a.txt"
    file.write_text("one\n")
    on = PermissionSettings(mode="bypass")
    read = {"tool_calls": [call("read", path="a.txt")]}
    first = await stage.session(read, {"text": "seen"}, permissions=on)
    await seen(first, "read it")
    await first.close()
    if changed:
        file.write_text("one and more\n")
    edit = {"tool_calls": [EDIT]}
    again = await stage.session(edit, {"text": "done"}, recorder=stage.reopened(), permissions=on)
    (result,) = [event for event in await seen(again, "change it") if event.kind == "tool_end"]
    assert result.is_error is changed
    assert ("two" in file.read_text()) is not changed
