"""Lines of an earlier version: read as today's, never changed. Version 0 is invented."""

import json
from hashlib import sha256

import msgspec
import pytest

from tape.check.finding import Counts
from tape.check.verify import verify
from tape.clock import format_timestamp
from tape.errors import Damaged, OlderFormat
from tape.model import line as lines
from tape.model.entries import Note, ToolResult
from tape.model.line import (
    Unread,
    Upcast,
    decode_line,
    decode_lines,
    describe_missing_blob,
    read_header,
)
from tape.store.maintenance.upkeep import redact
from tests.tape import making

MAIN = "phases/0001-main-start/entries.jsonl"


def lifted(kind, members):
    """Return the data of version 1: notes said their text as `words`."""
    if kind == "remark":
        if "words" not in members:
            raise ValueError(members)
        members["text"] = members.pop("words")
    return members


@pytest.fixture
def version_0():
    lines.UPCASTS[0] = Upcast({"remark": "note", "result": "tool.result"}, lifted)
    yield
    del lines.UPCASTS[0]


def old_line(parent, kind, data, version=0):
    _, line = lines.encode_line(
        kind, parent.id, parent.n + 1, format_timestamp(making.DAY + 50), data
    )
    body = line[49 : line.index(b',"data":')].replace(b'"v":1', b'"v":%d' % version, 1)
    identity = sha256(body).hexdigest()[:40].encode()
    return b'{"id":"%b",%b,"data":%b}\n' % (identity, body, data)


def add(tape, folder, kind, data, version=0):
    """Append a line of an earlier version to a tape as its own program would have."""
    line = old_line(tape.head().header, kind, data, version)
    with (folder / MAIN).open("ab") as file:
        file.write(line)
    return line[:-1]


@pytest.mark.usefixtures("version_0")
class TestALineOfAnEarlierVersion:
    def test_is_read_as_todays_entry(self, tape, folder):
        line = add(tape, folder, "remark", b'{"words":"hi","more":1.50}')
        header = read_header(line)
        assert (header.type, header.id) == ("note", line[7:47].decode())
        entry = decode_line(line)
        assert (entry.v, entry.type, entry.data) == (0, "note", Note("hi"))
        assert (entry.id, entry.dh) == (header.id, header.dh)
        assert decode_lines(line + b"\n", describe_missing_blob, lambda *_: None) == [entry]
        assert tape.entries(tape.head())[-1] == making.entries(tape)[-1] == entry

    def test_of_a_type_that_is_called_otherwise_today(self, tape, folder):
        data = b'{"call_id":"c_1","name":"bash","content":[{"type":"text","text":"ok"}]}'
        entry = decode_line(add(tape, folder, "result", data))
        assert entry.data == msgspec.json.decode(data, type=ToolResult)

    def test_is_written_behind_in_todays_format_and_never_changes(self, tape, folder):
        add(tape, folder, "remark", b'{"words":"hi"}')
        before = (folder / MAIN).read_bytes()
        making.write(tape, "after")
        after = (folder / MAIN).read_bytes()
        assert after.startswith(before)
        assert [json.loads(line)["v"] for line in after.split(b"\n")[:-1]] == [1, 0, 1]
        assert list(verify(tape, Counts())) == []
        assert making.texts(tape) == ["after"]

    def test_that_was_flipped_is_found(self, tape, folder):
        line = add(tape, folder, "remark", b'{"words":"hi"}')
        data = (folder / MAIN).read_bytes()
        making.write(tape, "after")
        for at in range(len(line)):
            spot = len(data) - len(line) - 1 + at
            whole = bytearray((folder / MAIN).read_bytes())
            whole[spot] ^= 1
            (folder / MAIN).write_bytes(whole)
            assert "damage" in {found.level for found in verify(tape, Counts())}, at
            whole[spot] ^= 1
            (folder / MAIN).write_bytes(whole)

    def test_of_an_unexpected_shape_is_kept_unchanged(self, tape, folder):
        entry = decode_line(add(tape, folder, "remark", b'{"text":7}'))
        assert isinstance(entry.data, Unread)
        assert bytes(entry.data.raw) == b'{"text":7}'

    def test_that_is_redacted_stays_so(self, tape, folder):
        line = add(tape, folder, "remark", b'{"words":"hi"}')
        redact(tape, [line[7:47].decode()], "why")
        entry = making.entries(tape)[1]
        assert (entry.type, entry.data.why) == ("note", "redacted")
        assert list(verify(tape, Counts())) == []

    def test_whose_id_does_not_verify_is_damage(self, tape, folder):
        line = add(tape, folder, "remark", b'{"words":"hi"}')
        with pytest.raises(Damaged):
            decode_line(line.replace(b'"n":1', b'"n":2'))


def test_of_an_obsolete_version_is_refused_and_not_cut(tape, folder):
    line = add(tape, folder, "remark", b'{"words":"hi"}')
    before = (folder / MAIN).read_bytes()
    for read in (
        lambda: decode_line(line),
        lambda: read_header(line),
        tape.writer,
        lambda: list(verify(tape, Counts())),
    ):
        with pytest.raises(OlderFormat, match="format 0, which this program can no longer read"):
            read()
    assert (folder / MAIN).read_bytes() == before


def test_no_version_of_today_needs_lifting():
    assert lines.UPCASTS == {}
