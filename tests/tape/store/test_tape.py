import json
from pathlib import Path

import pytest

from tape.errors import Damaged, InvalidName, NewerFormat, NotFound
from tape.model.entries import Start
from tape.model.line import read_header
from tests.tape import making, reader


class TestInfo:
    def test_says_which_tape_it_is(self, tape, folder):
        info = json.loads((folder / "tape.json").read_bytes())
        assert info == {
            "format": 1,
            "id": tape.id,
            "created": "2026-11-18T11:06:40.000000Z",
            "by": "test/1",
            "origin": None,
        }

    @pytest.mark.parametrize(
        "text",
        [
            b"",
            b"{",
            b"[]",
            b"null",
            b"{}",
            b'{"format":1}',
            b'{"format":"x"}',
            b"\xff",
            b'{"format":1,"id":7}',
        ],
    )
    def test_that_cannot_be_read_is_damage(self, store, folder, text):
        (folder / "tape.json").write_bytes(text)
        with pytest.raises(Damaged, match=r"tape\.json"):
            store.open_folder(folder.name)

    def test_of_a_later_version_is_refused_and_not_touched(self, store, tape, folder):
        info = json.loads((folder / "tape.json").read_bytes())
        (folder / "tape.json").write_text(json.dumps(info | {"format": 2, "origin": "elsewhere"}))
        before = reader.files(folder)
        for open_it in (lambda: store.open_folder(folder.name), lambda: store.open(tape.id)):
            with pytest.raises(NewerFormat, match="format 2"):
                open_it()
        assert reader.files(folder) == before


class TestWhatIsMissing:
    @pytest.mark.parametrize("name", ["tape.json", "phases"])
    def test_makes_a_tape_less_than_whole(self, store, tape, folder, name):
        (folder / name).rename(folder.parent.parent / "away")
        with pytest.raises(Damaged, match=f"is not a complete tape: {name}: No such file"):
            store.open_folder(folder.name)

    @pytest.mark.parametrize("name", ["tape.json", "phases"])
    def test_or_is_a_link_that_is_not_followed(self, store, tape, folder, name):
        away = folder.parent.parent / "away"
        (folder / name).rename(away)
        (folder / name).symlink_to(away)
        with pytest.raises(Damaged, match="is not a complete tape"):
            store.open_folder(folder.name)

    def test_a_link_in_the_place_of_the_journal_is_not_followed(self, tape, folder):
        away = (folder / "refs.jsonl").rename(folder.parent.parent / "away")
        (folder / "refs.jsonl").symlink_to(away)
        before = away.read_bytes()
        with pytest.raises(OSError, match="symbolic"):
            tape.refs()
        with pytest.raises(OSError, match="symbolic"):
            tape.rename("x")
        assert away.read_bytes() == before

    def test_nothing_is_left_open(self, store, tape, folder):
        (folder / "phases").rename(folder / "away")
        before = len(list(Path("/dev/fd").iterdir()))
        for _ in range(3):
            with pytest.raises(Damaged):
                store.open_folder(folder.name)
        assert len(list(Path("/dev/fd").iterdir())) == before


class TestFinding:
    def test_an_entry_by_the_beginning_of_its_id(self, tape):
        made = making.write(tape, "one", "two")
        for entry in made:
            (hit,) = tape.find_entry(entry.id[:12])
            assert (hit.tape, hit.head.entry, hit.head.branch) == (tape, entry.id, "main")
        assert tape.find_entry("f" * 40) == []

    def test_an_entry_of_the_origin(self, store, tape):
        (one,) = making.write(tape, "one")
        with store.create(making.beginning(), origin=(tape, tape.head())) as child:
            (hit,) = child.find_entry(one.id)
            assert (hit.tape.id, hit.head.entry) == (tape.id, one.id)

    def test_steps_back_over_phases_and_tapes(self, store, tape):
        (one, _) = making.write(tape, "one", "two")
        tape.fork(making.at(tape, one.id), "b")
        making.write(tape, "three", "four", branch="b")
        with store.create(making.beginning(), origin=(tape, tape.head("b"))) as child:
            making.write(child, "five")
            path = making.entries(child)
            for steps, entry in enumerate(reversed(path)):
                hit = child.find_ancestor(child.head(), steps)
                assert hit.head.entry == entry.id
                assert hit.tape.entry(hit.head) == entry
            with pytest.raises(NotFound, match="before the first entry"):
                child.find_ancestor(child.head(), len(path))


class TestNames:
    def test_a_title(self, tape):
        tape.rename("Grüße\n\u2028")
        assert tape.refs().title == "Grüße\n\u2028"

    def test_a_label_comes_and_goes(self, tape):
        entry = tape.head().entry
        tape.label("good", entry)
        assert tape.refs().labels == {"good": entry}
        tape.label("good", None)
        assert tape.refs().labels == {}

    def test_a_label_that_is_no_name_is_refused(self, tape, folder):
        before = reader.files(folder)
        with pytest.raises(InvalidName):
            tape.label("../x", tape.head().entry)
        assert reader.files(folder) == before


def test_reading_writes_nothing_and_makes_no_lock(store, tape, folder):
    (one,) = making.write(tape, "one")
    tape.fork(making.at(tape, one.id), "b")
    before = {file: file.lstat().st_mtime_ns for file in folder.rglob("*")}
    with store.open(tape.id) as found:
        making.entries(found, "b")
        found.find_entry(one.id)
        found.find_ancestor(found.head("b"), 1)
        found.refs()
    assert {file: file.lstat().st_mtime_ns for file in folder.rglob("*")} == before


def test_the_first_entry_says_how_the_tape_began(tape):
    (start,) = making.entries(tape)
    here = tape.replica()
    assert start.data == Start(
        tape.id,
        "0001-main-start",
        "main",
        "/src",
        "test/1",
        machine=here.machine,
        replica=here.id,
    )
    assert (start.n, start.parent_id, start.time) == (0, None, tape.info.created)
    assert [read_header(line).id for line in tape.lines(tape.head())] == [start.id]
