"""`tape ls`: what it lists, in what order, from an index that is caught up or not."""

from __future__ import annotations

import json
import re
import shutil

import pytest

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


def list_caught_up(tape, *options):
    """Return what `tape ls` prints from an index that is caught up, and trusts its folder."""
    while reader.fetch_newest_tapes(str(tape.store), 1) is None:
        tape("ls")
    return ageless(tape.real("ls", *options))


def list_anew(tape, *options):
    """Return what `tape ls` prints where the index has to be made first."""
    for path in tape.store.glob("index.db*"):
        path.unlink()
    return ageless(tape.real("ls", *options))


def ageless(ran):
    """Return text and warnings of a list, without the ages, that go on between two looks."""
    return re.sub(r" +\d+[smh] ", " … ", ran.text), ran.err


class TestIndexAsItIs:
    """A list of an index that is caught up is the list of one that has to catch up first."""

    @pytest.mark.parametrize(
        "options",
        [
            *([], ["--all"], ["--json"], ["-n", "2"], ["--limit=1", "--json"], ["-n", "0"]),
            *(["--all", "--sort", "title"], ["--sort", "created", "-n", "1"], ["--here"]),
            *(["--sort", "cost", "--json"], ["--here", "--json"], ["--project", "."]),
            *(["--project=/", "--json"], ["--since", "1h", "--until", "0s"]),
            *(["--since", "2020-01-01", "--json", "--sort", "entries"], ["--project", "/nowhere"]),
        ],
    )
    def test_list_with_options_is_the_same(self, tape, three, options):
        listed = list_anew(tape, *options)
        assert list_caught_up(tape, *options) == listed
        for stored in (["--store", str(tape.store), "ls"], ["ls", f"--store={tape.store}"]):
            assert ageless(tape.real(*stored, *options)) == listed

    def test_paths_of_a_store_named_in_any_way_are_the_same(self, tape, three):
        above = tape.store.parent
        (above / "x").mkdir()
        for home in (f"{above}//./{tape.store.name}/", f"{above}/x/../{tape.store.name}"):
            list_caught_up(tape)
            listed = tape.real("--store", home, "ls", "--json").json
            for path in tape.store.glob("index.db*"):
                path.unlink()
            assert listed == tape.real("--store", home, "ls", "--json").json
            assert {row["path"] for row in listed} == {
                f"{above}{'/x/..' if 'x' in home else ''}/{tape.store.name}/tapes/{row['folder']}"
                for row in listed
            }

    def test_cuts_behind_fifty_and_says_so(self, tape, talk):
        for n in range(51):
            copy = tape.store / f"tapes/copy-{n}"
            shutil.copytree(tape.folder(talk), copy)
            info = json.loads((copy / "tape.json").read_text())
            (copy / "tape.json").write_text(json.dumps({**info, "id": f"{n:032x}"}))
        listed = list_anew(tape)
        assert listed[1] == "tape: these are the first 50; --all lists every tape\n"
        assert list_caught_up(tape) == listed

    @pytest.mark.parametrize("change", ["came", "went", "renamed", "written", "newer", "damaged"])
    def test_change_is_caught_up_with_first(self, tape, three, change):
        list_caught_up(tape)
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
                assert ageless(tape.real("ls")) == list_anew(tape)
                process.kill()
        elif change == "newer":
            assert reader.fetch_newest_tapes(str(tape.store), 50) is None
            assert "update it" in tape.real("ls", code=1).err
            return
        else:
            before = reader.fetch_newest_tapes(str(tape.store), 50)
            assert before is None or change == "came"
        assert ageless(tape.real("ls")) == list_anew(tape)

    def test_list_of_no_store_makes_none(self, tape):
        assert "no tape to list" in tape.real("ls").err
        assert not tape.store.exists()

    def test_finds_a_store_with_an_odd_name(self, tape, talk):
        list_caught_up(tape)
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
        """The first words of the rows, of an index made anew and as it is, from a folder."""
        tape.work, before = tape.work / folder, tape.work
        listed = list_anew(tape, *options)
        assert list_caught_up(tape, *options) == listed
        tape.work = before
        return [row.split() for row in listed[0].split("\n")[1:-1]]

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
