"""What import takes, what it refuses and where, and that nothing is made of what it refuses."""

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
from hashlib import sha256

import pytest

from tape.archive.import_ import import_file
from tape.check.finding import Counts
from tape.check.verify import verify
from tape.errors import Damaged, InvalidEntry, NewerFormat, TapeError, UsageError
from tape.model.line import encode_line, read_header
from tape.pages.html import export_page
from tape.store.blobs import MAX_INLINE_BYTES
from tape.store.maintenance.upkeep import redact
from tape.store.refs import encode_ref_line
from tape.store.store import Store
from tests.faults.histories import small
from tests.faults.zygote import ran
from tests.tape import making, reader
from tests.tape.moving import HERE, exported, folder_of, history, imported, names, other, whole


@pytest.fixture
def made(tmp_path):
    return small(tmp_path / "store")


@pytest.fixture
def file(made):
    with made.store.open(made.tape) as tape:
        return exported(tape)


@pytest.fixture
def there(tmp_path):
    return other(tmp_path)


def page_of(tape):
    data: list[bytes] = []
    export_page(tape, data.append, redact=False)
    return b"".join(data)


def sealed(lines):
    """Return a file of these lines, with an end that fits them."""
    body = b"".join(lines)

    def counted(start):
        return sum(line.startswith(start) for line in lines)

    end = {
        "entries": counted(b'{"id"'),
        "phases": counted(b'{"phase"'),
        "blobs": counted(b'{"blob"'),
        "refs": counted(b'{"h"'),
        "sha256": sha256(body).hexdigest(),
    }
    return body + json.dumps({"end": end}, separators=(",", ":")).encode() + b"\n"


def parts(file):
    """Return the lines of a file but for its end, with their newlines."""
    return [line + b"\n" for line in file.split(b"\n")[:-2]]


def nothing_made(store):
    return not store.tapes.exists() or names(store.tapes) == []


def refused(store, data, error=Damaged):
    """Import what must be refused, and return what is said of it."""
    with pytest.raises(error) as caught:
        imported(store, data)
    assert type(caught.value) is error
    assert nothing_made(store)
    return str(caught.value)


def test_a_sealed_file_is_the_file(file):
    assert sealed(parts(file)) == file


def test_importing_again_adds_nothing(made, file, there):
    first, again = imported(there, file), imported(there, file)
    assert (first.added, again.added) == (first.entries, 0)
    assert (first.id, first.path) == (again.id, again.path)
    assert len(names(there.tapes)) == 1
    assert imported(made.store, file).added == 0  # where it comes from


def test_a_tape_that_continued_keeps_its_entries(there, file, made):
    imported(there, file)
    with there.open(made.tape) as tape:
        making.write(tape, "mine")
    before = history(folder_of(there, made.tape))
    assert imported(there, file).added == 0
    assert history(folder_of(there, made.tape)) == before


@pytest.mark.parametrize("step", ["append", "title", "fork"])
@pytest.mark.parametrize("form", ["export", "page"])
def test_what_the_store_lacks_is_added(there, file, made, step, form):
    imported(there, file)
    with made.store.open(made.tape) as tape:
        if step == "append":
            making.write(tape, "more")
        elif step == "title":
            tape.rename("New")
        else:
            tape.fork(tape.head(), "later")
        newer = exported(tape) if form == "export" else page_of(tape)
    done = imported(there, newer)
    assert (done.added, done.kept_ends) == (1 * (step == "append"), ())
    assert done.moves or step == "append"
    with there.open(made.tape) as ours, made.store.open(made.tape) as theirs:
        assert ours.refs().title == theirs.refs().title
        assert making.texts(ours, "main") == making.texts(theirs, "main")
        assert {*theirs.refs().branches} <= {*ours.refs().branches}
        assert [*verify(ours, Counts())] == []
    again = imported(there, newer)
    assert (again.added, again.moves) == (0, 0)
    assert len(names(there.tapes)) == 1


def test_a_copy_that_both_sides_continued_keeps_both_ends(tmp_path, file, made):
    there = Store(tmp_path / "there", durable=False)
    imported(there, file)
    with there.open(made.tape) as tape:
        making.write(tape, "mine")
    with made.store.open(made.tape) as tape:
        making.write(tape, "theirs")
        newer = exported(tape)
    done = imported(there, newer)
    assert [(end.branch, end.other) for end in done.kept_ends] == [("main", "main.other")]
    with there.open(made.tape) as tape:
        ends = {making.texts(tape, branch)[-1] for branch in ("main", "main.other")}
        assert ends == {"mine", "theirs"}
        assert [*verify(tape, Counts())] == []


def test_a_longer_path_is_refused_with_the_command_that_takes_it(there, file, made):
    imported(there, file)
    before = history(folder_of(there, made.tape))
    with made.store.open(made.tape) as tape:
        making.write(tape, "more")
        lines = b"".join(path_lines(tape))
    with pytest.raises(TapeError, match=f"tape export {made.tape[:8]}") as caught:
        imported(there, lines)
    assert caught.value.exit_code == 1
    assert history(folder_of(there, made.tape)) == before


def test_entries_that_were_redacted_meanwhile_count_as_there(there, file, made):
    imported(there, file)
    with there.open(made.tape) as tape:
        redact(tape, [making.entries(tape, "side")[1].id], "why")
    assert imported(there, file).added == 0


def test_a_folder_of_that_name_keeps_it(there, file, made):
    name = made.folder(made.tape).name
    (there.tapes / name / "mine").mkdir(parents=True)
    done = imported(there, file)
    assert done.path.endswith(f"/{name}.2")
    assert names(there.tapes / name) == ["mine"]


def test_a_file_cut_anywhere_is_refused_and_says_so(there, file):
    ends = [at for at in range(len(file)) if file[at : at + 1] == b"\n"][:-1]
    for at in sorted({*ends, *(end + 1 for end in ends), *(end + 20 for end in ends)}):
        said = refused(there, file[:at])
        assert "truncated" in said, (at, said)
    assert refused(there, file[:-3]).startswith(f"line {len(parts(file)) + 1}: ")


def test_every_line_is_checked(there, file):
    """A flipped byte in any line is found, and its line is named, though the end fits."""
    lines = parts(file)
    for at, line in enumerate(lines[1:], 1):
        for where in (len(line) // 2, len(line) - 4):
            bad = bytearray(line)
            bad[where] ^= 1
            said = refused(there, sealed([*lines[:at], bytes(bad), *lines[at + 1 :]]))
            named = (at + 1, at + 1 + line.startswith(b'{"phase"'))
            assert said.startswith(tuple(f"line {one}:" for one in named)), (at, said)
            assert said.endswith("nothing was imported"), said


def test_a_line_that_is_left_out_is_missed(there, file):
    lines, end = parts(file), file[file.rindex(b'{"end"') :]
    for at in range(1, len(lines)):
        refused(there, b"".join([*lines[:at], *lines[at + 1 :], end]))
    blobless = sealed([lines[0], *lines[2:]])
    assert "which is missing" in refused(there, blobless)


def test_lines_that_are_doubled_or_strange_are_refused(there, file):
    lines = parts(file)
    for at, line in enumerate(lines):
        if line.startswith(b'{"h"'):
            break
        refused(there, sealed([*lines[: at + 1], line, *lines[at + 1 :]]))
    assert "line 3: not a line of an export" in refused(
        there, sealed([*lines[:2], b'{"x":1}\n', *lines[2:]])
    )
    assert "after the end line" in refused(there, file + lines[3])
    outside = sealed([lines[0], lines[3], *lines[1:]])
    assert "line 2: this entry is outside of any phase" in refused(there, outside)
    assert "outside of any phase" in refused(there, sealed([*lines, lines[3]]))
    assert "after the journal" in refused(there, sealed([*lines, b'{"phase":"0009-x"}\n']))


@pytest.mark.parametrize(
    "name", ["../../evil", "..", "0001-..", "0001/x", "/etc", "", "x", "0001-a\0"]
)
def test_a_phase_name_that_could_leave_the_tape_makes_no_path(there, file, name):
    lines = parts(file)
    at = next(k for k, line in enumerate(lines) if line.startswith(b'{"phase"'))
    bad = json.dumps({"phase": name}, separators=(",", ":")).encode() + b"\n"
    said = refused(there, sealed([*lines[:at], bad, *lines[at + 1 :]]))
    assert said.startswith(f"line {at + 1}: {name!r} is not the name of a phase")


@pytest.mark.parametrize("name", ["../../evil", "..", ".", ".hidden", "a/b", "/etc", "", "a\0b"])
def test_a_folder_name_that_could_leave_the_store_makes_no_path(there, file, name):
    lines = parts(file)
    header = json.dumps({**json.loads(lines[0]), "folder": name}, separators=(",", ":"))
    assert refused(there, sealed([header.encode() + b"\n", *lines[1:]])).startswith("line 1: ")


@pytest.mark.parametrize("name", ["../x", "refs", "a..b", "A"])
def test_a_branch_name_that_could_leave_the_tape_makes_no_path(there, file, name):
    lines = parts(file)
    bad = encode_ref_line(
        {"branch": name, "phase": "0001-main-start", "pin": None, "why": "x", "time": "t"}
    )
    assert "does not match" in refused(there, sealed([*lines, bad]))


def test_what_is_newer_is_refused_as_such(there, file):
    lines = parts(file)
    for old, new in (
        (b'"export":1', b'"export":2'),
        (b'"tape":{"format":1', b'"tape":{"format":2'),
    ):
        data = sealed([lines[0].replace(old, new), *lines[1:]])
        assert "update it" in refused(there, data, NewerFormat)
    at = next(k for k, line in enumerate(lines) if b'"type":"user"' in line)
    body = lines[at][49:].replace(b'"v":1', b'"v":2', 1)
    head, marker, rest = body.partition(b',"data":')
    newer = b'{"id":"%b",%b%b%b' % (sha256(head).hexdigest()[:40].encode(), head, marker, rest)
    said = refused(there, sealed([*lines[:at], newer, *lines[at + 1 :]]), NewerFormat)
    assert said.startswith(f"line {at + 1}: written in format 2")


@pytest.mark.parametrize("data", [b"", b"\n \n", b"[]\n", b"hello\n", b'{"a":1}\n', b"\x00\xff"])
def test_what_is_no_format_of_ours_is_refused(there, data):
    refused(there, data, UsageError)


def test_a_link_that_lies_in_wait_is_not_followed(tmp_path, there, file, made):
    imported(there, file)
    shutil.rmtree(folder_of(there, made.tape))
    (tmp_path / "elsewhere").mkdir()
    (there.tapes / made.folder(made.tape).name).symlink_to(tmp_path / "elsewhere")
    done = imported(there, file)
    assert done.path.endswith(".2")
    assert names(tmp_path / "elsewhere") == []


# The entries of one path


def path_lines(tape, branch="main"):
    return [line + b"\n" for line in tape.lines(tape.head(branch))]


@pytest.mark.parametrize("is_array", [False, True])
@pytest.mark.parametrize("branch", ["main", "side"])
def test_the_entries_of_a_path_make_its_tape(there, made, branch, is_array):
    with made.store.open(made.tape) as tape:
        lines, said = path_lines(tape, branch), making.entries(tape, branch)
    data = b"".join(lines)
    if is_array:
        data = b"[\n" + b",\n".join(line[:-1] for line in lines) + b"\n]\n"
    done = imported(there, data)
    assert (done.id, done.entries, done.added) == (made.tape, len(said), len(said))
    assert done.lost == (1 if branch == "main" else 0)
    assert imported(there, data).added == imported(made.store, data).added == 0
    with there.open(made.tape) as copy:
        assert [entry.id for entry in making.entries(copy)] == [entry.id for entry in said]
        assert copy.refs().current == branch
    name = os.path.basename(done.path)  # noqa: PTH119
    assert name[10:] == f"-one-{made.tape[:8]}"


def test_the_entries_of_a_forks_path_bring_their_past(there, made):
    with made.store.open(made.child) as child:
        lines = path_lines(child)
        info = reader.files(made.folder(made.child))["tape.json"]
    done = imported(there, b"".join(lines))
    whole(there, done.id)
    with there.open(made.child) as copy:
        assert path_lines(copy) == lines
    assert reader.files(folder_of(there, done.id))["tape.json"] == info


@pytest.mark.parametrize(
    ("chosen", "error", "said"),
    [
        (slice(1, None), UsageError, "do not begin with the start"),
        (slice(0, None, 2), Damaged, "line 2: its parent is not the entry before it"),
    ],
)
def test_entries_that_are_no_whole_path_are_refused(there, made, chosen, error, said):
    with made.store.open(made.tape) as tape:
        lines = path_lines(tape)
    assert said in refused(there, b"".join(lines[chosen]), error)


def test_a_changed_entry_of_a_path_is_named(there, made):
    with made.store.open(made.tape) as tape:
        lines = path_lines(tape)
    lines[1] = lines[1].replace(b"one", b"two")
    assert refused(there, b"".join(lines)).startswith("line 2: its data does not match its hash")
    assert refused(there, b"".join(lines[:1]) + lines[2][:-9]).startswith("line 2: ")


@pytest.mark.parametrize(
    "time",
    ["2027-02-31T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z", "2027-01-01T25:00:00.000000Z"],
)
def test_an_entry_of_a_time_that_never_was_is_refused(there, made, time):
    with made.store.open(made.tape) as tape:
        lines = path_lines(tape)
    last = read_header(lines[-1].rstrip(b"\n"))
    _, odd = encode_line("note", last.id, last.n + 1, time, b'{"text":"x"}')
    said = refused(there, b"".join([*lines, odd]))
    assert said.startswith(f"line {len(lines) + 1}: its time '{time}' is not a valid date")


# Bare lines


def given(*texts):
    return b"".join(
        json.dumps({"type": "user", "data": {"content": [{"type": "text", "text": text}]}}).encode()
        + b"\n"
        for text in texts
    )


def test_bare_lines_are_recorded_in_a_tape_that_is_known_by_them(there):
    data = (
        given("Größe", "x" * (MAX_INLINE_BYTES + 1))
        + b'\n{ "type": "of.tomorrow", "data": {"n": 1.0} }\n'
    )
    done = imported(there, data)
    assert (done.added, done.entries) == (4, 4)
    assert imported(there, data) == type(done)(done.id, done.path, 0, 4, 0)
    assert imported(there, data.replace(b'{ "type"', b'{"type"')).id == done.id
    assert imported(there, given("other")).id != done.id
    whole(there, done.id)
    with there.open(done.id) as tape:
        assert making.texts(tape) == ["Größe", "x" * (MAX_INLINE_BYTES + 1)]
        assert making.entries(tape)[0].data.cwd == HERE.cwd
        assert b'"data":{"n":1.0}' in list(tape.lines(tape.head()))[-1]
    assert [name for name in names(there.tapes) if name.startswith(".")] == []


@pytest.mark.parametrize(
    "bad",
    [
        b'{"type":"start","data":{}}',
        b'{"type":"user"}',
        b"nonsense",
        b'{"type":"a","data":{"$blob":1}}',
    ],
)
def test_a_bare_line_that_is_refused_makes_nothing(there, bad):
    said = refused(there, given("one") + b"\n" + bad + b"\n" + given("two"), InvalidEntry)
    assert said.startswith("line 3: ")


# Killed

IMPORT = """
import sys
from pathlib import Path
from tape.store.store import Beginning, Store
from tape.archive.import_ import import_file
from tape.store.maintenance.upkeep import redact
with open(sys.argv[2], "rb") as source:
    import_file(Store(Path(sys.argv[1])), source, Beginning("/there", "test/2"))
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
@pytest.mark.parametrize("form", ["export", "given"])
@pytest.mark.parametrize(
    "call", ["write", "renameat,rename", "mkdirat,mkdir", "fdatasync", "fsync"]
)
def test_a_killed_import_made_all_or_nothing(tmp_path, made, file, call, form):
    source = tmp_path / "file.jsonl"
    source.write_bytes(file if form == "export" else given("one", "x" * (MAX_INLINE_BYTES + 1)))
    for k in (1, 2, 3, 5, 8, 13, 21, 10_000):
        home = tmp_path / f"killed-{k}"
        trace = ["-f", "-qq", "-o", "/dev/null", f"--trace={call}"]
        trace += [f"--inject={call}:signal=KILL:when={k}"]
        command = [sys.executable, "-c", IMPORT, str(home), str(source)]
        _, code = ran(trace, command, {})
        assert code in (0, -signal.SIGKILL)
        store = Store(home, durable=False)
        for name in store.folders():
            assert reader.faults(store.tapes / name) == []
        before = store.folders()
        again = imported(store, source.read_bytes())
        assert bool(again.added) == (before == [])
        whole(store, again.id)
        assert len(store.folders()) == 1
        if code == 0:
            return
        shutil.rmtree(home)
    raise AssertionError(call)


def test_two_concurrent_imports_make_one_tape(tmp_path, file, made):
    source, home = tmp_path / "file.jsonl", tmp_path / "both"
    source.write_bytes(file)
    command = [sys.executable, "-c", IMPORT, str(home), str(source)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(3)]
    ended = [(one.communicate()[1], one.returncode) for one in running]
    assert all(code == 0 or b"Busy" in said for said, code in ended), ended
    store = Store(home, durable=False)
    assert [store.read_tape_id(name) for name in store.folders()] == [made.tape]
    whole(store, made.tape)


def test_a_blob_that_is_not_what_its_name_says_is_refused(there, file):
    lines = parts(file)
    blob = json.loads(lines[1])
    for data in (base64.b64encode(b"else").decode(), "%%%"):
        bad = json.dumps({**blob, "data": data}, separators=(",", ":")).encode() + b"\n"
        assert refused(there, sealed([lines[0], bad, *lines[2:]])).startswith("line 2: ")


def test_a_source_is_read_as_it_comes_from_a_file(tmp_path, there, file):
    path = tmp_path / "file.jsonl"
    path.write_bytes(file)
    with path.open("rb") as source:
        assert import_file(there, source, HERE).added == 10
