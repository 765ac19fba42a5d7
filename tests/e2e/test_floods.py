"""A host that never stops sending: one error, little memory, and what came before is kept.

Each flood runs against one wire, and with TEST_BUDGET above 1 against all four.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import zlib
from itertools import count

import pytest

from tests.tape.making import BUDGET, crossed
from tests.wires.pieces import WIRES
from tests.wires.raw_server import RawServer, head

pytestmark = pytest.mark.slow

MIB = 1_048_576
MOST = 200
"""Megabytes that the whole process may take."""
EVENTS, MOST_OF_EVENTS = (1_000_000, MOST) if BUDGET > 1 else (250_000, 80)
"""Letters that may come one by one, and megabytes then: a quarter in a usual run, as a letter takes
as long as a word. gong itself has 40 MB."""
MEASURE = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL)
print("peak", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, file=sys.stderr)
sys.exit(done.returncode)
"""
"""Runs a command from a small process: a child's peak includes what its parent had before."""


def forever(piece, each=65_536):
    block = piece * max(1, each // len(piece))
    while True:
        yield block


def packed(pieces, wbits):
    packer = zlib.compressobj(9, zlib.DEFLATED, wbits)
    for piece in pieces:
        if out := packer.compress(piece):
            yield out


def numbered(wire):
    event = wire.bytes_of(wire.block)
    for number in count(2):
        yield event.replace(b'"NUMBER"', b"%d" % number)


def plain(pieces, **how):
    yield head(**how)
    yield from pieces


def started(wire, pieces, *events):
    yield head()
    yield wire.bytes_of(*wire.begin, *wire.text_start) + wire.piece("Hello.")
    yield wire.bytes_of(*events)
    yield from pieces


def chunked(pieces):
    yield head(transfer_encoding="chunked")
    yield from pieces


FLOODS = {
    "a gzip bomb": (
        lambda wire: plain(packed(forever(b"\0"), 31), content_encoding="gzip"),
        "sent compressed data that unpacks to more than 250 times its size",
    ),
    "a gzip bomb of events": (
        lambda wire: plain(packed(forever(wire.piece("a")), 31), content_encoding="gzip"),
        "sent compressed data that unpacks to more than 250 times its size",
    ),
    "a deflate bomb": (
        lambda wire: plain(packed(forever(b":\n"), 15), content_encoding="deflate"),
        "sent compressed data that unpacks to more than 250 times its size",
    ),
    "a coding nobody asked for": (
        lambda wire: plain(forever(b"x"), content_encoding="br"),
        "sent its answer compressed as 'br', which was not requested",
    ),
    "codings in each other": (
        lambda wire: plain(forever(b"x"), content_encoding="gzip, gzip"),
        "sent its answer compressed as 'gzip, gzip', which was not requested",
    ),
    "a line": (lambda wire: started(wire, forever(b"x")), "sent a line of more than 8 MiB"),
    "an event of many lines": (
        lambda wire: started(wire, forever(b"data: x\n")),
        "sent an event of more than 8 MiB",
    ),
    "an event of many values": (
        lambda wire: started(
            wire, [b'data: {"type":"ping","a":[' + b'{"a":0},' * 900_000 + b"0]}\n\n"]
        ),
        "sent an event with too many values in it",
    ),
    "text": (
        lambda wire: started(wire, forever(wire.piece("word " * 40))),
        "sent more than 4,000,000 characters in one answer",
    ),
    "text beyond the first plane": (
        lambda wire: started(wire, forever(wire.piece("\U0001f642" * 50))),
        "sent more than 4,000,000 characters in one answer",
    ),
    "text letter by letter": (
        lambda wire: started(wire, forever(wire.piece("ä"))),
        f"sent more than {EVENTS:,} events in one answer",
    ),
    "empty pieces": (
        lambda wire: started(wire, forever(wire.piece(""))),
        ("sent more than 1,000,000 events in one answer", "sent 32 MiB with nothing of an answer"),
    ),
    "arguments": (
        lambda wire: started(wire, forever(wire.call_piece("word " * 40)), *wire.call_start),
        ("sent more than 4,000,000 characters", "sent more than 16 MiB of data"),
    ),
    "blocks": (lambda wire: started(wire, numbered(wire)), "began more than 10,000 blocks"),
    "comments": (
        lambda wire: started(wire, forever(b": still there\n\n")),
        "sent 32 MiB with nothing of an answer",
    ),
    "comments before anything": (
        lambda wire: plain(forever(b": still there\n\n")),
        "sent 32 MiB with nothing of an answer",
    ),
    "events that say nothing": (
        lambda wire: started(wire, forever(wire.bytes_of(wire.quiet))),
        ("sent 32 MiB with nothing of an answer", "sent more than 1,000,000 events"),
    ),
    "one JSON instead of a stream": (
        lambda wire: plain((b'{"a":"', *[b"x" * MIB] * 300), content_type="application/json"),
        "sent a line of more than 8 MiB",
    ),
    "an error": (
        lambda wire: plain((b'{"error":{"message":"No."},"a":"', *[b"x" * MIB] * 100), status=400),
        "API error (400): No. (only 256 KiB of its error were read)",
    ),
    "an error that is packed": (
        lambda wire: plain(
            packed([b'{"error":{"message":"No."},"a":"', *[b"x" * MIB] * 3_000], 31),
            status=400,
            content_encoding="gzip",
        ),
        "API error (400): No. (only 256 KiB of its error were read)",
    ),
    "headers": (
        lambda wire: (b"HTTP/1.1 200 OK\r\n", *[b"a: " + b"x" * 8_000 + b"\r\n"] * 40_000),
        "cannot reach",
    ),
    "a header": (lambda wire: (b"HTTP/1.1 200 OK\r\na: ", *[b"x" * MIB] * 300), "cannot reach"),
    "trailers": (
        lambda wire: chunked([b"0\r\n", *[b"a: " + b"x" * 8_000 + b"\r\n"] * 40_000]),
        "broke off its answer",
    ),
    "a chunk's extension": (
        lambda wire: chunked([b"1;a=", *[b"x" * MIB] * 300]),
        "broke off its answer",
    ),
}
RUNS = [
    pytest.param(wire, name, id=f"{name}-{wire.preset}") for name, wire in crossed(FLOODS, WIRES)
]


@pytest.mark.slow
@pytest.mark.parametrize(("wire", "name"), RUNS)
def test_a_flood_ends_with_one_error_in_little_memory(place, wire, name):
    """M149."""
    answer, expected = FLOODS[name]
    letters = name == "text letter by letter"
    config = place.home / ".config/gong/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("loop_detection = false\n")  # it would end a text that repeats itself
    if letters:
        with config.open("a") as file:
            file.write(f"[providers.{wire.preset}]\nsizes = {{ events = {EVENTS} }}\n")
    with RawServer(lambda: answer(wire)) as server:
        argv = [place.bin / "gong", "chat", "-m", f"{wire.preset}/m", "-p", "hi"]
        key = wire.variable.removesuffix("_CHAT")
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, *map(str, argv)],
            cwd=place.folder,
            env={
                **place.env,
                f"{wire.variable}_BASE_URL": server.url,
                f"{key}_API_KEY": "sk-secret-123",
            },
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
    peak = int(done.stderr.rpartition("peak ")[2])
    assert any(
        one in done.stderr for one in ([expected] if isinstance(expected, str) else expected)
    )
    assert "Traceback" not in done.stderr
    assert done.returncode in {1, 75}
    assert peak < (MOST_OF_EVENTS if letters else MOST)
    place.run("tape", "verify")
    entries = place.json("tape", "log", "--json")
    kinds = [entry["type"] for entry in entries[2:]]
    if "started" in answer.__code__.co_names:
        assert kinds == ["assistant", "error"]
        assert entries[2]["data"]["partial"] is True
        text = entries[2]["data"]["content"][0]["text"]
        assert (text if isinstance(text, str) else text["head"]).startswith("Hello.")
    else:
        assert kinds[-1] == "error"


def test_what_is_packed_in_earnest_is_read(place):
    wire = WIRES[2]
    body = gzip.compress(wire.answer("Hello", " there."))
    with RawServer(lambda: plain([body[:10], body[10:]], content_encoding="gzip")) as server:
        done = place.run(
            *("gong", "chat", "-m", f"{wire.preset}/m", "-p", "hi", "--output-format", "json"),
            OPENAI_CHAT_BASE_URL=server.url,
            OPENAI_API_KEY="sk-secret-123",
        )
    assert json.loads(done.stdout)["result"] == "Hello there."
