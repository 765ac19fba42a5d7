"""Whatever happened between calls and results, what is sent is a conversation providers accept."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tape.context.repair import IncrementalRepair, iter_repaired_messages, repair
from tape.context.view import Target, view
from tape.model.entries import (
    Assistant,
    BlobRef,
    Context,
    Error,
    Image,
    Text,
    ToolResult,
    ToolStart,
    User,
    select_tool_calls,
)
from tape.model.line import Entry
from tests.tape.making import BUDGET, answer, result

SEES = Target("https://one", "api", "model")
BLIND = replace(SEES, sees_images=False)

IDS = st.sampled_from("abcd")
TEXTS = st.sampled_from(["", " ", "\n", "words", "more words", "é\u2028"])
PICTURE = Image(blob=BlobRef("0" * 64, 3), mime="image/png")
CONTENTS = st.lists(TEXTS.map(lambda text: Text(text=text)) | st.just(PICTURE), max_size=2).map(
    tuple
)
ANSWERS = st.builds(
    lambda calls, text, stop: replace(answer(*calls, text=text), stop_reason=stop),
    st.lists(IDS, max_size=3, unique=True),
    TEXTS,
    st.sampled_from(["stop", "tool_calls", "length", "aborted", "error"]),
)
EVENTS = st.one_of(
    st.builds(User, CONTENTS),
    st.builds(lambda content: Context("user", "steering", content), CONTENTS),
    ANSWERS,
    ANSWERS,
    st.builds(result, IDS, TEXTS),
    st.builds(lambda call, content: ToolResult(call, "bash", content), IDS, CONTENTS),
    st.builds(lambda call: ToolStart(call, "bash"), IDS),
    st.just(Error("Aborted", "stopped by the user")),
)
HISTORIES = st.lists(EVENTS, max_size=14)
SEARCH = settings(max_examples=150 * BUDGET, deadline=None)


def path(events):
    return [Entry(f"{n:040x}", 1, None, n, "", "", event) for n, event in enumerate(events)]


def words(content):
    return [block.text for block in content if isinstance(block, Text) and block.text.strip()]


@pytest.mark.slow
@SEARCH
@given(HISTORIES, st.sampled_from([SEES, BLIND]))
def test_every_call_has_its_result_right_after_it_and_every_result_its_call(events, target):
    for size in range(len(events) + 1):
        messages = list(repair(view(path(events[:size])), target).messages)
        while messages:
            message = messages.pop(0)
            assert message.role != "tool"
            for call in select_tool_calls(message.content):
                answered = messages.pop(0)
                assert (answered.role, answered.call_id, answered.name) == (
                    "tool",
                    call.id,
                    call.name,
                )


@pytest.mark.slow
@SEARCH
@given(HISTORIES, st.sampled_from([SEES, BLIND]))
def test_no_message_is_empty_and_the_blind_see_no_picture(events, target):
    for message in repair(view(path(events)), target).messages:
        assert message.content
        assert all(block.text.strip() for block in message.content if isinstance(block, Text))
        assert target.sees_images or PICTURE not in message.content


@pytest.mark.slow
@SEARCH
@given(HISTORIES)
def test_no_words_are_lost_and_their_order_stays(events):
    messages = repair(view(path(events)), SEES).messages
    said = [
        text for message in messages if message.role != "tool" for text in words(message.content)
    ]
    assert said == [
        text
        for event in events
        if isinstance(event, User | Context | Assistant)
        and getattr(event, "stop_reason", "stop") not in {"aborted", "error"}
        for text in words(event.content)
    ]


@pytest.mark.slow
@SEARCH
@given(HISTORIES, st.sampled_from([SEES, BLIND]))
def test_recording_what_was_done_changes_nothing(events, target):
    before = path(events)
    found = repair(view(before), target)
    assert repair(view(before), target) == found
    if found.repair is None:
        return
    repairing = IncrementalRepair(target)
    repairing.read(before)
    assert repairing.find_unrecorded_repair() == found.repair
    after = path([*events, found.repair])
    assert repair(view(after), target) == found
    repairing.read(after[-1:])
    assert repairing.find_unrecorded_repair() is None


@pytest.mark.slow
@SEARCH
@given(HISTORIES, st.sampled_from([SEES, BLIND]))
def test_every_change_is_reported(events, target):
    entries = path(events)
    found = repair(view(entries), target)
    injected, dropped = (found.repair.injected, found.repair.dropped) if found.repair else ((), ())
    spoken = [e.id for e in entries if isinstance(e.data, User | Context | Assistant | ToolResult)]
    assert len(set(dropped)) == len(dropped)
    assert set(dropped) <= set(spoken)
    assert len(found.messages) == len(spoken) - len(dropped) + len(injected)


TURNS = st.builds(
    lambda calls: [answer(*calls), *(ToolStart(c, "bash") for c in calls), *map(result, calls)],
    st.lists(IDS, max_size=3, unique=True),
)


@pytest.mark.slow
@SEARCH
@given(st.lists(TURNS | st.lists(EVENTS, max_size=3), max_size=5), st.sampled_from([SEES, BLIND]))
def test_a_dropped_message_changes_nothing_behind_it(runs, target):
    """A blank message in front is dropped; the rest is repaired as without it."""
    events = [event for run in runs for event in run]
    blank, *entries = path([User(()), *events])
    careful, found = repair(view([blank, *entries]), target), repair(view(entries), target)
    assert careful.messages == found.messages
    dropped = found.repair.dropped if found.repair else ()
    assert careful.repair.dropped == (blank.id, *dropped)
    assert careful.repair.injected == (found.repair.injected if found.repair else ())


@pytest.mark.slow
@SEARCH
@given(
    st.lists(TURNS | st.lists(EVENTS, max_size=3), max_size=5),
    st.lists(st.integers(0, 20), max_size=4),
    st.sampled_from([SEES, BLIND]),
)
def test_it_does_not_matter_in_which_runs_a_history_comes(runs, cuts, target):
    entries = path([event for run in runs for event in run])
    repairing, start, shown = IncrementalRepair(target), 0, []
    for end in (*sorted(cuts), len(entries)):
        repairing.read(entries[start:end])
        start = max(start, end)
        assert repairing.describe_repair() == repair(view(entries[:start]), target).repair
        shown.append((repairing.inject_results(), repair(view(entries[:start]), target).messages))
    assert repairing.finish_repair() == repair(view(entries), target)
    for snapshot, messages in shown:
        assert tuple(snapshot) == messages  # what was asked for earlier has not changed since


@given(
    st.lists(TURNS | st.lists(EVENTS, max_size=3), max_size=5),
    st.lists(st.integers(0, 20), max_size=4),
    st.sampled_from([SEES, BLIND]),
)
def test_messages_that_are_taken_as_they_settle_are_those_of_the_whole_repair(runs, cuts, target):
    entries = path([event for run in runs for event in run])
    repairing, start, taken = IncrementalRepair(target), 0, []
    for end in (*sorted(cuts), len(entries)):
        repairing.read(entries[start:end])
        start = max(start, end)
        taken += repairing.take_settled()
    whole = repair(view(entries), target).messages
    assert (*taken, *repairing.inject_results()) == whole
    assert tuple(iter_repaired_messages(view(entries), target)) == whole
