"""`tape redact`, `detach`, `mv` and `reindex`."""

from __future__ import annotations

import pytest

from tests.tape.cli.conftest import line, words


class TestRedacting:
    def test_overwrites_the_data_of_entries_for_good(self, tape, talk):
        first, second = (tape("log", talk, "--json").json[at]["id"] for at in (1, 4))
        refs = (f"{talk}@{first[:8]}", f"{talk}~1")
        shown = tape("redact", *refs, "--dry-run", "--json").json
        assert shown == {
            "tape": talk,
            "entry": None,
            "targets": [first, second],
            "blobs": [],
            "quarantine": [],
            "done": False,
        }
        assert "Read a.py" in tape("cat", talk).text
        plan = tape("redact", *refs, "--dry-run").text
        assert plan.startswith(f"the data of 2 entries of {talk[:8]} will be overwritten:\n")
        assert plan.endswith("this cannot be undone\n")
        assert "Read a.py" not in plan
        done = tape("redact", *refs, "--why", "a key", "-y", "--json").json
        assert (done["done"], done["targets"]) == (True, [first, second])
        said = tape("show", f"{talk}@{done['entry']}", "--json").json
        assert (said["type"], said["data"]["why"]) == ("redact", "a key")
        assert "Read a.py" not in tape("cat", talk).text
        assert b"Read a.py" not in (tape.store / "index.db").read_bytes()
        tape("verify", talk)

    def test_tells_of_the_blobs_that_go(self, tape, talk):
        tape("append", talk, stdin=line("user", content=words("secret " * 20_000)))
        plan = tape("redact", f"{talk}~0", "--dry-run", code=2)
        assert "does not name an entry" in plan.err
        entry = tape("log", talk, "--json").json[-1]["id"]
        plan = tape("redact", f"{talk}@{entry}", "--dry-run").text
        assert "will be overwritten, and 1 blob with them:" in plan
        assert tape("redact", f"{talk}@{entry}", "-y", "--json").json["blobs"]
        assert list(tape.folder(talk).glob("blobs/*/*")) == []

    def test_needs_yes_where_no_person_can_be_asked(self, tape, talk):
        assert "pass --yes" in tape("redact", f"{talk}~1", code=2).err
        assert "Read a.py" in tape("cat", talk).text

    def test_refuses_structure_and_several_tapes(self, tape, talk):
        start = tape("log", talk, "--json").json[0]["id"]
        assert "part of the structure" in tape("redact", f"{talk}@{start}", "-y", code=2).err
        other = tape("new").text.strip()
        tape("append", other, stdin=line("note", text="x"))
        refs = (f"{talk}~1", tape("log", other, "--json").json[1]["id"])
        assert "one tape at a time" in tape("redact", *refs, "-y", code=2).err
        assert tape.refused("redact", f"{talk}@0000", "-y", code=3)


class TestDetaching:
    def test_makes_a_tape_independent(self, tape, talk):
        child = tape("fork", f"{talk}~1", "--new", "--json").json["tape"]
        plan = tape("detach", child, "--dry-run").text
        assert f"1 phase of {talk[:8]}, " in plan
        assert "cannot be undone" in plan
        assert "pass --yes" in tape("detach", child, code=2).err
        done = tape("detach", child, "-y", "--json").json
        assert list(done) == ["tape", "origin", "phases", "bytes", "done"]
        assert (done["tape"], done["origin"], done["done"]) == (child, talk, True)
        tape("rm", talk, "-y")
        tape("verify", child)
        assert "Read a.py" in tape("cat", child).text

    def test_of_an_independent_tape_does_nothing(self, tape, talk):
        assert tape("detach", talk).text == f"{talk[:8]} needs no other tape: nothing to detach\n"
        assert tape("detach", talk, "--json").json["done"] is False


class TestMoving:
    def test_records_where_the_project_is_now(self, tape, talk, tmp_path):
        new = tmp_path / "new"
        new.mkdir()
        done = tape("mv", talk, str(new), "--json").json
        assert done == {
            "tape": talk,
            "entry": done["entry"],
            "cwd": str(new),
            "was": str(tape.work),
        }
        assert tape("show", done["entry"], "--json").json["data"] == {"cwd": str(new)}
        tape.work = new
        assert tape("show", "--json").json["id"] == talk

    def test_says_how_it_is_undone_and_takes_a_relative_folder(self, tape, talk):
        (tape.work / "inner").mkdir()
        said = tape("mv", talk, "inner/../inner").text
        assert said == (
            f"{talk[:8]}: working folder is now {tape.work}/inner; "
            f"`tape mv {talk[:8]} {tape.work}` undoes it\n"
        )
        assert "is not a folder yet" in tape("mv", talk, "nowhere").err

    @pytest.mark.parametrize("busy", ["main", "side"])
    def test_waits_for_no_writer(self, tape, talk, busy):
        tape("fork", talk, "--name", "side")
        before = tape("log", talk, "--json").out
        with tape.open("append", f"{talk}:{busy}") as process:
            process.stdin.write(line("note", text="x"))
            process.stdin.flush()
            process.stdout.readline()
            tape.refused("mv", talk, "/", code=5)
            process.kill()
        assert b"meta" not in tape("log", talk, "--json").out
        assert before


class TestReindexing:
    def test_rebuilds_the_index(self, tape, talk):
        before = tape("ls", "--json").json
        (tape.store / "index.db").write_bytes(b"nothing")
        done = tape("reindex", "--json").json
        assert done == {"tapes": 1, "bytes": (tape.store / "index.db").stat().st_size}
        assert tape("ls", "--json").json == before
        assert tape("reindex").text.startswith("the index holds 1 tape in ")

    def test_of_no_store_makes_none(self, tape):
        assert tape("reindex", "--json").json == {"tapes": 0, "bytes": 0}
        assert not tape.store.exists()
