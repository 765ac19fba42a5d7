"""Random calls in a throw-away folder against a naive snapshot of all of it, with and without git.

After every call the records of the tape alone – checkpoints and changed files – must tell what each
file was before the call, and what it is after it: bytes, mode and links.
"""

from __future__ import annotations

import random
import subprocess
from hashlib import sha256

import pytest

from gong.config import PermissionSettings
from tape.model.entries import Checkpoint, ToolResult, ToolStart
from tests.gong.agent.conftest import Stage, call, seen


def snapshot(folder):
    """Return path → mode and digest of every file and link; of a link, of its target."""
    found = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if name.partition("/")[0] == ".git" or (path.is_dir() and not path.is_symlink()):
            continue
        data = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
        found[name] = (f"{path.lstat().st_mode:06o}", sha256(data).hexdigest())
    return found


def git(folder, *words):
    name = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *name, *words], cwd=folder, check=True, capture_output=True)


NAMES = ("a.txt", "b.txt", "sub/c.txt", "sub/deep/d.txt", "e f.txt", "ünï.txt", "link")
COMMANDS = (
    "echo more >> {0}",
    "rm -rf {0}",
    "mkdir -p sub/deep other && echo {2} > {0}",
    "mv {0} {1}",
    "cp -p {0} {1}",
    "chmod 600 {0}",
    "chmod 755 {0}; echo x > {1}",
    "rm -f link; ln -s {0} link",
    "ln -f {0} {1}",
    "sed -i 's/o/0/' {0}",
    "mv sub moved; mkdir -p sub; echo {2} > sub/c.txt",
    "mv moved again",
    "rm -rf sub",
    "mkdir -p other; echo z > other/c.txt; rm -rf sub; ln -s other sub",
    "rm -rf sub; mkdir -p sub/deep; echo {2} > sub/c.txt; echo {2} > sub/deep/d.txt",
    "rm -rf sub/deep; ln -s .. sub/deep",
    "touch {0} {1}",
    "printf 'one\\n' > {0}; touch -d 2001-01-01 {0}",
    "python3 -c \"open('{0}','r+').write('XY')\"",
    "true",
    "tar cf t.tar {0} && rm -f {0} && tar xf t.tar; rm -f t.tar",
)
GIT_COMMANDS = (
    "git add -A; git -c user.name=a -c user.email=a@b commit -qm x",
    "git checkout -q -f HEAD~1 || true",
    "git checkout -q -f main",
    "git reset -q --hard",
    "git stash -q -u || true",
    "git stash pop -q || true",
    "git clean -qfd",
    "git rm -rq --cached . || true",
    "git mv {0} {1} || true",
)


def choose_call(chance, count, has_git):
    names = [f"'{chance.choice(NAMES)}'" for _ in range(2)]
    plain = chance.choice(NAMES[:-1])
    if chance.random() < 0.25:
        return call("write", path=plain, content=f"{count}\n" * chance.randrange(4))
    if has_git and chance.random() < 0.35:
        return call("bash", command=chance.choice(GIT_COMMANDS).format(*names, count))
    return call("bash", command=chance.choice(COMMANDS).format(*names, count))


def build_folder(folder, *, has_git):
    """Write the files that calls change; with git two commits, and changes on top of them."""
    (folder / "sub/deep").mkdir(parents=True)
    for name in NAMES[:-1]:
        (folder / name).write_text(f"first {name}\n")
    if has_git:
        git(folder, "init", "-q", "-b", "main")
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", "one")
        (folder / "a.txt").write_text("second\n")
        git(folder, "commit", "-qam", "two")
        (folder / "b.txt").write_text("dirty\n")
        (folder / "new.txt").write_text("untracked\n")


@pytest.mark.parametrize("has_git", [True, False])
@pytest.mark.parametrize("seed", range(6))
async def test_records_agree_with_a_snapshot_of_the_folder(tmp_path, seed, has_git):
    chance = random.Random(seed)
    stage = Stage(tmp_path)
    build_folder(stage.folder, has_git=has_git)
    calls = [choose_call(chance, count, has_git) for count in range(14)]
    turns = [{"tool_calls": [one]} for one in calls]
    free = PermissionSettings(mode="bypass", read_before_write=False)
    session = await stage.session(*turns, {"text": "done"}, permissions=free, max_rounds=99)
    session.configure(enable_loop_detection=False)
    snapshots = []
    session.subscribe(
        lambda event: (
            snapshots.append(snapshot(stage.folder))
            if event.kind in {"tool_start", "tool_end"}
            else None
        )
    )
    await seen(session, "go")
    path = [one.data for one in session.recorder.path]
    results = [one for one in path if isinstance(one, ToolResult)]
    assert len(results) == len(calls)
    assert len(snapshots) == 2 * len(calls)
    check_records(session, path, calls, snapshots, has_git=has_git)
    await session.close()


def check_records(session, path, calls, snapshots, *, has_git):
    """Fold the records, and compare them with what was there before and after each call."""
    told = {}  # path → mode and digest, as the newest record tells; None where it is gone
    number = 0
    for one in path:
        if isinstance(one, Checkpoint):
            told |= {at.path: at.before and (at.mode, at.before.digest) for at in one.files}
        elif isinstance(one, ToolStart) and one.name == "bash" and not has_git:
            # Without git the records alone have all of the folder.
            there = {name: state for name, state in told.items() if state}
            assert is_reading(calls[number]) or there == snapshots[2 * number], calls[number]
        elif isinstance(one, ToolResult):
            before, after = snapshots[2 * number], snapshots[2 * number + 1]
            what = (number, calls[number], one.files)
            expected = dict(before)
            for change in one.files:
                told |= apply_change(session, expected, change)
            assert expected == after, what
            # A record that is there tells the state of now.
            assert {name: after.get(name) for name in told} == told, what
            number += 1


def apply_change(session, files, change):
    """Apply a record to a snapshot, and return what it tells."""
    old, new = (change.before_mode, change.before), (change.mode, change.after)
    assert change.op != "created" or change.path not in files
    if change.op != "created":
        assert files.pop(change.source or change.path) == old, change
        check_blob(session, change.before_blob, change.before)
    if change.op == "deleted":
        return {change.path: None}
    files[change.path] = new
    check_blob(session, change.after_blob, change.after)
    return {change.path: new} | ({change.source: None} if change.source else {})


def is_reading(one):
    return one["args"].get("command") == "true"


def check_blob(session, ref, digest):
    assert sha256(session.recorder.tape.load(ref)).hexdigest() == digest
