import pytest
from hypothesis import given
from hypothesis import strategies as st

from gong.tools.patch.parse import (
    AddFile,
    ChunkLine,
    DeleteFile,
    InvalidPatch,
    PatchChunk,
    UpdateFile,
    find_patch_in_command,
    parse_patch,
)
from tape.model.entries import join_texts

HEADERS = (
    "Valid hunk headers: '*** Add File: {path}', '*** Delete File: {path}',"
    " '*** Update File: {path}'"
)
FIRST = "The first line of the patch must be '*** Begin Patch'"
LAST = "The last line of the patch must be '*** End Patch'"
NO_LINES = "Update hunk does not contain any lines"
EVERY_LINE = (
    "Unexpected line found in update hunk: '{}'. Every line should start with"
    " ' ' (context line), '+' (added line), or '-' (removed line)"
)

AFTER_A_CHUNK = (
    "Expected update hunk to start with a @@ context marker, got: 'bad'."
    " After a chunk comes another one, '@@' first, or the next file"
)


def patch(*lines):
    return "\n".join(("*** Begin Patch", *lines, "*** End Patch"))


def chunk(*lines, contexts=(), at_end=False, number=3):
    return PatchChunk(
        contexts, tuple(ChunkLine(line[0], line[1:]) for line in lines), at_end, number
    )


def update(*chunks, move_to=None):
    return UpdateFile("a.txt", move_to, chunks)


UPDATE = "*** Update File: a.txt"
STARRED = "*** Begin Patch ***\n*** Update File: a.txt ***\n*** Move to: b.txt ***\n-x\n+y"


@pytest.mark.parametrize(
    ("text", "hunk"),
    [
        (f"```\n{patch(UPDATE, '-x', '+y')}\n```", update(chunk("-x", "+y"))),
        (f"```diff\n{patch(UPDATE, '-x', '+y')}\n```\n", update(chunk("-x", "+y"))),
        (f"~~~ patch\n\n{patch(UPDATE, '-x', '+```')}\n~~~", update(chunk("-x", "+```"))),
        (f"```\n<<EOF\n{patch(UPDATE, '-x', '+y')}\nEOF\n```", update(chunk("-x", "+y"))),
        (
            f"{STARRED}\n*** End Patch ***",
            update(chunk("-x", "+y", number=4), move_to="b.txt"),
        ),
        (
            f"```patch\n{STARRED}\n*** End Patch\n```",
            update(chunk("-x", "+y", number=4), move_to="b.txt"),
        ),
        ("*** Begin Patch ***\n*** Delete File: a ***\n*** End Patch ***", DeleteFile("a")),
    ],
)
def test_fences_around_a_patch_and_stars_behind_its_markers_are_no_part_of_it(text, hunk):
    assert parse_patch(text) == (hunk,)


FENCED = f"```diff\n{patch(UPDATE, '-x', '+```', ' ```')}\n```"


@pytest.mark.parametrize(
    "text",
    [
        f"Here is the patch:\n\n{FENCED}",
        f"Here is `a.txt`:\r\n{FENCED}\r\n\nIt adds a fence.",
        f"First ```this```, then\n```sh\nls\n```\n{FENCED}\n```sh\nmake\n```",
        f"A\n```\napply_patch <<'EOF'\n{patch(UPDATE, '-x', '+```', ' ```')}\nEOF\n```",
    ],
)
async def test_words_around_a_fenced_patch_are_no_part_of_it(folder, use_face, text):
    (folder / "a.txt").write_text("x\n```\n")
    result = await use_face("apply_patch", input=text)
    assert not result.is_error
    assert (folder / "a.txt").read_text() == "```\n```\n"


@pytest.mark.parametrize(
    "text",
    [
        f"Two:\n{FENCED}\nand\n{FENCED}",
        f"Without a fence:\n{patch(UPDATE, '-x', '+y')}",
        f"Without an end:\n```\n{patch(UPDATE, '-x', '+y')}",
    ],
)
async def test_words_around_a_patch_that_is_not_the_only_fenced_one_are_refused(
    folder, use_face, text
):
    (folder / "a.txt").write_text("x\n```\n")
    result = await use_face("apply_patch", input=text)
    assert join_texts(result.content).startswith(f"Invalid patch: {FIRST}")
    assert (folder / "a.txt").read_text() == "x\n```\n"


async def test_a_fenced_patch_with_a_wrong_header_is_named(use_face):
    result = await use_face("apply_patch", input=f"Fix:\n```\n{patch('*** Change: a')}\n```")
    assert "on line 2: '*** Change: a' is not a valid hunk header" in join_texts(result.content)


def test_a_command_that_writes_a_fenced_patch_is_none():
    assert find_patch_in_command(f"cat > a.md <<'E'\nHow to:\n{FENCED}\nE\n") is None


def test_a_fence_without_an_end_is_no_fence():
    assert str(parse_patch(f"```\n{patch(UPDATE, '-x')}")) == f"Invalid patch: {FIRST}"


@pytest.mark.parametrize(
    ("text", "hunks"),
    [
        (patch(), ()),
        (patch("*** Add File: a b/c.txt", "+x", "+", "+ y"), (AddFile("a b/c.txt", "x\n\n y\n"),)),
        (patch("*** Add File: empty"), (AddFile("empty", ""),)),
        (patch("  *** Delete File: a  ", "*** Delete File: b"), (DeleteFile("a"), DeleteFile("b"))),
        (patch(UPDATE, "-old", "+new"), (update(chunk("-old", "+new")),)),
        (patch(UPDATE, "@@", " a", "", "-b"), (update(chunk(" a", " ", "-b")),)),
        (patch(UPDATE, "@@ def f():", "+x"), (update(chunk("+x", contexts=("def f():",))),)),
        (
            patch(UPDATE, "@@ class A", "@@   def f():", "-x"),
            (update(chunk("-x", contexts=("class A", "  def f():"))),),
        ),
        (patch(UPDATE, "@@ class A", "@@", "-x"), (update(chunk("-x", contexts=("class A",))),)),
        (
            patch(UPDATE, "@@", "+x", "*** End of File", "", "@@", "-y"),
            (update(chunk("+x", at_end=True), chunk("-y", number=7)),),
        ),
        (
            patch(UPDATE, "", "-a", "@@ c", "+b", "*** Delete File: z"),
            (
                update(chunk("-a", number=4), chunk("+b", contexts=("c",), number=5)),
                DeleteFile("z"),
            ),
        ),
        (
            patch(UPDATE, "*** Move to: sub/b.txt", "@@", "-x"),
            (update(chunk("-x", number=4), move_to="sub/b.txt"),),
        ),
        (patch(UPDATE, "*** Move to: b.txt"), (update(move_to="b.txt"),)),
        (patch("*** Environment ID: here", "*** Delete File: a"), (DeleteFile("a"),)),
        (patch("*** Delete File: a").replace("\n", "\r\n"), (DeleteFile("a"),)),
        (f"\ufeff\n  {patch('*** Delete File: a')}  \n\n", (DeleteFile("a"),)),
        ("<<'EOF'\n" + patch("*** Delete File: a") + "\nEOF\n", (DeleteFile("a"),)),
        ('cat <<"PATCH"\n' + patch("*** Delete File: a") + "\nPATCH", (DeleteFile("a"),)),
        (patch(UPDATE, "@@", "+\u2028x\x85"), (update(chunk("+\u2028x\x85")),)),
    ],
)
def test_a_patch_is_read(text, hunks):
    """M082"""
    assert parse_patch(text) == hunks


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("", FIRST, None),
        ("hello", FIRST, None),
        ("*** Begin Patch", LAST, None),
        ("*** Begin Patch\n*** Add File: a\n+x", LAST, None),
        ("*** Add File: a\n+x\n*** End Patch", FIRST, None),
        ("<<EOF\n*** Begin Patch\n*** Delete File: a\nEOF", LAST, None),
        ("<<EOF\n" + patch("*** Delete File: a"), FIRST, None),
        (patch("*** Environment ID: "), "apply_patch environment_id cannot be empty", None),
        (
            patch("*** Rename File: a"),
            f"'*** Rename File: a' is not a valid hunk header. {HEADERS}",
            2,
        ),
        (patch("*** Add File:"), f"'*** Add File:' is not a valid hunk header. {HEADERS}", 2),
        (
            patch("*** Add File: a", "+x", "", "*** Delete File: b"),
            f"'' is not a valid hunk header. {HEADERS}",
            4,
        ),
        (
            patch("*** Delete File: a", "-x"),
            f"'-x' is not a valid hunk header. {HEADERS}",
            3,
        ),
        (patch("*** Delete File: z", UPDATE), "Update file hunk for path 'a.txt' is empty", 3),
        (patch(UPDATE, "", "  "), "Update file hunk for path 'a.txt' is empty", 2),
        (patch(UPDATE, "@@"), NO_LINES, 4),
        (patch(UPDATE, "@@ x", "*** End of File"), NO_LINES, 4),
        (patch(UPDATE, "@@", "bad"), EVERY_LINE.format("bad"), 4),
        (patch(UPDATE, "bad"), EVERY_LINE.format("bad"), 3),
        (patch(UPDATE, "@@", "*** Delete File: b"), EVERY_LINE.format("*** Delete File: b"), 4),
        (
            patch(UPDATE, "-a", "bad"),
            AFTER_A_CHUNK,
            4,
        ),
        (
            patch(UPDATE, "-a", " *** Move to: b", "*** Move to: c"),
            f"'*** Move to: c' is not a valid hunk header. {HEADERS}",
            5,
        ),
    ],
)
def test_the_first_line_that_makes_no_sense_is_named(text, message, line):
    """M082"""
    assert parse_patch(text) == InvalidPatch(message, line)


def test_a_syntax_error_is_reported_with_its_line():
    assert str(InvalidPatch("No", None)) == "Invalid patch: No"
    assert str(InvalidPatch("No", 7)) == "Invalid patch hunk on line 7: No"


PIECES = st.lists(
    st.sampled_from(
        [
            *("*** Begin Patch", "*** End Patch", "*** Add File: a", "*** Delete File: b", "@@"),
            *("*** Update File: c", "*** Move to: d", "*** End of File", "@@ x", "+x", "-x", " x"),
            *("", "x", "***", "<<EOF", "EOF", "\r", "\ufeff"),
        ]
    )
)


@given(PIECES.map("\n".join) | PIECES.map(lambda lines: patch(*lines)) | st.text())
def test_any_text_is_a_patch_or_says_why_not(text):
    found = parse_patch(text)
    assert isinstance(found, InvalidPatch) or all(
        isinstance(h, AddFile | DeleteFile | UpdateFile) for h in found
    )
