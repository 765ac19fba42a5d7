from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tape.errors import Ambiguous, Damaged, NewerFormat, NotFound, UsageError
from tape.index.library import open_store
from tape.model.entries import Context, Text, User
from tape.places.resolve import resolve_reference
from tape.store.store import Beginning

START = 1_795_305_600_000_000  # 2026-11-22
ONE, TWO, CHILD = "1a2b" + "0" * 28, "1a2c" + "0" * 28, "3d4e" + "0" * 28


class Ticking:
    """A clock that goes on by a second each time it is read."""

    def __init__(self):
        self.at = START

    def __call__(self):
        self.at += 1_000_000
        return self.at


class Given:
    """Random digits that are known beforehand: ids of tapes, then zeros."""

    def __init__(self, *ids):
        self.ids = list(ids)

    def __call__(self, size):
        return self.ids.pop(0) if size == 16 and self.ids else "0" * (size * 2)


@pytest.fixture(params=[True, False], ids=["index", "files"])
def library(tmp_path, request):
    random = Given(ONE, TWO, CHILD)
    with open_store(tmp_path, clock=Ticking(), random=random, index=request.param) as library:
        yield library


@pytest.fixture
def said(library):
    """Two tapes; the ids of the first one's entries, oldest first."""
    store = library.store
    with store.create(Beginning("/one", "test/1", "First", "first")) as one:
        ids = [one.head().entry]
        with one.writer() as writer:
            ids += [writer.append(User((Text(text),))).id for text in ("a", "b", "c")]
        hit = one.find_ancestor(one.head(), 2)
        one.fork(hit.head, "try", switch=True)
        one.fork(hit.head, "side")
        one.label("good", ids[1])
        with one.writer() as writer:
            ids.append(writer.append(User((Text("d"),))).id)
    store.create(Beginning("/two", "test/1", "Second")).close()
    return ids


def open_files():
    return len(list(Path("/dev/fd").iterdir()))


@pytest.fixture
def place(library):
    """Find a REF and return its tape's id, branch and entry id; nothing may be left open."""

    def place(text, cwd="/one"):
        before = open_files()
        hit = resolve_reference(*library, text, cwd)
        with hit.tape:
            assert hit.tape.entry(hit.head).id == hit.head.entry
            found = hit.tape.id, hit.head.branch, hit.head.entry
        if library.index is not None:
            library.index.close()
        assert open_files() <= before
        return found

    return place


def test_each_form_of_a_reference_finds_its_entry(said, place):
    start, a, b, c, d = said
    folder = "2026-11-22-first-1a2b0000"
    for text, branch, entry in [
        ("", "try", d),
        ("1a2b", "try", d),
        (ONE, "try", d),
        (folder, "try", d),
        (f"{folder}:main", "main", c),
        (":main", "main", c),
        ("1a2b:main~1", "main", b),
        ("~1", "try", None),
        ("~2", "main", a),
        ("~3", "main", start),
        ("@good", "main", a),
        (f"@{a[:8]}", "main", a),
        (f"@{d}~2", "main", a),
        ("1a2b@good~1", "main", start),
        ("@{0}", "try", d),
        ("@{1}", "try", a),
        (":try@{1}~1", "main", start),
        (":side", "side", a),
        (":side@good", "side", a),
        (b[:10], "main", b),
        (b, "main", b),
        (f"{b}~1", "main", a),
        ("good", "main", a),
        ("good~1", "main", start),
    ]:
        tape, on, found = place(text)
        assert (text, tape, on) == (text, ONE, branch)
        assert entry in (None, found)


def test_nothing_means_the_tape_that_worked_here_last(library, said, place):
    assert place("", "/two")[0] == TWO
    library.store.create(Beginning("/one", "test/1")).close()
    assert place("", "/one")[0] == CHILD
    with library.store.open("1a2b") as one, one.writer() as writer:
        writer.append(User((Text("later"),)))
    assert place("", "/one")[0] == ONE


def _deny(word):
    return f"no tape, entry, label or branch '{word}'; `tape ls --all` lists the tapes"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no tape for /three yet; `tape ls --all` lists those of other folders"),
        ("ffff", _deny("ffff")),
        (
            "f" * 40,
            _deny("f" * 40),
        ),
        (
            "f" * 35,
            _deny("f" * 35),
        ),
        ("1a", _deny("1a")),
        ("side", _deny("side")),
        ("side@{0}", "no tape or branch 'side'; `tape ls --all` lists the tapes"),
        (
            "w" * 300,
            _deny("w" * 300),
        ),
        ("..", _deny("..")),
        ("\ud800", _deny("\\ud800")),
        ("main:main", "no tape 'main'; `tape ls --all` lists the tapes"),
        ("1a2b:none", "no branch 'none'; there are: main, try, side"),
        ("1a2b:none@good", "no branch 'none'; there are: main, try, side"),
        ("1a2b@none", "no entry or label 'none' in tape 1a2b0000"),
        ("1a2b@ffff", "no entry or label 'ffff' in tape 1a2b0000"),
        ("1a2b@{7}", "branch 'try' has moved 2 times, not 8 times"),
        ("1a2b~9", "that is before the first entry"),
    ],
)
def test_a_missing_tape_is_reported_with_what_to_do(library, said, text, words):
    before = open_files()
    with pytest.raises(NotFound) as caught:
        resolve_reference(*library, text, "/three")
    library.close()
    assert str(caught.value) == words
    assert open_files() <= before


def test_a_bare_word_may_be_a_branch_of_this_folders_tape(library, said, place):
    start, a, b, c, _ = said
    for text, branch, entry in [
        ("side", "side", a),
        ("main", "main", c),
        ("main~1", "main", b),
        ("main^1", "main", b),
        ("main^", "main", b),
        ("try@{1}", "try", a),
        ("side@good~1", "main", start),
        ("try^2", "main", start),
    ]:
        assert (text, *place(text)) == (text, ONE, branch, entry)
    for text in ("", "~2", "^1", "@{1}"):
        assert place(f"HEAD{text}") == place(text)
    with pytest.raises(NotFound, match="no tape 'HEAD'"):
        resolve_reference(*library, "HEAD:main", "/one")


def test_a_caret_goes_back_before_a_prompt(library, said, place):
    """`^N` is the entry before the Nth newest prompt, whatever stands between them."""
    start, a, b, _, _ = said
    with library.store.open("1a2b") as one, one.writer("main") as writer:
        note = writer.append(Context("user", "note", (Text("aside"),))).id
        e = writer.append(User((Text("e"),))).id
        tail = writer.append(Context("user", "note", (Text("behind"),))).id
    for text, entry in [
        (":main", tail),
        (":main^", note),
        (":main^1", note),
        (":main^2", b),
        (":main^3", a),
        (":main^4", start),
        (":main^0", tail),
        (f"@{e}^", note),
        (f"@{note}^", b),
        ("@good^1", start),
        ("^2", start),
    ]:
        assert (text, place(text)[2]) == (text, entry)
    for text, words in [
        (":main^5", "there is no prompt 5 to go back to: the path has 4 prompts"),
        (f"@{start}^", "there is no prompt 1 to go back to: the path has no prompt"),
    ]:
        with pytest.raises(NotFound) as caught:
            resolve_reference(*library, text, "/one")
        assert str(caught.value) == words


def test_three_digits_are_an_id_if_nothing_has_exactly_that_name(library, said, place):
    library.store.create(Beginning("/three", "test/1", "Third")).close()
    assert place("3d4")[0] == CHILD
    with pytest.raises(Ambiguous) as caught:
        resolve_reference(*library, "1a2", "/one")
    assert caught.value.hits == ('1a2b0000 "First"', '1a2c0000 "Second"')
    a, b = said[1], said[2]
    for word in {a[:3], b[:3]} - {one[:3] for one in said if one not in {a, b}} - {"1a2", "3d4"}:
        assert place(f"@{word}")[2][:3] == place(word)[2][:3] == word
    with library.store.open("1a2b") as one:
        one.label("3d4", b)
        one.label(a[:3], b)
    assert place("3d4") == place(f"@{a[:3]}") == (ONE, "main", b)
    assert place("3d4e")[0] == CHILD


def test_nothing_means_a_tape_of_the_repository_if_none_worked_in_the_folder(
    library, said, place, tmp_path
):
    root = tmp_path / "repository"
    (root / ".git").mkdir(parents=True)
    (root / "src/deep").mkdir(parents=True)
    library.store.create(Beginning(str(root / "other"), "test/1", project=str(root))).close()
    assert place("", str(root / "src/deep"))[0] == CHILD
    assert place("main", str(root / "src"))[0] == CHILD
    with pytest.raises(NotFound, match="no tape for"):
        resolve_reference(*library, "", str(tmp_path))


def test_a_store_that_is_not_there_is_not_made(library, tmp_path):
    for text in ("", "abcd", "word"):
        with pytest.raises(NotFound):
            resolve_reference(*library, text, "/")
    assert list(tmp_path.iterdir()) == []


def test_a_malformed_reference_is_a_usage_error(library, said):
    with pytest.raises(UsageError, match="is not a reference"):
        resolve_reference(*library, "a:b:c", "/one")


def test_two_tapes_of_one_prefix_are_listed_with_their_titles(tmp_path):
    ids = Given("abcd1" + "0" * 27, "abcd2" + "0" * 27)
    with open_store(tmp_path, clock=Ticking(), random=ids) as library:
        for title in ("First", None):
            library.store.create(Beginning("/", "test/1", title)).close()
        for index in (library.index, None):
            for text in ("abcd", "abcd:main@x"):
                with pytest.raises(Ambiguous) as caught:
                    resolve_reference(library.store, index, text, "/")
                assert caught.value.hits == ('abcd1000 "First"', "abcd2000")


def test_a_label_in_two_tapes_is_ambiguous_but_not_within_one(library, said, place):
    with library.store.open("1a2c") as two:
        second = two.head().entry
        two.label("good", second)
    with pytest.raises(Ambiguous) as caught:
        resolve_reference(*library, "good", "/one")
    assert caught.value.hits == (
        f'{said[1][:8]} in 1a2b0000 "First"',
        f'{second[:8]} in 1a2c0000 "Second"',
    )
    assert place("1a2c@good") == (TWO, "main", second)


def test_a_tape_comes_before_an_entry_and_an_entry_before_a_label(library, said, place):
    b = said[2]
    with library.store.open("1a2c") as two:
        two.label(b[:6], two.head().entry)
        two.label("1a2b", two.head().entry)
    assert place(b[:6]) == (ONE, "main", b)
    assert place("1a2b")[0] == ONE


def test_entries_of_the_origin_belong_to_the_child_too(library, said, place):
    with library.store.open("1a2b") as one:
        base = one.find_ancestor(one.head("main"), 1).head
        library.store.create(Beginning("/child", "test/1", "Child"), (one, base)).close()
    assert place("3d4e")[:2] == (CHILD, "main")
    assert place("3d4e~1") == (ONE, "main", said[2])
    assert place(f"3d4e@{said[1][:9]}") == (ONE, "main", said[1])
    assert place(f"3d4e@{said[1][:9]}~1") == (ONE, "main", said[0])
    assert place(said[1][:9]) == (ONE, "main", said[1])


def test_a_renamed_folder_is_found_by_its_new_name_and_its_id(library, said, place):
    tapes = library.store.tapes
    (tapes / "2026-11-22-first-1a2b0000").rename(tapes / "My tape")
    assert place("My tape~0")[0] == place("1a2b")[0] == ONE


def test_a_copied_tape_is_still_one(library, said, place):
    tapes = library.store.tapes
    shutil.copytree(tapes / "2026-11-22-first-1a2b0000", tapes / "copy")
    assert place("1a2b") == place("copy")
    assert place(said[2]) == (ONE, "main", said[2])


def test_a_damaged_or_newer_tape_hides_no_other_and_speaks_for_itself(library, said, place):
    tapes = library.store.tapes
    other = tapes / "2026-11-22-tape-1a2c0000"
    for text, error in [(b"{", Damaged), (b'{"format":2}', NewerFormat)]:
        (other / "tape.json").write_bytes(text)
        tapes.touch()
        assert place("1a2b")[0] == place("good")[0] == place(said[2])[0] == ONE
        for named in ("1a2c0000" + "0" * 4, other.name):
            with pytest.raises(error, match="2026-11-22-tape-1a2c0000"):
                resolve_reference(*library, named, "/one")


def test_a_tape_with_damaged_entries_says_so_when_it_is_meant(library, said, place):
    entries = library.store.tapes / "2026-11-22-tape-1a2c0000/phases/0001-main-start/entries.jsonl"
    entries.write_bytes(entries.read_bytes().replace(b"test/1", b"test/2"))
    assert place(said[2])[0] == ONE
    with pytest.raises(Damaged, match="no valid entry"):
        resolve_reference(*library, "1a2c", "/one")


def test_an_entry_is_found_though_the_head_is_damaged(library, said, place):
    tapes = library.store.tapes
    (entries,) = tapes.glob("2026-11-22-first-1a2b0000/phases/0002-try/entries.jsonl")
    entries.write_bytes(b"")
    assert place("1a2b@good") == (ONE, "main", said[1])
