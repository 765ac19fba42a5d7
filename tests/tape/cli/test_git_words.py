"""Words of git: what they mean here, or what is said of them; and slips of commands."""

from __future__ import annotations

import pytest

from tape.cli.git_words import ALIASES, EXPLAINED, explain_unknown_command, translate_git_words
from tape.cli.group import COMMANDS
from tests.tape.cli.conftest import line


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("checkout main", "switch main"),
        ("checkout -", "switch -"),
        ("checkout -b try", "fork --name try --switch"),
        ("checkout -b try main^2 --json", "fork main^2 --json --name try --switch"),
        ("switch -c try", "fork --name try --switch"),
        ("switch main", "switch main"),
        ("branch", "branches"),
        ("branch -a", "branches"),
        ("branch -v 3f2a", "branches 3f2a"),
        ("branch 3f2a", "branches 3f2a"),
        ("branch --json", "branches --json"),
        ("branch try", "fork --name try"),
        ("branch try main~2", "fork main~2 --name try"),
        ("tag", "label"),
        ("tag -l", "label"),
        ("tag v1 main~2", "label main~2 v1"),
        ("tag -a v1 main~2", "label main~2 v1"),
        ("tag -d v1", "label --delete v1"),
        ("init", "new"),
        ("grep login --json", "search login --json"),
        ("log main", "log main"),
    ],
)
def test_words_of_git_mean_commands_of_tape(typed, meant):
    assert translate_git_words(typed.split()) == meant.split()


def test_a_tag_without_a_place_is_the_head():
    assert translate_git_words(["tag", "v1"]) == ["label", "", "v1"]


def test_every_alias_means_a_command():
    for word in ALIASES:
        assert word not in COMMANDS
        assert translate_git_words([word])[0] in COMMANDS


@pytest.mark.parametrize("word", sorted(EXPLAINED.keys() - COMMANDS.keys()))
def test_words_that_do_nothing_here_say_what_does(tape, word):
    said = tape.refused(word, "-m", "x", code=2)
    assert said == f"tape has no {word}: {EXPLAINED[word]}"


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("lgo", "no command is called 'lgo': did you mean tape log?"),
        ("forkk", "no command is called 'forkk': did you mean tape fork?"),
        ("chekout", "no command is called 'chekout': did you mean tape checkout?"),
        ("zzz", "no command is called 'zzz': `tape --help` lists them"),
    ],
)
def test_a_slip_of_a_command_is_named(tape, typed, told):
    assert tape.refused(typed, code=2) == told
    assert explain_unknown_command("gong work", "lsit", ["list", "show"]).endswith(
        "did you mean gong work list?"
    )


def test_status_names_the_head_of_a_tape(tape, talk):
    found = tape("status", "--json").json
    assert (found["tape"], found["title"], found["cwd"]) == (talk, "First", str(tape.work))
    assert (found["branch"], found["current"], found["branches"]) == ("main", True, 1)
    assert (found["n"], found["type"], found["calls"], found["torn_bytes"]) == (
        5,
        "assistant",
        [],
        0,
    )
    assert tape("status").text.endswith("nothing was left unfinished\n")
    call = {"type": "tool_call", "id": "c_2_0", "name": "bash", "args": {}}
    more = {**call, "id": "c_2_1", "name": "read"}
    tape(
        "append",
        talk,
        stdin=line("assistant", content=[call, more], provider="", model="")
        + line("tool.start", call_id="c_2_0", name="bash", replay="unsafe"),
    )
    (file,) = tape.folder(talk).glob("phases/*/entries.jsonl")
    with file.open("ab") as torn:
        torn.write(b"{")
    assert tape("status").text.split("\n")[4:] == [
        "no result: bash c_2_0; its outcome is unknown",
        "no result: read c_2_1; it never ran",
        "incomplete: 1 byte behind the head; the next writer moves them to quarantine",
        "",
    ]
    tape("fork", "--name", "side")
    assert (
        tape("status", "side").text.split("\n")[2]
        == "branch  side, not the current one; 2 branches"
    )
    tape("append", talk, stdin=line("user", content=[]))
    assert tape("status", "--json").json["calls"] == []
