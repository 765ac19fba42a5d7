"""The keys of pages: the same on each of them."""

from __future__ import annotations

import pytest

from tests.tape.serve.test_browser import CHROMIUM, browser
from tests.tape.serve.test_looks import home, sample, server

__all__ = ["browser", "home", "sample", "server"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
]
PAGES = ("/", "/running", "/search?q=basket", "/costs", "compare", "file", "/nowhere")
FOCUS = "document.activeElement"


@pytest.fixture
def tab(browser, server):
    page = browser.new_page(viewport={"width": 1000, "height": 800})
    page.goto(server.address)
    yield page
    page.close()


def open_page(tab, server, path):
    tab.goto(f"{server.base}{path}")
    tab.wait_for_selector("html[data-ready]")


def name_path(sample, name):
    basket = sample.basket
    compare = f"/compare?a={basket}:main&b={basket}:use-sum"
    return {"compare": compare, "file": f"/file?session={basket}&path=basket.py"}.get(name, name)


def open_and_close_help(tab):
    tab.keyboard.press("?")
    assert tab.locator("dialog.keys").is_visible()
    tab.keyboard.press("Escape")
    assert not tab.locator("dialog.keys").is_visible()


@pytest.mark.parametrize("name", PAGES)
def test_each_page_is_gone_through_by_keys(tab, server, sample, name):
    """M213"""
    path = name_path(sample, name)
    open_page(tab, server, path)
    open_and_close_help(tab)

    has_search = tab.locator("#find").count() > 0
    tab.keyboard.press("/")
    if has_search:
        assert tab.evaluate(f"{FOCUS}.id") == "find"
    else:
        tab.wait_for_url("**/search")
        open_page(tab, server, path)
    tab.keyboard.press("Escape")
    assert tab.evaluate(f"{FOCUS} === document.body")

    tab.keyboard.press("j")
    first = tab.evaluate(f"{FOCUS}.href")
    assert tab.evaluate(f"{FOCUS}.closest('main') !== null")
    tab.keyboard.press("j")
    tab.keyboard.press("k")
    assert tab.evaluate(f"{FOCUS}.href") == first
    tab.keyboard.press("Enter")
    tab.wait_for_url(first)


def test_a_session_is_gone_through_by_keys(tab, server, sample):
    open_page(tab, server, f"/session/{sample.basket}")
    open_and_close_help(tab)
    tab.keyboard.press("/")
    assert tab.evaluate(f"{FOCUS}.id") == "find"
    tab.keyboard.type("loops")
    tab.wait_for_selector(".side mark")
    assert tab.locator(".side .text").all_inner_texts() == ["are there other loops like this one?"]
    tab.keyboard.press("Escape")
    assert tab.evaluate(f"{FOCUS} === document.body")
    assert tab.locator(".side mark").count() == 0
    tab.keyboard.press("j")
    assert "Compacted 4 entries" in tab.evaluate(f"{FOCUS}.innerText")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("text=Goal")
    tab.keyboard.press("j")
    assert "why?" in tab.evaluate(f"{FOCUS}.innerText")
    tab.keyboard.press("k")
    assert "Compacted 4 entries" in tab.evaluate(f"{FOCUS}.innerText")


@pytest.mark.parametrize("path", ["/", "session"])
def test_the_side_of_a_narrow_page_is_opened_by_keys(tab, server, sample, path):
    tab.set_viewport_size({"width": 400, "height": 800})
    open_page(tab, server, path if path == "/" else f"/session/{sample.basket}")
    tab.locator("#menu").focus()
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".side.open")
    tab.keyboard.press("Escape")
    tab.wait_for_selector(".side:not(.open)", state="attached")
