import json
from hashlib import sha256

import msgspec
import pytest
from hypothesis import example, settings
from hypothesis import given as given_values
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from tape import clock
from tape.clock import format_timestamp
from tape.errors import Damaged, InvalidEntry, NewerFormat
from tape.model import line
from tape.model.entries import (
    Assistant,
    BlobRef,
    ChangedFile,
    Checkpoint,
    Custom,
    FileState,
    Image,
    Note,
    Opaque,
    SavedFile,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    User,
)
from tape.model.line import (
    Unread,
    can_decode_lines,
    decode_line,
    decode_lines,
    describe_missing_blob,
    encode_line,
    encode_payload,
    verify_line,
)

TIME = "2026-11-21T20:31:05.123456Z"
PARENT = "ab" * 20


def written(payload, kind=None):
    """Return the line of a payload, without its newline."""
    return given(kind or payload.entry_type, encode_payload(payload))


def given(kind, data):
    """Return the line of an entry with this data, without its newline."""
    return encode_line(kind, PARENT, 7, TIME, data)[1][:-1]


def no_blob(ref):
    raise AssertionError(ref)


def signed(body, data):
    """Return a line whose id is right for `body`, whatever that is."""
    digits = sha256(body).hexdigest()[:40].encode()
    return b'{"id":"' + digits + b'",' + body + b',"data":' + data + b"}"


class TestTheBytesOfALine:
    def test_they_are_the_golden_ones(self):
        data = '{"content":[{"type":"text","text":"Grüße"}]}'.encode()
        dh = sha256(data).hexdigest()[:32]
        vouched = f'"v":1,"parentId":"{PARENT}","n":12,"time":"{TIME}","type":"user","dh":"{dh}"'
        identity = sha256(vouched.encode()).hexdigest()[:40]
        golden = f'{{"id":"{identity}",{vouched},"data":'.encode() + data + b"}\n"
        header, made = encode_line(
            "user", PARENT, 12, TIME, encode_payload(User((Text(text="Grüße"),)))
        )
        assert made == golden
        assert header == line.Header(identity, PARENT, 12, TIME, "user", dh, len(golden) - 46 - 2)
        assert verify_line(made[:-1]) == header

    def test_those_of_a_root_are_what_sha256sum_says(self):
        assert encode_line("note", None, 0, format_timestamp(0), b'{"text":"hi"}')[1] == (
            b'{"id":"6c5208f5d1f68e0242c536573692fbd722c80b16","v":1,"parentId":null,"n":0,'
            b'"time":"1970-01-01T00:00:00.000000Z","type":"note",'
            b'"dh":"e7b995efa755c5ff3b84d2188b58cb4a","data":{"text":"hi"}}\n'
        )

    def test_only_what_must_be_escaped_is(self):
        text = "".join(map(chr, range(0x22))) + "\\/\x7f\x80\u2028\u2029é€😀"
        short = {8: r"\b", 9: r"\t", 10: r"\n", 12: r"\f", 13: r"\r"}
        control = "".join(short.get(code, f"\\u{code:04x}") for code in range(0x20))
        expected = control + " !\\\\/\x7f\x80\u2028\u2029é€😀"
        assert encode_payload(Note(text)).decode() == f'{{"text":"{expected}"}}'

    def test_a_text_with_every_odd_character_stays_one_line_and_comes_back(self):
        text = 'a\u2028b\u2029c\x00d\x85e\n\r\v"\\f'
        made = written(Note(text))
        assert made.count(b"\n") == 0
        assert decode_line(made, no_blob).data == Note(text)

    @pytest.mark.parametrize("kind", ["", "User", "a b", "a\n", "é", "1a", "a" * 65, 'a","x":"'])
    def test_a_type_that_is_no_type_is_refused(self, kind):
        with pytest.raises(InvalidEntry):
            encode_line(kind, None, 0, TIME, b"{}")

    def test_time_goes_to_text_and_back(self):
        for micros in (0, 1, 999_999, 1_795_000_000_123_456):
            assert clock.parse_timestamp(format_timestamp(micros)) == micros
        assert format_timestamp(1_795_000_000_000_000) == "2026-11-18T11:06:40.000000Z"


class TestLoneSurrogates:
    def test_in_a_text_they_become_the_replacement_character(self):
        assert decode_line(written(Note("a\ud800b\udc00c😀")), no_blob).data == Note(
            "a\ufffdb\ufffdc😀"
        )

    def test_beside_a_raw_field_they_do_too(self):
        call = ToolCall(id="c", name="\ud800", args=Raw(b'{"x":1.0}'))
        mended = ToolCall(id="c", name="\ufffd", args=Raw(b'{"x":1.0}'))
        assert decode_line(written(Assistant((call,))), no_blob).data == Assistant((mended,))

    @pytest.mark.parametrize(
        ("text", "kept"),
        [
            (rb"\ud800", rb"\ufffd"),
            (rb"\uDFFFx", rb"\ufffdx"),
            (rb"\ud83d\ude00", rb"\ud83d\ude00"),
            (rb"\ud83d\ud83d\ude00", rb"\ufffd\ud83d\ude00"),
            (rb"\\ud800", rb"\\ud800"),
            (rb"\\\ud800", rb"\\\ufffd"),
            (rb"\ud83dA", rb"\ufffdA"),
        ],
    )
    def test_escaped_in_raw_json_they_do_and_nothing_else_changes(self, text, kept):
        data = encode_payload(Custom("k", Raw(b'{"a":"%b","n":1.50}' % text)))
        assert data == b'{"kind":"k","data":{"a":"%b","n":1.50}}' % kept
        assert isinstance(decode_line(given("custom", data), no_blob).data, Custom)


class TestRawFields:
    def test_blanks_outside_strings_go_and_all_else_stays(self):
        raw = Raw(
            b'{ "b" : [ 1.50e+3 , -0 ],\n\t"a" : " x  y \\u00e9\\/" , "b" : 123456789012345678901 }'
        )
        kept = b'{"b":[1.50e+3,-0],"a":" x  y \\u00e9\\/","b":123456789012345678901}'
        assert encode_payload(Custom("k", raw)) == b'{"kind":"k","data":' + kept + b"}"

    @pytest.mark.parametrize(
        "raw",
        [b"", b"{", b"nul", b"NaN", b"[Infinity]", b"{} {}", b'"\xff"', b"[" * 5000 + b"]" * 5000],
    )
    def test_what_is_not_json_is_refused(self, raw):
        with pytest.raises(InvalidEntry, match="raw field of custom"):
            encode_payload(Custom("k", Raw(raw)))

    @pytest.mark.parametrize(
        "raw",
        [
            b'{"$blob":"' + b"0" * 64 + b'","bytes":1,"head":""}',
            b'[{"a":{"\\u0024blob":1,"$blob":1}}]',
            b'{"type":"image","blob":{"$blob":"x"}}',
        ],
    )
    def test_a_blob_key_is_refused_in_any_place(self, raw):
        with pytest.raises(InvalidEntry, match=r"\$blob"):
            encode_payload(Custom("k", Raw(raw)))
        with pytest.raises(InvalidEntry, match=r"\$blob"):
            encode_payload(Assistant((ToolCall(id="c", name="n", args=Raw(raw)),)))

    def test_the_word_blob_in_a_text_is_only_a_word(self):
        note = Note('{"$blob":"x"} $blob "$blob"')
        assert decode_line(written(note), no_blob).data == note

    def test_a_picture_names_its_blob(self):
        user = User((Image(blob=BlobRef("0" * 64, 3), mime="image/png"),))
        assert decode_line(written(user), no_blob).data == user


class TestReadingWhatOthersWrote:
    def test_an_unknown_type_is_kept_word_for_word(self):
        data = b'{"b":1.50,"a":[]}'
        assert decode_line(given("x.future", data), no_blob) == line.Entry(
            id=line.read_header(given("x.future", data)).id,
            v=1,
            parent_id=PARENT,
            n=7,
            time=TIME,
            dh=sha256(data).hexdigest()[:32],
            data=Unread("x.future", Raw(data), "unknown type"),
        )

    def test_an_unknown_block_is_kept_beside_the_known_ones(self):
        data = b'{"content":[{"type":"hologram","n":1.50},{"type":"text","text":"hi"},7]}'
        assert decode_line(given("user", data), no_blob).data == User(
            (
                Unknown(raw=Raw(b'{"type":"hologram","n":1.50}')),
                Text(text="hi"),
                Unknown(raw=Raw(b"7")),
            )
        )

    @pytest.mark.parametrize(
        ("content", "read"),
        [(b'"hi"', (Text(text="hi"),)), (b"null", ()), (b"[]", ()), (b'""', (Text(text=""),))],
    )
    def test_content_may_be_a_bare_string_or_nothing(self, content, read):
        """J9-4.5"""
        assert decode_line(given("user", b'{"content":%b}' % content), no_blob).data == User(read)

    def test_fields_that_are_missing_or_more_than_we_know_do_no_harm(self):
        data = b'{"future":1,"content":[],"call_id":"c","name":"n"}'
        assert decode_line(given("tool.result", data), no_blob).data == ToolResult("c", "n", ())

    def test_data_of_another_shape_is_kept_raw_with_the_reason(self):
        for data in (b"[1]", b'{"text":1}', b"{}", b'"x"'):
            read = decode_line(given("note", data), no_blob).data
            assert (read.type, bytes(read.raw), read.why[:16]) == ("note", data, "unexpected shape")

    def test_redacted_data_says_so(self):
        whole = written(Note("a secret"))
        hidden = whole.replace(b'{"text":"a secret"}', b"null" + b" " * 15)
        assert verify_line(hidden).id == verify_line(whole).id
        assert line.is_data_redacted(hidden, verify_line(hidden))
        assert decode_line(hidden, no_blob).data.why == "redacted"

    def test_raw_parts_survive_beside_repaired_ones(self):
        wire = b'{"n":1.50,"big":123456789012345678901}'
        data = b'{"content":[{"type":"opaque","raw":%b},{"type":"new"}]}' % wire
        first = decode_line(given("user", data), no_blob).data.content[0]
        assert first == Opaque(raw=Raw(wire))

    @pytest.mark.parametrize(
        "bad",
        [
            b"",
            b"{}",
            b"\x00" * 300,
            written(Note("x"))[:-1],
            written(Note("x")) + b"}",
            written(Note("x")) + written(Note("y")),
            written(Note("x")).replace(b"x", b"\xff"),
            given("note", b'{"text":"\\ud800"}'),
            given("note", b'{"text":' + b"[" * 5000 + b"]" * 5000 + b"}"),
            given("odd", b'{"text":' + b"[" * 5000 + b"]" * 5000 + b"}"),
        ],
    )
    def test_what_is_no_entry_is_damaged_and_nothing_worse(self, bad):
        with pytest.raises(Damaged):
            decode_line(bad, no_blob)

    def test_reading_many_lines_skips_and_tells_the_bad_ones(self):
        one, two = written(Note("one")), written(Note("two"))
        bad = [
            b"junk",
            one + two,
            b"",
            one.replace(b"one", b"\xff\xff\xff"),
            one.replace(b",", b",\n", 1),
        ]
        told = []
        data = b"\n".join([one, *bad, two, b""])
        found = decode_lines(data, no_blob, lambda offset, error: told.append(offset))
        assert [entry.data for entry in found] == [Note("one"), Note("two")]
        starts = [data.index(one + b"\njunk") + len(one) + 1, data.index(one + two)]
        assert told[:2] == starts
        assert len(told) == 5

    @pytest.mark.parametrize("last", [b"", b"odd"])
    def test_reading_many_lines_is_reading_each(self, last):
        many = [written(Note(str(n))) for n in range(5)] + ([given("odd", b"{}")] if last else [])
        data = b"".join(one + b"\n" for one in many)
        assert decode_lines(data, no_blob, no_blob) == [decode_line(one, no_blob) for one in many]


class TestBlobsInData:
    REF = b'{"$blob":"' + b"ab" * 32 + b'","bytes":70000,"head":"x\\"y"}'

    def expand(self, ref):
        assert ref == BlobRef("ab" * 32, 70000, 'x"y')
        return 'the "whole" text'

    @pytest.mark.parametrize(
        "block",
        [
            b'{"type":"tool_call","id":"c","name":"n","args":{"type":"image","blob":%b,"k":1.50}}',
            b'{"type":"opaque","raw":[%b,1.50]}',
        ],
    )
    def test_texts_come_back_inside_raw_fields_too(self, block):
        data = b'{"content":[%b]}'
        expected = data % (block % b'"the \\"whole\\" text"')
        read = decode_line(given("assistant", data % (block % self.REF)), self.expand).data
        assert read == decode_line(given("assistant", expected), no_blob).data

    def test_a_whole_content_may_be_one_blob(self):
        read = decode_line(given("user", b'{"content":%b}' % self.REF), self.expand).data
        assert read == User((Text(text='the "whole" text'),))

    def test_a_picture_keeps_its_reference_beside_a_text_that_was_lifted(self):
        image = b'{"type":"image","blob":%b,"mime":"image/png"}' % self.REF
        data = b'{"content":[%b,{"type":"text","text":%b}]}' % (image, self.REF)
        assert decode_line(given("user", data), self.expand).data.content == (
            Image(blob=BlobRef("ab" * 32, 70000, 'x"y'), mime="image/png"),
            Text(text='the "whole" text'),
        )

    def test_files_of_a_checkpoint_stay_references(self):
        saved = SavedFile.from_blob(BlobRef("ab" * 32, 70000, 'x"y'))
        checkpoint = Checkpoint((FileState("a", saved, "100644"), FileState("b")), call_id="c_1")
        assert decode_line(written(checkpoint), no_blob).data == checkpoint

    def test_a_file_that_is_not_stored_says_why(self):
        large = SavedFile.from_skipped(None, 9_000_000, "too large")
        data = (
            b'{"path":"a","before":{"hash":null,"bytes":9000000,"stored":false,"why":"too large"}}'
        )
        assert msgspec.json.encode(FileState("a", large)) == data
        assert msgspec.json.decode(data, type=FileState).before.digest is None

    @pytest.mark.parametrize(
        "decode", [decode_line, lambda raw: decode_lines(raw, no_blob, no_blob)[0]]
    )
    def test_changed_files_of_a_result_stay_references(self, decode):
        ref = BlobRef("ab" * 32, 12)
        change = ChangedFile("a", "modified", "cd" * 32, ref.hash, mode="100644", after_blob=ref)
        result = ToolResult("c_1", "bash", (Text(text="x"),), files=(change,))
        assert decode(written(result)).data == result
        raw = written(replace(result, details=Raw(b'{"x":1}')))
        assert decode(raw).data.files == (change,)

    def test_a_missing_blob_is_a_placeholder(self):
        read = decode_line(given("note", b'{"text":%b}' % self.REF)).data
        assert read == Note('x"y\n[70000 bytes in all; blob abababababababab is missing]')


class TestVersionsAndDamage:
    def test_a_newer_line_is_refused_if_its_id_verifies(self):
        body = b'"v":2,"parentId":null,"branch":"x"'
        for read in (line.read_header, verify_line):
            with pytest.raises(NewerFormat, match="format 2"):
                read(signed(body, b"{}"))

    def test_a_newer_line_is_refused_by_the_decoder_too(self):
        newer = signed(
            written(Note("x"))[49:].split(b',"data"')[0].replace(b'"v":1', b'"v":2'),
            b'{"text":"x"}',
        )
        with pytest.raises(NewerFormat):
            decode_line(newer, no_blob)
        with pytest.raises(NewerFormat):
            decode_lines(newer + b"\n", no_blob, no_blob)

    def test_a_number_that_only_looks_newer_is_damage(self):
        forged = written(Note("x")).replace(b'"v":1', b'"v":2')
        for read in (line.read_header, verify_line, decode_line):
            with pytest.raises(Damaged):
                read(forged)

    @pytest.mark.parametrize(
        "body",
        [
            b'"v":1,"parentId":null,"n":0,"time":"x","type":"note","dh":"' + b"0" * 32 + b'"',
            b'"v":1, "parentId":null',
            b'"v":1,"n":0,"parentId":null',
        ],
    )
    def test_a_line_of_our_version_with_another_order_is_damaged(self, body):
        with pytest.raises(Damaged, match="format 1"):
            line.read_header(signed(body, b"{}"))

    def test_every_flipped_byte_is_found(self):
        whole = written(Note("some words"))
        for at in range(len(whole)):
            for flip in (1, 0x20, 0x80):
                bad = whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :]
                with pytest.raises((Damaged, NewerFormat)):
                    verify_line(bad)

    def test_every_cut_is_found(self):
        whole = written(Note("some words"))
        for at in range(len(whole)):
            with pytest.raises(Damaged):
                verify_line(whole[:at])


def test_a_line_is_plain_json_with_its_keys_in_order():
    read = json.loads(written(Note("x")))
    assert list(read) == ["id", "v", "parentId", "n", "time", "type", "dh", "data"]
    assert read["data"] == {"text": "x"}


def test_an_entry_just_written_is_the_entry_that_is_read():
    payload = Note("x")
    header, made = encode_line("note", PARENT, 7, TIME, encode_payload(payload))
    assert line.build_entry(header, payload) == decode_line(made[:-1], no_blob)
    assert line.build_entry(header, payload).type == "note"


def test_an_entry_goes_to_json_as_its_line():
    made = written(Note("x"))
    assert msgspec.json.decode(msgspec.json.encode(decode_line(made, no_blob))) == json.loads(made)


_PIECES = (
    *(rb"\ud800", rb"\ud83d\ude00", rb"\u12", rb"\x", b"\\", b"\x01", b"\xff", b"\xed\xa0\x80"),
    *(b'"', b"{", b"}", b"[", b"]", b",", b":", b" ", b"[" * 1200, b'{"a":' * 1200),
    *(b"1e999", b"01", b"-", b"NaN", b"null", b"tru", b"9" * 400, b'"$blob"', b'"type"'),
)
_WHOLE = (
    ("user", b'{"content":[{"type":"text","text":"hi"}]}'),
    ("user", b'{"content":{"$blob":"%b","bytes":2,"head":"a"}}' % (b"a" * 64)),
    ("assistant", b'{"content":[{"type":"tool_call","id":"c","name":"b","args":{"a":"x"}}]}'),
    ("custom", b'{"kind":"k","data":{"a":[1,2.5,"s"]}}'),
    ("x.future", b'{"a":{"$blob":"%b","bytes":2,"head":"a"}}' % (b"a" * 64)),
)


@settings(max_examples=400, deadline=None)
@example(_WHOLE[0], []).via("as it is written")
@given_values(
    st.sampled_from(_WHOLE), st.lists(st.tuples(st.integers(0, 99), st.sampled_from(_PIECES)))
)
def test_lines_that_count_as_readable_can_be_decoded(whole, changes):
    """`can_decode_lines` says so for nothing that `decode_line` refuses."""
    kind, data = whole
    for at, piece in changes:
        data = data[:at] + piece + data[at:]
    odd = given(kind, data)
    if can_decode_lines(odd + b"\n"):
        assert isinstance(decode_line(odd, describe_missing_blob), line.Entry)
    else:
        assert changes
