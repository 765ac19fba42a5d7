"""The manners of a terminal: pages, colour, progress; and none of them in a pipe."""

from __future__ import annotations

import sys

import pytest

from tape.cli import terminal
from tests.e2e.terminal import CTRL_C, Terminal
from tests.tape.cli.conftest import BIN, line


@pytest.fixture
def long(tape, talk):
    """A tape whose log is taller than a screen: its id."""
    tape("append", talk, stdin=b"".join(line("note", text=f"number {n}") for n in range(60)))
    return talk


@pytest.fixture
def screen(tape):
    """Run the command on a screen of 80 columns and 24 rows."""
    opened = []

    def run(*arguments, **env):
        shown = Terminal([str(BIN), *arguments], cwd=tape.work, env={**tape.env, **env})
        opened.append(shown)
        return shown

    yield run
    for shown in opened:
        shown.__exit__()


class TestPages:
    def test_a_tall_text_waits_for_keys(self, screen, long):
        shown = screen("cat", long)
        shown.wait_for("\n:", on_screen=True)
        assert "number 0" in shown.text()
        assert "number 59" not in shown.text()
        shown.type("G")
        shown.wait_for("number 59")
        shown.type("q")
        assert shown.wait_for_end() == 0

    @pytest.mark.parametrize("env", [{}, {"PAGER": "less"}, {"TAPE_PAGER": "less -S"}])
    @pytest.mark.parametrize("options", [(), ("--oneline",), ("--no-fold",)])
    def test_a_log_opens_at_its_end(self, screen, long, env, options):
        shown = screen("log", long, *options, **env)
        shown.wait_for("(END)", on_screen=True)
        assert "number 59" in shown.text()
        assert "number 0" not in shown.text()
        assert "[2m" not in shown.text()
        shown.type("g")
        shown.wait_for("number 0")
        shown.type("q")
        assert shown.wait_for_end() == 0

    @pytest.mark.parametrize("options", [("--newest-first", "--oneline"), ("--graph",)])
    def test_what_is_newest_first_opens_at_its_beginning(self, screen, long, options):
        shown = screen("log", long, *options)
        shown.wait_for("\n:", on_screen=True)
        assert "number 59" in shown.text()
        shown.type("q")
        assert shown.wait_for_end() == 0

    def test_leaving_early_is_no_error(self, screen, tape, talk):
        many = b"".join(line("note", text="x" * 500) for _ in range(2000))
        tape("append", talk, stdin=many)
        shown = screen("log", talk, "--newest-first")
        shown.wait_for("\n:", on_screen=True)
        shown.type("q")
        assert shown.wait_for_end() == 0
        assert "tape:" not in shown.text()

    def test_an_interrupt_leaves_the_pager_alone(self, screen, long):
        shown = screen("cat", long)
        shown.wait_for("\n:", on_screen=True)
        shown.type(CTRL_C)  # less throws away the keys that come with it
        assert shown.wait_for_end("q") in {0, 130}  # all was written already, or not
        assert "Traceback" not in shown.text()

    def test_a_short_text_is_just_printed(self, screen, talk):
        shown = screen("show", talk, PAGER="sh -c 'echo paged; cat'")
        assert shown.wait_for_end() == 0
        assert f"tape {talk}" in shown.text()
        assert "paged" not in shown.text()

    @pytest.mark.parametrize(
        ("arguments", "env"),
        [
            (["--no-pager"], {}),
            ([], {"PAGER": ""}),
            ([], {"PAGER": "cat"}),
            ([], {"TAPE_PAGER": "", "PAGER": "less"}),
            ([], {"PAGER": "/nowhere/less"}),
            (["--json"], {}),
        ],
    )
    def test_can_be_turned_off(self, screen, long, arguments, env):
        shown = screen("log", long, "--type", "note", *arguments, **env)
        assert shown.wait_for_end() == 0
        assert "number 59" in shown.text()

    def test_the_pager_is_the_one_that_was_named(self, screen, long):
        shown = screen("log", long, TAPE_PAGER="sh -c 'echo mine; cat'", PAGER="less")
        assert shown.wait_for_end() == 0
        assert shown.text().startswith("mine\n")
        assert "number 59" in shown.text()

    def test_warnings_keep_their_place(self, screen, tape, long):
        (file,) = tape.folder(long).glob("phases/*/entries.jsonl")
        lines = file.read_bytes().split(b"\n")
        lines[10] = lines[10].replace(b'"text":', b'"text"\xff')
        file.write_bytes(b"\n".join(lines))
        shown = screen("log", long, "--oneline", PAGER="sh -c 'cat; echo end'")
        assert shown.wait_for_end() == 0
        rows = shown.text().split("\n")
        at = next(n for n, row in enumerate(rows) if "skipped" in row)
        assert "number" in rows[at - 1]
        assert "number" in rows[at + 3]

    def test_wide_characters_are_counted(self, screen, tape, talk):
        """22 rows of 41 characters that take 82 columns do not fit."""
        tape("append", talk, stdin=line("note", text="\n".join(["日" * 41] * 11)))
        shown = screen("cat", talk, PAGER="sh -c 'echo paged; cat'")
        shown.wait_for_end()
        assert shown.text().startswith("paged\n")

    def test_tapes_are_paged_without_waiting(self, screen, tape, talk):
        for n in range(30):
            tape("new", "--title", f"Tape {n}")
        tape("ls")
        shown = screen("ls", PAGER="sh -c 'echo paged; cat'")
        assert shown.wait_for_end() == 0
        assert shown.text().startswith("paged\n")


class TestColours:
    def shown(self, screen, *arguments, **env):
        shown = screen(*arguments, **env)
        shown.wait_for_end()
        return shown.colours() - {"default"}

    def test_are_on_a_terminal_only(self, screen, tape, talk):
        assert self.shown(screen, "ls")
        assert b"\x1b" not in tape.real("ls").out

    def test_can_be_refused(self, screen, talk):
        assert not self.shown(screen, "ls", NO_COLOR="1")
        assert not self.shown(screen, "ls", TERM="dumb")

    def test_can_be_forced(self, tape, talk):
        tape.env["CLICOLOR_FORCE"] = "1"
        assert b"\x1b[33m" in tape.real("ls").out
        tape.env["NO_COLOR"] = "1"
        assert b"\x1b" not in tape.real("ls").out
        del tape.env["NO_COLOR"]
        assert b"\x1b" not in tape.real("ls", "--json").out


WORK = """
import sys, time
from tape.cli.terminal import print_lines, print_warning, show_progress
with show_progress("read tape") as tell:
    for done in range(16):
        tell(done, 16)
        time.sleep(0.1)
        if done == 13:
            print_lines(["said meanwhile"])
            print_warning("warned meanwhile")
            time.sleep(0.1)
print_lines(["done"])
"""


class TestProgress:
    def test_shows_after_a_second_and_leaves_nothing_behind(self, tape):
        with Terminal([sys.executable, "-c", WORK], cwd=tape.work, env=tape.env) as shown:
            shown.wait_for("read tape 1")
            assert shown.wait_for_end() == 0
            rows = [row for row in shown.text().split("\n") if row]
        assert rows == ["said meanwhile", "tape: warned meanwhile", "done"]

    def test_is_not_shown_in_a_pipe(self, capsys):
        with terminal.show_progress("read") as tell:
            tell(1, 2)
        assert capsys.readouterr() == ("", "")
