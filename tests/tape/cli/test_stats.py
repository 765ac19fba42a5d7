"""`tape stats`: sums as tables, JSON, and a chart on a terminal."""

from __future__ import annotations

import pytest

from tape.cli.stats_view import draw_bar
from tape.index.library import open_store
from tape.model.entries import Assistant, Text, Usage
from tape.store.store import Beginning
from tests.e2e.terminal import Terminal
from tests.tape import making
from tests.tape.cli.conftest import BIN, line, words


def answered(model: str, tokens: int, cost: float | None = None) -> bytes:
    told = {} if cost is None else {"cost": {"currency": "USD", "amount": cost}}
    usage = {"input": tokens, "output": 5, "total": tokens + 5}
    return line("assistant", content=words("…"), provider="lab", model=model, usage=usage, **told)


def ran(name: str, *, is_error: bool = False) -> bytes:
    return line(
        "tool.result",
        call_id="c",
        name=name,
        content=words("done"),
        is_error=is_error,
        duration_ms=1500,
    )


@pytest.fixture
def identity(tape):
    made = tape("new", "--title", "First").text.strip()
    said = line("user", content=words("Go")) + answered("big", 12_345, 0.5)
    said += ran("bash", is_error=True) + ran("ls") + answered("small", 5)
    tape("append", made, stdin=said)
    return made


SPENT = [
    *("calls", "input", "output", "reasoning", "cache_read", "cache_write", "total", "cost"),
    *("unpriced", "model_ms"),
]
RAN = [
    *("tool_calls", "tool_errors", "tool_ms", "files_changed"),
    *("error_rate", "first", "last"),
]


def test_json_has_stable_keys(tape, identity):
    whole = tape("stats", "--json").json
    assert list(whole) == ["total", "models", "days"]
    assert list(whole["total"]) == [*SPENT, *RAN]
    assert [list(row) for row in whole["models"]] == [["model", *SPENT, *RAN]] * 2
    assert [list(row) for row in whole["days"]] == [["day", *SPENT, *RAN]]
    keys = {
        "tape": ["tape", "title", *SPENT],
        "branch": ["tape", "branch", "title", *SPENT],
        "model": ["model", *SPENT],
        "day": ["day", *SPENT],
        "tool": ["tool"],
    }
    for by, names in keys.items():
        for row in tape("stats", "--by", by, "--json").json:
            assert list(row) == [*names, *RAN]


def test_sums_say_what_is_not_known(tape, identity):
    total = tape("stats", "--json").json["total"]
    assert (total["total"], total["cost"], total["unpriced"]) == (12_360, 0.5, 1)
    assert (total["reasoning"], total["error_rate"], total["tool_ms"]) == (None, 0.5, 3000)
    text = tape("stats").text.split("\n")
    assert text[:4] == [
        "tokens  12.4k: input 12.3k, output 10, reasoning –, cache read –, cache write –",
        "cost    $0.50+ (1 call unknown)",
        "models  2 calls, –",
        "tools   2 calls, 3.0 s, 1 failed (50%)",
    ]
    assert "lab/small      10      5       5       –      –      1      0       –" in text


def test_tables_by_tape_and_tool(tape, identity):
    heading, row, _ = tape("stats", "--by", "tape").text.split("\n")
    assert heading.split()[:2] == ["TAPE", "TOKENS"]
    assert row.split()[:3] == [identity[:8], "First", "12.4k"]
    assert tape("stats", "--by", "branch").text.split("\n")[1].startswith(f"{identity[:8]}:main ")
    assert [one.split() for one in tape("stats", "--by", "tool").text.split("\n")[:-1]] == [
        ["TOOL", "CALLS", "FAILED", "RATE", "TIME"],
        ["bash", "1", "1", "100%", "1.5", "s"],
        ["ls", "1", "0", "0%", "1.5", "s"],
    ]


def test_a_ref_means_one_tape(tape, identity):
    other = tape("new").text.strip()
    tape("append", other, stdin=answered("big", 1))
    assert tape("stats", "--json").json["total"]["calls"] == 3
    assert tape("stats", identity[:8], "--json").json["total"]["calls"] == 2
    assert tape("stats", f"{other}:main", "--by", "tape", "--json").json[0]["calls"] == 1
    assert tape.refused("stats", "abcdef", code=3)


def test_filters(tape, identity):
    assert tape("stats", "--model", "SMALL", "--json").json["total"]["calls"] == 1
    assert tape("stats", "--since", "1h", "--json").json["total"]["calls"] == 2
    assert tape("stats", "--project", ".", "--json").json["total"]["calls"] == 2
    none = tape("stats", "--until", "2020-01-01")
    assert (none.out, none.err) == (
        b"",
        "tape: nothing to count: no model or tool calls found\n",
    )
    assert tape("stats", "--until", "2020-01-01", "--json").json == {
        "total": None,
        "models": [],
        "days": [],
    }
    assert tape("stats", "--until", "2020-01-01", "--by", "tool", "--json").json == []
    assert "not a valid time" in tape.refused("stats", "--since", "someday", code=2)


def test_answers_are_the_same_without_the_index(tape, identity):
    found = tape("stats", "--json").json
    for file in tape.store.glob("index.db*"):
        file.unlink()
    assert tape("stats", "--json").json == found


def test_bars_are_as_long_as_their_numbers():
    assert [draw_bar(value, 4, 2) for value in (0, 1, 2, 3, 4, 5)] == [
        "",
        "▌",
        "█",
        "█▌",
        "██",
        "██",
    ]
    assert draw_bar(1, 1_000_000, 10) == "▏"
    assert draw_bar(1, 0, 10) == ""


def test_days_are_drawn_on_a_terminal_and_plain_in_a_pipe(tape):
    clock = [making.DAY]
    store = open_store(tape.store, clock=lambda: clock[0]).store
    with store.create(Beginning(str(tape.work), "test/1")) as made, made.writer() as writer:
        for tokens in (1_000, 4_000):
            usage = Usage(input=tokens, total=tokens)
            writer.append(Assistant((Text(text="…"),), model="big", usage=usage))
            clock[0] += 2 * 86_400_000_000
    days = tape("stats", "--by", "day", "--json").json
    assert [row["total"] for row in days] == [1_000, 4_000]
    assert "█" not in tape("stats").text
    with Terminal([str(BIN), "stats"], cwd=tape.work, env=tape.env, columns=100) as terminal:
        assert terminal.wait_for_end() == 0
        rows = [row for row in terminal.text().split("\n") if row.startswith("2026-")]
    bars = [row.count("█") for row in rows]
    assert len(rows) == 3
    assert bars[1] == 0
    assert bars[2] == pytest.approx(4 * bars[0], abs=4)
    assert all(len(row) <= 100 for row in rows)
