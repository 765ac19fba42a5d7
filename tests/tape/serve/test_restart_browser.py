"""Pages that are open in Chromium while their server is killed, away and started again."""

from __future__ import annotations

import pytest

from tape.model.entries import Text, User
from tape.store.store import Beginning
from tests.tape.serve.conftest import Server, record
from tests.tape.serve.test_browser import CHROMIUM, browser

__all__ = ["browser"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
]
AS_LAST_TIME = ("--pull-every", "15")
"""No port is named, so that it is the one of last time."""
OUTSIDE = "This page is not let in any more: open the address that the server printed"


@pytest.fixture
def started(library):
    """Start a server of the store, again and again; all are ended in the end."""
    servers = []

    def start(*argv):
        servers.append(Server(library.store.path.parent, *(argv or AS_LAST_TIME)))
        return servers[-1]

    yield start
    for server in servers:
        server.process.kill()
        server.process.communicate()


@pytest.fixture
def context(browser):
    opened = browser.new_context()
    yield opened
    opened.close()


def kill(server):
    server.process.kill()
    server.process.wait()


def test_the_list_and_what_runs_go_on_with_the_same_token(library, started, context):
    """M213"""
    record(library, "Zebras", "hello")
    server = started()
    sessions, running = context.new_page(), context.new_page()
    sessions.goto(server.address)
    running.goto(f"{server.base}/running")
    for page in (sessions, running):
        page.wait_for_selector("html[data-ready]")
    kill(server)
    sessions.locator("#find").press_sequentially("zeb")
    for page in (sessions, running):
        page.wait_for_selector("#away:text-is('The server does not answer.')")
    again = started()
    assert again.address == server.address
    with library.store.create(Beginning("/src", "test/1")) as tape, tape.writer() as writer:
        writer.append(User((Text("written meanwhile"),)))
        writer.barrier()
        running.wait_for_selector(f"#s{tape.id}")
    sessions.locator("#find").press_sequentially("ras")
    sessions.wait_for_selector(".session .title bdi:text-is('Zebras')")
    for page in (sessions, running):
        page.wait_for_selector("#away", state="hidden")


def test_with_a_new_token_pages_say_what_to_do_and_go_on_after_it(library, started, context):
    """M213"""
    tape = record(library, "Zebras", "hello")
    server = started()
    session, running = context.new_page(), context.new_page()
    session.goto(server.address)
    session.goto(f"{server.base}/session/{tape}")
    running.goto(f"{server.base}/running")
    session.wait_for_selector("#live.idle", state="attached")
    running.wait_for_selector("html[data-ready]")
    kill(server)
    session.wait_for_selector("#live.away")
    again = started("--new-token", "--port", str(server.port))
    assert again.token != server.token
    session.wait_for_selector(f"[role=alert]:text('{OUTSIDE}')")
    running.wait_for_selector(f"#away:text('{OUTSIDE}')")
    context.new_page().goto(again.address)
    session.wait_for_selector("#live.idle", state="attached")
    session.wait_for_selector(f"[role=alert]:text('{OUTSIDE}')", state="hidden")
    running.wait_for_selector("#away", state="hidden")
    with library.store.open(tape) as opened:
        opened.rename("Lions")
    session.wait_for_selector("h1:text-is('Lions')")
    with library.store.open(tape) as opened:
        library.store.remove(opened)
    session.reload()
    assert "There is nothing here." in session.inner_text("body")


def test_a_session_that_is_removed_meanwhile_is_named(library, started, context):
    tape = record(library, "Zebras", "hello")
    server = started()
    page = context.new_page()
    page.goto(server.address)
    page.goto(f"{server.base}/session/{tape}")
    page.wait_for_selector("#live.idle", state="attached")
    kill(server)
    with library.store.open(tape) as opened:
        library.store.remove(opened)
    started()
    page.wait_for_selector("[role=alert]:text-is('This session is not here any more.')")
