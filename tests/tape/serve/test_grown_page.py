"""A page to which a session was added entry by entry shows what one shows that is made now."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from tape.model.entries import (
    Anchor,
    Assistant,
    Cost,
    CoveredRange,
    Custom,
    Note,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    User,
)
from tape.store.store import Beginning
from tests.tape.serve.conftest import serving
from tests.tape.serve.test_browser import CHROMIUM, browser

__all__ = ["browser"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
]
SHOWN = """
() => {
  dispatchEvent(new Event("beforeprint"));
  const text = (name) => document.querySelector(name).textContent;
  return [text("#log"), text("#side"), text("#sums"), text("#entries"), text("#period")];
}
"""


def say(text):
    return User((Text(text),))


def answer(*blocks):
    usage, cost = Usage(100, 20, total=120), Cost("USD", 0.25)
    return Assistant(blocks, "p", model="m", usage=usage, cost=cost)


def call(number):
    return ToolCall(f"c{number}", "bash", Raw(json.dumps({"command": f"ls {number}"}).encode()))


def custom(kind):
    return Custom(kind, Raw(b'{"a":1}'))


def write_steps(tape, writer):
    """Write a session; yield after each step that a page may see."""
    put = writer.append
    for number in range(40):  # more than one part of what is drawn together
        first = put(say(f"prompt {number}"))
        put(answer(Text(f"answer {number}")))
    yield
    put(answer(Text("two calls"), call(1), call(2)))
    yield
    put(ToolResult("c2", "bash", (Text("second"),)))
    yield
    put(custom("one"))
    put(ToolResult("c1", "bash", (Text("first"),)))
    put(custom("two"))
    yield
    last = put(custom("three"))
    put(Note("a note"))
    yield
    tape.label("here", first.id)
    yield
    writer.barrier()
    writer.anchor(
        Anchor(kind="compaction", summary="so far", covers=CoveredRange(first.id, last.id, 9))
    )
    yield
    put(say("after the summary"))
    yield
    head = tape.head("main")
    tape.fork(head, "beside")
    yield
    put(answer(Text("on main")))
    yield
    with tape.writer("beside") as other:
        other.append(answer(Text("beside it")))
        other.barrier()
        yield
        put(say("main again"))
        yield
        other.append(say("beside again"))
        other.barrier()
        yield
    tape.rename("A title")
    yield


def test_it_shows_what_a_page_shows_that_is_made_now(browser, library):
    """M213"""
    with (
        library.store.create(Beginning("/src", "test/1")) as tape,
        tape.writer() as writer,
        serving(library.store.path.parent) as server,
    ):
        steps = write_steps(tape, writer)
        next(steps)
        writer.barrier()
        grown, made = browser.new_page(), browser.new_page()
        grown.goto(server.address)
        grown.goto(f"{server.base}/session/{tape.id}")
        grown.wait_for_selector("#live.running")
        made.goto(server.address)
        for number, _ in enumerate(steps):
            writer.barrier()
            made.goto(f"{server.base}/session/{tape.id}")
            made.wait_for_selector("html[data-ready]")
            expected = made.evaluate(SHOWN)
            for _ in range(600):
                if (found := grown.evaluate(SHOWN)) == expected:
                    break
                grown.wait_for_timeout(50)
            assert found == expected, number
        grown.close()
        made.close()
