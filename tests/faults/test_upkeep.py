"""SIGKILL while a tape is redacted or detached: whole before, and a second call completes it."""

import shutil
import signal
import sys

import pytest

from tape.check.finding import Counts, FindingKind
from tape.check.verify import verify
from tape.cli.group import run_command
from tape.index.library import open_store
from tape.model.entries import Image, Text, User
from tape.store.maintenance.upkeep import detach, redact
from tape.store.store import Store
from tests.faults.zygote import TAPE, ran
from tests.tape import making, reader
from tests.tape.making import BUDGET

REDACT = """
import sys
from pathlib import Path
from tape.store.store import Store
from tape.store.maintenance.upkeep import redact
store = Store(Path(sys.argv[1]))
with store.open_folder(sys.argv[2]) as tape:
    redact(tape, sys.argv[3:], "why")
"""
DETACH = """
import sys
from pathlib import Path
from tape.store.store import Store
from tape.store.maintenance.upkeep import detach
store = Store(Path(sys.argv[1]))
with store.open_folder(sys.argv[2]) as tape:
    detach(tape)
"""
STEP = 5 if BUDGET == 1 else 1
"""Of the index's many pages, which can be dropped, only some are the last one written."""
CALLS = ("pwrite64", "write", "unlinkat", "renameat", "mkdirat", "ftruncate", "fdatasync", "fsync")
pytestmark = [
    pytest.mark.slow,
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
        torn.parent.mkdir(mode=0o700)
        torn.write_bytes(line[:-4])
        torn.chmod(0o600)
        before = reader.path(folder, writer.parent)
    for store in each_kill(tmp_path, made, REDACT, call, [folder.name, *secrets]):
        with store.open_folder(folder.name) as tape:
            copy = store.tapes / folder.name
            assert damage(tape) == []
            making.write(tape, "after")
            redact(tape, secrets, "why")
            assert [one for one in reader.files(copy).values() if b"secret" in one] == []
            kinds = {one.kind for one in verify(tape, Counts())}
            assert kinds - {FindingKind.UNCOMMITTED} == {FindingKind.UNRECORDED}
            assert (making.texts(tape), reader.faults(copy)) == (["two", "after"], [])
            found = {one["id"] for one in reader.path(copy, tape.head().entry)}
            assert {one["id"] for one in before} <= found


REDACT_COMMAND = ("redact", "--yes", "--why", "why")


def secrets_in(store):
    return [path for path in store.rglob("*") if path.is_file() and b"secret" in path.read_bytes()]


@pytest.fixture
def with_secrets(tmp_path):
    """A store with an index, a tape with secrets in entries, a blob and quarantine; their ids."""
    with open_store(tmp_path / "made") as (store, _), store.create(making.beginning()) as tape:
        with tape.writer() as writer:
            picture = Image(tape.blobs.put(b"secret picture"), "image/png")
            said = [writer.append(User((Text("secret " * n), picture))).id for n in (2, 20_000)]
            writer.append(making.say("two"))
        folder = store.tapes / tape.folder.name
        line = (folder / "phases/0001-main-start/entries.jsonl").read_bytes().split(b"\n")[1]
        (folder / "quarantine").mkdir(mode=0o700, exist_ok=True)
        (folder / "quarantine/0001-main-start.7").write_bytes(line[:-4])
        return folder.name, said


@pytest.mark.parametrize("call", CALLS)
def test_a_redaction_that_was_killed_is_completed(tmp_path, with_secrets, call, capsys):
    """By the next append, fsck --repair or redaction, each at every third kill."""
    name, said = with_secrets
    command = (TAPE, *REDACT_COMMAND, *(f"{name}@{entry}" for entry in said))
    for k in range(1, 1000, STEP if call == "pwrite64" else 1):
        by, home = ("append", "fsck", "redact")[k % 3], tmp_path / "store"
        shutil.copytree(tmp_path / "made", home)
        trace = ["-f", "-qq", "-o", "/dev/null", f"--trace={call}"]
        trace += [f"--inject={call}:signal=KILL:when={k}"]
        _, code = ran(trace, list(command), {"TAPE_HOME": str(home)})
        assert code in (0, -signal.SIGKILL)
        store = ["--store", str(home)]
        for args in (
            ["verify", name],
            ["cat", name],
            ["context", name],
            ["export", name, "-o", str(tmp_path / f"{call}-{k}")],
        ):
            assert run_command([*args, *store]) == 0, (args, k, capsys.readouterr())
        assert "skipped" not in capsys.readouterr().err
        with open_store(home) as (opened, _), opened.open_folder(name) as tape:
            begun = bool(list(tape.phases.iter_redact_payloads())) or by == "redact"
            if by == "append":
                making.write(tape, "after")
        if by == "fsck":
            assert run_command(["fsck", name, "--repair", "--yes", *store]) == 0
        if by == "redact":
            assert run_command([*command[1:], *store]) == 0
        capsys.readouterr()
        with open_store(home) as (opened, _), opened.open_folder(name) as tape:
            kinds = {one.kind for one in verify(tape, Counts())}  # a copy begins phases of its own
            assert kinds <= {FindingKind.UNRECORDED, FindingKind.UNCOMMITTED}, k
            assert not tape.folder.has(".redacting")
            assert (making.texts(tape)[0] == "two") is begun
        assert not begun or secrets_in(home) == [], k
        shutil.rmtree(home)
        if code == 0:
            return
    raise AssertionError(call)


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
