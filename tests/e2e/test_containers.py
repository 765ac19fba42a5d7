"""A session in a container: a disk that only reads, files in memory, and SIGKILL at any moment."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from tape.remote.registry import open_remote
from tests.e2e.conftest import BIN, Place
from tests.tape.remote.servers import KEYS, make_bucket, serving_ministack

pytestmark = pytest.mark.slow

HOME = "/mnt/home"
PROGRAM = """
import sys
from tape import Beginning, Text, User, open_store

with open_store(sys.argv[1]) as (store, _):
    with store.create(Beginning("/mnt/home/work", "test/1")) as tape, tape.writer() as writer:
        for number in range(99):
            entry = writer.append(User((Text(f"prompt {number} {'x' * 900 * number ** 3}"),)))
            writer.barrier()
            print(entry.id, flush=True)
"""
STEPS = [
    {"tool_calls": [{"name": "bash", "args": {"command": f"echo {number} >> notes; sync"}}]}
    for number in range(40)
]


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    pytest.importorskip("obstore", reason="the extra `s3` is not installed")
    with serving_ministack(tmp_path_factory.mktemp("ministack")) as endpoint:
        make_bucket(endpoint, "tapes")
        yield endpoint


@pytest.fixture
def url(endpoint):
    return f"s3://tapes/{os.urandom(4).hex()}?endpoint={endpoint}&region=us-east-1"


@pytest.fixture(scope="module")
def contain():
    """Return the words that run a program where only /mnt, which is in memory, can be written."""
    program = shutil.which("bwrap")
    if program is None:
        pytest.skip("bubblewrap is not installed")
    words = [program, "--ro-bind", "/", "/", "--dev", "/dev", "--remount-ro", "/dev"]
    words += ["--proc", "/proc", "--tmpfs", "/mnt", "--dir", f"{HOME}/work"]
    words += ["--unshare-pid", "--die-with-parent", "--chdir", f"{HOME}/work"]
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip("bubblewrap may not make containers here")
    return words


def start(contain, command, **env):
    """Start a program in a container that has nothing but its home in memory."""
    names = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return subprocess.Popen(
        [*contain, *map(str, command)],
        env={**names, **KEYS, "HOME": HOME, "TMPDIR": "/mnt", "TAPE_PERSON": "off", **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )


def kill(process):
    """Kill a container, and everything in it, at once."""
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()


def read_ids(place, url):
    """Return the ids of all entries that a machine with a disk gets from a remote."""
    place.run("tape", "clone", url, **KEYS)
    place.run("tape", "verify", "--all")
    rows = place.json("tape", "ls", "--all", "--json")
    return {entry["id"] for row in rows for entry in place.json("tape", "cat", row["id"], "--json")}


@pytest.mark.parametrize("barriers", [1, 2, 3, 6])
def test_what_a_barrier_acknowledged_survives_the_container(tmp_path, url, contain, barriers):
    """M214."""
    process = start(contain, [sys.executable, "-c", PROGRAM, url])
    acknowledged = {process.stdout.readline().strip() for _ in range(barriers)}
    kill(process)
    assert acknowledged <= read_ids(Place(tmp_path / "elsewhere"), url)


@pytest.mark.parametrize("chunks", [2, 5])
def test_a_killed_session_is_continued_elsewhere_in_another_folder(tmp_path, url, contain, chunks):
    """M214: by another person, with other tools."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps([*STEPS, {"text": "done"}]))
    words = ["--ro-bind", script, "/mnt/script.json", BIN / "gong", "chat", "--store", url]
    words += ["-m", "scripted//mnt/script.json", "--permission", "bypass", "-p", "take notes"]
    process = start(contain, words)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in KEYS.items():
            patch.setenv(name, value)
        with open_remote(url) as remote:
            while len([*remote.list("t/")]) < chunks:
                assert process.poll() is None
                time.sleep(0.05)
            kill(process)
    place = Place(tmp_path / "elsewhere")
    (row,) = place.json("tape", "--store", url, "ls", "--all", "--json", **KEYS)
    assert row["title"] == "take notes"
    said = place.run(
        *("gong", "chat", "--store", url, "--session", row["id"][:8], "-m", "offline/rules"),
        *("--permission", "bypass", "-p", "write hello to here.txt"),
        **KEYS,
    )
    assert said.returncode == 0
    assert (place.folder / "here.txt").read_text().strip() == "hello"
    ids = read_ids(Place(tmp_path / "third"), url)
    with_it = place.json("tape", "--store", url, "cat", row["id"], "--json", **KEYS)
    assert {entry["id"] for entry in with_it} <= ids
