"""What a shell offers when somebody presses Tab: as its script asks, and in a real bash."""

from __future__ import annotations

import shutil
import subprocess

import pexpect
import pytest

from tape.index.library import open_store
from tape.model.entries import Note
from tests.tape.cli.conftest import BIN, TYPES

SHELLS = ("bash", "zsh", "fish")


@pytest.fixture
def known(tape, talk):
    """A tape with a second branch and a label, in an index that knows of them: its id."""
    tape("fork", f"{talk}~1", "--name", "side")
    tape("label", f"{talk}~2", "good")
    tape("ls")
    return talk


def asked(tape, shell, line, **env):
    """Return what the command answers to a shell: (value, help) each; nothing on stderr."""
    words = line.split(" ")
    variables = {
        "bash": {"TAPE_LINE": line},
        "zsh": {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)},
        "fish": {"COMP_WORDS": line, "COMP_CWORD": words[-1]},
    }[shell]
    done = subprocess.run(
        [BIN],
        env={**tape.env, **variables, "_TAPE_COMPLETE": f"{shell}_complete", **env},
        cwd=tape.work,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    rows = done.stdout.strip("\n").split("\n")
    if shell == "bash":
        return [(row, "") for row in rows if row]
    if shell == "zsh":
        return [(rows[at + 1], rows[at + 2]) for at in range(0, len(rows) - 2, 3)]
    return [tuple([*row.removeprefix("plain,").split("\t"), ""][:2]) for row in rows if row]


def offered(tape, line, shell="bash"):
    return [value for value, _ in asked(tape, shell, line)]


def test_verbs_and_options(tape):
    assert offered(tape, "tape re") == [
        *("rename", "replay", "remote", "restore", "redact", "reindex")
    ]
    assert offered(tape, "tape ls --s") == ["--since", "--sort", "--store"]
    assert offered(tape, "tape --de") == ["--debug"]
    assert offered(tape, "tape ls --sort c") == ["created", "cost"]
    assert offered(tape, "tape completion z") == ["zsh"]


def test_tapes_with_their_titles(tape, known):
    assert asked(tape, "zsh", f"tape log {known[:3]}") == [(known[:8], "First")]
    assert asked(tape, "fish", f"tape log {known[:3]}") == [(known[:8], "First")]
    assert offered(tape, "tape log ") == [known[:8]]
    assert offered(tape, f"tape log {known[:12]}") == [known[:12]]
    assert offered(tape, "tape log zzz") == []


def test_files_are_left_to_the_shell(tape, known):
    assert offered(tape, f"tape mv {known[:8]} /tm") == []
    assert offered(tape, f"tape mv {known[:8]} /tm", "fish") == ["file,/tm"]


def test_branches_behind_a_colon(tape, known):
    assert sorted(offered(tape, f"tape log {known[:8]}:")) == [
        f"{known[:8]}:main",
        f"{known[:8]}:side",
    ]
    assert offered(tape, "tape log :s") == [":side"]
    assert asked(tape, "zsh", "tape switch :s")[0][0] in (":side", r"\:side")


def test_labels_and_new_entries_behind_an_at(tape, known):
    entries = [entry["id"][:8] for entry in tape("log", known, "--json").json]
    found = asked(tape, "fish", f"tape show {known[:8]}@")
    assert [value.rpartition("@")[2] for value, _ in found] == ["good", *entries[::-1]]
    assert [about for _, about in found[1:]] == [
        f"{n} {kind}" for n, kind in reversed(list(enumerate(TYPES)))
    ]
    assert offered(tape, f"tape show {known[:8]}@go") == [f"{known[:8]}@good"]
    side = offered(tape, f"tape show {known[:8]}:side@")
    assert side[1:] == [f"{known[:8]}:side@{entry}" for entry in entries[-2::-1]]


def test_the_store_that_was_named(tape, known, tmp_path):
    moved = tmp_path / "other"
    shutil.copytree(tape.store, moved)
    shutil.rmtree(tape.store)
    assert offered(tape, "tape log ") == []
    assert offered(tape, f"tape --store {moved} log ") == [known[:8]]
    assert asked(tape, "bash", "tape log ", TAPE_HOME=str(moved)) == [(known[:8], "")]


@pytest.mark.parametrize("state", ["missing", "damaged", "foreign", "locked"])
def test_without_an_index_nothing_is_offered_and_nothing_printed(tape, known, state):
    index = tape.store / "index.db"
    for beside in tape.store.glob("index.db-*"):
        beside.unlink()
    if state == "missing":
        index.unlink()
    else:
        index.write_bytes({"damaged": b"x" * 5000, "foreign": b"", "locked": b"SQLite"}[state])
    before = sorted(path.name for path in tape.store.iterdir())
    assert offered(tape, "tape log ") == []
    assert offered(tape, "tape log :") == []
    assert offered(tape, "tape log @") == []
    assert sorted(path.name for path in tape.store.iterdir()) == before


@pytest.mark.parametrize("line", ["tape log 'a", "", "tape", "tape nothing ", "tape log a:b:c@@"])
def test_odd_lines_offer_nothing_and_say_nothing(tape, known, line):
    offered(tape, line)
    assert asked(tape, "bash", line, _TAPE_COMPLETE="nothing") == []


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_printed_and_holds_in_its_shell(tape, shell):
    script = tape("completion", shell).text
    assert "_TAPE_COMPLETE" in script
    assert tape("completion", shell, "--json").json["script"].strip() == script.strip()
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True, timeout=120)


def test_another_shell_is_refused(tape):
    assert tape.refused("completion", "powershell", code=2)


@pytest.fixture
def bash(tape, known):
    """A real bash with completion in it: what it shows after some keys."""
    env = {**tape.env, "PATH": f"{BIN.parent}:{tape.env['PATH']}", "PS1": "$ ", "TERM": "dumb"}
    child = pexpect.spawn(
        *("bash", ["--norc", "--noprofile"]),
        env=env,
        cwd=str(tape.work),
        encoding="utf-8",
        timeout=120,
        dimensions=(40, 200),
    )
    child.sendline('PS1="ready> "; bind "set enable-bracketed-paste off" 2>/dev/null')
    child.sendline('eval "$(tape completion bash)"; echo do""ne')
    child.expect_exact("done")
    child.expect_exact("ready> ")

    def completed(keys, then):
        child.sendline(f"{keys}\t\x01echo '<\x05>'")  # Ctrl+A and Ctrl+E: the line is said
        child.expect_exact(f"\n<{then}>")
        child.expect_exact("ready> ")

    yield completed
    child.close(force=True)


def test_a_real_bash_completes_words_that_it_cuts_at_colons(bash, tape, known):
    (tape.work / "subfolder").mkdir()
    bash("tape bran", "tape branches ")
    bash(f"tape log {known[:5]}", f"tape log {known[:8]} ")
    bash(f"tape log {known[:8]}:s", f"tape log {known[:8]}:side ")
    bash(f"tape mv {known[:8]} sub", f"tape mv {known[:8]} subfolder/")
    bash("tape log :m", "tape log :main ")
    bash(f"tape show {known[:8]}@goo", f"tape show {known[:8]}@good ")


def test_entries_of_a_long_branch_are_the_newest(tape, talk):
    library = open_store(tape.store)
    with library, library.store.open(talk) as opened, opened.writer() as writer:
        made = [writer.append(Note(str(n))).id for n in range(80)]
    tape("ls")
    found = offered(tape, f"tape show {talk[:8]}@")
    assert found == [f"{talk[:8]}@{entry[:8]}" for entry in made[:-51:-1]]
