import json
import unicodedata
from itertools import count

import pytest
from freezegun import freeze_time
from hypothesis import given
from hypothesis import strategies as st

from tape.errors import Ambiguous, Damaged, NewerFormat, NotFound, WriteFailed
from tape.model.entries import Git
from tape.store.store import Beginning, Store, build_slug
from tests.tape import making, reader


def files(folder):
    """Return every file but lock files below a folder, with its bytes."""
    found = (file for file in sorted(folder.rglob("*")) if file.is_file())
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in found
        if file.parent.name != "locks" and file.name != "machine.json"
    }


class TestCreating:
    def test_makes_a_whole_tape_that_verifies(self, store, tape, folder):
        assert folder.name == f"2026-11-18-a-session-{tape.id[:8]}"
        names = {file.name for file in folder.iterdir()}
        assert names == {"tape.json", "refs.jsonl", "phases"}
        assert reader.faults(folder) == []
        assert store.folders() == [folder.name]

    def test_makes_the_store_with_the_first_tape(self, tmp_path):
        store = making.store_in(tmp_path / "deep" / "er" / "store")
        assert store.folders() == []
        store.create(making.beginning()).close()
        assert json.loads((store.path / "store.json").read_bytes()) == {
            "format": 1,
            "created": "2026-11-18T11:06:40.000000Z",
        }
        assert {file.name for file in store.path.iterdir()} == {
            "store.json",
            "machine.json",
            "tapes",
        }

    def test_keeps_what_is_known_from_the_start(self, store):
        git = Git("main", "ab" * 20, dirty=True)
        with store.create(Beginning("/w", "p/1", "Tïtle", "words", "/w", git)) as tape:
            start = making.entries(tape)[0].data
            assert (start.cwd, start.program, start.project, start.git) == ("/w", "p/1", "/w", git)
            assert tape.refs().title == "Tïtle"

    def test_cut_short_leaves_nothing_that_is_listed(self, tmp_path):
        steps = 0
        while True:
            store = making.store_in(tmp_path / str(steps), clock_that_fails_after(steps))
            try:
                store.create(making.beginning()).close()
            except Stopped:
                steps += 1
                assert store.folders() == []
            else:
                break
        assert steps > 3
        assert len(store.folders()) == 1

    def test_beside_what_a_crash_left_goes_well(self, store):
        (store.tapes / ".new-0000").mkdir(parents=True)
        store.create(making.beginning()).close()
        assert len(store.folders()) == 1

    @pytest.mark.parametrize("place", ["a file", "under a file"])
    def test_where_nothing_can_be_written_says_so(self, tmp_path, place):
        (tmp_path / "file").write_text("")
        path = tmp_path / "file" if place == "a file" else tmp_path / "file" / "store"
        with pytest.raises(WriteFailed, match="cannot be written"):
            making.store_in(path).create(making.beginning())
        assert (tmp_path / "file").read_text() == ""

    def test_never_writes_over_a_tape(self, tmp_path):
        ids = iter(["cd" * 16, "12" * 4, "ab" * 4, "cd" * 16])
        store = Store(tmp_path, clock=lambda: making.DAY, random=lambda _: next(ids), durable=False)
        with store.create(making.beginning()) as tape:
            making.write(tape, "one")
            before = files(tmp_path)
            with pytest.raises(WriteFailed, match="cannot be created"):
                store.create(making.beginning())
            assert {k: v for k, v in files(tmp_path).items() if "/.new-" not in k} == before


class Stopped(BaseException):
    """The process ends here."""


def clock_that_fails_after(steps):
    ticks = count()

    def clock():
        if next(ticks) >= steps:
            raise Stopped
        return making.DAY

    return clock


class TestOpening:
    def test_finds_a_tape_by_the_beginning_of_its_id(self, store, tape):
        for size in (8, 31, 32):
            with store.open(tape.id[:size]) as found:
                assert found.id == tape.id

    def test_of_an_ambiguous_prefix_lists_the_hits(self, tmp_path):
        ids = iter(["cd" * 16, "12" * 4, "ab" * 4, "cd" * 15 + "ef"])
        store = Store(tmp_path, clock=lambda: making.DAY, random=lambda _: next(ids), durable=False)
        for words in ("one", "two"):
            store.create(making.beginning(words)).close()
        with pytest.raises(Ambiguous) as caught:
            store.open("cdcd")
        assert caught.value.hits == tuple(store.folders())

    def test_of_nothing_is_not_found(self, store, tape):
        for open_it in (store.open, store.open_folder):
            with pytest.raises(NotFound):
                open_it("0000")

    def test_a_renamed_folder_is_the_same_tape(self, store, tape, folder):
        folder.rename(folder.with_name("what I like"))
        assert store.folders() == ["what I like"]
        with store.open(tape.id) as found:
            assert found.id == tape.id

    def test_does_not_follow_a_link(self, store, tape, folder):
        away = folder.rename(store.path / "away")
        folder.symlink_to(away)
        assert store.folders() == []
        with pytest.raises(NotFound):
            store.open_folder(folder.name)

    def test_files_among_the_tapes_are_no_tapes(self, store, tape, folder):
        (store.tapes / "notes.txt").write_text("")
        assert store.folders() == [folder.name]
        with pytest.raises(NotFound):
            store.open_folder("notes.txt")

    def test_the_id_of_what_cannot_be_read_is_empty(self, store, folder, tape):
        assert store.read_tape_id(folder.name) == tape.id
        (folder / "tape.json").write_bytes(b"\xff")
        assert store.read_tape_id(folder.name) == store.read_tape_id("nothing") == ""


class TestTheStoresOwnFile:
    def test_of_a_later_version_is_refused_and_nothing_is_touched(self, store, tape):
        (store.path / "store.json").write_text('{"format":2,"created":"x"}')
        before = files(store.path)
        for act in (store.folders, lambda: store.create(making.beginning())):
            with pytest.raises(NewerFormat, match="store of format 2"):
                act()
        assert files(store.path) == before

    @pytest.mark.parametrize("text", [b"", b"[", b"\xff", b"7"])
    def test_that_cannot_be_read_is_damage(self, store, tape, text):
        (store.path / "store.json").write_bytes(text)
        with pytest.raises(Damaged, match=r"store\.json cannot be read"):
            store.folders()


class TestRunsThatRepeat:
    def session(self, store):
        with store.create(making.beginning("words")) as tape:
            one, *_ = making.write(tape, "one", "x" * 70_000)
            tape.fork(making.at(tape, one.id), "b", switch=True)
            making.write(tape, "two")
            tape.label("good", one.id)
            with store.create(making.beginning("child"), origin=(tape, tape.head())) as child:
                making.write(child, "three")

    def test_write_the_same_bytes_with_a_clock_and_ids_that_repeat(self, tmp_path):
        for name in ("a", "b"):
            self.session(making.store_in(tmp_path / name))
        assert files(tmp_path / "a") == files(tmp_path / "b")

    def test_write_the_same_bytes_when_time_is_frozen(self, tmp_path):
        for name in ("a", "b"):
            with freeze_time("2026-11-21T20:31:05.123456"):
                self.session(Store(tmp_path / name, random=making.numbered(), durable=False))
        assert files(tmp_path / "a") == files(tmp_path / "b")
        assert any(
            b"2026-11-21T20:31:05.123456Z" in data for data in files(tmp_path / "a").values()
        )


class TestSlugs:
    @pytest.mark.parametrize(
        ("text", "made"),
        [
            ("Fix the login bug!", "fix-the-login-bug"),
            ("", "tape"),
            ("../../etc/passwd", "etc-passwd"),
            ("—…!", "tape"),
            ("Grüße an ALLE", "grüße-an-alle"),
            ("e\u0301te\u0301", "été"),
            ("登录 错误", "登录-错误"),
            ("हिन्दी भाषा", "हिन्दी-भाषा"),
            ("a\x00b\ud800c", "a-b-c"),
            ("x" * 100, "x" * 60),
            ("é" * 100, "é" * 30),
            ("a" * 59 + " b", "a" * 59),
        ],
    )
    def test_are_the_words_of_a_text(self, text, made):
        assert build_slug(text) == made

    @given(st.text())
    def test_of_any_text_are_short_names(self, text):
        made = build_slug(text)
        assert 1 <= len(made.encode()) <= 60
        assert unicodedata.is_normalized("NFC", made)
        assert not made.startswith((".", "-"))
        assert not made.endswith("-")
        assert not set(made) & set("/\0. \n")
