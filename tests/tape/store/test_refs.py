from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tape.errors import Damaged, InvalidName
from tape.store.disk import Folder, check_plain_name
from tape.store.refs import (
    Journal,
    Move,
    Pin,
    Refs,
    check_ref_name,
    encode_ref_line,
    quarantine_bytes,
    replay_journal,
)

TIME = "1970-01-01T00:00:00.000000Z"


def branch(name, phase, pin=None, why="fork"):
    return encode_ref_line({"branch": name, "phase": phase, "pin": pin, "why": why, "time": TIME})


def move(name, phase, pin=None, why="fork"):
    return Move(name, phase, pin, why, TIME)


START = branch("main", "0001-main-start", why="start") + encode_ref_line(
    {"current": "main", "why": "start", "time": TIME}
)
STARTED = (move("main", "0001-main-start", why="start"),)


@pytest.fixture
def journal(tmp_path):
    (tmp_path / "refs.jsonl").write_bytes(START)
    with Folder.open(tmp_path, durable=False) as folder:
        yield Journal(folder, clock=lambda: 0)


class TestALine:
    def test_its_bytes_are_the_golden_ones(self):
        rest = (
            '"branch":"b","phase":"0001-main-start","pin":{"offset":12,"entry":"ab"},'
            f'"why":"fork","time":"{TIME}"}}'
        )
        digits = sha256(rest.encode()).hexdigest()[:16]
        made = branch("b", "0001-main-start", Pin(12, "ab"))
        assert made == f'{{"h":"{digits}",{rest}\n'.encode()

    def test_every_flipped_byte_is_found(self):
        line = branch("b", "0001-main-start")
        for at in range(len(line) - 1):
            bad = line[:at] + bytes([line[at] ^ 1]) + line[at + 1 :]
            assert replay_journal(bad).branches == {}


class TestFolding:
    def test_the_newest_line_of_a_name_is_its_state(self):
        lines = [
            START,
            branch("b", "0001-main-start", Pin(5, "ab")),
            branch("b", "0002-b"),
            encode_ref_line({"current": "b", "why": "switch", "time": TIME}),
            encode_ref_line({"title": "Old", "why": "title", "time": TIME}),
            encode_ref_line({"title": "New", "why": "title", "time": TIME}),
            encode_ref_line({"label": "good", "entry": "ab", "why": "label", "time": TIME}),
            encode_ref_line({"label": "gone", "entry": "cd", "why": "label", "time": TIME}),
            encode_ref_line({"label": "gone", "entry": None, "why": "label", "time": TIME}),
        ]
        moves = (move("b", "0001-main-start", Pin(5, "ab")), move("b", "0002-b"))
        data = b"".join(lines)
        refs = Refs(
            {"main": STARTED, "b": moves}, {"good": "ab"}, "b", "New", (), len(data), "main", TIME
        )
        assert replay_journal(data) == refs
        assert refs.phases() == {"0001-main-start", "0002-b"}

    def test_no_bytes_are_no_branches(self):
        assert replay_journal(b"") == Refs({}, {})

    def test_a_torn_last_line_is_left_out_at_every_cut(self):
        line = branch("b", "0002-b")
        for size in range(len(line)):
            assert replay_journal(START + line[:size]) == Refs(
                {"main": STARTED}, {}, size=len(START), named=TIME
            )

    def test_a_whole_last_line_that_does_not_verify_counts_as_torn(self):
        refs = replay_journal(START + b'{"h":"0000000000000000","current":"x"}\n')
        assert (refs.damage, refs.size) == ((), len(START))

    def test_damage_further_up_is_skipped_and_named(self):
        bad = branch("x", "0009-x").replace(b'"x"', b'"y"')
        refs = replay_journal(START + bad + branch("b", "0002-b"))
        assert refs.branches == {"main": STARTED, "b": (move("b", "0002-b"),)}
        assert [(d.file, d.offset) for d in refs.damage] == [("refs.jsonl", len(START))]

    def test_two_bad_lines_at_the_end_are_more_than_a_torn_one(self):
        assert len(replay_journal(START + b"bad\nbad\n").damage) == 2

    @pytest.mark.parametrize("name", ["refs", "../x", "", "a..b", "A", "x/y"])
    def test_a_name_that_may_not_be_a_path_is_damage_even_with_a_right_hash(self, name):
        for fields in ({"branch": name, "phase": "0001-a", "pin": None}, {"current": name}):
            line = encode_ref_line({**fields, "why": "fork", "time": TIME})
            refs = replay_journal(START + line + START)
            assert name not in {refs.current, *refs.branches}
            assert len(refs.damage) == 1

    def test_a_line_with_fields_we_do_not_know_is_no_damage(self):
        future = encode_ref_line({"remote": "x", "why": "push", "time": TIME})
        assert replay_journal(START + future + START).damage == ()


class TestMoving:
    def test_every_move_is_one_line_and_known_immediately(self, journal, tmp_path):
        with journal.open_moves() as moves:
            moves.branch("b", "0001-main-start", Pin(0, "ab"), "fork")
            moves.current("b")
            moves.title("Tïtle \ud800")
            moves.label("good", "ab")
            known = moves.refs
        assert journal.read().branches == known.branches
        assert (known.current, known.title, known.labels) == ("b", "Tïtle \ufffd", {"good": "ab"})
        lines = (tmp_path / "refs.jsonl").read_bytes()[len(START) :]
        assert lines.split(b"\n")[0] + b"\n" == branch("b", "0001-main-start", Pin(0, "ab"))

    def test_a_torn_last_line_goes_to_quarantine(self, journal, tmp_path):
        whole, torn = tmp_path / "refs.jsonl", branch("b", "0002-b")[:-9]
        for name in (f"refs.{len(START)}", f"refs.{len(START)}.2", f"refs.{len(START)}.3"):
            whole.write_bytes(START + torn)
            with journal.open_moves() as moves:
                moves.title("after")
            assert (tmp_path / "quarantine" / name).read_bytes() == torn
            assert journal.read() == replay_journal(whole.read_bytes())
            assert whole.read_bytes().startswith(START + b'{"h":')

    def test_damage_further_up_is_refused_and_nothing_is_written(self, journal, tmp_path):
        data = START.replace(b"main", b"maim", 1) + branch("b", "0002-b")
        (tmp_path / "refs.jsonl").write_bytes(data)
        with pytest.raises(Damaged, match=r"byte 0.*tape fsck") as caught, journal.open_moves():
            pass
        assert (caught.value.exit_code, caught.value.file, caught.value.offset) == (
            4,
            "refs.jsonl",
            0,
        )
        assert (tmp_path / "refs.jsonl").read_bytes() == data
        assert "b" in journal.read().branches

    def test_a_missing_journal_is_damage_and_is_not_made_again(self, journal, tmp_path):
        (tmp_path / "refs.jsonl").unlink()
        with pytest.raises(Damaged, match="missing"):
            journal.read()
        with pytest.raises(Damaged, match="missing"), journal.open_moves():
            pass
        assert not (tmp_path / "refs.jsonl").exists()


class TestQuarantine:
    def test_a_name_that_is_taken_gets_a_number(self, journal, tmp_path):
        names = [quarantine_bytes(journal.folder, "refs.5", data) for data in (b"a", b"b", b"c")]
        assert names == ["refs.5", "refs.5.2", "refs.5.3"]
        assert [(tmp_path / "quarantine" / name).read_bytes() for name in names] == [
            b"a",
            b"b",
            b"c",
        ]


NAMES = st.text() | st.text("ab.-_/~0 ", max_size=60) | st.from_regex(r"[a-z0-9._-]{1,50}\n?")


class TestNames:
    @given(NAMES)
    def test_nothing_but_a_plain_name_passes(self, name):
        try:
            passed = check_ref_name("branch", name)
        except InvalidName:
            return
        assert passed == name
        assert 1 <= len(name) <= 48
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
        assert name[0] not in "._-"
        assert ".." not in name
        assert name != "refs"
        assert check_plain_name(name) == name

    @pytest.mark.parametrize("name", ["main", "a", "0", "try-redis", "a.b_c-d", "a" * 48, "refs2"])
    def test_plain_names_pass(self, name):
        assert check_ref_name("branch", name) == name

    @pytest.mark.parametrize(
        "name",
        ["", "refs", "..", "a..b", ".a", "-a", "a/b", "../../x", "a\n", "A", "é", "a" * 49, "a\0"],
    )
    def test_others_are_refused_with_the_rule(self, name):
        with pytest.raises(InvalidName, match="must match"):
            check_ref_name("branch", name)

    @given(NAMES | st.sampled_from(["", ".", "..", "a/b", "/", "a\0b"]))
    def test_no_part_of_a_path_leads_out_of_its_folder(self, name):
        try:
            passed = check_plain_name(name)
        except InvalidName:
            return
        assert passed not in {"", ".", ".."}
        assert not set(passed) & {"/", "\0"}
