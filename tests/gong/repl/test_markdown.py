"""M036, M198: Markdown while it streams: what is finished, how it looks, what it costs."""

import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gong.repl.draw.lines import StyledPart, wrap_parts
from gong.repl.draw.markdown import MarkdownStream
from tape.text import measure_width, show_controls

ANSWER = """\
Here is **what** I found in `gong/repl/app.py`, see [the docs](https://example.org/a/very/long/address).
A second line, written on its own, in __init__.py.
# Title
Steps:
1. First do *this* thing, which takes a long sentence.
   - nested
2. Then
   ```python
   def f(x):
       return x
   ```
10. ten
- [ ] open
- [x] done
```python
def stream(text):  # comment
    return "hi"
```
After.

| name | what it does | n |
|---|:-:|--:|
| alpha | the first letter | 1 |
| `b` | second | 22 |

> quoted text that is long enough to wrap
> twice

今日は良い天気ですね、散歩に行きましょう。「引用」です。👩‍👩‍👧 emoji.

    indented code

last &#27;[31m &lt; <b>html</b>
"""
AT_40 = """\
Here is what I found in
gong/repl/app.py, see the docs
(https://example.org/a/very/long/address).
A second line, written on its own, in
__init__.py.
Title
Steps:
1. First do this thing, which takes a
   long sentence.
   - nested
2. Then

   def f(x):
       return x

10. ten
- ☐ open
- ☑ done

def stream(text):  # comment
    return "hi"

After.

name     what it does     n
─────  ────────────────  ──
alpha  the first letter   1
b           second       22

> quoted text that is long enough to
> wrap
> twice

今日は良い天気ですね、散歩に行きましょ
う。「引用」です。👩‍👩‍👧 emoji.

indented code

last �[31m < <b>html</b>"""


def render(text, columns=80, cuts=()):
    """Return all lines of a text that arrives in pieces; each frame between them is drawn."""
    stream, lines = MarkdownStream(), []
    for start, end in pairwise([0, *cuts, len(text)]):
        lines += stream.feed(text[start:end], columns)
        for row in stream.render_tail(columns):
            assert measure_width(row.text) <= columns
    return [*lines, *stream.finish(columns)]


def read_texts(lines):
    return [line.text for line in lines]


def test_an_answer_at_forty_columns():
    assert read_texts(render(ANSWER, 40)) == AT_40.split("\n")


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        (
            "**a** *b* ~~c~~",
            [("a", "strong"), (" ", ""), ("b", "emphasis"), (" ", ""), ("c", "strike")],
        ),
        ("`a  b`", [("a  b", "code")]),
        ("# a", [("a", "title")]),
        ("## a `b`", [("a ", "heading"), ("b", "code")]),
        ("<http://a.b/c_d>", [("http://a.b/c_d", "link")]),
        ("![a](b.png)", [("a (", ""), ("b.png", "link"), (")", "")]),
        ("```py\nreturn 1\n```", [("return", "keyword"), (" ", ""), ("1", "number")]),
        ("```diff\n-a\n```", [("-a", "removed")]),
        ("```nothing\nreturn\n```", []),
        ("a *b", []),
        ("a\\*b", []),
        ("[a]: http://b", []),
    ],
)
def test_marks_become_styles(text, pieces):
    (line,) = render(text)
    assert line.parts == tuple(StyledPart(*one) for one in pieces)


def test_what_is_finished_is_given_out_before_the_answer_ends():
    """The live region holds the last block alone: a paragraph, an item, twenty lines of code."""
    stream = MarkdownStream()
    assert read_texts(stream.feed("One\n\nTwo\n- a\n- b\n", 80)) == ["One", "", "Two", "- a"]
    assert read_texts(stream.render_tail(80)) == ["- b"]
    assert read_texts(stream.feed("```py\n" + "x = 1\n" * 25, 80)) == ["- b", "", *["x = 1"] * 20]
    assert read_texts(stream.render_tail(80)) == ["x = 1"] * 5


def test_a_line_of_code_and_an_address_are_never_broken():
    code = "x" * 100
    address = "https://example.org/" + "a" * 60
    assert read_texts(render(f"```\n{code}\n```\nSee {address} now", 40)) == [
        *(code, "", "See", address, "now")
    ]


def test_a_table_that_does_not_fit_is_read_row_by_row():
    table = "| alpha | beta |\n|---|---|\n| " + "a" * 50 + " | b |\n| c | d |\n"
    assert read_texts(render(table, 40)) == [
        *("alpha:", "  " + "a" * 50, "beta: b", "", "alpha: c", "beta: d")
    ]


@pytest.mark.parametrize("language", ["python", "c++", "{.py}", "a.b.c", "\x1b[31m", "", "🙂"])
def test_any_name_of_a_language_will_do(language):
    (line,) = render(f"```{language}\nreturn 1\n```")
    assert line.text == "return 1"


_MARKDOWN = st.lists(
    st.one_of(
        st.sampled_from(
            [
                *(
                    "```\n",
                    "```py\n",
                    "~~~",
                    "- ",
                    "1. ",
                    "2) ",
                    "> ",
                    "# ",
                    "    ",
                    "  ",
                    " ",
                    "\n",
                ),
                *(
                    "\n\n",
                    "|",
                    "|-|-|\n",
                    "**",
                    "*",
                    "_",
                    "__",
                    "`",
                    "[a](b)",
                    "](",
                    "---\n",
                    "\r\n",
                ),
                *(
                    "\x1b[2J",
                    "\x1b]0;x\x07",
                    "\x9b1m",
                    "&#27;",
                    "&#10;",
                    "%1b",
                    "\t",
                    "日本",
                    "👩‍👧",
                ),
                *("word ", "def f(): return 1\n", "\\", "<b>", "\u202e", "\u2028", "\0"),
            ]
        ),
        st.text(max_size=12),
    ),
    max_size=40,
).map("".join)


@given(_MARKDOWN, st.data(), st.sampled_from([10, 40, 80]))
def test_text_cut_at_any_place_gives_the_same_lines(text, data, columns):
    places = st.lists(st.integers(0, len(text)), max_size=12)
    cuts = sorted(data.draw(places, label="cuts"))
    assert render(text, columns, cuts) == render(text, columns)


@given(_MARKDOWN, st.sampled_from([10, 40]))
def test_no_control_character_of_a_model_is_in_a_line(text, columns):
    for line in render(text, columns):
        for piece in (line.text, *(part.text for part in line.parts)):
            assert show_controls(piece) == piece
            assert not set(piece) & set("\n\t\r")
        assert not line.parts or "".join(part.text for part in line.parts) == line.text


@pytest.mark.slow
@given(st.text(st.sampled_from("ab 日、。「」(👩é"), max_size=80), st.integers(4, 20))
def test_wrapping_breaks_no_word_and_loses_nothing(text, columns):
    rows = ["".join(part.text for part in row) for row in wrap_parts([StyledPart(text)], columns)]
    assert "".join("".join(rows).split()) == "".join(text.split())
    for row in rows:
        assert measure_width(row) <= columns or not row.strip().count(" ")


@pytest.mark.slow
def test_a_piece_of_a_long_answer_costs_no_more_than_one_of_a_short():
    """Nothing is parsed twice: the second half takes about as long as the first."""
    text = ANSWER * 60

    def measure(times):
        begun = time.perf_counter()
        render(text * times, 80, range(50, len(text * times), 50))
        return time.perf_counter() - begun

    measure(1)
    assert min(measure(4) for _ in range(2)) < 8 * min(measure(1) for _ in range(2))


def test_pages_of_this_project_are_rendered():
    for page in Path(__file__).parents[3].glob("docs/*.md"):
        assert render(page.read_text("utf-8"), 60)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [40, 80, 120])
@pytest.mark.parametrize("before", ["", "- an item\n", "line\n" * 900])
def test_no_word_of_a_long_paragraph_is_broken_and_its_rows_do_not_move(before, columns):
    words = [f"word{'x' * (at % 9)}{at}" for at in range(2000)]
    stream = MarkdownStream()
    stream.feed(before, columns)
    shown, moved = [], 0
    for word in words:
        stream.feed(f"{word} ", columns)
        rows = [row.text for row in stream.render_tail(columns)]
        assert {one for row in rows for one in row.split()} <= {*words, "-", "an", "item", "line"}
        assert len(rows) <= 12
        assert all(measure_width(row) <= columns for row in rows)
        if shown and len(" ".join(rows)) > 300:
            at = rows.index(shown[-2]) if shown[-2] in rows else 0
            moved += rows[: at + 1] != shown[:-1][-at - 1 :]
        shown = rows
    assert moved <= 1  # a block of the usual length is laid out as Markdown, a long one as words
