"""The whole output of a tool that stands on the tape as a blob of its own."""

import pytest
from msgspec import Raw

from tape.check.finding import Counts
from tape.check.verify import verify
from tape.history.replay import replay_path
from tape.model.entries import Text, ToolResult
from tape.model.line import READ_BYTES
from tape.render.entries import render_entry
from tape.store.blobs import HEAD_CHARACTERS
from tape.store.store import Beginning, Store


@pytest.fixture
def tape(tmp_path):
    with Store(tmp_path / "store").create(Beginning(cwd="/", program="test")) as tape:
        yield tape


def recorded(tape, data, details=b'{"a":1}'):
    ref = tape.blobs.put(data, data.decode("utf-8", "replace")[:HEAD_CHARACTERS])
    with tape.writer() as writer:
        writer.append(ToolResult("c1", "bash", (Text("cut"),), full=ref, details=Raw(details)))
    assert replay_path(tape, tape.head()).differences == ()
    assert list(verify(tape, Counts())) == []
    return ref, tape.entries(tape.head())[-1]


@pytest.mark.parametrize("data", [b"short", b"caf\xe9", b"x" * READ_BYTES])
def test_an_entry_that_names_a_blob_reads_as_its_text(tape, data):
    _, entry = recorded(tape, data)
    assert entry.data.full == entry.data.whole == data.decode("utf-8", "replace")


def test_one_too_long_is_not_read_with_its_entry(tape):
    ref, entry = recorded(tape, b"x" * (READ_BYTES + 1))
    assert entry.data.full == ref
    said = f"{'x' * HEAD_CHARACTERS}\n[{READ_BYTES + 1} bytes in all, in the blob {ref.hash}]"
    assert entry.data.whole == said
    assert render_entry(entry)[-1].endswith(f"in the blob {ref.hash}]")
    assert entry.data.content == (Text("cut"),)


def test_details_may_speak_of_blobs_beside_it(tape):
    _, entry = recorded(tape, b"short", b'{"text":"\\"$blob\\""}')
    assert (entry.data.full, bytes(entry.data.details)) == ("short", b'{"text":"\\"$blob\\""}')
