import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from gong.context.tokens import ELIDED, count_messages_tokens
from gong.context.trim import (
    TRUNCATION_LIMITS,
    build_sizer,
    decide_elision,
    decide_truncation,
    elide_results,
    micro_compact,
)
from tape.context.view import select_visible_blocks
from tape.model.entries import Custom, Text, ToolResult, join_texts
from tests.gong.context.histories import HISTORIES, PICTURE, TARGET, path, sent, told
from tests.tape.making import BUDGET, answer, result, say

LONG = "a line of output\n" * 60
SEARCH = settings(max_examples=100 * BUDGET, deadline=None)


def work(count, text=LONG):
    """Return a prompt, so many steps with a long result each, and an answer."""
    steps = [one for n in range(count) for one in (answer(f"c{n}"), result(f"c{n}", text))]
    return path([say("go"), *steps, told("done")])


def then(entries, *payloads):
    return path([*(entry.data for entry in entries), *payloads])


def results(messages):
    return [join_texts(message.content) for message in messages if message.role == "tool"]


def placeholder(entry, size):
    return f"[executed: bash, {size}; read it with tape_read {entry.id[:8]}]"


class TestADecision:
    def test_is_made_above_the_high_water_mark_only(self):
        """C9: the cache of the prompt is not thrown away for a window that is half empty."""
        entries = work(6)
        assert decide_elision(entries, 600, 1_000) is None
        assert decide_elision(entries, 601, 1_000) is not None
        assert decide_elision(entries, 601, None) is None

    def test_is_not_made_for_little(self):
        entries = work(6)
        freed = sum(map(build_sizer(entries), entries)) - count_messages_tokens(
            elide_results(sent(entries), then(entries, decide_elision(entries, 99, 100)))
        )
        assert decide_elision(entries, 9 * freed, 1) is not None
        assert decide_elision(entries, 11 * freed, 1) is None

    def test_is_made_for_a_batch_unless_the_window_is_nearly_full(self):
        """C9: one result a step would cost the prompt's cache at every step."""
        assert decide_elision(work(5), 70, 100) is None
        assert decide_elision(work(6), 70, 100) is not None
        assert decide_elision(work(4), 81, 100) is not None
        entries, made = work(3), []
        for count in range(4, 16):
            entries = then(entries, *(one.data for one in work(count)[2 * count - 1 : -1]))
            if (decision := decide_elision(entries, 70, 100)) is not None:
                entries = then(entries, decision)
                made.append(count)
        assert made == [6, 9, 12, 15]

    def test_leaves_the_newest_three_results(self):
        """M161, C9: older ones give way to a line that says how to read them; the tape has all."""
        entries = work(5)
        shown = elide_results(sent(entries), then(entries, decide_elision(entries, 99, 100)))
        gone = [placeholder(entries[place], "1,020 characters") for place in (2, 4)]
        assert results(shown) == [*gone, LONG, LONG, LONG]

    def test_leaves_what_no_answer_has_followed_yet(self):
        calls = [f"c{n}" for n in range(6)]
        entries = path([say("go"), answer(*calls), *(result(call, LONG) for call in calls)])
        assert decide_elision(entries, 99, 100) is None

    def test_is_not_made_again_for_the_same_results(self):
        entries = work(6)
        after = then(entries, decide_elision(entries, 99, 100))
        assert decide_elision(after, 99, 100) is None

    def test_is_followed_by_another_when_there_is_more(self):
        first = work(5)
        first = then(first, decide_elision(first, 99, 100))
        entries = then(first, *(entry.data for entry in work(9)))
        entries = then(entries, decide_elision(entries, 99, 100))
        whole = [
            len(text) for text in results(elide_results(sent(entries), entries)) if text == LONG
        ]
        assert len(whole) == 3

    def test_keeps_short_results_and_takes_pictures(self):
        pictures = ToolResult("p", "bash", (Text(text="seen"), PICTURE))
        payloads = [say("go"), answer("s", "p"), result("s", "short"), pictures]
        entries = path([*payloads, *(entry.data for entry in work(3)[1:])])
        after = then(entries, decide_elision(entries, 99, 100))
        gone = placeholder(entries[3], "4 characters and 1 file")
        assert results(elide_results(sent(entries), after))[:2] == ["short", gone]

    def test_that_cannot_be_read_says_nothing(self):
        entries = work(6)
        for data in (b"{}", b'{"to":1}', b'{"to":"0"}', b"[]", b'{"to":"ffff","keep":3}'):
            odd = then(entries, Custom(ELIDED, Raw(data)))
            assert elide_results(sent(entries), odd) == sent(entries)


class TestWhatIsSent:
    def test_without_a_decision_stays_as_it_is(self):
        entries = work(6)
        assert elide_results(sent(entries), entries) == sent(entries)

    def test_a_call_id_used_again_is_another_call(self):
        steps = [one for n in range(5) for one in (answer("same"), result("same", f"{n} {LONG}"))]
        entries = path([say("go"), *steps, told("done")])
        after = then(entries, decide_elision(entries, 99, 100))
        gone = [placeholder(entries[place], "1,022 characters") for place in (2, 4)]
        assert results(elide_results(sent(after), after)) == [
            *gone,
            *(f"{n} {LONG}" for n in (2, 3, 4)),
        ]

    def test_the_word_for_it_may_be_another(self):
        """C9: the placeholder is the front end's to choose, the name of the tool stays."""
        entries = work(5)
        after = then(entries, decide_elision(entries, 99, 100))
        assert results(elide_results(sent(after), after, "已执行"))[0].startswith("[已执行: bash, ")

    def test_sizes_are_those_of_what_is_sent(self):
        entries = work(6)
        after = then(entries, decide_elision(entries, 99, 100))
        assert sum(map(build_sizer(after), after)) == count_messages_tokens(
            elide_results(sent(after), after)
        )


class TestTheLastResort:
    def test_cuts_long_results_on_the_path_harder_each_time(self):
        """M160: where no summary can be had, the output of tools is cut."""
        entries = work(2, LONG * 10)
        for limit in TRUNCATION_LIMITS:
            entries = then(entries, decide_truncation(entries))
            texts = results(elide_results(sent(entries), entries))
            assert all(limit - 2 <= len(text) <= limit for text in texts)
            assert f"characters left out; read it with tape_read {entries[2].id[:8]}]" in texts[0]
            assert texts[0].startswith("a line of output\n")
            assert texts[0].endswith("a line of output\n")
        assert decide_truncation(entries) is None

    def test_later_results_are_whole(self):
        entries = work(2, LONG * 10)
        after = then(entries, decide_truncation(entries), answer("n"), result("n", LONG * 5))
        assert results(elide_results(sent(after), after))[-1] == LONG * 5
        while (harder := decide_truncation(after)) is not None:
            after = then(after, harder)
        later = then(after, answer("m"), result("m", LONG * 5))
        later = then(later, decide_truncation(later))
        lengths = [round(len(text), -2) for text in results(elide_results(sent(later), later))]
        assert lengths == [400, 400, 400, 2_000]

    def test_a_cut_result_keeps_both_ends_and_pictures(self):
        content = (Text(text="begin" + "x" * 9_000 + "end"), PICTURE)
        entries = path([say("y" * 900), answer("a"), ToolResult("a", "bash", content)])
        after = then(entries, decide_truncation(entries))
        user, call, cut = elide_results(sent(after), after)
        assert (user, call) == sent(entries)[:2]
        text = join_texts(cut.content)
        assert re.fullmatch(
            r"beginx+\n\[[\d,]+ characters left out; read it with tape_read \w+\]\nx+end", text
        )
        assert len(text) == TRUNCATION_LIMITS[0]
        assert cut.content[1] == PICTURE


class TestTheRuleByItself:
    def test_old_results_of_anthropics_shape_are_replaced(self):
        """M161, M212: of five results the newest three keep their content."""
        texts = ["long output 1 " * 100, "long output 2 " * 100, "three", "four", "recent output"]
        messages = [
            {"role": "user", "content": "start"},
            *(
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": str(n), "content": text}],
                }
                for n, text in enumerate(texts, 1)
            ),
            {"role": "assistant", "content": "done"},
        ]
        before = json.dumps(messages)
        found = micro_compact(messages, 3, "[已执行]")
        assert json.dumps(messages) == before
        shown = [message["content"][0]["content"] for message in found[1:6]]
        assert shown == ["[已执行]", "[已执行]", "three", "four", "recent output"]
        assert [found[0], *found[3:]] == [messages[0], *messages[3:]]
        assert found[1]["content"][0]["tool_use_id"] == "1"

    def test_old_results_of_openais_shape_are_replaced(self):
        """M161: their call ids stay."""
        messages = [{"role": "tool", "tool_call_id": str(n), "content": "out"} for n in range(5)]
        found = micro_compact(messages)
        gone = [{"role": "tool", "tool_call_id": n, "content": "[executed]"} for n in "01"]
        assert found == [*gone, *messages[2:]]

    def test_three_or_fewer_stay_unchanged(self):
        """M161, M212: nothing to do."""
        few = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
        three = [{"role": "tool", "tool_call_id": str(n), "content": "out"} for n in range(3)]
        assert micro_compact(few, 3) == few
        assert micro_compact([*few, *three], 3) == [*few, *three]


@pytest.mark.slow
@SEARCH
@given(HISTORIES, st.integers(0, 3))
def test_between_two_decisions_what_was_sent_is_sent_again(payloads, keep):
    """C9: each request begins with all of the one before it, unless a decision lies between."""
    entries, repaired, shown = [], (), ()
    for payload in payloads:
        entries = then(entries, payload)
        again, before = repaired, shown
        repaired = sent(entries)
        shown = elide_results(repaired, entries)
        assert elide_results(shown, entries) == shown
        if repaired[: len(again)] == again:  # no late result took the place of a made-up one
            assert shown[: len(before)] == before
        decision = decide_elision(entries, 10, 10, keep=keep, gain=0.5)
        if decision is not None:
            entries = then(entries, decision)
            shown = elide_results(repaired, entries)
            assert count_messages_tokens(shown) < count_messages_tokens(repaired)


@pytest.mark.slow
@SEARCH
@given(HISTORIES, st.integers(0, 3))
def test_only_results_are_elided_and_each_is_named(payloads, keep):
    entries = path(payloads)
    decision = decide_elision(entries, 10, 10, keep=keep, gain=0)
    after = then(entries, decision) if decision else entries
    real = {entry.id[:8]: entry.data for entry in entries}
    for old, new in zip(sent(after), elide_results(sent(after), after), strict=True):
        if old == new:
            continue
        assert old.role == "tool"
        text = join_texts(new.content)
        assert new == replace(old, content=(Text(text=text),))
        source = real[text[-9:-1]]
        assert source.call_id == old.call_id
        assert select_visible_blocks(source.content, TARGET, foreign=True) == old.content
