"""Compaction on real tapes: when it happens, what stays, what is said of it, and its undo."""

from __future__ import annotations

import asyncio
import random
from contextlib import aclosing

import msgspec
import pytest
from msgspec.structs import replace

from gong.agent import events
from gong.agent.compaction import CompactionRequest, find_kept_ranges
from gong.agent.context_window import measure_fill
from gong.agent.recorder import find_last_model
from gong.agent.setup import SessionSetup
from gong.assembly.opening import open_session
from gong.config import CompactionSettings, Settings
from gong.errors import NothingToCompact, NothingToUndo, NotSmaller, SessionBusy
from tape.model.entries import Anchor, Assistant, Custom, SideUsage, Text, join_texts
from tape.model.summary import render_summary
from tests.gong.agent.conftest import call, seen, types
from tests.gong.context.histories import path

GOOD = """\
## Goal
Find out why the build fails.

## Constraints & Preferences
- never touch vendor/

## Progress
### Done
- read the log

## Key Decisions
- look at the linker first

## Next Steps
- run make

## Critical Context
- the error is `undefined symbol: frobnicate`
"""
WORDS = [
    "lorem",
    "ipsum",
    "dolor",
    "sit",
    "amet",
    "consectetur",
    "adipiscing",
    "elit",
    "sed",
    "do",
    "eiusmod",
    "tempor",
]


def noise(seed, words=400):
    chance = random.Random(seed)
    return " ".join(chance.choice(WORDS) for _ in range(words))


def compaction(**fields):
    return {"compaction": CompactionSettings(**fields)}


def window(stage, tokens, number=0):
    """Return settings that give the script of a coming host a window."""
    script = stage.folder.parent / f"script{number}.json"
    return {"models": {f"scripted/{script}": {"context_window": tokens}}}


async def compacted(session, **wish):
    async with aclosing(session.compact(CompactionRequest("user", **wish))) as stream:
        return [event async for event in stream]


def next_request(session):
    return session.build_run_context().prepare_next_call().request


def request(session):
    return msgspec.json.encode(tuple(next_request(session).messages))


async def talk(session, turns, words=400):
    for turn in range(turns):
        await seen(session, f"prompt {turn}: {noise(turn, words)}")


async def test_the_older_part_becomes_a_summary_and_the_newest_messages_stay(stage):
    """M155 M156 M157 J12-2.2 J12-2.3 J12-3.3: a legal cut, headings, an anchor."""
    session = await stage.session(
        *({"text": f"answer {n} {noise(n)}"} for n in range(10)), {"text": GOOD}
    )
    await talk(session, 10)
    before, system = (
        len(request(session)),
        next_request(session).system,
    )
    told = await compacted(session)
    assert next_request(session).system == system
    assert [type(event) for event in told] == [events.CompactionStart, events.CompactionEnd]
    anchor = session.recorder.path[0].data
    assert isinstance(anchor, Anchor)
    assert (anchor.kind, anchor.reason) == ("compaction", "user")
    assert anchor.summary.goal == "Find out why the build fails."
    assert anchor.summary.critical_context == ("the error is `undefined symbol: frobnicate`",)
    assert anchor.summary.requests[0].startswith("prompt 0")
    assert anchor.by.provider == "scripted"
    assert anchor.covers.count > 10
    assert anchor.tokens.after < anchor.tokens.before * 0.4
    messages = next_request(session).messages
    assert join_texts(messages[0].content) == render_summary(anchor.summary)
    assert join_texts(messages[-1].content).startswith("answer 9")
    assert len(request(session)) < before * 0.4


async def test_undo_is_one_line_and_gives_the_same_request(stage):
    """M160: what a compaction covered comes back, byte for byte."""
    session = await stage.session(*({"text": noise(n)} for n in range(6)), {"text": GOOD})
    await talk(session, 6)
    before = request(session)
    await compacted(session)
    assert request(session) != before
    (journal,) = stage.store.tapes.glob("*/refs.jsonl")
    refs = journal.read_bytes()
    session.undo()
    after = journal.read_bytes()
    assert after.startswith(refs)
    assert after[len(refs) :].count(b"\n") == 1
    assert request(session) == before
    with pytest.raises(NothingToUndo):
        session.undo()


async def test_undo_keeps_the_words_that_came_since_unless_forced(stage):
    session = await stage.session(
        *({"text": noise(n)} for n in range(4)), {"text": GOOD}, {"text": "since"}
    )
    await talk(session, 4)
    before = request(session)
    await compacted(session)
    await seen(session, "and now?")
    with pytest.raises(NothingToUndo, match="2 messages"):
        session.undo()
    session.undo(leave=True)
    assert request(session) == before


@pytest.mark.parametrize(
    "answer",
    [
        {"text": "I am sorry, I cannot do that."},
        {"text": ""},
        {"error": {"class": "ContextLengthExceeded", "message": "too long", "status": 400}},
        {"error": {"class": "AuthenticationError", "message": "no key", "status": 401}},
        {"text": "half", "error": {"class": "StreamError", "message": "cut", "after": 2}},
    ],
)
async def test_where_the_summariser_fails_rules_make_the_summary(stage, answer):
    """M160 J12-3.1: one try, then an extractive summary; nothing is lost and nothing goes round."""
    session = await stage.session(*({"text": noise(n)} for n in range(5)), answer)
    await seen(session, "remember that the port is 8143")
    await talk(session, 4)
    told = await compacted(session)
    warned = [event.message for event in told if isinstance(event, events.Warn)]
    assert len(warned) == 1
    assert "by rules" in warned[0]
    anchor = session.recorder.path[0].data
    assert anchor.by is None
    assert "remember that the port is 8143" in anchor.summary.requests


async def test_it_happens_by_itself_when_the_window_is_nearly_full(stage):
    """M155 M162 J12-2.1 J12-2.2: above window − reserve, before the call that would not fit."""
    answers = [{"text": noise(n), "usage": {"input": 10, "output": 10}} for n in range(5)]
    session = await stage.session(
        *answers[:4],
        {"text": "full", "usage": {"input": 16_100, "output": 5}},
        {"text": GOOD},
        {"text": "after"},
        **compaction(),
        **window(stage, 20_000),
    )
    await talk(session, 5)
    assert not any(isinstance(entry.data, Anchor) for entry in session.recorder.path)
    told = await seen(session, "go on")
    kinds = [type(event) for event in told]
    assert events.CompactionEnd in kinds
    assert kinds.index(events.CompactionEnd) < kinds.index(events.MessageStart)
    assert session.recorder.path[0].data.reason == "window"
    assert types(session) == ["anchor", "usage", "assistant"]
    usage = [
        entry.data
        for entry in session.recorder.tape.entries(session.recorder.head())
        if isinstance(entry.data, SideUsage)
    ]
    assert [one.purpose for one in usage] == ["compaction"]


@pytest.mark.parametrize(
    ("window_size", "settings", "limit"),
    [
        (200_000, {}, 200_000 - 16_384),
        (20_000, {}, 15_000),
        (200_000, {"limit": 50_000}, 50_000),
        (None, {"limit": 50_000}, 50_000),
        (None, {}, None),
    ],
)
async def test_it_is_due_above_the_window_less_its_reserve_or_a_limit(
    stage, window_size, settings, limit
):
    """M155 M162 C8: of a small window a quarter is kept free; 50,000 tokens are a setting."""
    known = {} if window_size is None else window(stage, window_size)
    session = await stage.session({"text": "x"}, **compaction(**settings), **known)
    assert session.setup.compaction.keep == 20_000
    await seen(session, "one")
    run = session.build_run_context()
    fill = measure_fill(run.prepare_next_call(), run.setup.compaction, run.window)
    assert fill.limit == limit


async def test_hard_replaces_all_by_the_summary_and_the_tape_keeps_all(stage):
    """M162 C32 C40: the whole record is on the tape, not in a file of its own."""
    session = await stage.session(*({"text": noise(n)} for n in range(3)), {"text": GOOD})
    await talk(session, 3)
    before = [entry.id for entry in session.recorder.path]
    await compacted(session, hard=True)
    (summary,) = next_request(session).messages
    assert summary.role == "user"
    assert join_texts(summary.content).startswith("## Goal\nFind out why the build fails.")
    tape = session.recorder.tape
    assert [entry.id for entry in tape.entries(tape.head())][: len(before)] == before


async def test_a_library_session_does_not_compact_by_default(stage):
    """C8 M024 M166: off for whoever builds on the session; on in the program."""
    session = await stage.session(
        {"text": "x", "usage": {"input": 30_000}}, {"text": "y"}, **window(stage, 20_000)
    )
    setup = session.setup
    session.setup = SessionSetup(setup.model, setup.tools, setup.env, setup.open)
    await seen(session, "one")
    told = await seen(session, "two")
    assert not any(isinstance(event, events.CompactionStart) for event in told)


async def test_an_overflow_is_compacted_once_and_asked_again_once(stage):
    """M208 C18: then the run ends with the error, and the session stays usable."""
    overflow = {"error": {"class": "ContextLengthExceeded", "message": "too long", "status": 400}}
    session = await stage.session(
        *({"text": noise(n)} for n in range(5)),
        overflow,
        {"text": GOOD},
        {"text": "fits now"},
        *[overflow] * 4,
        {"text": "still here"},
    )
    await talk(session, 5)
    told = await seen(session, "go on")
    assert [type(e) for e in told].count(events.CompactionEnd) == 1
    assert told[-1].stop_reason == "stop"
    told = await seen(session, "once more")
    assert told[-1].stop_reason == "error"
    assert any("too long for this model" in e.message for e in told if isinstance(e, events.Warn))
    session.run_state.in_row = 0


async def test_a_refused_history_is_sent_once_more_and_plainer(stage):
    """J9-5.3"""
    malformed = {"error": {"class": "MalformedHistory", "message": "bad order", "status": 400}}
    session = await stage.session({"text": "one"}, malformed, {"text": "two"}, malformed, malformed)
    await seen(session, "first")
    assert (await seen(session, "second"))[-1].stop_reason == "stop"
    assert (await seen(session, "third"))[-1].stop_reason == "error"


NO_OVERFLOW = {
    "J9-4.3: a rate limit": ("RateLimited", 429, "stop"),
    "J9-5.3: blocks out of order": ("MalformedHistory", 400, "stop"),
    "J9-5.6: a refused key": ("AuthenticationError", 401, "error"),
}
"""Each with how the run ends when only the first try is refused."""


@pytest.mark.parametrize("case", NO_OVERFLOW)
async def test_a_refusal_that_is_no_overflow_compacts_nothing(stage, case):
    """M160: it would lose the past for nothing."""
    kind, status, stop = NO_OVERFLOW[case]
    error = {"class": kind, "message": "tokens per minute", "status": status, "retry_after": 0.01}
    answers = [{"text": noise(n)} for n in range(5)]
    session = await stage.session(*answers, {"error": error}, {"text": "here"}, **compaction())
    await talk(session, 5)
    told = await seen(session, "go on")
    assert not any(isinstance(event, events.CompactionStart) for event in told)
    assert told[-1].stop_reason == stop
    assert types(session)[-1] == ("assistant" if stop == "stop" else "error")
    assert not any(isinstance(entry.data, Anchor) for entry in session.recorder.path)


async def test_the_model_may_ask_for_it_and_it_runs_before_the_next_step(stage):
    """M164: the tool answers at once; the compaction comes with the next iteration."""
    session = await stage.session(
        *({"text": noise(n)} for n in range(4)),
        {"tool_calls": [call("compact", focus="the linker")]},
        {"text": GOOD},
        {"text": "done"},
    )
    await talk(session, 4)
    told = await seen(session, "tidy up")
    (ended,) = (e for e in told if isinstance(e, events.ToolExecutionEnd))
    assert join_texts(ended.content) == (
        "Context compaction requested (focus: the linker). It runs before the next step."
    )
    kinds = [type(event) for event in told]
    assert kinds.index(events.ToolExecutionEnd) < kinds.index(events.CompactionEnd)
    assert session.recorder.path[0].data.reason == "model"


async def test_one_compaction_at_a_time_and_what_is_typed_meanwhile_waits(stage):
    """M031 M160 J9-4.4 J12-3.2: a lock, and no word is lost."""
    session = await stage.session(
        *({"text": noise(n)} for n in range(4)), {"text": GOOD, "delay_ms": 3_000}, {"text": "ok"}
    )
    await talk(session, 4)
    begun = asyncio.Event()
    session.subscribe(
        lambda event: begun.set() if isinstance(event, events.CompactionStart) else None
    )
    running = asyncio.create_task(compacted(session))
    await begun.wait()
    with pytest.raises(SessionBusy, match="compaction_in_progress"):
        await compacted(session)
    with pytest.raises(SessionBusy):
        await seen(session, "now?")
    session.steer("also look at the tests")
    await running
    await seen(session, "go on")
    assert types(session) == ["anchor", "usage", "user", "context", "assistant"]


async def test_stopping_it_leaves_the_branch_as_it_was(stage):
    session = await stage.session(
        *({"text": noise(n)} for n in range(4)), {"text": GOOD, "delay_ms": 900_000}
    )
    await talk(session, 4)
    before = request(session)
    begun = asyncio.Event()
    session.subscribe(
        lambda event: begun.set() if isinstance(event, events.CompactionStart) else None
    )
    running = asyncio.create_task(compacted(session))
    await begun.wait()
    session.abort()
    await running
    assert request(session) == before
    assert not any(isinstance(entry.data, Anchor) for entry in session.recorder.path)


async def test_nothing_to_compact_is_reported_and_changes_nothing(stage):
    session = await stage.session({"text": noise(1)}, {"text": GOOD})
    with pytest.raises(NothingToCompact):
        await compacted(session)
    await seen(session, "hello")
    await compacted(session, hard=True)
    with pytest.raises(NothingToCompact):
        await compacted(session, hard=True)


async def test_a_summary_that_is_no_shorter_is_not_taken(stage):
    """M160: whoever asked, the branch stays as it was but for what the summary took."""
    session = await stage.session({"text": "hi"}, {"text": GOOD + noise(1)}, {"text": GOOD})
    await seen(session, "hello")
    before = request(session)
    with pytest.raises(NotSmaller):
        await compacted(session, hard=True)
    assert (request(session), types(session)[-1]) == (before, "usage")


async def test_the_warning_comes_once_above_eighty_percent(stage):
    """M020: and again only after there was room."""
    session = await stage.session(
        *({"text": "x", "usage": {"input": 16_500}} for _ in range(3)),
        **compaction(auto=False),
        **window(stage, 20_000),
    )
    told = [event for turn in range(3) for event in await seen(session, f"turn {turn}")]
    warned = [event.message for event in told if isinstance(event, events.Warn)]
    assert warned == ["Context usage at ~83% of context window"]


async def test_at_most_two_compactions_in_a_row(stage):
    """M160: when even a summary does not fit, results are cut; it never goes round."""
    big = "y" * 60_000
    (stage.folder / "big.txt").write_text(big)
    session = await stage.session(
        {"tool_calls": [call("bash", command="cat big.txt")]},
        *[{"text": GOOD}] * 10,
        **compaction(limit=3_000, keep=2_000),
    )
    told = await seen(session, "show it")
    assert sum(isinstance(event, events.CompactionEnd) for event in told) <= 2
    assert told[-1].stop_reason == "stop"


async def test_old_results_become_placeholders_in_batches(stage):
    """M161 C9: only above the high-water mark; their text stays on the tape."""
    for n in range(8):
        (stage.folder / f"{n}.txt").write_text(noise(n, 3_000))
    steps = [{"tool_calls": [call("read", path=f"{n}.txt")]} for n in range(8)]
    session = await stage.session(*steps, {"text": "done"}, **compaction(), **window(stage, 30_000))
    told = await seen(session, "read them all")
    assert any(isinstance(event, events.ResultsElided) for event in told)
    marks = [e.data for e in session.recorder.path if isinstance(e.data, Custom)]
    assert len(marks) < 4
    texts = [join_texts(m.content) for m in next_request(session).messages]
    assert sum(text.startswith("[executed: read, ") for text in texts) >= 3
    results = [e for e in session.recorder.path if e.type == "tool.result"]
    assert all(len(join_texts(e.data.content)) > 2_000 for e in results)


async def test_money_that_is_spent_stops_the_run_softly(stage):
    """M183: between two calls, with what was said so far."""
    script = stage.folder.parent / "script0.json"
    price = {"input": 1_000.0, "output": 1_000.0}
    session = await stage.session(
        {"tool_calls": [call("bash", command="echo hi")], "usage": {"input": 600, "output": 500}},
        {"text": "never"},
        max_cost=1.0,
        models={f"scripted/{script}": {"price": price}},
    )
    told = await seen(session, "go")
    (limit,) = (event for event in told if isinstance(event, events.CostLimit))
    assert (limit.spent, limit.limit) == (pytest.approx(1.1), 1.0)
    assert types(session)[-1] == "tool.result"


async def test_facts_live_through_five_compactions(stage):
    """The offline model is told facts early and asked for them late."""
    settings = Settings(model="offline/rules")
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(stage.folder.parent)}
    host = await open_session(stage.front_end(settings, environ))
    stage.hosts.append(host)
    session = host.session
    await seen(session, "remember that the staging port is 8143")
    await seen(session, "The deploy key is called heron-7, by the way.")
    for generation in range(5):
        for turn in range(6):
            name = f"{generation}-{turn}.txt"
            (stage.folder / name).write_text(noise(generation * 10 + turn, 2_000))
            await seen(session, f"read {name}")
        if generation == 2:
            await seen(session, "remember that the release is on Thursday")
        before = len(request(session))
        await compacted(session)
        assert len(request(session)) <= before * 0.4
    for question, fact in (
        ("which port is staging on?", "8143"),
        ("what is the deploy key called?", "heron-7"),
        ("when is the release?", "Thursday"),
    ):
        await seen(session, question)
        assert fact in join_texts(session.recorder.path[-1].data.content)


async def test_a_model_that_says_too_much_is_cut_to_its_share(stage):
    """The request after a compaction is smaller, however long the summary is."""
    points = "\n".join(f"- point {n}: {noise(n, 30)}" for n in range(400))
    session = await stage.session(
        *({"text": noise(n)} for n in range(6)), {"text": f"{GOOD}\n{points}\n"}
    )
    await talk(session, 6)
    before = len(request(session))
    await compacted(session)
    assert len(request(session)) < before * 0.5


async def test_a_tape_whose_answers_name_no_model_is_gone_on_with(stage):
    """Answers from elsewhere may not say who gave them."""
    silent = Assistant((Text("hi"),))
    assert find_last_model(path([silent])) is None
    assert find_last_model(path([replace(silent, provider="a", model="b"), silent])) == "a/b"


async def test_what_another_anchor_left_out_does_not_come_back(stage):
    """Ranges with a gap, as another program may keep them, are kept with their gap."""
    session = await stage.session(*({"text": f"answer {n} {noise(n, 20)}"} for n in range(7)))
    await talk(session, 4, words=20)
    record = session.recorder
    (newest,) = record.tape.newest(record.head(), 8)
    ids = [entry.id for entry in record.path[-8:]]
    early = replace(newest, count=2, last=ids[1])
    (late,) = record.tape.newest(record.head(), 2)
    record.anchor(Anchor(kind="compaction", summary="so far", kept=(early, late)))
    await talk(session, 2, words=20)
    kept = find_kept_ranges(session.recorder, [*record.kept, *record.path[1:]])
    assert [one.id for one in record.tape.kept(Anchor(kind="merge", summary="", kept=kept))] == [
        *(ids[n] for n in (0, 1, 6, 7)),
        *(one.id for one in record.path[1:]),
    ]
    kept = find_kept_ranges(session.recorder, [*record.kept[3:], *record.path[1:]])
    kept_ids = [one.id for one in record.tape.kept(Anchor(kind="merge", summary="", kept=kept))]
    assert kept_ids == [ids[7], *(one.id for one in record.path[1:])]
