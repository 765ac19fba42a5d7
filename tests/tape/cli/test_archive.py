"""`tape archive` and `unarchive`: every command over an archived tape."""

from __future__ import annotations

import json
import re

import pytest

from tests.tape.cli.conftest import TALK, line, words
from tests.tape.cli.test_removing import files

READING = [
    ("ls", "--all", "--json"),
    ("status", "{id}", "--json"),
    ("show", "{id}", "--json"),
    ("show", "{id}@{entry}", "--raw"),
    ("log", "{id}", "--json"),
    ("log", "{id}", "--graph"),
    ("log", "-p", "{id}"),
    ("cat", "{id}", "--md"),
    ("tail", "{id}", "--json"),
    ("branches", "{id}", "--json"),
    ("label", "{id}", "--json"),
    ("anchors", "{id}", "--json"),
    ("context", "{id}", "--json"),
    ("diff", "{id}:main", "{id}:side", "--json"),
    ("replay", "{id}", "--check"),
    ("search", "sets", "--json"),
    ("search", "needle", "--json"),
    ("stats", "--json"),
    ("files", "{id}", "--json"),
    ("blame", "a.py", "--json"),
    ("export", "{id}", "--no-redact"),
    ("export", "{id}", "--to", "md"),
    ("export", "{id}", "--to", "html"),
    ("verify", "{id}", "--json"),
    ("fsck", "{id}", "--json"),
    ("log", "{child}", "--json"),
    ("verify", "{child}", "--json"),
]
LONG = "long " * 14_000 + "needle"
WRITE = {"id": "c_2_0", "name": "write", "args": {"path": "a.py", "content": "x = 1\n"}}
WRITTEN = (
    line("user", content=words(LONG))
    + line("assistant", content=[{"type": "tool_call", **WRITE}], provider="o", model="m")
    + line("tool.result", call_id="c_2_0", name="write", content=words(LONG))
)


@pytest.fixture
def made(tape, talk):
    """A tape of two branches, with a blob, and a tape forked from it: their ids, and an entry."""
    (tape.work / "a.py").write_text("x = 1\n")
    tape("fork", f"{talk}~2", "--name", "side")
    tape("append", f"{talk}:side", stdin=line("user", content=words("aside")))
    tape("append", f"{talk}:main", stdin=line("user", content=words(LONG)) + WRITTEN)
    child = tape("fork", talk, "--new", "--json").json["tape"]
    tape("label", f"{talk}:side", "here")
    entry = tape("log", talk, "--json").json[1]["id"]
    return {"id": talk, "child": child, "entry": entry}


def answers(tape, made):
    """Return what each reading command says, without the path and form of the tape."""
    said = {}
    for command in READING:
        ran = tape(*(word.format(**made) for word in command), code=None)
        text = ran.text.replace(".tar.zst", "")
        said[command] = ran.code, re.sub(r'"archived":(true|false)', "", text), ran.err
    return said


def forms(tape):
    return {row["id"]: row["archived"] for row in tape("ls", "--all", "--json").json}


@pytest.mark.parametrize("index", [True, False], ids=["index", "no index"])
def test_every_reading_command_says_the_same(tape, made, index):
    """M205: an archived tape is listed, searched, shown, verified and exported as before."""
    before = answers(tape, made)
    assert {command: said for command, said in before.items() if said[0]} == {}
    tape("archive", made["id"], made["child"])
    assert not [path for path in (tape.store / "tapes").iterdir() if path.is_dir()]
    if not index:
        (tape.store / "index.db").unlink()
    now = answers(tape, made)
    for command in READING:
        assert now[command] == before[command], command
    assert set(forms(tape).values()) == {True}
    assert json.loads(tape("verify", "--all", "--json").out)[0]["findings"] == []


def test_says_what_it_did(tape, made):
    ran = tape("archive", made["id"][:8])
    assert re.fullmatch(rf"{made['id'][:8]}: archived, [0-9.]+ kB → [0-9.]+ k?B\n", ran.text)
    assert tape("archive", made["id"]).text == f"{made['id'][:8]} is archived already\n"
    row = next(row for row in tape("ls", "--json").json if row["id"] == made["id"])
    assert row["archived"] is True
    assert row["path"].endswith(".tar.zst")
    assert "ARCHIVED" in tape("ls").text
    assert "path     " + row["path"] in tape("show", made["id"]).text
    done = tape("unarchive", made["id"], "--json").json
    assert done["tapes"][0]["changed"] is True
    assert set(forms(tape).values()) == {False}
    assert "ARCHIVED" not in tape("ls").text


def test_comes_back_byte_for_byte(tape, made):
    before = files(tape.folder(made["id"]))
    tape("archive", made["id"])
    tape("unarchive", "--all")
    assert files(tape.folder(made["id"])) == before


class TestChoosing:
    def test_by_age(self, tape, made):
        assert tape("archive", "--older", "1d", "--json").json["tapes"] == []
        plan = tape("archive", "--older", "0s", "--dry-run").text
        assert plan.endswith("2 tapes would be archived, " + plan.rpartition(", ")[2])
        assert set(forms(tape).values()) == {False}
        done = tape("archive", "--older", "0s", "--json").json
        assert {one["tape"] for one in done["tapes"]} == {made["id"], made["child"]}
        assert done["done"] is True
        assert tape("archive", "--older", "0s", "--json").json["tapes"] == []

    @pytest.mark.parametrize("words", [(), ("{id}", "--older", "9d"), ("{id}:side",), ("{id}~1",)])
    def test_whole_tapes_only(self, tape, made, words):
        tape.refused("archive", *(word.format(**made) for word in words), code=2)
        assert set(forms(tape).values()) == {False}

    def test_one_that_is_written_is_named_and_the_others_are_archived(self, tape, made):
        with tape.open("append", f"{made['id']}:main") as writing:
            writing.stdin.write(line("user", content=words("more")))
            writing.stdin.flush()
            writing.stdout.readline()
            ran = tape("archive", made["id"], made["child"], "--json", code=5)
            assert "main is being written by process" in ran.json["skipped"][0]["why"]
            assert made["id"][:8] + " is left: " in ran.err
            writing.stdin.close()
            writing.wait()
        assert forms(tape) == {made["id"]: False, made["child"]: True}


class TestOtherCommands:
    def test_the_trash_holds_archives(self, tape, made):
        tape("archive", made["child"])
        tape("rm", made["child"], "--yes")
        assert not list((tape.store / "tapes").glob(f"*{made['child'][:8]}*"))
        (item,) = tape("restore", "--json").json
        assert item["tape"] == made["child"]
        tape("restore", made["child"])
        assert forms(tape) == {made["id"]: False, made["child"]: True}
        tape("rm", made["child"], "--yes")
        tape("gc", "--trash", "--yes")
        assert not list((tape.store / "trash").iterdir())

    def test_a_parent_with_an_archived_child_stays(self, tape, made):
        tape("archive", made["child"])
        assert "detach the tapes" in tape.refused("rm", made["id"], "--yes", code=2)
        tape("detach", made["child"], "--yes")
        assert forms(tape)[made["child"]] is False
        tape("archive", made["child"])
        tape("rm", made["id"], "--yes")
        assert len(tape("log", made["child"], "--json").json) > len(TALK.splitlines())

    def test_gc_leaves_it_as_it_is(self, tape, made):
        tape("archive", made["id"])
        assert tape("gc", "--yes", "--json").json["garbage"] == []
        assert forms(tape)[made["id"]] is True

    def test_gc_removes_what_a_kill_left(self, tape, made):
        tape("archive", made["id"])
        (file,) = (tape.store / "tapes").glob("*.tar.zst")
        data = file.read_bytes()
        tape("unarchive", made["id"])
        file.write_bytes(data)
        (garbage,) = tape("gc", "--yes", "--json").json["garbage"]
        assert garbage == {"path": f"tapes/{file.name}", "kind": "leftover", "bytes": len(data)}
        assert not file.exists()
        assert forms(tape)[made["id"]] is False

    def test_redact_unpacks(self, tape, made):
        tape("archive", made["id"])
        tape("redact", f"{made['id']}@{made['entry']}", "--yes")
        assert forms(tape)[made["id"]] is False
        assert not list((tape.store / "tapes").glob("*.tar.zst"))
        assert tape("verify", made["id"], "--json").json["findings"] == []

    def test_reindex_and_import(self, tape, made):
        whole = tape("export", made["id"], "--no-redact").out
        tape("archive", made["id"])
        assert tape("reindex", "--json").json["tapes"] == 2
        assert tape("import", "-", "--json", stdin=whole).json["added"] == 0
        assert forms(tape) == {made["id"]: True, made["child"]: False}

    def test_copies_are_united(self, tape, made, tmp_path):
        tape("archive", made["id"])
        other = str(tmp_path / "other")
        tape("--store", other, "unite", str(tape.store))
        (file,) = (tape.store / "tapes").glob("*.tar.zst")
        assert tape("unite", other, "--json").json
        assert file.exists()  # nothing was new
        tape("--store", other, "append", made["id"], stdin=line("user", content=words("there")))
        tape("unite", other)
        assert not file.exists()
        assert tape("log", made["id"], "--json").json[-1]["data"]["content"] == words("there")
        tape("archive", made["id"])
        (file,) = (tape.store / "tapes").glob("*.tar.zst")
        third = str(tmp_path / "third")
        tape("--store", third, "unite", str(file))
        assert tape("--store", third, "verify", "--all")

    def test_push_and_pull(self, tape, made, tmp_path):
        far, other = tmp_path / "far", str(tmp_path / "other")
        far.mkdir()
        tape("archive", made["id"])
        tape("remote", "add", "team", str(far), "--mode", "manual")
        tape("push", "--all", "--yes")
        tape("clone", str(far), "--store", other)
        assert len(tape("--store", other, "ls", "--all", "--json").json) == 2
        tape("pull")
        assert forms(tape)[made["id"]] is True
        # A process of its own: it may push in the background.
        tape.real(
            "--store", other, "append", made["id"], stdin=line("user", content=words("there"))
        )
        tape("--store", other, "push", "--all", "--yes")
        tape("pull")
        assert tape("log", made["id"], "--json").json[-1]["data"]["content"] == words("there")

    def test_the_name_of_the_file_is_a_ref(self, tape, made):
        tape("archive", made["id"])
        (file,) = (tape.store / "tapes").glob("*.tar.zst")
        for word in (file.name, file.name.removesuffix(".tar.zst"), made["id"][:6]):
            assert tape("show", word, "--json").json["id"] == made["id"]


class TestDamage:
    @pytest.mark.parametrize("size", [0, 40, -1])
    def test_a_cut_file_is_named_and_hides_no_other_tape(self, tape, made, size):
        tape("archive", made["id"])
        (file,) = (tape.store / "tapes").glob("*.tar.zst")
        file.write_bytes(file.read_bytes()[:size])
        data = file.read_bytes()
        ran = tape("verify", made["id"], "--json", code=4)
        assert file.name in ran.json["findings"][0]["message"]
        reports = tape("verify", "--all", "--json", code=4).json
        assert len(reports) == 2
        assert made["child"] in forms(tape)
        assert file.name in tape("append", made["id"], stdin=TALK, code=4).err
        tape("fsck", made["id"], "--repair", "--yes", code=4)
        tape("gc", "--yes")
        assert file.read_bytes() == data
        assert len(list((tape.store / "tapes").iterdir())) == 2

    def test_a_changed_byte_is_named(self, tape, made):
        tape("archive", made["id"])
        (file,) = (tape.store / "tapes").glob("*.tar.zst")
        data = bytearray(file.read_bytes())
        data[100] ^= 1
        file.write_bytes(data)
        ran = tape("verify", made["id"], "--json", code=4)
        kinds = {finding["kind"]: finding for finding in ran.json["findings"]}
        assert kinds["archive"]["file"] == file.name
        assert kinds["archive"]["offset"] == 0
        assert "restore the file from a copy" in tape("fsck", made["id"], code=4).text
        assert tape("append", made["id"], stdin=TALK, code=4).err
        assert file.read_bytes() == data
