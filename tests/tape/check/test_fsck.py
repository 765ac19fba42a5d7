"""What fsck plans from findings, what it does, and that all of it can be taken back."""

from __future__ import annotations

import os
import subprocess

import pytest

from tape.check.explain import FINDING_TEXTS, explain_finding
from tape.check.finding import Counts, FindingKind
from tape.check.fsck import repair_tape
from tape.check.inspection import inspect_tape
from tape.check.repair_plan import (
    CutJournal,
    CutTail,
    DiscardLeftover,
    NamePhase,
    QuarantineBlob,
    RecordTail,
    SetCurrent,
    WriteInfo,
    WriteJournal,
    describe_action,
    plan_repairs,
    rebuild_journal,
)
from tape.check.verify import verify
from tape.errors import Busy, Damaged
from tape.model.entries import Anchor, Repair
from tape.model.line import encode_line
from tape.store.maintenance.upkeep import detach
from tape.store.refs import Pin
from tests.faults.histories import found, small
from tests.tape import making, reader

MAIN = "phases/0001-main-start/entries.jsonl"
LAST = "phases/0003-main-compaction/entries.jsonl"


@pytest.fixture
def made(tmp_path):
    return small(tmp_path / "store")


@pytest.fixture
def folder(made):
    return made.folder(made.tape)


@pytest.fixture
def tape(made):
    with made.store.open(made.tape) as tape:
        yield tape


@pytest.fixture
def planned(made, tape):
    def actions():
        findings = list(verify(tape, Counts()))
        return plan_repairs(findings, inspect_tape(made.store, tape, findings))

    return actions


@pytest.fixture
def mended(made, tape, planned):
    def undo():
        return [one.undo for one in repair_tape(made.store, tape, planned())]

    return undo


def appended(path, data):
    with path.open("ab") as file:
        file.write(data)


def without(path, *words):
    """Take the lines out of a file that hold one of these words."""
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join(one for one in lines if not any(word in one for word in words)))


def test_a_tape_that_holds_needs_nothing(planned):
    assert planned() == ()


class TestTails:
    def test_of_the_newest_phase_is_cut_as_opening_it_does(self, folder, tape, planned, mended):
        end = (folder / LAST).stat().st_size
        appended(folder / LAST, b'{"id":"')
        assert planned() == (CutTail("0003-main-compaction", "main", end, end + 7),)
        mended()
        last = making.entries(tape)[-1].data
        assert isinstance(last, Repair)
        assert (last.kind, last.quarantine) == ("torn", f"0003-main-compaction.{end}")
        assert (planned(), reader.faults(folder)) == ((), [])

    def test_of_a_phase_its_branch_has_left_is_cut_too(self, folder, tape, planned, mended):
        heads = reader.heads(folder)
        appended(folder / MAIN, b"{")
        mended()
        assert (planned(), reader.faults(folder), reader.heads(folder)) == ((), [], heads)
        last = reader.phases(folder)["0001-main-start"][-1].entry
        assert (last["type"], last["data"]["kind"]) == ("repair", "torn")

    def test_of_a_branch_that_was_rewound_is_cut_too(self, folder, tape, planned, mended):
        with tape.writer() as writer:
            writer.rewind(tape.find_ancestor(tape.head(), 1).head, "undo")
        appended(folder / LAST, b"{")
        head = tape.head()
        mended()
        assert (planned(), reader.faults(folder), tape.head()) == ((), [], head)

    def test_with_descendants_is_left(self, folder, planned):
        for name in (MAIN, "phases/0002-side/entries.jsonl"):
            whole = (folder / name).read_bytes()
            (folder / name).write_bytes(whole[:-1])
            assert planned() == ()
            (folder / name).write_bytes(whole)

    def test_that_is_being_written_is_left(self, folder, tape, planned):
        with tape.writer("main"):
            appended(folder / LAST, b"{")
            assert planned() == ()

    def test_of_whole_damaged_lines_is_cut_and_damage_further_up_is_not(self, folder, planned):
        whole = (folder / LAST).read_bytes()
        (folder / LAST).write_bytes(whole.replace(b'"four"', b'"five"'))
        (action,) = planned()
        assert action.end == whole.rindex(b"\n", 0, -1) + 1
        (folder / LAST).write_bytes(whole.replace(b'"three"', b'"throw"'))
        assert planned() == ()

    def test_of_a_phase_never_committed_is_nobodys(self, folder, planned):
        phase = folder / "phases/0004-main"
        phase.mkdir(0o700)
        (phase / "entries.jsonl").touch(0o600)
        appended(phase / "entries.jsonl", b'{"id":')
        assert (planned(), reader.faults(folder)) == ((), [])


def test_a_tail_that_no_entry_tells_of_is_recorded(made, folder, tape, planned, mended):
    """A kill between the cut of a tail and its repair entry leaves the file in quarantine alone."""
    size = (folder / LAST).stat().st_size
    (folder / "quarantine").mkdir(mode=0o700, exist_ok=True)
    for name in ("0003-main-compaction.9", "0001-main-start.9"):
        (folder / "quarantine" / name).write_bytes(b"torn")
        (folder / "quarantine" / name).chmod(0o600)
    findings = list(verify(tape, Counts()))
    todo = [explain_finding(one, inspect_tape(made.store, tape, findings)).todo for one in findings]
    assert todo == ["nothing", f"record it now: `tape fsck {made.tape[:8]} --repair` does it"]
    assert planned() == (RecordTail("0003-main-compaction", "main", "0003-main-compaction.9"),)
    assert mended() == [f"truncate -s {size} {LAST}"]
    last = making.entries(tape)[-1].data
    assert (last.kind, last.quarantine) == ("torn", "0003-main-compaction.9")
    assert (planned(), reader.faults(folder)) == ((), [])


def test_every_kind_of_finding_is_explained():
    assert set(FINDING_TEXTS) == set(FindingKind)


class TestTheJournal:
    def test_gets_the_line_of_a_phase_again_that_holds_entries(self, folder, planned, mended):
        heads = reader.heads(folder)
        without(folder / "refs.jsonl", b"0003-main-compaction")
        assert planned() == (NamePhase("0003-main-compaction", "main"),)
        mended()
        assert reader.heads(folder) == heads
        (line,) = (one for one in reader.refs(folder) if one.get("phase", "").startswith("0003"))
        assert (line["pin"], line["why"]) == (None, "compaction")
        assert (planned(), reader.faults(folder)) == ((), [])

    def test_does_not_get_a_line_for_what_was_never_committed(self, folder, tape, planned):
        with tape.writer() as writer:
            writer.anchor(Anchor(kind="handoff", summary="x"))
        without(folder / "refs.jsonl", b"0004-main-handoff")
        assert planned() == ()

    def test_is_not_touched_while_the_branch_is_written(self, folder, tape, mended):
        with tape.writer("main"):
            without(folder / "refs.jsonl", b"0003-main-compaction")
            with pytest.raises(Busy, match="main is being written"):
                mended()

    def test_loses_a_torn_line_to_quarantine(self, folder, planned, mended):
        size = (folder / "refs.jsonl").stat().st_size
        appended(folder / "refs.jsonl", b'{"h":"')
        assert planned() == (CutJournal(size, size + 6),)
        mended()
        assert (folder / f"quarantine/refs.{size}").read_bytes() == b'{"h":"'
        assert (planned(), reader.faults(folder)) == ((), [])

    def test_names_a_current_branch_that_is_there(self, folder, tape, planned, mended):
        tape.fork(tape.head(), "gone", switch=True)
        without(folder / "refs.jsonl", b'"branch":"gone"')
        assert planned() == (SetCurrent("main"),)
        mended()
        assert (planned(), tape.refs().current) == ((), "main")

    def test_with_damaged_lines_keeps_the_good_ones_in_order(self, folder, tape, planned, mended):
        path = folder / "refs.jsonl"
        tape.rename("Later")
        broken = path.read_bytes().replace(b'"Small"', b'"Large"')
        path.write_bytes(broken)
        with pytest.raises(Damaged):
            tape.rename("refused")
        assert planned() == (WriteJournal(()),)
        mended()
        good = [line for line in broken.split(b"\n") if b"Large" not in line]
        assert path.read_bytes() == b"\n".join(good)
        assert (folder / "quarantine/refs.damaged").read_bytes() == broken
        tape.rename("Last")

    def test_does_not_bring_back_a_phase_that_would_hide_entries(self, folder, tape, planned):
        with tape.writer() as writer:
            writer.anchor(Anchor(kind="handoff", summary="never committed"))
        without(folder / "refs.jsonl", b"0004-main-handoff")
        making.write(tape, "went on")
        path = folder / "refs.jsonl"
        path.write_bytes(path.read_bytes().replace(b'"Small"', b'"Large"'))
        assert planned() == (WriteJournal(()),)

    def test_put_together_again_puts_lines_where_they_were(self, made, folder, tape):
        whole = (folder / "refs.jsonl").read_bytes()
        tape.fork(tape.find_ancestor(tape.head(), 1).head, "later")
        with tape.writer() as writer:
            writer.rewind(tape.find_ancestor(tape.head(), 2).head, "undo")
        undone = tape.head()
        broken = (folder / "refs.jsonl").read_bytes().replace(b'"why":"compaction"', b'"why":"x"')
        (folder / "refs.jsonl").write_bytes(broken)
        seen = inspect_tape(made.store, tape, ())
        made_anew = rebuild_journal(broken, [seen.phases["0003-main-compaction"]])
        assert len(made_anew.split(b"\n")) == len(broken.split(b"\n"))
        assert made_anew != whole
        (folder / "refs.jsonl").write_bytes(made_anew)
        assert tape.head() == undone
        assert reader.faults(folder) == []


class TestBlobsAndFiles:
    def test_a_changed_blob_is_quarantined(self, folder, tape, planned, mended):
        (blob,) = folder.glob("blobs/*/*")
        changed = b"X" + blob.read_bytes()[1:]
        blob.write_bytes(changed)
        assert planned() == (QuarantineBlob(str(blob.relative_to(folder))),)
        mended()
        assert (folder / "quarantine" / blob.name).read_bytes() == changed
        assert any("is missing" in text for text in making.texts(tape))

    def test_tape_json_follows_the_start_entry(self, made, folder):
        path, whole = folder / "tape.json", (folder / "tape.json").read_bytes()
        path.write_bytes(whole.replace(b'"id":"1', b'"id":"f'))
        with made.store.open_folder(folder.name) as tape:
            findings = list(verify(tape, Counts()))
            actions = plan_repairs(findings, inspect_tape(made.store, tape, findings))
            assert actions == (WriteInfo(),)
            assert [one.undo for one in repair_tape(made.store, tape, actions)]
        assert path.read_bytes() == whole

    def test_what_is_half_made_goes_to_the_trash_when_it_is_old(self, made, folder, tape, planned):
        tapes = made.store.tapes
        (tapes / ".new-abc").mkdir()
        half = next(folder.glob("blobs/*")) / f".{'a' * 64}.0123abcd"
        half.write_bytes(b"half")
        assert planned() == ()
        for path in (tapes / ".new-abc", half):
            os.utime(path, (1, 1))
        names = [".new-abc", f"{folder.name}/{half.relative_to(folder)}"]
        assert planned() == tuple(DiscardLeftover(f"tapes/{name}") for name in sorted(names))
        list(repair_tape(made.store, tape, planned()))
        trash = made.store.path / "trash"
        assert sorted(path.name for path in trash.iterdir()) == sorted([".new-abc", half.name])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        (LAST, lambda data: data + b'{"id":"'),
        (MAIN, lambda data: data + b"{"),
        ("refs.jsonl", lambda data: data + b"{"),
        ("refs.jsonl", lambda data: data.replace(b'"Small"', b'"Large"')),
        ("refs.jsonl", lambda data: data[: data.rindex(b"\n", 0, -1) + 1]),
        ("BLOB", lambda data: b"X" + data[1:]),
    ],
)
def test_each_mending_can_be_taken_back_as_it_says(folder, mended, name, change):
    path = next(folder.glob("blobs/*/*")) if name == "BLOB" else folder / name
    path.write_bytes(change(path.read_bytes()))
    before = {name: data for name, data in reader.files(folder).items() if "quarantine" not in name}
    for undo in reversed(mended()):
        subprocess.run(undo, shell=True, cwd=folder, check=True)
    after = {name: data for name, data in reader.files(folder).items() if "quarantine" not in name}
    assert after == before


def test_a_fork_named_by_an_explanation_leads_around_the_damage(made, folder, tape):
    path = folder / LAST
    path.write_bytes(path.read_bytes().replace(b'"three"', b'"throw"'))
    findings = list(verify(tape, Counts()))
    (means,) = (explain_finding(one, inspect_tape(made.store, tape, findings)) for one in findings)
    entry = means.todo.partition("@")[2].partition(" ")[0]
    tape.fork(making.at(tape, entry), "around")
    making.write(tape, "on", branch="around")
    assert making.texts(tape, "around")[-1] == "on"
    assert [one.depends for one in found(made.store, folder.name)] == [("main",)]


def test_damage_in_a_copied_past_concerns_the_tapes_forked_from_its_copy(tmp_path):
    store = making.store_in(tmp_path)
    with store.create(making.beginning()) as origin:
        making.write(origin, "one", "two")
        with store.create(making.beginning("copy"), origin=(origin, origin.head())) as copy:
            making.write(copy, "three")
            detach(copy)
            with store.create(making.beginning("child"), origin=(copy, copy.head())) as child:
                path = store.tapes / copy.folder.name / "phases/0000-origin/entries.jsonl"
                path.write_bytes(path.read_bytes().replace(b'"one"', b'"eno"'))
                findings = list(verify(copy, Counts()))
                (means,) = (
                    explain_finding(one, inspect_tape(store, copy, findings)) for one in findings
                )
                assert means.tapes == (child.id,)


def test_a_phase_without_its_first_entry_points_to_the_head_of_its_branch(made, folder, tape):
    (folder / LAST).write_bytes(b"")
    findings = [one for one in verify(tape, Counts()) if one.level != "note"]
    seen = inspect_tape(made.store, tape, findings)
    assert (
        f"`tape fork {made.tape[:8]}:main@{{1}} --switch`"
        in explain_finding(findings[0], seen).todo
    )


TOLD = {
    WriteInfo(): "copy tape.json to quarantine and write it again from the start entry",
    WriteJournal(()): "copy refs.jsonl to quarantine and replace it by one with its good lines",
    WriteJournal(("0001-a", "0002-b")): "good lines, and one for each of 0001-a, 0002-b",
    CutJournal(3, 5): "move the last 2 bytes of refs.jsonl to quarantine/refs.3",
    NamePhase("0002-b", "b"): "write the line of 0002-b into refs.jsonl again, which makes it b's",
    SetCurrent("main"): "make main the current branch",
    CutTail("0002-b", "b", 3, 5): "quarantine/0002-b.3, and record this in a repair entry",
    RecordTail("0002-b", "b", "0002-b.3"): "a repair entry to b that describes quarantine/0002-b.3",
    QuarantineBlob("blobs/ab/abc"): "move blobs/ab/abc to quarantine; readers then show",
    DiscardLeftover("tapes/.new-x"): "move tapes/.new-x to the store's trash",
}


@pytest.mark.parametrize("action", TOLD)
def test_every_action_is_described(action):
    assert TOLD[action] in describe_action(action)


def test_a_name_that_may_not_be_a_path_is_not_written_into_the_journal(folder, planned):
    phase = folder / "phases/0009-main"
    phase.mkdir()
    base = {"phase": "0001-main-start", "offset": 0, "entry": "0" * 40}
    data = b'{"phase":"0009-main","branch":"../x","base":%b}' % str(base).replace("'", '"').encode()
    header, first = encode_line("branch", "0" * 40, 1, "2026-11-21T20:31:05.123456Z", data)
    _, second = encode_line("note", header.id, 2, "2026-11-21T20:31:06.123456Z", b'{"text":""}')
    (phase / "entries.jsonl").write_bytes(first + second)
    assert planned() == ()


def test_a_pin_is_kept_as_a_pin_is(folder, tape, mended):
    tape.fork(tape.head(), "pinned")
    pin = tape.refs().branches["pinned"][-1].pin
    path = folder / "refs.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"Small"', b'"Large"'))
    mended()
    assert (
        tape.refs().branches["pinned"][-1].pin == pin == Pin(tape.head().offset, tape.head().entry)
    )
