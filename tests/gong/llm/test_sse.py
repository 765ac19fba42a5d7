import base64
import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gong.llm.wires.server_sent_events import EventParser

DECODER = Path(__file__).parents[3].parent / "shared/corpus/sse/decoder.jsonl"


def cut(stream, places):
    bounds = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[start:end] for start, end in pairwise(bounds)]


def data_of(pieces):
    events = EventParser(1_000_000)
    return [data for piece in pieces for data in events.feed(piece)]


@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1), max_size=5
    ),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(0, 300), max_size=6),
)
def test_events_are_the_same_wherever_the_bytes_are_cut(texts, newline, places):
    stream = "".join(f": hi{newline}event: x{newline}data: {text}{newline * 2}" for text in texts)
    found = data_of(cut(b"\xef\xbb\xbf" + stream.encode(), places))
    expected = [text.encode() for text in texts]
    assert (
        found[: len(expected) - (newline == "\r")] == expected[: len(expected) - (newline == "\r")]
    )


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"data:a\n\ndata:  b\n\n", [b"a", b" b"]),
        (b"data\n\n", [b""]),
        (b"event: ping\n\nfoo: bar\n\n: data: x\n\n", []),
        (b"data: a\n\ndata: not ended\n", [b"a"]),
        ("data: a\u2028b\n\n".encode(), ["a\u2028b".encode()]),
    ],
)
def test_lines_mean_what_the_standard_says(stream, events):
    assert data_of([stream]) == events


def recorded():
    lines = DECODER.read_bytes().split(b"\n") if DECODER.is_file() else []
    return [pytest.param(row, id=row["id"]) for row in map(json.loads, filter(None, lines))]


@pytest.mark.corpus
@pytest.mark.parametrize("row", recorded())
def test_recorded_cases_of_other_decoders(row):
    pieces = [base64.b64decode(piece) for piece in row["chunks_b64"]]
    expected = [event["data"].encode() for event in row["events"]]
    assert [data for data in data_of(pieces) if data] == [data for data in expected if data]
