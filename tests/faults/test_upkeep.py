"""SIGKILL while a tape is redacted or detached: whole before, and a second call completes it."""

import shutil
import signal
import sys

import pytest

from tape.blocks import Image, Text
from tape.entries import User
from tape.store import Store
from tape.upkeep import detach, redact
from tape.verify import Counts, Kind, verify
from tests.faults.zygote import ran
from tests.tape import making, reader

REDACT = """
import sys
from pathlib import Path
from tape.store import Store
from tape.upkeep import redact
store = Store(Path(sys.argv[1]))
with store.open_folder(sys.argv[2]) as tape:
    redact(tape, sys.argv[3:], "why")
"""
DETACH = """
import sys
from pathlib import Path
from tape.store import Store
from tape.upkeep import detach
store = Store(Path(sys.argv[1]))
with store.open_folder(sys.argv[2]) as tape:
    detach(tape)
"""
CALLS = ("pwrite64", "write", "unlinkat", "renameat", "mkdirat", "ftruncate", "fdatasync", "fsync")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace"),
]


def killed_at(script, arguments, call, k):
    """Run a script, killed at the k-th system call of one kind; tell whether it ended before."""
    trace = ["-f", "-qq", "-o", "/dev/null", f"--trace={call}"]
    trace += [f"--inject={call}:signal=KILL:when={k}"]
    _, code = ran(trace, [sys.executable, "-c", script, *arguments], {})
    assert code in (0, -signal.SIGKILL)
    return code == 0


def each_kill(tmp_path, made, script, call, arguments):
    """Yield a copy of a store for each k, in which the script was killed at its k-th call."""
    for k in range(1, 1000):
        home = tmp_path / f"{call}-{k}"
        shutil.copytree(made, home)
        ended = killed_at(script, [str(home), *arguments], call, k)
        yield Store(home, durable=False)
        if ended:
            return
        shutil.rmtree(home)
    raise AssertionError(call)


@pytest.fixture
def made(tmp_path):
    return tmp_path / "made"


def damage(tape):
    return [found.message for found in verify(tape, Counts()) if found.level != "note"]


@pytest.mark.parametrize("call", CALLS)
def test_redacting_is_completed_by_a_second_call(tmp_path, made, call):
    with making.store_in(made).create(making.beginning()) as tape, tape.writer() as writer:
        blob = tape.blobs.put(b"secret picture")
        picture = Image(blob, "image/png")
        secrets = [writer.append(User((Text("secret " * n), picture))).id for n in (2, 20_000)]
        writer.append(making.say("two"))
        writer.close()
        folder = made / "tapes" / tape.folder.name
        line = (folder / "phases/0001-main-start/entries.jsonl").read_bytes().split(b"\n")[1]
        torn = folder / "quarantine/0001-main-start.7"
        torn.write_bytes(line[:-4])
        torn.chmod(0o600)
        before = reader.path(folder, writer.parent)
    for store in each_kill(tmp_path, made, REDACT, call, [folder.name, *secrets]):
        with store.open_folder(folder.name) as tape:
            copy = store.tapes / folder.name
            assert set(damage(tape)) <= {
                "its data is gone in part: redacting it again completes that"
            }
            making.write(tape, "after")
            redact(tape, secrets, "why")
            assert [one for one in reader.files(copy).values() if b"secret" in one] == []
            assert {one.kind for one in verify(tape, Counts())} == {Kind.UNRECORDED}
            assert (making.texts(tape), reader.faults(copy)) == (["two", "after"], [])
            found = {one["id"] for one in reader.path(copy, tape.head().entry)}
            assert {one["id"] for one in before} <= found


@pytest.mark.parametrize("call", CALLS)
def test_detaching_is_whole_or_not_at_all(tmp_path, made, call):
    store = making.store_in(made)
    with store.create(making.beginning()) as parent:
        making.write(parent, "one", "x" * 70_000)
        (gone,) = making.write(parent, "secret")
        with store.create(making.beginning("child"), origin=(parent, parent.head())) as child:
            making.write(child, "mine")
            name, said = child.folder.name, making.texts(child)[:2]
        redact(parent, [gone.id], "why")
    for copy in each_kill(tmp_path, made, DETACH, call, [name]):
        with copy.open_folder(name) as tape:
            assert damage(tape) == []
            assert making.texts(tape) == [*said, "mine"]
            detach(tape)
            assert making.texts(tape) == [*said, "mine"]
            assert damage(tape) == []
            (other,) = (one for one in copy.folders() if one != name)
            shutil.rmtree(copy.tapes / other)
            assert reader.faults(copy.tapes / name) == []
