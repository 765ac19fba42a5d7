"""The list of sessions: the newest first, facets, words, sums; and one session."""

from __future__ import annotations

import re
from html import unescape

import pytest

from tests.tape.serve.conftest import record, serving

HOSTILE = "</title><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m\u202eabc"


@pytest.fixture(scope="module")
def ids(library):
    return [
        record(library, "Mend the parser", "the parser loses zebras", model="claude-x"),
        record(library, "Draw a chart", "colours", model="gpt-y", cost=2.0, cwd="/other"),
        record(library, HOSTILE, HOSTILE, cost=None, person="Ada <ada@example.org>"),
    ]


@pytest.fixture(scope="module")
def server(library, ids):
    with serving(library.store.path.parent) as started:
        yield started


def titles(page):
    return [unescape(title) for title in re.findall(r'class="title"><bdi>(.*?)</bdi>', page)]


def status(page):
    text = re.search(r'role="status">(.*?)</p>', page)[1]
    return re.findall(r"<span>(.*?)</span>", text)


def test_the_newest_come_first_with_what_they_cost(server, ids):
    """M213"""
    page = server.get("/")
    assert titles(page)[1:] == ["Draw a chart", "Mend the parser"]
    assert re.findall(r'href="/session/(\w+)"', page) == ids[::-1]
    assert status(page) == ["3 sessions", "360 tokens", "$2.50"]


def test_foreign_text_is_text(server, ids):
    for path in ("/", f"/session/{ids[2]}", "/?q=%3Cscript%3Ealert(1)%3C/script%3E%1B%5B31m"):
        page = server.get(path)
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "\x1b" not in page
        # In the page of a session it is data; the script makes it visible.
        assert path.startswith("/session") or "\u202e" not in page


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"model": "gpt-y"}, ["Draw a chart"]),
        ({"project": "/src", "model": "gpt-y"}, []),
        ({"project": "/other"}, ["Draw a chart"]),
        ({"person": ""}, ["Draw a chart", "Mend the parser"]),
        ({"q": "zebr"}, ["Mend the parser"]),
        ({"q": "CHART"}, ["Draw a chart"]),
        ({"q": '"open'}, []),
        ({"q": "nothing-has-this"}, []),
        ({"unknown": "field", "model": "gpt-y"}, ["Draw a chart"]),
        ({"day": "1999-01-01"}, []),
        ({"after": "no place", "model": "gpt-y"}, ["Draw a chart"]),
    ],
)
def test_facets_and_words_choose(server, query, found):
    page = server.get("/", **query)
    assert titles(page) == found
    assert status(page)[0].startswith(f"{len(found)} session")


def test_a_facet_shows_its_alternatives_beside_what_is_chosen(server):
    page = server.get("/", model="gpt-y")
    counts = re.findall(r"<bdi>(claude-x|gpt-y)</bdi></span> <small>(\d)</small>", page)
    assert sorted(counts) == [("claude-x", "2"), ("gpt-y", "1")]


def test_a_long_list_comes_in_pages(tmp_path):
    from tape.index.library import open_store

    with open_store(tmp_path / ".tape") as library:
        for number in range(51):
            record(library, f"session {number}", "hello", cost=None)
    with serving(tmp_path) as server:
        page = server.get("/")
        assert len(titles(page)) == 50
        more = unescape(re.search(r'hx-get="([^"]*after[^"]*)"', page)[1])
        rest = server.get(more)
        assert titles(rest) == ["session 0"]
        assert "<html" not in rest
        assert "hx-get" not in rest


def test_a_session_is_the_page_of_the_export(server, ids, library):
    page = server.get(f"/session/{ids[0]}")
    assert "the parser loses zebras" in page
    assert 'href="/"' in page
    assert f'data-agent="gong">gong --session {ids[0][:8]}</code>' in page
    assert server.get(f"/session/{ids[0][:12]}") == page


def test_what_is_written_meanwhile_is_there(server, library):
    made = record(library, "Just now", "hello")
    page = server.get("/")
    assert titles(page)[0] == "Just now"
    assert made in page


def test_an_empty_store_says_how_to_begin(tmp_path):
    (tmp_path / ".tape").mkdir()
    with serving(tmp_path) as server:
        assert "No session is recorded here yet" in server.get("/")
