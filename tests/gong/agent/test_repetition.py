"""A model that goes in circles is told once for each pattern, then stopped: M018, C14."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from gong.agent.repetition import Repetition, RepetitionGuard, TextGuard
from tape.model.entries import Text, ToolCall, ToolResult


def record(guard: RepetitionGuard, word: str, said: str = "", *, failed: bool = False):
    """Record one call of a tool with `word`, answered by `said`, or by something never repeated."""
    record.count += 1
    call = ToolCall("c", "bash", Raw(b'{"command":"%s"}' % word.encode()))
    text = said or f"result {record.count}"
    return guard.record_calls([call], [ToolResult("c", "bash", (Text(text),), is_error=failed)])


record.count = 0


def find(words: str, window: int = 10) -> list[tuple[int, Repetition]]:
    """Return what is found where each call has its own result, again and again."""
    guard = RepetitionGuard(window)
    found = [(number, record(guard, word, f"of {word}")) for number, word in enumerate(words, 1)]
    return [(number, one) for number, one in found if one is not None]


@pytest.mark.parametrize(
    ("words", "at", "length"),
    [("aaaaaaaaaa", 10, 10), ("ababababab", 10, 10), ("abcabcabc", 9, 9), ("xabcabcabc", 10, 9)],
)
def test_cycles_of_one_two_and_three_calls_are_found_m018(words, at, length):
    [(number, found)] = find(words)
    assert number == at
    assert found.message == (
        f"Loop detected: the last {length} tool calls follow a repeating pattern."
        " Try a different approach."
    )
    assert found.is_new
    assert not found.is_last


@pytest.mark.parametrize("words", ["abcdabcdabcdabcd", "aaaaabaaaaa"[:9], "abcabcab", "a"])
def test_other_calls_are_no_loop(words):
    assert find(words) == []


@pytest.mark.parametrize("unit", ["a", "ab"])
def test_the_third_finding_of_a_pattern_ends_the_run_and_the_first_warns_c14(unit):
    found = find(unit * (30 // len(unit)))
    assert [number for number, _ in found] == [10, 20, 30]
    assert [one.is_new for _, one in found] == [True, False, False]
    assert [one.is_last for _, one in found] == [False, False, True]


def test_patterns_are_counted_each_for_itself_c14():
    """Three different ones are no third finding of any."""
    found = find("a" * 10 + "b" * 10 + "c" * 10 + "d" * 10)
    assert [(number, one.is_new, one.is_last) for number, one in found] == [
        (number, True, False) for number in (10, 20, 30, 40)
    ]


def test_a_reported_pattern_counts_again_after_other_calls_c14():
    found = find("a" * 10 + "bcdefghi" + "a" * 10 + "ihgfedcb" + "a" * 10)
    assert [(number, one.is_new, one.is_last) for number, one in found] == [
        (10, True, False),
        (28, False, False),
        (46, False, True),
    ]


@pytest.mark.parametrize("words", ["aaaa", "aaaaaaaaa", "abababab"])
def test_fewer_calls_than_the_window_are_no_loop_with_any_results(words):
    assert find(words) == []
    guard = RepetitionGuard()
    assert not any(record(guard, word, "no", failed=True) for word in words)


@pytest.mark.parametrize("unit", ["a", "ab", "abc"])
def test_calls_with_changing_results_are_no_loop(unit):
    """M018: a poll that hears something new each time gets somewhere."""
    guard = RepetitionGuard()
    assert not any(record(guard, word) for word in unit * 40)


def test_a_poll_whose_answer_stays_the_same_is_a_loop_from_there_on():
    guard = RepetitionGuard()
    said = [f"{number} %" for number in range(15)] + ["stuck"] * 30
    found = [(number, record(guard, "a", text)) for number, text in enumerate(said, 1)]
    assert [(number, one.is_new, one.is_last) for number, one in found if one] == [
        (25, True, False),
        (35, False, False),
        (45, False, True),
    ]


@pytest.mark.parametrize("changes", [6, 9, 10])
def test_one_other_result_among_the_last_ten_is_no_loop(changes):
    guard = RepetitionGuard()
    said = ["same"] * 5 + ["other" if n == changes else "same" for n in range(6, 16)]
    assert not any(record(guard, "a", text) for text in said)


@pytest.mark.parametrize("tool", ["bash_output", "TaskOutput", "wait"])
def test_waiting_for_a_task_is_no_loop(tool):
    guard = RepetitionGuard()
    call = ToolCall("c", tool, Raw(b'{"shell_id":"bg_1"}'))
    result = ToolResult("c", tool, (Text("nothing new"),))
    assert not any(guard.record_calls([call], [result]) for _ in range(50))


@given(st.lists(st.sampled_from("abcdefgh"), max_size=60))
def test_what_is_found_is_a_cycle_of_at_most_three_calls(words):
    for number, found in find("".join(words)):
        length = int(found.message.split("last ")[1].split()[0])
        tail = words[number - length : number]
        assert any(tail[n:] == tail[: length - n] for n in (1, 2, 3))


def feed(text, size=7):
    """Return after how many characters a text counts as repeated; None if it never does."""
    guard = TextGuard()
    for start in range(0, len(text), size):
        if guard.add_piece(0, text[start : start + size]):
            return start
    return None


PARAGRAPH = " ".join(f"word{number * number}" for number in range(60))
"""Some 480 characters in which nothing stands twice."""


@pytest.mark.parametrize(
    "unit", ["ha", "I will look at the file again.\n", PARAGRAPH + "\n\n", PARAGRAPH * 2 + " a b "]
)
def test_an_answer_that_repeats_its_text_is_found_soon_m018_c14(unit):
    """M018 C14: after six copies, and 3,000 characters; what stands before it does not matter."""
    start = PARAGRAPH + "and now: "
    found = feed(start + unit * (20_000 // len(unit)))
    assert found is not None
    assert max(6 * len(unit), 3_000) <= found <= len(start) + max(7 * len(unit), 3_000) + 1_100


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"{number}. the same words, with another number\n" for number in range(500)),
        "".join(f"{PARAGRAPH}{number}\n" for number in range(20)),
        ("-" * 80 + "\n") * 12 + PARAGRAPH * 5 + "".join(map(str, range(3_000))),
        "x" * 2_900,
    ],
)
def test_lists_tables_and_rulers_are_no_repeated_text(text):
    assert feed(text) is None


@given(st.text(alphabet="ab \n", min_size=1, max_size=200), st.integers(1, 900))
def test_any_repeated_unit_is_found_however_it_is_cut(unit, size):
    assert feed(unit * (13_000 // len(unit) + 8), size) is not None


def test_each_block_of_an_answer_is_looked_at_alone():
    guard = TextGuard()
    assert not any(guard.add_piece(block, "a" * 2_500) for block in range(20))


def test_how_long_a_call_took_is_no_change():
    guard = RepetitionGuard()
    said = [f"again\n[exit code 0, {number} ms]\n1 passed in 0.{number}s" for number in range(10)]
    found = [record(guard, "pytest", text) for text in said]
    assert [one is not None for one in found] == [False] * 9 + [True]
