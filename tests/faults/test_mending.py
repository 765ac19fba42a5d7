"""Any file cut at any byte: after `fsck --repair --yes` the tape verifies, but for what is gone."""

import shutil

import pytest

from tape.cli.group import run_command
from tape.errors import Damaged
from tests.faults.histories import found, restore, small
from tests.faults.test_every_kill import BIN, CALLS, Operation, killed
from tests.tape import making, reader
from tests.tape.making import BUDGET

pytestmark = pytest.mark.slow

STEP = 29 if BUDGET == 1 else 1
"""Files are cut at every so many bytes."""


@pytest.fixture
def made(tmp_path):
    return small(tmp_path / "store")


@pytest.fixture
def cut(made, tmp_path):
    """Cut a file of a tape at many bytes; yield each time how much is left of it."""

    def sizes(identity, name):
        folder, copy = made.folder(identity), tmp_path / "copy"
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        whole = (folder / name).read_bytes()
        for size in {*range(0, len(whole), STEP if len(whole) < 10_000 else 4999 * STEP), 1}:
            restore(folder, copy)
            (folder / name).write_bytes(whole[:size])
            yield whole[:size]
        restore(folder, copy)

    return sizes


@pytest.fixture
def mended(made, capsys):
    """Run fsck --repair --yes and return its exit code."""

    def code(identity):
        ended = run_command(
            ["fsck", identity, "--repair", "--yes", "--store", str(made.store.path)]
        )
        told = capsys.readouterr()
        assert "Traceback" not in told.err, told
        return ended

    return code


def goes_on(made, identity):
    """Append to every branch of a tape, and tell whether it verifies then."""
    with made.store.open(identity) as tape:
        for branch in tape.refs().branches:
            making.write(tape, "after", branch=branch)
            assert making.texts(tape, branch)[-1] == "after"
    folder = made.folder(identity)
    return not found(made.store, folder.name) and not reader.faults(folder)


def quarantine(folder):
    return b"".join(file.read_bytes() for file in sorted(folder.glob("quarantine/*")))


@pytest.mark.parametrize("name", ["0003-main-compaction", "child"])
def test_of_a_phase_nothing_else_needs_loses_the_last_line_at_most(made, cut, mended, name):
    identity = made.child if name == "child" else made.tape
    phase = "0001-main-start" if name == "child" else name
    for left in cut(identity, f"phases/{phase}/entries.jsonl"):
        whole = left[: left.rfind(b"\n") + 1]
        if not whole:
            continue
        assert mended(identity) == 0
        folder = made.folder(identity)
        assert (folder / f"phases/{phase}/entries.jsonl").read_bytes().startswith(whole)
        assert quarantine(folder) == left[len(whole) :]
        assert goes_on(made, identity)


@pytest.mark.parametrize("phase", ["0001-main-start", "0002-side", "0003-main-compaction"])
def test_of_entries_with_descendants_is_explained_and_left_alone(made, cut, mended, phase):
    for left in cut(made.tape, f"phases/{phase}/entries.jsonl"):
        free = phase == "0003-main-compaction"
        if free and b"\n" in left:
            continue  # what nothing stands on is mended
        on_the_child = phase == "0002-side" and left.endswith(b"\n")
        assert mended(made.tape) == (0 if on_the_child else 4)
        folder = made.folder(made.tape)
        assert (folder / f"phases/{phase}/entries.jsonl").read_bytes() == left
        assert not quarantine(folder)


@pytest.mark.parametrize("which", ["tape", "child"])
def test_of_the_journal_is_repaired_with_every_head_in_its_place(made, cut, mended, which):
    identity = getattr(made, which)
    heads = reader.heads(made.folder(identity))
    for left in cut(identity, "refs.jsonl"):
        mended(identity)
        folder = made.folder(identity)
        assert reader.heads(folder) == heads
        assert (folder / "refs.jsonl").read_bytes().startswith(left[: left.rfind(b"\n") + 1])
        assert quarantine(folder) == left[left.rfind(b"\n") + 1 :]
        assert goes_on(made, identity)


@pytest.mark.parametrize("which", ["tape", "child"])
def test_of_tape_json_is_written_again_byte_for_byte(made, cut, mended, which):
    identity = getattr(made, which)
    whole = (made.folder(identity) / "tape.json").read_bytes()
    for left in cut(identity, "tape.json"):
        assert mended(identity) == 0
        folder = made.folder(identity)
        assert (folder / "tape.json").read_bytes().strip() == whole.strip()
        assert quarantine(folder) in (left, b"")  # nothing to mend where only the newline is gone
        assert goes_on(made, identity)


def test_of_a_blob_is_quarantined_and_the_text_can_be_stored_again(made, cut, mended):
    (blob,) = made.folder(made.tape).glob("blobs/*/*")
    whole, name = blob.read_bytes(), str(blob.relative_to(made.folder(made.tape)))
    for left in cut(made.tape, name):
        assert mended(made.tape) == 4
        folder = made.folder(made.tape)
        assert (quarantine(folder), (folder / name).exists()) == (left, False)
        with made.store.open(made.tape) as tape:
            assert any("is missing" in text for text in making.texts(tape))
            making.write(tape, whole.decode())
        assert goes_on(made, made.tape)


@pytest.mark.parametrize("name", ["refs.jsonl", "tape.json"])
def test_a_file_that_is_gone_is_written_again(made, mended, name):
    folder = made.folder(made.tape)
    before = (folder / name).read_bytes()
    (folder / name).unlink()
    mended(made.tape)
    assert goes_on(made, made.tape)
    assert name == "refs.jsonl" or (folder / name).read_bytes() == before


def test_any_line_of_the_journal_damaged_keeps_the_entries_of_every_branch(made, mended):
    folder = made.folder(made.tape)
    path, heads = folder / "refs.jsonl", reader.heads(folder)
    lines = path.read_bytes().split(b"\n")[:-1]
    for at in range(len(lines) - 1):  # the last one would be torn
        damaged = [
            line[:30] + b"?" + line[31:] if k == at else line for k, line in enumerate(lines)
        ]
        path.write_bytes(b"\n".join([*damaged, b""]))
        with (
            made.store.open(made.tape) as tape,
            pytest.raises(Damaged, match="nothing was written"),
        ):
            tape.rename("refused")
        assert mended(made.tape) == 0
        assert reader.heads(folder) == heads
        kept = folder / "quarantine" / ("refs.damaged" + (f".{at + 1}" if at else ""))
        assert kept.read_bytes() == b"\n".join([*damaged, b""])
        good = [line for k, line in enumerate(lines) if k != at]
        assert [line for line in path.read_bytes().split(b"\n") if line in good] == good
    assert goes_on(made, made.tape)


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.slow
@pytest.mark.parametrize("call", [call for call in CALLS if call != "pwrite64"])
def test_mending_that_is_killed_anywhere_can_be_done_again(made, mended, tmp_path, call):
    folder, copy = made.folder(made.tape), tmp_path / "copy"
    heads, journal = reader.heads(folder), (folder / "refs.jsonl").read_bytes()
    broken = journal.replace(b'"Small"', b'"Large"').replace(b"0003-main-c", b"0009-main-c")
    (folder / "refs.jsonl").write_bytes(broken)
    for name in ("0002-side", "0003-main-compaction"):
        with (folder / "phases" / name / "entries.jsonl").open("ab") as file:
            file.write(b"{torn " + name.encode())
    shutil.copytree(folder, copy)
    fsck = Operation((BIN, "fsck", made.tape, "--repair", "--yes"))
    for k in range(1, 100, 1 if BUDGET > 1 else 3):
        restore(folder, copy)
        end = killed(made.store.path, fsck, call, k)
        assert mended(made.tape) == 0
        kept = quarantine(folder)
        assert all(part in kept for part in (broken, b"{torn 0002-side", b"{torn 0003-main"))
        with made.store.open(made.tape) as tape:
            assert making.texts(tape)[-2:] == ["three", "four"]
            assert tape.refs().branches.keys() == heads.keys()
        assert reader.faults(folder) == []
        if end.ended:
            break
    assert end.ended
