import json
from pathlib import Path

import pytest
from msgspec import Raw
from msgspec.structs import replace

from gong.context.sent_history import HistoryFold
from gong.context.tokens import (
    ContextSize,
    SampledEstimate,
    TokenMemo,
    build_fill_warning,
    count_content_tokens,
    count_entry_tokens,
    count_fixed_tokens,
    count_message_tokens,
    count_messages_tokens,
    estimate_by_characters,
)
from gong.context.trim import decide_elision, decide_truncation, elide_results
from gong.llm.tokens import estimate_tokens
from gong.llm.types import Request, ToolSpec
from tape.context.view import Message
from tape.model.entries import (
    Anchor,
    Audio,
    BlobRef,
    Document,
    Image,
    Note,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    Unknown,
    Usage,
)
from tests.gong.context.histories import TARGET, path, sent, told
from tests.tape.making import answer, result, say

PI = Path(__file__).parents[4] / "shared" / "corpus" / "sessions" / "pi"
COUNTED = Usage(input=900, output=100, total=1_000)
WORDS = "words of a prompt"
TOOL = ToolSpec("ls", "Lists a folder.", Raw(b'{"type":"object"}'))


def measure(entries, kept=(), tools=()):
    sent_now = HistoryFold().follow("model", TARGET, entries, kept)
    made = Request(model="model", messages=sent_now.messages, system="be brief", tools=tools)
    found = sent_now.size.measure(made)
    assert sent_now.size.compute_bound(made) >= found.tokens
    return found


def size(payloads, since=0):
    entries = path(payloads)
    anchor = path([Anchor(kind="compaction", summary="")])
    return measure([*anchor, *entries[since:]] if since else entries, entries[:since])


def measure_near(payloads, limit):
    sent_now = HistoryFold().follow("model", TARGET, path(payloads), ())
    made = Request(model="model", messages=sent_now.messages, system="be brief")
    return sent_now.size.measure_near(made, limit)


def estimated(payloads):
    entries = path(payloads)
    return ContextSize(
        count_messages_tokens(sent(entries)) + estimate_tokens("be brief"), exact=False
    )


class TestWhatContentTakes:
    def test_text_is_estimated_and_a_message_takes_a_little_more(self):
        assert count_content_tokens((Text(text=WORDS), Text(text=WORDS))) == 2 * estimate_tokens(
            WORDS
        )
        assert (
            count_message_tokens(Message("user", (Text(text=WORDS),))) == estimate_tokens(WORDS) + 4
        )

    def test_nothing_takes_nothing(self):
        """M159: an empty list of messages has 0 tokens."""
        assert (
            count_content_tokens(()),
            count_messages_tokens([]),
            estimate_by_characters([]),
        ) == (0, 0, 0)

    def test_a_call_takes_its_name_and_arguments(self):
        short = ToolCall(id="a", name="bash", args=Raw(b'{"command":"ls"}'))
        long = replace(short, args=Raw(b'{"command":"' + b"ls -la; " * 50 + b'"}'))
        broken = ToolCall(id="a", name="bash", args_text='{"command":"ls"}')
        assert (
            count_content_tokens((short,))
            == count_content_tokens((broken,))
            > estimate_tokens("bash")
        )
        assert count_content_tokens((long,)) > count_content_tokens((short,)) + 150

    def test_a_picture_takes_1200(self):
        """M155: whatever its size in bytes."""
        pictures = [Image(blob=BlobRef("0" * 64, n), mime="image/png") for n in (10, 10**7)]
        assert [count_content_tokens((picture,)) for picture in pictures] == [1_200, 1_200]

    def test_files_take_tokens_by_their_size(self):
        def of(size, mime, kind=Document):
            return count_content_tokens((kind(blob=BlobRef("0" * 64, size), mime=mime),))

        assert of(400, "text/plain") == 100
        assert of(10, "application/pdf") == 1_500
        assert of(10**6, "application/pdf") == 40_000
        assert of(10**9, "application/pdf") == 150_000
        assert of(50_000, "audio/mp3", Audio) == 100

    def test_thinking_counts_only_where_it_is_sent(self):
        thought = Thinking(text=WORDS)
        signed = Thinking(text=WORDS, wire=Raw(b'{"signature":"s"}'))
        assert count_content_tokens((thought,)) == 0
        assert count_content_tokens((signed,)) == estimate_tokens(WORDS)

    def test_a_providers_own_block_takes_a_quarter_of_its_bytes(self):
        assert count_content_tokens((Opaque(raw=Raw(b'"' + b"x" * 98 + b'"')),)) == 25
        assert count_content_tokens((Unknown(raw=Raw(b'"x"')),)) == 0

    def test_entries_take_what_their_messages_take(self):
        entries = path([say("go"), answer("a"), result("a", WORDS), Note(WORDS), told("done")])
        assert sum(map(count_entry_tokens, entries)) == count_messages_tokens(sent(entries))
        stopped = replace(told(WORDS), stop_reason="aborted")
        assert [count_entry_tokens(entry) for entry in path([stopped, Note(WORDS)])] == [0, 0]

    def test_tools_take_their_description_and_schema(self):
        described = count_fixed_tokens("", [TOOL]) - count_fixed_tokens(
            "", [replace(TOOL, description="")]
        )
        assert described == pytest.approx(estimate_tokens("Lists a folder."), abs=1)
        assert count_fixed_tokens("be brief", []) == estimate_tokens("be brief")

    def test_what_is_remembered_is_bounded_in_number_and_in_size(self):
        memo = TokenMemo(most=10, most_tokens=1_000)
        texts = [f"{n} {WORDS}" for n in range(25)]
        for text in texts:
            assert memo.keep(text, 5) == 5
        assert [memo.known.get(id(text)) for text in texts[20:]] == [(one, 5) for one in texts[20:]]
        assert len(memo.known) <= 10
        assert memo.held == 5 * len(memo.known)
        for n in range(25):
            memo.keep(f"{n} more {WORDS}", 400)
            assert memo.held <= 1_400

    def test_contents_that_are_gone_are_not_taken_for_new_ones(self):
        for n in range(300):
            assert count_content_tokens((Text(text=WORDS * n),)) == estimate_tokens(WORDS * n)


class TestTheSizeOfACall:
    def test_is_what_the_provider_counted_and_an_estimate_of_what_followed(self):
        """C31: the usage of the last reply, and an estimate of the tail."""
        payloads = [say("go"), told("done", COUNTED)]
        assert size(payloads) == ContextSize(1_000, exact=True)
        assert size([*payloads, say(WORDS)]) == ContextSize(
            1_000 + estimate_tokens(WORDS) + 4, exact=True
        )

    def test_counts_cached_tokens_where_no_total_is_given(self):
        usage = Usage(input=1, output=2, cache_read=30, cache_write=400)
        assert size([say("go"), told("done", usage)]) == ContextSize(433, exact=True)

    def test_is_estimated_where_nothing_was_counted(self):
        payloads = [say("go"), told("done")]
        assert size(payloads) == estimated(payloads)
        entries = path(payloads)
        with_tool, without = measure(entries, tools=(TOOL,)), measure(entries)
        assert with_tool.tokens - without.tokens == count_fixed_tokens("", [TOOL])

    def test_never_counts_an_answer_from_before_the_anchor(self):
        """M155: what was counted before a compaction says nothing of the view after it."""
        kept = [say("old"), told("kept", COUNTED)]
        payloads = [*kept, say("new")]
        assert size(payloads, since=2) == estimated(payloads)
        after = [*payloads, told("newest", Usage(total=70))]
        assert size(after, since=2) == ContextSize(70, exact=True)

    def test_never_counts_an_answer_of_another_model(self):
        payloads = [say("go"), told("done", COUNTED, model="other")]
        assert size(payloads) == estimated(payloads)
        mine = [say("go"), told("mine", Usage(total=50)), *payloads]
        assert size(mine) == ContextSize(
            50 + estimated(payloads).tokens - estimate_tokens("be brief"), exact=True
        )

    def test_never_counts_what_was_stopped_or_failed(self):
        payloads = [say("go"), replace(told("half", COUNTED), stop_reason="error")]
        assert size(payloads) == estimated(payloads)

    @pytest.mark.parametrize("decision", [lambda e: decide_elision(e, 99, 100), decide_truncation])
    def test_never_counts_an_answer_from_before_less_was_sent(self, decision):
        steps = [one for n in "abcdef" for one in (answer(n), result(n, WORDS * 200))]
        payloads = [say("go"), *steps, told("done", COUNTED)]
        assert size(payloads) == ContextSize(1_000, exact=True)
        entries = path([*payloads, decision(path(payloads))])
        found, less = measure(entries), elide_results(sent(entries), entries)
        fixed = estimate_tokens("be brief")
        assert found == ContextSize(count_messages_tokens(less) + fixed, exact=False)
        assert found.tokens < count_messages_tokens(sent(entries))

    def test_goes_by_the_count_of_an_earlier_model_far_below_the_limit(self):
        """The whole past is estimated only where that count is near the limit."""
        payloads = [say("go"), told("done", COUNTED, model="other"), say(WORDS)]
        tail = estimate_tokens(WORDS) + 4
        assert measure_near(payloads, 10_000) == 1_000 + tail
        assert measure_near(payloads, 1_999) == estimated(payloads).tokens
        mine = [say("go"), told("mine", Usage(total=50)), *payloads]
        assert measure_near(mine, 10_000) == size(mine).tokens

    def test_goes_by_the_bound_where_nothing_was_counted(self):
        payloads = [say("go"), told("done"), say(WORDS * 100)]
        assert measure_near(payloads, 100) == estimated(payloads).tokens
        assert 0 < measure_near(payloads, 100_000) < 2 * estimated(payloads).tokens


class TestTheWarning:
    def test_comes_above_80_percent(self):
        """M020: with the share in percent."""
        assert build_fill_warning(800, 1_000) is None
        assert build_fill_warning(801, 1_000) == "Context usage at ~80% of context window"
        assert build_fill_warning(1_234, 1_000) == "Context usage at ~123% of context window"
        assert build_fill_warning(10**9, None) is None

    def test_may_go_by_four_characters_for_a_token(self):
        """M020, M155: the rough rule, with text, calls and thinking."""
        call = ToolCall(id="a", name="bash", args=Raw(b'{"a":1}'))
        messages = [
            Message("user", (Text(text="x" * 3_200),)),
            Message("assistant", (Thinking(text="y" * 8), call)),
        ]
        assert estimate_by_characters(messages) == 805  # 3 200 + 8 + 4 + 7 characters
        assert build_fill_warning(estimate_by_characters(messages), 1_000) is not None
        assert build_fill_warning(estimate_by_characters(messages[:1]), 1_000) is None


@pytest.mark.corpus
@pytest.mark.skipif(not PI.exists(), reason="no corpus here")
def test_a_count_kept_by_another_program_is_read_with_all_its_parts():
    counted = 0
    for line in (PI / "v3_two_compactions.jsonl").read_text("utf-8").splitlines():
        usage = json.loads(line).get("message", {}).get("usage")
        if usage and usage.get("totalTokens"):
            parts = Usage(
                usage["input"],
                usage["output"],
                cache_read=usage["cacheRead"],
                cache_write=usage["cacheWrite"],
            )
            assert size([told("x", parts)]).tokens == usage["totalTokens"]
            counted += 1
    assert counted


def test_a_past_beyond_every_window_is_sampled_and_comes_out_within_three_percent():
    """Issue 14: `gong context` on 100,000 entries; whether a window is full is never sampled."""
    prose, code, han = "some words of a prompt, ", "if self.value[0] != {'a': 12}:\n", "漢字とかな"
    texts = [(prose, code, prose + code)[n % 3] * (20 + n * 7919 % 90) for n in range(4_000)]
    texts += [han * (20 + n * 7919 % 90) for n in range(3_000)]
    contents = [(Text(text=text),) for text in texts]
    each = [count_content_tokens(content) for content in contents]
    exact_until = 3_900_000  # bytes
    count = SampledEstimate().count
    sampled = [*map(count, contents)]
    assert sum(sampled) == pytest.approx(sum(each), rel=0.03)
    read = 0
    for content, one, known in zip(contents, sampled, each, strict=True):
        read += len(content[0].text.encode())
        if read > exact_until:
            break
        assert one == known
    assert sampled != each
