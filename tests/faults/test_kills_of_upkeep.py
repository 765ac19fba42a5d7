"""gc, mv, rm and restore killed at every call that changes a disk: nothing is lost or half done.

`python tests/faults/test_kills_of_upkeep.py` kills at every k and prints k and outcome.
"""

import json
import os
import shutil
import signal
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import pytest

from tape.cli.group import run_command
from tape.index.library import open_store
from tape.model.line import verify_line
from tests.faults.histories import small
from tests.faults.zygote import TAPE, ran
from tests.tape import making
from tests.tape.making import BUDGET

pytestmark = pytest.mark.slow

CALLS = {
    "write": "write",
    "pwrite64": "pwrite64",
    "rename*": "rename,renameat,renameat2",
    "mkdir*": "mkdir,mkdirat",
    "unlink*": "unlink,unlinkat,rmdir",
    "fsync": "fsync",
    "fdatasync": "fdatasync",
}
"""What changes a disk, and the system calls that do it."""
NAMES = ("gc", "gc --trash", "mv", "rm", "rm both", "restore")
GARBAGE = b"what no entry names"


def command(name, made):
    """Return the arguments of a command on a store that `build` made."""
    return {
        "gc": ("gc", "--yes", "--json"),
        "gc --trash": ("gc", "--trash", "--yes", "--json"),
        "mv": ("mv", made["tape"], "/elsewhere", "--json"),
        "rm": ("rm", made["child"], "--yes"),
        "rm both": ("rm", made["tape"], made["child"], "--yes"),
        "restore": ("restore", made["removed"]),
    }[name]


def build(path):
    """Make a store with a tape, its child, a removed one, and garbage of every kind; return ids."""
    made = small(path)
    with open_store(path) as (store, index):
        with store.create(making.beginning("removed")) as tape:
            making.write(tape, "in the trash", "long " * 14_000)
            removed = tape.id
            store.remove(tape)
        with store.open(made.tape) as tape:
            garbage = [store.tapes / tape.folder.name / "blobs" / tape.blobs.put(GARBAGE).hash[:2]]
            phases = store.tapes / tape.folder.name / "phases"
            for phase in ("0009-side", "0010-side"):  # the number of the newest is never free
                (phases / phase).mkdir(mode=0o700)
                (phases / phase / "entries.jsonl").touch(mode=0o600)
                garbage.append(phases / phase)
        garbage.append(store.tapes / f".new-{'0' * 32}")
        garbage[-1].mkdir(mode=0o700)
        (garbage[-1] / "tape.json").write_bytes(b"{")
        for one in garbage:
            for each in [*one.iterdir(), one]:
                os.utime(each, (1_600_000_000, 1_600_000_000))
        index.rows(None, 0)
    return {"tape": made.tape, "child": made.child, "removed": removed}


def said(store, *args):
    """Run a command in this process; return its code, its output and what it said of problems."""
    out, err = TextIOWrapper(BytesIO(), "utf-8"), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run_command([*args, "--store", str(store)])
        out.flush()
    return code, out.buffer.getvalue().decode(), err.getvalue()


def places(store):
    """Return tape id → the folder of `tapes` and `trash` in which it stands."""
    found = {}
    for path in [*store.glob("tapes/[!.]*/tape.json"), *store.glob("trash/[!.]*/tape.json")]:
        identity = json.loads(path.read_bytes())["id"]
        assert identity not in found, "it stands in two places"
        found[identity] = path.parent.parent.name
    return found


def lines(store, *without):
    """Return the committed entry lines and the named blobs of all tapes that are in some place."""
    found = set()
    for path in store.glob("t*/[!.]*/phases/*/entries.jsonl"):
        if path.parents[3].name not in without:
            whole = path.read_bytes().split(b"\n")[:-1]
            for line in whole:
                verify_line(line)
            found |= set(whole)
    for path in store.glob("t*/[!.]*/blobs/*/[!.]*"):
        if path.parents[3].name not in without and path.read_bytes() != GARBAGE:
            found.add(path.name)
    return found


def judge(store, name, made, before, told):
    """Check a store in which a command was killed, and complete what it was to do."""
    empties = name == "gc --trash"
    assert before <= lines(store), "lost"
    stand = places(store)
    assert stand.keys() >= set(made.values()) - ({made["removed"]} if empties else set())
    if name.startswith("rm") and "is in the trash" in told:
        assert stand[made["child"]] == "trash"
    if name == "restore" and told.endswith("\n"):
        assert stand[made["removed"]] == "tapes"
    if name == "mv" and told.endswith("}\n"):
        assert any(json.loads(told)["entry"].encode() in line for line in lines_of(store))
    assert said(store, "verify", "--all")[0] == 0, said(store, "verify", "--all")
    for identity in [one for one, place in stand.items() if place == "tapes"]:
        done = said(store, "fsck", identity, "--repair", "--yes")
        assert done[0] == 0, done
    again = said(store, *command(name, made))
    assert again[0] == 0 or (again[0] == 3 and name[:2] in ("rm", "re")), again
    if again[0] == 3 and name == "rm both":  # the child went; the other is still to go
        said(store, "rm", made["tape"], "--yes")
    goal = dict.fromkeys(made.values(), "tapes") | {made["removed"]: "trash"}
    if name.startswith("rm"):
        goal |= dict.fromkeys(command(name, made)[1:-1], "trash")
    if name == "restore":
        goal[made["removed"]] = "tapes"
    if empties:
        del goal[made["removed"]]
    assert places(store) == goal
    assert before <= lines(store)
    assert said(store, "verify", "--all")[0] == 0
    if name.startswith("gc"):
        assert GARBAGE not in [one.read_bytes() for one in store.glob("tapes/*/blobs/*/*")]
        assert not list(store.glob("tapes/*/phases/0009-side"))
    shown = json.loads(said(store, "ls", "--all", "--json")[1])
    assert {row["id"] for row in shown} == {one for one, at in goal.items() if at == "tapes"}


def lines_of(store):
    return [line for line in lines(store) if isinstance(line, bytes)]


def kills(name, call, pattern, made, home, step):
    """Kill a command at each k of a call, judge what is found, and yield a word on it."""
    before = lines(pattern, *(["trash"] if name == "gc --trash" else []))
    for k in range(1, 3000, step):
        store = home / "store"
        shutil.rmtree(store, ignore_errors=True)
        shutil.copytree(pattern, store)
        trace = ["-f", "-qq", "-o", "/dev/null", f"--trace={CALLS[call]}"]
        trace.append(f"--inject={CALLS[call]}:signal=KILL:when={k}")
        told, code = ran(trace, [TAPE, *command(name, made)], {"TAPE_HOME": str(store)})
        assert code in (0, -signal.SIGKILL), (name, call, k, told)
        try:
            judge(store, name, made, before, told)
        except AssertionError as error:
            raise AssertionError(f"{name}, killed at {call} {k}: {error}") from error
        yield f"{name:10} {call:9} k={k:<4} {'ended' if code == 0 else 'killed'}"
        if code == 0:
            return
    raise AssertionError("it never ended")


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_upkeep_killed_at_any_call_is_completed_by_a_second_one(name, tmp_path):
    made = build(tmp_path / "made")
    rows = []
    for call in CALLS:
        step = 1 if BUDGET > 1 else 60 if call == "pwrite64" else 4
        rows += kills(name, call, tmp_path / "made", made, tmp_path, step)
    assert any(row.endswith("killed") for row in rows)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        ids = build(Path(place) / "made")
        for one in sys.argv[1:] or NAMES:
            for kind in CALLS:
                for row in kills(one, kind, Path(place) / "made", ids, Path(place), 1):
                    print(row, flush=True)
