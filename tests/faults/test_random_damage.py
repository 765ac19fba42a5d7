"""Bytes and lines damaged at random, in every kind of file: named, said by readers, never lost.

`python tests/faults/test_random_damage.py [FIRST] [END]` prints each round.
"""

import shutil
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, StringIO, TextIOWrapper
from itertools import zip_longest
from pathlib import Path
from random import Random

import pytest
from msgspec import Raw, json

from tape.cli.group import run_command
from tape.index.library import open_store
from tape.model.entries import Assistant, Image, Text, ToolCall, ToolResult, User
from tape.model.line import verify_line
from tape.store.maintenance.upkeep import detach, redact
from tests.faults.histories import small
from tests.tape import making
from tests.tape.making import BUDGET

pytestmark = pytest.mark.slow

WRITTEN = "one\ntwo\n"
ROUNDS = 25 if BUDGET == 1 else 400
READERS = [
    *(("log",), ("log", "--json"), ("log", "--graph"), ("log", "--type", "user")),
    *(("cat",), ("cat", "--md"), ("context", "--json"), ("tail",)),
    *(("replay", "--check"), ("export", "--to", "anthropic"), ("export",)),
]
PAIRS = [
    *(("diff", "{0}:main", "{0}:side"), ("diff", "{1}", "{0}", "--json")),
    *(("blame", "{file}"), ("blame", "{file}", "--json", "-L", "2"), ("search", "one")),
]
"""Readers of more than one path."""
LISTS = [("show",), ("anchors",), ("branches",), ("ls", "--all"), ("stats",)]
"""What tells of files and of the newest entries, and reads no path: it may not fail."""
FRAMED = ("entries.jsonl",)
"""Files whose lines are chained: one that is missing, repeated or swapped shows."""


def build(path):
    """Make tapes with forks, an origin, blobs, anchors, redactions, quarantine; return the ids."""
    made = small(path)
    with open_store(path) as (store, _):
        with store.open(made.tape) as tape:
            with tape.writer() as writer:
                picture = Image(tape.blobs.put(b"a picture"), "image/png")
                gone = writer.append(User((Text("a secret"), picture))).id
                writer.append(making.answer("c_1", "c_2", text="two calls"))
                writer.append(making.result("c_1"))
                writer.append(making.say("more"))
                file = path.parent / "a.py"
                file.write_text(WRITTEN)
                args = {"path": str(file), "content": WRITTEN}
                call = ToolCall(id="c_3", name="write", args=Raw(json.encode(args)))
                writer.append(Assistant((call,)))
                writer.append(ToolResult("c_3", "write", (Text("ok"),)))
            redact(tape, [gone], "why")
            making.write(tape, "torn behind this")
        folder = made.folder(made.tape)
        with (folder / "phases/0002-side/entries.jsonl").open("ab") as file:
            file.write(b'{"id":"0123')
        with store.open(made.tape) as tape:
            making.write(tape, "behind the tail", branch="side")
            origin = tape, tape.head("side")
            with store.create(making.beginning("apart"), origin=origin) as apart:
                making.write(apart, "in the detached one")
                detach(apart)
                ids = (made.tape, made.child, apart.id)
    return ids


def said(store, *args):
    """Run a command in this process; return its code, its output and what it said of problems."""
    out, err = TextIOWrapper(BytesIO(), "utf-8"), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run_command([*args, "--store", str(store)])
        out.flush()
    problem = err.getvalue()
    assert "--debug shows where" not in problem, (args, problem)
    assert "Traceback" not in problem, (args, problem)
    return code, out.buffer.getvalue(), problem


def read_all(store, ids):
    file = str(store.parent / "a.py")
    asked = [(words[0], identity, *words[1:]) for identity in ids for words in READERS]
    asked += [tuple(word.format(*ids, file=file) for word in words) for words in PAIRS]
    return {words: said(store, *words) for words in asked}


def list_all(store, ids):
    for words in LISTS:
        for identity in ids:
            said(store, words[0], *([] if words[0] in {"ls", "stats"} else [identity]), *words[1:])


def damage(draw, path):
    """Change a file; return what was done, None where nothing changed."""
    old = path.read_bytes()
    data, lines = bytearray(old), old.split(b"\n")
    how = draw.choice(
        (
            "flip",
            "flip",
            "flips",
            "zeros",
            "cut",
            "insert",
            "delete line",
            "repeat line",
            "swap lines",
        )
    )
    at = draw.randrange(max(1, len(data)))
    one, two = draw.randrange(max(1, len(lines) - 1)), draw.randrange(max(1, len(lines) - 1))
    match how:
        case "flip" | "flips":
            for place in [at] if how == "flip" else draw.choices(range(len(data)), k=5):
                data[place] ^= draw.randrange(1, 256)
        case "zeros":
            data[at : at + 8] = bytes(len(data[at : at + 8]))
        case "cut":
            del data[at : at + draw.randrange(1, 40)]
        case "insert":
            data[at:at] = draw.randbytes(5)
        case "delete line":
            del lines[one]
        case "repeat line":
            lines.insert(two, lines[one])
        case "swap lines":
            lines[one], lines[two] = lines[two], lines[one]
    new = b"\n".join(lines) if "line" in how else bytes(data)
    path.write_bytes(new)
    return None if new == old else f"{how} at {at}, lines {one} {two}"


def is_seen(path, old, new):
    """Tell whether the format lets anybody see a change: of a file cut at a line's end it does not.

    A line of the journal that is whole says what it says wherever it is.
    """
    if path.name in FRAMED:
        return not (old.startswith(new) and (new.endswith(b"\n") or not new))
    if path.name == "refs.jsonl":
        lines = set(old.split(b"\n"))
        return any(line not in lines for line in new.split(b"\n"))
    return path.parent.parent.name == "blobs"


def whole_lines(store):
    """Return the entry lines whose hashes hold."""
    found = set()
    for path in store.glob("tapes/*/phases/*/entries.jsonl"):
        for line in path.read_bytes().split(b"\n")[:-1]:
            try:
                verify_line(line)
            except Exception:  # noqa: BLE001 (whatever is wrong with it)
                continue
            found.add(line)
    return found


def difference(old, new):
    """Return the first line that is another one."""
    pairs = zip_longest(old.split(b"\n"), new.split(b"\n"))
    return next((pair for pair in pairs if pair[0] != pair[1]), None)


def round_of(seed, home, made, before, ids):
    """Damage one file of a copy of the store and judge everybody who reads it."""
    draw, store = Random(seed), home / "store"
    shutil.rmtree(store, ignore_errors=True)
    shutil.copytree(made, store)
    files = sorted(path for path in store.rglob("*") if path.is_file() and path.stat().st_size)
    kinds = sorted({path.name if len(path.name) < 20 else "blob" for path in files})
    kind = draw.choice([*kinds, *["entries.jsonl"] * len(kinds)])
    path = draw.choice(
        [one for one in files if one.name == kind or (kind == "blob" and len(one.name) > 20)]
    )
    old = path.read_bytes()
    done = f"seed {seed}: {path.relative_to(store)}: {damage(draw, path)}"
    new = path.read_bytes()
    if new == old:
        return f"{done}, nothing"
    list_all(store, ids)
    verified = said(store, "verify", "--all")
    if is_seen(path, old, new):
        assert verified[0] == 4, (done, verified)
        after = read_all(store, ids)
        silent = [
            words
            for words, (code, out, problem) in after.items()
            if code == before[words][0]
            and problem == before[words][2]
            and out != before[words][1]
            # a search of all tapes says nothing of a journal whose last line is torn
            and (words[0] != "search" or path.name != "refs.jsonl")
        ]
        shown = [difference(before[words][1], after[words][1]) for words in silent[:2]]
        assert silent == [], (done, silent, shown)
    else:
        read_all(store, ids)
    whole = whole_lines(store)
    for identity in ids:
        said(store, "fsck", identity, "--repair", "--yes")
    left = b"\n".join(one.read_bytes() for one in store.rglob("*") if one.is_file())
    assert [line for line in whole if line not in left] == [], done
    return done


def prepared(home):
    """Make the store; return a copy of it, what each reader says of it, and the tapes' ids."""
    ids = build(home / "store")
    before = read_all(home / "store", ids)
    shutil.copytree(home / "store", home / "made")
    return home / "made", before, ids


@pytest.mark.slow
def test_random_damage_is_named_and_loses_nothing(tmp_path):
    made, before, ids = prepared(tmp_path)
    for seed in range(ROUNDS):
        round_of(seed, tmp_path, made, before, ids)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        pattern, first, tapes = prepared(Path(place))
        for number in range(*(map(int, sys.argv[1:]) if len(sys.argv) > 1 else (400,))):
            try:
                print(round_of(number, Path(place), pattern, first, tapes), flush=True)
            except AssertionError as error:
                print("FAILED", str(error)[:1500], flush=True)
