"""A store of very many small tapes: what people do every day costs what it costs in a small one.

`many_rows` gives the rows of `make bench`. Two stores are made, of a hundred and of a hundred
thousand tapes (three thousand in a hurry), and each command runs in both by turns, as a process.
Compared is processor time.

Run it with the project's Python: `.venv/bin/python bench/many.py [TAPES [ROUNDS]]`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import sample
from measure import MIB, Row, Scale, by_turns, peak, table

from tape.clock import format_timestamp
from tape.index.library import open_store
from tape.model.entries import Assistant, Payload, Start, Text, Usage, User
from tape.model.line import FORMAT, encode_line, encode_payload
from tape.store.refs import encode_ref_line
from tape.store.store import Beginning, Store
from tape.store.tape import TapeInfo

if TYPE_CHECKING:
    from collections.abc import Callable

FEW = 100
PROJECTS = 50
"""Folders that the tapes work in, one after the other."""
TURNS = 4
"""Prompts with their answers in each tape."""
ROUNDS = 5
SEED = 20
ENTRIES, MADE = 10, 100
"""Entries of the tapes whose place on the disk is measured, and how many of them."""
BLOCK = 512
"""Bytes that `st_blocks` counts in."""
BIN = Path(sys.executable).parent
PHASE = "0001-main-start"
DAY = 86_400_000_000
"""Microseconds."""
WORDS = ("login", "page", "cache", "index", "build", "parser", "cookie", "queue", "socket", "style")


class Place(NamedTuple):
    """A store with its projects."""

    home: Path
    """The home folder: the store is `.tape` in it."""
    project: Path
    """A folder with tapes."""
    other: Path
    """A folder without any."""

    @property
    def store(self) -> Path:
        return self.home / ".tape"


def make_place(path: Path, tapes: int, turns: int = TURNS) -> Place:
    """Make a store of so many tapes with its projects."""
    home = path / f"home-{tapes}"
    for name in (*(f"p{n}" for n in range(PROJECTS)), "none"):
        (home / name).mkdir(parents=True)
    make_tapes(home / ".tape", tapes, [str(home / f"p{n}") for n in range(PROJECTS)], turns)
    return Place(home, home / "p0", home / "none")


def make_tapes(store: Path, tapes: int, folders: list[str], turns: int = TURNS) -> None:
    """Write whole small tapes, as recorded over the last year; the newest one is an hour old."""
    Store(store, durable=False).open_tapes_folder().close()
    random, now = Random(SEED), time.time_ns() // 1000
    for n in range(tapes):
        age = 3_600_000_000 + (tapes - n) * 365 * DAY // tapes
        write_tape(store / "tapes", random, folders[n % len(folders)], now - age, turns)


def write_tape(tapes: Path, random: Random, cwd: str, began: int, turns: int = TURNS) -> None:
    """Write the files of one tape: a phase with its turns, and two lines in the journal."""
    identity = random.randbytes(16).hex()
    title = f"{random.choice(WORDS)} {random.choice(WORDS)} {random.randrange(1000)}"
    folder = tapes / f"{format_timestamp(began)[:10]}-{title.replace(' ', '-')}-{identity[:8]}"
    model = f"model-{random.randrange(4)}"
    said: list[Payload] = [Start(identity, PHASE, "main", cwd, "bench/1", cwd)]
    for _ in range(turns):
        said.append(User((Text(f"please fix the {title} in {random.choice(WORDS)}.py"),)))
        usage = Usage(input=900, output=80, total=980)
        said.append(
            Assistant(
                (Text("I looked at it and changed " + " ".join(random.choices(WORDS, k=40))),),
                provider="bench",
                model=model,
                usage=usage,
            )
        )
    parent, lines = None, []
    for n, payload in enumerate(said):
        at = format_timestamp(began + n * 20_000_000)
        header, line = encode_line(payload.entry_type, parent, n, at, encode_payload(payload))
        parent = header.id
        lines.append(line)
    time_text = format_timestamp(began)
    info = TapeInfo(FORMAT, identity, time_text, "bench/1")
    (folder / "phases" / PHASE).mkdir(parents=True)
    (folder / "tape.json").write_bytes(msgspec.json.encode(info) + b"\n")
    (folder / "phases" / PHASE / "entries.jsonl").write_bytes(b"".join(lines))
    moves = (
        {"branch": "main", "phase": PHASE, "pin": None, "why": "start", "time": time_text},
        {"current": "main", "why": "start", "time": time_text},
    )
    (folder / "refs.jsonl").write_bytes(b"".join(map(encode_ref_line, moves)))


def spend(command: list[str], place: Place, cwd: Path, code: int = 0) -> float:
    """Run a command in a folder and return the processor time that it and its children took.

    `code` is the exit code it has to end with.
    """
    env = {"PATH": os.environ["PATH"], "HOME": str(place.home), "LC_ALL": "C.UTF-8"}
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=cwd, env=env, stderr=subprocess.PIPE, **quiet)
    assert process.stderr is not None
    told = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == code, (command, told.decode())
    return used.ru_utime + used.ru_stime


def run_tape(place: Place, *words: str, cwd: Path | None = None, code: int = 0) -> float:
    return spend([str(BIN / "tape"), *words], place, cwd or place.project, code)


def search_in_vain(place: Place) -> float:
    """Search for a word that no tape has."""
    return run_tape(place, "search", "zeppelin", code=1)


def write_first(place: Place) -> float:
    """Make a tape and append to it: what the first line of a session costs."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom tape import Beginning, Text, User, open_store\n"
        "store, index = open_store(Path(sys.argv[1]))\nstore.durable = False\n"
        "with store.create(Beginning(sys.argv[2], 'bench/1')) as tape, tape.writer() as writer:\n"
        "    writer.append(User((Text('hello'),)))\nindex.close()\n"
    )
    command = [sys.executable, "-c", code, str(place.store), str(place.project)]
    return spend(command, place, place.project)


def list_after(place: Place) -> float:
    write_first(place)
    return run_tape(place, "ls")


def list_each_minute(place: Place) -> float:
    (place.store / "index.checked").unlink(missing_ok=True)
    return run_tape(place, "ls")


def remove_newest(place: Place) -> float:
    write_first(place)
    run_tape(place, "ls")
    newest = max((place.store / "tapes").iterdir(), key=lambda folder: folder.stat().st_mtime)
    return run_tape(place, "rm", newest.name, "-y")


def restore_removed(place: Place) -> float:
    shutil.rmtree(place.store / "trash", ignore_errors=True)
    remove_newest(place)
    (gone,) = (place.store / "trash").iterdir()
    return run_tape(place, "restore", gone.name)


def continue_newest(place: Place) -> float:
    """Continue the folder's newest session with one prompt, answered without a network."""
    words = ("chat", "-c", "-m", "offline/rules", "-p", "hello")
    return spend([str(BIN / "gong"), *words], place, place.project)


def pick_session(place: Place) -> float:
    """Read what `/resume` shows at first: the newest sessions, those of this repository first."""
    code = (
        "import sys, os\nfrom pathlib import Path\n"
        "from gong.repl.commands.session_lists import list_sessions\n"
        "from tape.places.checkout import find_checkout\n"
        "list_sessions(Path(sys.argv[1]), find_checkout(sys.argv[2], os.environ), '')\n"
    )
    command = [sys.executable, "-c", code, str(place.store), str(place.project)]
    return spend(command, place, place.project)


EVERYDAY: dict[str, tuple[float, Callable[[Place], float]]] = {
    "first write of a new tape": (1.5, write_first),
    "list after a tape came": (1.5, list_after),
    "ls": (1.5, lambda place: run_tape(place, "ls")),
    "ls, in a folder without tapes": (1.5, lambda place: run_tape(place, "ls", cwd=place.other)),
    "ls once a minute": (2, list_each_minute),
    "rm": (1.5, remove_newest),
    "restore": (1.5, restore_removed),
    "tape search": (1.5, search_in_vain),
    "gong -c": (1.5, continue_newest),
    "/resume": (1.5, pick_session),
}
"""What people do, how much more it may cost among very many tapes, and how it is done."""


def compare(few: Place, many: Place, rounds: int, work: Callable[[Place], float]) -> float:
    """Return the ratio of the medians of some work in two stores, done by turns."""
    work(few), work(many)
    times: dict[str, list[float]] = {"few": [], "many": []}
    for _ in range(rounds):
        times["few"].append(work(few))
        times["many"].append(work(many))
    return median(times["many"]) / median(times["few"])


def many_rows(path: Path, scale: Scale) -> list[Row]:
    """Measure a store of a hundred thousand tapes against one of a hundred."""
    return measure(path, scale.large, min(scale.rounds, ROUNDS))


def measure(path: Path, tapes: int, rounds: int) -> list[Row]:
    few, many = make_place(path, FEW), make_place(path, tapes)
    rows = [*_first_list_rows(many, tapes)]
    run_tape(few, "ls")
    at = f"at {tapes:,} tapes"
    for name, (target, work) in EVERYDAY.items():
        ratio = compare(few, many, rounds, work)
        rows.append(Row(f"{name}, {at}", f"at {FEW}", ratio, "×", target, note="processor time"))
        print(f"{rows[-1].figure:8.2f} ≤ {target:<5} {name}", file=sys.stderr)
    sums = [run_tape(many, "stats") for _ in range(rounds)]
    searches = [search_in_vain(many) for _ in range(rounds)]
    rows.append(Row(f"stats, {at}", "search", median(sums) / median(searches), "×", 4))
    high = peak("tape", "ls", "--all", "--no-pager", "--store", str(many.store))["after"]
    rows.append(Row(f"ls --all: peak memory, {at}", "none", high / MIB, "MiB", 150))
    rows.append(_disk_row(path))
    return rows


def _first_list_rows(many: Place, tapes: int) -> list[Row]:
    first = run_tape(many, "ls")
    again = run_tape(many, "reindex")
    return [
        Row(f"first ls without an index, at {tapes:,} tapes", "reindex", first / again, "×", 1.2)
    ]


CONTINUED = 10_000
"""Tapes of the store in which a session is continued without an index."""


def unindexed_rows(path: Path, scale: Scale) -> list[Row]:
    """Measure the whole of `gong -p`, a new session and one continued, where no index is there."""
    place = make_place(path / "without", min(CONTINUED, scale.large), turns=1)
    run_tape(place, "ls")
    index = [place.store / name for name in ("index.db", "index.writers", "index.checked")]
    kept = {file: file.read_bytes() for file in index if file.exists()}

    def run(*words: str, has_index: bool) -> float:
        for file in index:
            file.unlink(missing_ok=True)
        for file, data in kept.items() if has_index else ():
            file.write_bytes(data)
        return spend(
            [str(BIN / "gong"), "chat", *words, "-m", "offline/rules", "-p", "hello"],
            place,
            place.project,
        )

    rows = []
    for name, words in {"gong -p": (), "gong -c -p": ("-c",)}.items():
        run(*words, has_index=True)
        pair = by_turns(
            min(scale.rounds, ROUNDS),
            lambda words=words: run(*words, has_index=False),
            lambda words=words: run(*words, has_index=True),
        )
        at = f"{name}, no index yet, at {min(CONTINUED, scale.large):,} tapes"
        rows.append(Row(at, "with its index", pair.ratio, "×", 2, note="processor time"))
    return rows


def _disk_row(path: Path) -> Row:
    """Measure what tapes of ten entries occupy, made as programs make them."""
    payloads = iter(sample.payloads(ENTRIES * MADE))
    size = used = 0
    with open_store(path / "disk", index=False) as (store, _):
        for _ in range(MADE):
            with store.create(Beginning("/src", "bench/1")) as tape, tape.writer() as writer:
                for payload in islice(payloads, ENTRIES):
                    writer.append(payload)
        for folder in store.tapes.iterdir():
            paths = (folder, *folder.rglob("*"))
            size += sum(path.stat().st_size for path in paths if path.is_file())
            used += sum(path.stat().st_blocks * BLOCK for path in paths)
    return Row(f"tapes of {ENTRIES} entries on the disk", "their content", used / size, "×", 2.5)


def main() -> int:
    tapes = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else ROUNDS
    with tempfile.TemporaryDirectory(prefix="tape-many-") as folder:
        rows = measure(Path(folder), tapes, rounds)
    print("\n".join(table(rows)))
    return int(any(row.met is False for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
