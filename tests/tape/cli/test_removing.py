"""`tape rm`, `restore` and `gc`: what leaves a store, and how it comes back."""

from __future__ import annotations

import os
import time
from hashlib import sha256

import pexpect
import pytest

from tests.tape.cli.conftest import BIN, TALK, line, words


def ids(tape):
    return {row["id"] for row in tape("ls", "--all", "--json").json}


def files(folder):
    """Return the bytes of the files in a folder, but of locks: those say who held them last."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.parent.name != "locks"
    }


class TestRemoving:
    def test_shows_what_goes_and_brings_it_back(self, tape, talk):
        before = files(tape.folder(talk))
        ran = tape("rm", talk[:8], "--yes")
        assert ran.text.startswith("1 tape will move to the trash, ")
        assert f'{talk[:8]}  "First"  ' in ran.text
        assert ids(tape) == set()
        tape(*ran.text.split("`")[-2].split()[1:])
        assert ids(tape) == {talk}
        now = files(tape.folder(talk))
        assert {name: now[name] for name in before} == before

    def test_needs_yes_where_no_person_can_be_asked(self, tape, talk):
        assert "pass --yes" in tape("rm", talk, code=2).err
        assert ids(tape) == {talk}

    def test_can_be_looked_at_only(self, tape, talk):
        shown = tape("rm", talk, "--dry-run", "--json").json
        assert shown["done"] is False
        assert list(shown["removed"][0]) == ["tape", "folder", "title", "branches", "bytes"]
        tape("rm", talk, "--dry-run")
        assert ids(tape) == {talk}

    @pytest.mark.parametrize(("key", "code"), [("y", 0), ("n", 1), ("", 1)])
    def test_asks_on_a_terminal(self, tape, talk, key, code):
        child = pexpect.spawn(
            str(BIN), ["rm", talk], env=tape.env, cwd=str(tape.work), timeout=120, encoding="utf-8"
        )
        child.expect_exact("Do it? [y/N]: ")
        assert "will move to the trash" in child.before
        child.sendline(key)
        said = child.read()
        child.wait()
        assert child.exitstatus == code
        assert ("nothing was done" in said) == bool(code)
        assert ids(tape) == (set() if key == "y" else {talk})

    def test_takes_a_parent_with_its_children_but_not_without(self, tape, talk):
        child = tape("fork", talk, "--new", "--json").json["tape"]
        assert "detach the tapes that were forked" in tape("rm", talk, "-y", code=2).err
        assert ids(tape) == {talk, child}
        gone = tape("rm", talk, child, "-y", "--json").json
        assert gone["done"]
        assert [one["tape"] for one in gone["removed"]] == [child, talk]
        assert ids(tape) == set()

    def test_is_refused_while_a_branch_is_written(self, tape, talk):
        with tape.open("append", f"{talk}:main") as process:
            process.stdin.write(line("note", text="x"))
            process.stdin.flush()
            process.stdout.readline()
            assert "being written" in tape("rm", talk, "-y", code=5).err
            process.kill()

    def test_wants_a_whole_tape(self, tape, talk):
        for ref in (f"{talk}:main", f"{talk}~1", ":main"):
            assert "not name a whole tape" in tape.refused("rm", ref, "-y", code=2)
        assert tape.refused("rm", code=2)
        assert tape.refused("rm", "abcdef", "-y", code=3)


class TestRestoring:
    def test_lists_the_trash(self, tape, talk):
        assert tape("restore").err == "tape: the trash is empty\n"
        assert tape("restore", "--json").json == []
        folder = tape.folder(talk).name
        tape("rm", talk, "-y")
        (row,) = tape("restore", "--json").json
        assert row == {"tape": talk, "folder": folder, "bytes": row["bytes"]}
        assert tape("restore").text.split()[3:5] == [talk[:8], folder]

    def test_brings_back_by_id_or_folder(self, tape, talk):
        folder = tape.folder(talk).name
        for name in (talk[:6], folder):
            tape("rm", talk, "-y")
            assert tape("restore", name, "--json").json == [{"tape": talk, "folder": folder}]

    def test_of_what_is_not_there_is_not_found(self, tape, talk):
        assert "in the trash" in tape.refused("restore", talk, code=3)


@pytest.fixture
def waste(tape, talk):
    """Garbage of every kind in a store, made long ago: paths in the store, by kind."""
    folder = tape.folder(talk)
    digest = sha256(b"unnamed").hexdigest()
    inside = f"tapes/{folder.name}"
    paths = {
        "blob": f"{inside}/blobs/{digest[:2]}/{digest}",
        "phase": f"{inside}/phases/0002-main",
        "half": "tapes/.new-0123",
        "temporary": f"{inside}/.new-origin",
    }
    made = {
        paths["blob"]: b"unnamed",
        f"{paths['phase']}/entries.jsonl": b'{"id":"',
        f"{inside}/phases/0003-main/entries.jsonl": b"",
        f"{paths['half']}/tape.json": b"{}",
        f"{paths['temporary']}/entries.jsonl": b"x",
    }
    for path, data in made.items():
        (tape.store / path).parent.mkdir(parents=True, exist_ok=True)
        (tape.store / path).write_bytes(data)
    age(tape.store)
    return paths


def age(folder, seconds=7200):
    old = time.time() - seconds
    for path in [*folder.rglob("*"), folder]:
        os.utime(path, (old, old))


class TestCollecting:
    def test_deletes_what_nothing_leads_to_and_nothing_else(self, tape, talk, waste):
        long = "long " * 20_000
        tape("append", talk, stdin=line("user", content=words(long)))
        age(tape.store)
        before = files(tape.store / "tapes")
        shown = tape("gc", "--dry-run", "--json").json
        assert list(shown) == ["garbage", "kept", "trash", "bytes", "done"]
        assert {one["path"] for one in shown["garbage"]} == set(waste.values())
        assert files(tape.store / "tapes") == before
        gone = tape("gc", "--yes", "--json").json
        assert gone == {**shown, "done": True}
        left = files(tape.store / "tapes")
        assert left.keys() < before.keys()
        assert not any((tape.store / path).exists() for path in waste.values())
        assert len(before) - len(left) == 4
        tape("verify", talk)
        assert tape("gc", "-y").text == "nothing to delete\n"

    def test_says_what_will_go_and_that_nothing_undoes_it(self, tape, talk, waste):
        text = tape("gc", "--dry-run").text
        assert "1 blob that no entry names, 7 B:" in text
        assert "2 leftovers of an interrupted write, " in text
        assert text.endswith("will be deleted for good: this cannot be undone\n")
        assert "pass --yes" in tape("gc", code=2).err

    def test_leaves_what_is_young(self, tape, talk, waste):
        for path in waste.values():
            os.utime(tape.store / path)
            for inner in (tape.store / path).glob("*"):
                os.utime(inner)
        kinds = [one["kind"] for one in tape("gc", "-y", "--json").json["garbage"]]
        assert kinds == ["phase"]  # nobody holds the journal's lock, so nobody makes it now

    def test_leaves_a_tape_that_is_written_and_says_so(self, tape, talk, waste):
        with tape.open("append", f"{talk}:main") as process:
            process.stdin.write(line("note", text="x"))
            process.stdin.flush()
            process.stdout.readline()
            gone = tape("gc", "-y", "--json").json
            process.kill()
        assert [one["path"] for one in gone["garbage"]] == [waste["half"]]
        assert [one["why"] for one in gone["kept"]] == ["main is being written"]

    def test_leaves_a_damaged_tape_and_says_so(self, tape, talk, waste):
        path = tape.folder(talk) / "phases/0001-main-start/entries.jsonl"
        path.write_bytes(path.read_bytes().replace(b"I look", b"I took"))
        ran = tape("gc", "-y")
        assert f"skipped: {tape.folder(talk).name}: is damaged: phases/0001" in ran.text
        assert (tape.store / waste["blob"]).exists()
        assert not (tape.store / waste["half"]).exists()

    def test_leaves_what_cannot_be_read(self, tape, talk, waste):
        (tape.folder(talk) / "tape.json").write_bytes(b"")
        kept = tape("gc", "-y", "--json").json["kept"]
        assert [one["folder"] for one in kept] == [tape.folder(talk).name]
        assert (tape.store / waste["blob"]).exists()

    def test_keeps_blobs_that_only_a_torn_line_names(self, tape, talk, waste):
        digest = waste["blob"].rpartition("/")[2]
        torn = tape.folder(talk) / "quarantine/0001-main-start.9"
        torn.parent.mkdir()
        torn.write_bytes(b"x" * (1 << 20) + b'"$blob":"%b","by' % digest.encode())
        assert waste["blob"] not in {
            one["path"] for one in tape("gc", "-y", "--json").json["garbage"]
        }

    def test_empties_the_trash_only_with_trash(self, tape, talk):
        other = tape("new").text.strip()
        tape("rm", talk, "-y")
        (tape.store / "trash/.refs.new").write_bytes(b"x")
        assert tape("gc", "-y").text == "nothing to delete\n"
        shown = tape("gc", "--trash", "--dry-run", "--json").json
        assert {one["tape"] for one in shown["trash"]} == {talk, None}
        assert "2 items in the trash, " in tape("gc", "--trash", "-y").text
        assert list((tape.store / "trash").iterdir()) == []
        assert ids(tape) == {other}

    def test_keeps_what_others_read_on_in(self, tape, talk):
        child = tape("fork", talk, "--new", "--json").json["tape"]
        tape("rm", talk, child, "-y")
        tape("restore", child)
        assert "detach the tapes that were forked" in tape("gc", "--trash", "-y", code=2).err
        tape("restore", talk)
        tape("verify", "--all")

    def test_of_no_store_is_nothing(self, tape):
        assert tape("gc", "--trash", "-y").text == "nothing to delete\n"
        assert not tape.store.exists()


def test_a_blob_that_is_stored_again_is_kept(tape, talk):
    """Its time is new: gc that looked before does not take it."""
    long = "again " * 20_000
    tape("append", talk, stdin=line("user", content=words(long)))
    digest = sha256(long.encode()).hexdigest()
    path = tape.folder(talk) / "blobs" / digest[:2] / digest
    age(tape.store)
    old = path.stat().st_mtime
    tape("append", talk, stdin=line("user", content=words(long)))
    assert path.stat().st_mtime > old
    tape("append", talk, stdin=TALK)
