"""A session that is being written: what is added comes as events, once, also after a break."""

from __future__ import annotations

import http.client
import json
import re
import time

import pytest
from msgspec import Raw

from tape.model.entries import Assistant, Text, ToolCall, ToolResult, User
from tape.store.maintenance.upkeep import redact
from tape.store.store import Beginning
from tests.tape.serve.conftest import record, serving


class Stream:
    """An open stream of events; each wait ends with the event, or after a minute."""

    def __init__(self, server, path, **headers):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        named["Authorization"] = f"Bearer {server.token}"
        self.connection.request("GET", path, headers=named)
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.read()

    def next(self, name):
        """Return id and data of the next event of a name."""
        fields = {}
        while line := self.response.readline():
            key, _, value = line.decode().rstrip("\n").partition(": ")
            if key:
                fields[key] = value
            elif fields.get("event") == name:
                return fields.get("id"), fields["data"]
            else:
                fields = {}
        raise AssertionError(f"the stream ended without {name}")

    def growth(self):
        """Return the position after the next entries, their ids, and what is said of them."""
        position, data = self.next("growth")
        news = json.loads(data)
        found = [re.match(r'\{"id":"([0-9a-f]{40})"', line) for line in news["lines"]]
        return position, [match[1] for match in found if match], news

    def close(self):
        self.connection.close()
        self.response.close()


@pytest.fixture
def server(library):
    with serving(library.store.path.parent) as started:
        yield started


@pytest.fixture
def follow(server):
    """Open streams, which are closed in the end."""
    opened = []

    def open_stream(path, **headers):
        opened.append(Stream(server, path, **headers))
        return opened[-1]

    yield open_stream
    for stream in opened:
        stream.close()


def position_of(page):
    return json.loads(re.search(r'id="view">(.*?)</script>', page)[1])["position"]


def test_what_is_written_after_the_page_comes_once(server, library, follow):
    """M213"""
    with library.store.create(Beginning("/src", "test/1")) as tape, tape.writer() as writer:
        writer.append(User((Text("the first words"),)))
        writer.barrier()
        page = server.get(f"/session/{tape.id}")
        stream = follow(f"/session/{tape.id}/events?after={position_of(page)}")
        assert stream.next("state")[1] == "running"
        call = ToolCall("c1", "bash", Raw(b'{"command":"ls <b>"}'))
        said = writer.append(Assistant((Text("hello " * 40000), call), "p", model="m")).id
        writer.barrier()
        began = time.monotonic()
        position, ids, news = stream.growth()
        assert time.monotonic() - began < 20  # the figure is in bench: this says that it comes
        assert ids == [said]
        assert said in news["view"]["calls"]
        assert news["lines"][0].startswith('{"blob":"')  # what an entry names comes before it
        result = writer.append(ToolResult("c1", "bash", (Text("a\nb"),))).id
        writer.barrier()
        assert stream.growth()[1] == [result]
        again = follow(f"/session/{tape.id}/events?after=x", Last_Event_ID=position)
        assert again.growth()[1] == [result]
        tape.label("good", said)
        assert again.growth()[2]["view"]["labels"] == {"good": said}
        writer.close()
        while again.next("state")[1] != "idle":
            pass


def test_fifty_sessions_are_followed_together(server, library, follow):
    tapes, streams = [], []
    for number in range(50):
        tape = library.store.create(Beginning("/src", "test/1"))
        writer = tape.writer()
        writer.append(User((Text(f"prompt {number}"),)))
        writer.barrier()
        tapes.append((tape, writer))
        position = position_of(server.get(f"/session/{tape.id}"))
        streams.append(follow(f"/session/{tape.id}/events?after={position}"))
    changes = follow("/running/events")
    while "<span>50 sessions</span>" not in (rows := server.get("/running")):
        changes.next("change")
    assert all(f'href="/session/{tape.id}"' in rows for tape, _ in tapes)
    written = [writer.append(User((Text("more"),))).id for _, writer in tapes]
    for _, writer in tapes:
        writer.barrier()
    assert [stream.growth()[1] for stream in streams] == [[entry] for entry in written]
    for tape, writer in tapes:
        writer.close()
        tape.close()


def test_the_list_of_what_runs_follows(server, library, follow):
    stream = follow("/running/events")
    before, _ = stream.next("change")
    assert "No program writes a session now." in server.get("/running")
    with library.store.create(Beginning("/src", "test/1")) as tape, tape.writer() as writer:
        writer.append(User((Text("</a><script>alert(1)</script>\x1b[31m"),)))
        writer.barrier()
        after, _ = stream.next("change")
        assert after != before
        page = server.get("/running")
        assert f'href="/session/{tape.id}"' in page
        assert "<script>alert" not in page
        assert "\x1b" not in page


def test_a_page_whose_past_was_redacted_is_made_again(server, library, follow):
    with library.store.create(Beginning("/src", "test/1")) as tape:
        with tape.writer() as writer:
            secret = writer.append(User((Text("a secret"),)))
            writer.barrier()
        position = position_of(server.get(f"/session/{tape.id}"))
        redact(tape, [secret.id], "it was secret")
        follow(f"/session/{tape.id}/events?after={position}").next("again")
        follow(f"/session/{tape.id}/events?after=nonsense").next("again")


def test_open_streams_end_with_the_server(server, library, follow):
    tape = record(library, "Ends", "hello")
    stream = follow(f"/session/{tape}/events")
    stream.growth()
    assert server.stop()[0] == 130
    assert b"event: growth" not in stream.response.read()
