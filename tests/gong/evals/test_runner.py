"""What a run gives each try: a share of the budget, and settings of its own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gong.config import Settings
from gong.evals.agent import choose_settings
from gong.evals.runner import Budget
from gong.tool_settings import SearchSettings, WebSettings


@given(st.floats(0.01, 100), st.integers(1, 8), st.lists(st.floats(0, 1), max_size=40))
def test_tries_that_run_together_share_what_is_left(
    total: float, jobs: int, parts: list[float]
) -> None:
    budget, running = Budget(total, 0.0, jobs), list[float]()
    for part in parts:
        if len(running) == jobs:
            share = running.pop(0)
            budget.give_back(share, share * part)
        if (share := budget.take()) is None:
            break
        running.append(share)
        assert budget.spent + sum(running) <= total * 1.000001


def test_a_budget_that_is_spent_gives_nothing_and_none_gives_all() -> None:
    assert Budget(1.0, 1.0, 2).take() is None
    assert Budget(1.0, 2.0, 2).take() is None
    assert Budget(0.0, 5.0, 2).take() == 0.0
    assert Budget(1.0, 0.5, 2).take() == 0.25


def test_a_try_asks_no_person_and_reaches_the_web_only_where_it_may() -> None:
    web = WebSettings(search=SearchSettings(native=True, url="https://s/{query}"))
    user = Settings(model="a/b", web=web, max_turns=7, sandbox="workspace-write")
    closed = choose_settings(user, seconds=5, cost=0.5, turns=0, network=False)
    assert (closed.permissions.mode, closed.border.mode) == ("bypass", "off")
    assert (closed.max_seconds, closed.max_cost, closed.max_turns) == (5, 0.5, 7)
    assert (closed.web.fetch, closed.web.search) == (False, SearchSettings())
    opened = choose_settings(user, seconds=5, cost=0, turns=3, network=True)
    assert (opened.web, opened.max_turns) == (web, 3)
