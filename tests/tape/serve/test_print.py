"""Pages on paper: as a printer gets them from Chromium."""

from __future__ import annotations

import io

import pytest

from tape.store.store import Beginning, Store
from tests.tape import making
from tests.tape.serve.test_browser import CHROMIUM, browser
from tests.tape.serve.test_looks import home, sample, server

__all__ = ["browser", "home", "sample", "server"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
]
PAPER = """
["backgroundColor", "color"].map((name) => getComputedStyle(document.querySelector("h1").closest(
  name === "color" ? "h1" : "html"))[name])
"""
STICKY = """
[...document.querySelectorAll("body *")].filter((node) => node.checkVisibility() &&
  ["fixed", "sticky"].includes(getComputedStyle(node).position)).map((node) => node.outerHTML)
"""


@pytest.mark.parametrize("path", ["session", "/", "/costs", "compare", "file", "/search?q=basket"])
def test_a_page_prints_black_on_white_without_controls(browser, server, sample, path):
    """M213: folded output stays short, and nothing is wider than the paper."""
    basket = sample.basket
    paths = {
        "session": f"/session/{basket}",
        "compare": f"/compare?a={basket}:main&b={basket}:use-sum",
        "file": f"/file?session={basket}&path=basket.py",
    }
    page = browser.new_page(viewport={"width": 700, "height": 900}, color_scheme="dark")
    page.goto(server.address)
    page.goto(f"{server.base}{paths.get(path, path)}")
    page.wait_for_selector("html[data-ready]")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(PAPER) == ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]
    assert (
        page.locator(".bar, .side, .pair, .fold .open, .skip, .changes")
        .locator("visible=true")
        .count()
        == 0
    )
    assert page.evaluate(STICKY) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 700
    page.close()


def test_all_of_a_long_session_is_on_paper(browser, home, server):
    """M213"""
    pypdf = pytest.importorskip("pypdf")
    with Store(home / ".tape", durable=False).create(Beginning("/src", "test/1")) as tape:
        making.write(tape, *(f"prompt {number}." for number in range(400)))
    page = browser.new_page(viewport={"width": 1000, "height": 900})
    page.goto(server.address)
    page.goto(f"{server.base}/session/{tape.id}")
    page.wait_for_selector("html[data-ready]")
    paper = pypdf.PdfReader(io.BytesIO(page.pdf(format="A4")))
    text = "".join(sheet.extract_text() for sheet in paper.pages)
    assert [number for number in range(400) if f"prompt {number}." not in text] == []
    while page.locator(".row").count() > 200:  # far away ones are taken out again
        page.wait_for_timeout(20)
    page.close()
