"""docs/format.md: its bytes are those of `tape`, and a reader written from it agrees."""

from __future__ import annotations

import re
from base64 import b64decode
from hashlib import sha256
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from msgspec import NODEFAULT
from msgspec.structs import fields
from zstandard import ZstdDecompressor

from tape.check.finding import Counts
from tape.check.verify import verify
from tape.model.entries import (
    PAYLOADS,
    BlobRef,
    Block,
    ChangedFile,
    Cost,
    CoveredRange,
    Failure,
    FileState,
    Git,
    ImportedSession,
    KeptRange,
    MergedBranch,
    OtherEnvironment,
    Place,
    State,
    Summary,
    SummaryAuthor,
    Tokens,
    Unknown,
    Usage,
)
from tape.remote.cursor import Cursor
from tape.remote.objects import ChunkHead, encode_chunk
from tape.remote.pull import pull_tapes
from tape.remote.push import Pusher
from tape.remote.registry import open_remote
from tape.store.maintenance import upkeep
from tape.store.maintenance.archive import pack_tape, unpack_tape
from tape.store.store import Store
from tape.unite.stores import unite_stores
from tests.faults import histories
from tests.faults.test_same_bytes import history
from tests.tape import making
from tests.tape.archive_reader import read_archive, unpack_archive
from tests.tape.format_reader import FormatError, read_tape
from tests.tape.two_readers import compare_readers

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/format.md"
_BLOCK = re.compile(r"^```(\S+) (\S+)\n(.*?\n)```$", re.MULTILINE | re.DOTALL)


def agree(store: Store) -> int:
    """Compare both readers on every tape of a store; return how many there are."""
    for name in store.folders():
        compare_readers(store, name)
    return len(store.folders())


def test_the_objects_of_the_format_are_a_remote_with_that_tape(tmp_path):
    """Another store pulls the tape of the page, byte for byte, and pushes nothing."""
    blocks = _BLOCK.findall(PAGE.read_text("utf-8"))
    files = {
        name.split("/", 2)[2]: text.encode()
        for language, name, text in blocks
        if name.startswith("tapes/")
    }
    journal = files["refs.jsonl"].split(b"\n")
    taken = 0
    (tmp_path / "remote").mkdir()
    with open_remote((tmp_path / "remote").as_uri()) as remote:
        for _, key, text in (block for block in blocks if block[0] == "object"):
            data = text.rstrip("\n").encode()
            if key.startswith("t/"):
                head = msgspec.json.decode(data, type=ChunkHead)
                assert msgspec.json.encode(head) == data
                runs = [files[part.file][part.offset :][: part.length] for part in head.parts]
                count = next(
                    number
                    for number in range(len(journal))
                    if len(b"\n".join(journal[taken : taken + number])) + 1 == head.parts[-1].length
                )
                runs[-1] = b"\n".join([*journal[taken : taken + count], b""])
                taken += count
                data = encode_chunk(head, runs)
            assert remote.create(key, data)
        store = Store(tmp_path / "store")
        store.open_tapes_folder().close()
        with Cursor.open(store.path, "team") as cursor:
            (outcome,) = pull_tapes(store, remote, cursor)
            assert outcome.error is None
            (name,) = store.folders()
            for file, data in files.items():
                assert (store.tapes / name / file).read_bytes() == data
            (pushed,) = Pusher(store, remote, cursor).push(["1" + 31 * "0"])
            assert pushed.chunks == 0


def test_the_examples_of_the_format_are_a_store(tmp_path):
    """Every hash is computed again; the reader and `tape` read the same, and verify is content."""
    for language, name, text in _BLOCK.findall(PAGE.read_text("utf-8")):
        if language == "object":  # of a remote: see below
            continue
        if language == "text":
            digest = None
            for line in text.split("\n")[:-1]:
                word, value = re.split(" +", line, maxsplit=1)
                if word == "sha256":
                    digest = sha256(value.encode()).hexdigest()
                else:
                    assert digest is not None
                    assert digest.startswith(value)
                    assert len(value) == {"id": 40, "dh": 32, "h": 16}[word]
            continue
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b64decode(text) if language == "base64" else text.encode())
    store = Store(tmp_path)
    assert agree(store) == 1
    (name,) = store.folders()
    read = read_tape(store.tapes / name)
    assert (read.current, read.title) == ("main", "Login bug")
    assert set(read.heads) == {"main", "side"}
    with store.open_folder(name) as tape:
        assert [finding for finding in verify(tape, Counts()) if finding.level != "note"] == []


def test_a_reader_written_from_the_format_agrees_on_every_kind_of_tape(tmp_path):
    """Compaction, undo, forks, children, detached and redacted tapes, copies that were united."""
    history(tmp_path / "same")
    assert agree(Store(tmp_path / "same")) == 2
    small = histories.small(tmp_path / "small")
    with small.store.open(small.child) as child:
        upkeep.detach(child)
    assert agree(small.store) == 2
    copy = Store(tmp_path / "copy")
    histories.shutil.copytree(small.store.path, copy.path)
    for store, words in ((small.store, "here"), (copy, "there")):
        with store.open(small.tape) as tape:
            making.write(tape, words)
    unite_stores(small.store, copy)
    assert agree(small.store) == 2


def test_the_archive_in_the_format_is_the_example(tmp_path):
    for _, name, text in _BLOCK.findall(PAGE.read_text("utf-8")):
        if name == "vector":
            continue
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b64decode(text) if name.endswith(".zst") else text.encode())
    (file,) = (tmp_path / "archived/tapes").iterdir()
    (folder,) = (tmp_path / "tapes").iterdir()
    assert file.name == f"{folder.name}.tar.zst"
    page, data = PAGE.read_text("utf-8"), file.read_bytes()
    size = int.from_bytes(data[-12:-8], "little")
    index = ZstdDecompressor().decompress(data[-28 - size : -28])
    assert f"`{index.decode()}`" in page
    ends = [data[-28:-12], data[-12:-8], data[-8:]]
    assert ", ".join(f"`{part.hex()}`" for part in ends) in page
    whole = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    assert read_archive(file) == {name: path.read_bytes() for name, path in whole.items()}
    store = Store(tmp_path / "archived")
    with store.open_folder(folder.name) as tape:
        assert [finding for finding in verify(tape, Counts()) if finding.level != "note"] == []
        unpack_tape(store, tape)
    assert agree(store) == 1


def test_archives_are_read_from_the_format(tmp_path):
    small = histories.small(tmp_path / "small")
    (small.folder(small.tape) / "quarantine").mkdir()
    unpacked = tmp_path / "unpacked"
    for name in small.store.folders():
        folder = small.store.tapes / name
        before = {str(one.relative_to(folder)) for one in folder.rglob("*")}
        with small.store.open_folder(name) as tape:
            pack_tape(small.store, tape)
        unpack_archive(folder.with_name(f"{name}.tar.zst"), unpacked / "tapes" / name)
        now = (unpacked / "tapes" / name).rglob("*")
        assert {str(one.relative_to(unpacked / "tapes" / name)) for one in now} == before
    assert agree(Store(unpacked)) == 2


@pytest.mark.parametrize("at", [30, 200, 420, -20])
def test_the_reader_notices_a_changed_byte(tmp_path, at):
    small = histories.small(tmp_path)
    folder = small.folder(small.tape)
    phase = folder / "phases/0001-main-start/entries.jsonl"
    data = bytearray(phase.read_bytes())
    data[at] ^= 1
    phase.write_bytes(data)
    with pytest.raises((FormatError, ValueError, KeyError)):
        read_tape(folder)


VALUES = {
    "USAGE": Usage, "COST": Cost, "PLACE": Place, "GIT": Git, "SESSION": ImportedSession,
    "SUMMARY": Summary, "RANGE": KeptRange, "COVERED": CoveredRange, "STATE": State,
    "MERGED": MergedBranch, "CHANGE": ChangedFile, "STATE OF A FILE": FileState, "BLOB": BlobRef,
}  # fmt: skip
"""What the second table of types calls a value → its struct."""
INNER = {"tokens": Tokens, "by": SummaryAuthor, "error": Failure, "environment": OtherEnvironment}
"""Fields whose own fields stand in the row of their entry."""


def test_every_field_of_every_type_is_described():
    """So that a recorder can be written: none is missing, and none is described that is not."""
    rows = dict(
        re.findall(r"^\| `?([\w. ]+?)`? \| (.*) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    )
    structs = {**PAYLOADS, **VALUES}
    assert structs.keys() <= rows.keys()
    for name, struct in structs.items():
        told = set(re.findall(r'[`"]([a-z_$][\w.$]*)[`"]', rows[name]))
        known = {field.encode_name for field in fields(struct)}
        assert known - told == set(), name
    for payload, field in (("anchor", "tokens"), ("anchor", "by"), ("assistant", "error")):
        for inner in fields(INNER[field]):
            assert f"`{inner.encode_name}`" in rows[payload]
    for inner in fields(OtherEnvironment):
        assert f"`{inner.encode_name}`" in rows["tool.start"]
    blocks = [kind for kind in get_args(Block) if kind is not Unknown]
    for block in blocks:
        assert f'{{"type":"{block.__struct_config__.tag}"' in rows["BLOCK"]
        for field in fields(block):
            assert re.search(f'[`"]{field.encode_name}[`"]', rows["BLOCK"])
    for entry_type, struct in PAYLOADS.items():
        for field in fields(struct):
            is_optional = field.default is not NODEFAULT
            written = re.search(f"`{field.encode_name}`(\\??)", rows[entry_type])
            assert written is not None
            if entry_type != "meta":
                assert bool(written[1]) == is_optional, (entry_type, field.encode_name)


def test_the_reader_is_short_and_has_nothing_of_tape():
    readers = [ROOT / f"tests/tape/{name}_reader.py" for name in ("format", "archive")]
    text = "".join(path.read_text("utf-8") for path in readers)
    assert readers[0].read_text("utf-8").count("\n") <= 150
    assert not re.search(r"^\s*(from|import) (tape|gong)", text, re.MULTILINE)
