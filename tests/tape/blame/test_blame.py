"""Which change brought in each line: by hand, against a model, and from tapes."""

from __future__ import annotations

import json
import sys
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from tape.blame.edits import NO_ORIGIN, match_lines
from tape.blame.history import ChangeCause, blame_file
from tape.blame.replay import (
    PARTIAL_MATCH,
    UNKNOWN_BASE,
    UNKNOWN_RESULT,
    AttributedChange,
    BlamedRange,
    SeenVersion,
    attribute_lines,
)
from tape.errors import NotFound, UsageError
from tape.files.calls import (
    FileDelete,
    FileEdit,
    FileWrite,
    PatchHunk,
    TextInsertion,
    TextReplacement,
)
from tape.index.library import open_store
from tape.model.entries import (
    Assistant,
    Checkpoint,
    FileState,
    Meta,
    SavedFile,
    Text,
    ToolCall,
    ToolResult,
    ToolStart,
)
from tape.store.store import Beginning
from tests.tape import making


def edit(old: str, new: str, *, every: bool = False) -> FileEdit:
    return FileEdit((TextReplacement(old, new, every),))


def lines_of(ranges: list[BlamedRange[str]]) -> str:
    """Return who brought in each line, a letter each, `-` for nobody."""
    return "".join((one.by or "-") * (one.last - one.first + 1) for one in ranges)


def blamed(current: str, *works, unknown: str = "") -> str:
    """Attribute to changes called a, b, c …; those in `unknown` have no result."""
    changes = [
        AttributedChange(name, work, name not in unknown)
        for name, work in zip("abcdefg", works, strict=False)
    ]
    return lines_of(attribute_lines(current, changes))


FULL = FileWrite("1\n2\n3\n4\n", created=True)
HALF = FileWrite("1\n2\n", created=True)
HUNK = PatchHunk(("2", "3"), ("2", "x", "3"), ("1",))
BLANKS = FileEdit((PatchHunk(("2", "3"), (" 2", "x", "3")),))
AT_END = FileEdit((PatchHunk(("1",), ("1", "3"), (), at_end=True),))
APPENDED = FileEdit((PatchHunk((), ("x",)), PatchHunk(("2",), ("y",))))
DASHED = FileEdit((PatchHunk(("a - b",), ("a + b",)),))
ADDED = FileEdit((PatchHunk((), ("x",), ("1",)),))
CASES = {
    "a written file": ("1\n2\n3\n4\n", [FULL], "aaaa"),
    "an edit owns what it brought": ("1\nx\n3\n4\n", [FULL, edit("2", "x")], "abaa"),
    "its context stays with the older": (
        "1\n2\nx\n3\n4\n",
        [FULL, edit("2\n3", "2\nx\n3")],
        "aabaa",
    ),
    "a part of a line is the line": ("1\n2!\n3\n4\n", [FULL, edit("2\n", "2!\n")], "abaa"),
    "lines that went leave the rest": ("1\n4\n", [FULL, edit("2\n3\n", "")], "aa"),
    "joined lines are the edit's": ("1\n23\n4\n", [FULL, edit("2\n3", "23")], "aba"),
    "a second write keeps what was": ("1\n2\nx\n4\n", [FULL, FileWrite("1\n2\nx\n4\n")], "aaba"),
    "the same again is nobody's work": ("1\n2\n3\n4\n", [FULL, FileWrite("1\n2\n3\n4\n")], "aaaa"),
    "everywhere": (
        "1\nx\nx\n",
        [FileWrite("1\n2\n2\n", created=True), edit("2", "x", every=True)],
        "abb",
    ),
    "edits of edits": ("1\ny\n3\n4\n", [FULL, edit("2", "x"), edit("x", "y")], "acaa"),
    "a patch": ("1\n2\nx\n3\n4\n", [FULL, FileEdit((HUNK,))], "aabaa"),
    "a patch with other blanks": (
        "1\n 2\nx\n3\n",
        [FileWrite("1\n 2 \n3\n", created=True), BLANKS],
        "abba",
    ),
    "a patch at the end": ("1\n2\n1\n3\n", [FileWrite("1\n2\n1\n", created=True), AT_END], "aaab"),
    "a hunk of new lines only": ("1\nx\n2\n", [HALF, ADDED], "aba"),
    "lines at the end and then some before": ("1\ny\nx\n", [HALF, APPENDED], "abb"),
    "a patch in plain characters": ("a + b\n", [FileWrite("a – b\n", created=True), DASHED], "b"),
    "an insertion": ("1\nx\n2\n3\n4\n", [FULL, FileEdit((TextInsertion(1, "x"),))], "abaaa"),
    "an appendix": ("1\n2\n3\n4\nx\n", [FULL, FileEdit((TextInsertion(None, "x\n"),))], "aaaab"),
    "deleted and made anew": ("1\n2\n", [FULL, FileDelete(), FileWrite("1\n2\n")], "cc"),
    "line ends do not matter": ("\ufeff1\r\nx\r\n", [HALF, edit("1\r\n2", "1\r\nx")], "ab"),
    "no last line end": ("1\nx", [FileWrite("1\n2", created=True), edit("2", "x")], "ab"),
    "changed outside at the end": ("1\n2\nhand\n4\n", [FULL], "aa-a"),
    "changed outside before an edit": (
        "1\nhand\ny\n4\n",
        [FULL, edit("hand\n3", "hand\ny")],
        "a-ba",
    ),
    "seen between": (
        "1\nhand\n3\n5\n",
        [FULL, SeenVersion("1\nhand\n3\n4\n"), FileWrite("1\nhand\n3\n5\n")],
        "a-ac",
    ),
    "a look that is not the file": ("1\n2\n3\n4\n", [FULL, SeenVersion("<xml>\nno\n")], "aaaa"),
    "an edit of nothing known": ("1\nx\n3\n", [edit("2", "x")], "-a-"),
    "edits of nothing known": ("1\nx\ny\n3\n", [edit("2", "x\nz"), edit("z", "y")], "-ab-"),
    "an edit that stands twice": ("x\nx\n", [edit("2", "x")], "--"),
    "an edit that is gone": ("1\n2\n", [edit("2", "x")], "--"),
    "a deletion of nothing known": ("1\n2\n", [edit("3\n", "")], "--"),
    "a patch of nothing known": ("0\n1\n2\nx\n3\n4\n", [FileEdit((HUNK,))], "---a--"),
    "an edit and then a write": ("1\nx\n2\n", [edit("2", "x\n2"), FileWrite("1\nx\n2\n")], "bab"),
    "the same text by two": (
        "x = 1\n",
        [FileWrite("x = 1\n", created=True), edit("gone", "x = 1")],
        "a",
    ),
    "an empty file": ("", [FULL, FileWrite("")], ""),
    "nothing": ("1\n", [], "-"),
}


@pytest.mark.parametrize("case", CASES)
def test_lines_belong_to_the_change_that_brought_them(case):
    current, works, owners = CASES[case]
    assert blamed(current, *works) == owners


def test_doubts_are_reported():
    wrote = AttributedChange("a", FileWrite("1\n2\n"))
    assert attribute_lines("1\n2\n", [wrote]) == [BlamedRange(1, 2, "a", UNKNOWN_BASE)]
    assert attribute_lines("1\n2\n", [wrote])[0].is_older
    grown = [wrote, AttributedChange("b", FileWrite("1\n2\n3\n"))]
    assert attribute_lines("1\n2\n3\n", grown) == [
        BlamedRange(1, 2, "a", UNKNOWN_BASE),
        BlamedRange(3, 3, "b"),
    ]
    assert attribute_lines("1\nx\n", [AttributedChange("a", edit("2", "x"), known=False)]) == [
        BlamedRange(1, 1, None),
        BlamedRange(2, 2, "a", UNKNOWN_RESULT),
    ]
    part = AttributedChange("a", edit("2\n3", "first word\n3\nother word"))
    assert attribute_lines("first word\n4\nother word\n", [part]) == [
        BlamedRange(1, 1, "a", PARTIAL_MATCH),
        BlamedRange(2, 2, None),
        BlamedRange(3, 3, "a", PARTIAL_MATCH),
    ]


@pytest.mark.parametrize(
    ("current", "works", "owners"),
    [
        ("1\n2\n", [HALF, edit("1", "x")], "aa"),
        ("x\n2\n", [HALF, edit("1", "x")], "ba"),
        ("x\n2\n", [HALF, FileWrite("x\n2\n")], "ba"),
        ("1\n2\n", [HALF, FileWrite("x\n2\n")], "aa"),
        ("1\n3\n", [HALF, FileDelete()], "a-"),
        ("y\n2\n", [HALF, edit("1", "x"), edit("x", "y")], "ca"),
    ],
)
def test_a_call_without_a_result_counts_only_where_its_text_is_in_the_file(current, works, owners):
    assert blamed(current, *works, unknown="b") == owners


def random_text(draw, numbers, lines):
    """Return lines with some taken out and some new ones put in, each of which is there once."""
    found = []
    for line in lines:
        what = draw(st.sampled_from(["keep", "keep", "keep", "drop", "before"]))
        if what == "before":
            found.append((f"line {next(numbers):06}", None))
        if what != "drop":
            found.append(line)
    return found or [(f"line {next(numbers):06}", None)]


def joined(lines):
    return "".join(f"{text}\n" for text, _ in lines)


@st.composite
def histories(draw, *, outside=False):
    """Return changes, the lines of the file with their true owners, and how it began."""
    numbers = count(1)
    fresh = [(f"line {next(numbers):06}", None) for _ in range(draw(st.integers(6, 12)))]
    known = draw(st.booleans()) or not outside
    lines = [(text, 0 if known else None) for text, _ in fresh]
    changes = [AttributedChange(0, FileWrite(joined(lines), created=True))] if known else []
    unseen = False  # two texts with little in common are not taken for one file
    for number in range(1, draw(st.integers(1, 12))):
        kinds = ["edit", "edit", "write"]
        kinds += ["outside"] * (outside and not unseen and len(lines) >= 6)
        match draw(st.sampled_from(kinds)):
            case "outside":
                unseen = True
                at = draw(st.integers(0, len(lines)))
                lines = [*lines[:at], (f"line {next(numbers):06}", None), *lines[at + 1 :]]
            case "write":
                if outside:
                    unseen = False
                    changes.append(AttributedChange(number, SeenVersion(joined(lines))))
                after = random_text(draw, numbers, lines)
                old = set(lines)
                lines = [line if line in old else (line[0], number) for line in after]
                changes.append(AttributedChange(number, FileWrite(joined(lines))))
            case "edit":
                first = draw(st.integers(0, len(lines) - 1))
                last = draw(st.integers(first + 1, min(first + 4, len(lines))))
                part = lines[first:last]
                old = set(part)
                new = [
                    line if line in old else (line[0], number)
                    for line in random_text(draw, numbers, part)
                ]
                lines = [*lines[:first], *new, *lines[last:]]
                if joined(part) != joined(new):
                    changes.append(AttributedChange(number, edit(joined(part), joined(new))))
    return changes, lines


def owners(ranges):
    return [one.by for one in ranges for _ in range(one.first, one.last + 1)]


@settings(max_examples=150 * making.BUDGET, deadline=None)
@given(histories())
def test_every_line_belongs_to_the_change_that_brought_it(history):
    changes, lines = history
    found = attribute_lines(joined(lines), changes)
    assert owners(found) == [by for _, by in lines]
    assert all(one.doubt is None for one in found)


@settings(max_examples=150 * making.BUDGET, deadline=None)
@given(histories(outside=True))
def test_an_outside_change_belongs_to_no_session(history):
    changes, lines = history
    found = owners(attribute_lines(joined(lines), changes))
    for by, (text, true) in zip(found, lines, strict=True):
        if true is None and changes and isinstance(changes[0].work, FileWrite):
            assert by is None, text
        assert by is None or true is None or by == true


@settings(max_examples=150 * making.BUDGET, deadline=None)
@given(
    st.lists(st.sampled_from("aab}"), max_size=20), st.lists(st.sampled_from("abc}"), max_size=20)
)
def test_origins_are_the_same_lines_in_order(old, new):
    found = match_lines(old, new)
    kept = [(origin, at) for at, origin in enumerate(found) if origin != NO_ORIGIN]
    assert all(old[origin] == new[at] for origin, at in kept)
    assert [origin for origin, _ in kept] == sorted({origin for origin, _ in kept})
    assert match_lines(old, old) == list(range(len(old)))


def work(run) -> int:
    """Return how many lines of Python it takes."""
    lines = 0

    def trace(_frame, event, _argument):
        nonlocal lines
        lines += event == "line"
        return trace

    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(None)
    return lines


def every_second_line_changed(size: int) -> tuple[list[str], list[str]]:
    old = [f"line {at}" if at % 4 else "}" for at in range(size)]
    return old, [f"{line} changed" if at % 2 else line for at, line in enumerate(old)]


def nothing_but_brackets(size: int) -> tuple[list[str], list[str]]:
    return ["{", "}"] * size, ["}", "{", "{"] * size


@pytest.mark.parametrize("texts", [every_second_line_changed, nothing_but_brackets])
def test_matching_lines_grows_with_their_number_not_with_its_square(texts):
    small, large = texts(1_000), texts(4_000)
    assert work(lambda: match_lines(*large)) < 6 * work(lambda: match_lines(*small))


def test_many_changes_of_a_long_file_take_work_for_what_they_change():
    def history(size: int) -> list[AttributedChange[int]]:
        lines = [f"line {at:06}" for at in range(size)]
        changes = [AttributedChange(0, FileWrite("\n".join(lines)))]
        for number in range(1, 20):
            at = number * size // 20
            changes.append(
                AttributedChange(number, edit(lines[at] + "\n", f"{lines[at]} {number}\n"))
            )
        return changes

    text = "\n".join(f"line {at:06}" for at in range(4_000))
    short = work(lambda: attribute_lines(text, history(4_000)[:2]))
    assert work(lambda: attribute_lines(text, history(4_000))) < 3 * short


def call(number: int, name: str, **args) -> Assistant:
    block = ToolCall(id=f"c_{number}", name=name, args=Raw(json.dumps(args).encode()))
    return Assistant((block,), provider="offline", model="rules")


def done(number: int, text: str = "ok", *, is_error: bool = False, details: bytes = b"null"):
    result = ToolResult(f"c_{number}", "tool", (Text(text=text),), is_error)
    return (
        result
        if details == b"null"
        else ToolResult(f"c_{number}", "tool", (Text(text=text),), is_error, Raw(details))
    )


@pytest.fixture
def work_folder(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


class Sessions:
    """A store of sessions that work in one folder; its clock counts."""

    def __init__(self, path, cwd) -> None:
        self.path, self.cwd = path, cwd
        ticks = count(making.DAY, 1_000_000)
        self.store = open_store(path, clock=lambda: next(ticks)).store
        self.store.durable = False

    def tape(self, *payloads, cwd=None, origin=None):
        tape = self.store.create(Beginning(str(cwd or self.cwd), "test/1"), origin)
        with tape.writer() as writer:
            for payload in payloads:
                writer.append(payload)
        return tape

    def blame(self, file):
        """Blame a file with and without the index: the same."""
        with open_store(self.path) as (store, index):
            found = blame_file(store, index, file)
        assert found == blame_file(self.store, None, file)
        return found

    def told(self, file):
        """Return (prompt, op) of each line."""
        return [
            one.by and (one.by.prompt, one.by.op)
            for one in self.blame(file).ranges
            for _ in range(one.first, one.last + 1)
        ]


@pytest.fixture
def sessions(tmp_path, work_folder):
    return Sessions(tmp_path / "store", work_folder)


def test_a_line_leads_to_entry_tape_and_prompt(sessions, work_folder):
    file = work_folder / "a.py"
    file.write_text("one\ntwo\n")
    one = sessions.tape(
        making.say("Begin\nplease"),
        call(1, "write", path="a.py", content="one\n2\n"),
        done(1, details=b'{"created":true}'),
    )
    two = sessions.tape(
        making.say("Words, not digits"),
        call(2, "edit", path=str(file), oldText="2", newText="two"),
        done(2),
    )
    found = sessions.blame(file)
    assert found.lines == ["one", "two"]
    first, second = found.ranges
    entry = making.entries(one)[2]
    time = making.entries(one)[3].time
    assert first == BlamedRange(
        1, 1, ChangeCause(one.id, "main", entry.id, time, "offline/rules", "Begin", "write")
    )
    assert (second.by.tape, second.by.prompt, second.doubt) == (two.id, "Words, not digits", None)


def test_failed_calls_do_not_count_and_open_ones_may(sessions, work_folder):
    file = work_folder / "a.py"
    file.write_text("x\ny\nz\n")
    sessions.tape(
        making.say("p"),
        call(1, "edit", path="a.py", oldText="1", newText="x"),
        done(1, is_error=True),
        call(2, "edit", path="a.py", oldText="2", newText="y"),
        ToolStart("c_2", "edit"),
        call(3, "edit", path="a.py", oldText="3", newText="z"),
    )
    found = sessions.blame(file).ranges
    assert [(one.by and one.by.op, one.doubt) for one in found] == [
        (None, None),
        ("edit", UNKNOWN_RESULT),
        (None, None),
    ]


def test_arguments_that_were_changed_before_the_call_ran_count(sessions, work_folder):
    file = work_folder / "a.py"
    file.write_text("z\n")
    ran = Raw(b'{"path":"a.py","content":"z\\n"}')
    sessions.tape(
        making.say("p"),
        call(1, "write", path="a.py", content="x\n"),
        ToolStart("c_1", "write", ran),
        done(1),
    )
    assert sessions.told(file) == [("p", "write")]


def test_all_branches_count_and_the_prompt_is_that_of_the_branch(sessions, work_folder):
    file = work_folder / "a.py"
    file.write_text("m\nt\n")
    tape = sessions.tape(
        making.say("Main"), call(1, "write", path="a.py", content="m\nn\n"), done(1)
    )
    name = tape.fork(tape.head(), "try")
    with tape.writer(name) as writer:
        writer.append(call(2, "edit", path="a.py", oldText="n", newText="t"))
        writer.append(done(2))
    first, second = sessions.blame(file).ranges
    assert (first.by.branch, second.by.branch) == ("main", "try")
    assert (first.by.prompt, second.by.prompt) == ("Main", "Main")


def test_a_shared_past_counts_once_also_when_it_was_copied(sessions, work_folder):
    file = work_folder / "a.py"
    file.write_text("m\nt\n")
    tape = sessions.tape(
        making.say("Main"), call(1, "write", path="a.py", content="m\nn\n"), done(1)
    )
    child = sessions.tape(
        call(2, "edit", path="a.py", oldText="n", newText="t"), done(2), origin=(tape, tape.head())
    )
    told = [("Main", "write"), ("Main", "edit")]
    assert sessions.told(file) == told
    from tape.store.maintenance.upkeep import detach

    detach(child)
    assert sessions.told(file) == told
    assert sessions.blame(file).ranges[0].by.tape == tape.id
    sessions.store.remove(tape)
    assert sessions.told(file) == told


def test_a_file_moved_by_a_patch_continues_the_one_it_was(sessions, work_folder):
    file = work_folder / "new.py"
    file.write_text("one\ntwo\n")
    patch = (
        "*** Begin Patch\n*** Update File: old.py\n*** Move to: new.py\n@@\n-2\n+two\n*** End Patch"
    )
    sessions.tape(
        making.say("Begin"),
        call(1, "write", path="old.py", content="one\n2\n"),
        done(1),
        making.say("Move"),
        call(2, "apply_patch", input=patch),
        done(2),
    )
    assert sessions.told(file) == [("Begin", "write"), ("Move", "patch")]


def test_what_a_tool_read_or_a_checkpoint_kept_tells_of_changes_outside(sessions, work_folder):
    file = work_folder / "a.py"
    file.write_text("one\nhand\nthree\nfour\n")
    tape = sessions.tape(
        making.say("Begin"), call(1, "write", path="a.py", content="one\ntwo\nthree\n"), done(1)
    )
    with tape.writer() as writer:
        writer.append(making.say("Go on"))
        writer.append(call(2, "read", path="a.py"))
        writer.append(done(2, "one\nhand\nthree\n"))
        writer.append(call(3, "write", path="a.py", content="one\nhand\nthree\nfour\n"))
        writer.append(done(3))
    expected = [("Begin", "write"), None, ("Begin", "write"), ("Go on", "write")]
    assert sessions.told(file) == expected
    file.write_text("one\nhand\nthree\nfour\nmore\nfive\n")
    with tape.writer() as writer:
        kept = tape.blobs.put(b"one\nhand\nthree\nfour\nmore\n")
        writer.append(Checkpoint((FileState(str(file), SavedFile.from_blob(kept)),)))
        text = "one\nhand\nthree\nfour\nmore\nfive\n"
        writer.append(call(4, "write", path="a.py", content=text))
        writer.append(done(4))
    assert sessions.told(file) == [*expected, None, ("Go on", "write")]


@pytest.mark.parametrize(
    ("shown", "nobody"),
    [
        ("     1→one\n     2→hand\n     3→three\n", True),
        ("1\tone\n2\thand\n3\tthree\n\n<system-reminder>x</system-reminder>", True),
        ("     2→hand\n     3→three\n", False),
        ("one\nhand\n\n[1 more lines in file. Use offset=3 to continue.]", False),
    ],
)
def test_a_listing_with_numbers_counts_when_it_is_whole(sessions, work_folder, shown, nobody):
    file = work_folder / "a.py"
    file.write_text("one\nhand\nthree\n")
    sessions.tape(
        making.say("p"),
        call(1, "write", path="a.py", content="one\ntwo\nthree\n"),
        done(1),
        call(2, "Read", file_path="a.py"),
        done(2, shown),
        call(3, "write", path="a.py", content="one\nhand\nthree\n"),
        done(3),
    )
    assert (sessions.told(file)[1] is None) is nobody


def test_links_lead_to_the_same_file(sessions, work_folder, tmp_path):
    file = work_folder / "a.py"
    file.write_text("one\n")
    (tmp_path / "link").symlink_to(work_folder)
    (work_folder / "b.py").symlink_to("a.py")
    sessions.tape(
        making.say("p"),
        call(1, "write", path=str(tmp_path / "link" / "a.py"), content="one\n"),
        done(1),
    )
    for name in (file, tmp_path / "link" / "a.py", work_folder / "b.py"):
        assert sessions.told(name) == [("p", "write")]


def test_a_project_that_moved_is_followed(sessions, work_folder, tmp_path):
    (work_folder / "src").mkdir()
    (work_folder / "src/a.py").write_text("one\ntwo\n")
    tape = sessions.tape(
        making.say("p"), call(1, "write", path="src/a.py", content="one\n2\n"), done(1)
    )
    there = tmp_path / "elsewhere" / "work"
    there.parent.mkdir()
    work_folder.rename(there)
    file = there / "src/a.py"
    sessions.cwd = there
    assert sessions.told(file) == [("p", "write"), None]  # by the name of the project's folder
    other = tmp_path / "other"
    there.rename(other)
    with pytest.raises(NotFound, match="no tape"):
        blame_file(sessions.store, None, other / "src/a.py")
    with tape.writer() as writer:
        writer.append(Meta(cwd=str(other)))
        writer.append(call(2, "edit", path="src/a.py", oldText="2", newText="two"))
        writer.append(done(2))
    assert sessions.told(other / "src/a.py") == [("p", "write"), ("p", "edit")]


def test_a_file_of_the_same_name_elsewhere_is_another(sessions, work_folder, tmp_path):
    (work_folder / "a.py").write_text("one\n")
    sessions.tape(making.say("p"), call(1, "write", path="sub/a.py", content="one\n"), done(1))
    sessions.tape(
        making.say("q"), call(1, "write", path="a.py", content="one\n"), done(1), cwd=tmp_path
    )
    with pytest.raises(NotFound, match="no tape"):
        sessions.blame(work_folder / "a.py")


def test_what_cannot_be_blamed_says_why(sessions, work_folder):
    with pytest.raises(NotFound, match="the file does not exist"):
        sessions.blame(work_folder / "a.py")
    with pytest.raises(UsageError, match="folder"):
        sessions.blame(work_folder)
    (work_folder / "b.bin").write_bytes(b"a\0b")
    with pytest.raises(UsageError, match="binary"):
        sessions.blame(work_folder / "b.bin")


def test_a_long_text_in_a_blob_counts_too(sessions, work_folder):
    text = "".join(f"line {at}\n" for at in range(20_000))
    file = work_folder / "a.py"
    file.write_text(text)
    sessions.tape(making.say("p"), call(1, "write", path="a.py", content=text), done(1))
    (found,) = sessions.blame(file).ranges
    assert (found.first, found.last, found.by.prompt) == (1, 20_000, "p")


@pytest.mark.parametrize("name", ["a.py", "登录 页.py", "--", 'naïve-"quoted".txt', ".env"])
def test_any_call_that_names_the_file_is_found_with_the_index_too(sessions, work_folder, name):
    file = work_folder / name
    file.write_text("one\ntwo\nthree\n")
    patch = f"*** Begin Patch\n*** Update File: {name}\n@@\n-2\n+two\n*** End Patch"
    for payload in (
        call(1, "mcp__disk__write_file", path=name, content="one\n2\n3\n"),
        call(2, "bash", command=f"apply_patch <<'EOF'\n{patch}\nEOF"),
        call(
            3, "str_replace_editor", command="str_replace", path=name, old_str="3", new_str="three"
        ),
    ):
        sessions.tape(making.say("p"), payload, done(int(payload.content[0].id[2:])))
    assert [op for _, op in sessions.told(file)] == ["write", "patch", "edit"]


def test_a_damaged_tape_is_reported_and_hides_no_other(sessions, work_folder):
    file = work_folder / "a.py"
    file.write_text("one\n")
    for _ in range(2):
        tape = sessions.tape(
            making.say("p"), call(1, "write", path="a.py", content="one\n"), done(1)
        )
    (sessions.path / "tapes" / tape.folder.name / "tape.json").write_text("{")
    told: list[str] = []
    assert blame_file(sessions.store, None, file, told.append).ranges
    assert len(told) == 1
