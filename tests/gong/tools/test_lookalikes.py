"""Texts that look the same are the same to the tool edit, to patches and to blame alike."""

import pytest

from gong.tools.patch.update import SeekLines, seek_lines
from gong.tools.text_files import find_text
from tape.blame.replay import AttributedChange, BlamedRange, attribute_lines
from tape.files.calls import FileEdit, FileWrite, PatchHunk
from tape.lookalikes import replace_lookalikes

CLASSES = {
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
    "'": "\u2018\u2019\u201a\u201b",
    '"': "\u201c\u201d\u201e\u201f",
    " ": "\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
}
"""What M071 and M082 name."""
SAME = {" ": "\u2000\u2001"}
"""What Unicode defines as the same as U+2002 and U+2003."""
PAIRS = [
    pytest.param(odd, plain, id=f"U+{ord(odd):04X}")
    for classes in (CLASSES, SAME)
    for plain, odds in classes.items()
    for odd in odds
]


@pytest.mark.parametrize(("odd", "plain"), PAIRS)
def test_an_edit_a_patch_and_blame_find_the_same_line(odd, plain):
    line, wanted = f"a{odd}b", f"a{plain}b"
    hunk = FileEdit((PatchHunk((wanted,), ("new",)),))
    wrote = FileWrite(f"{line}\nnew\n", created=True)
    history = [AttributedChange("old", wrote), AttributedChange("patch", hunk)]
    assert find_text(line, wanted).spans == ((0, len(line)),)
    assert seek_lines(SeekLines([line]), [wanted], 0) == (
        0,
        "indentation and typographic characters",
    )
    assert attribute_lines("new\nnew\n", history) == [
        BlamedRange(1, 1, "patch"),
        BlamedRange(2, 2, "old"),
    ]


def test_nothing_else_is_made_plain():
    kept = "".join(map(chr, range(0x110000)))
    for odds in (*CLASSES.values(), *SAME.values()):
        for odd in odds:
            kept = kept.replace(odd, "")
    assert replace_lookalikes(kept) == kept
