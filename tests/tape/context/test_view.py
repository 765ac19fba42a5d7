from tape.context.view import View, view
from tape.model.entries import Anchor, Note, Place, Summary
from tape.model.line import Entry
from tape.model.summary import render_summary
from tests.tape import making


def entry(n, payload):
    return Entry(f"{n:040x}", 1, None, n, "", "", payload)


def anchor(n, summary="what was"):
    place = Place(phase="0001-main-start", offset=0, entry="")
    name = "0002-main-compaction"
    anchor = Anchor(phase=name, branch="main", base=place, kind="compaction", summary=summary)
    return entry(n, anchor)


SAID = [entry(n, making.say(str(n))) for n in range(4)]


def test_without_an_anchor_the_model_sees_the_whole_path():
    assert view(SAID) == View(None, (), tuple(SAID))
    assert view([]) == View(None, (), ())


def test_the_newest_anchor_and_what_it_keeps_replace_all_before():
    path = [SAID[0], anchor(5, "old"), SAID[1], anchor(6, "new"), SAID[3]]
    assert view(path, kept=SAID[2:3]) == View("new", (SAID[2],), (SAID[3],))


def test_an_anchor_at_the_end_leaves_only_its_summary():
    assert view([*SAID, anchor(9)]) == View("what was", (), ())


def test_the_path_is_not_touched():
    path = [SAID[0], anchor(5), entry(6, Note("x"))]
    before = list(path)
    assert view(path) == view(tuple(path))
    assert path == before


def test_a_summary_reads_as_markdown_without_empty_sections():
    summary = Summary(
        goal="Fix it",
        done=("looked", "found"),
        next_steps=("mend",),
        files_read=("a.py",),
        requests=("Please fix it\nnow",),
    )
    assert render_summary(summary) == (
        "## Goal\nFix it\n\n## Done\n- looked\n- found\n\n## Next steps\n- mend\n\n"
        "## Files read\n- a.py\n\n## The user's own requests, word for word\n- Please fix it\nnow"
    )
    assert render_summary(Summary()) == ""
    assert render_summary("as it is") == "as it is"
