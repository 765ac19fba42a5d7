"""A session in Chromium while it is written: new entries, where the page stands, and breaks."""

from __future__ import annotations

import pytest
from msgspec import Raw

from tape.model.entries import Assistant, Text, ToolCall, ToolResult, User
from tape.store.store import Beginning
from tests.tape.serve.conftest import Server, serving
from tests.tape.serve.test_browser import CHROMIUM, browser

__all__ = ["browser"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
]
AT_END = "document.documentElement.scrollHeight - innerHeight - scrollY < 2"
SHIFTS = """
() => {
  window.shifts = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.shifts += entry.value;
  }).observe({ type: "layout-shift" });
}
"""


def say(writer, words, answer):
    writer.append(User((Text(words),)))
    writer.append(Assistant((Text(answer),), "p", model="m"))
    writer.barrier()


def wait_until(page, expression):
    """Wait until an expression holds; the policy of the page lets the browser not wait for it."""
    while not page.evaluate(expression):
        page.wait_for_timeout(20)


@pytest.fixture
def server(library):
    with serving(library.store.path.parent) as started:
        yield started


@pytest.fixture
def written(library):
    with library.store.create(Beginning("/src", "test/1")) as tape, tape.writer() as writer:
        for number in range(30):
            say(writer, f"prompt {number}", f"answer {number}\n\n" + "words " * 80)
        yield tape, writer


@pytest.fixture
def page(browser, server, written):
    opened = browser.new_page(viewport={"width": 1000, "height": 700})
    opened.goto(server.address)
    opened.goto(f"{server.base}/session/{written[0].id}")
    opened.wait_for_selector("#live.running")
    yield opened
    opened.close()


def test_at_its_end_a_page_follows_and_elsewhere_it_stays(page, written):
    """M213"""
    _, writer = written
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    wait_until(page, AT_END)
    say(writer, "once more", "here it is")
    page.wait_for_selector("text=here it is")
    wait_until(page, AT_END)
    assert page.locator("text=here it is").is_visible()

    page.evaluate("scrollTo(0, 1500)")
    page.wait_for_timeout(300)
    page.evaluate(SHIFTS)
    place = page.evaluate("scrollY")
    say(writer, "and again", "far below")
    page.wait_for_selector(".newer:visible")
    assert page.locator(".newer").inner_text() == "2 new entries ↓"
    assert page.evaluate("scrollY") == place
    assert page.evaluate("shifts") < 0.01
    assert page.locator(".outline .item").count() == 32
    page.locator(".newer").click()
    page.wait_for_selector("text=far below")
    page.wait_for_selector(".newer", state="hidden")


def test_a_result_joins_its_call(page, written):
    _, writer = written
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    writer.append(Assistant((ToolCall("c1", "bash", Raw(b'{"command":"ls"}')),), "p", model="m"))
    writer.barrier()
    page.wait_for_selector(".call .count:text-is('no result')")
    writer.append(ToolResult("c1", "bash", (Text("a\nb\nc"),)))
    writer.barrier()
    page.wait_for_selector(".call .count:text-is('3 lines')")
    assert page.locator(".call").count() == 1
    writer.close()
    page.wait_for_selector("#live.idle", state="attached")


def test_a_page_continues_when_the_server_was_killed_and_started_again(
    page, server, written, library
):
    tape, writer = written
    said = "Array.from(document.querySelectorAll('.side .outline .text'), (one) => one.textContent)"
    server.process.kill()
    server.process.wait()
    page.wait_for_selector("#live.away")
    say(writer, "while it was away", "nobody saw it")
    again = Server(library.store.path.parent, "--port", str(server.port))
    try:
        page.wait_for_selector("#live.running")
        say(writer, "when it was back", "seen")
        page.wait_for_selector(".outline li:nth-child(32)")
        expected = [f"prompt {number}" for number in range(30)]
        assert page.evaluate(said) == [*expected, "while it was away", "when it was back"]
        tape.rename("A name <b>now</b>")
        page.wait_for_selector("h1:text-is('A name <b>now</b>')")
    finally:
        again.process.kill()
        again.process.communicate()
