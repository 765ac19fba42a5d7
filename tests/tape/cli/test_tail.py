"""`tape tail`: the newest entries of a path, and what comes, from another process."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from contextlib import contextmanager

import pytest

from tape.store.refs import Pin
from tape.store.store import Store
from tests.tape.cli.conftest import BIN, TALK, TYPES, line

ENOUGH = 120
"""Seconds after which something hangs."""


def types(ran):
    return [entry["type"] for entry in ran.json]


def notes(*texts):
    return b"".join(line("note", text=text) for text in texts)


@contextmanager
def following(tape, *arguments):
    """Hold a running `tape tail -f`."""
    with tape.open("tail", "-f", *arguments) as process:
        try:
            yield process
        finally:
            process.kill()


def read_json(process, count):
    return [json.loads(process.stdout.readline()) for _ in range(count)]


def interrupt(process):
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=ENOUGH)
    return process.returncode, out.decode(), err.decode()


def test_the_newest_ten_are_shown_as_log_shows_them(tape, talk):
    tape("append", talk, stdin=notes(*map(str, range(8))))
    assert tape("tail", talk).out == tape("log", talk, "-n", "10").out
    assert types(tape("tail", talk, "--json")) == [*TYPES[-2:], *["note"] * 8]


@pytest.mark.parametrize("count", [0, 1, 3, 99])
def test_another_number_can_be_asked_for(tape, talk, count):
    assert types(tape("tail", "-n", str(count), "--json")) == TYPES[len(TYPES) - min(count, 6) :]


def test_any_ref_has_a_tail(tape, talk):
    assert types(tape("tail", f"{talk}~1", "-n", "2", "--json")) == TYPES[3:5]
    tape("fork", f"{talk}~3", "--name", "b")
    assert types(tape("tail", f"{talk}:b", "-n", "1", "--json")) == ["assistant"]


@pytest.mark.parametrize("ref", ["ID~1", "ID@{0}", "ID:main~2"])
def test_an_entry_is_not_followed(tape, talk, ref):
    said = tape.refused("tail", "-f", ref.replace("ID", talk), code=2)
    assert said == "-f follows a branch, not an entry: write TAPE or TAPE:BRANCH"


def test_what_is_not_there_is_not_found(tape, talk):
    for arguments in (["abcdef"], ["-f", "abcdef"], ["-f", f"{talk}:gone"]):
        tape.refused("tail", *arguments, code=3)


def test_a_new_entry_is_shown_immediately_and_interrupting_ends_it(tape, talk):
    with following(tape, talk, "-n", "1", "--json") as process:
        lines = [process.stdout.readline()]
        for text in ("one", "two"):
            tape("append", talk, stdin=notes(text))
            lines.append(process.stdout.readline())
        assert interrupt(process) == (130, "", "")
    path = tape("tail", talk, "-n", "3", "--json").out
    assert path == b"[\n" + b",\n".join(one[:-1] for one in lines) + b"\n]\n"


def test_what_comes_is_readable(tape, talk):
    with following(tape, talk, "-n", "1") as process:
        for count in ("1", "5"):
            shown = tape("tail", talk, "-n", count).out
            assert process.stdout.read(len(shown)) == shown
            tape("append", talk, stdin=TALK)
        assert interrupt(process)[0] == 130


def test_a_tape_alone_follows_its_current_branch_and_stays_on_it(tape, talk):
    with following(tape, talk, "-n", "1", "--json") as process:
        read_json(process, 1)
        tape("fork", talk, "--name", "b", "--switch")
        tape("append", talk, stdin=notes("theirs"))
        tape("append", f"{talk}:main", stdin=notes("ours"))
        assert [entry["data"] for entry in read_json(process, 1)] == [{"text": "ours"}]
        assert interrupt(process) == (130, "", "")


def test_a_named_branch_is_followed_into_its_phase(tape, talk):
    tape("fork", talk, "--name", "b")
    with following(tape, f"{talk}:b", "-n", "1", "--json") as process:
        read_json(process, 1)
        tape("append", f"{talk}:main", stdin=notes("theirs"))
        tape("append", f"{talk}:b", stdin=notes("ours"))
        assert [entry["type"] for entry in read_json(process, 2)] == ["branch", "note"]


def test_a_rewind_is_reported_on_standard_error(tape, talk):
    first = tape("log", talk, "--json").json[0]["id"]
    with following(tape, talk, "-n", "1", "--json") as process:
        read_json(process, 1)
        with Store(tape.store).open(talk) as opened, opened.journal.open_moves() as moves:
            moves.branch("main", "0001-main-start", Pin(0, first), "undo")
        assert process.stderr.readline().decode() == f"tape: main moved to {first[:8]} (undo)\n"
        tape("append", talk, stdin=notes("again"))
        branch, _ = read_json(process, 2)
        assert (branch["type"], branch["parentId"]) == ("branch", first)


def test_a_damaged_line_is_left_out_and_warned_about(tape, talk):
    (file,) = tape.folder(talk).glob("phases/*/entries.jsonl")
    with following(tape, talk, "-n", "1", "--json") as process:
        read_json(process, 1)
        before = file.read_bytes()
        tape("append", talk, stdin=notes("one", "two"))
        after = file.read_bytes()
        read_json(process, 2)
    file.write_bytes(before)
    with following(tape, talk, "-n", "1", "--json") as process:
        read_json(process, 1)
        with file.open("ab") as opened:
            opened.write(after[len(before) :].replace(b'"one"', b'"ONE"'))
        assert [entry["data"] for entry in read_json(process, 1)] == [{"text": "two"}]
        assert process.stderr.readline().startswith(b"tape: 0001-main-start: line at byte ")


@pytest.mark.parametrize("idle", [True, False])
def test_it_ends_when_its_output_is_closed(tape, talk, idle):
    with following(tape, talk) as process:
        process.stdout.readline()
        process.stdout.close()
        if not idle:
            tape("append", talk, stdin=TALK)
        assert process.wait(ENOUGH) == 0
        assert process.stderr.read() == b""
        process.stdout = None


def test_it_continues_into_a_file(tape, talk, tmp_path):
    out = tmp_path / "out"
    command = [BIN, "tail", "-f", "--json", talk]
    with (
        out.open("wb") as file,
        subprocess.Popen(command, stdout=file, cwd=tape.work, env=tape.env) as process,
    ):
        wait_for(lambda: out.read_bytes().count(b"\n") == len(TYPES))
        tape("append", talk, stdin=notes("one"))
        wait_for(lambda: b'{"text":"one"}' in out.read_bytes())
        process.send_signal(signal.SIGINT)
        assert process.wait(ENOUGH) == 130


def wait_for(condition):
    until = time.monotonic() + ENOUGH
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)
