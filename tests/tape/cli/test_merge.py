"""`tape merge`: a branch comes back as a summary, with picked entries, and goes again."""

from __future__ import annotations

import json
import re

import pytest

from tests.e2e.terminal import Terminal
from tests.tape import making, reader
from tests.tape.cli.conftest import BIN, line
from tests.tape.cli.test_diff import change, part_branches


@pytest.fixture
def parted(tape):
    """A tape whose branches main and try part behind their first prompt: its id."""
    with part_branches(tape, "try") as made:
        with made.writer("try") as writer:
            writer.append(making.say("Try\nredis"))
            change(writer, "c_1", "edit", "a.py")
            change(writer, "c_2", "write", "b.py")
            writer.append(making.answer(text="It works."))
            writer.append(making.say("and the tests?"))
        with made.writer("main") as writer:
            writer.append(making.say("two"))
            change(writer, "c_3", "edit", "/src/a.py")
        return made.id


def words(tape, ref):
    """Return the texts of what a model is sent, each with its role."""
    messages = tape("context", ref, "--json").json["messages"]
    return [
        (one["role"], "".join(block.get("text", "") for block in one["content"]))
        for one in messages
    ]


def test_a_branch_comes_back_as_a_summary_that_names_it(tape, parted):
    before = words(tape, parted)
    ran = tape("merge", f"{parted}:try", "--json")
    assert list(ran.json) == ["tape", "branch", "entry"]
    assert (ran.json["tape"], ran.json["branch"]) == (parted, "main")
    assert "changed on both branches since they parted, on disk only once: /src/a.py" in ran.err
    summary, *rest = words(tape, parted)
    assert rest == before
    assert "- Merged 'try' (8 entries, 2 prompts), up to " in summary[1]
    assert '- on branch try: asked "Try redis" → "It works."' in summary[1]
    assert "- on branch try: tool calls: edit 1, write 1" in summary[1]
    assert "- on branch try: its last answer: It works." in summary[1]
    assert "## Files changed\n- /src/a.py\n- /src/b.py" in summary[1]
    assert "- on branch try: Try\nredis\n- on branch try: and the tests?" in summary[1]
    assert "Changed on main and on try since they parted" in summary[1]
    data = tape("show", f"{parted}@{ran.json['entry']}", "--json").json["data"]
    head = tape("show", f"{parted}:try", "--json").json["branches"][1]["entry"]
    assert data["other"] == {
        "tape": parted,
        "branch": "try",
        "entry": head,
        "picks": [],
        "reason": "merge",
    }
    assert data["covers"]["count"] == 8
    assert data["reason"] == "merged 'try' (8 entries, 2 prompts)"
    tape("verify", parted)
    tape("replay", parted, "--check")


def test_a_pick_stays_a_reference_and_a_call_comes_with_its_results(tape, parted):
    *_, call, result, _, _ = tape("log", f"{parted}:try", "--json").json
    ran = tape("merge", f"{parted}:try", "--pick", result["id"][:8], "--pick", "try")
    assert "was widened to 2 entries: a call comes with its results" in ran.err
    assert "keeping 3 picked entries" in ran.text
    assert words(tape, parted)[-3:] == [
        ("assistant", ""),
        ("tool", "ok"),
        ("user", "and the tests?"),
    ]
    folder = next(tape.store.glob("tapes/*"))
    anchor = reader.heads(folder)["main"]
    data = reader.path(folder, anchor)[-1]["data"]
    head = reader.heads(folder)["try"]
    assert data["other"]["picks"] == [result["id"], head]
    _, entries = reader.view(folder, anchor)
    assert [one["id"] for one in entries[-3:]] == [call["id"], result["id"], head]
    assert reader.faults(folder) == []


def test_one_line_of_the_journal_makes_it_and_one_takes_it_back(tape, parted):
    journal = next(tape.store.glob("tapes/*/refs.jsonl"))
    before, lines = words(tape, parted), len(journal.read_bytes().splitlines())
    tape("merge", f"{parted}:try", "--into", "main")
    *_, last = made = reader.refs(journal.parent)
    assert (len(made), last["branch"], last["why"]) == (lines + 1, "main", "merge")
    merged = words(tape, parted)
    undone = tape("merge", parted, "--undo", "--json").json
    assert undone["branch"] == "main"
    assert reader.refs(journal.parent)[-1]["why"] == "undo"
    assert words(tape, parted) == before
    assert words(tape, f"{parted}:main@{{1}}") == merged
    assert "has no merge to undo" in tape("merge", parted, "--undo", code=3).err
    tape("merge", f"{parted}:try")
    tape("append", parted, stdin=line("user", content=[{"type": "text", "text": "on"}]))
    assert "came after the merge" in tape("merge", "--undo", parted, code=2).err


def test_what_is_there_already_is_not_merged_again(tape, parted):
    first = tape("merge", f"{parted}:try", "--json").json
    again = tape("merge", f"{parted}:try")
    assert "already there: 'try' was merged at " in again.text
    assert tape("merge", f"{parted}:try", "--json").json == first
    assert "is on the path of 'main'" in tape("merge", f"{parted}:main~4").text
    assert (
        "cannot be merged into itself; others are: try"
        in tape("merge", f"{parted}:main", code=2).err
    )
    tape("append", f"{parted}:try", stdin=line("user", content=[{"type": "text", "text": "more"}]))
    tape("merge", f"{parted}:try")
    summary, *_ = words(tape, parted)
    assert "Merged 'try' (1 entry, 1 prompt)" in summary[1]
    assert "Merged 'try' (8 entries, 2 prompts)" in summary[1]


def test_a_summary_may_be_given(tape, parted):
    tape("merge", f"{parted}:try", "--summary", "Redis is *slower*.")
    summary, *_ = words(tape, parted)
    assert "- on branch try: Redis is *slower*." in summary[1]
    assert "its last answer" not in summary[1]
    tape("merge", parted, "--undo")
    (tape.work / "said.md").write_text("from a file\n")
    tape("merge", f"{parted}:try", "--summary", "said.md")
    assert "- on branch try: from a file" in words(tape, parted)[0][1]
    tape("merge", parted, "--undo")
    tape("merge", f"{parted}:try", "--summary", "-", stdin=b"from a pipe\n")
    assert "- on branch try: from a pipe" in words(tape, parted)[0][1]


def test_wrong_uses_say_what_to_do(tape, parted):
    other = tape("new").text.strip()
    errors = {
        (): "name the branch to merge, as in `tape merge :try-redis`",
        (f"{parted}:try", "--into", "no"): "no branch 'no' to merge into; there are: main, try",
        (f"{parted}:try", "--into", f"{other}:main"): "is a branch of another tape",
        (f"{parted}:try", "--pick", f"{other}:main"): "picks are entries of the tape of the merge",
        (f"{parted}:try", "--summary", " "): "the summary is empty",
        (f"{parted}:try", "--undo", "--summary", "x"): "--undo takes no --pick and no --summary",
    }
    for argv, text in errors.items():
        ran = tape("merge", *argv, code=None)
        assert ran.code in {2, 3}
        assert text in ran.err


def test_a_busy_branch_is_refused(tape, parted):
    store = making.store_in(tape.store)
    with store.open(parted) as open_tape, open_tape.writer("main"):
        assert "is being written by" in tape("merge", f"{parted}:try", code=5).err


def test_what_a_second_writer_made_is_joined(tape, parted):
    """Two writers of one tape: the second gets main.2, which `merge` brings back."""
    store = making.store_in(tape.store)
    with store.open(parted) as opened, opened.writer(), opened.writer() as second:
        second.append(making.say("from the other terminal"))
        assert second.branch == "main.2"
    tape("merge", f"{parted}:main.2", "--pick", f"{parted}:main.2")
    summary, *rest = words(tape, parted)
    assert "Merged 'main.2' (2 entries, 1 prompt)" in summary[1]
    assert rest[-1] == ("user", "from the other terminal")


def test_the_graph_draws_a_line_from_what_was_merged_into_the_merge(tape, parted):
    tape("merge", f"{parted}:try")
    tape("append", f"{parted}:try", stdin=line("user", content=[{"type": "text", "text": "more"}]))
    drawn = tape("log", parted, "--graph", "--fold").text.split("\n")
    assert [re.sub(r"[0-9a-f]{8}", "ID", one)[:27].rstrip() for one in drawn if one] == GRAPH

    assert "Merged 'try' (8 entries, 2 prompts): ## Done" in drawn[1]
    tape("merge", parted, "--undo")
    assert "\\" not in tape("log", parted, "--graph", "--fold").text


GRAPH = r"""
* ID (try)  user         mo
| # ID (* main)  anchor
| |\
| |/
|/|
* | ID  user         and th
: | 5 more: 3 assistant, 2
* | ID  user         Try re
* | ID  branch       try fr
| : 2 more: 1 tool.result,
| * ID  user         two
|/
* ID  user         one
* ID  start        test/1 i
""".strip().split("\n")


def test_a_branch_gets_a_summary_of_the_one_that_is_left_for_it(tape, parted):
    """M204: fork anywhere, branch summary on switch; the view of the branch stays."""
    before = words(tape, f"{parted}:try")
    ran = tape("switch", f"{parted}:try", "--summary", "--json")
    assert list(ran.json) == ["tape", "branch", "entry"]
    summary, *rest = words(tape, f"{parted}:try")
    assert rest == before
    assert "- on branch main, which was left: two" in summary[1]
    data = tape("show", f"{parted}@{ran.json['entry']}", "--json").json["data"]
    assert (data["kind"], data["other"]["branch"]) == ("merge", "main")
    assert data["other"]["reason"] == "left"
    assert "Left 'main' (3 entries)" in tape("log", f"{parted}:try").text
    back = tape("switch", f"{parted}:main", "--summary", "Redis was slower.")
    assert re.search(r"switched to branch main; [0-9a-f]{8} summarises 'try'$", back.text.strip())
    summary, *_ = words(tape, f"{parted}:main")
    assert "- on branch try, which was left: Redis was slower." in summary[1]
    again = tape("switch", f"{parted}:try", "--summary", "--json")
    assert again.json["entry"] is None
    tape("merge", f"{parted}:main", "--undo")
    tape("verify", parted)
    tape("replay", parted, "--check")


def test_a_switch_without_a_summary_adds_one_line_to_the_journal(tape, parted):
    folder = next(tape.store.glob("tapes/*"))
    before = reader.files(folder)
    assert tape("switch", f"{parted}:try").text == f"{parted[:8]}: switched to branch try\n"
    after = reader.files(folder)
    assert {name for name in after if after[name] != before.get(name)} == {"refs.jsonl"}
    tape("switch", f"{parted}:try", "--summary")  # after the fact: of the one current before
    assert "on branch main, which was left" in words(tape, f"{parted}:try")[0][1]


def test_on_a_terminal_a_switch_offers_the_summary_and_asks_nothing(tape, parted):
    command = [str(BIN), "switch", f"{parted}:try"]
    with Terminal(command, cwd=tape.work, env=tape.env, columns=100) as terminal:
        assert terminal.wait_for_end() == 0
        assert "`tape switch try --summary` adds what 'main' did" in terminal.text()


def test_the_anchor_holds_the_state_to_continue_with(tape, parted):
    said = {"provider": "p", "model": "m"}
    todos = {"kind": "gong.todos", "data": [{"content": "a", "status": "pending"}]}
    lines = [
        line("model", **said, effort="high"),
        line("mode", permission="ask", tools=["read"]),
        json.dumps({"type": "custom", "data": todos}).encode() + b"\n",
    ]
    tape("append", parted, stdin=b"".join(lines))
    entry = tape("merge", f"{parted}:try", "--json").json["entry"]
    assert tape("show", f"{parted}@{entry}", "--json").json["data"]["state"] == {
        "model": "p/m",
        "effort": "high",
        "mode": "ask",
        "tools": ["read"],
        "cwd": "/src",
        "todos": [{"content": "a", "status": "pending"}],
    }
