"""`tape new` and `tape append`: any program records."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest

from tape.store.disk import Folder
from tape.store.locks import Lock
from tests.tape.cli.conftest import BIN, TALK, TYPES, line


def entries(tape, ref):
    return tape("log", ref, "--json").json


def test_new_prints_the_id_and_makes_the_store(tape):
    identity = tape.real("new").text
    assert len(identity) == 33
    (entry,) = entries(tape, identity.strip())
    assert entry["data"]["cwd"] == str(tape.work)
    assert entry["data"]["program"].startswith("tape/")


def test_new_as_json_with_title_and_folder(tape, tmp_path):
    made = tape("new", "--json", "--title", "日本 語!", "--cwd", "sub/..").json
    assert list(made) == ["id", "path"]
    assert made["path"].endswith(f"-日本-語-{made['id'][:8]}")
    shown = tape("show", made["id"], "--json").json
    assert (shown["title"], shown["path"], shown["cwd"]) == (
        "日本 語!",
        made["path"],
        str(tape.work),
    )


def test_a_title_that_is_no_utf8_is_kept_readable(tape):
    identity = tape.real("new", "--title", b"a\xffb").text.strip()
    assert tape("show", identity, "--json").json["title"] == "a\ufffdb"


def test_append_answers_each_line_with_its_id(tape):
    identity = tape("new").text.strip()
    ids = tape.real("append", identity, stdin=TALK).text.split()
    found = entries(tape, identity)
    assert [entry["type"] for entry in found] == TYPES
    assert [entry["id"] for entry in found[1:]] == ids


@pytest.mark.parametrize("durability", ["entry", "barrier", "none"])
def test_every_durability_records(tape, durability):
    identity = tape("new").text.strip()
    tape("append", identity, "--durability", durability, stdin=TALK)
    assert len(entries(tape, identity)) == 6


def test_append_as_json_is_one_array(tape):
    identity = tape("new").text.strip()
    assert tape("append", identity, "--json").json == []
    assert len(tape("append", identity, "--json", stdin=TALK).json) == 5


def test_appended_text_is_on_the_tape_to_the_byte(tape):
    identity = tape("new").text.strip()
    given = b'{ "data" : {"b":1.50E3, "a":"\\u00e9\\/ \xe2\x80\xa8 x","n":-0,"z":[ ]},"type":"x.y"}'
    tape.real("append", identity, stdin=given)
    raw = tape.real("show", f"{identity}:main", "--raw").out
    assert raw.endswith(b',"data":{"b":1.50E3,"a":"\\u00e9\\/ \xe2\x80\xa8 x","n":-0,"z":[]}}\n')
    assert entries(tape, identity)[1]["data"]["a"] == "é/ \u2028 x"


def test_entries_before_a_bad_line_remain(tape):
    identity = tape("new").text.strip()
    stdin = line("note", text="1") + b"\n" + line("note", text="2") + b'{"type":"note"}\n' + TALK
    ran = tape.real("append", identity, stdin=stdin, code=2)
    assert ran.err == "tape: line 4: data must be an object\n"
    assert [entry["id"] for entry in entries(tape, identity)[1:]] == ran.text.split()
    assert len(ran.text.split()) == 2


@pytest.mark.parametrize(
    "bad",
    [
        b'{"type":"note","data":{"a":"\\ud800"}}',
        b'{"type":"note","data":{"a":"\xff"}}',
        b'{"type":"note","data":{"a":NaN}}',
        b'{"type":"note","data":{"a":{"$blob":"x"}}}',
        b'{"type":"anchor","data":{}}',
        b'{"type":"note","data":{}',
    ],
)
def test_what_may_not_be_written_is_refused_in_one_line(tape, bad):
    identity = tape("new").text.strip()
    assert tape.refused("append", identity, stdin=bad, code=2).startswith("line 1: ")
    assert len(entries(tape, identity)) == 1


def test_nothing_in_nothing_out(tape):
    identity = tape("new").text.strip()
    assert tape("append", identity).out == b""
    assert tape("append", identity, stdin=b"\n \n").out == b""


def test_append_is_a_co_process(tape):
    """A program writes a line, waits for its id, and writes the next."""
    identity = tape("new").text.strip()
    with tape.open("append", identity) as process:
        ids = []
        for n in range(3):
            text = line("note", text=str(n))
            process.stdin.write(text[:9])
            process.stdin.flush()
            process.stdin.write(text[9:])
            process.stdin.flush()
            ids.append(process.stdout.readline().decode().strip())
            assert tape("log", identity, "-n", "1", "--json").json[0]["id"] == ids[-1]
        process.stdin.close()
        assert process.wait(20) == 0
    assert [entry["id"] for entry in entries(tape, identity)[1:]] == ids


def test_a_killed_co_process_loses_nothing_it_answered(tape):
    identity = tape("new").text.strip()
    with tape.open("append", identity) as process:
        process.stdin.write(line("note", text="kept"))
        process.stdin.flush()
        answer = process.stdout.readline().decode().strip()
        process.kill()
    assert entries(tape, identity)[-1]["id"] == answer
    tape("verify", identity)
    tape("append", identity, stdin=line("note", text="next"))


def test_an_interrupted_co_process_ends_with_130(tape):
    identity = tape("new").text.strip()
    with tape.open("append", identity) as process:
        process.stdin.write(line("note", text="kept"))
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr.read() == b""
    assert len(entries(tape, identity)) == 2


def test_two_thousand_lines_in_one_call(tape):
    identity = tape("new").text.strip()
    stdin = b"".join(line("note", text="x" * 900) for _ in range(2000))
    assert len(tape("append", identity, stdin=stdin).text.split()) == 2000
    assert tape("verify", identity).text.endswith("2001 entries, 1 phase, 0 blobs: all good\n")


@pytest.fixture
def busy(tape, talk):
    """A tape whose branch main somebody writes."""
    with Folder.open(tape.folder(talk)) as folder:
        lock = Lock.take_in(folder, "main")
        yield talk
        lock.close()


def test_a_busy_branch_is_refused_by_name(tape, busy):
    assert "main is being written by process" in tape.refused(
        "append", f"{busy}:main", stdin=TALK, code=5
    )


def test_a_busy_tape_gives_a_branch_of_its_own(tape, busy):
    ran = tape("append", busy, stdin=line("note", text="beside"))
    assert ran.err == "tape: main is busy, so entries go to a new branch main.2\n"
    assert entries(tape, f"{busy}:main.2")[-1]["data"] == {"text": "beside"}
    assert [entry["type"] for entry in entries(tape, busy)] == TYPES


def test_append_waits_for_a_busy_branch(tape, talk):
    with Folder.open(tape.folder(talk)) as folder:
        lock = Lock.take_in(folder, "main")
        with tape.open("append", f"{talk}:main", "--wait") as process:
            process.stdin.write(line("note", text="patient"))
            process.stdin.close()
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.7)
            lock.close()
            assert process.wait(20) == 0
            process.stdin = None
    assert entries(tape, talk)[-1]["data"] == {"text": "patient"}


@pytest.mark.parametrize("ref", ["~1", "@{0}", "@ENTRY", "bare"])
def test_nothing_is_appended_at_an_entry(tape, talk, ref):
    entry = entries(tape, talk)[2]["id"][:8]
    ref = entry if ref == "bare" else talk[:8] + ref.replace("ENTRY", entry)
    said = tape.refused("append", ref, stdin=TALK, code=2)
    assert said.startswith(
        f"entries are appended to a branch, not at an entry: `tape fork {talk[:8]}@"
    )


def test_an_unknown_branch_makes_nothing(tape, talk):
    assert tape.refused("append", f"{talk}:gone", stdin=TALK, code=3) == (
        "no branch 'gone'; there are: main"
    )
    assert not (tape.folder(talk) / "locks/gone").exists()


def test_a_store_that_cannot_be_written_says_so(tape, tmp_path):
    (tmp_path / "file").write_text("in the way")
    said = tape.refused("--store", str(tmp_path / "file" / "store"), "new", code=1)
    assert "cannot be written" in said
    assert "cannot be written" in tape.refused("new", "--store", str(tmp_path / "file"), code=1)
    assert "Not a directory" in tape.refused("ls", "--store", str(tmp_path / "file"), code=1)


def test_a_folder_that_vanished_says_so(tape):
    script = 'mkdir w && cd w && rmdir ../w && exec "$0" new'
    done = subprocess.run(
        ["/bin/sh", "-c", script, BIN],
        cwd=tape.work,
        env=tape.env,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr.decode()) == (
        3,
        "tape: the current folder no longer exists: change to another one, or name a tape\n",
    )


def test_an_unread_answer_is_no_error_and_loses_nothing(tape):
    identity = tape("new").text.strip()
    with tape.open("append", identity) as process:
        process.stdout.close()
        process.stdin.write(TALK)
        process.stdin.close()
        process.wait(20)
        assert process.stderr.read() == b""
        process.stdin = process.stdout = None
    assert [entry["type"] for entry in entries(tape, identity)] == TYPES
    assert json.loads(tape("verify", identity, "--json").out)["findings"] == []


def test_a_new_tape_names_repository_person_and_machine(tape):
    """M203: without credentials; $TAPE_PERSON comes before git, `off` is nobody."""
    for words in (
        ("init", "-q"),
        ("remote", "add", "origin", "https://me:secret@example.org:8443/team/app.git"),
        ("config", "user.name", "Ann Lee"),
        ("config", "user.email", "ann@example.org"),
    ):
        subprocess.run(["git", *words], cwd=tape.work, env=tape.env, check=True)

    def begin():
        (entry,) = entries(tape, tape("new", "--cwd", "below").text.strip())
        return {name: entry["data"].get(name) for name in ("repository", "person", "machine")}

    tape("machine", "box")
    facts = {"repository": "example.org/team/app", "person": "Ann Lee <ann@example.org>"}
    assert begin() == {**facts, "machine": "box"}
    tape.env["TAPE_PERSON"] = "Bo <bo@example.org>"
    assert begin()["person"] == "Bo <bo@example.org>"
    tape.env["TAPE_PERSON"] = "off"
    assert begin()["person"] is None


def test_the_machine_is_the_host_until_it_is_named(tape):
    named = tape("machine", "--json").json
    assert named == {"machine": os.uname().nodename, "replica": None}
    assert tape("machine", "ci box").text == "ci box\n"
    replica = tape("machine", "--json").json["replica"]
    tape("new")
    assert tape("machine", "--json").json == {"machine": "ci box", "replica": replica}
    for bad in ("", "x" * 256, "a\nb"):
        assert tape("machine", bad, code=2).err.endswith("at most 255 characters\n")
