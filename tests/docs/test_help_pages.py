"""The help pages in files are those that click writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tape.cli
from tape.cli.help_pages import WIDTH, find_help_page
from tests.docs.help_pages import PROGRAMS

BIN = Path(sys.executable).parent


def run(*command, **env):
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, check=True)
    assert done.stderr == b""
    return done.stdout.decode()


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("columns", [WIDTH, 200])
def test_the_files_hold_the_pages_of_click_for_all_but_narrow_screens(program, columns):
    """`make docs` writes them."""
    pages = run(sys.executable, "-m", "tests.docs.help_pages", program, COLUMNS=str(columns))
    assert Path(PROGRAMS[program][0]).read_text("utf-8") == pages


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_page_is_found(program, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    file, _ = PROGRAMS[program]
    pages = Path(file).read_text("utf-8").removeprefix("$ ").split("\n$ ")
    for title, page in (page.split("\n", 1) for page in pages):
        _, *words, option = title.split()
        for wanted in (option, "-h"):
            assert find_help_page(program, [*words, wanted], file) == page.rstrip("\n") + "\n"


@pytest.mark.parametrize(
    "arguments",
    [
        *([], ["ls"], ["ls", "--help", "--json"], ["--json", "ls", "--help"], ["none", "--help"]),
        *(["--store", "x", "ls", "--help"], ["", "--help"], ["ls --help\n", "-h"], ["ls ", "-h"]),
    ],
)
def test_other_arguments_are_left_to_click(arguments, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert find_help_page("tape", arguments, tape.cli.HELP_PAGES) is None


def test_a_missing_file_is_left_to_click(tmp_path):
    assert find_help_page("tape", ["--help"], str(tmp_path / "none")) is None


@pytest.mark.parametrize("columns", ["", "x", "0", str(WIDTH - 1), str(WIDTH)])
def test_a_process_prints_what_click_prints_at_any_width(columns):
    script = "from tape.cli.group import run_command; run_command(['search', '--help'])"
    page = run(sys.executable, "-c", script, COLUMNS=columns)
    assert run(BIN / "tape", "search", "--help", COLUMNS=columns) == page


def test_a_page_is_printed_in_the_encoding_of_the_screen():
    assert "Usage: gong chat" in run(BIN / "gong", "chat", "-h", PYTHONIOENCODING="ascii")
