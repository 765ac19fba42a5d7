"""The page of hits: grouped by session, each with its prompt and a link to its entry."""

from __future__ import annotations

import json
import re
import subprocess
from itertools import pairwise

import pytest

from tests import warm
from tests.tape.serve.conftest import record, serving


@pytest.fixture(scope="module")
def server(library):
    record(library, "Zebras", "the zebra sleeps", "another zebra")
    record(library, "Lions", "lions and one zebra")
    record(library, "Bad", "zebra <script>alert(1)</script> \x1b[31m\u202eabc")
    for number in range(60):
        record(library, f"many {number}", "gnu")
    with serving(library.store.path.parent) as started:
        yield started


def find_links(page):
    return re.findall(r'class="hit" href="/session/(\w{32})#(\w{40})"', page)


def test_the_hits_are_those_of_search(server):
    page = server.get("/search", q="zebra")
    command = [warm.find_commands() / "tape", "search", "zebra", "--json"]
    found = json.loads(subprocess.check_output(command, env=server.env))
    assert set(find_links(page)) == {(hit["tape"], hit["entry"]) for hit in found}
    assert "<mark>zebra</mark>" in page


def test_the_hits_of_a_session_are_together_with_what_led_to_them(server):
    page = server.get("/search", q="zebra")
    tapes = [tape for tape, _ in find_links(page)]
    assert sum(one != other for one, other in pairwise(tapes)) == 2
    assert page.count('class="hits"') == 3
    assert '<span class="asked"><bdi>the zebra sleeps</bdi></span>' in page


def test_foreign_text_is_text(server):
    for words in ("zebra", "<script>alert(1)</script>", "\x1b[31m"):
        page = server.get("/search", q=words)
        assert not any(text in page for text in ("<script>alert", "\x1b", "\u202e"))


def test_more_hits_are_asked_for(server):
    page = server.get("/search", q="gnu")
    assert len(find_links(page)) == 50
    assert 'href="/search?q=gnu&amp;n=100"' in page
    assert len(find_links(server.get("/search", q="gnu", n="100"))) == 100


@pytest.mark.parametrize("query", [{}, {"q": " "}, {"q": '"open'}, {"q": "-"}, {"n": "x"}])
def test_what_cannot_be_searched_finds_nothing(server, query):
    assert find_links(server.get("/search", **query)) == []


def test_a_search_of_very_many_words_is_refused(server):
    page = server.get("/search", q="zebra " * 200)
    assert "a search has at most 1,000 characters" in page
    assert find_links(page) == []
