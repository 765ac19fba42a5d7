"""What people read: everything is shown, and nothing reaches a terminal as a control."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from tape.model.entries import (
    Anchor,
    Approval,
    Assistant,
    BlobRef,
    Branch,
    Context,
    Custom,
    Document,
    Error,
    Failure,
    Image,
    Meta,
    Model,
    Note,
    Opaque,
    Place,
    Repair,
    Start,
    Summary,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolStart,
    Unknown,
    User,
)
from tape.model.line import Unread, build_entry, decode_line, encode_line, encode_payload
from tape.render.entries import render_entry, render_entry_line
from tape.render.markdown import render_conversation
from tape.text import cut_to_width, measure_width, shorten_to_width, show_controls

TIME = "2026-11-21T20:31:05.123456Z"
PLACE = Place(phase="0001-main-start", offset=0, entry="ab" * 20)
BLOB = BlobRef("cd" * 32, 1234, "")


def entry(payload):
    header, _ = encode_line(payload.entry_type, None, 3, TIME, encode_payload(payload))
    return build_entry(header, payload)


def result(text, **fields):
    return ToolResult("c_1", "read", (Text(text),), **fields)


CALL = ToolCall(id="c_1", name="read", args=Raw(b'{"path":"a.py"}'))
GISTS = [
    (User((Text("Fix\n the  bug"),)), "Fix the bug"),
    (User((Image(blob=BLOB, mime="image/png"),)), "[image/png, 1234 bytes, blob cdcdcdcdcdcd]"),
    (
        User((Document(blob=BLOB, mime="application/pdf", name="a.pdf"),)),
        "[a.pdf, 1234 bytes, blob cdcdcdcdcdcd]",
    ),
    (User((Unknown(raw=Raw(b'{"type":"smell"}')),)), '[unknown block] {"type":"smell"}'),
    (Assistant((Text("I look."), CALL)), "I look. → read a.py"),
    (Assistant((ToolCall(id="c", name="x", args_text="no json"),)), "→ x no json"),
    (Assistant((Text("half"),), stop_reason="length"), "(length) half"),
    (Assistant((), stop_reason="error", error=Failure("Down", "gone")), "(error: gone)"),
    (result("1\n2"), "read: 1 2"),
    (result("no such file", is_error=True), "read: error: no such file"),
    (Context("user", "steering", (Text("stop"),)), "steering: stop"),
    (Start("ab", "0001-main-start", "main", "/src", "gong/1"), "gong/1 in /src"),
    (Branch("0002-b", "b", PLACE, "fork"), "b from abababab (fork)"),
    (
        Anchor(
            phase="0002-b", branch="b", base=PLACE, kind="compaction", summary=Summary(goal="Ship")
        ),
        "compaction on b: ## Goal Ship",
    ),
    (ToolStart("c_1", "bash", Raw(b'{"a":1}')), 'bash {"a":1}'),
    (Model("offline", "rules", "high"), "offline/rules high"),
    (Repair("torn", why="9 bytes"), "torn: 9 bytes"),
    (Error("Timeout", "too slow"), "Timeout: too slow"),
    (Approval("c_1", "deny", "rule", reason="rm"), "deny by rule: rm"),
    (Note("remember"), "remember"),
    (Meta(cwd="/moved"), "continued in /moved"),
    (Custom("k", Raw(b'{"a":1}')), '{"kind":"k","data":{"a":1}}'),
]


@pytest.mark.parametrize(("payload", "gist"), GISTS)
def test_one_line_says_the_id_the_type_and_the_gist(payload, gist):
    made = entry(payload)
    assert render_entry_line(made) == f"{made.id[:8]}  {payload.entry_type:<11}  {gist}"


@pytest.mark.parametrize("data", [b'{"a":1}', b"null", b"[1]"])
def test_what_is_not_understood_is_shown_as_such(data):
    _, line = encode_line("smell", None, 0, TIME, data)
    made = decode_line(line[:-1])
    assert isinstance(made.data, Unread)
    assert render_entry_line(made).endswith(f"smell        (unknown type) {data.decode()}")
    assert render_entry(made)[1] == f"  (unknown type) {data.decode()}"
    assert next(render_conversation([made])) == f"· smell: (unknown type) {data.decode()}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("\x1b]0;title\x07", "␛]0;title␇"),
        ("\x9b31m\x7f\0", "<U+009B>31m␡␀"),
        ("a\r\nb\rc\r\n", "a\nb␍c\n"),
        ("safe\u202eevil\u2066", "safe<U+202E>evil<U+2066>"),
        ("lone \ud800", "lone \ufffd"),
        ("日本語 é 🙂 क्\u200dष 👩\u200d🚀", "日本語 é 🙂 क्\u200dष 👩\u200d🚀"),
        ("a\u200bb\u2028c\ufeff", "a<U+200B>b<U+2028>c<U+FEFF>"),
        ("pass\u200dword\U000e0041", "pass<U+200D>word<U+E0041>"),
    ],
)
def test_controls_are_shown_and_words_are_kept(text, shown):
    assert show_controls(text) == shown


ANY = st.text(st.characters(), max_size=40)


@given(ANY, st.booleans())
def test_no_control_reaches_the_terminal(text, markdown):
    evil = text + "\x1b[2J\x9b\u202e"
    entries = [
        entry(User((Text(text), Opaque(raw=Raw(b'"\x7f"'))))),
        entry(Assistant((Thinking(evil), ToolCall(id="c", name=evil, args_text=evil)), model=evil)),
        entry(ToolResult("c_1", evil, (Text(evil),), full=evil)),
        entry(Error(evil, evil)),
        entry(Context("user", evil, (Text(evil),))),
        entry(Anchor(phase="p", branch=evil, base=PLACE, kind=evil, summary=evil)),
    ]
    shown = [*render_conversation(entries, markdown=markdown)]
    for made in entries:
        shown += [render_entry_line(made), *render_entry(made)]
    for line in shown:
        controls = [c for c in line if unicodedata.category(c) in {"Cc", "Cs"} and c != "\t"]
        assert controls == [], line
        assert not re.search("[\u202a-\u202e\u2066-\u2069]", line)


def test_an_entry_is_cut_with_a_count_only_when_asked():
    made = entry(result("\n".join(map(str, range(1, 21))), full="all of it"))
    lines = render_entry(made)
    assert lines[0] == f"tool.result {made.id[:12]} · 3 · 2026-11-21 20:31:05 · read"
    assert lines[1:] == [f"  {n}" for n in range(1, 21)] + ["  in full:", "  all of it"]
    assert render_entry(made, 5)[-2:] == ["  5", "  … 15 more lines"]


def test_what_a_cut_leaves_out_is_counted_of_the_whole():
    """As of `seq 1 5000`, whose last 2000 lines a model saw."""
    numbers = "\n".join(map(str, range(3001, 5001)))
    whole = "".join(f"{n}\n" for n in range(1, 5001))
    made = entry(result(numbers, full=whole))
    assert render_entry(made, 12)[-2:] == ["  3012", "  … 4988 more lines"]
    blob = BlobRef("0" * 64, len(whole), whole[:2000])
    made = entry(result(numbers, full=blob))
    assert render_entry(made, 12)[-2:] == ["  3012", "  … 23833 more bytes"]


TALK = [
    entry(Start("ab", "0001-main-start", "main", "/src", "gong/1")),
    entry(User((Text("Read *a.py*"),))),
    entry(
        Assistant(
            (Thinking("hm"), Text("I **read** it."), CALL),
            provider="offline",
            model="rules",
            stop_reason="tool_calls",
        )
    ),
    entry(ToolStart("c_1", "read")),
    entry(result("```\nx = 1\n```")),
    entry(Assistant((Text("Half"),), stop_reason="aborted")),
]


def test_a_conversation_as_text():
    assert "\n".join(render_conversation(TALK)) == (
        "· start: gong/1 in /src\n"
        "\n"
        "── user · 2026-11-21 20:31:05\n"
        "Read *a.py*\n"
        "\n"
        "── assistant · offline/rules · 2026-11-21 20:31:05\n"
        "(thinking) hm\n"
        "I **read** it.\n"
        "\n"
        "── tool.result · read · 2026-11-21 20:31:05\n"
        "→ read a.py\n"
        "```\n"
        "x = 1\n"
        "```\n"
        "\n"
        "── assistant · 2026-11-21 20:31:05\n"
        "Half\n"
        "(aborted)\n"
    )


def test_a_conversation_as_markdown():
    assert "\n".join(render_conversation(TALK, markdown=True)) == (
        "*start: gong/1 in /src*\n"
        "\n"
        "## user · 2026-11-21 20:31:05\n"
        "\n"
        "Read *a.py*\n"
        "\n"
        "## assistant · offline/rules · 2026-11-21 20:31:05\n"
        "\n"
        "> (thinking) hm\n"
        "\n"
        "I **read** it.\n"
        "\n"
        "## tool.result · read · 2026-11-21 20:31:05\n"
        "\n"
        "```\n"
        "→ read a.py\n"
        "```\n"
        "\n"
        "````\n"
        "```\n"
        "x = 1\n"
        "```\n"
        "````\n"
        "\n"
        "## assistant · 2026-11-21 20:31:05\n"
        "\n"
        "Half\n"
        "\n"
        "*(aborted)*\n"
    )


def test_a_conversation_is_never_cut():
    text = "\n".join(f"line {n}" for n in range(10_000))
    assert list(render_conversation([entry(result(text))])).count("line 9999") == 1


@pytest.mark.parametrize(
    ("text", "columns"),
    [("abc", 3), ("日本語", 6), ("e\u0301", 1), ("👩‍💻", 4), ("", 0), ("a\u200bb", 2)],
)
def test_wide_characters_take_two_columns_and_combining_ones_none(text, columns):
    assert measure_width(text) == columns


def test_characters_that_are_not_looked_up_take_one_column():
    wide = "日"  # beside it, each character is looked up
    for char in map(chr, range(0xD800)):
        assert measure_width(char) == measure_width(char + wide) - 2, hex(ord(char))


@given(ANY, st.integers(1, 50))
def test_a_line_is_cut_at_the_same_place_with_any_followers(text, columns):
    line = cut_to_width(text + "x" * columns + "日", columns)
    assert cut_to_width(text + "x" * columns + "xx", columns) == line


@given(ANY, st.integers(1, 50))
def test_a_fitted_text_is_one_line_that_fits(text, columns):
    line = shorten_to_width(text, columns)
    assert measure_width(line) <= columns
    assert "\n" not in line


def test_a_character_alone_is_made_visible_like_one_behind_a_control_character():
    """What is looked for in common texts without a pattern is what the pattern says."""
    for code in (*range(0x10000), *range(0xE0000, 0xE0200)):
        text = chr(code)
        assert show_controls("\a" + text)[1:] == show_controls(text), hex(code)
