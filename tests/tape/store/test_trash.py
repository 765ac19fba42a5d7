import pytest

from tape.errors import Ambiguous, Busy, NotFound, UsageError
from tape.index.library import open_store
from tape.store.maintenance.upkeep import detach
from tape.store.store import Trashed
from tests.tape import making, reader


def names(path):
    return sorted(file.name for file in path.iterdir())


class TestRemoving:
    def test_moves_a_tape_to_the_trash_and_back(self, store, tape, folder):
        making.write(tape, "one")
        before = reader.files(folder)
        name = store.remove(tape)
        assert (store.folders(), store.trash()) == ([], [Trashed(folder.name, tape.id)])
        assert name == folder.name
        assert reader.files(store.path / "trash" / name) == before
        with pytest.raises(NotFound):
            store.open(tape.id)
        assert store.restore(tape.id[:8]) == name
        assert (store.folders(), store.trash()) == ([name], [])
        assert reader.files(folder) == before
        assert (store.path / "trash").stat().st_mode & 0o777 == 0o700

    def test_finds_a_tape_that_was_renamed_while_open(self, store, tape, folder):
        folder.rename(folder.with_name("mine"))
        assert store.remove(tape) == "mine"

    def test_takes_another_name_where_one_is_taken(self, store, tape, folder):
        for taken in (folder.name, f"{folder.name}.2"):
            (store.path / "trash" / taken).mkdir(parents=True)
        assert store.remove(tape) == f"{folder.name}.3"
        folder.mkdir()
        assert store.restore(tape.id) == f"{folder.name}.3"

    def test_waits_for_no_writer(self, store, tape):
        with tape.writer(), pytest.raises(Busy):
            store.remove(tape)
        assert store.trash() == []
        store.remove(tape)

    def test_minds_a_writer_whose_branch_is_not_made_yet(self, store, tape):
        with tape.writer() as first, tape.writer():
            first.close()
            with pytest.raises(Busy):
                store.remove(tape)

    def test_is_refused_while_others_read_on_in_it(self, store, tape):
        making.write(tape, "one")
        with store.create(making.beginning("child"), origin=(tape, tape.head())) as child:
            with pytest.raises(UsageError, match=f"detach .* first: .*{child.id[:8]}"):
                store.remove(tape)
            detach(child)
            store.remove(tape)
            assert making.texts(child) == ["one"]

    def test_of_a_tape_that_is_gone_says_so(self, store, tape):
        store.remove(tape)
        with pytest.raises(NotFound, match="no longer in"):
            store.remove(tape)


class TestRestoring:
    def test_by_folder_or_id_only(self, store, tape):
        with store.create(making.beginning()) as other:
            gone = [store.remove(one) for one in (tape, other)]
        for wrong in ("", "nothing", "f" * 8):
            with pytest.raises(NotFound, match="no tape in the trash"):
                store.restore(wrong)
        assert [store.restore(name) for name in gone] == gone

    def test_by_a_prefix_of_two_is_ambiguous(self, tmp_path):
        ids = iter(["ab" * 16, "12" * 4, "00" * 4, "ab" * 15 + "cd"])
        store = making.store_in(tmp_path)
        store.random = lambda _: next(ids)
        for words in ("one", "two"):
            with store.create(making.beginning(words)) as tape:
                store.remove(tape)
        with pytest.raises(Ambiguous, match=r"one.*two"):
            store.restore("abab")

    def test_beside_a_copy_of_the_same_tape_is_refused(self, store, tape, folder):
        name = store.remove(tape)
        copy = store.tapes / "copy"
        copy.mkdir()
        data = (store.path / "trash" / name / "tape.json").read_bytes()
        (copy / "tape.json").write_bytes(data)
        with pytest.raises(UsageError, match="is already in the store"):
            store.restore(name)


class TestEmptying:
    def test_deletes_what_is_named_and_nothing_else(self, store, tape):
        with store.create(making.beginning()) as other:
            gone, kept = store.remove(tape), store.remove(other)
        store.empty_trash([gone])
        assert names(store.path / "trash") == [kept]
        with pytest.raises(NotFound):
            store.restore(gone)

    def test_of_one_that_is_not_there_deletes_none(self, store, tape):
        gone = store.remove(tape)
        with pytest.raises(NotFound):
            store.empty_trash([gone, "nothing"])
        assert names(store.path / "trash") == [gone]

    def test_is_refused_while_another_in_the_trash_reads_on_in_it(self, store, tape):
        with store.create(making.beginning("child"), origin=(tape, tape.head())) as child:
            young = store.remove(child)
        old = store.remove(tape)
        with pytest.raises(UsageError, match="detach"):
            store.empty_trash([old])
        store.empty_trash([old, young])
        assert store.trash() == []

    def test_ends_what_was_cut_short(self, store, tape):
        name = store.remove(tape)
        trash = store.path / "trash"
        (trash / name).rename(trash / f".deleted-{name}")
        assert store.trash() == []
        store.empty_trash([])
        assert names(trash) == []


def test_an_empty_store_has_no_trash(tmp_path):
    assert making.store_in(tmp_path).trash() == []


def test_the_index_follows(tmp_path):
    with open_store(tmp_path) as (store, index), store.create(making.beginning()) as tape:
        assert [row.id for row in index.rows(None, None)] == [tape.id]
        name = store.remove(tape)
        assert index.rows(None, None) == []
        store.restore(name)
        assert [row.id for row in index.rows(None, None)] == [tape.id]
