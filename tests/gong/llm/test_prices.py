"""What a call costs: hosts' lists, makers, services, searches and times."""

import json
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from gong.config import Settings
from gong.llm.model_names import ModelNames
from gong.llm.price_lists import (
    SHIPPED,
    ListedModel,
    NameRule,
    Period,
    PriceLists,
    load_price_lists,
)
from tape.model.entries import Cost, Usage
from tests.gong.llm.price_snapshot import render_snapshot

NAMES = ModelNames.from_settings(Settings())
AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
PLAIN = Usage(1000, 100, total=1100)
SUMS = json.loads(Path(__file__).with_name("price_sums.json").read_text())
"""Host, model, tokens and searches, time, service, and what genai-prices 0.2.3 makes of them."""


def test_sums_are_those_of_genai_prices():
    wrong = []
    for host, model, counts, at, service, amount in SUMS:
        sent, received, read, write, hour, web, file = counts
        tools = {"web_search": web, "file_search": file} if web or file else None
        total = sent + received + read + write
        usage = Usage(
            sent, received, None, read or None, write or None, total, hour or None, tools, service
        )
        cost = NAMES.compute_cost(host, model, usage, datetime.fromisoformat(at))
        if cost is None or cost.amount != pytest.approx(amount, rel=1e-7):
            wrong.append((host, model, usage, at, amount, cost))
    assert len(SUMS) > 100
    assert not wrong


@pytest.mark.parametrize(
    ("provider", "model", "usage", "amount"),
    [
        # the host's own price
        ("bedrock", "us.anthropic.claude-sonnet-5-5", PLAIN, 0.0033),
        ("openrouter", "anthropic/claude-sonnet-4.5", PLAIN, 0.0045),
        ("openai-chat", "gpt-4o", PLAIN, 0.0035),
        ("azure", "gpt-4o", PLAIN, 0.0035),
        ("vertex", "claude-opus-4-5@20251101", PLAIN, 0.0075),
        # the maker's, which clouds and routers pass on
        ("vercel", "google/gemini-2.5-pro", PLAIN, 0.00225),
        ("house", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", PLAIN, 0.0045),
        # no host and no maker
        ("openrouter", "openai/gpt-5-mini:free", PLAIN, None),
        ("house", "gpt-oss-120b", PLAIN, None),
        ("house", "llama-4", PLAIN, None),
        # searches of the provider; a service; a prompt that is kept for an hour
        ("anthropic", "claude-sonnet-5-5", Usage(15, 30, server_tools={"web_search": 2}), 0.02033),
        ("openai", "gpt-6.1-sol", msgspec.structs.replace(PLAIN, service="flex"), 0.0015),
        ("openai", "gpt-6.1-sol", msgspec.structs.replace(PLAIN, service="priority"), 0.006),
        ("anthropic", "claude-sonnet-5-5", Usage(cache_write=1000, cache_write_hour=1000), 0.004),
        ("anthropic", "claude-sonnet-4-5", Usage(250_000, 1000), 1.5225),
    ],
)  # fmt: skip
def test_a_call_costs_what_its_host_charges_or_its_maker(provider, model, usage, amount):
    cost = NAMES.compute_cost(provider, model, usage, AT)
    assert cost == (None if amount is None else Cost("USD", pytest.approx(amount)))


def test_the_price_of_the_hour_and_of_the_day_counts():
    peak, other = (AT.replace(hour=hour) for hour in (2, 5))
    million = Usage(1_000_000, 0)
    assert NAMES.compute_cost("deepseek", "deepseek-flash", million, peak) == Cost("USD", 0.3)
    assert NAMES.compute_cost("deepseek", "deepseek-flash", million, other) == Cost("USD", 0.15)


def test_a_row_of_the_users_goes_before_every_list():
    rows = {"openai/gpt-4o": {"price": {"input": 7, "output": 0, "cache_write_hour": 1}}}
    names = ModelNames.from_settings(Settings(models=rows))
    for provider in ("openai", "openai-chat"):
        assert names.compute_cost(provider, "gpt-4o", PLAIN) == Cost("USD", 0.007)
    # another host bills it
    assert names.compute_cost("azure", "gpt-4o", PLAIN) == Cost("USD", 0.0035)


@pytest.mark.parametrize(
    ("begin", "end", "hour", "holds"),
    [
        ("22:00", "04:00", 23, True),
        ("22:00", "04:00", 3, True),
        ("22:00", "04:00", 4, False),
        ("01:00", "04:00", 1, True),
        ("01:00", "04:00", 4, False),
        ("09:00+08:00", "12:00+08:00", 1, True),
        ("09:00+08:00", "12:00+08:00", 9, False),
    ],
)
def test_hours_may_cross_midnight_and_name_a_zone(begin, end, hour, holds):
    begin, end = (f"{clock[:5]}:00{clock[5:]}" for clock in (begin, end))
    period = msgspec.convert({"start_time": begin, "end_time": end}, Period)
    assert period.holds(AT.replace(hour=hour)) is holds


def test_a_rule_finds_names():
    rule = msgspec.convert(
        {"or": [{"equals": "A"}, {"and": [{"contains": "b"}, {"regex": "c$"}]}]}, NameRule
    )
    assert [name for name in ("a", "b", "xbyc", "cb") if rule.matches(name)] == ["a", "xbyc"]
    assert list(rule.list_patterns()) == ["c$"]


def test_a_list_that_lacks_a_model_leaves_it_to_the_one_below(tmp_path):
    model = {"id": "m", "match": {"equals": "m"}, "prices": {"input_mtok": 1}}
    newer = PriceLists.parse(msgspec.json.encode([{"id": "openai", "models": [model]}]))
    lists = PriceLists(newer.hosts, load_price_lists(tmp_path))
    assert lists.find_model("openai", "M").id == "m"
    assert lists.find_model("openai", "gpt-4o").id == "gpt-4o"
    broken = PriceLists.parse(b'[{"id": "openai", "models": [{"id": 3}]}]')
    assert PriceLists(broken.hosts, lists).find_model("openai", "gpt-4o").id == "gpt-4o"


def test_every_shipped_row_is_readable_and_every_preset_names_a_list_that_is_there():
    lists = load_price_lists(None)
    assert all(
        isinstance(row, ListedModel) for host in lists.hosts for row in lists.list_models(host)
    )
    named = {preset.price_list for preset in NAMES.presets.values()} - {""}
    assert named <= lists.hosts.keys()


def test_the_shipped_lists_are_what_the_snapshot_makes_of_them():
    data = SHIPPED.read_bytes()
    assert render_snapshot(data) == data.decode()


def test_counts_of_tools_and_services_add_up():
    first = Usage(1, server_tools={"web_search": 1}, service="flex")
    other = Usage(2, server_tools={"web_search": 2, "web_fetch": 1}, service="flex")
    assert first + other == Usage(3, server_tools={"web_search": 3, "web_fetch": 1}, service="flex")
    assert first + Usage(1) == Usage(2, server_tools={"web_search": 1})
