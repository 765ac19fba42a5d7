"""Files of no bytes, folders that went, odd texts and huge ones: a code, never a traceback."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tape.errors import Damaged, Overtaken, UsageError
from tape.index.library import open_store
from tests.faults.histories import found, small
from tests.tape import making, reader
from tests.tape.making import BUDGET

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent / "tape"
MEGABYTES = 64 if BUDGET == 1 else 1024
HUGE = """
import resource, sys
from hashlib import sha256
from pathlib import Path
from tape import Beginning, Text, User, open_store
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
text = "0123456789abcde\\n" * (int(sys.argv[2]) << 16)
store, _ = open_store(Path(sys.argv[1]))
with store.create(Beginning("/src", "test/1")) as tape, tape.writer() as writer:
    writer.append(User((Text(text),)))
    writer.barrier()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(sha256(text.encode()).hexdigest(), (after - before) // 1024)
"""


def command(store, *args, stdin=b""):
    """Run the real command; return its exit code and what it said."""
    done = subprocess.run(
        [BIN, *args, "--store", store], input=stdin, capture_output=True, check=False
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done.returncode, done.stdout, done.stderr.decode()


@pytest.fixture
def made(tmp_path):
    made = small(tmp_path / "store")
    with open_store(made.store.path) as (_, index):
        index.rows(None, 0)
    return made


@pytest.mark.parametrize(
    ("name", "codes", "left"),
    [
        ("phases/0001-main-start/entries.jsonl", {0, 4}, 4),
        ("phases/0003-main-compaction/entries.jsonl", {4}, 4),
        ("refs.jsonl", {3, 4}, 0),
        ("tape.json", {4}, 0),
    ],
)
def test_a_file_of_no_bytes_in_a_tape_is_reported(made, name, codes, left):
    identity = made.tape
    os.truncate(made.folder(identity) / name, 0)
    entry = b'{"type":"note","data":{"text":"x"}}\n'
    assert command(made.store.path, "append", f"{identity}:main", stdin=entry)[0] in codes
    assert command(made.store.path, "cat", identity)[0] in codes
    assert command(made.store.path, "verify", identity)[0] == 4
    code, said, _ = command(made.store.path, "fsck", identity)
    assert code == 4
    assert name.encode() in said
    assert command(made.store.path, "fsck", identity, "--repair", "--yes")[0] == left
    assert command(made.store.path, "verify", identity)[0] == left
    assert command(made.store.path, "append", f"{made.child}:main", stdin=entry)[0] == 0


def test_a_store_json_of_no_bytes_is_reported(made):
    os.truncate(made.store.path / "store.json", 0)
    for verb in ("ls", "verify", "fsck", "cat", "append"):
        code, _, said = command(
            made.store.path, verb, *([made.tape] if verb != "ls" else ["--all"])
        )
        assert (code, "store.json cannot be read" in said) == (4, True), verb


def test_an_index_of_no_bytes_is_rebuilt(made):
    before = command(made.store.path, "ls", "--all", "--json")
    os.truncate(made.store.path / "index.db", 0)
    assert command(made.store.path, "ls", "--all", "--json") == before


def test_a_tape_that_vanished_under_its_writer_is_not_written_in_silence(made):
    with made.store.open(made.tape) as tape, tape.writer() as writer:
        writer.append(making.say("kept as long as the tape"))
        writer.barrier()
        shutil.rmtree(made.folder(made.tape))
        with pytest.raises(Damaged, match=r"refs\.jsonl is missing"):
            tape.fork(tape.head())
        writer.append(making.say("into nothing"))
        with pytest.raises(Overtaken, match="was deleted or replaced"):
            writer.barrier()
        with pytest.raises(UsageError, match="closed"):
            writer.append(making.say("late"))
    assert command(made.store.path, "cat", made.tape)[0] == 3


def test_a_file_that_was_replaced_under_its_writer_is_not_written_in_silence(made):
    (path,) = made.folder(made.child).glob("phases/*/entries.jsonl")
    with made.store.open(made.child) as tape, tape.writer() as writer:
        shutil.copy(path, path.with_suffix(".new"))
        path.with_suffix(".new").replace(path)
        writer.append(making.say("into nothing"))
        with pytest.raises(Overtaken, match="was deleted or replaced"):
            writer.barrier()


@pytest.mark.parametrize(
    "text", ["a\u2028b\u2029c\x85d", "\x00\x01\x1f\x7f", "é\U0001f600\ufeff", "\r\n\t\x0b\x0c"]
)
def test_odd_texts_come_back_as_they_were(made, text):
    line = json.dumps({"type": "note", "data": {"text": text}}, ensure_ascii=False)
    code, said, _ = command(made.store.path, "append", made.tape, stdin=line.encode() + b"\n")
    assert code == 0
    entry = said.decode().strip()
    _, shown, _ = command(made.store.path, "show", f"{made.tape}@{entry}", "--json")
    assert json.loads(shown)["data"] == {"text": text}
    assert shown.count(b"\n") == 1
    assert reader.faults(made.folder(made.tape)) == []


@pytest.mark.parametrize(
    "odd", [rb'"\ud800"', rb'"\udfff\ud800"', b'"\xff"', b'"\xed\xa0\x80"', b"NaN"]
)
def test_invalid_text_is_refused_and_earlier_entries_remain(made, odd):
    line = b'{"type":"note","data":{"text":%b}}\n'
    code, said, told = command(
        made.store.path, "append", made.tape, stdin=line % b'"good"' + line % odd
    )
    assert (code, said.count(b"\n"), told.count("\n")) == (2, 1, 1)
    assert found(made.store, made.folder(made.tape).name) == []
    with made.store.open(made.tape) as tape:
        making.write(tape, "a\ud800b")
        assert making.texts(tape)[-1] == "a\ufffdb"


@pytest.mark.slow
def test_a_huge_text_goes_in_and_comes_back_out(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", HUGE, tmp_path, str(MEGABYTES)], capture_output=True, check=True
    )
    digest, memory = done.stdout.decode().split()
    print(f"\n{MEGABYTES} MB of text, {memory} MB of memory")
    (folder,) = (tmp_path / "tapes").iterdir()
    blob = folder / "blobs" / digest[:2] / digest
    assert blob.stat().st_size == MEGABYTES << 20
    assert (folder / "phases/0001-main-start/entries.jsonl").stat().st_size < 10_000
    assert int(memory) < 9 * MEGABYTES
    assert found(open_store(tmp_path, index=False).store, folder.name) == []
