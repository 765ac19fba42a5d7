"""Which entries `tape log` lists, in which order, and the numbers of the prompts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tape.cli.log_view import LogFilter, read_log
from tape.history.entry_lines import read_line_runs
from tape.index.library import open_store
from tape.model.entries import Text, User
from tape.model.line import encode_line, encode_payload
from tape.store.store import Beginning
from tests.e2e.terminal import Terminal
from tests.tape import making
from tests.tape.cli.conftest import BIN, CALL, TYPES, line, words

SPENT = {"provider": "p", "model": "m", "usage": {"input": 1, "output": 1, "total": 2}}
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


def test_the_newest_is_last_unless_newest_first_is_asked_for(tape, talk):
    """In a terminal and in a pipe."""
    oldest_first = [f"ID  {kind}" for kind in TYPES]
    for options, rows in [
        ((), oldest_first),
        (("--reverse",), oldest_first),
        (("--newest-first",), oldest_first[::-1]),
        (("-2",), oldest_first[-2:]),
        (("-2", "--newest-first"), oldest_first[:-3:-1]),
    ]:
        shown = show(tape, "log", "--oneline", *options)
        assert [" ".join(row.split()[:2]).replace(" ", "  ") for row in shown] == rows
    piped = tape("log", "--json").json
    assert [one["type"] for one in piped] == TYPES
    assert tape("log", "--json", "--newest-first").json == piped[::-1]
    assert tape("log", "--json", "--newest-first", "-n2").json == piped[:-3:-1]
    assert tape("log", "--json", "-2").json == piped[-2:]


def without_times(rows):
    return [re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", row) for row in rows]


FOLDED = [
    "ID  start        test/1 in …",
    "user ID · 1 · TIME",
    "  Read a.py",
    "assistant ID · 2 · TIME · offline/rules",
    "  I look.",
    "ID  1 call: → read a.py",
    "assistant ID · 5 · TIME · offline/rules",
    "  It sets x.",
]


def test_a_terminal_folds_the_calls_of_a_log(tape, talk):
    """A pipe does where that is asked for, and a terminal does not where entries are chosen."""
    shown = without_times(show(tape, "log"))
    assert [re.sub(" in /.*", " in …", row) for row in shown] == FOLDED
    assert without_times(show(tape, "log", "--since", "1d"))[1:] == FOLDED[1:]
    whole = without_times(show(tape, "log", "--no-fold"))
    assert len(whole) > len(FOLDED)
    assert len(show(tape, "log", "-9")) == len(whole)
    for options in (("--all",), ("--type", "tool.result"), ("--newest-first",), ("-p",)):
        assert "tool.result" in "\n".join(show(tape, "log", *options))
    piped = tape("log").text
    assert "tool.start" in piped
    assert "1 call: → read a.py" in tape("log", "--fold").text
    for option in ("--json", "--oneline", "-p", "--newest-first"):
        assert "--fold is for the log as text" in tape.refused("log", "--fold", option, code=2)


def test_runs_of_calls_count_and_name_what_failed(tape, talk):
    call = {"type": "tool_call", "id": "c", "name": "bash", "args": {"command": "make \x1b[31m"}}
    failed = {"call_id": "c", "name": "bash", "content": words("no"), "is_error": True}
    once = line("assistant", content=[call], provider="p", model="m", stop_reason="tool_calls")
    once += line("approval", call_id="c", decision="allow", by="mode")
    once += line("tool.result", **failed) + line("usage", purpose="title", **SPENT)
    tape("append", talk, stdin=once * 3 + line("error", **{"class": "X", "message": "over"}))
    tape("append", talk, stdin=once + line("user", content=words("Stop.\nNow.")))
    rows = show(tape, "log")[len(FOLDED) :]
    assert rows[0].startswith("ID  3 calls, 3 failed: $ make ␛[31m · $ make")
    assert len(rows[0]) <= 70
    assert [row for row in rows if "call" in row][1].startswith("ID  1 call, 1 failed: $ make")
    assert rows[-2:] == ["  Stop.", "  Now."]
    assert "usage" not in "\n".join(rows)


def test_prompts_are_bold(tape, talk):
    tape.env["CLICOLOR_FORCE"] = "1"
    for options in ((), ("--fold",)):
        assert b"\x1b[1m  Read a.py" in tape.real("log", *options).out


@pytest.mark.parametrize("columns", [44, 80, 100, 200])
def test_a_folded_line_fits(tape, talk, columns):
    many = [dict(CALL, id=f"c{n}", args={"path": f"some/long/path/{n}.py"}) for n in range(40)]
    said = line("assistant", content=many, provider="p" * 30, model="m" * 30)
    tape("append", talk, stdin=said + line("assistant", content=words("Done."), model="m" * 90))
    command = [str(BIN), "--no-pager", "log"]
    with Terminal(command, cwd=tape.work, env=tape.env, columns=columns) as terminal:
        terminal.wait_for_end()
        assert any("40 calls: " in row and row.endswith("…") for row in terminal.rows())
        assert not any(row.startswith("m" * 20) for row in terminal.rows())


def test_prompts_are_numbered_as_a_caret_takes_them(tape, talk):
    tape("append", talk, stdin=line("user", content=words("And b.py?")) + line("note", text="x"))
    tape("append", talk, stdin=line("user", content=words("Thanks")))
    expected = [
        "^1  ID  user         Thanks",
        "^2  ID  user         And b.py?",
        "^3  ID  user         Read a.py",
    ]
    assert show(tape, "log", "--type", "user", "--oneline") == expected[::-1]
    assert show(tape, "log", "--type", "user", "--oneline", "-2") == expected[1::-1]
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
            prompts = LogFilter(frozenset({"user"}))
            users = [*read_log(tape, head, prompts, numbered=True)]
            steps = [one.step for one in every]
            assert [one.step for one in users] == [s for s in steps if s.entry.type == "user"]
            assert users[-2:] == [*read_log(tape, head, prompts, newest=2, numbered=True)]
            if head is not None:
                assert b"".join(read_line_runs(tape, head)) == b"".join(
                    step.line + b"\n" for step in steps
                )
                assert [one.prompt for one in users] == [*range(len(users), 0, -1)]
            middle = every[len(every) // 2].step.entry.time
            later = LogFilter(since=middle)
            assert [*read_log(tape, head, later)] == [
                one for one in every if one.step.entry.time >= middle
            ]


@pytest.mark.parametrize("data", [b'{"content":[{]}', b'{"content":[],"x":"\xff"}'])
def test_a_line_that_is_no_json_is_left_out_of_every_form(tape, data):
    """Another program wrote it, with valid hashes: it is named, and all around it is shown."""
    with making.store_in(tape.store).create(Beginning(str(tape.work), "test/1", "Odd")) as made:
        making.write(made, "before")
        head = made.head()
        with made.writer() as writer:
            after = writer.append(making.say("after"))
    (file,) = tape.folder(made.id).glob("phases/*/entries.jsonl")
    lines = file.read_bytes().splitlines(keepends=True)
    time = head.header.time
    odd, bad = encode_line("user", head.entry, head.header.n + 1, time, data)
    last = encode_line("user", odd.id, odd.n + 1, time, encode_payload(after.data))[1]
    file.write_bytes(b"".join([*lines[:-1], bad, last]))
    expected = b"[\n" + b",\n".join(line[:-1] for line in (*lines[:-1], last)) + b"\n]\n"
    for command in (("log", "--json"), ("cat", "--json")):
        ran = tape(*command, made.id)
        assert ran.out == expected
        assert ran.err.count("cannot be read") == 1
    assert [text for text in ("before", "after") if text in tape("cat", made.id).text] == [
        "before",
        "after",
    ]
