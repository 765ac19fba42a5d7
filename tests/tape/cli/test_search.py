"""`tape search`: what it prints, for people and for programs."""

from __future__ import annotations

import json
import os

import pytest

from tape.index import reader
from tests.e2e.terminal import Terminal
from tests.tape.cli.conftest import BIN, line, words

TAPES = [("Login bug", "fix src/auth/login.py:42 now"), ("Other", "登录页面 \x1b[31m")]


@pytest.fixture
def said(tape):
    """Two tapes; the id of the first."""
    ids = []
    for title, text in (
        ("Login bug", "fix src/auth/login.py:42 now"),
        ("Other", "登录页面 \x1b[31m"),
    ):
        ids.append(tape("new", "--title", title, "--json").json["id"])
        tape("append", ids[-1], stdin=line("user", content=words(text)))
    return ids


def test_a_hit_is_shown_with_a_ref_that_leads_to_it(tape, said):
    first, second = tape("search", "login.py:42").text.split("\n")[:2]
    place, day, time, agent, kind, *title = first.split()
    assert (place[:8], agent, kind, title) == (said[0][:8], "tape", "user", ["Login", "bug"])
    assert second == "    fix src/auth/login.py:42 now"
    shown = tape("show", place, "--json").json
    assert shown["time"].startswith(f"{day}T{time}")
    assert "login.py" in json.dumps(shown)


@pytest.mark.parametrize("columns", [44, 80, 200])
def test_the_heading_of_a_hit_fits_the_terminal(tape, said, columns):
    """The title gives way, then the time."""
    tape("rename", said[0], "A title that goes on " * 5)
    command = [str(BIN), "search", "login.py"]
    with Terminal(command, cwd=tape.work, env=tape.env, columns=columns) as terminal:
        assert terminal.wait_for_end() == 0
        heading = terminal.rows()[0].split("  ")
    assert heading[0].startswith(said[0][:8])
    assert heading[-3:-1] == ["tape", "user"]
    assert heading[-1].startswith("A title")
    assert heading[-1].rstrip().endswith("…")
    assert len(heading) == (4 if columns < 60 else 5)


def test_json_is_one_array_with_stable_keys(tape, said):
    (hit,) = tape("search", "登录", "--json").json
    assert list(hit) == [
        *("tape", "title", "folder", "phase", "offset", "entry", "n", "time", "type", "branch"),
        *("snippet", "marks", "score", "cwd", "repository", "person", "machine", "agent"),
        "prompt",
    ]
    assert hit["tape"] == said[1]
    assert [hit["snippet"][start:end] for start, end in hit["marks"]] == ["登录"]


def test_nothing_found_exits_with_1_as_grep_does_and_says_so(tape, said):
    ran = tape("search", "zzz", code=1)
    assert (ran.out, ran.err) == (b"", "tape: nothing found for 'zzz'\n")
    ran = tape("search", "zzz", "--json", code=1)
    assert (ran.json, ran.err) == ([], "tape: nothing found for 'zzz'\n")
    assert not (tape.work / "index.db").exists()


def test_filters_narrow_and_times_are_as_people_write_them(tape, said):
    def hits(*args):
        ran = tape("search", "login OR 登录", *args, "--json", code=None)
        assert ran.code == int(not ran.json)
        return len(ran.json)

    assert hits() == 2
    assert hits("-n", "1") == hits("--limit", "1") == 1
    assert hits("--type", "user", "--type", "assistant") == 2
    assert hits("--type", "assistant") == 0
    assert hits("--since", "1h") == hits("--since", "2020-01-01") == 2
    assert hits("--until", "2020-01-01T10:00") == hits("--since", "2999-01-01") == 0
    assert hits("--project", str(tape.work)) == hits("--project", ".") == 2
    assert hits("--project", "elsewhere") == 0
    assert hits("--model", "none") == 0


def test_what_was_found_is_bold_where_colours_are_and_control_characters_are_shown(tape, said):
    assert "\x1b" not in tape("search", "页面").text
    tape.env["CLICOLOR_FORCE"] = "1"
    shown = tape("search", "页面").text
    assert "登录\x1b[1m页面\x1b[0m" in shown
    assert "\x1b[31m" not in shown
    tape.env["NO_COLOR"] = "1"
    assert "\x1b" not in tape("search", "页面").text


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["{"], "nothing to search for in '{': give a word with a letter or a digit"),
        (["a", "--since", "soon"], "'soon' is not a valid time: write"),
        ([], "nothing to search for in ''"),
        (["a", "-n", "0"], "Invalid value for '-n' / '--limit'"),
    ],
)
def test_misuse_is_one_line_and_exit_2(tape, args, says):
    assert says in tape.refused("search", *args, code=2)


def test_a_store_that_is_not_there_is_not_made(tape):
    assert tape("search", "a", code=1).out == b""
    assert not tape.store.exists()


@pytest.fixture
def ready(tape, said):
    """The store of two tapes, and one with many hits, whose index trusts its folder."""
    many = b"".join(
        line("user", content=words(f"login 登录 number {n} " + "and so on " * 40))
        for n in range(40)
    )
    tape("append", said[0], stdin=many)
    os.utime(tape.store / "tapes", (1, 1))
    tape("ls")
    assert reader.fetch_newest_tapes(str(tape.store), 1)
    return tape


def search_anew(tape, *arguments):
    """Return what `tape search` prints where the index has to be made first, and its exit code."""
    for path in tape.store.glob("index.db*"):
        path.unlink()
    return tape.real("search", *arguments, code=None)


class TestIndexAsItIs:
    """A search of an index that is caught up finds what one finds that has to catch up first."""

    @pytest.mark.parametrize(
        "arguments",
        [
            ["login"],
            ["login", "number"],
            ["登录", "-n", "3"],
            ["录页 OR 登"],
            ['"number 7"', "-n", "5"],
            ["login -number", "--limit", "3"],
            ["log*", "--type", "user", "--type", "assistant"],
            ["login", "--type", "tool.result"],
            ["login", "--project", ".", "--since", "1d"],
            ["login", "--since", "1h", "--until", "2020-01-01"],
            ["login", "--model", "none"],
            ["login.py:42"],
            ["nowhere", "at", "all"],
            ["", "login"],
            ["login", "--json", "-n", "7"],
            ["--json", "nowhere"],
            ["log*", "--limit=2", "--type=user"],
        ],
    )
    def test_hits_are_the_same(self, ready, arguments):
        ran = ready.real("search", *arguments, code=None)
        assert ran == search_anew(ready, *arguments)
        assert ran.code == int(ran.out in {b"", b"[]\n"})

    def test_store_is_found_by_its_option(self, ready):
        ready.env["TAPE_HOME"] = "/nowhere"
        assert "login" in ready.real("search", "login", "--store", str(ready.store)).text

    def test_takes_a_reader_that_goes_away_for_no_error(self, ready):
        with ready.open("search", "login") as process:
            process.stdout.close()
            assert process.wait(20) == 0
            assert process.stderr.read() == b""
            process.stdout = None


class TestWithoutWords:
    def test_the_newest_that_the_options_leave_are_listed(self, tape, talk):
        for options in (["--type", "user"], ["--type", "assistant"], ["--model", "offline"]):
            assert tape.real("search", *options) == search_anew(tape, *options)
            hits = tape("search", *options, "--json").json
            times = [hit["time"] for hit in hits]
            assert times == sorted(times, reverse=True)
            if "--type" in options:
                assert {hit["type"] for hit in hits} == {options[1]}
        (hit,) = tape("search", "--type", "user", "--json").json
        assert (hit["snippet"], hit["marks"], hit["prompt"]) == ("Read a.py", [], None)
        assert len(tape("search", "--since", "1h", "-2", "--json").json) == 2

    def test_without_words_and_options_there_is_nothing_to_search_for(self, tape, talk):
        told = "nothing to search for in '': give a word with a letter or a digit"
        assert tape.refused("search", code=2) == told
        assert tape("search", "--until", "2020-01-01", code=1).err == "tape: nothing found\n"


def test_quiet_says_by_the_exit_code_whether_something_is_found(tape, talk):
    for asked, code in [(["Read"], 0), (["zebra"], 1), (["--type", "user"], 0)]:
        for option in ("-q", "--quiet"):
            ran = tape.real("search", *asked, option, code=code)
            assert (ran.out, ran.err) == (b"", "")


def test_a_hit_is_shown_with_the_prompt_that_led_to_it(tape, talk):
    prompt = tape("log", "--type", "user", "--json").json[0]["id"]
    told = {"entry": prompt, "text": "Read a.py"}
    (hit,) = tape.real("search", "sets", "--json").json
    assert hit["prompt"] == told
    rows = tape.real("search", "sets").text.split("\n")
    assert rows[2] == f"    prompt {prompt[:8]}: Read a.py"
    (hit,) = tape.real("search", "Read", "--type", "user", "--json").json
    assert hit["prompt"] is None
    tape("redact", f"@{prompt}", "--yes")
    (hit,) = tape("search", "sets", "--json").json
    assert hit["prompt"] is None
