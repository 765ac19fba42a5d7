import pytest

from gong.repl.draw.status_line import (
    SessionUsage,
    StatusFacts,
    choose_next_mode,
    render_activity,
    render_status_line,
)

FACTS = StatusFacts(
    *("plan", "anthropic/model-x:high", "main"),
    SessionUsage(3_400, 10_000),
    "$0.120",
    *(2, 1, ("⠋ working 3 s", "bash", "round 2")),
)
ALL = (
    "plan · anthropic/model-x:high · 34 % · $0.120 · queue 2 · tasks 1 · main"
    " · ⠋ working 3 s · bash · round 2"
)


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (120, ALL),
        (100, ALL.replace("anthropic/", "")),
        (93, ALL.replace("anthropic/model-x:high", "model-x:h…")),
        (82, ALL.replace("anthropic/model-x:high", "model-x:…").replace(" · tasks 1", "")),
        (75, "plan · model-x:… · $0.120 · queue 2 · main · ⠋ working 3 s · bash · round 2"),
        (65, "plan · $0.120 · queue 2 · main · ⠋ working 3 s · bash · round 2"),
        (60, "$0.120 · queue 2 · main · ⠋ working 3 s · bash · round 2"),
        (50, "$0.120 · main · ⠋ working 3 s · bash · round 2"),
        (40, "main · ⠋ working 3 s · bash · round 2"),
        (10, "main · ⠋ …"),
    ],
)
def test_parts_give_way_in_their_order(columns, line):
    """M199: the provider's name, then tasks, context, model, mode, queue and cost."""
    assert render_status_line(FACTS, columns) == line


def test_what_is_not_known_is_not_shown():
    """M199: the strip of an idle session."""
    idle = StatusFacts("default", "a/b:high", "main", state=("ready",))
    assert render_status_line(idle, 80) == "default · a/b:high · main · ready"
    empty = idle._replace(used=SessionUsage(0, 100))
    assert render_status_line(empty, 80) == "default · a/b:high · 0 % · main · ready"


def test_the_line_names_another_place():
    """M125."""
    facts = StatusFacts("plan", "a/b", "main", state=("ready",), place="ssh://far/srv")
    assert render_status_line(facts, 80) == "plan · a/b · ssh://far/srv · main · ready"
    assert render_status_line(facts, 40) == "plan · b · ssh://far/srv · main · ready"
    long = facts._replace(place="k8s:" + "x" * 100)
    assert render_status_line(long, 80) == f"plan · a/b · k8s:{'x' * 25}… · main · ready"


def test_a_branch_in_wide_letters_is_cut_by_its_columns():
    facts = StatusFacts("plan", "a/b", "枝枝枝枝枝", state=("ready",))
    assert render_status_line(facts, 16) == "枝枝枝枝枝 · re…"


def test_the_mark_of_work_turns():
    """M199: spinner, tools, elapsed time and round."""
    assert render_activity(65.2, "bash, read", 3)[1:] == ["bash, read", "round 3"]
    assert len({render_activity(at / 7 + 0.01, "", 1)[0][0] for at in range(10)}) == 10
    assert render_activity(0.05, "", 1) == ["⠋ working 0 s"]


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
