import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gong.summary.parse import parse_summary
from gong.summary.prompt import find_focus, find_length
from gong.summary.rules import LIMIT, summarize_pieces
from gong.summary.transcript import (
    FAILED_PREFIX,
    TranscriptPiece,
    format_transcript,
    measure_transcript,
    parse_transcript,
)
from tape.model.entries import Summary
from tape.model.summary import render_summary

LIKE_MARKS = st.sampled_from(["=== user", "=== end", "\\=== tool: x", "=== ", "\n", "\\", "a"])
TEXTS = st.text(max_size=80) | st.lists(LIKE_MARKS, max_size=6).map("\n".join)
ROLES = st.sampled_from(["user", "assistant", "tool", "summary"])


@given(st.lists(st.builds(TranscriptPiece, role=ROLES, text=TEXTS, name=TEXTS), max_size=6))
def test_a_transcript_of_any_content_is_read_back(pieces):
    text = format_transcript(pieces)
    assert parse_transcript(text) == tuple(pieces)
    assert measure_transcript(pieces) == len(text)
    assert parse_transcript(
        f"Summarise.\nFocus\n\n{format_transcript(pieces)}\n\nNow.\n=== user\nx"
    ) == tuple(pieces)


def test_lines_before_the_transcript_say_focus_and_length():
    text = (
        "x\nPay special attention to: the parser \nCharacters the summary may have at most: 900\n"
    )
    assert (find_focus(text), find_length(text)) == ("the parser", 900)
    inside = format_transcript([TranscriptPiece("user", text)])
    assert (find_focus(inside), find_length(inside)) == ("", None)


def said(*texts):
    """Return pieces: what the user says, then an answer, and so on; None is no answer."""
    roles = ("user", "assistant")
    return [TranscriptPiece(roles[i % 2], text) for i, text in enumerate(texts) if text is not None]


def test_each_part_of_a_digest_is_quoted_from_its_source():
    pieces = [
        *said(
            "Fix the login. It must never log the password.",
            "We use argon2 now. Login is fixed.",
            "note: the staging port is 8143",
            "Noted.",
            "deploy it",
            "Deploying.",
        ),
        TranscriptPiece("tool", f"{FAILED_PREFIX}ssh: connection refused\nat line 3", "bash"),
        *said("write the changelog"),
    ]
    summary = summarize_pieces(pieces)
    assert summary.goal == "Fix the login. It must never log the password."
    assert summary.constraints == ("It must never log the password.",)
    assert summary.done == (
        "Fix the login. It must never log the password. → Login is fixed.",
        "note: the staging port is 8143 → Noted.",
    )
    assert summary.in_progress == ("write the changelog",)
    assert summary.blocked == ("deploy it → bash: ssh: connection refused",)
    assert summary.decisions == ("The agent said: We use argon2 now.",)
    assert summary.next_steps == ("Finish: write the changelog",)
    assert summary.critical_context == (
        "note: the staging port is 8143",
        "Error: bash: ssh: connection refused",
    )


def test_a_request_that_succeeds_later_is_no_longer_blocked():
    first = summarize_pieces(said("deploy it", "It failed: no disk."))
    assert first.blocked == ("deploy it → It failed: no disk.",)
    again = summarize_pieces(
        [TranscriptPiece("summary", render_summary(first)), *said("deploy it", "It is live.")]
    )
    assert again.blocked == ()


def test_words_of_the_focus_weigh_more():
    facts = [f"The {name} lies on shelf {n}." for n, name in enumerate("abcdefghijklmnop")]
    pieces = said(*(x for fact in facts for x in (fact.replace("The ", "The box "), "ok")))
    assert "box c " in render_summary(summarize_pieces(pieces, "box c lies on shelf 2", 900))


FACTS = (
    "remember that the staging port is 8143",
    "The code word is BLUE-HERON.",
    "note: the release manager is called Ingrid",
    "We deploy on Thursdays only.",
    "请记住数据库的密码在 /etc/db.key 里",
    "测试服务器的名字叫青松。",
    "Never push to main directly.",
    "Customers in Norway pay in kroner.",
    "My editor is helix, by the way.",
)
NOISE = (
    "read file_{0}.txt",
    "run echo step {0}",
    "explain module number {0} to me please",
    "The widget {0} belongs to bin {1}.",
    "what is in box {0}?",
    "列出目录 {0}",
)


def generation(number, planted, chance):
    """Yield 200 turns, the planted facts somewhere among them."""
    places = dict(zip(chance.sample(range(200), len(planted)), planted, strict=True))
    for turn in range(200):
        n = number * 200 + turn
        yield TranscriptPiece("user", places.get(turn) or chance.choice(NOISE).format(n, n * 3))
        yield TranscriptPiece("assistant", f'I look.\nbash(command="x {n}")')
        yield TranscriptPiece(
            "tool", f"{FAILED_PREFIX if n % 9 == 0 else ''}line {n}\n" * 30, "bash"
        )
        yield TranscriptPiece(
            "assistant", f"I looked. The file number {n} has {n} lines; it begins: x{n}"
        )


@pytest.mark.parametrize("seed", range(3))
def test_facts_survive_five_generations_of_summaries_without_growth(seed):
    """M157, M160: what was said early is still there after five compactions, made by rules."""
    chance, summary = random.Random(seed), None
    for number in range(5):
        planted = FACTS if number == 0 else ()
        first = [TranscriptPiece("summary", render_summary(summary))] if summary else []
        summary = summarize_pieces([*first, *generation(number, planted, chance)])
        text = render_summary(summary)
        assert [fact for fact in FACTS if fact not in text] == []
        assert len(text) <= LIMIT
        assert parse_summary(text) == summary
    assert sum("1 request" in item or "requests: " in item for item in summary.done) == 1


def test_what_a_model_found_worth_keeping_is_kept_before_chatter():
    terse = ("eu-west, 3 replicas", "Redis 7", "Ingrid: billing")
    summary = Summary(goal="x", critical_context=terse)
    for number in range(3):
        first = TranscriptPiece("summary", render_summary(summary))
        chatter = [f"Some {a}{b} talk of no use to me" for a in "abcdefghij" for b in "klmnopqrst"]
        pieces = (x for n, t in enumerate(chatter) for x in said(f"{t}, {number}", f"ok {n}"))
        summary = summarize_pieces([first, *pieces], limit=2000)
        assert summary.critical_context[:3] == terse


PIECES = st.lists(st.builds(TranscriptPiece, role=ROLES, text=st.text(max_size=400)), max_size=12)


@given(PIECES, st.integers(200, 2000))
def test_a_digest_keeps_to_its_limit_and_reads_back(pieces, limit):
    summary = summarize_pieces(pieces, limit=limit)
    text = render_summary(summary)
    assert len(text) <= limit
    assert all("\n" not in item for item in summary.critical_context)


def test_a_long_paste_pushes_out_nothing_that_was_to_be_remembered():
    log = "\n".join(f"The worker {n} is at {n * 7} % of shard {n}-{n}" for n in range(4_000))
    pieces = said("Remember the key is in vault/7.", "Noted.", log, "I see.")
    summary = summarize_pieces(pieces)
    assert "Remember the key is in vault/7." in summary.critical_context
    assert len(render_summary(summary)) <= LIMIT
