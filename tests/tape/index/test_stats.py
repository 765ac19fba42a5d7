"""Sums over sessions, checked by hand and against a count of every entry."""

from __future__ import annotations

from collections import Counter
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tape.clock import parse_timestamp
from tape.index.library import open_store
from tape.index.stats import StatsFilter, ToolTotals, UsageTotals, compute_statistics
from tape.model.entries import (
    Assistant,
    ChangedFile,
    Cost,
    Meta,
    SideUsage,
    Text,
    ToolResult,
    Usage,
)
from tape.store.maintenance.upkeep import detach, redact
from tape.store.store import Beginning
from tests.tape import making

HOUR = 3_600_000_000
FIRST_MOMENT = "0001-01-01T00:00:00.000001Z"
"""No whole day begins there."""


def asked(model: str, tokens: int, cost: float | None = None, **usage) -> Assistant:
    return Assistant(
        (Text(text="…"),),
        provider="lab",
        model=model,
        usage=Usage(input=tokens, output=1, total=tokens + 1, **usage),
        cost=None if cost is None else Cost("USD", cost),
        duration_ms=100,
    )


def ran(name: str, took: int = 10, *, is_error: bool = False) -> ToolResult:
    return ToolResult("c", name, (Text(text="done"),), is_error, duration_ms=took)


class Shop:
    """A store whose clock goes on by six hours with each entry."""

    def __init__(self, path) -> None:
        self.path = path
        ticks = count(parse_timestamp("2026-11-20T00:00:00.000000Z"), 6 * HOUR)
        self.store = open_store(path, clock=lambda: next(ticks)).store
        self.store.durable = False

    def tape(self, *payloads, cwd="/src/one", project=None, title=None, origin=None):
        beginning = Beginning(cwd, "test/1", title=title, project=project)
        tape = self.store.create(beginning, origin)
        with tape.writer() as writer:
            for payload in payloads:
                writer.append(payload)
        return tape

    def ask(self, by="all", **wanted):
        """Ask with the index and without, of what is kept by day and of each call: the same."""
        with open_store(self.path) as (store, index):
            found = compute_statistics(store, index, by, StatsFilter(**wanted))
            parts = StatsFilter(**{"since": FIRST_MOMENT} | wanted)
            assert found == compute_statistics(store, index, by, parts)
        assert found == compute_statistics(self.store, None, by, StatsFilter(**wanted))
        return found


@pytest.fixture
def shop(tmp_path):
    return Shop(tmp_path / "store")


def test_files_that_calls_changed_count_once_each(shop):
    def changing(name, *paths, source=None):
        files = tuple(ChangedFile(path, "modified", source) for path in paths)
        return ToolResult("c", name, (), files=files)

    shop.tape(
        asked("big", 10),
        changing("bash", "a", "b", "sub/../a"),
        asked("small", 20),
        changing("edit", "a"),
        Meta(cwd="/src/two"),
        changing("edit", "a", source="old"),
        ran("read"),
    )
    counts = {row.key: row.ran.files_changed for row in shop.ask("model")}
    assert counts == {"lab/big": 2, "lab/small": 2}
    assert {row.key: row.ran.files_changed for row in shop.ask("tool")} == {
        "bash": 2,
        "edit": 2,
        "read": 0,
    }
    assert [row.ran.files_changed for row in shop.ask()] == [3]


def test_sums_are_those_of_all_calls(shop):
    shop.tape(
        asked("big", 10, 0.5, cache_read=7),
        ran("read", 5),
        ran("bash", 20, is_error=True),
        asked("small", 20, reasoning=3),
        SideUsage("title", "lab", "small", Usage(1, 1, total=2), Cost("USD", 0.25)),
    )
    (row,) = shop.ask()
    assert row.spent == UsageTotals(3, 31, 3, 3, 7, None, 34, 0.75, 1, 200)
    assert row.ran == ToolTotals(2, 1, 25)
    assert row.ran.error_rate == 0.5
    assert (row.key, row.branch, row.title) == (None, None, None)
    assert row.first < row.last


def test_an_unreported_cost_stays_unknown(shop):
    shop.tape(asked("big", 10), ran("ls"))
    (row,) = shop.ask("model")
    assert (row.key, row.spent.cost, row.spent.unpriced) == ("lab/big", None, 1)
    shop.tape(asked("free", 10, 0.0))
    assert [row.spent.cost for row in shop.ask("model")] == [None, 0.0]


def test_numbers_that_no_call_can_have_taken_say_nothing_and_break_no_sum(shop):
    huge = 2**63 - 1
    shop.tape(asked("big", 10, 0.5), ran("ls"))
    before = shop.ask()
    odd = [Cost("USD", 1e308), Cost("USD", -1.0), Cost("EUR", 7.0)]
    payloads = [SideUsage("x", "lab", "odd", Usage(input=huge, output=-5), c) for c in odd]
    shop.tape(*payloads, *payloads, ran("ls", huge), ran("ls", huge), ran("ls", -1))
    (row,) = (row for row in shop.ask("model") if row.key == "lab/odd")
    assert row.spent == UsageTotals(6, 0, 0, total=0, unpriced=6)
    (after,) = shop.ask()
    assert (after.spent.total, after.spent.cost) == (before[0].spent.total, before[0].spent.cost)
    assert (after.ran.tool_calls, after.ran.tool_ms) == (4, before[0].ran.tool_ms)


def test_one_odd_count_does_not_take_the_others_along(shop):
    tape = shop.tape()
    with tape.writer() as writer:
        writer.append_data(
            "assistant",
            b'{"model":"m","usage":{"input":7,"output":1.5,"reasoning":true,"total":8}}',
        )
    (row,) = shop.ask()
    assert row.spent == UsageTotals(1, 7, 0, total=8, unpriced=1)


def test_very_many_tokens_are_summed_without_an_overflow(shop):
    most = 10**12
    shop.tape(*(SideUsage("x", "lab", "m", Usage(input=most)) for _ in range(50)))
    (row,) = shop.ask()
    assert row.spent.input == 50 * most


def test_a_tool_counts_for_the_model_that_asked(shop):
    shop.tape(
        asked("big", 10),
        ran("read"),
        SideUsage("title", "lab", "tiny", Usage()),
        ran("bash"),
        asked("small", 5),
        ran("bash", is_error=True),
    )
    found = {row.key: (row.spent.calls, row.ran) for row in shop.ask("model")}
    assert found == {
        "lab/big": (1, ToolTotals(2, 0, 20)),
        "lab/small": (1, ToolTotals(1, 1, 10)),
        "lab/tiny": (1, ToolTotals()),
    }
    assert [row.ran for row in shop.ask(model="SMALL")] == [ToolTotals(1, 1, 10)]
    assert [(row.key, row.ran) for row in shop.ask("tool", model="lab/big")] == [
        ("bash", ToolTotals(1, 0, 10)),
        ("read", ToolTotals(1, 0, 10)),
    ]


def test_days_are_utc_and_in_order(shop):
    tape = shop.tape(*(asked("big", at) for at in range(8)))
    answers = [entry for entry in making.entries(tape) if entry.type == "assistant"]
    days = Counter(entry.time[:10] for entry in answers)
    found = shop.ask("day")
    assert [(row.key, row.spent.calls) for row in found] == sorted(days.items())
    assert len(found) == 3
    assert all(row.key == row.first[:10] == row.last[:10] for row in found)


def test_whole_days_are_counted_as_their_calls_are(shop):
    """Also of tapes that grow while the index follows, and lose an answer."""
    tape = shop.tape(asked("big", 1, 0.5), ran("ls"))
    for at in range(2, 8):
        with tape.writer() as writer:
            writer.append(ran("bash", at))
            writer.append(asked("small" if at % 2 else "big", at))
            writer.append(ran("ls", at, is_error=True))
        shop.ask("model")
    midnight, before = "2026-11-21T00:00:00.000000Z", "2026-11-20T23:59:59.999999Z"
    for by in ("all", "model", "day", "branch", "person"):
        for model in (None, "SMALL"):
            since = shop.ask(by, since=midnight, model=model)
            assert since == shop.ask(by, since=before, model=model)
            until = shop.ask(by, until=midnight, model=model)
            assert until == shop.ask(by, until=before, model=model)
            assert len(since) > 0
    answer = next(entry for entry in making.entries(tape) if entry.type == "assistant")
    redact(tape, [answer.id], "wrong")
    (row,) = shop.ask(model="big")
    assert (row.spent.calls, row.spent.cost) == (3, None)


def test_tools_are_counted_without_tokens(shop):
    shop.tape(asked("big", 1), ran("bash", 7), ran("bash", 8, is_error=True), ran("ls", 1))
    assert [(row.key, row.spent, row.ran) for row in shop.ask("tool")] == [
        ("bash", UsageTotals(), ToolTotals(2, 1, 15)),
        ("ls", UsageTotals(), ToolTotals(1, 0, 1)),
    ]


def test_a_shared_past_counts_once_and_where_it_was_written(shop):
    tape = shop.tape(asked("big", 10), title="Mother")
    name = tape.fork(tape.head(), "try")
    with tape.writer(name) as writer:
        writer.append(asked("big", 100))
    with tape.writer() as writer:
        writer.append(asked("big", 30))
    child = shop.tape(asked("big", 1000), title="Child", origin=(tape, tape.head()))

    def counted(by, **wanted):
        return {(row.title, row.branch): row.spent.input for row in shop.ask(by, **wanted)}

    branches = {("Mother", "main"): 40, ("Mother", "try"): 100, ("Child", "main"): 1000}
    assert counted("branch") == branches
    assert counted("tape") == {("Mother", None): 140, ("Child", None): 1000}
    assert counted("all", tape=child.id) == {(None, None): 1000}
    assert counted("all", tape=tape.id, branch="try") == {(None, None): 100}
    detach(child)
    assert counted("branch") == branches
    assert counted("all", tape=child.id) == {(None, None): 1000}
    shop.store.remove(tape)
    assert counted("all") == {(None, None): 1040}  # the copy is all there is
    assert counted("all", tape=child.id) == {(None, None): 1000}


def test_filters_narrow_what_is_counted(shop):
    shop.tape(asked("big", 1), cwd="/src/one")
    shop.tape(asked("big", 2), cwd="/src/one/below")
    shop.tape(asked("big", 4), cwd="/src/onerous")
    shop.tape(asked("big", 8), cwd="/elsewhere", project="/src/one")

    def tokens(**wanted):
        return sum(row.spent.input for row in shop.ask(**wanted))

    assert tokens() == 15
    assert tokens(project="/src/one") == tokens(project="/src/one/") == 11
    assert tokens(project="/") == 15
    times = sorted(row.first for row in shop.ask("tape"))
    assert tokens(since=times[1]) == 14
    assert tokens(until=times[1]) == 1
    assert tokens(since=times[1], until=times[3]) == 6
    assert shop.ask(project="/nowhere") == []


def test_an_empty_store_has_nothing_to_sum(shop):
    assert shop.ask() == shop.ask("tape") == []


CALLS = st.one_of(
    st.builds(
        asked,
        st.sampled_from(["big", "small"]),
        st.integers(0, 9),
        st.sampled_from([None, 0.1, 0.7]),
    ),
    st.builds(ran, st.sampled_from(["ls", "bash"]), st.integers(0, 9), is_error=st.booleans()),
)


@pytest.mark.slow
@settings(max_examples=6 * making.BUDGET, deadline=None)
@given(st.lists(st.lists(CALLS, max_size=6), max_size=4))
def test_every_way_to_sum_gives_the_same_whole(tmp_path_factory, tapes):
    shop = Shop(tmp_path_factory.mktemp("shop") / "store")
    for calls in tapes:
        tape = shop.tape(*calls[:3])
        shop.ask("model")
        with tape.writer() as writer:
            for call in calls[3:]:
                writer.append(call)
    every = [call for calls in tapes for call in calls]
    answers = [call for call in every if isinstance(call, Assistant)]
    results = [call for call in every if isinstance(call, ToolResult)]
    for by in ("all", "tape", "branch", "day", "model"):
        rows = shop.ask(by)
        assert sum(row.spent.calls for row in rows) == len(answers)
        assert sum(row.spent.input or 0 for row in rows) == sum(a.usage.input for a in answers)
        costs = sum(row.spent.cost or 0 for row in rows)
        assert costs == pytest.approx(sum(a.cost.amount for a in answers if a.cost))
        assert sum(row.spent.unpriced for row in rows) == sum(a.cost is None for a in answers)
        assert sum(row.ran.tool_calls for row in rows) == len(results)
        assert sum(row.ran.tool_errors for row in rows) == sum(r.is_error for r in results)
        assert sum(row.ran.tool_ms for row in rows) == sum(r.duration_ms for r in results)
    by_tool = {row.key: row.ran.tool_calls for row in shop.ask("tool")}
    assert by_tool == {n: c for n in ("ls", "bash") if (c := sum(r.name == n for r in results))}
