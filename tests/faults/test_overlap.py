"""Two real processes on one tape at once: nothing lost, nothing twice, never one file for both."""

import subprocess
import sys
from contextlib import ExitStack

from tape.clock import parse_timestamp
from tests.tape import making, reader

COUNT = 1_000
START = """
import sys
from pathlib import Path
from tape.model.entries import Text
from tape.model.entries import User
from tape.store.store import Store
me, count = sys.argv[3], int(sys.argv[4])
tape = Store(Path(sys.argv[1])).open(sys.argv[2])
"""
APPEND = (
    START
    + """
with tape.writer() as writer:
    print(writer.branch, flush=True)
    sys.stdin.readline()
    for number in range(count):
        writer.append(User((Text(f"{me} {number}"),)))
        writer.barrier()
        if not number:
            print("begun", flush=True)
            sys.stdin.readline()
"""
)
FORK = (
    START
    + """
print("ready", flush=True)
sys.stdin.readline()
made = []
for number in range(count):
    name = tape.fork(tape.head("main"))
    made.append(name)
    with tape.writer(name) as writer:
        writer.append(User((Text(name),)))
    if not number:
        print("begun", flush=True)
        sys.stdin.readline()
print(*made)
"""
)
AGAIN = (
    START
    + """
print("ready", flush=True)
sys.stdin.readline()
made = []
for number in range(count):
    with tape.writer() as writer:
        made.append(writer.append(User((Text(me),))).id)
    if not number:
        print("begun", flush=True)
        sys.stdin.readline()
print(*made)
"""
)


def at_once(script, path, tape, count):
    """Run a script twice at once; return what each said, first the line before the start.

    Neither goes on after its first step before both have done theirs, so that they overlap.
    """
    command = [sys.executable, "-c", script, str(path), tape]
    with ExitStack() as stack:
        running = [
            stack.enter_context(
                subprocess.Popen(
                    [*command, me, str(count)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for me in ("a", "b")
        ]
        ready = [process.stdout.readline().strip() for process in running]
        start_both(running)
        assert [process.stdout.readline() for process in running] == ["begun\n"] * 2
        start_both(running)
        said = [process.communicate()[0].split() for process in running]
        assert [process.returncode for process in running] == [0, 0]
    return [[first, *rest] for first, rest in zip(ready, said, strict=True)]


def start_both(running):
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()


def span(tape, branch):
    """Return when the first and the last entry of a branch's own phase was made."""
    times = [parse_timestamp(entry.time) for entry in making.entries(tape, branch)[-COUNT:]]
    return times[0], times[-1]


def test_two_writers_of_one_tape_each_keep_all_their_entries(tmp_path):
    store = making.store_in(tmp_path)
    with store.create(making.beginning()) as tape:
        said = at_once(APPEND, tmp_path, tape.id, COUNT)
        mine = {branch: me for (branch, *_), me in zip(said, "ab", strict=True)}
        assert sorted(mine) == ["main", "main.2"]
        for branch, me in mine.items():
            assert making.texts(tape, branch) == [f"{me} {number}" for number in range(COUNT)]
        (begin, end), (other_begin, other_end) = span(tape, "main"), span(tape, "main.2")
        assert max(begin, other_begin) < min(end, other_end)
        assert reader.faults(making.folder_of(store, tape)) == []


def test_two_concurrent_forks_never_share_a_name_or_a_phase(tmp_path):
    store = making.store_in(tmp_path)
    with store.create(making.beginning()) as tape:
        said = at_once(FORK, tmp_path, tape.id, 30)
        names = [name for _, *made in said for name in made]
        assert sorted(names) == sorted(f"fork-{k}" for k in range(1, 61))
        assert {name: making.texts(tape, name) for name in names} == {n: [n] for n in names}
        folder = making.folder_of(store, tape)
        assert len(reader.phases(folder)) == 61
        assert reader.faults(folder) == []


def test_two_who_open_again_and_again_lose_nothing(tmp_path):
    store = making.store_in(tmp_path)
    with store.create(making.beginning()) as tape:
        said = at_once(AGAIN, tmp_path, tape.id, 60)
        folder = making.folder_of(store, tape)
        held = [one.entry["id"] for lines in reader.phases(folder).values() for one in lines]
        made = [entry for _, *ids in said for entry in ids]
        assert len(made) == len(set(made)) == 120
        assert set(made) <= set(held)
        assert len(held) == len(set(held))
        assert reader.faults(folder) == []
