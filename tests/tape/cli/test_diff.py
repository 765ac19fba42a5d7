"""`tape diff`: where two branches part, and what each did since."""

from __future__ import annotations

import re
from contextlib import contextmanager

import pytest
from msgspec import Raw

from tape.history.comparison import format_span
from tape.model.entries import Assistant, Checkpoint, Cost, Meta, ToolCall, ToolResult, Usage
from tests.tape import making
from tests.tape.changing import Session
from tests.tape.cli.conftest import line


def change(writer, identity, name, path, *, fails=False):
    args = Raw(b'{"path":"%b","content":"x","oldText":"x","newText":"y"}' % path.encode())
    usage, cost = Usage(1000, 234, total=1234), Cost("USD", 0.25)
    wish = ToolCall(id=identity, name=name, args=args)
    writer.append(Assistant((wish,), "offline", model="rules", usage=usage, cost=cost))
    writer.append(ToolResult(identity, name, making.say("ok").content, is_error=fails))


@contextmanager
def part_branches(tape, name):
    """Yield a tape whose branches main and `name` part behind its first prompt, a minute a tick."""
    ticks = iter(range(10**6))
    store = making.store_in(tape.store, lambda: making.DAY + 61_000_000 * next(ticks))
    with store.create(making.beginning("parted")) as made:
        (one,) = making.write(made, "one")
        made.fork(making.at(made, one.id), name)
        yield made


@pytest.fixture
def parted(tape):
    """A tape whose branches main and b part behind its first prompt: its id."""
    with part_branches(tape, "b") as made:
        with made.writer("b") as writer:
            writer.append(making.say("Try\nredis"))
            change(writer, "c_1", "edit", "a.py")
            change(writer, "c_2", "write", "b.py", fails=True)
            change(writer, "c_3", "write", "c.py")
            writer.append(making.answer(text="It works."))
        with made.writer("main") as writer:
            change(writer, "c_1", "edit", "/src/a.py")
        return made.id


TEXT = """\
common ancestor: entry 1, TIME
  ID  user         one

b@ID: 9 entries since, TIME to TIME (SPAN)
  asked   Try redis
  answer  It works.
  tools   write 2 (1 failed), edit 1
  model   offline/rules: 3 calls, 3,702 tokens, $0.75
  changed /src/a.py (1 edit)
  changed /src/c.py (1 write)

main@ID: 2 entries since, TIME to TIME (SPAN)
  tools   edit 1
  model   offline/rules: 1 call, 1,234 tokens, $0.25
  changed /src/a.py (1 edit)

changed by both
  /src/a.py
"""


def test_two_branches_are_explained(tape, parted):
    shown = tape("diff", f"{parted}:b", ":main").text
    heads = {row["branch"]: row["entry"][:8] for row in tape("branches", parted, "--json").json}
    one = tape("log", parted, "--type", "user", "-n", "1", "--json").json[0]["id"][:8]
    for known in (*heads.values(), one):
        shown = shown.replace(known, "ID")
    shown = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", shown)
    shown = re.sub(r"\(\d+ min \d+ s\)", "(SPAN)", shown)
    assert shown == TEXT


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (61, "1 min 1 s"), (3600, "1 h 0 min"), (90_000, "1 d 1 h"), (59, "59 s")],
)
def test_a_length_of_time_has_two_units(seconds, text):
    assert format_span(seconds) == text


def test_one_ref_is_compared_with_the_current_branch(tape, parted):
    assert tape("diff", f"{parted}:b").text == tape("diff", f"{parted}:b", ":main").text
    tape("switch", f"{parted}:b")
    assert tape("diff", f"{parted}:main", "--json").json["b"]["branch"] == "b"


def test_json_has_stable_keys(tape, parted):
    found = tape("diff", f"{parted}:b", "--json").json
    assert list(found) == ["base", "a", "b", "both"]
    assert list(found["base"]) == ["tape", "phase", "entry", "n", "time", "type"]
    assert list(found["a"]) == ["tape", "branch", "entry", "n", "since"]
    since = found["a"]["since"]
    assert list(since) == [
        *("entries", "began", "ended", "exchanges", "tools", "files", "models", "usage", "cost"),
        *("anchors", "errors"),
    ]
    assert found["both"] == ["/src/a.py"]
    assert since["tools"][0] == {"name": "write", "calls": 2, "failed": 1, "open": 0}
    assert since["cost"] == {"currency": "USD", "amount": 0.75}
    assert [file["path"] for file in found["b"]["since"]["files"]] == ["/src/a.py"]


def test_files_alone_are_listed_with_the_side_that_changed_them(tape, parted):
    rows = [row.split() for row in tape("diff", f"{parted}:b", "--files").text.split("\n")[:-1]]
    assert [(row[0].partition("@")[0], *row[1:]) for row in rows] == [
        ("both", "/src/a.py", "1", "edit;", "1", "edit"),
        ("b", "/src/c.py", "1", "write"),
    ]
    ran = tape("diff", f"{parted}:main", ":main", "--files")
    assert (ran.out, ran.err.count("\n")) == (b"", 1)


def test_an_ancestor_is_called_one(tape, parted):
    shown = tape("diff", f"{parted}:main~2", f"{parted}:b").text
    assert "is an ancestor of b@" in shown
    assert "9 entries since" in shown
    assert tape("diff", parted).text.count("is the same entry") == 2


def test_a_call_made_before_the_parting_counts_where_it_is_answered(tape, parted):
    tape("fork", f"{parted}:main~1", "--name", "c")
    tape("append", f"{parted}:c", stdin=line("note", text="x"))
    found = tape("diff", f"{parted}:main", f"{parted}:c", "--json").json
    assert [file["path"] for file in found["a"]["since"]["files"]] == ["/src/a.py"]
    assert found["a"]["since"]["tools"] == [{"name": "edit", "calls": 1, "failed": 0, "open": 0}]
    assert found["b"]["since"]["files"] == found["b"]["since"]["tools"] == []


def test_tapes_that_share_an_origin_are_compared(tape, parted):
    child = tape("fork", f"{parted}:b~1", "--new", "--json").json["tape"]
    found = tape("diff", parted, child, "--json").json
    assert (found["base"]["tape"], found["base"]["n"]) == (parted, 1)
    assert (found["a"]["n"], found["b"]["tape"]) == (3, child)
    assert f"{child[:8]}:main@" in tape("diff", parted, child).text


def test_tapes_that_share_nothing_have_no_base(tape, parted):
    other = tape("new").text.strip()
    found = tape("diff", parted, other, "--json").json
    assert found["base"] is None
    assert (found["a"]["since"]["entries"], found["b"]["since"]["entries"]) == (4, 1)
    assert tape("diff", parted, other).text.startswith("no common entry\n")


def test_damage_before_the_parting_changes_nothing(tape, parted):
    prompt = tape("log", f"{parted}:b", "--type", "user", "-n", "1", "--json").json[0]["id"]
    whole = tape("diff", f"{parted}@{prompt}", f"{parted}:b", "--json").json
    file = tape.folder(parted) / "phases/0001-main-start/entries.jsonl"
    file.write_bytes(b"?" + file.read_bytes()[1:])
    found = tape("diff", f"{parted}@{prompt}", f"{parted}:b", "--json")
    assert (found.json["base"], found.json["base"]["entry"]) == (whole["base"], prompt)
    assert found.json["b"]["since"]["entries"] == 7
    files = [file["path"] for file in found.json["b"]["since"]["files"]]
    assert files == ["a.py", "c.py"]  # the folder they were named in stood in the damaged line


def test_an_unknown_fork_point_is_warned_about(tape, parted):
    tape("fork", f"{parted}:b~8", "--name", "c")
    tape("append", f"{parted}:c", stdin=line("note", text="x"))
    file = tape.folder(parted) / "phases/0002-b/entries.jsonl"
    file.write_bytes(b"?" + file.read_bytes()[1:])
    ran = tape("diff", f"{parted}:b", f"{parted}:c")
    assert ran.text.startswith("no common entry\n")
    assert ran.err.count("what lies before it is not compared\n") == 2


@pytest.mark.parametrize(
    ("arguments", "code"), [(["zz"], 3), (["a b:c:d"], 2), ([], 2), (["ID:gone"], 3)]
)
def test_misuse_is_one_line(tape, parted, arguments, code):
    tape.refused("diff", *(one.replace("ID", parted) for one in arguments), code=code)


def test_recorded_changes_count_and_not_what_calls_say(tape):
    store = making.store_in(tape.store)
    with store.create(making.beginning("recorded")) as made:
        (one,) = making.write(made, "one")
        made.fork(making.at(made, one.id), "b")
        with made.writer("b") as writer:
            run = Session(made, writer)
            command = run.change("a.py", b"x", b"y"), run.change("c.py", b"z", b"z", source="b.py")
            run.run("bash", {"command": "make"}, *command, is_error=True)
            writer.append(Meta(cwd="/elsewhere"))
            run.run(
                "edit",
                {"path": "a.py", "old_text": "", "new_text": ""},
                run.change("a.py", b"", b"1"),
            )
            writer.append(Checkpoint((), call_id="c_00000000_3"))
            run.run("write", {"path": "same.py", "content": "as it was"})
        identity = made.id
    found = tape("diff", f"{identity}:b", f"{identity}:main", "--json").json
    assert {one["path"]: one["ops"] for one in found["a"]["since"]["files"]} == {
        "/elsewhere/a.py": {"modified": 1},
        "/src/a.py": {"modified": 1},
        "/src/b.py": {"moved": 1},
        "/src/c.py": {"renamed": 1},
    }
    text = tape("diff", f"{identity}:b", f"{identity}:main").text
    assert "  changed /src/c.py (1 renamed)\n" in text
    (total,) = [tape("stats", identity, "--json").json["total"]]
    assert total["files_changed"] == 3
    assert "files   3 changed\n" in tape("stats", identity).text
