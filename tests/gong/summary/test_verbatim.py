import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from gong.summary.verbatim import (
    MAX_FILES,
    SummaryFolders,
    collect_files,
    compute_cut_length,
    quote_requests,
)
from tape.files.work_folder import find_entry_folders
from tape.model.entries import (
    Anchor,
    Assistant,
    ChangedFile,
    Context,
    Meta,
    Start,
    State,
    Summary,
    Text,
    ToolCall,
    ToolResult,
    ToolStart,
    User,
)
from tape.model.line import Entry


def path(*payloads):
    return [
        Entry(f"{n:08x}{'0' * 32}", 1, None, n, "", "", payload)
        for n, payload in enumerate(payloads, 1)
    ]


def asked(*texts):
    return path(*(User((Text(text),)) for text in texts))


@given(st.lists(st.integers(0, 500), min_size=1, max_size=20), st.integers(0, 3000))
def test_the_level_is_the_greatest_that_fits(lengths, room):
    found = compute_cut_length(lengths, room)
    assert sum(min(length, found) for length in lengths) <= room
    if found < max(lengths):
        assert sum(min(length, found + 1) for length in lengths) > room


def test_requests_are_kept_word_for_word_the_earlier_ones_first():
    """M157: the user's own requests, also what was typed while the agent worked."""
    entries = path(
        User((Text("do\n  this "),)),
        Context("user", "steering", (Text("and that"),)),
        Context("user", "follow_up", (Text("then go"),)),
        Context("user", "hook", (Text("not typed"),)),
        User((Text(" "),)),
    )
    found = quote_requests(entries, Summary(requests=("begin",)), 1000)
    assert found == ("begin", "do\n  this", "and that", "then go")
    assert quote_requests(
        [], "## Goal\nx\n## The user's own requests, word for word\n- a\n- b", 9
    ) == (*("a", "b"),)


def test_the_longest_requests_are_cut_first_and_name_their_entry():
    found = quote_requests(asked("short", "x" * 2000, "y" * 400, "last"), None, 1000)
    assert (found[0], found[2], found[3]) == ("short", "y" * 400, "last")
    assert re.fullmatch(r"(x+)… \[(\d+) characters more, entry 00000002\]", found[1])
    assert 800 < sum(map(len, found)) <= 1000


def test_what_is_cut_again_counts_all_that_is_missing():
    first = quote_requests(asked("x" * 2000, "b"), None, 1000)
    again = quote_requests(asked("y" * 300), Summary(requests=first), 500)
    kept, missing = re.fullmatch(
        r"(x+)… \[(\d+) characters more, entry 00000001\]", again[0]
    ).groups()
    assert len(kept) + int(missing) == 2000
    assert quote_requests([], Summary(requests=again), 500) == again


def test_of_too_many_requests_the_first_and_the_newest_stay_and_a_line_counts_the_rest():
    texts = [f"request {n} " + "x" * 100 for n in range(100)]
    found = quote_requests(asked(*texts), None, 2000)
    assert found[0].startswith("request 0 ")
    assert found[-1].startswith("request 99 ")
    left_out = int(re.fullmatch(r"\[(\d+) more requests stood here: .*\]", found[1])[1])
    assert left_out + len(found) - 1 == 100
    again = quote_requests(asked("one more"), Summary(requests=found), 2000)
    more = int(re.match(r"\[(\d+) more", again[1])[1])
    assert more + len(again) - 1 == 101
    assert again[-1] == "one more"


@given(
    st.lists(st.integers(1, 2000).map(lambda n: "x" * n), max_size=30),
    st.lists(st.integers(1, 500), min_size=1, max_size=4),
    st.integers(500, 6000),
)
def test_requests_keep_to_their_room_over_many_summaries(texts, cuts, room):
    found = ()
    for size in cuts:
        found = quote_requests(asked(*texts, "y" * size), Summary(requests=found), room)
        assert sum(map(len, found)) <= room
        assert found[-1].startswith("y" * min(size, 80))


def called(number, name, *, ran=None, is_error=False, **args):
    call = ToolCall(id=number, name=name, args=Raw(json.dumps(args).encode()))
    start = ToolStart(number, name, Raw(json.dumps(ran).encode())) if ran else None
    result = ToolResult(number, name, (Text("ok"),), is_error=is_error)
    return [Assistant((call,)), *filter(None, [start]), result]


PATCH = "*** Begin Patch\n*** Add File: new.py\n+x\n*** Delete File: old.py\n*** End Patch"


def test_files_are_named_once_by_what_calls_did_to_them():
    """M157: file operations are appended; what failed did nothing."""
    entries = path(
        *called("a", "read", path="/w/a.txt"),
        *called("b", "read", path="b.txt"),
        *called("c", "write", path="./b.txt", content="x"),
        *called("d", "edit", path="/etc/c", oldText="x", newText="y"),
        *called("e", "read", path="gone", is_error=True),
        *called("f", "bash", command="ls"),
        *called("g", "read", path="asked", ran={"path": "ran"}),
        *called("h", "apply_patch", patch=PATCH),
        *called("i", "read", path="a.txt"),
        Assistant((ToolCall(id="j", name="read", args=Raw(b'{"path": "never"}')),)),
    )
    assert collect_files(entries, SummaryFolders("/w"), None) == (
        ("ran", "a.txt"),
        ("b.txt", "/etc/c", "new.py", "old.py"),
    )


def test_paths_are_relative_to_the_folder_in_force_at_each_entry():
    record = ChangedFile(path="made.txt", op="renamed", source="old.txt", before=None, after=None)
    entries = path(
        Start("t", "0001-main-start", "main", "/w", "gong"),
        *called("a", "read", path="a.txt"),
        Meta(cwd="/w/sub"),
        *called("b", "read", path="a.txt"),
        *called("c", "write", path="../b.txt", content="x"),
        Meta(cwd="/other"),
        Assistant((ToolCall(id="d", name="bash", args=Raw(b'{"command": "mv"}')),)),
        ToolResult("d", "bash", (Text("ok"),), is_error=True, files=(record,)),
    )
    marks = [entry for entry in entries if isinstance(entry.data, Start | Meta)]
    folders = find_entry_folders(entries[1:], marks)
    assert list(dict.fromkeys(folders.values())) == ["/w", "/w/sub", "/other"]
    anchor = Anchor(kind="compaction", summary="", kept=(), reason="", state=State(cwd="/w/sub"))
    since = [Entry("a" * 40, 1, None, 4, "", "", anchor), marks[-1]]
    assert find_entry_folders(entries[5:], since).items() <= folders.items()
    earlier = Summary(files_read=("/w/r.txt", "/other/s.txt", "… and 3 more"))
    assert collect_files(entries, SummaryFolders("/other", folders), earlier) == (
        ("/w/r.txt", "s.txt", "/w/a.txt", "/w/sub/a.txt", "… and 3 more"),
        ("/w/b.txt", "old.txt", "made.txt"),
    )


def test_files_of_the_earlier_summary_come_first():
    earlier = Summary(files_read=("a", "b"), files_changed=("c",))
    entries = path(*called("a", "write", path="a", content=""), *called("b", "read", path="c"))
    assert collect_files(entries, SummaryFolders("/w"), earlier) == (("b",), ("c", "a"))


@pytest.mark.parametrize("rounds", [1, 3])
def test_of_many_files_the_newest_are_named_and_the_rest_counted(rounds):
    found = ()
    for number in range(rounds):
        names = [f"f{number}_{n}" for n in range(150)]
        entries = path(*(x for n in names for x in called(n, "read", path=n)))
        found, _ = collect_files(entries, SummaryFolders("/w"), Summary(files_read=found))
    assert len(found) == MAX_FILES + 1
    assert found[-2:] == (f"f{rounds - 1}_149", f"… and {rounds * 150 - MAX_FILES} more")
