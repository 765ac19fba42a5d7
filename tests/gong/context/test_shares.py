import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from gong.context.tokens import ContextSize, count_fixed_tokens, count_messages_tokens
from gong.context.usage_report import (
    ContextUsage,
    UsageShare,
    measure_context_usage,
    render_context_usage,
)
from gong.llm.types import Request, ToolSpec
from tape.context.repair import repair
from tape.context.view import view
from tape.model.entries import Anchor
from tape.text import measure_width
from tests.gong.context.histories import HISTORIES, TARGET, path, steer, told
from tests.tape.making import BUDGET, answer, result, say

TOOL = ToolSpec("ls", "Lists a folder.", Raw(b'{"type":"object"}'))
SEARCH = settings(max_examples=100 * BUDGET, deadline=None)


def metered(payloads, kept=(), system="be brief", tools=(TOOL,), **options):
    seen = view(path(payloads), path(kept))
    messages = repair(seen, TARGET).messages
    request = Request(model="model", messages=messages, system=system, tools=tools)
    return measure_context_usage(request, seen, **options), request


def test_each_part_is_listed_with_its_turns():
    """Who uses the window: system, tools, summary, each turn."""
    anchor = Anchor(kind="compaction", summary="what was")
    payloads = [
        *(say("old"), anchor, say("look at\n  the files"), answer("a"), result("a", "x" * 99)),
        *(steer("the new ones"), answer("a"), result("a"), told("done"), say("数一数"), told("二")),
    ]
    found, request = metered(
        payloads,
        kept=[told("kept")],
        system="be brief. Use tabs.",
        window=1_000,
    )
    named = [(part.kind, part.label, part.entry) for part in found.parts]
    assert named == [
        ("system", "system prompt", None),
        ("tools", "1 tool", None),
        ("summary", "summary of earlier messages", None),
        ("turn", "(the rest of an earlier turn)", None),
        ("turn", "look at the files", f"{2:08x}{'0' * 32}"),
        ("turn", "数一数", f"{9:08x}{'0' * 32}"),
    ]
    assert [part.tokens for part in found.parts[-2:]] == [
        count_messages_tokens(request.messages[2:9]),
        count_messages_tokens(request.messages[9:]),
    ]
    assert found.total == sum(part.tokens for part in found.parts)
    about = count_fixed_tokens(request.system, request.tools) + count_messages_tokens(
        request.messages
    )
    assert found.total == pytest.approx(about, abs=2)
    assert (found.exact, found.percent) == (False, round(found.total / 10, 1))


def test_a_label_is_the_first_60_characters_of_the_prompt():
    found, _ = metered([say("wort " * 40)])
    assert found.parts[-1].label == ("wort " * 12).rstrip()


def test_the_parts_add_up_to_what_the_provider_counted():
    payloads = [say("one"), told("1"), say("two, and much more of it"), told("2")]
    found, _ = metered(payloads, size=ContextSize(10_007, exact=True), window=None)
    assert (found.total, found.exact, found.percent) == (10_007, True, None)
    assert sum(part.tokens for part in found.parts) == 10_007
    plain, _ = metered(payloads)
    for mine, scaled in zip(plain.parts, found.parts, strict=True):
        assert scaled.tokens == pytest.approx(mine.tokens * 10_007 / plain.total, abs=1)


def test_a_meter_goes_round_as_json():
    found, _ = metered([say("one"), told("1")], window=100)
    assert msgspec.json.decode(msgspec.json.encode(found), type=ContextUsage) == found


def test_its_text_fits_80_columns_and_folds_old_turns():
    parts = [
        UsageShare("system", "system prompt", 1_000),
        UsageShare("turn", "长" * 60, 2_000_000, "0" * 40),
    ]
    parts += [UsageShare("turn", f"turn {n}", 10, f"{n:040x}") for n in range(3)]
    found = ContextUsage(tuple(parts), 2_001_030, True, 4_000_000, 50.0)
    lines = render_context_usage(found, turns=3).split("\n")
    assert lines == [
        "system prompt                           1,000   0.0 %  ░░░░░░░░░░░░░░░░░░░░",
        "1 earlier turn                      2,000,000  50.0 %  ██████████░░░░░░░░░░",
        *(
            f"turn {n}                                     10   0.0 %  ░░░░░░░░░░░░░░░░░░░░"
            for n in range(3)
        ),
        "2,001,030 tokens of 4,000,000 (50.0 %)",
    ]
    wide = render_context_usage(found).split("\n")[1]
    assert wide.startswith("长" * 16 + "…")
    assert measure_width(wide) == measure_width(lines[1]) <= 80


def test_its_text_says_where_all_is_estimated():
    found, _ = metered([say("one")], tools=())
    assert [part.kind for part in found.parts] == ["system", "turn"]
    assert render_context_usage(found).endswith(f"\nabout {found.total} tokens")


@pytest.mark.slow
@SEARCH
@given(HISTORIES, st.sampled_from([None, 7, 100_000]))
def test_every_message_is_in_one_part_and_every_prompt_begins_one(payloads, counted):
    size = ContextSize(counted, exact=True) if counted else None
    found, request = metered(payloads, system="", tools=(), size=size)
    assert found.total == (counted if counted and request.messages else found.total)
    assert sum(part.tokens for part in found.parts) == found.total
    if not counted:
        assert found.total == count_messages_tokens(request.messages)
        prompts = [f"{n:08x}{'0' * 32}" for n, one in enumerate(payloads) if is_prompt(one)]
        assert [part.entry for part in found.parts if part.entry] == prompts
    assert all(measure_width(line) <= 80 for line in render_context_usage(found).split("\n"))


def is_prompt(payload):
    return payload.entry_type == "user" and payload.content[0].text.strip()
