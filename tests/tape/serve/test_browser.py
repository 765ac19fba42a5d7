"""The pages in Chromium: at each width nothing is refused, asked elsewhere, or too wide."""

from __future__ import annotations

import json
import shutil

import pytest
from msgspec import Raw

from tape.formats.sessions.outline import format_uuid
from tape.model.entries import Assistant, Text, ToolCall, ToolResult, User
from tape.store.store import Beginning
from tests.tape.serve.conftest import record, serving

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
HOSTILE = (
    "zebra <script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m\u202eabc \u6f22\u5b57"
)
PATHS = (
    *("/", "/search?q=zebra", "/costs", "/costs?days=7", "/running", "session"),
    *("/compare", "compare", "file"),
)
WIDTHS = (400, 1280, 2000)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
]


def write_file(library, folder, name, text):
    """Record a session that writes a file."""
    with library.store.create(Beginning(str(folder), "test/1")) as tape, tape.writer() as writer:
        writer.append(User((Text(HOSTILE),)))
        arguments = json.dumps({"path": name, "content": text}, separators=(",", ":")).encode()
        writer.append(Assistant((ToolCall("c1", "write", Raw(arguments)),), "p", model="m"))
        writer.append(ToolResult("c1", "write", (Text("ok"),)))
        writer.append(User((Text("and another prompt"),)))
        writer.barrier()


@pytest.fixture(scope="module")
def server(library):
    record(library, "Zebras", "the zebra sleeps", cost=2.5)
    record(library, HOSTILE, HOSTILE, model=HOSTILE, person=HOSTILE, cwd="/src")
    folder = library.store.path.parent / "work"
    folder.mkdir()
    (folder / "a.py").write_text(HOSTILE + "\n" + "x = 1\n" * 40)
    write_file(library, folder, "a.py", HOSTILE + "\n")
    with serving(library.store.path.parent) as started:
        yield started


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def tab(browser, server):
    """A page that is let in, and what it said and asked that it should not."""
    page, faults = browser.new_page(), []
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
    page.on(
        "request",
        lambda asked: asked.url.startswith((server.base, "data:")) or faults.append(asked.url),
    )
    page.goto(server.address)
    yield page, faults
    page.close()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("width", WIDTHS)
def test_a_page_is_quiet_and_as_wide_as_its_window(tab, server, path, width):
    page, faults = tab
    sessions = [link.get_attribute("href") for link in page.locator("a.session").all()]
    ids = [link.removeprefix("/session/") for link in sessions]
    named = {
        "session": sessions[0],
        "compare": f"/compare?a={ids[0]}&b={ids[1]}",
        "file": f"/file?session={ids[0]}&path=a.py",
    }
    path = named.get(path, path)
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{server.base}{path}")
    page.wait_for_selector("html[data-ready]")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert faults == []


def test_a_session_is_opened_by_keys(tab, server):
    page, _ = tab
    page.wait_for_selector("html[data-ready]")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/session/*")


def test_the_chart_is_drawn(tab, server):
    page, _ = tab
    page.goto(f"{server.base}/costs")
    page.wait_for_selector("#chart canvas")


def test_words_find_hits_while_they_are_typed(tab, server):
    page, _ = tab
    page.goto(f"{server.base}/search")
    page.wait_for_selector("html[data-ready]")
    page.locator("#find").press_sequentially("sleeps")
    page.wait_for_selector(".hit mark")
    assert page.locator(".hit mark").first.inner_text() == "sleeps"


def test_keys_go_from_prompt_to_prompt_and_to_the_lines_of_a_file(tab, server):
    page, faults = tab
    page.goto(server.base + page.locator("a.session").first.get_attribute("href"))
    page.wait_for_selector("html[data-ready]")
    focused = "document.activeElement.innerText"
    page.keyboard.press("j")
    assert "alert(1)" in page.evaluate(focused)
    page.keyboard.press("j")
    assert "and another prompt" in page.evaluate(focused)
    page.keyboard.press("k")
    assert "alert(1)" in page.evaluate(focused)
    page.keyboard.press("?")
    assert page.locator("dialog.keys").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("dialog.keys").is_visible()
    page.locator(".call .note a").click()
    page.wait_for_selector(".blame")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector("html[data-ready] #log")
    assert faults == []


def test_the_command_that_continues_a_session_is_copied_by_keys(tab, server):
    page, faults = tab
    tape = page.locator("a.session").first.get_attribute("href").removeprefix("/session/")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.base)
    page.goto(f"{server.base}/session/{tape}")
    page.wait_for_selector("html[data-ready]")
    copied = []
    for name in ("Copy the command for gong", "Copy the command for Claude Code"):
        while page.evaluate("document.activeElement.ariaLabel") != name:
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.textContent") == "In another agent":
                page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        page.wait_for_selector(".copy:text-is('Copied')")
        copied.append(page.evaluate("navigator.clipboard.readText()"))
    assert copied[0] == f"gong --session {tape[:8]}"
    assert copied[1].endswith(f" && claude --resume {format_uuid(tape)}")
    assert faults == []
