"""Titles, labels and the trash by keys alone, in Chromium."""

from __future__ import annotations

import pytest

from tests.tape.serve.conftest import record, serving
from tests.tape.serve.test_browser import CHROMIUM, HOSTILE, browser
from tests.tape.serve.test_live_browser import wait_until

__all__ = ["browser"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
]
FOCUSED = "document.activeElement.textContent"


@pytest.fixture
def tab(browser, library):
    tape = record(library, "Before", HOSTILE, "two")
    with serving(library.store.path.parent, "--port", "0", "--write") as server:
        page, faults = browser.new_page(viewport={"width": 1000, "height": 700}), []
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(server.address)
        page.goto(f"{server.base}/session/{tape}")
        page.wait_for_selector("html[data-ready]")
        page.wait_for_selector("#live.idle", state="attached")
        yield page, faults, server
        page.close()


def test_a_session_is_renamed_and_labelled_by_keys(tab):
    """M213"""
    page, faults, _ = tab
    keys = page.keyboard
    keys.press("r")
    page.wait_for_selector("dialog.change")
    keys.type("jk <i>/?")  # keys of the page, which do nothing here
    keys.press("Enter")
    page.wait_for_selector("h1:text-is('jk <i>/?')")
    page.wait_for_selector(".done:text-is('It is renamed to “jk <i>/?”.')")

    keys.press("j")  # to the first prompt
    keys.press("l")
    page.wait_for_selector("dialog.change")
    assert page.locator(".says").inner_text().startswith("user zebra <script>")
    keys.type("Très bien")
    keys.press("Enter")
    page.wait_for_selector("#side b:text-is('tres-bien')")
    keys.press("l")
    page.wait_for_selector("dialog .labels li")
    keys.type("!!")
    keys.press("Enter")
    page.wait_for_selector(".wrong:text('label')")
    assert "not allowed" in page.locator(".wrong").inner_text()
    while page.evaluate("document.activeElement.ariaLabel") != "Remove the label tres-bien":
        keys.press("Tab")
    keys.press("Enter")
    page.wait_for_selector("dialog .labels li", state="detached")
    keys.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    wait_until(page, "!document.querySelector('#side').textContent.includes('tres-bien')")

    assert [text for text in faults if "409" not in text] == []  # the refusal above


def test_a_session_is_removed_by_keys_after_a_question(tab, library):
    page, faults, server = tab
    tape = page.url.rpartition("/")[2]
    keys = page.keyboard
    with library.store.open(tape) as opened, opened.writer():
        keys.press("Delete")
        page.wait_for_selector("dialog.change")
        assert page.evaluate(FOCUSED) == "Cancel"
        assert page.locator(".says").inner_text().startswith("“Before”, 1 branch, ")
        keys.press("Shift+Tab")
        keys.press("Enter")
        page.wait_for_selector(".wrong:text('A program is writing the session')")
        keys.press("Escape")
        page.wait_for_selector("dialog", state="detached")
    keys.press("Delete")
    page.wait_for_selector("dialog.change")
    keys.press("Shift+Tab")
    keys.press("Enter")
    page.wait_for_selector(f".says:text('`tape restore {tape[:8]}` brings it back.')")
    assert page.evaluate(FOCUSED) == "All sessions"
    keys.press("Enter")
    page.wait_for_url(f"{server.base}/")
    assert page.locator(f"a[href='/session/{tape}']").count() == 0
    assert [text for text in faults if "40" not in text] == []  # the refusals above
    library.store.restore(tape)


def test_a_server_that_is_gone_or_has_another_token_is_named(tab):
    page, _, server = tab
    server.process.kill()
    server.process.wait()
    page.keyboard.press("r")
    page.wait_for_selector(".done:text-is('The server does not answer.')")
    with serving(server.home, "--port", str(server.port), "--write", "--new-token"):
        page.keyboard.press("r")
        page.wait_for_selector(".done:text('This page is not let in any more')")
