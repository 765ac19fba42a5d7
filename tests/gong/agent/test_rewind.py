"""Plans and undo of an open session: what hosts and the terminal use."""

from __future__ import annotations

import subprocess

import pytest

from gong.agent.rewind import build_file_patches, plan_redo, plan_rewind, plan_undo
from gong.config import PermissionSettings
from gong.errors import NothingToUndo, SessionBusy
from tape.errors import NotFound, UsageError
from tape.model.entries import User
from tests.gong.agent.conftest import Stage, call, seen
from tests.gong.checkpoints.test_sessions import snapshot

FREE = PermissionSettings(mode="bypass", read_before_write=False)
FIRST = call("bash", command="echo two > a.txt; chmod 755 run; ln -sf b.txt link; rm gone.txt")
SECOND = call("bash", command="echo three >> a.txt; printf 'x\\0y' > bin; mkdir d; echo n > d/new")


async def start(tmp_path):
    """Return a stage and its open session after two prompts, and the snapshots around them."""
    stage = Stage(tmp_path)
    (stage.folder / "a.txt").write_text("one\n")
    (stage.folder / "gone.txt").write_text("gone\n")
    (stage.folder / "run").write_text("#!/bin/sh\n")
    (stage.folder / "run").chmod(0o640)
    (stage.folder / "link").symlink_to("a.txt")
    turns = [{"tool_calls": [FIRST]}, {"text": "1"}, {"tool_calls": [SECOND]}, {"text": "2"}]
    session = await stage.session(*turns, {"text": "3"}, permissions=FREE)
    snapshots = [snapshot(stage.folder)]
    for prompt in ("first", "second"):
        await seen(session, prompt)
        snapshots.append(snapshot(stage.folder))
    return stage, session, snapshots


def apply_patch(folder, patch):
    subprocess.run(["git", "apply", "-"], input=patch, cwd=folder, check=True)


def name_ops(stage, plan):
    return {file.path.removeprefix(f"{stage.folder}/"): file.op for file in plan.files.files}


async def test_a_plan_says_what_undo_does_and_its_patches_do_the_same(tmp_path):
    stage, session, snapshots = await start(tmp_path)
    plan = plan_undo(session, 2)
    assert plan.prompts == ("first", "second")
    assert name_ops(stage, plan) == {
        "a.txt": "modified",
        "bin": "deleted",
        "d/new": "deleted",
        "gone.txt": "created",
        "link": "modified",
        "run": "mode",
    }
    assert snapshot(stage.folder) == snapshots[2], "a plan changes nothing"
    patches = build_file_patches(session, plan, with_bytes=True)
    assert list(patches) == [file.path for file in plan.files.files]
    report = session.apply_rewind(plan)
    assert (report.failed, report.kept) == ({}, ())
    assert snapshot(stage.folder) == snapshots[0]
    session.apply_rewind(plan_redo(session))
    assert snapshot(stage.folder) == snapshots[2]
    apply_patch(stage.folder, b"".join(patches.values()))
    (stage.folder / "run").chmod(0o640)  # git knows only whether a file can be run
    assert snapshot(stage.folder) == snapshots[0]
    await session.close()


async def test_the_session_continues_from_the_entry_it_was_rewound_to(tmp_path):
    _, session, _ = await start(tmp_path)
    session.apply_rewind(plan_undo(session))
    assert [
        entry.data.content[0].text for entry in session.recorder.path if entry.type == "user"
    ] == ["first"]
    await seen(session, "third")
    prompts = [entry for entry in session.recorder.path if isinstance(entry.data, User)]
    assert [one.data.content[0].text for one in prompts] == ["first", "third"]
    with pytest.raises(NothingToUndo, match="nothing to redo"):
        plan_redo(session)
    await session.close()


async def test_a_rewind_takes_an_id_a_label_prompts_or_entries_back(tmp_path):
    stage, session, snapshots = await start(tmp_path)
    second = [entry for entry in session.recorder.path if isinstance(entry.data, User)][1]
    session.recorder.tape.label("second", second.id)
    plans = [plan_rewind(session, ref) for ref in (second.id[:12], "@second", "second", "^1")]
    assert {plan.target.entry for plan in plans} == {second.parent_id}
    assert plan_rewind(session, "~1", "talk").files.files == ()
    with pytest.raises(UsageError, match="another tape"):
        plan_rewind(session, "ffff:main~1")
    with pytest.raises(NotFound, match="no entry or label"):
        plan_rewind(session, "nothing")
    session.apply_rewind(plans[0])
    assert snapshot(stage.folder) == snapshots[1]
    await session.close()


async def test_a_plan_of_before_is_refused_and_so_is_one_during_a_run(tmp_path):
    stage, session, _ = await start(tmp_path)
    plan = plan_undo(session)
    stream = session.submit("third")
    await anext(stream)
    with pytest.raises(SessionBusy):
        session.apply_rewind(plan)
    async for _ in stream:
        pass
    before = snapshot(stage.folder)
    with pytest.raises(UsageError, match="entries were added since this undo was planned"):
        session.apply_rewind(plan)
    assert snapshot(stage.folder) == before
    await session.close()


async def test_a_conflict_has_the_patch_that_naming_it_would_be(tmp_path):
    stage, session, _ = await start(tmp_path)
    (stage.folder / "a.txt").write_text("mine\n")
    plan = plan_undo(session)
    (conflict,) = plan.files.select("conflict")
    assert b"-mine\n+two\n" in build_file_patches(session, plan)[conflict.path]
    plan = plan_undo(session, overwrite=["a.txt"])
    session.apply_rewind(plan)
    assert (stage.folder / "a.txt").read_text() == "two\n"
    await session.close()


async def test_an_empty_session_has_nothing_to_undo(tmp_path):
    session = await Stage(tmp_path).session({"text": "1"}, permissions=FREE)
    for plan in (plan_undo, plan_redo):
        with pytest.raises(NothingToUndo, match="the session is empty"):
            plan(session)
    await seen(session, "first")
    with pytest.raises(NothingToUndo, match="neither talk nor files would change"):
        plan_undo(session, scope="files")
    await session.close()
