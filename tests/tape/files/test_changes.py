"""The fold of file changes against a naive snapshot of a whole folder, and the way back."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from tape.files.changes import KnownVersion, find_recorded_versions, list_file_changes
from tape.files.plan import plan_restore
from tape.files.states import compare_paths, find_states, list_net_changes
from tape.model.entries import (
    Assistant,
    BlobRef,
    ChangedFile,
    Checkpoint,
    FileState,
    Meta,
    Payload,
    SavedFile,
    Start,
    Text,
    ToolCall,
    ToolResult,
    ToolStart,
    User,
)
from tape.model.line import Entry

FOLDER = "/src"


def build_path(payloads: list[Payload]) -> list[Entry]:
    start = Start(tape="", phase="", branch="main", cwd=FOLDER, program="test/1")
    return [
        Entry(f"{n:040}", 1, None, n, "2026-11-21T20:31:05.123456Z", "", payload)
        for n, payload in enumerate([start, *payloads])
    ]


def hash_text(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def version(text: str, mode: str = "100644") -> KnownVersion:
    return KnownVersion(hash_text(text), mode, hash_text(text))


def refer(text: str) -> BlobRef:
    return BlobRef(hash_text(text), len(text))


def record_change(path, before, after, source=None) -> ChangedFile:
    """Return the record of a change; states are pairs of text and mode, or None."""
    op = "modified"
    if source is not None:
        op = "renamed"
    elif before is None or after is None:
        op = "created" if before is None else "deleted"
    elif before[0] == after[0]:
        op = "mode"
    return ChangedFile(
        path,
        op,
        source,
        before=before and hash_text(before[0]),
        after=after and hash_text(after[0]),
        mode=after and after[1],
        before_mode=before and before[1],
        before_blob=before and refer(before[0]),
        after_blob=after and refer(after[0]),
    )


def record_result(call_id: str, *changes: ChangedFile) -> list[Payload]:
    return [
        Assistant((ToolCall(id=call_id, name="bash", args=Raw(b'{"command":"x"}')),)),
        Checkpoint((), call_id=call_id),
        ToolStart(call_id, "bash"),
        ToolResult(call_id, "bash", (Text(text="ok"),), files=changes),
    ]


States = dict[str, tuple[str, str]]
NAMES = st.sampled_from(["a", "b", "sub/c"])
STATE = st.tuples(st.sampled_from(["one", "two", ""]), st.sampled_from(["100644", "100755"]))


@st.composite
def histories(draw, begin=None):
    """Return payloads and the snapshot of the folder after each of them."""
    now: States = dict(draw(st.dictionaries(NAMES, STATE))) if begin is None else dict(begin)
    payloads: list[Payload] = []
    snapshots: list[States] = [dict(now)]
    for number in range(draw(st.integers(0, 8))):
        changes, before = [], dict(now)
        name, other = draw(NAMES), draw(NAMES)
        state = draw(st.none() | STATE)
        if draw(st.booleans()) and name in now and other not in now:
            changes.append(record_change(other, now[name], now[name], source=name))
            now[other] = now.pop(name)
        elif state != now.get(name):
            changes.append(record_change(name, now.get(name), state))
            now.pop(name, None)
            if state is not None:
                now[name] = state
        made = [User((Text(text="do"),)), *record_result(f"c_{number}", *changes)]
        payloads += made
        snapshots += [*[before] * (len(made) - 1), dict(now)]
    return payloads, snapshots


def to_versions(states: States) -> dict[str, KnownVersion]:
    return {f"{FOLDER}/{name}": version(*state) for name, state in states.items()}


@given(histories())
def test_states_and_net_changes_agree_with_snapshots(history):
    payloads, snapshots = history
    changes = list_file_changes(build_path(payloads))
    first, last = to_versions(snapshots[0]), to_versions(snapshots[-1])
    states = find_states(changes)
    assert {path: one for path, one in states.items() if one is not None} == {
        path: one for path, one in last.items() if path in states
    }
    assert all(first[path] == last.get(path) for path in first.keys() - states.keys())
    net = list_net_changes(changes)
    assert apply_net(first, net) == last
    assert [one.path for one in net] == sorted(one.path for one in net)
    touched = {path for one in net for path in (one.path, one.source) if path}
    assert touched == {path for path in {*first, *last} if first.get(path) != last.get(path)}


def apply_net(files, net):
    files = dict(files)
    for one in net:
        if one.source is not None:
            assert files.pop(one.source) == one.before
        elif one.before is not None:
            assert files.pop(one.path) == one.before
    for one in net:
        if one.after is not None:
            files[one.path] = one.after
    return files


@given(st.data())
def test_the_difference_of_two_branches_leads_from_one_to_the_other(data):
    shared, snapshots = data.draw(histories())
    sides = [data.draw(histories(begin=snapshots[-1])) for _ in range(2)]
    one, other = (list_file_changes(build_path(shared + side)) for side, _ in sides)
    a, b = (to_versions(after[-1]) for _, after in sides)
    assert apply_net(a, compare_paths(one, other)) == b
    assert compare_paths(one, one) == []


@given(st.data())
def test_undoing_leads_back_and_keeps_what_people_changed(data):
    payloads, snapshots = data.draw(histories())
    at = data.draw(st.integers(0, len(payloads)))
    since = list_file_changes(build_path(payloads))[
        len(list_file_changes(build_path(payloads[:at]))) :
    ]
    disk = to_versions(snapshots[-1])
    edited = data.draw(st.dictionaries(NAMES, st.none() | st.just(("human", "100600"))))
    for name, state in edited.items():
        disk.pop(f"{FOLDER}/{name}", None)
        if state is not None:
            disk[f"{FOLDER}/{name}"] = version(*state)
    plan = plan_restore(since, disk.get)
    then, target = dict(disk), to_versions(snapshots[at])
    for file in plan.select("restore"):
        then.pop(file.path, None)
        if file.target is not None:
            then[file.path] = file.target
    mine = {f"{FOLDER}/{name}" for name in edited}
    for path in {*then, *target}:
        if path not in mine:
            assert then.get(path) == target.get(path)
    for file in plan.files:
        if file.path in mine and file.status == "restore":
            assert edited[file.path[len(FOLDER) + 1 :]] is None  # the agent left nothing there
        if file.status == "conflict":
            assert file.path in mine
            assert then.get(file.path) == disk.get(file.path)
    named = plan_restore(since, disk.get, [file.path for file in plan.files])
    assert not named.select("conflict")


def test_paths_are_of_the_folder_in_force():
    payloads = [
        *record_result("c_1", record_change("x", None, ("one", "100644"))),
        Meta(cwd="/other"),
        *record_result("c_2", record_change("x", None, ("two", "100644"), None)),
        *record_result("c_3", record_change("/abs/../y", None, ("z", "100644"))),
    ]
    changes = list_file_changes(build_path(payloads))
    assert [one.path for one in changes] == ["/src/x", "/other/x", "/y"]
    assert [one.prompt for one in changes] == [0, 0, 0]


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("write", b'{"path":"a","content":"one"}', ("modified", hash_text("one"))),
        ("edit", b'{"path":"a","oldText":"x","newText":"y"}', ("modified", None)),
        ("read", b'{"path":"a"}', None),
    ],
)
def test_a_call_without_a_record_tells_what_its_arguments_tell(name, args, expected):
    call = Assistant((ToolCall(id="c_1", name=name, args=Raw(args)),))
    done = ToolResult("c_1", name, (Text(text="ok"),))
    changes = list_file_changes(build_path([call, done]))
    assert [one.recorded for one in changes] == [False] * bool(expected)
    if expected:
        assert (changes[0].op, changes[0].after and changes[0].after.digest) == expected
    failed = ToolResult("c_1", name, (Text(text="no"),), is_error=True)
    assert list_file_changes(build_path([call, failed])) == []
    recorded = [call, Checkpoint((FileState("a"),), call_id="c_1"), done]
    assert list_file_changes(build_path(recorded)) == []


def test_what_an_unfinished_call_may_have_changed_is_a_conflict():
    saved = SavedFile.from_blob(refer("one"))
    payloads = [
        Assistant((ToolCall(id="c_1", name="bash"),)),
        Checkpoint((FileState("a", saved, "100644"), FileState("b")), call_id="c_1"),
        ToolStart("c_1", "bash"),
    ]
    changes = list_file_changes(build_path(payloads))
    assert [(one.path, one.op) for one in changes] == [("/src/a", "unknown"), ("/src/b", "unknown")]
    disk = {"/src/a": version("half")}
    plan = plan_restore(changes, disk.get)
    assert [(file.path, file.status) for file in plan.files] == [
        ("/src/a", "conflict"),
        ("/src/b", "same"),
    ]
    assert "did not end" in plan.files[0].why
    assert list_file_changes(build_path([*payloads[:2]])) == []  # it never ran


def test_a_restore_counts_and_can_be_completed():
    one, two = SavedFile.from_blob(refer("one")), SavedFile.from_blob(refer("two"))
    done = record_result(
        "c_1",
        record_change("a", ("one", "100644"), ("two", "100644")),
        record_change("b", None, ("two", "100644")),
    )
    restore = Checkpoint(
        (
            FileState("/src/a", two, "100644", one, "100644"),
            FileState("/src/b", two, "100644", None),
        ),
        why="restore",
    )
    changes = list_file_changes(build_path([*done, restore]))
    assert list_net_changes(changes) == []
    half = {"/src/a": version("one"), "/src/b": version("two")}
    plan = plan_restore(changes, half.get)
    assert [(file.path, file.status) for file in plan.files] == [
        ("/src/a", "same"),
        ("/src/b", "restore"),
    ]


def test_bytes_that_were_not_stored_are_lost_and_a_mode_needs_none():
    gone = ChangedFile("a", "deleted", before=hash_text("big"), why="it is too large")
    mode = ChangedFile(
        "b",
        "mode",
        before=hash_text("x"),
        after=hash_text("x"),
        mode="100755",
        before_mode="100644",
    )
    changes = list_file_changes(build_path(record_result("c_1", gone, mode)))
    plan = plan_restore(changes, {"/src/b": version("x", "100755")}.get)
    assert [(file.status, file.why) for file in plan.files] == [
        ("lost", "it is too large"),
        ("restore", ""),
    ]


def test_the_newest_record_tells_of_a_file_and_another_folder_ends_that():
    saved = SavedFile.from_blob(refer("one"))
    checkpoint = Checkpoint((FileState("a", saved, "100644"), FileState("b")))
    moved = record_change("c", ("one", "100644"), ("one", "100644"), "a")
    result = ToolResult("c_1", "bash", (Text(""),), files=(moved,))
    restore = Checkpoint((FileState("c", saved, "100644", after=None),), why="restore")
    entries = build_path([checkpoint, result, restore, Meta(cwd="/x")])
    assert find_recorded_versions(entries[:2]) == {"a": version("one"), "b": None}
    told = find_recorded_versions(entries[:3])
    assert told == {"a": None, "b": None, "c": told["c"]}
    assert told["c"].digest == hash_text("one")
    assert find_recorded_versions(entries[:4])["c"] is None
    assert find_recorded_versions(entries) == {}
