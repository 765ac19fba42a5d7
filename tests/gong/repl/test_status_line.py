import pytest

from gong.repl.status_line import SessionUsage, choose_next_mode, render_status_line

KNOWN = SessionUsage(3_400, 10_000, "$0.120")


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (80, "plan · anthropic/model-x · main · 34 % · $0.120 · working 3 s · queue 2"),
        (64, "plan · anthropic… · main · 34 % · $0.120 · working 3 s · queue 2"),
        (57, "plan · anthropic/m… · main · 34 % · working 3 s · queue 2"),
        (47, "plan · anthropi… · main · working 3 s · queue 2"),
        (37, "plan · main · working 3 s · queue 2"),
        (10, "main · wo…"),
    ],
)
def test_money_gives_way_first_then_percent_and_model(columns, line):
    assert (
        render_status_line("plan", "anthropic/model-x", "main", KNOWN, ["working 3 s"], 2, columns)
        == line
    )


def test_what_is_not_known_is_not_shown():
    assert (
        render_status_line("default", "a/b:high", "main", SessionUsage(), ["ready"], 0, 80)
        == "default · a/b:high · main · ready"
    )
    assert (
        render_status_line("default", "a/b", "main", SessionUsage(0, 100), ["ready"], 0, 80)
        == "default · a/b · main · 0 % · ready"
    )


def test_a_branch_in_wide_letters_is_cut_by_its_columns():
    assert render_status_line("plan", "a/b", "枝枝枝枝枝", SessionUsage(), ["ready"], 0, 16) == (
        "枝枝枝枝枝 · re…"
    )


@pytest.mark.parametrize(
    ("first", "turn"),
    [
        ("default", ["default", "accept_edits", "plan", "default"]),
        ("locked", ["locked", "default", "accept_edits", "plan", "default"]),
        ("bypass", ["bypass", "default", "accept_edits", "plan", "bypass"]),
    ],
)
def test_the_mode_key_reaches_bypass_only_where_the_session_began_in_it(first, turn):
    seen = [first]
    for _ in turn[1:]:
        seen.append(choose_next_mode(seen[-1], first))
    assert seen == turn
