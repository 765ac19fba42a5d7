import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from gong.errors import SummaryUnusable
from gong.summary.parse import validate_summary
from gong.summary.prompt import (
    RESULT_LIMIT,
    SUMMARISER,
    build_pieces,
    build_summary_prompt,
    find_focus,
    find_length,
)
from gong.summary.rules import summarize_pieces
from gong.summary.transcript import FAILED_PREFIX, TranscriptPiece, parse_transcript
from gong.summary.verbatim import SummaryFolders, complete_summary
from tape.model.entries import (
    Anchor,
    Assistant,
    BlobRef,
    Context,
    Image,
    Note,
    Summary,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    User,
)
from tape.model.line import Entry
from tape.model.summary import render_summary


def path(*payloads):
    return [
        Entry(f"{n:08x}{'0' * 32}", 1, None, n, "", "", payload)
        for n, payload in enumerate(payloads, 1)
    ]


def text(said):
    return (Text(said),)


def call(number, name, **args):
    return ToolCall(id=number, name=name, args=Raw(json.dumps(args).encode()))


def test_entries_are_shown_with_their_speakers_and_calls_in_brief():
    """M157: what a summariser is given; thinking and broken answers stay out."""
    picture = Image(blob=BlobRef("0" * 64, 3), mime="image/png")
    shown = build_pieces(
        path(
            User((*text("look"), picture)),
            Assistant(
                (Thinking("hm"), *text("I look."), call("a", "bash", command="ls", timeout=3))
            ),
            ToolResult("a", "bash", text("b.txt")),
            Context("user", "steering", text("faster")),
            Context("system", "documents", text("a whole page")),
            Assistant((ToolCall(id="b", name="apply", args_text="*** Begin" + "x" * 500),)),
            ToolResult("b", "apply", text("no"), is_error=True),
            Assistant(text("half an ans"), stop_reason="aborted"),
            Note("for people"),
            Assistant(text(" ")),
            Anchor(kind="merge", summary="what a branch did"),
        ),
        None,
    )
    asked, answered, listed, steered, patched, refused, merged = shown
    assert asked == TranscriptPiece("user", "look\n[picture]")
    assert answered == TranscriptPiece("assistant", 'I look.\nbash(command="ls", timeout=3)')
    assert listed == TranscriptPiece("tool", "b.txt", "bash")
    assert steered == TranscriptPiece("user", "faster")
    assert patched.text.startswith("apply(*** Begin")
    assert len(patched.text) < 200
    assert refused == TranscriptPiece("tool", f"{FAILED_PREFIX}no", "apply")
    assert merged == TranscriptPiece("summary", "what a branch did")


def test_long_results_are_cut_in_the_middle():
    (shown,) = build_pieces(path(ToolResult("a", "bash", text("a" * 5000 + "z" * 5000))), None)
    assert shown.text == f"{'a' * 1000}\n[8000 characters left out]\n{'z' * 1000}"
    assert RESULT_LIMIT == 2000


def test_the_earlier_summary_comes_first_without_what_is_put_in_again():
    earlier = Summary(goal="ship", done=("a",), files_read=("r",), requests=("do it",))
    first, _ = build_pieces(path(User(text("go"))), earlier)
    assert first == TranscriptPiece("summary", "## Goal\nship\n\n## Done\n- a")
    assert build_pieces([], "in words") == [TranscriptPiece("summary", "in words")]
    assert build_pieces([], Summary()) == []


SAID = [
    TranscriptPiece("user", "go"),
    TranscriptPiece("tool", "x" * 3000, "bash"),
    TranscriptPiece("tool", "short", "ls"),
]
SECTIONS = (
    *("Goal", "Constraints & Preferences", "Progress", "Done", "In Progress", "Blocked"),
    *("Key Decisions", "Next Steps", "Critical Context"),
)
ASKED_FOR = (
    *("What the user wants", "Files that were changed", "snippets of code", "errors that"),
    *("what fixed them", "being worked on", "Open tasks", "what comes next", "no tools"),
)


def test_the_request_names_every_section_and_allows_no_tools():
    """M157 and M163: the sections of a summary; no tools in that call."""
    system, user = build_summary_prompt(SAID, budget_chars=10_000)
    assert system.startswith(SUMMARISER)
    headings = [line.lstrip("# ") for line in system.split("\n") if line.startswith("#")]
    assert tuple(headings) == SECTIONS
    assert [words for words in ASKED_FOR if words not in system] == []
    assert parse_transcript(user) == tuple(SAID)
    assert "UPDATE" not in user
    assert (find_focus(user), find_length(user)) == ("", None)


def test_a_request_says_what_is_special_about_it():
    """M157: an earlier summary is updated; M156: a turn may be cut; M164: a focus."""
    said = [TranscriptPiece("summary", "## Goal\nx"), *SAID]
    user = build_summary_prompt(
        said, focus=" the\nlogin ", split_turn=True, budget_chars=9999, answer_chars=5
    ).user
    assert "UPDATE" in user
    assert "in the middle of a turn" in user
    assert (find_focus(user), find_length(user)) == ("the login", 5)
    assert parse_transcript(user) == tuple(said)


def test_the_longest_pieces_are_cut_first_and_never_the_user_s_words():
    said = [
        TranscriptPiece("user", "u" * 2500),
        TranscriptPiece("tool", "a" * 9000),
        TranscriptPiece("tool", "b" * 300),
    ]
    shown = parse_transcript(build_summary_prompt(said, budget_chars=4000).user)
    assert (shown[0], shown[2]) == (said[0], said[2])
    assert 800 < len(shown[1].text) < 1200


def test_of_too_many_pieces_the_oldest_answers_are_left_out():
    said = [
        TranscriptPiece("user", "first"),
        *[TranscriptPiece("tool", f"{n}" * 400) for n in range(100)],
    ]
    shown = parse_transcript(
        build_summary_prompt([*said, TranscriptPiece("user", "last")], budget_chars=3000).user
    )
    assert (shown[1].text, shown[-1].text) == ("first", "last")
    assert shown[0].text.endswith("older answers and results left out]")
    assert shown[-2].text.startswith("99")


PIECES = st.lists(
    st.builds(
        TranscriptPiece,
        role=st.sampled_from(["user", "assistant", "tool"]),
        text=st.integers(0, 4000).map(lambda n: "x" * n),
    ),
    max_size=30,
)


@given(PIECES, st.integers(1000, 8000))
def test_a_transcript_keeps_to_its_budget_and_to_the_users_words(said, budget):
    own = [piece for piece in said if piece.role == "user"]
    user = build_summary_prompt(said, budget_chars=budget).user
    shown = [piece for piece in parse_transcript(user) if piece.role == "user"]
    if sum(len(piece.text) + 20 for piece in own) + 200 < budget:
        assert shown == own
    assert len(shown) == len(own)
    assert len(user) - len(build_summary_prompt([], budget_chars=budget).user) <= max(
        budget, 200 * (len(own) + 1)
    )


GOOD = "## Goal\nShip release 2.\n\n## Done\n- lint is clean\n"


def test_a_summary_of_a_model_is_read():
    assert validate_summary(GOOD) == Summary(goal="Ship release 2.", done=("lint is clean",))


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("", "is empty"),
        ("Sure, the user wanted a release and I made one.", "names no goal"),
        ("## Goal\nShip release 2, with everything in it.", "nothing but a goal"),
        ("## Goal\nx\n## Done\n- y", "too short"),
        ("I'm sorry, but I can't help with that.", "refus"),
        ("抱歉，我无法总结这段对话。", "refus"),
        ("## Goal\nI cannot do that\n\n## Done\n- nothing was done here", "refus"),
        ('<tool_call>{"name": "read"}</tool_call>', "tool call"),
        ('```json\n{"name": "read", "arguments": {}}\n```', "tool call"),
    ],
)
def test_what_is_no_summary_is_refused(said, why):
    """M160: an unusable summary is an error, not a summary."""
    with pytest.raises(SummaryUnusable, match=why):
        validate_summary(said)


def test_a_digest_is_a_summary_that_can_be_read():
    summary = summarize_pieces(
        [
            TranscriptPiece("user", "Fix the login of the shop"),
            TranscriptPiece("assistant", "Fixed."),
        ]
    )
    assert validate_summary(render_summary(summary)) == summary


def test_requests_and_files_are_put_in():
    entries = path(
        User(text("read it")),
        Assistant((call("a", "read", path="b.txt"),)),
        ToolResult("a", "read", text("x")),
    )
    earlier = Summary(goal="old", files_changed=("c.txt",), requests=("begin",))
    whole = complete_summary(validate_summary(GOOD), entries, earlier, folders=SummaryFolders("/w"))
    assert whole == Summary(
        goal="Ship release 2.",
        done=("lint is clean",),
        files_read=("b.txt",),
        files_changed=("c.txt",),
        requests=("begin", "read it"),
    )
