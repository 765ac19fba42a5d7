"""Words of git: what they mean here, or what is said of them; and slips of commands."""

from __future__ import annotations

import shlex

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
        ("grep -in login", "search login"),
        ("grep -i -n login -n 5", "search login -n 5"),
        ("find login", "search login"),
        ("list --all", "ls --all"),
        ("history -5", "log -5"),
        ("help", "--help"),
        ("help log", "log --help"),
        ("version", "--version"),
        ("status -s", "status"),
        ("log --decorate --oneline", "log --oneline"),
        ("log --after=2d --before 1d", "log --since 2d --until 1d"),
        ("log --max-count=5", "log -n 5"),
        ("log -- --stat", "log -- --stat"),
        ("log main", "log main"),
    ],
)
def test_words_of_git_mean_commands_of_tape(typed, meant):
    assert translate_git_words(typed.split()) == meant.split()


HABITS = """
    checkout -b side; checkout main; checkout -; switch -c other; switch main; switch -
    branch; branch -a; branch -v; branch --list; branch third; tag; tag v1; tag -l; tag -d v1
    status; status -s; status --short; log; log -5; log -n 5; log --max-count=2; log -p
    log --oneline; log --graph; log --graph --oneline --all; log --all; log --decorate
    log --reverse; log --since yesterday; log --since=2.weeks; log --after '2 days ago'
    log try..main; show HEAD; show HEAD~2; show try; grep Read; grep -i read; grep -n Read
    find Read; list; history; help; help log; version; diff HEAD~1; diff main try
    diff main..try; merge try; gc; fsck; remote; remote -v; init
"""
REFUSED_HABITS = """
    log --stat: tape files; log --name-only: tape files; log --grep x: tape search
    log -S x: tape search; log --author x: --author-model; log --follow a.py: tape blame
    log --merges: tape log --graph; log a.py: tape blame a.py; log -- a.py: tape blame a.py
    log --pretty=short: --oneline; show --stat: tape files; show a.py: tape files --at REF a.py
    diff: tape diff BRANCH; diff --stat: --files; diff --name-only: --files
    diff a.py: tape files -p
    diff --cached: tape files; branch -d try: tape switch; branch -D try: tape rm
    branch -m new: tape fork BRANCH --name; branch --show-current: tape status
    merge --abort: tape merge --undo; merge --no-ff try: --summary; tag -m text v2: tape label
    rm a.py: tape rm; rm -rf a.py: --yes; mv a.py b.py: tape mv DIR; checkout a.py: gong rewind
    checkout -- a.py: gong rewind; restore a.py: tape files --at; restore --staged a.py: gong rewind
    reset --hard: tape fork; stash: tape fork; stash pop: tape fork; cherry-pick x: --pick
    revert HEAD: gong undo; undo: gong undo; redo: gong redo; rebase main: tape fork
    bisect start: tape blame; reflog: tape branches; describe: tape status
    shortlog -sn: tape stats; commit -m x: tape label; clean -fd: tape gc; gc --prune=now: tape gc
    config user.name: gong config; worktree list: tape fork; ls-files: tape files
    cat-file -p HEAD: tape show; rev-parse HEAD: tape show; rev-list HEAD: tape log
    notes: tape label; archive: tape export; format-patch x: tape files -p; delete x: tape rm
    fetch: tape pull; branch -r: tape remote
"""


def _split_habits(text: str) -> list[str]:
    return [habit.strip() for row in text.strip().split("\n") for habit in row.split(";")]


def test_habits_of_git_work_where_they_have_a_meaning(tape, talk):
    tape("fork", "--name", "try")
    for habit in _split_habits(HABITS):
        ran = tape(*shlex.split(habit), code=None)
        assert (habit, ran.code, ran.err.count("\n") <= 1) == (habit, 0, True), ran


def test_other_habits_of_git_name_the_command_in_one_line(tape, talk):
    tape("fork", "--name", "try")
    (tape.work / "a.py").write_text("")
    for habit in _split_habits(REFUSED_HABITS):
        typed, _, told = habit.partition(": ")
        assert told in tape.refused(*shlex.split(typed), code=2), typed


def test_a_branch_named_as_a_file_is_the_branch(tape, talk):
    (tape.work / "main").write_text("")
    assert tape("log", "main", "--oneline").text.count("\n") == 6
    assert "no tape, entry, label or branch 'b.py'" in tape.refused("log", "b.py", code=3)


def test_a_tag_without_a_place_is_the_head():
    assert translate_git_words(["tag", "v1"]) == ["label", "", "v1"]


def test_every_alias_means_a_command():
    for word in ALIASES:
        assert word not in COMMANDS
        assert translate_git_words([word])[0] in {*COMMANDS, "--help", "--version"}


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
