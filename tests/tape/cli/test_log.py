"""Which entries `tape log` lists, in which order, and the numbers of the prompts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tape.cli.log_view import LogFilter, read_log
from tape.index.library import open_store
from tape.model.entries import Text, User
from tape.store.store import Beginning
from tests.e2e.terminal import Terminal
from tests.tape import making
from tests.tape.cli.conftest import BIN, TYPES, line, words

SECOND = 1_000_000


@pytest.fixture
def forked(tape):
    """Two branches, written in turns, an entry each second: the tape's id."""
    ticks = iter(range(10**6))
    store = making.store_in(tape.store, lambda: making.DAY + SECOND * next(ticks))
    with store.create(Beginning(str(tape.work), "test/1", "Forked")) as made:
        with made.writer() as writer:
            base = writer.append(making.say("one")).id
        made.fork(making.at(made, base), "side")
        for text in ("two", "three"):
            for branch in ("main", "side"):
                with made.writer(branch) as writer:
                    writer.append(making.say(f"{text} on {branch}"))
        with made.writer() as writer:
            writer.append(replace(making.answer("c_1"), provider="offline", model="rules"))
            writer.append(making.result("c_1"))
        return made.id


def show(tape, *arguments):
    """What a terminal shows, without ids."""
    command = [str(BIN), "--no-pager", *arguments]
    with Terminal(command, cwd=tape.work, env=tape.env, columns=70) as terminal:
        assert terminal.wait_for_end() == 0
        rows = [row.rstrip() for row in terminal.text().split("\n") if row.strip()]
        return [re.sub(r"\b[0-9a-f]{8,12}\b", "ID", row) for row in rows]


def test_a_terminal_shows_the_newest_first_and_a_pipe_the_oldest(tape, talk):
    newest_first = [f"ID  {kind}" for kind in reversed(TYPES)]
    for options, rows in [
        ((), newest_first),
        (("--reverse",), newest_first[::-1]),
        (("-2",), newest_first[:2]),
        (("-2", "--reverse"), newest_first[1::-1]),
    ]:
        shown = show(tape, "log", "--oneline", *options)
        assert [" ".join(row.split()[:2]).replace(" ", "  ") for row in shown] == rows
    piped = tape("log", "--json").json
    assert [one["type"] for one in piped] == TYPES
    assert tape("log", "--json", "--newest-first").json == piped[::-1]
    assert tape("log", "--json", "--newest-first", "-n2").json == piped[:-3:-1]
    assert tape("log", "--json", "-2").json == piped[-2:]


def test_prompts_are_numbered_as_a_caret_takes_them(tape, talk):
    tape("append", talk, stdin=line("user", content=words("And b.py?")) + line("note", text="x"))
    tape("append", talk, stdin=line("user", content=words("Thanks")))
    expected = [
        "^1  ID  user         Thanks",
        "^2  ID  user         And b.py?",
        "^3  ID  user         Read a.py",
    ]
    assert show(tape, "log", "--type", "user", "--oneline") == expected
    assert show(tape, "log", "--type", "user", "--oneline", "-2") == expected[:2]
    piped = tape("log", "--type", "user", "--oneline").text
    assert re.sub("[0-9a-f]{8}", "ID", piped).split("\n")[:-1] == expected[::-1]
    for number, text in [(1, "Thanks"), (2, "And b.py?"), (3, "Read a.py")]:
        place = tape("fork", f"^{number}", "--json").json
        found = tape("log", "--json").json
        (at,) = [n for n, one in enumerate(found) if one["id"] == place["entry"]]
        assert found[at + 1]["data"]["content"][0]["text"] == text
    assert tape("log", "--type", "user", "main^2").text.startswith("^1  user ")


def test_log_can_be_narrowed_by_time_and_model(tape, forked):
    main = tape("log", "main", "--json").json
    early, late = main[1]["time"], main[3]["time"]
    for options, expected in [
        (["--since", late], main[3:]),
        (["--until", late], main[:3]),
        (["--since", early, "--until", late], main[1:3]),
        (["--since", early, "--until", late, "-1"], main[2:3]),
        (["--since", early, "--type", "tool.result"], main[-1:]),
        (["--author-model", "OFFLINE/"], main[-2:-1]),
        (["--author-model", "opus"], []),
    ]:
        assert tape("log", "main", "--json", *options).json == expected
        assert tape("log", "main", "--json", "--newest-first", *options).json == expected[::-1]
    assert tape.refused("log", "--since", "soon", code=2).startswith("'soon' is not a valid time")


def test_all_lists_every_branch_by_time(tape, forked):
    rows = show(tape, "log", "--all", "--oneline")
    piped = tape("log", "--all", "--json").json
    times = [one["time"] for one in piped]
    assert times == sorted(times)
    assert len(rows) == len(piped)
    both = tape("log", "main", "--json").json + tape("log", "side", "--json").json
    assert {one["id"] for one in piped} == {one["id"] for one in both}
    assert tape("log", "--all", "--json", "-2").json == piped[-2:]
    assert tape("log", "--all", "--type", "user", "--oneline").text.count("^") == 0


def test_a_graph_is_narrowed_in_the_same_way(tape, forked):
    drawn = tape("log", "--graph", "--author-model", "offline", "--type", "assistant").text
    assert drawn.count("assistant") == 1
    assert "two on" not in drawn
    assert tape.refused("log", "--graph", "--reverse", code=2).startswith("--graph is drawn")


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_newest_first_is_oldest_first_turned_round(tmp_path_factory, data):
    """Whatever the tree, filters and number: both orders list the same entries, also of --all."""
    ticks = iter(range(10**6))
    home = tmp_path_factory.mktemp("store")
    store = open_store(home, clock=lambda: making.DAY + SECOND * next(ticks)).store
    with store.create(Beginning("/", "test/1")) as tape:
        for step in range(data.draw(st.integers(1, 8))):
            names = [*tape.refs().branches]
            branch = data.draw(st.sampled_from(names))
            if data.draw(st.booleans()):
                branch = tape.fork(tape.head(branch))
            with tape.writer(branch) as writer:
                writer.append(User((Text(str(step)),)))
        heads = [None, *(tape.head(name) for name in tape.refs().branches)]
        for head in heads:
            every = [*read_log(tape, head, LogFilter())]
            assert every == [*read_log(tape, head, LogFilter(), newest_first=True)][::-1]
            users = [*read_log(tape, head, LogFilter(frozenset({"user"})))]
            assert users == [one for one in every if one.step.entry.type == "user"]
            assert users[-2:] == [*read_log(tape, head, LogFilter(frozenset({"user"})), newest=2)]
            if head is not None:
                assert [one.prompt for one in users] == [*range(len(users), 0, -1)]
            middle = every[len(every) // 2].step.entry.time
            later = LogFilter(since=middle)
            assert [*read_log(tape, head, later)] == [
                one for one in every if one.step.entry.time >= middle
            ]
