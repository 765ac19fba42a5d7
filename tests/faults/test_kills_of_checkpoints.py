"""A session killed at every system call around a checkpoint: what it changed can be restored.

A file of the folder is as it was, or the tape has its bytes: in the checkpoint that was synced with
the start of the call, or in git, where it was clean.
"""

import shutil
import signal
import subprocess
import sys
from hashlib import sha256

import pytest

from tape.files.changes import find_recorded_versions
from tape.index.library import open_store
from tests.faults.test_every_kill import CALLS, findings, folders, go_on
from tests.faults.zygote import traced
from tests.tape import making

pytestmark = pytest.mark.slow

RUN = """
import asyncio, os, sys
from pathlib import Path
from gong.agent.recorder import Recorder
from gong.checkpoints.file_recorder import FileRecorder
from gong.config import CheckpointSettings
from gong.env.local import LocalEnvironment
from gong.tools.builtin import build_registry
from tape import open_store
from tape.model.entries import NO_JSON, Text, ToolCall, ToolResult, ToolStart
from msgspec import Raw

async def main():
    folder = sys.argv[3]
    env = LocalEnvironment(folder, {"PATH": os.environ["PATH"], "HOME": folder})
    store, _ = open_store(Path(sys.argv[1]), index=False)
    files = FileRecorder(CheckpointSettings())
    with store.open(sys.argv[2]) as tape, Recorder.open(tape, "main") as recorder:
        call = ToolCall(id="c_1", name="bash", args=Raw(b'{"command":"make"}'))
        prepared = build_registry().prepare(call)
        recorded = await files.begin_call(prepared, env, tape.blobs, recorder.path)
        if recorded.checkpoint is not None:
            recorder.append(recorded.checkpoint)
        recorder.append(ToolStart("c_1", "bash", NO_JSON, "unsafe"))
        recorder.barrier()
        place = Path(folder)
        (place / "dirty.txt").write_text("overwritten")
        (place / "clean.txt").write_text("overwritten")
        (place / "gone.txt").unlink()
        (place / "made.txt").write_text("made")
        changed = await recorded.find_changes()
        content = (Text("done"),)
        recorder.append(ToolResult("c_1", "bash", content, files=changed))
        recorder.barrier()
        print("ended", len(changed), flush=True)

asyncio.run(main())
"""
FILES = {"dirty.txt": b"dirty\n", "clean.txt": b"clean\n", "gone.txt": b"gone\n"}


def make_folder(place, *, has_git):
    place.mkdir()
    for name, data in FILES.items():
        (place / name).write_bytes(data)
    if has_git:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        words = (("init", "-q"), ("add", "clean.txt"), (*who, "commit", "-qm", "x"))
        for one in words:
            subprocess.run(["git", *one], cwd=place, check=True, capture_output=True)


def outcome(home, call, k, *, has_git):
    """Kill the session at the k-th call of a kind; return whether it ended before."""
    store, work = home / "store", home / "work"
    make_folder(work, has_git=has_git)
    with open_store(store) as (opened, _), opened.create(making.beginning()) as tape:
        making.write(tape, "one")
        name = tape.id
    inject = f"--inject={CALLS[call]}:signal=KILL:when={k}"
    trace = ["-f", "-qq", "-o", "/dev/null", f"--trace={CALLS[call]}", inject]
    command = (sys.executable, "-c", RUN, str(store), name, str(work))
    with traced(trace, command, {"TAPE_HOME": str(store)}) as running:
        running.stdin.close()
        said = running.stdout.read()
        assert running.wait() in (0, -signal.SIGKILL)
    check_restorable(store, work, has_git=has_git)
    assert {one.level for one in findings(store)} <= {"note", "torn"}
    go_on(store)
    return said == b"ended 4\n"


def check_restorable(store, work, *, has_git):
    (at,) = folders(store)
    with open_store(store, index=False) as (opened, _), opened.open_folder(at.name) as tape:
        path = tape.entries(tape.head("main"))
        results = [one for one in path if one.type == "tool.result"]
        before = find_recorded_versions(one for one in path if one not in results)
        for name, data in FILES.items():
            now = (work / name).read_bytes() if (work / name).exists() else None
            if now == data or (has_git and name == "clean.txt"):
                continue
            version = before[name]
            assert version.digest == sha256(data).hexdigest()
            assert tape.blobs.read(version.blob) == data
        for one in results:
            assert {change.path for change in one.data.files} == {*FILES, "made.txt"}


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "has_git"),
    [("write", True), ("rename*", False), ("mkdir*", False), ("fsync", False), ("fdatasync", True)],
)
def test_what_a_killed_session_changed_can_be_restored(tmp_path, call, has_git):
    for k in range(1, 200):
        home = tmp_path / str(k)
        home.mkdir()
        if outcome(home, call, k, has_git=has_git):
            assert k > 1, "it was never killed"
            return
    pytest.fail("it was killed each time")
