"""Tables on a terminal of 50 columns: headings stay, less important columns go, no row wraps."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.e2e.terminal import Terminal

TABLES = {
    "tape ls": ("ID", "TITLE"),
    "tape branches": ("BRANCH", "HEAD"),
    "tape label": ("LABEL", "ENTRY"),
    "tape stats --by tool": ("TOOL", "CALLS"),
    "tape stats --by model": ("MODEL", "TOKENS", "COST"),
    "tape stats --by day": ("DAY", "TOKENS", "COST"),
    "tape blame a.txt --ranges": ("LINES", "ENTRY", "PROMPT"),
    "tape redact --dry-run ENTRY": ("ENTRY", "TYPE"),
    "gong trust": ("STATE", "FILE"),
    "gong hooks list": ("TRUST", "EVENT", "RUNS"),
    "gong cost --by day": ("DAY", "TOKENS", "COST"),
    "gong cost --by tape": ("TAPE", "TOKENS", "COST"),
    "gong work list": ("ID", "TITLE"),
}
"""Command line, and the headings that are there at least."""
WITH_SENTENCES = {"tape redact --dry-run ENTRY", "gong trust", "gong hooks list"}
"""Where sentences around the table are longer than a line."""
LONG = ("gong doctor", "gong tool list", "gong config list", "gong models")
"""Tables whose last columns are sentences or names, which may be longer than a line."""


@pytest.fixture
def used(place):
    """A home with a session that changed a file, a label, a piece of work, and a hook."""
    subprocess.run(["git", "init", "-q", place.folder], check=True)
    (place.folder / ".gong").mkdir()
    hook = {"matcher": "bash", "hooks": [{"type": "command", "command": "true"}]}
    hooks = json.dumps({"hooks": {"PreToolUse": [hook]}})
    (place.folder / ".gong/hooks.json").write_text(hooks)
    place.run("gong", "-p", "--yolo", "-m", "offline/rules", "run echo one > a.txt")
    place.run("tape", "label", "", "good")
    place.run("gong", "work", "new", "Log in")
    return place


def show_lines(place, command, columns):
    """Return the lines that a command shows on a terminal, more where it wraps one."""
    env = {**place.env, "NO_COLOR": "1", "TAPE_PAGER": ""}
    typed = [str(place.bin / command.split()[0]), *command.split()[1:]]
    with Terminal(typed, cwd=place.folder, env=env, columns=columns) as shown:
        assert shown.wait_for_end() == 0, shown.text()
        return [line for line in shown.text().split("\n") if line.strip()]


def test_tables_fit_on_fifty_columns_and_keep_their_headings(used):
    prompt = json.loads(used.run("tape", "log", "--type", "user", "--json").stdout)[0]["id"]
    for name, headings in TABLES.items():
        command = name.replace("ENTRY", prompt[:12])
        narrow, wide = (show_lines(used, command, columns) for columns in (50, 200))
        shown, whole = (
            next(line.split() for line in lines if line.split()[0] == headings[0])
            for lines in (narrow, wide)
        )
        assert set(headings) <= set(shown) <= set(whole), (name, narrow)
        assert name in WITH_SENTENCES or len(narrow) == len(wide), (name, narrow)


@pytest.mark.parametrize("command", LONG)
def test_small_tables_have_headings(used, command):
    done = used.run(*command.split(), code=None)
    first = done.stdout.split("\n")[0]
    assert first == first.upper(), done.stdout
