"""Every page in Chromium, light and dark, as axe-core sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tape.index.library import open_store
from tape.model.entries import Text, User
from tape.pages.html import export_page
from tape.store.store import Store
from tests.tape.serve import sample_store
from tests.tape.serve.conftest import serving
from tests.tape.serve.test_browser import CHROMIUM, browser

__all__ = ["browser"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
]
AXE = Path(__file__).parent.joinpath("axe", "axe.min.js").read_text()
FIND = """
async () => (await axe.run(document, { resultTypes: ["violations"] })).violations
  .filter((found) => ["serious", "critical"].includes(found.impact))
  .map((found) => [found.id, found.nodes.map((node) => node.html)])
"""
OPEN_ALL = "() => document.querySelectorAll('details > summary').forEach((one) => one.click())"
ERRORS = {"/session/abcdef012345": 404, "/file": 404, "/nowhere": 404}
"""Pages that are an error, by their paths."""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("looks")


@pytest.fixture(scope="module")
def sample(home):
    return sample_store.fill(home)


@pytest.fixture(scope="module")
def pages(sample):
    """The path of every page, with what is shown there badly if anything is."""
    basket, file = sample.basket, f"session={sample.basket}&path=basket.py"
    lists = ("/", "/?q=basket&agent=codex", "/?q=nothing-is-like-that", "/running")
    sums = ("/search", "/search?q=basket", "/search?q=qqqq", "/costs", "/costs?days=7")
    sides = ("/compare", f"/compare?a={basket}:main&b={basket}:use-sum", f"/file?{file}")
    sessions = [f"/session/{tape}" for tape in (basket, *sample.talks, sample.damaged)]
    return {**dict.fromkeys((*lists, *sums, *sides, *sessions), 200), **ERRORS}


@pytest.fixture(scope="module")
def server(home, sample):
    with (
        open_store(home / ".tape") as (store, _),  # with its index, which says what is running
        store.open(sample.basket) as tape,
        tape.writer("use-sum") as writer,
        serving(home, "--port", "0", "--write") as started,
    ):
        writer.append(User((Text("This is written now."),)))
        writer.barrier()
        yield started


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1000, 2000])
def test_axe_finds_nothing_serious_on_any_page(browser, server, pages, width, theme):
    """M213: no message, no foreign request and nothing too wide, either."""
    faults = []
    context = browser.new_context(
        viewport={"width": width, "height": 860}, color_scheme=theme, reduced_motion="reduce"
    )
    page = context.new_page()
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text))
    page.on(
        "request",
        lambda asked: asked.url.startswith((server.base, "data:")) or faults.append(asked.url),
    )
    page.goto(server.address)
    seen = {}
    for path, status in pages.items():
        answer = page.goto(f"{server.base}{path}")
        page.wait_for_selector("html[data-ready]")
        assert answer.status == status, path
        page.evaluate(f"{AXE};0")
        page.evaluate(OPEN_ALL)
        wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        seen[path] = page.evaluate(FIND), max(wider, 0)
    context.close()
    assert seen == dict.fromkeys(pages, ([], 0))
    expected = sum(status != 200 for status in pages.values())
    assert [text for text in faults if not text.startswith("Failed to load resource")] == []
    assert len(faults) == expected  # the browser itself says so of each page that is an error


def test_axe_finds_nothing_serious_without_the_token(browser, server):
    page = browser.new_page()
    page.goto(f"{server.base}/?token=wrong")
    page.evaluate(f"{AXE};0")
    assert page.evaluate(FIND) == []
    page.close()


def test_axe_finds_nothing_serious_in_an_empty_store(browser, tmp_path):
    with serving(tmp_path) as server:
        page = browser.new_page(viewport={"width": 400, "height": 860})
        page.goto(server.address)
        for path in ("/", "/running", "/costs", "/search?q=word"):
            page.goto(f"{server.base}{path}")
            page.wait_for_selector("html[data-ready]")
            page.evaluate(f"{AXE};0")
            assert page.evaluate(FIND) == [], path
        page.close()


def test_axe_finds_nothing_serious_in_an_exported_page(browser, home, sample, tmp_path):
    with (
        Store(home / ".tape").open(sample.basket) as tape,
        (tmp_path / "a.html").open("wb") as file,
    ):
        export_page(tape, file.write)
    page = browser.new_page(viewport={"width": 400, "height": 860})
    page.goto((tmp_path / "a.html").as_uri())
    page.wait_for_selector("html[data-ready]")
    page.evaluate(f"{AXE};0")
    page.evaluate(OPEN_ALL)
    assert page.evaluate(FIND) == []
    page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_dialogs(browser, server, sample, theme):
    page = browser.new_page(viewport={"width": 400, "height": 860}, color_scheme=theme)
    page.goto(server.address)
    page.goto(f"{server.base}/session/{sample.basket}")
    page.wait_for_selector("html[data-ready] .changes")
    page.evaluate(f"{AXE};0")
    for key in ("?", "r", "l", "Delete"):
        page.keyboard.press(key)
        page.wait_for_selector("dialog[open]")
        assert page.evaluate(FIND) == [], key
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog[open]", state="detached")
    page.close()
