from hashlib import sha256

import pytest

from tape.clock import format_timestamp
from tape.errors import Damaged, NewerFormat, NotFound
from tape.model.entries import Note
from tape.model.line import encode_line, encode_payload, verify_line
from tape.store import phase
from tape.store.disk import Folder
from tape.store.phase import PhaseFile, Phases, Tail, choose_phase_name

CHUNK = phase._CHUNK
SIZES = (1, 10, CHUNK - 300, CHUNK - 3, CHUNK - 2, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 7)


@pytest.fixture
def file(tmp_path):
    """Open a phase that holds the given bytes."""
    opened = []

    def make(data):
        folder = tmp_path / f"{len(opened) + 1:04d}-main"
        folder.mkdir()
        (folder / "entries.jsonl").write_bytes(data)
        opened.append(Phases(Folder.open(tmp_path)).open(folder.name))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def chain(*texts):
    """Return the bytes of entries that follow one another."""
    parts, parent = [], None
    for n, text in enumerate(texts):
        header, made = encode_line(
            "note", parent, n, format_timestamp(n), encode_payload(Note(text))
        )
        parts.append(made)
        parent = header.id
    return b"".join(parts)


def plain(lines):
    """Return (offset, line) of each line, computed the simplest way."""
    found, offset = [], 0
    for line in lines:
        found.append((offset, line))
        offset += len(line) + 1
    return found


class TestReading:
    @pytest.mark.parametrize("size", SIZES)
    @pytest.mark.parametrize("around", [0, 1, 400])
    def test_forward_and_backwards_over_every_border_of_a_chunk(self, file, size, around):
        lines = [b"a" * around, b"b" * size, b"", b"c" * around, b"d" * size]
        data = b"\n".join(lines) + b"\n"
        opened = file(data)
        assert list(opened.lines()) == plain(lines)
        assert list(opened.read_lines_back(len(data))) == plain(lines)[::-1]

    @pytest.mark.parametrize("size", SIZES)
    def test_between_two_offsets(self, file, size):
        lines = [b"a" * size, b"b", b"c" * size, b"d"]
        opened = file(b"\n".join(lines) + b"\n")
        placed = plain(lines)
        assert list(opened.lines(placed[1][0], placed[3][0])) == placed[1:3]
        assert list(opened.read_lines_back(placed[3][0])) == placed[2::-1]

    def test_what_has_no_newline_is_no_line(self, file):
        assert list(file(b"a\nbc").lines()) == [(0, b"a")]
        assert list(file(b"a" * 3 * CHUNK).lines()) == []

    def test_an_empty_file_has_no_lines(self, file):
        assert list(file(b"").lines()) == list(file(b"").read_lines_back(0)) == []

    def test_only_a_newline_ends_a_line(self, file):
        odd = "a\u2028b\u2029c\x85d\x0be\x0cf\rg\x00h".encode()
        assert list(file(odd + b"\nz\n").lines()) == [(0, odd), (len(odd) + 1, b"z")]

    def test_the_line_at_an_offset(self, file):
        opened = file(b"one\ntwo\ntorn")
        assert [opened.line_at(0), opened.line_at(4), opened.line_at(5)] == [b"one", b"two", b"wo"]

    @pytest.mark.parametrize("offset", [-1, -(2**70), 8, 9, 12, 13, 2**70])
    def test_where_no_line_begins_is_damage(self, file, offset):
        with pytest.raises(Damaged, match="no whole line"):
            file(b"one\ntwo\ntorn").line_at(offset)

    def test_a_reader_sees_what_is_added_later(self, tmp_path, file):
        opened = file(b"one\n")
        with (tmp_path / "0001-main" / "entries.jsonl").open("ab") as more:
            more.write(b"two\nthr")
        assert list(opened.lines()) == [(0, b"one"), (4, b"two")]


class TestTheTail:
    def test_is_the_last_line_that_verifies_at_every_cut(self, file, tmp_path):
        data = chain("one", "two", "three")
        ends = [0] + [at + 1 for at, byte in enumerate(data) if byte == 10]
        opened = file(data)
        path = tmp_path / "0001-main" / "entries.jsonl"
        for size in range(len(data), -1, -1):
            with path.open("r+b") as shrinking:
                shrinking.truncate(size)
            whole = [end for end in ends if end <= size]
            start = whole[-2] if len(whole) > 1 else -1
            header = verify_line(data[start : whole[-1] - 1]) if start >= 0 else None
            assert opened.tail() == Tail(whole[-1], start, header, size)

    @pytest.mark.parametrize(
        "junk",
        [b"junk\n", b"\n", b"\n\n\n", b"\x00" * 100, b"{}\n", b"x" * (3 * CHUNK), b"y\n" * CHUNK],
    )
    def test_is_before_any_line_that_does_not_verify(self, file, junk):
        data = chain("one", "two")
        tail = file(data + junk).tail()
        assert (tail.end, tail.size) == (len(data), len(data) + len(junk))

    def test_ends_before_a_line_whose_data_was_flipped(self, file):
        data = chain("one", "two")
        bad = data.replace(b"two", b"twi")
        assert file(bad).tail().end == len(chain("one"))

    def test_of_a_file_without_a_good_line_has_no_header(self, file):
        assert file(b"").tail() == Tail(0, -1, None, 0)
        assert file(b"junk\nmore").tail() == Tail(0, -1, None, 9)

    def test_refuses_a_line_of_a_later_version(self, file):
        newer = chain("one").replace(b'"v":1', b'"v":2')
        body = newer[49 : newer.index(b',"data":')]
        newer = b'{"id":"' + sha256(body).hexdigest()[:40].encode() + newer[47:]
        with pytest.raises(NewerFormat, match=r"0001-main.*format 2"):
            file(chain("zero") + newer).tail()


class TestPhaseFolders:
    def test_are_in_the_order_of_their_numbers(self, tmp_path):
        names = ["0002-b", "0010-a-merge", "0001-main-start", "10000-a", "9999-z"]
        for name in [*names, "1-short", "0003", "x", "\u0660\u0660\u0660\u0661-main", ".new"]:
            (tmp_path / name).mkdir()
        found = Phases(Folder.open(tmp_path)).names()
        assert found == ["0001-main-start", "0002-b", "0010-a-merge", "9999-z", "10000-a"]

    @pytest.mark.parametrize(
        ("names", "began", "name"),
        [
            ([], "start", "0001-main-start"),
            (["0001-main-start"], "", "0002-main"),
            (["0001-main-start", "0007-b"], "compaction", "0008-main-compaction"),
            (["9999-b"], "", "10000-main"),
        ],
    )
    def test_get_the_highest_number_and_one(self, names, began, name):
        assert choose_phase_name(names, "main", began) == name

    def test_that_are_missing_are_not_found(self, tmp_path):
        (tmp_path / "0002-empty").mkdir()
        for name in ("0001-main", "0002-empty"):
            with pytest.raises(NotFound):
                Phases(Folder.open(tmp_path)).open(name)

    @pytest.mark.parametrize(
        "name", ["../0001-main", "/etc", "", "..", "main", "0001-main/..", "0001-Main"]
    )
    def test_a_name_from_a_file_that_is_no_phase_never_becomes_a_path(self, tmp_path, name):
        with pytest.raises(Damaged, match="not the name of a phase"):
            Phases(Folder.open(tmp_path)).open(name)

    def test_links_are_not_followed(self, tmp_path):
        (tmp_path / "real").mkdir()
        (tmp_path / "real" / "entries.jsonl").write_bytes(chain("one"))
        (tmp_path / "0001-main").symlink_to("real")
        (tmp_path / "0002-main").mkdir()
        (tmp_path / "0002-main" / "entries.jsonl").symlink_to("../real/entries.jsonl")
        phases = Phases(Folder.open(tmp_path))
        with pytest.raises(NotFound):
            phases.open("0001-main")
        with pytest.raises(OSError, match="symbolic"):
            phases.open("0002-main")

    def test_the_first_entry(self, tmp_path, file):
        file(chain("one", "two"))
        file(b"")
        file(b"torn")
        file(chain("one").replace(b'"n":0', b'"n":9'))
        phases = Phases(Folder.open(tmp_path))
        assert phases.first("0001-main", str).data == Note("one")
        assert phases.first("0002-main", str) is None
        assert phases.first("0003-main", str) is None
        with pytest.raises(Damaged, match="first entry is damaged"):
            phases.first("0004-main", str)


def test_closing_twice_is_fine(file):
    opened = file(b"")
    assert isinstance(opened, PhaseFile)
    opened.close()
    opened.close()
