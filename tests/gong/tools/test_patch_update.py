import pytest
from hypothesis import given
from hypothesis import strategies as st

from gong.tools.patch.parse import parse_patch
from gong.tools.patch.plan import PatchPlan, plan_patch
from gong.tools.patch.update import normalize_line, patch_file

CLASSES = b"class A:\n    def f():\n        pass\n\nclass B:\n    def f():\n        pass\n"
IN_B = CLASSES.removesuffix(b"pass\n") + b"ok\n"


def envelope(body):
    return f"*** Begin Patch\n*** Update File: a.txt\n{body}\n*** End Patch"


def update(data, body):
    (hunk,) = parse_patch(envelope(body))
    return patch_file(data, hunk)


@pytest.mark.parametrize(
    ("data", "body", "after"),
    [
        (b"a\nb\nc\n", "@@\n a\n-b\n+B\n c", b"a\nB\nc\n"),
        (b"a\nb\nc\n", "-b\n+B", b"a\nB\nc\n"),
        (b"a\nb\n", "@@\n+c", b"a\nb\nc\n"),
        (b"a\n\n", "@@\n+c", b"a\nc\n\n"),
        (b"a\r\n\r\n", "@@\n+c", b"a\r\n\r\nc\r\n"),
        (b"a\nb\n", "@@\n+c\n*** End of File", b"a\nb\nc\n"),
        (b"a\nb\n", "@@ a\n+x\n*** End of File", b"a\nb\nx\n"),
        (b"a\nb\n", "@@ a\n+x", b"a\nx\nb\n"),
        (b"", "@@\n+a", b"a\n"),
        (b"", "@@\n \n+a", b"\na\n"),
        (b"a\n", "@@\n-a", b""),
        (b"a", "@@\n-a\n+b", b"b\n"),
        (b"a", "@@\n+b", b"a\nb\n"),
        (b"x\na\nx\na\n", "@@\n x\n-a\n+1\n@@\n x\n-a\n+2", b"x\n1\nx\n2\n"),
        (b"a\nb\na\nb\n", "@@\n-b\n+B\n*** End of File", b"a\nb\na\nB\n"),
        (b"a\nb\nc\n", "@@\n-b\n+B\n*** End of File", b"a\nB\nc\n"),
        (CLASSES, "@@ class B:\n@@     def f():\n-        pass\n+        ok", IN_B),
        (CLASSES, "@@ class B:\n     def f():\n-        pass\n+        ok", IN_B),
        (
            b"class A:\n  x\n  y\n",
            "@@ class A:\n-  x\n+  X\n@@ class A:\n-  y\n+  Y",
            b"class A:\n  X\n  Y\n",
        ),
        (b"a\nb\n", "@@ -1,2 +1,2 @@ def f()\n a\n-b\n+B", b"a\nB\n"),
        (b"a\nb\n", "@@ -1 +1,2 @@\n+x", b"a\nb\nx\n"),
        (CLASSES, "@@ class B:\n class B:\n     def f():\n-        pass\n+        ok", IN_B),
        (b"a\nb\n", "@@\n a\n-b\n+B\n\n\n", b"a\nB\n"),
        (b"a\nb\n", "@@\n-a\n-b\n-\n+A\n+", b"A\n"),
        (b"a\nb\n", "@@\n b\n\n+c", b"a\nb\n\nc\n"),
        (b"a\r\nb\r\n", "@@\n a\n-b\n+B\n+C", b"a\r\nB\r\nC\r\n"),
        (b"a\r\nb\nc", "@@\n a\n b\n+B\n c", b"a\r\nb\nB\r\nc"),
        (b"a \nb\n", "@@\n a\n-b\n+B", b"a \nB\n"),
        (b"\xef\xbb\xbfa\n", "@@\n-a\n+b", b"\xef\xbb\xbfb\n"),
        (b"\xef\xbb\xbfa\n", "@@\n+x\n a", b"\xef\xbb\xbfx\na\n"),
        ("–“x”\n old\n".encode(), '@@\n -"x"\n-old\n+new', "–“x”\nnew\n".encode()),
        (b"a\rb\nc\n", "@@\n-c\n+d", b"a\rb\nd\n"),
        ("a\u2028b\n".encode(), "@@\n-a\u2028b\n+c", b"c\n"),
    ],
)
def test_chunks_are_put_in(data, body, after):
    """M082"""
    result = update(data, body)
    assert (result.data, result.failures) == (after, ())


def test_lines_for_the_end_do_not_fall_into_lines_that_go():
    result = update(b"a\n\n", "@@\n+end\n@@\n-a\n \n+b")
    assert (result.data, result.failures) == (b"\nb\nend\n", ())


@pytest.mark.parametrize(
    ("data", "body", "failure"),
    [
        (
            b"one\ntwo\nthree\n",
            "@@\n one\n-zwei\n+2\n three",
            (
                "Failed to find expected lines in a.txt:\none\nzwei\nthree\n"
                "Nearest in the file, 2 of 3 lines agree:\n1 one\n2 two\n3 three\n"
                "The first difference is at line 2:\n  expected 'zwei'\n  got      'two'\n"
                "Chunk 1 of 1, at line 3 of the patch."
            ),
        ),
        (
            b"a\nprint(x)\n",
            "@@\n-print(y)\n+1",
            (
                "Failed to find expected lines in a.txt:\nprint(y)\n"
                "Nearest in the file, 0 of 1 lines agree:\n2 print(x)\n"
                "The first difference is at line 2:\n  expected 'print(y)'\n  got      'print(x)'\n"
                "Chunk 1 of 1, at line 3 of the patch."
            ),
        ),
        (
            b"a\nb\n",
            "@@\n b\n-c\n",
            (
                "Failed to find expected lines in a.txt:\nb\nc\n"
                "Nearest in the file, 1 of 2 lines agree:\n2 b\n"
                "The first difference is at line 3:\n"
                "  expected 'c'\n  got      the end of the file\n"
                "Chunk 1 of 1, at line 3 of the patch."
            ),
        ),
        (
            b"first\nsecond\n",
            "@@\n-second\n+2\n@@\n-first\n+1",
            (
                "Failed to find expected lines in a.txt:\nfirst\n"
                "They stand at line 1, above the place reached: line 3."
                " Chunks come in the order of the file; put this one earlier.\n"
                "Chunk 2 of 2, at line 6 of the patch."
            ),
        ),
        (
            b"one\ntwo\n",
            "@@\n-zero\n+one\n+two",
            (
                "Failed to find expected lines in a.txt:\nzero\n"
                "The lines it would put in stand at line 1: it may be done already.\n"
                "Chunk 1 of 1, at line 3 of the patch."
            ),
        ),
        (
            b"",
            "@@\n-x",
            (
                "Failed to find expected lines in a.txt:\nx\nThe file is empty.\n"
                "Chunk 1 of 1, at line 3 of the patch."
            ),
        ),
        (
            b"def g():\n",
            "@@ class Q\n+x",
            (
                "Failed to find context 'class Q' in a.txt\nNothing in the file is like them.\n"
                "Chunk 1 of 1, at line 3 of the patch."
            ),
        ),
        (
            b"a\nb\n",
            "@@\n b\n@@ a\n+x",
            (
                "Failed to find context 'a' in a.txt\n"
                "They stand at line 1, above the place reached: line 3."
                " Chunks come in the order of the file; put this one earlier.\n"
                "Chunk 2 of 2, at line 5 of the patch."
            ),
        ),
    ],
)
def test_a_chunk_without_a_place_is_explained(data, body, failure):
    """M082"""
    assert update(data, body).failures == (failure,)


def test_all_chunks_without_a_place_are_named_together():
    result = update(b"a\nb\nc\n", "@@\n-x\n@@\n-b\n+B\n@@\n-y")
    assert [text.split("\n")[-1] for text in result.failures] == [
        "Chunk 1 of 3, at line 3 of the patch.",
        "Chunk 3 of 3, at line 8 of the patch.",
    ]
    assert result.data == b"a\nB\nc\n"


def test_a_long_chunk_is_shown_in_part():
    body = "@@\n" + "\n".join(f"-{n} {'x' * 300}" for n in range(40))
    (text,) = update(b"z\n", body).failures
    assert "\n... (28 more lines)\n" in text
    assert len(text) < 3_000


def test_what_was_overlooked_is_reported():
    """M082"""
    result = update(b"  a\nb  \n", "@@\n-a\n+A\n@@\n-b\n+B")
    assert result.notes == (
        "a.txt:1 matched apart from indentation.",
        "a.txt:2 matched apart from blanks at the ends of lines.",
    )


TEXT = st.text(
    st.characters(exclude_characters="\n\r\0\ufeff", exclude_categories=("Cs",)), max_size=6
)
LINES = st.lists(
    st.tuples(TEXT, st.sampled_from(["\n", "\r\n"])),
    max_size=12,
    unique_by=lambda line: normalize_line(line[0]),
)


@st.composite
def changed_files(draw):
    """A file without two lines alike, and its lines signed as kept, gone or come."""
    lines = draw(LINES)
    script = []
    for text, end in lines:
        script += [("+", draw(TEXT) + "new", "")] * draw(st.sampled_from([0, 0, 0, 1, 2]))
        script.append((draw(st.sampled_from("   -")), text, end))
    script += [("+", draw(TEXT) + "last", "")] * draw(st.integers(0, 2))
    ended = draw(st.booleans()) or not lines or not lines[-1][0]
    return lines, script, ended, draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))


def chunks(script, around):
    """Return the changed stretches of a script with lines around, those that touch as one."""
    stretches = []
    for place in (n for n, line in enumerate(script) if line[0] != " "):
        start, end = max(0, place - around), place + around + 1
        if stretches and stretches[-1][1] >= start:
            start = stretches.pop()[0]
        stretches.append((start, end))
    return [script[start:end] for start, end in stretches]


@given(changed_files(), st.integers(1, 4))
def test_a_patch_made_from_a_change_makes_that_change(change, around):
    """M082: context keeps its bytes, and a last line without an end; new lines end as the first."""
    lines, script, ended, bom = change
    ends = [end for _, end in lines] if ended else [*(end for _, end in lines[:-1]), ""]
    before = bom + "".join(text + end for (text, _), end in zip(lines, ends, strict=True)).encode()
    first = next((end for end in ends if end), "\n")
    if not ended:
        script = _with_last_end(script, first)
    wanted = (
        bom
        + "".join(
            text + (end if sign == " " else first) for sign, text, end in script if sign != "-"
        ).encode()
    )
    body = "\n".join(
        "@@\n" + "\n".join(sign + text for sign, text, _ in chunk)
        for chunk in chunks(script, around)
    )
    if not body:
        return
    made = plan_patch(parse_patch(envelope(body)), {"a.txt": before}.get)
    assert isinstance(made, PatchPlan), made
    assert made.operations[0].after == wanted
    assert made.notes == ()


def _with_last_end(script, first):
    """Return the script with the end of the file's last line: none, but where lines follow it."""
    place = max(n for n, line in enumerate(script) if line[0] != "+")
    sign, text, _ = script[place]
    end = "" if place == len(script) - 1 else first
    return [*script[:place], (sign, text, end), *script[place + 1 :]]
