import pytest

from gong.repl.app import SessionUsage, render_status_line

KNOWN = SessionUsage(3_400, 10_000, "$0.120")


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (80, "anthropic/model-x · main · 34 % · $0.120 · working 3 s · queue 2"),
        (57, "anthropic… · main · 34 % · $0.120 · working 3 s · queue 2"),
        (50, "anthropic/m… · main · 34 % · working 3 s · queue 2"),
        (40, "anthropi… · main · working 3 s · queue 2"),
        (30, "main · working 3 s · queue 2"),
        (10, "main · wo…"),
    ],
)
def test_money_gives_way_first_then_percent_and_model(columns, line):
    assert (
        render_status_line("anthropic/model-x", "main", KNOWN, ["working 3 s"], 2, columns) == line
    )


def test_what_is_not_known_is_not_shown():
    assert (
        render_status_line("a/b", "main", SessionUsage(), ["ready"], 0, 80) == "a/b · main · ready"
    )
    assert (
        render_status_line("a/b", "main", SessionUsage(0, 100), ["ready"], 0, 80)
        == "a/b · main · 0 % · ready"
    )


def test_a_branch_in_wide_letters_is_cut_by_its_columns():
    assert render_status_line("a/b", "枝枝枝枝枝", SessionUsage(), ["ready"], 0, 9) == "枝枝枝枝…"
