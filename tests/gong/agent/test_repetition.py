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
    guard = RepetitionGuard(window)
    found = [(number, record(guard, word)) for number, word in enumerate(words, 1)]
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


def test_the_third_finding_ends_the_run_and_only_the_first_of_a_pattern_is_told_c14():
    found = find("a" * 30)
    assert [number for number, _ in found] == [10, 20, 30]
    assert [one.is_new for _, one in found] == [True, False, False]
    assert [one.is_last for _, one in found] == [False, False, True]


@pytest.mark.parametrize(
    ("words", "failed", "at"), [("aaaa", False, 4), ("aaa", True, 3), ("ababab", False, 6)]
)
def test_calls_with_the_same_result_are_found_sooner(words, failed, at):
    guard = RepetitionGuard()
    found = [record(guard, word, f"said {word}", failed=failed) for word in words]
    assert [number for number, one in enumerate(found, 1) if one] == [at]


def test_new_results_of_the_same_call_are_progress_until_the_window_is_full():
    assert find("aaaaaaaaa") == []


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
