"""`tape show`, `log`, `cat` and `ls`: reading, and nothing but reading."""

from __future__ import annotations

import json
import os
import re
import shutil
from hashlib import sha256

import pytest

from tape.cli.group import COMMANDS
from tests.tape.cli.conftest import BIN, TALK, TYPES, line, words


def test_log_lists_a_path_newest_last(tape, talk):
    found = tape("log", talk, "--json").json
    assert [entry["type"] for entry in found] == TYPES
    assert [entry["n"] for entry in found] == list(range(6))
    short = tape("log", talk, "--oneline").text.split("\n")
    assert short[2] == f"{found[2]['id'][:8]}  assistant    I look. → read a.py"
    full = tape("log", talk).text
    assert full.count("\n\n") == 6
    assert "  x = 1␛[31m\n" in full


def test_json_shows_the_lines_unchanged(tape, talk):
    (file,) = tape.folder(talk).glob("phases/*/entries.jsonl")
    lines = file.read_bytes().split(b"\n")[:-1]
    assert tape("log", talk, "--json").out == b"[\n" + b",\n".join(lines) + b"\n]\n"
    assert tape("cat", talk, "--json").out == b"[\n" + b",\n".join(lines) + b"\n]\n"
    assert tape("show", f"{talk}~1", "--json").out == lines[-2] + b"\n"
    assert tape("show", f"{talk}~1", "--raw").out == lines[-2] + b"\n"


@pytest.mark.parametrize(
    ("options", "types"),
    [
        (["-n", "2"], ["tool.result", "assistant"]),
        (["-n", "0"], []),
        (["-n", "99"], TYPES),
        (["--type", "assistant"], ["assistant", "assistant"]),
        (["--type", "user", "--type", "tool.result"], ["user", "tool.result"]),
        (["--type", "assistant", "-n", "1"], ["assistant"]),
        (["--type", "nothing"], []),
    ],
)
def test_log_can_be_narrowed(tape, talk, options, types):
    assert [entry["type"] for entry in tape("log", talk, "--json", *options).json] == types


def test_cat_cuts_nothing_and_log_says_what_it_cut(tape):
    identity = tape("new").text.strip()
    long = "\n".join(map(str, range(40_000)))
    tape("append", identity, stdin=line("tool.result", call_id="c", name="ls", content=words(long)))
    assert tape("cat", identity).text.split("\n")[3:-2] == long.split("\n")
    assert re.search(r"… \d+ more lines", tape("log", identity).text)
    assert tape("cat", identity, "--md").text.count("\n39999\n") == 1
    (folder,) = tape.folder(identity).glob("blobs/*")
    shutil.rmtree(folder)
    assert "is missing]" in tape("cat", identity).text


def test_show_names_a_tape_by_branches_and_phases(tape, talk):
    shown = tape("show", talk, "--json").json
    assert list(shown) == [
        *("id", "path", "title", "created", "by", "cwd", "origin", "current"),
        *("branches", "phases", "labels", "model", "provider", "tokens"),
        *("input_tokens", "output_tokens", "git_branch", "mode", "todos"),
        *("repository", "person", "machine"),
    ]
    assert (shown["id"], shown["title"], shown["current"]) == (talk, "First", "main")
    assert [(b["branch"], b["n"]) for b in shown["branches"]] == [("main", 5)]
    assert [(p["phase"], p["entries"]) for p in shown["phases"]] == [("0001-main-start", 6)]
    text = tape("show", talk[:6]).text
    assert text.startswith(f"tape {talk}\ntitle    First\n")
    assert "\n0001-main-start        6  " in text


def test_show_as_json_says_what_the_branch_knows_of_its_session(tape):
    """Model, provider, tokens, git branch, mode and todos: the newest of each; `ls` says them too.

    M203.
    """
    identity = tape("new").text.strip()
    bare = tape("show", identity, "--json").json
    tokens = ("tokens", "input_tokens", "output_tokens")
    names = ("model", "provider", *tokens, "git_branch", "mode", "todos", "repository")
    listed = tape("ls", "--json").json[0]
    for said in (bare, listed):
        assert [said[name] for name in names] == [None, None, 0, 0, 0, None, None, [], None]
    todos = [{"text": "a", "status": "pending"}]
    usage = {"input": 3, "output": 4, "total": 7}
    for kind, data in (
        ("mode", {"permission": "plan", "tools": []}),
        ("model", {"provider": "one", "model": "m"}),
        ("assistant", {"content": [], "provider": "two", "model": "n", "usage": usage}),
        ("custom", {"kind": "gong.todos", "data": todos}),
        ("assistant", {"content": [], "provider": "two", "model": "n", "usage": usage}),
    ):
        tape("append", identity, stdin=json.dumps({"type": kind, "data": data}))
    moved = {"cwd": str(tape.work), "repository": "example.org/team/app"}
    tape("append", identity, stdin=json.dumps({"type": "meta", "data": moved}))
    facts = ["n", "two", 14, 6, 8, None, "plan", todos, "example.org/team/app"]
    shown = tape("show", identity, "--json").json
    assert [shown[name] for name in names] == facts
    listed = tape("ls", "--json").json[0]
    assert [listed[name] for name in names] == facts


def test_show_of_an_entry_is_readable(tape, talk):
    entry = tape("log", talk, "--json").json[1]
    assert tape("show", f"{talk}@{entry['id'][:6]}").text.endswith("\n  Read a.py\n")
    assert tape("show", entry["id"][:10]).text.endswith("\n  Read a.py\n")


def test_nothing_means_the_newest_tape_of_this_folder(tape, talk, tmp_path):
    elsewhere = tape("new", "--cwd", str(tmp_path)).text.strip()
    assert tape("show", "--json").json["id"] == talk
    tape("append", elsewhere, stdin=TALK)
    assert tape("show", ":main", "--json").json["id"] == talk
    assert [entry["type"] for entry in tape("log", "--json").json] == TYPES


@pytest.mark.parametrize(
    ("verb", "ref"),
    [
        ("show", "abcdef012345"),
        ("log", "zz-nothing"),
        ("cat", "ID:gone"),
        ("show", "ID@0000"),
        ("log", "ID~99"),
        ("log", "ID@{7}"),
        ("context", "ID@label"),
        ("verify", "abcd"),
        ("branches", "abcd"),
        ("fork", "abcd"),
        ("switch", "abcd:main"),
        ("append", "abcd"),
    ],
)
def test_an_unknown_ref_is_not_found(tape, talk, verb, ref):
    assert tape.refused(verb, ref.replace("ID", talk), code=3)


def test_a_prefix_that_fits_two_tapes_lists_them(tape, talk):
    folder = tape.folder(talk)
    other = talk[:12] + "0" * 20
    shutil.copytree(folder, folder.parent / f"copy-{other[:8]}")
    info = folder.parent / f"copy-{other[:8]}" / "tape.json"
    info.write_bytes(info.read_bytes().replace(talk.encode(), other.encode()))
    for verb in ("show", "log", "verify", "append"):
        said = tape.refused(verb, talk[:8], code=3)
        assert said.startswith(f"'{talk[:8]}' is ambiguous, give more of it: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ("log", "a b:c:d"),
        ("show", "@@"),
        ("log", "-n", "x"),
        ("log", "-n", "-1"),
        ("nothing",),
        ("ls", "--sort", "x"),
        ("ls", "--since", "soon"),
        ("cat", "--md", "--json"),
        ("verify", "abcd", "--all"),
        ("append", "--durability", "some"),
        ("switch",),
        ("--nothing",),
        ("log", "a", "b"),
    ],
)
def test_misuse_is_one_line_and_exit_code_2(tape, arguments):
    assert tape.refused(*arguments, code=2)


def test_ls_lists_newest_first_with_what_they_cost(tape, talk):
    second = tape("new", "--title", "日本").text.strip()
    listed = tape("ls", "--json").json
    assert [row["id"] for row in listed] == [second, talk]
    assert list(listed[0]) == [
        *("id", "path", "folder", "title", "cwd", "project", "created", "updated", "model"),
        *("entries", "branches", "cost", "provider", "tokens", "input_tokens", "output_tokens"),
        *("git_branch", "mode", "todos", "repository", "person", "machine", "agent"),
        "archived",
    ]
    row = {key: listed[1][key] for key in ("title", "model", "entries", "branches", "cost")}
    assert row == {"title": "First", "model": "rules", "entries": 6, "branches": 1, "cost": 0.25}
    lines = tape("ls").text.split("\n")
    headings = "ID AGE FOLDER TITLE AGENT MODEL ENTRIES BRANCHES COST"
    assert lines[0].split() == headings.split()
    assert lines[2].split()[0] == talk[:8]
    assert lines[2].split()[2:] == [".", "First", "test", "rules", "6", "1", "$0.25"]
    assert lines[1].index("tape") == lines[2].index("test") - 2  # wide characters take two columns


def test_ls_can_be_narrowed_and_sorted(tape, talk, tmp_path):
    other = tape("new", "--cwd", str(tmp_path / "work-2")).text.strip()

    def listed(*options):
        return [row["id"] for row in tape("ls", "--json", *options).json]

    assert listed("--project", str(tape.work)) == [talk]
    assert listed("--project", ".") == [talk]
    assert listed("--project", str(tmp_path)) == [other, talk]
    assert listed("--limit", "1") == [other]
    assert listed("--limit", "0") == []
    assert listed("--sort", "entries") == [talk, other]
    assert listed("--sort", "cost", "--limit", "1") == [talk]
    assert listed("--since", "1h") == [other, talk]
    assert listed("--since", "2999-01-01") == []
    assert listed("--all") == [other, talk]


def test_ls_of_no_store_is_empty_and_makes_none(tape):
    assert tape("ls", "--json").json == []
    ran = tape("ls")
    assert (ran.out, ran.err) == (b"", "tape: no tape to list; `tape new` makes one\n")
    assert not tape.store.exists()


def test_more_than_fifty_tapes_are_cut_and_it_says_so(tape, talk):
    folder = tape.folder(talk)
    for n in range(51):
        identity = sha256(b"%d" % n).hexdigest()[:32]
        copy = folder.parent / f"copy-{identity[:8]}"
        shutil.copytree(folder, copy)
        info = copy / "tape.json"
        info.write_bytes(info.read_bytes().replace(talk.encode(), identity.encode()))
    ran = tape("ls")
    assert ran.text.count("\n") == 51
    assert ran.err == "tape: these are the first 50; --all lists every tape\n"
    assert len(tape("ls", "--all", "--json").json) == 52


def test_the_store_is_named_by_option_or_environment(tape, talk, tmp_path):
    other = str(tmp_path / "other")
    made = tape("--store", other, "new").text.strip()
    assert [row["id"] for row in tape("ls", "--store", other, "--json").json] == [made]
    tape.env["TAPE_HOME"] = other
    assert [row["id"] for row in tape("ls", "--json").json] == [made]
    tape.env["TAPE_HOME"] = ""
    assert [row["id"] for row in tape("ls", "--json").json] == [talk]


VIEWS = ["show", "log", "cat", "branches", "context", "verify"]


def state(folder):
    return {
        str(p.relative_to(folder)): (p.stat().st_mtime_ns, p.stat().st_size)
        for p in folder.rglob("*")
    }


def test_viewing_writes_nothing_to_a_tape(tape, talk):
    folder = tape.folder(talk)
    before = state(folder)
    for verb in [*VIEWS, "ls"]:
        tape(verb, *([] if verb == "ls" else [talk]))
    assert state(folder) == before


def test_a_store_that_cannot_be_written_is_read(tape, talk, tmp_path):
    """The index cannot be made: something stands in its place."""
    (tape.store / "index.db").unlink()
    (tape.store / "index.db").mkdir()
    (tape.store / "index.db/x").write_text("")
    if os.geteuid():
        for path in [*tape.store.rglob("*"), tape.store]:
            path.chmod(0o500 if path.is_dir() else 0o400)
    for verb in VIEWS:
        assert tape(verb, talk).out
    assert tape("ls").text.count("\n") == 2


@pytest.fixture
def damaged(tape, talk):
    """A tape with a line in its middle that is no JSON any more."""
    (file,) = tape.folder(talk).glob("phases/*/entries.jsonl")
    lines = file.read_bytes().split(b"\n")
    lines[2] = lines[2].replace(b'"content":', b'"content"\xff')
    file.write_bytes(b"\n".join(lines))
    return talk


def test_a_damaged_line_is_left_out_and_warned_about_once(tape, damaged):
    for verb in ("log", "cat"):
        ran = tape(verb, damaged, "--json")
        assert [entry["type"] for entry in ran.json] == [*TYPES[:2], *TYPES[3:]]
        assert ran.err.startswith("tape: 0001-main-start: line at byte ")
        assert ran.err.count("\n") == 1
    assert tape("context", damaged, "--json").err.count("\n") == 1
    assert "`tape fsck` explains it" in tape.refused("show", f"{damaged}~3", code=4)


def test_a_damaged_ref_is_left_out_and_warned_about(tape, talk):
    path = tape.folder(talk) / "refs.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"current":"main"', b'"current":"mine"'))
    for verb in ("log", "show", "branches", "context"):
        err = tape(verb, talk).err
        assert err.startswith("tape: refs.jsonl: damaged line at byte ")
        assert err.count("\n") == 1
    assert tape("verify", talk, code=4).err == ""
    assert "nothing was written" in tape("switch", f"{talk}:main", code=4).err


def newer(file):
    lines = file.read_bytes().split(b"\n")
    body = lines[2][49:].replace(b'"v":1', b'"v":9', 1)
    identity = sha256(body[: body.index(b',"data":')]).hexdigest()[:40].encode()
    lines[2] = b'{"id":"%b",%b' % (identity, body)
    file.write_bytes(b"\n".join(lines))


def test_a_newer_tape_is_refused_and_not_touched(tape, talk):
    (file,) = tape.folder(talk).glob("phases/*/entries.jsonl")
    newer(file)
    before = file.read_bytes()
    for verb in ("log", "cat", "verify", "context"):
        assert "format 9" in tape.refused(verb, talk, code=1)
    info = tape.folder(talk) / "tape.json"
    info.write_bytes(info.read_bytes().replace(b'"format":1', b'"format":2'))
    for verb in ("show", "append", "fork", "verify"):
        assert "update it" in tape.refused(verb, talk[:8], stdin=TALK, code=1)
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    "name", ["tape.json", "refs.jsonl", "phases/0001-main-start/entries.jsonl"]
)
def test_an_empty_file_is_damage(tape, talk, name):
    (tape.folder(talk) / name).write_bytes(b"")
    for verb in ("verify", "log"):
        ran = tape(verb, talk[:8], code=4 if verb == "verify" or name != "refs.jsonl" else 3)
        assert ran.out or ran.err.startswith("tape: ")


def test_a_pipe_that_closes_early_is_no_error(tape, talk):
    tape("append", talk, stdin=b"".join(line("note", text="x" * 500) for _ in range(2000)))
    for arguments in (["log", talk], ["log", talk, "--json"], ["cat", talk, "--md"]):
        with tape.open(*arguments) as process:
            process.stdout.readline()
            process.stdout.close()
            assert process.wait(20) == 0
            assert process.stderr.read() == b""
            process.stdout = None


BYTES = {"export", "completion", "mcp", "serve"}
"""The verbs that print a file, or serve: its format is their answer."""


def test_help_shows_every_verb_and_an_example_of_each(tape):
    text = tape("--help").text
    verbs = re.findall(r"^  (\w+)  ", text[text.index("Commands:") :], re.MULTILINE)
    assert verbs == list(COMMANDS)
    for verb in verbs:
        page = tape(verb, "-h").text
        assert f"  tape {verb}" in page or verb == "append"
        assert "Examples:\n" in page
        assert "--json" in page or verb in BYTES
        assert "--store" in page


def test_the_version_is_printed(tape):
    assert re.fullmatch(r"tape \d+\.\d+\.\d+\n", tape.real("--version").text)
    assert tape.real("--debug", "--version").text == tape.real("--version").text


def test_debug_shows_where_an_error_came_from(tape, talk):
    with tape.open("show", "abcdef", "--debug") as process:
        err = process.communicate()[1].decode()
    assert "Traceback" in err
    assert err.endswith("`tape ls --all` lists the tapes\n")
    assert process.returncode == 3


def test_json_needs_no_utf8_terminal(tape, talk):
    tape("append", talk, stdin=line("note", text="日本"))
    tape.env |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert tape.real("log", talk, "-n", "1", "--json").json[0]["data"] == {"text": "日本"}
    assert "??" in tape.real("log", talk, "-n", "1").text
    assert json.loads(tape.real("ls", "--json").out)[0]["id"] == talk


def test_the_exit_codes_of_the_command(tape, talk):
    """As a shell sees them: found, misuse, not found, damaged, busy, newer."""
    tape.real("log", talk)
    tape.real("log", "--nothing", code=2)
    tape.real("fork", talk, "--name", "///", code=2)
    tape.real("log", "abcdef", code=3)
    with tape.open("append", f"{talk}:main") as process:
        process.stdin.write(line("note", text="x"))
        process.stdin.flush()
        process.stdout.readline()
        tape.real("append", f"{talk}:main", stdin=TALK, code=5)
        process.kill()
    (file,) = tape.folder(talk).glob("phases/*/entries.jsonl")
    file.write_bytes(file.read_bytes().replace(b"a.py", b"b.py"))
    tape.real("verify", talk, code=4)
    info = tape.folder(talk) / "tape.json"
    info.write_bytes(info.read_bytes().replace(b'"format":1', b'"format":2'))
    tape.real("show", talk[:8], code=1)


def test_a_terminal_gets_rows_that_fit(tape, talk):
    pexpect = pytest.importorskip("pexpect")
    tape("new", "--title", "A very long title " * 5)
    size = {"dimensions": (24, 60), "encoding": "utf-8"}
    child = pexpect.spawn(str(BIN), ["ls"], cwd=str(tape.work), env=tape.env, **size)
    rows = child.read().replace("\r", "").split("\n")
    assert max(map(len, rows)) <= 60
    assert rows[1].count("…") == 1
