"""`tape ls`: what it lists, in what order, and that the short way says what the long one says."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from tape.cli.list_view import answer_at_once
from tape.index import reader
from tests.e2e.terminal import Terminal
from tests.tape.cli.conftest import BIN, TALK, line


@pytest.fixture
def three(tape, talk):
    """Three tapes with titles, the newest first."""
    made = [tape("new", "--title", title).text.strip() for title in ("beta", "Alpha")]
    return [made[1], made[0], talk]


def listed(tape, *options):
    return [row["id"] for row in tape("ls", "--json", *options).json]


def test_tapes_are_sorted_and_limited(tape, three):
    alpha, beta, first = three
    assert listed(tape) == three
    assert listed(tape, "--sort", "title") == [alpha, beta, first]
    assert listed(tape, "--sort", "created") == three
    assert listed(tape, "-n", "1", "--sort", "entries") == [first]
    assert listed(tape, "-n", "2") == three[:2]


def test_tapes_are_chosen_by_time(tape, three):
    middle = tape("ls", "--json").json[1]["updated"]
    assert listed(tape, "--since", middle) == three[:2]
    assert listed(tape, "--until", middle) == three[2:]
    assert listed(tape, "--since", "1h", "--until", "0s") == three
    assert listed(tape, "--until", "2026-01-01") == []
    assert "is not a valid time" in tape.refused("ls", "--until", "soon", code=2)


def long_way(tape):
    """Return what `tape ls` prints with an option that makes no difference."""
    ran = tape.real("ls", "--no-pager")
    return ageless(ran.text), ran.err


def caught_up(tape):
    """Let the index catch up for good: it does not trust a folder that changed just now."""
    while reader.fetch_newest_tapes(str(tape.store), 1) is None:
        tape("ls")


def at_once_or_not(tape):
    ran = tape.real("ls")
    return ageless(ran.text), ran.err


def ageless(text):
    """Return a list of tapes without the ages, that go on between two looks."""
    return re.sub(r" +\d+[smh] ", " … ", text)


class TestAtOnce:
    """Plain `tape ls` is answered from the index alone where that is ready."""

    def test_says_what_the_long_way_says(self, tape, three, capsys, monkeypatch):
        said = long_way(tape)
        monkeypatch.chdir(tape.work)
        caught_up(tape)
        assert answer_at_once([], str(tape.store))
        out, err = capsys.readouterr()
        assert (ageless(out), err) == said == at_once_or_not(tape)

    def test_says_all_that_the_long_way_says(self, tape, three, capsys, monkeypatch):
        monkeypatch.chdir(tape.work)
        said = ageless(tape.real("ls", "--all", "--no-pager").text)
        caught_up(tape)
        assert answer_at_once(["--all"], str(tape.store))
        assert ageless(capsys.readouterr().out) == said == ageless(tape.real("ls", "--all").text)

    @pytest.mark.parametrize(
        "arguments",
        [
            *(["--json"], ["-n", "2"], ["--limit=1", "--json"], ["--all", "--sort", "title"]),
            *(["--sort", "created", "-n", "1"], ["--sort", "cost", "--json"]),
            *(
                ["--here"],
                ["--here", "--json"],
                ["--project", "."],
                ["--project=/", "--json"],
                ["--since", "1h", "--until", "0s"],
            ),
            ["--since", "2020-01-01", "--json", "--sort", "entries"],
        ],
    )
    def test_says_the_same_with_options(self, tape, three, capsys, monkeypatch, arguments):
        said = tape.real("ls", *arguments, "--no-pager")
        monkeypatch.chdir(tape.work)
        caught_up(tape)
        assert answer_at_once(arguments, str(tape.store))
        out, err = capsys.readouterr()
        assert (ageless(out), err) == (ageless(said.text), said.err)
        for stored in (["--store", str(tape.store), "ls"], ["ls", f"--store={tape.store}"]):
            ran = tape.real(*stored, *arguments)
            assert (ageless(ran.text), ran.err) == (ageless(said.text), said.err)

    @pytest.mark.parametrize(
        "arguments",
        [
            *(["-n", "0"], ["-n", "x"], ["-n2"], ["-n=2"], ["-n"], ["--limit="], ["-n", "9" * 50]),
            *(["--sort", "none"], ["--since", "soon"], ["--project", "/nowhere"], ["words"]),
            *(["--"], ["--help"], ["--no-pager"], ["--debug"], ["--all=1"], ["--project", "-x"]),
        ],
    )
    def test_leaves_other_options_and_empty_lists_to_the_long_way(
        self, tape, three, capsys, arguments
    ):
        caught_up(tape)
        assert not answer_at_once(arguments, str(tape.store))
        assert capsys.readouterr() == ("", "")

    def test_gives_the_same_paths_for_a_store_named_in_any_way(self, tape, three, monkeypatch):
        monkeypatch.chdir(tape.work)
        caught_up(tape)
        above = tape.store.parent
        (above / "x").mkdir()
        for home in (f"{above}//./{tape.store.name}/", f"{above}/x/../{tape.store.name}"):
            quick = tape.real("--store", home, "ls", "--json").json
            assert quick == tape.real("--store", home, "ls", "--json", "--no-pager").json

    def test_cuts_behind_fifty_and_says_so(self, tape, talk):
        for n in range(51):
            copy = tape.store / f"tapes/copy-{n}"
            shutil.copytree(tape.folder(talk), copy)
            info = json.loads((copy / "tape.json").read_text())
            (copy / "tape.json").write_text(json.dumps({**info, "id": f"{n:032x}"}))
        said = long_way(tape)
        assert said[1] == "tape: these are the first 50; --all lists every tape\n"
        assert at_once_or_not(tape) == said

    @pytest.mark.parametrize("change", ["came", "went", "renamed", "written", "newer", "damaged"])
    def test_leaves_what_is_not_ready_to_the_long_way(self, tape, three, change):
        caught_up(tape)
        folder = tape.folder(three[0])
        if change == "came":
            tape.real("new", "--title", "new")
        elif change == "went":
            shutil.rmtree(folder)
        elif change == "renamed":
            folder.rename(folder.with_name("mine"))
        elif change == "newer":
            (tape.store / "store.json").write_text('{"format":2,"created":""}')
        elif change == "damaged":
            for path in tape.store.glob("index.db*"):
                path.write_bytes(b"x" * 4096)
        if change == "written":
            with tape.open("append", f"{three[0]}:main") as process:
                process.stdin.write(line("note", text="x") + TALK)
                process.stdin.flush()
                process.stdout.readline()
                assert reader.fetch_newest_tapes(str(tape.store), 50) is None
                assert at_once_or_not(tape) == long_way(tape)
                process.kill()
        elif change == "newer":
            assert reader.fetch_newest_tapes(str(tape.store), 50) is None
            assert "update it" in tape.real("ls", code=1).err
            return
        else:
            before = reader.fetch_newest_tapes(str(tape.store), 50)
            assert before is None or change == "came"
        assert at_once_or_not(tape) == long_way(tape)

    def test_of_no_store_is_left_to_the_long_way(self, tape):
        assert not answer_at_once([], str(tape.store))
        assert "no tape to list" in tape.real("ls").err
        assert not tape.store.exists()

    def test_finds_a_store_with_an_odd_name(self, tape, talk):
        caught_up(tape)
        odd = tape.store.with_name("a %41?b#c 日本")
        tape.store.rename(odd)
        assert [row[0] for row in reader.fetch_newest_tapes(str(odd), 5) or ()] == [talk]

    def test_takes_a_reader_that_goes_away_for_no_error(self, tape, three):
        with tape.open("ls") as process:
            process.stdout.close()
            assert process.wait(20) == 0
            assert process.stderr.read() == b""
            process.stdout = None


class TestOfAProject:
    """This project's tapes come first, or alone."""

    @pytest.fixture
    def places(self, tape):
        """Tapes in the top and below a repository, in another folder and in one beside: ids."""
        repository = tape.work / "repo"
        (repository / ".git").mkdir(parents=True)
        (repository / "src").mkdir()
        (tape.work / "repo-2").mkdir()
        ids = {}
        for name in ("repo", "repo/src", "repo-2", "/elsewhere"):
            ids[name] = tape("new", "--cwd", str(tape.work / name)).text.strip()
        return ids

    def listed(self, tape, folder, *options):
        """The first words of the rows, both ways, from a folder."""
        tape.work, before = tape.work / folder, tape.work
        quick = tape.real("ls", *options)
        slow = tape.real("ls", *options, "--no-pager")
        tape.work = before
        assert (ageless(quick.text), quick.err) == (ageless(slow.text), slow.err)
        return [row.split() for row in quick.text.split("\n")[1:-1]]

    def test_comes_first_from_everywhere_in_it(self, tape, places):
        short = {name: identity[:8] for name, identity in places.items()}
        ours = [short["repo/src"], short["repo"], short["/elsewhere"], short["repo-2"]]
        for folder, shown in [("repo", ["src", "."]), ("repo/src", ["."])]:
            rows = self.listed(tape, folder)
            assert [row[0] for row in rows] == ours
            assert [row[2] for row in rows][: len(shown)] == shown
        rows = self.listed(tape, "repo-2")
        assert [row[0] for row in rows] == [short["repo-2"], ours[2], *ours[:2]]

    def test_comes_first_also_where_it_is_older_than_the_newest(self, tape, places):
        for _ in range(2):
            tape("new", "--cwd", "/other")
        rows = self.listed(tape, "repo", "-n", "2")
        assert [row[0] for row in rows] == [places["repo/src"][:8], places["repo"][:8]]
        rows = self.listed(tape, "repo", "-n", "2", "--sort", "updated")
        assert [row[2] for row in rows] == ["/other", "/other"]
        listed = tape("ls", "--json").json
        assert [row["updated"] for row in listed] == sorted(
            (row["updated"] for row in listed), reverse=True
        )

    def test_is_listed_alone_with_here(self, tape, places):
        for folder in ("repo", "repo/src"):
            rows = self.listed(tape, folder, "--here")
            assert [row[0] for row in rows] == [places["repo/src"][:8], places["repo"][:8]]
        assert [row[0] for row in self.listed(tape, "repo-2", "--here")] == [places["repo-2"][:8]]
        assert len(tape("ls", "--here", "--json").json) == 3  # the folder above, no repository


@pytest.mark.parametrize("wide", [30, 40, 59, 60, 80, 100, 120])
def test_a_row_fits_the_terminal_or_columns_go(tape, talk, wide):
    """Titles, folders and models get shorter first; then columns are left out."""
    tape(
        "new", "--title", "A very long title " * 5, "--cwd", "/some/very/long/folder/of/many/parts"
    )
    env = {**tape.env, "TAPE_PAGER": ""}
    with Terminal([str(BIN), "ls"], cwd=tape.work, env=env, columns=wide) as shown:
        assert shown.wait_for_end() == 0
        rows = [row.rstrip() for row in shown.text().split("\n") if row.strip()]
    assert len(rows) == 3
    assert max(map(len, rows)) <= wide
    headings = rows[0].split()
    assert [name for name in ["ID", "AGE", "TITLE"] if name not in headings] == []
    if wide >= 80:
        assert "MODEL" in headings
        assert "FOLDER" in headings
