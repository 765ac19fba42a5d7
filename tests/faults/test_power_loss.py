"""The power fails: whatever was not synced is lost, and nothing that was told.

Each real command is traced once (`traces.py`); `power.py` makes every folder that could be found
after a cut.

`python tests/faults/test_power_loss.py` prints each cut and its outcome.
"""

import shutil
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from tape.check.finding import FindingKind
from tape.cli.group import run_command
from tape.index.library import open_store
from tape.model.entries import Image, Text, User
from tests.faults import power, traces
from tests.faults.test_every_kill import (
    BIN,
    Operation,
    answer,
    findings,
    go_on,
    held,
    ids,
    judged,
    operations,
    pattern,
    tear,
)
from tests.faults.zygote import traced
from tests.tape import making
from tests.tape.making import BUDGET

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed"),
]

NAMES = (
    *("append", "append, entry", "append, at once", "append, torn"),
    *("fork", "fork --new", "merge", "anchor", "rewind", "new", "new store"),
)
MORE = 1 if BUDGET == 1 else 20
"""Random losses at each step."""


def prepared(store):
    """Make a store with a conversation in it; return the commands that can be run there."""
    made, tape = pattern()
    shutil.copytree(made, store)
    known = operations(store, tape)
    command, lines = known["append"]
    return known | {
        "append, entry": Operation((*command, "--durability", "entry"), lines),
        "append, none": Operation((*command, "--durability", "none"), lines),
        "append, at once": Operation(command, (b"".join(lines),)),
    }


def ran(trace, store, operation):
    """Run a command to its end, or until it is killed."""
    with traced(trace, operation.command, {"TAPE_HOME": str(store)}) as running:
        for line in operation.lines:
            answer(running, line)
        with suppress(BrokenPipeError):
            running.stdin.close()
        running.stdout.read()
        return running.wait()


def recorded(name, store):
    """Trace a command in a store made for it."""
    operation = prepared(store)[name]
    if name == "append, torn":
        tear(store)

    def run(trace):
        assert ran(trace, store, operation) == 0

    return traces.record(store, run)


def outcomes(cuts, home):
    """Yield each cut and how the store was found after it."""
    for number, cut in enumerate(cuts):
        store = home / str(number)
        cut.write(store)
        try:
            yield cut, (judged if cut.in_order else opened)(store, cut.said.decode())
        except Exception as error:
            error.add_note(f"{cut.when}; look at {store}")
            raise
        shutil.rmtree(store)


def opened(store, said):
    """Check a store in which a line is there without the unsynced one that stood before it.

    That is damage for good, named by verify, for no reader can tell that nobody was told of it.
    Nothing that was told is gone, and the tape goes on.
    """
    assert {one.kind for one in findings(store)} <= {
        FindingKind.LINE,
        FindingKind.PLACE,
        FindingKind.TORN,
    }
    assert not ids(said) - held(store), "told and lost"
    go_on(store)
    assert not ids(said) - held(store)
    return "damage"


@pytest.fixture
def home():
    """A folder in memory where there is one: hundreds of stores are made and synced in it."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as made:
        yield Path(made)


@pytest.mark.parametrize("name", NAMES)
def test_a_power_cut_anywhere_loses_nothing_that_was_confirmed(name, home):
    cuts = power.cuts(recorded(name, home / "store"), MORE)
    found = [(cut.said, how) for cut, how in outcomes(cuts, home)]
    assert len(found) > 5
    assert found[0][0] == b"" != found[-1][0]


def test_a_command_that_does_not_sync_is_found_to_lose(home):
    """The model can tell: the same command without its syncs does not pass."""
    with pytest.raises(AssertionError, match="told and lost"):
        list(outcomes(power.cuts(recorded("append, none", home / "store")), home))


PAIRS = [
    ("append", "append", "fsync"),
    ("anchor", "append", "fdatasync"),
    ("append", "merge", "fdatasync"),
    ("new store", "new store", "fsync"),
]
"""The command that is killed, the one that goes on, and the call the first one is killed at."""
if BUDGET > 1:
    PAIRS += [
        ("append", "append", "fdatasync"),
        ("rewind", "append", "fdatasync"),
        ("anchor", "append", "fsync"),
        ("fork", "append", "fdatasync"),
        ("new", "new", "fsync"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("first", "then", "call"), PAIRS)
def test_a_power_cut_after_a_writer_continued_behind_a_kill(first, then, call, home):
    """What a killed command did not sync was seen by the next one, which built on it."""
    for k in range(1, 100):
        place = home / str(k)
        store = place / "store"
        known, ends = prepared(store), []

        def run(trace, k=k, store=store, known=known, ends=ends):
            inject = f"--inject={call}:signal=KILL:when={k}"
            ends.append(ran([*trace, inject], store, known[first]))
            assert ran([*trace, "-A"], store, known[then]) == 0

        recording = traces.record(store, run)
        if ends == [0]:
            assert k > 1
            return
        assert ends == [-signal.SIGKILL]
        for _ in outcomes(power.cuts(recording, at_the_end=True), place):
            pass


SECRET = b"swordfish"


def with_secrets(store):
    """Make a store with a secret in a line, in blobs and in quarantine; return tape and entries."""
    with open_store(store) as (opened, _), opened.create(making.beginning()) as tape:
        making.write(tape, "one")
        with tape.writer() as writer:
            picture = Image(tape.blobs.put(SECRET + b" picture"), "image/png")
            texts = [SECRET.decode() * n for n in (2, 20_000)]
            secrets = [writer.append(User((Text(text), picture))).id for text in texts]
            writer.append(making.say("two"))
        folder = opened.tapes / tape.folder.name
        line = (folder / "phases/0001-main-start/entries.jsonl").read_bytes().split(b"\n")[2]
        (folder / "quarantine").mkdir(mode=0o700, exist_ok=True)
        (folder / "quarantine/0001-main-start.7").write_bytes(line[:-4])
        (folder / "quarantine/0001-main-start.7").chmod(0o600)
        return tape.id, secrets


def secret_files(store):
    return [one for one in store.rglob("*") if one.is_file() and SECRET in one.read_bytes()]


def test_a_power_cut_while_redacting_leaves_what_a_second_call_completes(home):
    tape, secrets = with_secrets(home / "store")
    words = ("redact", *(f"{tape}@{one}" for one in secrets), "--yes", "--why", "why")

    def redact(trace):
        assert ran(trace, home / "store", Operation((BIN, *words))) == 0

    before = held(home / "store")
    recording = traces.record(home / "store", redact)
    told = 0
    for number, cut in enumerate(power.cuts(recording, MORE)):
        store = home / str(number)
        cut.write(store)
        if cut.said:
            told += 1
            assert secret_files(store) == [], f"told and still there: {cut.when}"
        assert before - set(secrets) <= held(store), cut.when
        kinds = {one.kind for one in findings(store, "note")}
        assert kinds <= (
            {FindingKind.TORN}
            if cut.in_order
            else {FindingKind.LINE, FindingKind.PLACE, FindingKind.TORN}
        ), (
            cut.when,
            findings(store, "note"),
        )
        if cut.in_order:
            assert run_command([*words, "--store", str(store)]) == 0, cut.when
            assert secret_files(store) == [], cut.when
            assert before <= held(store)
            go_on(store)
            assert findings(store, "note") == [], cut.when
        shutil.rmtree(store)
    assert told > 0


if __name__ == "__main__":
    for each in NAMES:
        with tempfile.TemporaryDirectory() as made:
            every = power.cuts(recorded(each, Path(made) / "store"), MORE)
            for one, how in outcomes(every, Path(made)):
                print(f"{each:15} {how:6} {one.when}", flush=True)
