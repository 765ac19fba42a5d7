from hashlib import sha256

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tape.errors import NotFound
from tape.model.entries import BlobRef
from tape.store.blobs import HEAD_CHARACTERS, MAX_INLINE_BYTES, Blobs
from tape.store.disk import Folder

UNITS = ("a", "é", "€", "😀", '"', "\\", "\n", "\x00", "\u2028")


@pytest.fixture
def blobs(tmp_path):
    with Folder.open(tmp_path, durable=False) as folder:
        yield Blobs(folder)


def stored(tmp_path):
    """Return name → bytes of every file under blobs/."""
    found = (file for file in (tmp_path / "blobs").rglob("*") if file.is_file())
    return {str(file.relative_to(tmp_path / "blobs")): file.read_bytes() for file in found}


def reference(text):
    raw = text.encode()
    return {"$blob": sha256(raw).hexdigest(), "bytes": len(raw), "head": text[:2000]}


class TestPayloads:
    def test_are_stored_under_their_hash(self, blobs, tmp_path):
        ref = blobs.put(b"bytes \x00\xff")
        assert ref == BlobRef(sha256(b"bytes \x00\xff").hexdigest(), 8)
        assert stored(tmp_path) == {f"{ref.hash[:2]}/{ref.hash}": b"bytes \x00\xff"}
        assert blobs.read(ref.hash) == b"bytes \x00\xff"

    @pytest.mark.parametrize("damaged", [b"", b"bytez", b"bytes and more", None])
    def test_replace_what_is_damaged_under_their_name(self, blobs, tmp_path, damaged):
        ref = blobs.put(b"bytes")
        path = tmp_path / "blobs" / ref.hash[:2] / ref.hash
        path.unlink()
        if damaged is None:
            path.symlink_to(tmp_path / "elsewhere")
        else:
            path.write_bytes(damaged)
        assert blobs.put(b"bytes") == ref
        assert blobs.read(ref.hash) == b"bytes"
        assert stored(tmp_path) == {f"{ref.hash[:2]}/{ref.hash}": b"bytes"}

    def test_are_stored_once(self, blobs, tmp_path):
        assert blobs.put(b"x") == blobs.put(b"x")
        assert len(stored(tmp_path)) == 1

    def test_may_be_empty(self, blobs):
        assert blobs.read(blobs.put(b"").hash) == b""

    @pytest.mark.parametrize("name", ["../../x", "..", "", "ab", "A" * 64, "0" * 63 + "/"])
    def test_are_not_sought_under_what_is_no_hash(self, blobs, name):
        with pytest.raises(NotFound):
            blobs.read(name)

    def test_that_are_missing_have_a_placeholder(self, blobs):
        ref = BlobRef("ab" * 32, 70_000, "the head")
        assert blobs.text(ref) == "the head\n[70000 bytes in all; blob abababababababab is missing]"

    def test_behind_a_link_are_missing(self, blobs, tmp_path):
        ref = blobs.put(b"x", "x")
        file = tmp_path / "blobs" / ref.hash[:2] / ref.hash
        file.rename(tmp_path / "moved")
        file.symlink_to(tmp_path / "moved")
        assert "is missing" in blobs.text(ref)


class TestLongStrings:
    @pytest.mark.parametrize("unit", UNITS)
    @pytest.mark.parametrize("over", [-1, 0, 1])
    def test_leave_their_entry_over_the_limit_of_utf8_bytes(self, blobs, unit, over):
        size = len(unit.encode())
        text = unit * ((MAX_INLINE_BYTES + over) // size) + "b" * ((MAX_INLINE_BYTES + over) % size)
        data = msgspec.json.encode({"a": text, "b": 1})
        expected = {"a": reference(text) if over > 0 else text, "b": 1}
        assert msgspec.json.decode(blobs.extract_long_strings(data)) == expected

    def test_are_measured_with_their_escapes_decoded(self, blobs):
        data = b'{"a":"%b"}' % (rb"\u0041" * MAX_INLINE_BYTES)
        assert blobs.extract_long_strings(data) == data
        data = b'{"a":"%b"}' % (rb"\u0041" * (MAX_INLINE_BYTES + 1))
        assert msgspec.json.decode(blobs.extract_long_strings(data)) == {
            "a": reference("A" * (MAX_INLINE_BYTES + 1))
        }

    def test_are_never_lifted_out_of_keys(self, blobs, tmp_path):
        data = msgspec.json.encode({"k" * (MAX_INLINE_BYTES + 1): "v"})
        assert blobs.extract_long_strings(data) == data
        assert stored(tmp_path) == {}

    def test_are_found_at_any_depth_and_the_rest_stays_as_it_was(self, blobs):
        long = "x" * (MAX_INLINE_BYTES + 1)
        data = b'{"n":1.50,"l":[{"t":"\\u00e9","x":"%b"},"%b"]}' % (long.encode(), long.encode())
        ref = msgspec.json.encode(reference(long))
        assert blobs.extract_long_strings(data) == b'{"n":1.50,"l":[{"t":"\\u00e9","x":%b},%b]}' % (
            ref,
            ref,
        )

    @pytest.mark.parametrize("escape", [r"\"", "\\\\", r"\n", '\\\\\\"', r"\u0022,"])
    def test_are_found_among_escapes(self, blobs, escape):
        long = escape * (MAX_INLINE_BYTES + 1)
        data = f'{{"{escape}":"{escape}","a":["{long}","{escape}"]}}'.encode()
        ref = msgspec.json.encode(reference(msgspec.json.decode(f'"{long}"'))).decode()
        lifted = f'{{"{escape}":"{escape}","a":[{ref},"{escape}"]}}'
        assert blobs.extract_long_strings(data).decode() == lifted

    def test_begin_with_two_thousand_characters(self, blobs):
        assert HEAD_CHARACTERS == 2000
        lifted = msgspec.json.decode(
            blobs.extract_long_strings(msgspec.json.encode({"a": "😀" * MAX_INLINE_BYTES}))
        )
        assert lifted["a"]["head"] == "😀" * 2000

    @given(
        st.lists(
            st.tuples(
                st.text(max_size=8), st.sampled_from([0, 1, MAX_INLINE_BYTES, MAX_INLINE_BYTES + 1])
            )
        )
    )
    def test_come_back_whole(self, tmp_path_factory, parts):
        with Folder.open(tmp_path_factory.mktemp("tape"), durable=False) as folder:
            blobs = Blobs(folder)
            texts = [unit * (size // max(len(unit), 1)) for unit, size in parts]
            found = msgspec.json.decode(
                blobs.extract_long_strings(msgspec.json.encode({"a": texts}))
            )["a"]
            refs = [msgspec.convert(x, BlobRef) if isinstance(x, dict) else x for x in found]
            assert [blobs.text(x) if isinstance(x, BlobRef) else x for x in refs] == texts
