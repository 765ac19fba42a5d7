"""`tape fork`, `branches`, `switch` and `context`."""

from __future__ import annotations

import os

import pytest

from tape.index.library import open_store
from tape.store.disk import Folder
from tape.store.locks import hold_lock_in
from tape.store.store import Beginning
from tests.tape.cli.conftest import TALK, TYPES, line, words


def types(tape, ref):
    return [entry["type"] for entry in tape("log", ref, "--json").json]


def test_each_branch_sees_the_shared_past_and_its_own_side(tape, talk):
    path = tape.folder(talk) / "phases/0001-main-start/entries.jsonl"
    before = path.read_bytes()
    entry = tape("log", talk, "--json").json[1]["id"]
    made = tape("fork", f"{talk}@{entry[:8]}", "--name", "side", "--json").json
    assert made == {"tape": talk, "branch": "side", "entry": entry}
    tape("append", f"{talk}:side", stdin=line("note", text="side"))
    tape("append", f"{talk}:main", stdin=line("note", text="main"))
    assert types(tape, f"{talk}:side") == ["start", "user", "branch", "note"]
    assert types(tape, talk) == [*TYPES, "note"]
    assert path.read_bytes().startswith(before)
    tape("verify", talk)


def test_a_fork_says_how_to_go_on(tape, talk):
    said = tape("fork", f"{talk}~1").text
    assert said.endswith(f"; continue with `tape append {talk[:8]}:fork-1`\n")
    tape(*said.split("`")[1].split()[1:], stdin=line("note", text="on"))
    said = tape("fork", f"{talk}~1", "--switch").text
    assert said.startswith("Switched to a new branch 'fork-2' at ")
    assert said.endswith(f"; continue with `tape append {talk[:8]}`\n")
    assert tape("show", talk, "--json").json["current"] == "fork-2"


def test_a_fork_names_the_command_that_continues_it(tape):
    """`gong chat -c` where that would find the tape, else --session with its name."""
    store = open_store(tape.store).store
    with store.create(Beginning(str(tape.work), "gong/0.1.0", "One", "one")) as made:
        one = made.id[:8]
    assert tape("fork", "--name", "a").text.endswith(
        f"; continue with `gong chat --session {one}:a`\n"
    )
    assert tape("fork", "--name", "b", "--switch").text.endswith("; continue with `gong chat -c`\n")
    store.create(Beginning(str(tape.work), "gong/0.1.0", "Two", "two")).close()
    said = tape("fork", one, "--switch").text
    assert said.endswith(f"; continue with `gong chat --session {one}`\n")


def test_a_dash_switches_to_the_branch_that_was_current_before(tape, talk):
    assert tape.refused("switch", "-", code=3).startswith("no other branch of ")
    tape("fork", "--name", "a", "--switch")
    tape("fork", "main", "--name", "b", "--switch")
    for name in ("a", "b", "a"):
        assert tape("switch", "-").text == f"{talk[:8]}: switched to branch {name}\n"
    tape("switch", "a")
    assert tape("switch", "-", "--json").json["branch"] == "b"


def test_rename_and_mv_take_the_current_tape(tape, talk):
    assert tape("rename", "Login bug", "--json").json == {
        "tape": talk,
        "title": "Login bug",
        "was": "First",
    }
    moved = tape("mv", ".", "--json").json
    assert (moved["tape"], moved["cwd"]) == (talk, str(tape.work))
    for verb, what in [("rename", "a title"), ("mv", "a folder")]:
        assert (
            tape.refused(verb, talk[:6], code=2)
            == f"{talk[:6]!r} names a tape: give {what} after it"
        )
        told = tape.refused(verb, "a", "b", "c", code=2)
        assert told == f"3 words were given: put {what} of several words in quotes"
    assert tape("rename", "abc").text.startswith(f'{talk[:8]}: renamed to "abc"')


def test_a_bare_branch_name_works_wherever_a_ref_does(tape, talk):
    """A branch of this folder's tape needs no colon, in any command that takes a REF."""
    tape("fork", "^1", "--name", "side")
    tape("append", "side", stdin=line("note", text="side"))
    assert tape("log", "side", "--json").json == tape("log", f"{talk}:side", "--json").json
    assert tape("show", "side~1").text == tape("show", f"{talk}:side~1").text
    assert tape("diff", "main", "side").text == tape("diff", ":main", ":side").text
    assert tape("diff", f"{talk}:side", "main").text == tape("diff", ":side", ":main").text
    assert tape("switch", "side").text == f"{talk[:8]}: switched to branch side\n"
    assert tape("fork", "main^", "--json").json["branch"] == "fork-1"
    tape("label", "main~1", "main")  # a label of that name comes first, but not where a branch must
    assert tape("show", "main").text == tape("show", ":main~1").text
    assert tape("switch", "main").text == f"{talk[:8]}: switched to branch main\n"
    assert tape.refused("switch", talk, code=2).startswith(f"'{talk}' does not name a branch")


def test_a_new_tape_reads_through_into_its_parent(tape, talk):
    made = tape("fork", f"{talk}~1", "--new", "--json").json
    assert made["tape"] != talk
    assert made["branch"] == "main"
    tape("append", made["tape"], stdin=line("note", text="own"))
    assert types(tape, made["tape"]) == [*TYPES[:5], "start", "note"]
    shown = tape("show", made["tape"], "--json").json
    assert (shown["title"], shown["cwd"]) == ("First", str(tape.work))
    assert shown["origin"]["tape"] == talk
    assert shown["origin"]["entry"] == made["entry"]
    named = tape("fork", talk, "--new", "--name", "other", "--json").json
    assert tape("show", named["tape"], "--json").json["title"] == "other"
    tape("verify", "--all")


def test_a_new_tape_works_where_its_parent_went(tape, talk):
    tape("append", talk, stdin=line("meta", cwd="/moved"))
    made = tape("fork", talk, "--new", "--json").json
    assert tape("show", made["tape"], "--json").json["cwd"] == "/moved"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("Try Redis!", "try-redis"),
        ("../../x", "x"),
        ("x/y", "x-y"),
        ("a..b", "a.b"),
        ("A", "a"),
        ("Größe é", "grosse-e"),
        ("-x", "x"),
        ("x" * 49, "x" * 48),
    ],
)
def test_a_name_is_changed_into_an_allowed_one_and_reported(tape, talk, given, name):
    for typed in (("fork", talk, f"--name={given}"), ("label", talk, "--", given)):
        ran = tape(*typed)
        assert ran.err == f"tape: Named {name!r} (from {given!r})\n"
    assert tape("branches", talk, "--json").json[1]["branch"] == name
    assert tape("label", talk, "--json").json[0]["label"] == name
    assert tape("fork", talk, "--name", "good").err == ""


@pytest.mark.parametrize("name", ["", "refs", "..", "///", "试"])
def test_a_name_that_may_not_become_a_path_is_refused(tape, talk, name):
    assert tape.refused("fork", talk, f"--name={name}", code=2)
    assert tape("branches", talk, "--json").json[1:] == []


def test_a_new_tape_takes_any_name_for_its_title(tape, talk):
    made = tape("fork", talk, "--new", "--name", "../../Redis only", "--json").json["tape"]
    (row,) = [row for row in tape("ls", "--json").json if row["id"] == made]
    assert row["title"] == "../../Redis only"
    assert row["folder"].endswith(f"-redis-only-{made[:8]}")


def test_a_name_that_is_taken_is_refused(tape, talk):
    assert "already exists" in tape.refused("fork", talk, "--name", "main", code=2)
    assert tape.refused("fork", talk, "--new", "--switch", code=2)


def test_branches_name_their_heads(tape, talk):
    tape("fork", f"{talk}~1", "--name", "side")
    rows = tape("branches", talk, "--json").json
    keys = ("branch", "current", "n", "type", "pinned", "moves", "error")
    assert [tuple(row[key] for key in keys) for row in rows] == [
        ("main", True, 5, "assistant", False, 1, None),
        ("side", False, 4, "tool.result", True, 1, None),
    ]
    text = tape("branches", talk).text.split("\n")
    assert text[0].split() == ["BRANCH", "HEAD", "DEPTH", "TIME", "TYPE"]
    assert [row.split()[:2] for row in text[1:3]] == [["*", "main"], ["side", rows[1]["entry"][:8]]]


def test_a_branch_without_a_head_is_shown_beside_the_others(tape, talk):
    tape("fork", f"{talk}~1", "--name", "side")
    path = tape.folder(talk) / "refs.jsonl"
    tape("append", f"{talk}:side", stdin=line("note", text="x"))
    (tape.folder(talk) / "phases/0002-side/entries.jsonl").write_bytes(b"")
    rows = tape("branches", talk, "--json").json
    assert [row["entry"] is None for row in rows] == [False, True]
    assert "no valid entry" in rows[1]["error"]
    assert path.exists()


def test_switch_moves_what_a_bare_name_means(tape, talk):
    tape("fork", f"{talk}~1", "--name", "side")
    assert tape("switch", f"{talk}:side").text == f"{talk[:8]}: switched to branch side\n"
    assert types(tape, talk) == TYPES[:5]
    assert tape("switch", ":main", "--json").json == {"tape": talk, "branch": "main"}
    assert types(tape, talk) == TYPES
    assert "there are: main, side" in tape.refused("switch", f"{talk}:gone", code=3)
    for ref in (talk, f"{talk}:main~1"):
        assert "does not name a branch" in tape.refused("switch", ref, code=2)


def test_context_is_the_repaired_view(tape, talk):
    shown = tape("context", talk, "--json").json
    assert list(shown) == ["tape", "branch", "head", "messages", "repair", "bytes"]
    assert [message["role"] for message in shown["messages"]] == [
        *("user", "assistant", "tool", "assistant")
    ]
    assert shown["messages"][0] == {"role": "user", "content": words("Read a.py")}
    assert shown["messages"][2]["call_id"] == "c_1_0"
    assert (shown["tape"], shown["branch"], shown["repair"]) == (talk, "main", None)
    parts = shown["bytes"]
    assert parts["total"] == sum(parts.values()) - parts["total"] > 0
    assert list(parts) == ["summary", "system", "user", "assistant", "tool", "total"]


def test_context_says_what_repair_did(tape):
    identity = tape("new").text.strip()
    tape("append", identity, stdin=b"\n".join(TALK.split(b"\n")[:3]))
    shown = tape("context", identity, "--json").json
    assert [injected["call_id"] for injected in shown["repair"]["injected"]] == ["c_1_0"]
    assert "unknown" in shown["messages"][2]["content"][0]["text"]
    text = tape("context", identity).text
    assert "repair: placeholder result for c_1_0: No result provided" in text
    assert "3 messages; user " in text.split("\n")[-2]
    before = tape("log", identity, "--json").out
    assert before == tape("log", identity, "--json").out


@pytest.mark.parametrize(
    "words", [["fork"], ["switch", ":main"], ["rename", "", "x"], ["label", "", "x"]]
)
def test_a_journal_that_stays_locked_is_given_up(tape, talk, words):
    with Folder.open(tape.folder(talk)) as folder, hold_lock_in(folder, "refs"):
        said = tape.refused(*words, "--wait", "0.05", code=5)
        assert said.startswith(f"the journal is being written by process {os.getpid()} since ")
    tape(*words, "--wait", "0.05")
