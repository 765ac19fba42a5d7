"""What people type who come from git: fifty command lines in a row, and what each answers.

Ids, times, ages and sizes are normalised: `ID`, `TIME`, `AGE`, `SIZE`. A line `$ command` is typed
in a pipe, `% command` on a terminal of 100 columns; a last line `[exit N]` is an exit code other
than 0.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.e2e.terminal import Terminal
from tests.tape.cli.conftest import line, words

SCRIPT = Path(__file__).with_name("git_habits.txt")
SAID = {
    "say-login": "Why is the login slow?",
    "say-index": "Try an index.",
    "say-redis": "Try redis.",
}
"""Prompts that are recorded between the commands, as a session does."""


def read_steps(text: str) -> list[tuple[str, str, str]]:
    """Return kind, command and expected answer of each step of the script."""
    found = re.split(r"(?m)^([$%]) (.*)\n", text)[1:]
    return [*zip(found[::3], found[1::3], found[2::3], strict=True)]


def normalise(text: str, home: str) -> str:
    """Return an answer without what differs from run to run; `home` becomes `~`."""
    text = re.sub(r"\d{4}-\d\d-\d\d-", "DAY-", text.replace(home, "~"))
    text = re.sub(r"(?<=tape/0.1.0 in )\S+", "FOLDER", text)  # cut where the path is long
    text = re.sub(r"\b[0-9a-f]{32}\b|\b[0-9a-f]{12}\b|\b[0-9a-f]{8}\b", "ID", text)
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?", "TIME", text)
    text = re.sub(r"\b\d\.\d kB", "SIZE", text)  # that of a tape depends on the length of a path
    text = re.sub(r"(?<=ID) +\d+[smh](?= )", " AGE", text)
    text = re.sub(r"\b\d[\d.]* k?B\b", "SIZE", text)  # it holds paths
    rows = (re.sub(r"  +", "  ", row.rstrip()) for row in text.split("\n"))
    return "".join(f"{row}\n" for row in rows if row)


def run_step(place, kind: str, command: str) -> str:
    """Run one line of the script and return its normalised answer."""
    program, *arguments = shlex.split(command)
    if program in SAID:
        said = line("user", content=words(SAID[program])) + line(
            "assistant", content=words("Done."), provider="offline", model="rules"
        )
        place.run("tape", "append", *arguments, stdin=said.decode())
        return ""
    if kind == "$":
        done = place.run(program, *arguments, code=None)
        answer, code = done.stdout + done.stderr, done.returncode
    else:
        typed = [str(place.bin / program), *arguments]
        env = {**place.env, "NO_COLOR": "1", "TAPE_PAGER": ""}
        with Terminal(typed, cwd=place.folder, env=env, columns=100) as shown:
            code = shown.wait_for_end()
            answer = shown.text()
    return normalise(answer, str(place.home)) + f"[exit {code}]\n" * bool(code)


def test_habits_of_git_get_the_expected_answers(place):
    steps = read_steps(SCRIPT.read_text("utf-8"))
    assert len(steps) >= 50
    found = "".join(
        f"{kind} {command}\n{run_step(place, kind, command)}" for kind, command, _ in steps
    )
    assert found == "".join(f"{kind} {command}\n{answer}" for kind, command, answer in steps)
