"""What providers' own tools did, and what answers cite: three forms, and bad ones."""

import json

import pytest
from msgspec import Raw

from tape.model.entries import Opaque, Text
from tape.render.entries import render_block, render_content
from tape.render.sources import describe_server_block, list_sources


def raw(value):
    return Raw(json.dumps(value).encode())


PAGES = [
    {"type": "web_search_result", "url": "https://a.example/", "title": "A\x1b[31m"},
    {"type": "web_search_result", "url": "https://b.example/", "title": ""},
]
GROUNDING = {
    "groundingMetadata": {
        "webSearchQueries": ["first query", "second"],
        "groundingChunks": [{"web": {"uri": "https://g.example/", "title": "g"}}, {"maps": {}}, 3],
    }
}
BLOCKS = [
    (
        {"type": "server_tool_use", "name": "web_search", "input": {"query": "what\nis it"}},
        ["web_search: what is it"],
    ),
    (
        {"type": "web_search_tool_result", "content": PAGES},
        ["web_search found 2 pages", "  A␛[31m – https://a.example/", "  https://b.example/"],
    ),
    (
        {"type": "web_search_tool_result", "content": {"error_code": "max_uses_exceeded"}},
        ["web_search failed: max_uses_exceeded"],
    ),
    (
        {"type": "web_fetch_tool_result", "content": {"url": "https://a.example/"}},
        ["web_fetch: https://a.example/"],
    ),
    (
        {"type": "web_search_call", "action": {"type": "search", "queries": ["x", "y"]}},
        ["web_search: x; y"],
    ),
    (
        {"type": "web_search_call", "action": {"type": "open_page", "url": "https://a.example/"}},
        ["web_search opened https://a.example/"],
    ),
    (GROUNDING, ["web_search: first query", "web_search: second"]),
    ({"type": "web_search_call", "action": None}, []),
    ({"type": "web_search_tool_result", "content": 3}, ["web_search found 0 pages"]),
    ({"type": "code_execution_call"}, []),
    ({"groundingMetadata": 3, "search": 1}, []),
    ([{"type": "web_search_call"}], []),
]


@pytest.mark.parametrize(("block", "lines"), BLOCKS)
def test_a_search_is_described_in_words(block, lines):
    assert describe_server_block(raw(block)) == lines


def test_a_block_that_is_no_json_has_no_description():
    assert describe_server_block(Raw(b"{search")) == []


def test_cited_pages_are_listed_once_in_every_form():
    anthropic = {"citations": [{"url": "https://a.example/", "title": "A", "cited_text": "x"}] * 2}
    responses = {
        "annotations": [
            {"type": "url_citation", "url": "https://b.example/", "title": "B"},
            {"type": "url_citation", "url_citation": {"url": "https://c.example/", "title": "C"}},
            {"type": "file_citation", "file_id": "f"},
            "nonsense",
        ]
    }
    content = (
        Text("one", wire=raw(anthropic)),
        Text("two", wire=raw(responses)),
        Opaque(raw=raw(GROUNDING)),
    )
    assert [source.url for source in list_sources(content)] == [
        *("https://a.example/", "https://b.example/", "https://c.example/", "https://g.example/")
    ]
    assert (
        list_sources((Text("plain"), Text("x", wire=Raw(b"{broken")), Text("y", wire=raw([1]))))
        == ()
    )


def test_sources_follow_an_answer_that_is_shown():
    cited = raw({"citations": [{"url": "https://a.example/", "title": "A\x1b[31m"}]})
    lines = [*render_content((Text("It is so.", wire=cited),))]
    assert lines[:2] == ["It is so.", "Sources:"]
    assert lines[2].endswith(" – https://a.example/")
    assert "\x1b" not in lines[2]
    assert [*render_content((Text("plain"),))] == ["plain"]
    (line,) = render_block(Opaque(raw=raw({"type": "other"})))
    assert line.startswith("[provider's own")
