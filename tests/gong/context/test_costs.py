"""Sums of what model calls took; what nobody told is never taken for nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gong.context.costs import (
    COST_GROUPINGS,
    CostBudget,
    CostOrigin,
    CostReport,
    Spend,
    compute_spend,
    format_cost,
    format_money,
    render_token_usage,
    sum_spend,
)
from gong.context.handoff import read_path_entries, read_tape_entries
from tape.model.entries import Anchor, Assistant, Context, Cost, SideUsage, Text, Usage
from tests.tape.making import beginning, say, store_in


def usd(amount):
    return None if amount is None else Cost("USD", amount)


def answer(provider, tokens, cost, text="ok"):
    usage = Usage(input=tokens, output=0, total=tokens)
    return Assistant(
        (Text(text=text),) if text else (),
        provider=provider,
        model="m",
        usage=usage,
        cost=usd(cost),
    )


@pytest.fixture
def tape(tmp_path):
    with store_in(tmp_path / "store").create(beginning()) as tape:
        yield tape


def recorded(tape, *payloads, branch=None):
    with tape.writer(branch) as writer:
        return [
            writer.anchor(one) if isinstance(one, Anchor) else writer.append(one)
            for one in payloads
        ]


def sums(tape, by):
    costs = CostReport(by)
    for branch, entry in read_tape_entries(tape):
        costs.take(entry, CostOrigin(tape.id, "", branch))
    return [(row.key, row.label, row.spend.usage.total, row.spend.cost) for row in costs.rows()]


def test_calls_are_summed_by_call_turn_branch_provider_and_day(tape):
    """M183: cost per call, turn, branch, tape, provider and day."""
    first, one, two, _, _, side, steer, three, follow, four = recorded(
        tape,
        say("build it"),
        answer("a", 100, 0.5),
        answer("b", 10, 0.25),
        Anchor(kind="compaction", summary="x"),
        say(" now \n test it "),
        SideUsage("summary", "a", "m", Usage(total=7), usd(0.125)),
        Context("user", "steering", (Text(text="faster"),)),
        answer("a", 1, None),
        Context("user", "follow_up", (Text(text="and deploy"),)),
        answer("a", 2, 1.0),
    )
    second = side.parent_id
    assert sums(tape, "call") == [
        (one.id, "a/m", 100, 0.5),
        (two.id, "b/m", 10, 0.25),
        (side.id, "a/m summary", 7, 0.125),
        (three.id, "a/m", 1, None),
        (four.id, "a/m", 2, 1.0),
    ]
    assert sums(tape, "turn") == [
        (first.id, "build it", 110, 0.75),
        (second, "now test it", 8, 0.125),
        (follow.id, "and deploy", 2, 1.0),
    ]
    assert sums(tape, "provider") == [("a", "a", 110, 1.625), ("b", "b", 10, 0.25)]
    assert sums(tape, "tape") == [(tape.id, "", 120, 1.875)]
    assert sums(tape, "branch") == [(f"{tape.id}:main", "", 120, 1.875)]
    assert sums(tape, "day") == [(steer.time[:10], steer.time[:10], 120, 1.875)]


def test_a_phase_that_was_only_started_is_not_read(tape):
    recorded(tape, answer("a", 100, 1.0))
    tape.phases.folder.make("0002-main-compaction").close()
    assert sums(tape, "provider") == [("a", "a", 100, 1.0)]


def test_entries_that_branches_share_count_once_and_paths_count_their_own(tape):
    """M183: by branch."""
    _, shared, _ = recorded(tape, say("x"), answer("a", 100, 1.0), answer("a", 10, 0.5))
    (hit,) = tape.find_entry(shared.id)
    tape.fork(hit.head, "other")
    recorded(tape, answer("a", 1, 0.25), branch="other")
    assert sums(tape, "branch") == [
        (f"{tape.id}:main", "", 110, 1.5),
        (f"{tape.id}:other", "", 1, 0.25),
    ]
    path = [entry for _, entry in read_path_entries(tape, tape.head("other"))]
    assert sum_spend(path) == Spend(2, Usage(101, 0, total=101), 1.25, 0)


def test_the_text_of_cost_is_that_of_the_seed():
    """M183: Input, Output, Total, Estimated Cost."""
    usage = Usage(input=12_450, output=3_280, total=15_730)
    assert render_token_usage(Spend(3, usage, 0.086)) == [
        "Token Usage:",
        "  Input:  12,450 tokens",
        "  Output: 3,280 tokens",
        "  Total:  15,730 tokens",
        "Estimated Cost: $0.086",
    ]
    more = render_token_usage(Spend(3, Usage(1, 2, cache_read=5_000, total=5_003), 0.5, 1))
    assert more[3] == "  Cache:  5,000 read tokens"
    assert more[-1] == "Estimated Cost: $0.500+ (1 call of unknown cost)"


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (0, "$0.00"),
        (0.0861, "$0.086"),
        (0.0033, "$0.0033"),
        (0.00002, "$0.00002"),
        (1.5, "$1.50"),
        (1234.567, "$1,234.57"),
    ],
)
def test_money_is_shown_as_people_read_it(amount, shown):
    assert format_money(amount) == shown


def test_an_unknown_price_is_not_zero(tape):
    free, failed, unknown = (
        answer("ollama", 10, 0.0),
        answer("a", 0, None, text=""),
        answer("a", 10, None),
    )
    *_, last = recorded(tape, free, failed, unknown)
    told = sum_spend(entry for _, entry in read_path_entries(tape, tape.head()))
    assert (told.calls, told.cost, told.unknown_calls, format_cost(told)) == (3, 0.0, 1, "$0.00+")
    alone = sum_spend([last])
    assert (alone.cost, format_cost(alone)) == (None, "unknown")
    assert format_cost(Spend()) == "$0.00"


def test_a_budget_is_over_once_its_limit_is_reached():
    """M183: a limit on the cost, with a warning if it cannot be enforced."""
    first = compute_spend(Usage(total=10), usd(0.6), answered=True)
    budget = CostBudget(1.0, first)
    assert (budget.is_over, budget.warning, format_cost(first)) == (False, None, "$0.600")
    over = CostBudget(1.0, first + compute_spend(Usage(total=10), usd(0.4), answered=True))
    assert over.is_over
    unknown = compute_spend(Usage(total=10), None, answered=True)
    blind = CostBudget(1.0, unknown)
    assert not blind.is_over
    assert "1 call of unknown cost" in (blind.warning or "")
    assert format_cost(unknown) == "unknown"


SPENDS = st.builds(
    Spend,
    calls=st.integers(0, 9),
    usage=st.builds(Usage, input=st.integers(0, 99), total=st.integers(0, 99)),
    cost=st.none() | st.sampled_from([0.0, 0.1, 0.2, 0.7]),
    unknown_calls=st.integers(0, 9),
)


@given(SPENDS, SPENDS, SPENDS)
def test_sums_do_not_depend_on_the_order(one, two, three):
    assert (one + two) + three == one + (two + three)
    assert one + two == two + one
    assert one + Spend() == one


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), SPENDS)))
def test_rows_of_any_kind_add_up_to_the_total(given):
    for by in COST_GROUPINGS:
        costs = CostReport(by)
        for key, label, spend in given:
            costs.add(key, label, spend)
        total = Spend()
        for row in costs.rows():
            total += row.spend
        assert total == costs.total
