"""`tape verify`: what it prints and how it ends."""

from __future__ import annotations

import shutil

import pytest

from tests.tape.cli.conftest import TALK, line


def test_a_tape_that_holds(tape, talk):
    assert tape("verify", talk).text == f"{talk[:8]}: 6 entries, 1 phase, 0 blobs: all good\n"
    assert tape("verify", talk, "--json").json == {
        "tape": talk,
        "entries": 6,
        "phases": 1,
        "blobs": 0,
        "findings": [],
    }


def test_damage_is_named_and_ends_with_4(tape, talk):
    path = tape.folder(talk) / "phases/0001-main-start/entries.jsonl"
    path.write_bytes(path.read_bytes().replace(b"I look", b"I took"))
    offset = sum(len(text) + 1 for text in path.read_bytes().split(b"\n")[:2])
    assert tape("verify", talk, code=4).text == (
        f"damage: phases/0001-main-start/entries.jsonl:3 (byte {offset}): "
        "its data does not match its hash [main]\n"
        f"{talk[:8]}: 6 entries, 1 phase, 0 blobs: 1 fault, see above\n"
    )
    (finding,) = tape("verify", talk, "--json", code=4).json["findings"]
    assert finding == {
        "level": "damage",
        "kind": "line",
        "file": "phases/0001-main-start/entries.jsonl",
        "line": 3,
        "offset": offset,
        "message": "its data does not match its hash",
        "depends": ["main"],
    }


def test_an_incomplete_line_is_torn_unless_it_is_being_written(tape, talk):
    path = tape.folder(talk) / "phases/0001-main-start/entries.jsonl"
    with tape.open("append", f"{talk}:main") as process:
        process.stdin.write(line("note", text="first"))
        process.stdin.flush()
        process.stdout.readline()
        with path.open("ab") as file:
            file.write(b'{"id":')
        assert tape("verify", talk).text.startswith("note: phases/0001-main-start/entries.jsonl:8")
        process.kill()
    ran = tape("verify", talk, code=4)
    assert ran.text.startswith("torn: phases/0001-main-start/entries.jsonl:8 (byte ")
    tape("append", talk, stdin=TALK)
    assert tape("verify", talk).text.endswith("all good\n")
    assert [entry["type"] for entry in tape("log", talk, "--type", "repair", "--json").json] == [
        "repair"
    ]


def test_all_tapes_are_looked_at_the_broken_ones_too(tape, talk):
    other = tape("new").text.strip()
    newer = tape("new").text.strip()
    (tape.folder(other) / "tape.json").write_bytes(b"{")
    info = tape.folder(newer) / "tape.json"
    info.write_bytes(info.read_bytes().replace(b'"format":1', b'"format":7'))
    ran = tape("verify", "--all", "--json", code=4)
    assert [len(report["findings"]) for report in ran.json] == [0, 1]
    assert "format 7" in ran.err
    (tape.folder(other) / "tape.json").unlink()
    assert tape("verify", "--all", code=4).text.count("\n") == 3
    assert tape("verify", other[:8], code=4)


@pytest.mark.parametrize("data", [b"", b"{", b"null", b'{"format":1}', b"\xff", None])
def test_what_else_is_damaged_is_named_where_tape_json_cannot_be_read(tape, talk, data):
    folder = tape.folder(talk)
    path = folder / "phases/0001-main-start/entries.jsonl"
    path.write_bytes(path.read_bytes().replace(b"I look", b"I took"))
    (folder / "refs.jsonl").write_bytes((folder / "refs.jsonl").read_bytes() + b"{")
    (folder / "tape.json").unlink()
    if data is not None:
        (folder / "tape.json").write_bytes(data)
    told = tape("verify", talk[:8], "--json", code=4).json
    assert (told["tape"], told["entries"]) == (talk, 6)
    kinds = ["info-unreadable", "torn", "line"]
    assert [finding["kind"] for finding in told["findings"]] == kinds
    assert tape("verify", folder.name, "--json", code=4).json == told
    assert tape("verify", "--all", "--json", code=4).json == [told]
    explained = tape("fsck", talk, "--json", code=4).json["findings"]
    assert [one["finding"] for one in explained] == told["findings"]


def test_a_tape_of_which_nothing_tells_what_it_is_is_looked_through(tape, talk):
    folder = tape.folder(talk)
    (folder / "tape.json").write_bytes(b"")
    path = folder / "phases/0001-main-start/entries.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"start"', b'"stare"', 1))
    told = tape("verify", talk, "--json", code=4).json
    assert (told["tape"], told["entries"]) == (folder.name, 6)
    assert {"info-unreadable", "info", "line"} <= {one["kind"] for one in told["findings"]}


def test_a_tape_without_phases_is_reported_in_one_line(tape, talk):
    folder = tape.folder(talk)
    shutil.rmtree(folder / "phases")
    (finding,) = tape("verify", talk, "--json", code=4).json["findings"]
    assert finding["kind"] == "unreadable"
    (folder / "tape.json").write_bytes(b"")
    assert tape("verify", talk, code=4).text.count("\n") == 2


def test_a_journal_that_cannot_be_read_hides_nothing(tape, talk):
    folder = tape.folder(talk)
    path = folder / "phases/0001-main-start/entries.jsonl"
    path.write_bytes(path.read_bytes().replace(b"I look", b"I took"))
    (folder / "refs.jsonl").unlink()
    (folder / "refs.jsonl").mkdir()
    told = tape("verify", talk, "--json", code=4).json["findings"]
    assert [finding["kind"] for finding in told] == ["journal", "line", "unnamed"]


def test_an_entry_that_is_not_there_is_not_found(tape, talk):
    tape.refused("verify", f"{talk}@0123456789", code=3)
    tape.refused("verify", "0123456789", code=3)


def test_jobs_change_no_answer(tape, talk):
    assert tape("verify", talk, "--jobs", "2").out == tape("verify", talk, "--jobs", "1").out
    tape.refused("verify", talk, "--jobs", "0", code=2)


def test_a_damaged_head_does_not_hide_the_tape_from_verify(tape, talk):
    path = tape.folder(talk) / "phases/0001-main-start/entries.jsonl"
    path.write_bytes(path.read_bytes()[:20])
    assert "torn: phases/0001-main-start/entries.jsonl:1" in tape("verify", talk, code=4).text
    assert tape("verify", talk, "--json", code=4).json["entries"] == 0
