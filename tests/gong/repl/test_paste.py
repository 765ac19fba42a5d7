"""Placeholders of pasted texts and pictures in the prompt."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document

from gong.agent.documents import AttachedDocument
from gong.repl.typing.paste import (
    MAX_CHARACTERS,
    MAX_LINES,
    DraftParts,
    delete_after,
    delete_before,
)
from gong.repl.typing.pictures import find_dropped_picture

LONG = "row\n" * (MAX_LINES + 1)


def test_what_is_folded():
    parts = DraftParts()
    assert parts.fold_paste("a\r\nb\rc") == "a\nb\nc"
    assert parts.fold_paste("x" * MAX_CHARACTERS) == "x" * MAX_CHARACTERS
    assert parts.fold_paste("y\n" * MAX_LINES) == "y\n" * MAX_LINES
    assert parts.fold_paste(LONG) == "[Pasted text #1: 16 lines]"
    assert parts.fold_paste("x" * 1001) == "[Pasted text #2: 1,001 characters]"
    assert parts.fold_paste(LONG) == "[Pasted text #1: 16 lines]"
    picture = AttachedDocument("[Picture]", b"x", "image/png")
    assert parts.add_picture(picture, "a [b].png") == "[Image #3: a__b_.png]"
    assert parts.list_pictures("see [Image #3: a__b_.png] [Image #4: c]") == [picture]


@given(st.text(), st.text(), st.text("ab\n", min_size=1001, max_size=1100))
def test_the_model_gets_what_was_pasted(before, after, pasted):
    parts = DraftParts()
    draft = f"{before}{parts.fold_paste(pasted)}{after}"
    assert parts.expand_text(draft) == f"{before}{pasted}{after}"


@given(st.integers(0, 40))
def test_a_placeholder_is_deleted_whole_from_wherever_the_cursor_is(at):
    parts = DraftParts()
    text = f"see {parts.fold_paste(LONG)} now"
    draft = Buffer(document=Document(text, min(at, len(text))))
    if parts.measure_before(draft):
        delete_before(draft, parts)
        assert draft.text == "see  now"
    elif parts.measure_after(draft):
        delete_after(draft, parts)
        assert draft.text == "see  now"
    else:
        assert not text[: draft.cursor_position].endswith("]")


def test_what_was_changed_in_a_placeholder_is_plain_text():
    parts = DraftParts()
    parts.fold_paste(LONG)
    draft = Buffer(document=Document("[Pasted text #1: 17 lines]", 26))
    assert parts.measure_before(draft) == 0
    assert parts.expand_text(draft.text) == draft.text


def test_paths_as_terminals_paste_dropped_files():
    for pasted, path in (
        ("/tmp/shot.png", "/tmp/shot.png"),
        ("'/tmp/my shot.PNG' ", "/tmp/my shot.PNG"),
        ("/tmp/my\\ shot.jpeg\n", "/tmp/my shot.jpeg"),
        ("file:///tmp/my%20shot.webp", "/tmp/my shot.webp"),
        ("~/a.gif", "~/a.gif"),
        ("/tmp/notes.txt", None),
        ("look at /tmp/shot.png", None),
        ("/tmp/a.png\n/tmp/b.png", None),
        ("shot.png", None),
        ("", None),
    ):
        assert find_dropped_picture(pasted) == path
