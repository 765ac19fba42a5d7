"""Ctrl+C during long upkeep, on a real terminal: it says how far it came, and the next run goes on.

Commands whose output would go to a pager write it to a file, as people do; progress and the last
words stand on the terminal.
"""

from __future__ import annotations

import json
import os
import re
import sys
from hashlib import sha256

import pytest

from tape.model.entries import Start
from tape.model.line import encode_line, encode_payload
from tape.store.refs import encode_ref_line
from tests.e2e.terminal import CTRL_C, Terminal
from tests.tape import making

pytestmark = pytest.mark.slow

MANY = 3000
PHASE = "0001-main-start"
TIME = "2026-01-01T00:00:00.000000Z"


def write_tape(tapes, identity, cwd, entries=2):
    """Write the files of a tape, with an old blob that no entry names."""
    folder = tapes / f"2026-01-01-many-{identity[:8]}"
    parent, lines = None, []
    start = Start(identity, PHASE, "main", cwd, "test/1")
    for n, payload in enumerate((start, *[making.say("hi")] * (entries - 1))):
        at = f"2026-01-01T00:00:00.{n:06}Z"
        header, line = encode_line(payload.entry_type, parent, n, at, encode_payload(payload))
        parent = header.id
        lines.append(line)
    moves = (
        {"branch": "main", "phase": PHASE, "pin": None, "why": "start", "time": TIME},
        {"current": "main", "why": "start", "time": TIME},
    )
    (folder / "phases" / PHASE).mkdir(parents=True)
    (folder / "phases" / PHASE / "entries.jsonl").write_bytes(b"".join(lines))
    (folder / "refs.jsonl").write_bytes(b"".join(map(encode_ref_line, moves)))
    info = {"format": 1, "id": identity, "created": TIME, "by": "test/1", "origin": None}
    (folder / "tape.json").write_text(json.dumps(info, separators=(",", ":")) + "\n")
    digest = sha256(b"x").hexdigest()
    blob = folder / "blobs" / digest[:2] / digest
    blob.parent.mkdir(parents=True)
    blob.write_bytes(b"x")
    os.utime(blob, (0, 0))


@pytest.fixture
def many(tape, talk):
    """Three thousand tapes and one."""
    for n in range(MANY):
        write_tape(tape.store / "tapes", f"{n:08x}".ljust(32, "0"), str(tape.work))
    return tape


CODE = "from tape.cli import main, terminal; terminal._PROGRESS_DELAY = 0.1; main()"
"""The program, with progress after a moment: a fast machine is done within the usual second."""


def press(tape, words, ready):
    """Run a command on a terminal, press Ctrl+C when a text is there, and return all it said."""
    line = f"exec {sys.executable} -c '{CODE}' {words} > out.txt"
    words = ["/bin/sh", "-c", line]
    with Terminal(words, cwd=tape.work, env=tape.env, columns=120) as shown:
        shown.wait_for(ready)
        shown.type(CTRL_C)
        assert shown.wait_for_end() == 130
        return shown.text().removeprefix("^C")


@pytest.mark.parametrize(
    ("words", "ready", "last"),
    [
        ("verify --all", "verified tape", r"tape: verified tape (\d+) of 3001; stopped\n"),
        (
            *("gc", "checked tape"),
            r"tape: checked tape (\d+) of 3001; stopped: nothing was deleted\n",
        ),
        (
            *("reindex", "read tape"),
            r"tape: read tape (\d+) of 3001; stopped: `tape reindex` continues there\n",
        ),
    ],
)
def test_upkeep_says_how_far_it_came(many, words, ready, last):
    said = press(many, words, ready)
    found = re.search(last, f"{said.rstrip()}\n")
    assert found, said
    assert 0 < int(found[1]) < MANY
    if words == "verify --all":
        whole = (many.work / "out.txt").read_text().count("\n")
        assert whole >= int(found[1])
    if words == "reindex":
        assert (many.store / ".index" / "stopped").exists()
        assert f"the index holds {MANY + 1} tapes" in many("reindex").text
        assert not (many.store / ".index").exists()


def test_what_was_deleted_stays_deleted_and_gc_deletes_the_rest(many):
    survey = many("gc", "--dry-run", "--json", code=None).json
    assert len(survey["garbage"]) == MANY
    said = press(many, "gc --yes", "deleted ")
    found = re.search(
        r"tape: deleted (\d+) of 3000; stopped: that is gone, and `tape gc` deletes the rest", said
    )
    assert found, said
    left = len([*many.store.glob("tapes/*/blobs/*/*")])
    assert 0 < left <= MANY - int(found[1])
    assert len(many("gc", "--yes", "--json").json["garbage"]) == left
    assert [*many.store.glob("tapes/*/blobs/*/*")] == []


def test_a_long_check_of_a_tape_says_how_far_it_came(tape, talk):
    """Of `verify` and of `fsck`, which has repaired nothing then."""
    write_tape(tape.store / "tapes", "f" * 32, str(tape.work), entries=200_000)
    for words, more in (("verify --jobs 1", ""), ("fsck --repair", ": nothing was repaired")):
        said = press(tape, f"{words} ffffffff", "verified entry")
        assert re.search(rf"tape: verified entry \d+; stopped{more}\n", f"{said.rstrip()}\n"), said
