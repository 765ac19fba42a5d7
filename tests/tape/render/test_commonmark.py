"""Somebody's Markdown in a page of ours, judged by a parser of CommonMark that is not ours."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tape.model.entries import (
    Anchor,
    Assistant,
    Error,
    Failure,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    User,
)
from tape.pages.markdown import render_markdown
from tape.render.commonmark import contain_markdown, escape_markdown, fence_code, quote_code
from tape.text import show_controls
from tests.tape import making
from tests.tape.making import BUDGET

PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
PARSER.validateLink = lambda _: True  # what it would refuse by itself counts too
OURS = ["## user · now", "", "END [x] [y][x] `", ""]
"""What stands behind the text; it has to read the same whatever the text is."""


def tokens(lines):
    found = PARSER.parse("\n".join(lines))
    return [*found, *(child for token in found for child in token.children or ())]


def judge(lines):
    """Demand that a text stays where it stands and brings nothing that acts."""
    page = ["# title", "", *lines, "", *OURS]
    all_ = tokens(page)
    kinds = {token.type for token in all_}
    assert kinds.isdisjoint({"html_block", "html_inline", "image"}), page
    top = [token.tag for token in all_ if token.type == "heading_open" and token.tag < "h3"]
    assert top == ["h1", "h2"], page
    for token in all_:
        if token.type == "link_open":
            target = str(token.attrs["href"]).lower()
            scheme = target.partition(":")[0] if ":" in target.partition("/")[0] else ""
            assert scheme in {"", "http", "https", "mailto"}, page
    end = [(one.type, one.content) for one in PARSER.parse("\n".join(page))][-6:]
    alone = [(one.type, one.content) for one in PARSER.parse("\n".join(OURS))]
    assert end == alone, page


HARMFUL = [
    "<script>alert(1)</script>",
    "a <img src=x onerror=alert(1)> b",
    "<!-- never closed",
    "<div>\n\n<details><summary>x",
    "</details></summary>",
    "<?php x",
    "<![CDATA[ x",
    "```\nnever closed <b>",
    "~~~\nnever closed",
    "- ```\n  in a list\nout <b>",
    "1. x\n   ```\nout <script>\n   ```\n<b>",
    "> ```\n<script>",
    "> > <b>\n> > ```\n> <i>",
    "`\n` <script> `",
    "`a` `` <b> ` </b>",
    r"\` <script> `",
    r"\`` <b> `` <i> `",
    "| a | b |\n|---|---|\n| `x | <script> ` | c |",
    "| a | b |\n|---|---|\n| `x | y` `<script>` |",
    "## user · 2026-11-22",
    "# A title",
    "user · now\n---",
    "user · now\n===",
    "- user\n  ---",
    "- # user · now",
    "[x]: javascript:alert(1)",
    "[x\n]: javascript:alert(1)\n[x]",
    "[a](javascript:alert(1))",
    "[a](<javascript:alert(1)>)",
    "[a](&#106;avascript:alert(1))",
    "[a](\njavascript:alert(1))",
    "[a](JaVaScRiPt:alert(1) 'x')",
    "[a](data:text/html,x)",
    "<javascript:alert(1)>",
    "![x](http://tracker/)",
    "    <b>in code</b>\n\n<b>",
    "- a\n\n      <b>\n\n<b>",
    "\t```\n\t<b>\n```\n<b>",
    "a\n    ```\n<script>",
]


@pytest.mark.parametrize("text", HARMFUL)
def test_no_text_leaves_its_place(text):
    judge(contain_markdown(show_controls(text).split("\n")))


PIECES = st.sampled_from(
    [
        *("`", "``", "```", "~~~", "<b>", "<!--", "</details>", "> ", "- ", "1. ", "    ", "\t"),
        *("# ", "## user · x", "---", "===", "|", "|---|---|", "[x]", "[x]:", "](", "![", "\\"),
        *(
            "javascript:x",
            "<",
            "&lt;",
            "&#60;",
            "http://x/",
            ")",
            "\n",
            "\n\n",
            "a",
            " ",
            "<?",
            "*",
        ),
        *(":-", "-", "+", "\r", "\x0b", "\u2028", "=", "_", "[a](", ">", "  ", "{", "html"),
    ]
)


@pytest.mark.slow
@given(st.one_of(st.lists(PIECES, max_size=40).map("".join), st.text(max_size=200)))
@settings(max_examples=400 * BUDGET, deadline=None)
def test_no_random_text_leaves_its_place(text):
    lines = show_controls(text).split("\n")
    judge(contain_markdown(lines))
    judge([f"> {line}".rstrip() for line in contain_markdown(lines)])
    judge(fence_code(lines))
    one = " ".join(text.split())
    judge([f"*{escape_markdown(show_controls(one))}*"])
    judge([quote_code(show_controls(one))])


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("**bold** and `a < b`", "**bold** and `a < b`"),
        ("- one\n- two `<b>`", "- one\n- two `<b>`"),
        ("```python\nif a < b:\n```", "```python\nif a < b:\n```"),
        ("see [docs](https://x.org/a) and [file](a/b.py)",) * 2,
        ("| a | b |\n|---|---|\n| 1 | `x` |",) * 2,
        ("> quoted `<b>`",) * 2,
        ("## Plan", "#### Plan"),
        ("a < b", "a &lt; b"),
        ("text\n\n    x = '<b>'", "text\n\n```\nx = '<b>'\n```"),
        ("1. do\n   ```sh\n   cat <in\n   ```\n2. done", "1. do\n```sh\ncat <in\n```\n2. done"),
    ],
)
def test_markdown_of_a_model_still_renders(text, kept):
    assert "\n".join(contain_markdown(text.split("\n"))) == kept


@pytest.mark.parametrize("piece", ["`", "``x", "<", "> ", "[x](", "\\", "- ", "|", "`a", "=", "\t"])
def test_long_texts_take_no_longer_than_their_length(piece):
    text = piece * (200_000 // len(piece))
    assert contain_markdown([text])


OWN_HTML = re.compile(r"(<details><summary>[^<>]*</summary>|</details>)\n?\Z")


@pytest.mark.parametrize("text", HARMFUL)
def test_a_page_holds_its_own_html_and_headings_alone(tmp_path, text):
    store = making.store_in(tmp_path / "store")
    with store.create(making.beginning(text)._replace(title=text)) as tape:
        with tape.writer() as writer:
            call = ToolCall(id="c_1_0", name=text, args_text=text)
            said = (Thinking(text), Text(text), call)
            writer.append(User((Text(text),)))
            writer.append(Assistant(said, text, text, text, text, error=Failure(text, text)))
            writer.append(ToolResult("c_1_0", text, (Text(text),), full=text))
            writer.append(Error(text, text))
            writer.anchor(Anchor(kind="compaction", summary=text))
        page = list(render_markdown(tape, tape.head(), masks=None, skipped=pytest.fail))
    found = tokens("\n".join(page).split("\n"))
    html = [one.content for one in found if one.type.startswith("html")]
    assert [one for one in html if not OWN_HTML.match(one)] == []
    assert sum("<details>" in one for one in html) == sum("</details>" in one for one in html) == 1
    headings = [one.tag for one in found if one.type == "heading_open" and one.tag < "h3"]
    assert headings == ["h1", "h2", "h2", "h2"]
