"""Undo, redo and rewind against a naive snapshot of the whole folder, edits by hand, and kills."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from gong.checkpoints.restore import look_at_file, restore_files
from gong.checkpoints.rewind import apply_plan, plan_redo, plan_rewind, plan_undo
from gong.config import PermissionSettings
from gong.errors import NothingToUndo
from tape.check.finding import Counts
from tape.check.verify import verify
from tape.errors import UsageError
from tape.files.plan import FileRestore
from tape.model.entries import Context, Text, User
from tests import warm
from tests.gong.agent.conftest import Stage, call, seen
from tests.gong.checkpoints.test_sessions import build_folder, choose_call, snapshot
from tests.tape.making import BUDGET

FREE = PermissionSettings(mode="bypass", read_before_write=False)


async def record_session(stage, prompts, has_git=False):
    """Run prompts, each a list of calls; return the snapshots before the first and after each."""
    turns = [
        turn
        for calls in prompts
        for turn in (*({"tool_calls": [one]} for one in calls), {"text": "ok"})
    ]
    session = await stage.session(*turns, permissions=FREE, max_rounds=99)
    session.configure(enable_loop_detection=False)
    snapshots = [snapshot(stage.folder)]
    for number in range(len(prompts)):
        await seen(session, f"prompt {number}")
        snapshots.append(snapshot(stage.folder))
    tape, branch = session.recorder.tape.id, session.recorder.branch
    await session.close()
    return tape, branch, snapshots


def open_tape(stage, tape):
    return stage.store.open(tape)


def act(tape, make_plan):
    """Make a plan and do it; return the report."""
    with tape.writer("main") as writer:
        report = apply_plan(tape, writer, make_plan(tape, "main"))
    assert [finding for finding in verify(tape, Counts()) if finding.level != "note"] == []
    return report


def run_shell(folder, command):
    subprocess.run(["sh", "-c", command], cwd=folder, check=True)


def without_git(one):
    return "git" not in one["args"].get("command", "")


@pytest.mark.parametrize("has_git", [True, False])
@pytest.mark.parametrize("seed", range(3))
async def test_undo_and_redo_lead_from_snapshot_to_snapshot(tmp_path, seed, has_git):
    chance = random.Random(seed)
    stage = Stage(tmp_path)
    build_folder(stage.folder, has_git=has_git)
    prompts = [
        [*filter(without_git, (choose_call(chance, 9 * n + k, has_git) for k in range(3)))]
        for n in range(4)
    ]
    identity, _, snapshots = await record_session(stage, prompts)
    with open_tape(stage, identity) as tape:
        head = tape.head("main").entry
        for count in (1, 2, 4):
            report = act(tape, partial(plan_undo, prompts=count))
            assert (report.failed, report.kept) == ({}, ())
            assert snapshot(stage.folder) == snapshots[-1 - count]
            assert tape.head("main").header.n < tape.find_own_entries(head)[0].head.header.n
            report = act(tape, plan_redo)
            assert (report.failed, report.kept) == ({}, ())
            assert snapshot(stage.folder) == snapshots[-1]
            assert tape.head("main").entry == head
        with pytest.raises(NothingToUndo, match="nothing to redo"):
            plan_redo(tape, "main")
        with pytest.raises(NothingToUndo, match="there is no prompt 5"):
            plan_undo(tape, "main", 5)
        act(tape, partial(plan_undo, scope="files", prompts=3))
        assert snapshot(stage.folder) == snapshots[1]
        act(tape, plan_redo)
        assert snapshot(stage.folder) == snapshots[-1]
        act(tape, partial(plan_undo, scope="talk", prompts=3))
        assert snapshot(stage.folder) == snapshots[-1]
        act(tape, plan_redo)
        act(tape, plan_undo)
        act(tape, plan_undo)
        assert snapshot(stage.folder) == snapshots[2]
        act(tape, plan_redo)
        assert snapshot(stage.folder) == snapshots[3]


async def start(tmp_path):
    """Record a session of two prompts that change four files."""
    stage = Stage(tmp_path)
    (stage.folder / "a.txt").write_text("one\n")
    (stage.folder / "run").write_text("#!/bin/sh\n")
    (stage.folder / "run").chmod(0o640)
    (stage.folder / "link").symlink_to("a.txt")
    first = [
        call("bash", command="echo two > a.txt; chmod 755 run; ln -sf b.txt link; mkdir d"),
        call("write", path="d/new.txt", content="new\n"),
    ]
    second = [call("bash", command="rm a.txt; echo more >> run")]
    identity, _, snapshots = await record_session(stage, [first, second])
    return stage, identity, snapshots


async def test_modes_links_absence_and_folders_come_back(tmp_path):
    stage, identity, snapshots = await start(tmp_path)
    with open_tape(stage, identity) as tape:
        act(tape, partial(plan_undo, prompts=2))
        assert snapshot(stage.folder) == snapshots[0]
        assert not (stage.folder / "d").exists()
        act(tape, plan_redo)
        assert snapshot(stage.folder) == snapshots[2]


async def test_what_a_person_changed_is_kept_unless_it_is_named(tmp_path):
    stage, identity, _ = await start(tmp_path)
    (stage.folder / "run").write_text("mine\n")
    (stage.folder / "a.txt").write_text("mine too\n")
    (stage.folder / "d/new.txt").unlink()
    with open_tape(stage, identity) as tape:
        plan = plan_undo(tape, "main", 2)
        whys = {Path(file.path).name: file.why for file in plan.files.select("conflict")}
        assert whys == {"run": "it was changed since", "a.txt": "it was created since"}
        report = act(tape, partial(plan_undo, prompts=2))
        assert len(report.kept) == 2
        assert (stage.folder / "run").read_text() == "mine\n"
        assert (stage.folder / "a.txt").read_text() == "mine too\n"
        assert str((stage.folder / "link").readlink()) == "a.txt"
        act(tape, plan_redo)
        assert str((stage.folder / "link").readlink()) == "b.txt"
        assert not (stage.folder / "d/new.txt").exists()
        report = act(tape, partial(plan_undo, prompts=2, overwrite=["run"]))
        assert (stage.folder / "run").read_text() == "#!/bin/sh\n"
        act(tape, plan_redo)
        assert (stage.folder / "run").read_text() == "mine\n"
        with pytest.raises(UsageError, match="not among the files"):
            plan_undo(tape, "main", 2, overwrite=["other"])


async def test_a_redo_keeps_what_a_person_changed_after_the_undo(tmp_path):
    stage, identity, _ = await start(tmp_path)
    with open_tape(stage, identity) as tape:
        act(tape, plan_undo)
        (stage.folder / "a.txt").write_text("mine\n")
        report = act(tape, plan_redo)
        assert [file.why for file in report.kept] == ["it was changed since"]
        assert (stage.folder / "a.txt").read_text() == "mine\n"
        assert "more" in (stage.folder / "run").read_text()


def test_a_folder_left_empty_goes_also_outside_of_the_folder_in_force(tmp_path):
    (tmp_path / "repo/.git").mkdir(parents=True)
    (tmp_path / "repo/sub").mkdir()
    (tmp_path / "repo/d/e").mkdir(parents=True)
    made = tmp_path / "repo/d/e/x.txt"
    made.write_text("x")
    version = look_at_file(str(made))
    todo = [FileRestore(str(made), "restore", version, None)]
    assert restore_files(todo, lambda _: b"", str(tmp_path / "repo/sub")).why == {}
    assert sorted(path.name for path in (tmp_path / "repo").iterdir()) == [".git", "sub"]


async def test_after_new_work_there_is_nothing_to_redo(tmp_path):
    stage, identity, _ = await start(tmp_path)
    with open_tape(stage, identity) as tape:
        act(tape, plan_undo)
        with tape.writer() as writer:
            writer.append(User(()))
        with pytest.raises(NothingToUndo, match="nothing to redo"):
            plan_redo(tape, "main")


async def test_a_link_in_the_way_leads_nowhere(tmp_path):
    stage, identity, _ = await start(tmp_path)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/new.txt").write_text("new\n")
    (stage.folder / "d/new.txt").unlink()
    (stage.folder / "d").rmdir()
    (stage.folder / "d").symlink_to(tmp_path / "outside")
    with open_tape(stage, identity) as tape:
        report = act(tape, partial(plan_undo, prompts=2))
    assert [file.why for file in report.kept] == ["a link leads its folder elsewhere"]
    assert (tmp_path / "outside/new.txt").read_text() == "new\n"


async def test_rewinding_needs_an_entry_of_the_branch(tmp_path):
    stage, identity, snapshots = await start(tmp_path)
    with open_tape(stage, identity) as tape:
        entries = tape.entries(tape.head("main"))
        prompt = [entry for entry in entries if isinstance(entry.data, User)][1]
        result = next(entry for entry in entries if entry.type == "tool.result")
        at = {one.id: tape.find_own_entries(one.id)[0].head for one in (prompt, result)}
        act(tape, partial(plan_rewind, target=at[prompt.id]))
        assert snapshot(stage.folder) == snapshots[1]
        act(tape, plan_redo)
        act(tape, partial(plan_rewind, target=at[result.id], scope="files"))
        assert not (stage.folder / "d/new.txt").exists()
        act(tape, plan_redo)
        assert snapshot(stage.folder) == snapshots[2]
        act(tape, partial(plan_rewind, target=at[result.id], scope="talk"))
        with pytest.raises(UsageError, match="is not an earlier entry of branch main"):
            plan_rewind(tape, "main", at[prompt.id])


async def test_several_undos_are_reversed_one_after_the_other(tmp_path):
    stage = Stage(tmp_path)
    prompts = [[call("bash", command=f"echo {n} > a.txt; touch b{n}")] for n in range(4)]
    identity, _, snapshots = await record_session(stage, prompts)
    with open_tape(stage, identity) as tape:
        heads = [tape.head("main").entry]
        scopes = ("both", "talk", "both")
        for scope in scopes:
            act(tape, partial(plan_undo, scope=scope))
            heads.append(tape.head("main").entry)
        # a.txt is kept: the prompt that wrote it last had left with its talk only.
        assert snapshot(stage.folder) == {
            name: state for name, state in snapshots[3].items() if name != "b1"
        }
        act(tape, plan_redo)
        act(tape, partial(plan_undo, scope="files"))
        act(tape, plan_redo)
        act(tape, plan_redo)
        assert tape.head("main").entry == heads[1]
        act(tape, plan_redo)
        assert tape.head("main").entry == heads[0]
        assert snapshot(stage.folder) == snapshots[4]
        for count in (1, 3):
            act(tape, partial(plan_undo, prompts=count, scope="files"))
        assert snapshot(stage.folder) == snapshots[1]
        act(tape, plan_redo)
        assert snapshot(stage.folder) == snapshots[3]
        act(tape, plan_redo)
        assert snapshot(stage.folder) == snapshots[4]
        with pytest.raises(NothingToUndo, match="tape fork REF continues from it"):
            plan_redo(tape, "main")


@pytest.mark.parametrize(
    ("before", "command"),
    [
        ("mkdir d; echo a > d/a; echo b > d/b", "rm -r d; echo file > d"),
        ("mkdir d e; echo a > d/a; echo z > e/b", "rm -r d; ln -s e d"),
        ("mkdir d e; echo a > d/a; echo z > e/a", "rm -r d; ln -s e d"),
        ("echo file > d", "rm d; mkdir -p d/e/f; echo a > d/e/a"),
        ("echo x > e; ln -s e d", "rm d; mkdir d; echo a > d/a"),
        ("printf e > d; ln -s e l", "rm d l; ln -s e d; printf e > l; chmod 600 l"),
        (f"touch {'ü' * 120}", f"echo x > {'ü' * 120}"),
    ],
)
async def test_folders_files_and_links_take_each_others_place(tmp_path, before, command):
    stage = Stage(tmp_path)
    run_shell(stage.folder, before)
    identity, _, snapshots = await record_session(stage, [[call("bash", command=command)]])
    assert snapshots[0] != snapshots[1]
    with open_tape(stage, identity) as tape:
        report = act(tape, plan_undo)
        assert (report.failed, report.kept) == ({}, ())
        assert snapshot(stage.folder) == snapshots[0]
        report = act(tape, plan_redo)
        assert (report.failed, report.kept) == ({}, ())
        assert snapshot(stage.folder) == snapshots[1]


async def test_a_file_that_changes_while_a_person_thinks_is_left_alone(tmp_path):
    stage, identity, snapshots = await start(tmp_path)
    with open_tape(stage, identity) as tape:
        plan = plan_undo(tape, "main", 2)
        (stage.folder / "run").write_text("mine\n")
        with tape.writer("main") as writer:
            report = apply_plan(tape, writer, plan)
        assert report.failed == {str(stage.folder / "run"): "it was changed meanwhile"}
        assert (stage.folder / "run").read_text() == "mine\n"
        (stage.folder / "run").write_bytes(b"#!/bin/sh\nmore\n")
        act(tape, plan_redo)
        assert snapshot(stage.folder) == snapshots[2]


async def test_two_sessions_in_one_folder_keep_what_the_other_did(tmp_path):
    stage = Stage(tmp_path)
    one, _, _ = await record_session(
        stage, [[call("bash", command="echo one > a.txt; echo one > b.txt")]]
    )
    other, _, _ = await record_session(stage, [[call("bash", command="echo other > a.txt")]])
    with open_tape(stage, one) as tape:
        report = act(tape, plan_undo)
        assert [file.path for file in report.kept] == [str(stage.folder / "a.txt")]
        assert not (stage.folder / "b.txt").exists()
    with open_tape(stage, other) as tape:
        act(tape, plan_undo)
        assert (stage.folder / "a.txt").read_text() == "one\n"
    with open_tape(stage, one) as tape:
        act(tape, plan_redo)
        assert (stage.folder / "b.txt").read_text() == "one\n"


KILLED = """
import os, sys
left = int(sys.argv[1])
CHANGES = ("write", "rename", "replace", "unlink", "rmdir", "fsync", "fdatasync", "chmod")
CHANGES += ("symlink",)

def killing(change):
    def changed(*args, **options):
        global left
        left -= 1
        if left < 0:
            os._exit(9)
        return change(*args, **options)
    return changed

from gong.cli.run import run_command_line
for name in CHANGES:
    setattr(os, name, killing(getattr(os, name)))
code = run_command_line(sys.argv[2:])
sys.stdout.flush()
os._exit(code)
"""


@pytest.mark.slow
@pytest.mark.parametrize("scope", ["--both", "--files"])
async def test_a_kill_at_any_change_of_the_disk_is_completed_by_the_same_command(tmp_path, scope):
    stage, identity, snapshots = await start(tmp_path)
    env = {**os.environ, "HOME": str(tmp_path), "TAPE_HOME": str(stage.store.path)}

    def run(left, *words):
        command = [sys.executable, "-c", KILLED, str(left), *words, "--session", identity, "--yes"]
        done = subprocess.run(command, cwd=stage.folder, env=env, capture_output=True, check=False)
        assert done.returncode in {0, 9}, done.stderr.decode()
        return done.returncode

    with open_tape(stage, identity) as tape:
        steps, ended, head = 0, False, tape.head("main").entry
        while not ended:
            ended = run(steps, "undo", "2", scope) == 0
            if not ended:
                now = snapshot(stage.folder)
                names = {*snapshots[0], *snapshots[2]}
                for name in names:
                    assert now.get(name) in (snapshots[0].get(name), snapshots[2].get(name))
                if tape.head("main").header.n > 0:  # else the kill came right after the last step
                    assert run(10**9, "undo", "2", scope) == 0
            assert snapshot(stage.folder) == snapshots[0]
            if run(steps, "redo") == 9:
                moved = scope == "--files" or tape.head("main").entry == head
                if snapshot(stage.folder) != snapshots[2] or not moved:
                    assert run(10**9, "redo") == 0
            assert snapshot(stage.folder) == snapshots[2]
            assert scope == "--files" or tape.head("main").entry == head
            steps += 1 if BUDGET > 1 else 4
        assert steps > 20
        assert [one for one in verify(tape, Counts()) if one.level != "note"] == []


@pytest.mark.parametrize("scope", ["both", "files"])
async def test_a_redo_killed_before_its_checkpoint_is_given_again(tmp_path, scope):
    """What it had written then is an opened phase and a note."""
    stage, identity, snapshots = await start(tmp_path)
    with open_tape(stage, identity) as tape:
        head = tape.head("main").entry
        act(tape, partial(plan_undo, prompts=2, scope=scope))
        assert snapshot(stage.folder) == snapshots[0]
        note = "The user put these files back to an earlier state (redo); …"
        with tape.writer("main") as writer:
            writer.append(Context("user", "note", (Text(note),)))
        act(tape, plan_redo)
        assert snapshot(stage.folder) == snapshots[2]
        assert scope == "files" or tape.head("main").entry == head
        with pytest.raises(NothingToUndo, match="nothing to redo"):
            plan_redo(tape, "main")


async def test_a_branch_that_another_program_writes_is_busy(tmp_path):
    stage, identity, snapshots = await start(tmp_path)
    env = {**os.environ, "HOME": str(tmp_path), "TAPE_HOME": str(stage.store.path)}

    def gong(*words):
        command = [warm.BIN / "gong", *words, "--yes"]
        return subprocess.run(command, cwd=stage.folder, env=env, capture_output=True, check=False)

    with open_tape(stage, identity) as tape, tape.writer("main"):
        whole = f"{identity}:main"
        for words in (("undo", "--session", whole), ("redo", "--session", whole)):
            done = gong(*words)
            assert done.returncode == 5, done.stderr.decode()
            assert b"being written by" in done.stderr
        assert gong("rewind", f"{whole}^1", "--files").returncode == 5
    assert snapshot(stage.folder) == snapshots[2]


def test_the_command_shows_its_plan_and_asks(tmp_path):
    env = {**os.environ, "HOME": str(tmp_path), "TAPE_HOME": str(tmp_path / "tapes")}
    folder = tmp_path / "src"
    folder.mkdir()

    def gong(*words, code=0):
        command = [warm.BIN / "gong", *words]
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, check=False)
        assert done.returncode == code, done.stderr.decode()
        return done.stdout.decode() + ("" if code == 0 else done.stderr.decode())

    assert "no session in this folder" in gong("undo", code=3)
    gong("-p", "--yolo", "-m", "offline/rules", "run echo hi > x.txt")
    assert "not a terminal: pass --yes" in gong("undo", code=2)
    assert (folder / "x.txt").exists()
    patch = (
        "diff --git a/x.txt b/x.txt\ndeleted file mode 100644\nindex 45b983b..0000000\n"
        "--- a/x.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-hi\n"
    )
    shown = gong("undo", "--dry-run")
    assert "1 prompt leaves the branch:\n  run echo hi > x.txt\n  D  x.txt\n" in shown
    assert gong("undo", "--dry-run", "-p") == shown + patch
    done = json.loads(gong("undo", "--yes", "--json", "-p"))
    assert done["files"] == [
        {"path": str(folder / "x.txt"), "op": "deleted", "action": "deleted", "patch": patch}
    ]
    assert (done["action"], done["scope"], done["done"]) == ("undo", "both", True)
    assert not (folder / "x.txt").exists()
    assert "Redone: 1 prompt, 1 file restored" in gong("redo", "--yes")
    assert (folder / "x.txt").read_text() == "hi\n"
    assert "Rewound" in gong("rewind", "^1", "--yes", "--files")
    assert "nothing to redo" not in gong("redo", "--yes")
    assert "nothing to redo" in gong("redo", "--yes", code=1)
