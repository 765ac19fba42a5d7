"""Everything that does not hold is found and named, and nothing that holds is."""

from __future__ import annotations

import json
import shutil
import tracemalloc
from hashlib import sha256
from itertools import count

import pytest

from tape.check.finding import Counts, FindingKind
from tape.check.scan import LARGE_BYTES
from tape.check.verify import verify
from tape.errors import NewerFormat
from tape.model.entries import Image, Note, Redact, Text, User
from tape.model.line import encode_line, read_header
from tape.store.locks import Lock
from tape.store.refs import Pin
from tape.store.refs import encode_ref_line as encode_ref
from tape.store.store import Beginning, Store

MAIN = "phases/0001-main-start/entries.jsonl"
FORK = "phases/0002-side/entries.jsonl"


def said(text):
    return User((Text(text),))


@pytest.fixture
def store(tmp_path):
    clock, ids = count(1_795_000_000_000_000, 1000), count(1)
    return Store(
        tmp_path / "store",
        clock=lambda: next(clock),
        random=lambda size: f"{next(ids):08x}".ljust(2 * size, "0"),
        durable=False,
    )


@pytest.fixture
def folder(store):
    """A small tape: two branches, a blob, a title and a label."""
    with store.create(Beginning("/src", "test/1", "Small")) as tape:
        with tape.writer() as writer:
            writer.append(said("one"))
            blob = tape.blobs.put(b"a picture")
            writer.append(User((Image(blob=blob, mime="image/png"),)))
        tape.fork(tape.find_ancestor(tape.head(), 1).head, "side")
        with tape.writer("side") as writer:
            writer.append(Note("aside"))
        tape.label("good", tape.head().entry)
        return store.tapes / tape.folder.name


@pytest.fixture
def found(store, folder):
    """Verify the tape as it is now."""

    def findings(name=None):
        with store.open_folder(name or folder.name) as tape:
            return list(verify(tape, Counts()))

    return findings


def told(findings):
    return [(f.level, f.file, f.line) for f in findings]


def messages(findings):
    return [f.message for f in findings]


def test_a_tape_that_holds_has_no_findings(store, folder):
    counts = Counts()
    with store.open_folder(folder.name) as tape:
        assert list(verify(tape, counts)) == []
    assert counts == Counts(entries=5, phases=2, blobs=1)


def test_verify_leaves_no_trace(folder, found):
    def state():
        return {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in folder.rglob("*")}

    before = state()
    found()
    assert state() == before


def files(folder):
    blob = next(p for p in folder.rglob("blobs/*/*"))
    return [MAIN, FORK, "refs.jsonl", str(blob.relative_to(folder))]


@pytest.mark.slow
@pytest.mark.parametrize("which", range(4))
def test_every_flipped_byte_is_found_and_named(folder, found, which):
    name = files(folder)[which]
    path = folder / name
    whole = path.read_bytes()
    for at in range(len(whole)):
        flipped = bytearray(whole)
        flipped[at] ^= at * 37 % 255 + 1
        path.write_bytes(flipped)
        bad = [f for f in found() if f.file == name and f.level != "note"]
        assert bad, f"byte {at} of {name}"
        if not name.startswith("blobs"):
            line = whole.count(b"\n", 0, at) + 1
            assert line in [f.line for f in bad], f"byte {at} of {name}: {bad}"
    path.write_bytes(whole)
    assert found() == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [MAIN, FORK, "refs.jsonl"])
def test_a_cut_at_every_byte_is_torn_but_for_the_ends_of_lines(folder, found, name):
    path = folder / name
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        torn = [f for f in found() if f.level == "torn"]
        start = whole.rfind(b"\n", 0, size) + 1
        if size == start:
            assert torn == []
        else:
            line = whole.count(b"\n", 0, size) + 1
            assert told(torn) == [("torn", name, line)]
            assert torn[0].offset == start


def test_the_last_line_cut_off_whole_cannot_be_seen(folder, found):
    path = folder / FORK
    first, _, _ = path.read_bytes().partition(b"\n")
    path.write_bytes(first + b"\n")
    assert found() == []


def test_an_empty_phase_that_a_ref_names_is_damage(folder, found):
    (folder / FORK).write_bytes(b"")
    assert ("damage", FORK, 1) in told(found())


def test_a_tail_that_is_being_written_is_a_note(store, folder, found):
    with (folder / FORK).open("ab") as file:
        file.write(b'{"id":"')
    assert told(found()) == [("torn", FORK, 3)]
    with store.open_folder(folder.name) as tape:
        lock = Lock.take_in(tape.folder, "side")
        assert told(found()) == [("note", FORK, 3)]
        lock.close()
    assert told(found()) == [("torn", FORK, 3)]


def forged(folder, name, at, **changes):
    """Replace a line by one whose hashes hold and whose fields were changed."""
    path = folder / name
    lines = path.read_bytes().split(b"\n")
    head = read_header(lines[at])
    fields = {"kind": head.type, "parent_id": head.parent_id, "n": head.n, "time": head.time}
    data = changes.pop("data", lines[at][head.data : -1])
    _, line = encode_line(**{**fields, **changes}, data=data)
    lines[at] = line[:-1]
    path.write_bytes(b"\n".join(lines))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": 7}, "its depth is 7, not 2"),
        ({"parent_id": "ab" * 20}, "its parent is not the entry before it"),
        ({"time": "2001-01-01T00:00:00.000000Z"}, "its time is not after its parent's"),
        ({"kind": "branch"}, "an entry of type branch stands inside a phase"),
        ({"data": b"[]"}, "its data is not an object"),
        ({"data": b"null"}, "its data was overwritten, but no redact entry names it"),
        (
            {"data": b'{"content":{"$blob":"../x"}}'},
            "it names a blob by a value that is not a hash",
        ),
        ({"data": b'{"content":{"$blob":"' + b"0" * 64 + b'"}}'}, "which is missing"),
    ],
)
def test_a_line_whose_hashes_hold_must_still_fit(folder, found, changes, message):
    forged(folder, MAIN, 2, **changes)
    hits = [f for f in found() if message in f.message]
    assert told(hits) == [("damage", MAIN, 3)]


@pytest.mark.parametrize(
    "time",
    ["2027-02-31T00:00:00.000000Z", "2027-11-22T25:00:00.000000Z", "9999-01-01T00:00:00.000000Z"],
)
def test_a_time_that_no_clock_gave_is_named(folder, found, time):
    last = (folder / MAIN).read_bytes().count(b"\n") - 1
    forged(folder, MAIN, last, time=time)
    assert [(f.kind, f.level, f.file, f.line) for f in found() if f.kind is FindingKind.TIME] == [
        (FindingKind.TIME, "damage", MAIN, last + 1)
    ]


def test_a_time_that_is_none_is_named_in_tape_json_and_in_the_journal(folder, found):
    info = json.loads((folder / "tape.json").read_bytes())
    (folder / "tape.json").write_text(json.dumps(info | {"created": "yesterday"}))
    move = {"title": "x", "why": "title", "time": "2027-02-31T00:00:00.000000Z"}
    with (folder / "refs.jsonl").open("ab") as journal:
        journal.write(encode_ref(move))
    lines = (folder / "refs.jsonl").read_bytes().count(b"\n")
    assert {(f.kind, f.file, f.line) for f in found()} == {
        (FindingKind.TIME, "tape.json", None),
        (FindingKind.TIME, "refs.jsonl", lines),
    }


def test_a_blob_that_is_missing_or_has_another_size_is_named(folder, found):
    blob = next(folder.rglob("blobs/*/*"))
    blob.unlink()
    (finding,) = found()
    assert (finding.file, finding.line, finding.depends) == (MAIN, 3, ("main",))
    assert finding.message == f"it names the blob {blob.name}, which is missing"


def test_what_depends_on_a_line_is_named(folder, found):
    path = folder / MAIN
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], lines[1].replace(b"one", b"two"), *lines[2:]]))
    assert [(f.line, f.depends) for f in found() if f.file == MAIN] == [(2, ("main", "side"))]
    path.write_bytes(b"\n".join([*lines[:2], lines[2].replace(b"png", b"gif"), *lines[3:]]))
    assert [(f.line, f.depends) for f in found() if f.file == MAIN] == [(3, ("main",))]


def test_data_may_be_gone_where_a_later_redact_entry_says_so(store, folder, found):
    path = folder / MAIN
    lines = path.read_bytes().split(b"\n")
    head = read_header(lines[1])
    blank = b"null".ljust(len(lines[1]) - head.data - 1)
    path.write_bytes(b"\n".join([lines[0], lines[1][: head.data] + blank + b"}", *lines[2:]]))
    assert messages(found()) == ["its data was overwritten, but no redact entry names it"]
    with store.open_folder(folder.name) as tape, tape.writer() as writer:
        writer.append(Redact(targets=(head.id,), why="a secret"))
    assert found() == []


def test_a_renamed_phase_is_named(folder, found):
    (folder / "phases/0002-side").rename(folder / "phases/0002-other")
    assert (
        "damage",
        "phases/0002-other/entries.jsonl",
        1,
    ) in told(found())
    assert any("0002-side" in message for message in messages(found()))


def test_tape_json_must_say_what_the_start_entry_says(folder, found):
    path = folder / "tape.json"
    path.write_bytes(path.read_bytes().replace(b'{"format":1,"id":"0', b'{"format":1,"id":"f'))
    assert told(found()) == [("damage", "tape.json", None)]


def test_a_symbolic_link_is_damage_and_is_not_followed(folder, found, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    shutil.move(folder / "phases/0002-side", tmp_path / "elsewhere")
    (folder / "phases/0002-side").symlink_to(tmp_path / "elsewhere/0002-side")
    (folder / "notes.txt").symlink_to("/etc/passwd")
    links = [f.file for f in found() if "symbolic link" in f.message]
    assert links == ["notes.txt", "phases/0002-side"]
    entries = folder / MAIN
    entries.rename(tmp_path / "entries")
    entries.symlink_to(tmp_path / "entries")
    assert ("damage", MAIN, None) in told(found())


@pytest.mark.parametrize("lines", [None, 0, 1])
def test_a_phase_that_was_never_committed_is_a_note(folder, found, lines):
    phase = folder / "phases/0003-side"
    phase.mkdir()
    if lines is not None:
        text = (folder / FORK).read_bytes().split(b"\n")[:lines]
        (phase / "entries.jsonl").write_bytes(b"".join(line + b"\n" for line in text))
    notes = [f for f in found() if f.file == "phases/0003-side"]
    assert [f.level for f in notes] == ["note"]


def test_a_phase_without_a_ref_that_holds_more_than_its_beginning_is_damage(folder, found):
    refs = folder / "refs.jsonl"
    kept = [line for line in refs.read_bytes().split(b"\n")[:-1] if b"0002-side" not in line]
    refs.write_bytes(b"".join(line + b"\n" for line in kept))
    (finding,) = found()
    assert (finding.level, finding.file) == ("damage", FORK)
    assert finding.message.startswith("2 entries that refs.jsonl does not name")


def test_a_later_format_is_refused_not_called_damaged(folder, found):
    path = folder / MAIN
    lines = path.read_bytes().split(b"\n")
    lines[1] = newer(lines[1])
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(NewerFormat, match="0001-main-start, line 2"):
        found()


def newer(line):
    body = line[49:].replace(b'"v":1', b'"v":2', 1)
    identity = sha256(body[: body.index(b',"data":')]).hexdigest()[:40]
    return b'{"id":"%b",%b' % (identity.encode(), body)


def ref(folder, **fields):
    with (folder / "refs.jsonl").open("ab") as file:
        file.write(encode_ref({**fields, "why": "fork", "time": "2026-11-21T20:31:05.123456Z"}))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"current": "gone"}, "the current branch 'gone' does not exist"),
        (
            {"branch": "x", "phase": "0001-main-start", "pin": Pin(0, "ab" * 20)},
            "branch 'x': it has no head",
        ),
        (
            {"branch": "x", "phase": "0001-main-start", "pin": Pin(3, "ab" * 20)},
            "branch 'x': it has no head",
        ),
        ({"branch": "x", "phase": "0009-x", "pin": None}, "branch 'x': it has no head"),
        (
            {"branch": "x", "phase": "0001-main-start", "pin": None},
            "branch 'x': 0001-main-start is the phase of another branch",
        ),
        ({"branch": "x", "phase": "../x", "pin": None}, "branch 'x': it has no head"),
        ({"label": "l", "entry": "ab" * 20}, "a label names the entry abababababab"),
    ],
)
def test_a_ref_must_lead_to_an_entry(folder, found, fields, message):
    ref(folder, **fields)
    assert [f.level for f in found() if message in f.message] == ["damage"], messages(found())


def test_a_wrong_ref_further_up_is_damage_and_at_the_end_torn(folder, found):
    path = folder / "refs.jsonl"
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0].replace(b"start", b"stare"), *lines[1:]]))
    assert ("damage", "refs.jsonl", 1) in told(found())
    path.write_bytes(b"\n".join([*lines[:-1], b'{"h":"0']))
    assert told(found()) == [("torn", "refs.jsonl", len(lines))]


@pytest.fixture
def child(store, folder):
    with (
        store.open_folder(folder.name) as tape,
        store.create(Beginning("/src", "test/1"), origin=(tape, tape.head())) as made,
    ):
        return made.folder.name


def test_a_tape_that_begins_in_another_is_checked_against_it(store, folder, found, child):
    assert found(child) == []
    (folder / MAIN).write_bytes((folder / MAIN).read_bytes().replace(b"png", b"gif"))
    assert found(child) == []  # the parent's damage is the parent's
    forged(folder, MAIN, 2, n=9)
    assert any("holds another entry" in message for message in messages(found(child)))


def test_a_missing_origin_is_named(store, folder, found, child):
    shutil.rmtree(folder)
    (finding,) = found(child)
    assert (finding.level, finding.file, finding.line) == ("damage", MAIN, 1)
    assert finding.message.startswith("its base does not exist: no tape")


def test_memory_does_not_grow_with_the_history(store, folder):
    path = folder / MAIN
    lines = path.read_bytes()
    before = read_header(lines.split(b"\n")[2])
    with path.open("ab") as file:
        parent, data = before.id, json.dumps({"text": "x" * 500}).replace(" ", "").encode()
        for n in range(before.n + 1, before.n + 8000):
            time = f"2027-01-01T00:00:{n // 1000:02}.{n % 1000:03}000Z"
            head, line = encode_line("note", parent, n, time, data)
            parent = head.id
            file.write(line)
    with store.open_folder(folder.name) as tape:
        tracemalloc.start()
        try:
            assert list(verify(tape, Counts())) == []
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert path.stat().st_size > 5_000_000
    assert peak < 1_500_000


@pytest.mark.parametrize("how", ["whole", "damaged"])
def test_a_large_tape_is_the_same_to_several_processes(store, folder, how):
    """Parts of 8 MiB, with odd lines at and off their borders, labels, and a blob in each."""
    with store.open_folder(folder.name) as tape, tape.writer() as writer:
        blob = tape.blobs.put(b"again")
        for at in range(36):
            entry = writer.append(Note("x" * 60_000))
            if at % 9 == 0:
                tape.label(f"l{at}", entry.id)
                writer.append(User((Image(blob=blob, mime="image/png"),)))
    path = folder / MAIN
    big(path, 1_200)
    lines = path.read_bytes().split(b"\n")
    if how == "damaged":
        for at in (3, 40, 41, 700, 701, 1_100, len(lines) - 2):
            lines[at] = lines[at].replace(b"x", b"y", 1)
        lines[900] = lines[900][:100]
        lines[901] += b"!"
    path.write_bytes(b"\n".join(lines))
    assert path.stat().st_size > LARGE_BYTES
    with store.open_folder(folder.name) as tape:
        one, two, told = Counts(), Counts(), list[tuple[int, int]]()
        alone = list(verify(tape, one))
        assert list(verify(tape, two, jobs=2, progress=lambda *done: told.append(done))) == alone
    assert one == two
    assert len(told) > LARGE_BYTES >> 23
    assert told == sorted(set(told))
    assert {total for _, total in told} == {0}
    assert [f.line for f in alone if f.kind is FindingKind.LINE] == (
        [4, 41, 42, 701, 702, 901, 902, 1_101, len(lines) - 1] if how == "damaged" else []
    )


def big(path, count):
    """Append so many long lines that go on from the last one of a phase."""
    head = read_header(path.read_bytes().split(b"\n")[-2])
    with path.open("ab") as file:
        for n in range(count):
            time = f"2027-01-01T00:{n // 60:02}:{n % 60:02}.000000Z"
            data = b'{"text":"%b"}' % (b"x" * 60_000)
            head, line = encode_line("note", head.id, head.n + 1, time, data)
            file.write(line)


def test_a_torn_tail_that_no_entry_tells_of_is_a_note(store, folder, found):
    with (folder / MAIN).open("ab") as file:
        file.write(b"torn")
    with store.open_folder(folder.name) as tape, tape.writer("main") as writer:
        name = writer.torn
    assert found() == []
    shutil.copy(folder / "quarantine" / name, folder / "quarantine" / f"{name}.2")
    (folder / "quarantine/refs.12").write_bytes(b"a journal has no entries")
    (folder / "quarantine/notes.txt").write_bytes(b"of people")
    (finding,) = found()
    assert (finding.level, finding.kind, finding.file) == (
        "note",
        "unrecorded",
        f"quarantine/{name}.2",
    )
    with store.open_folder(folder.name) as tape, tape.writer("main"):
        assert found() == []  # its writer may be about to say so


def test_a_tape_without_its_folders_still_verifies(folder, found):
    """Copies without what writers and damage had made are whole, and checking makes none."""
    for name in ("quarantine", "locks"):
        shutil.rmtree(folder / name, ignore_errors=True)
    assert found() == []
    assert not (folder / "locks").exists()
