import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gong.context.tokens import CallPair, count_entry_tokens, pair_calls
from gong.context.trim import HistoryCut, compact_messages, find_borders, find_cut
from tape.context.repair import NO_RESULT, repair
from tape.context.view import Message, view
from tape.model.entries import Model, Note, Text, ToolResult, ToolStart, join_texts
from tests.gong.context.histories import HISTORIES, TARGET, path, sent, steer, told
from tests.tape.making import BUDGET, answer, result, say

CORPUS = Path(__file__).parents[4] / "shared" / "corpus" / "repair" / "pairing_boundaries.jsonl"
SPOKEN = {"user", "context", "assistant"}
SEARCH = settings(max_examples=150 * BUDGET, deadline=None)


def one_each(entry):
    return 1 if count_entry_tokens(entry) else 0


def cut_at(payloads, keep):
    return find_cut(path(payloads), keep, one_each)


def turn(*calls):
    return [say("go"), answer(*calls), *map(result, calls), answer(text="done")]


class TestWhereItCuts:
    def test_before_a_prompt_where_the_newest_tokens_begin(self):
        """M156: only at the borders of users and answers; M155: the recent ones stay."""
        assert cut_at([*turn("a"), *turn("b"), *turn("c")], 8) == HistoryCut(4, 4)

    def test_as_the_example_of_find_cut_shows(self):
        """M156"""
        entries = path([say("a"), answer(text="b"), say("c"), *[answer(text="d")] * 3])
        sizes = dict(zip((one.id for one in entries), (100, 200, 50, 200, 200, 100), strict=True))
        assert find_cut(entries, 300, lambda entry: sizes[entry.id]) == HistoryCut(4, 2)

    def test_at_the_next_prompt_where_they_begin_inside_a_turn(self):
        assert cut_at([*turn("a"), *turn("b"), *turn("c")], 7) == HistoryCut(8, 8)

    def test_before_the_last_prompt_where_that_turn_alone_is_no_larger(self):
        assert cut_at([*turn("a"), *turn("b")], 4) == HistoryCut(4, 4)

    def test_inside_a_turn_only_before_an_answer(self):
        """M156: a cut inside a turn tells where the turn begins, for the summary of its prefix."""
        payloads = [*turn("a"), say("go"), *answers(4)]
        found = cut_at(payloads, 3)
        assert found == HistoryCut(11, 4)
        assert found.split

    def test_never_between_a_call_and_its_results(self):
        payloads = [say("go"), answer("a", "b", "c"), *map(result, "abc")]
        assert cut_at(payloads, 1) == HistoryCut(1, 0)

    def test_before_words_that_steer(self):
        found = cut_at([say("go"), *answers(2), steer("left"), *answers(1)], 3)
        assert found == HistoryCut(5, 5)
        assert not found.split

    def test_never_before_a_system_note(self):
        assert cut_at(
            [say("go"), *answers(2), steer("note", "system"), *answers(1)], 3
        ) == HistoryCut(6, 0)

    def test_not_where_the_result_comes_after_it(self):
        payloads = [say("go"), answer("a"), say("and?"), result("a"), say("now"), answer(text="x")]
        assert cut_at(payloads, 4) == HistoryCut(4, 4)

    def test_an_unanswered_call_is_closed_by_any_later_message(self):
        assert cut_at(
            [say("go"), answer("a"), ToolStart("a", "bash"), say("and?")], 1
        ) == HistoryCut(3, 3)

    def test_not_between_a_paused_answer_and_its_rest(self):
        paused = replace(answer(text="so far"), raw_stop="pause_turn")
        payloads = [say("go"), answer(text="x"), paused, answer(text="rest"), answer(text="end")]
        assert cut_at(payloads, 2) == HistoryCut(4, 0)

    def test_stopped_answers_begin_nothing(self):
        stopped = replace(answer("z"), stop_reason="aborted")
        payloads = [say("go"), *answers(1), stopped, *answers(1)]
        assert cut_at(payloads, 2) == HistoryCut(4, 0)


def answers(count):
    return [one for _ in range(count) for one in (answer("a"), result("a"))]


class TestNoCut:
    def test_where_everything_fits(self):
        assert cut_at(turn("a"), 4) is None
        assert cut_at([*turn("a"), *turn("b")], 8) is None
        assert cut_at([], 0) is None

    def test_where_nothing_would_be_covered(self):
        assert cut_at([Note("n"), Model("p", "m"), say("go")], 0) is None
        assert cut_at([say("go"), ToolResult("lost", "bash", ())], 0) is None


def test_a_history_may_be_parted_where_no_call_waits():
    """M156: never inside tool results, as told for every place and the end."""
    free = find_borders(path([say("go"), answer("a", "b"), result("b"), result("a"), told("done")]))
    assert free == [True, True, False, False, True, True]
    assert find_borders(path([say("go"), answer("a")])) == [True, True, False]


def test_a_result_answers_no_call_whose_id_a_stopped_answer_used_again():
    stopped = replace(answer("a"), stop_reason="aborted")
    entries = path([answer("a"), stopped, result("a"), say("go"), answer("a"), result("a")])
    assert pair_calls(entries) == [CallPair("a", 0, None), CallPair("a", 4, 5)]
    assert len(injected(entries)) == 1


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.exists(), reason="no corpus here")
def test_recorded_histories_are_parted_where_others_part_them():
    made = {
        "user": lambda _: say("x"),
        "assistant": lambda event: answer(*event.get("calls", ())),
        "result": lambda event: result(event["call"]),
    }
    for line in CORPUS.read_text("utf-8").splitlines():
        case = json.loads(line)
        free = find_borders(path(made[event["kind"]](event) for event in case["events"]))
        assert free[:-1] == case["balanced_before"], case["id"]
        assert free[1:] == case["balanced_after"], case["id"]


def injected(entries):
    done = repair(view(entries), TARGET).repair
    return [*done.injected] if done else []


def outline(entries):
    """Return the messages of entries, whatever is said in results that were made up."""
    made_up = (Text(text=NO_RESULT),)
    return [
        replace(message, content=made_up)
        if message.role == "tool" and join_texts(message.content).startswith(NO_RESULT)
        else message
        for message in sent(entries)
    ]


@pytest.mark.slow
@SEARCH
@given(HISTORIES, st.integers(0, 600))
def test_a_cut_parts_no_pair_and_keeps_little_more_than_asked(payloads, keep):
    """M156: what is covered and what is kept are the whole, and the kept part stands alone."""
    entries = path(payloads)
    found = find_cut(entries, keep)
    if found is None:
        return
    covered, kept = entries[: found.first], entries[found.first :]
    assert any(entry.type in {*SPOKEN, "tool.result"} for entry in covered)
    assert kept[0].type in SPOKEN
    assert found.split == (kept[0].type == "assistant")
    assert found.turn <= found.first
    again = injected(entries)
    assert injected(kept) == again[len(again) - len(injected(kept)) :]
    assert outline(covered) + outline(kept) == outline(entries)
    tokens = sum(map(count_entry_tokens, kept))
    if tokens > keep:  # nothing smaller could be kept
        assert find_cut(kept, keep) is None


class TestPartingByNumber:
    def messages(self, count, text="words"):
        return tuple(Message("user", (Text(text=f"{text} {n}"),)) for n in range(count))

    def test_little_stays_untouched(self):
        """M158: below the limit nothing is summarised and no model is asked."""
        messages = self.messages(10)
        assert compact_messages(messages) == (messages, ())

    def test_of_fifty_the_newest_twenty_stay(self):
        """M158: the thirty before them are to be summarised."""
        messages = self.messages(50, "many words " * 50)
        kept, older = compact_messages(messages, max_tokens=4_000, window_size=20)
        assert (kept, older) == (messages[30:], messages[:30])

    def test_the_system_message_always_stays_first(self):
        """M158: it is never summarised."""
        system = Message("system", (Text(text="be brief"),))
        kept, older = compact_messages((system, *self.messages(50)), max_tokens=100)
        assert kept == (system, *self.messages(50)[30:])
        assert older == self.messages(50)[:30]

    def test_fewer_than_the_window_all_stay(self):
        messages = self.messages(3, "many words " * 50)
        assert compact_messages(messages, max_tokens=100) == (messages, ())
