"""The cases J.1 to J.8 that the first design lists for the seven tools, through `gong tool`.

Each by its number, in one process that answers line after line. What needs a truncation called by
itself or a prefix of commands has its test beside the module; `tests/rows.toml` says where.
"""

from __future__ import annotations

import json
import os
import subprocess
import zlib
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.e2e.conftest import BIN, Place

ROOT = os.geteuid() == 0
PNG = (
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\0\0\0\0\x3a\x7e\x9b\x55"
    b"\0\0\0\x0aIDAT\x78\x9c\x63\x60\0\0\0\2\0\1\x48\xaf\xa4\x71\0\0\0\0IEND\xaeB`\x82"
)


class Hand:
    """One `gong tool --jsonl`."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.process = subprocess.Popen(
            [BIN / "gong", "tool", "--jsonl"],
            cwd=place.folder,
            env={**place.env, "TMPDIR": str(place.home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def line(self, line: bytes) -> dict:
        """Send one line and return what is answered."""
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def use(self, tool: str, args: object) -> dict:
        """Call a tool and return its answer, the content as text."""
        answer = self.line(json.dumps({"tool": tool, "args": args}).encode())
        if not isinstance(answer["content"], str):
            answer["content"] = json.dumps(answer["content"])
        return answer


@pytest.fixture(scope="module")
def hand(tmp_path_factory):
    hand = Hand(Place(tmp_path_factory.mktemp("seed") / "home"))
    yield hand
    hand.process.stdin.close()
    assert hand.process.wait(20) == 0
    hand.process.stdout.close()


@pytest.fixture
def at(hand, request):
    """A folder for one case, as the tool names it."""
    name = f"c{zlib.crc32(request.node.name.encode()):08x}"
    (hand.place.folder / name).mkdir()
    return name


class Edit(NamedTuple):
    """A file before and after an edit, and words of the answer; no `after` is an error."""

    before: bytes
    old: str
    new: str
    said: str
    after: bytes | None = None


EDITS = {
    "J1-1.1": Edit(
        b"Hello, world!", "world", "testing", "Successfully replaced", b"Hello, testing!"
    ),
    "J1-1.2": Edit(b"Hello, world!", "nonexistent", "x", "Could not find the exact text in F."),
    "J1-1.3": Edit(b"foo bar foo baz foo", "foo", "qux", "Found 3 occurrences of the text in F."),
    "J1-2.1": Edit(b"line one   \nx\n", "line one\n", "replaced\n", "replaced", b"replaced\nx\n"),
    "J1-2.2": Edit("‘hello’\n".encode(), "'hello'", "'world'", "Succ", b"'world'\n"),
    "J1-2.3": Edit("“Hello”\n".encode(), '"Hello"', '"World"', "Succ", b'"World"\n'),
    "J1-2.4": Edit("1\u20132\u20143\n".encode(), "1-2-3", "4", "Succ", b"4\n"),
    "J1-2.5": Edit("a\u00a0b\n".encode(), "a b", "c", "Succ", b"c\n"),
    "J1-2.6": Edit("a“  \nb\n".encode(), "b", "c", "Succ", "a“  \nc\n".encode()),
    "J1-2.7": Edit(b"something", "completely different", "x", "Could not find"),
    "J1-2.8": Edit(b"hello   \nhello\n", "hello", "x", "Found 2 occurrences"),
    "J1-3.1": Edit(b"a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", "Succ", b"x\r\ny\r\nc\r\n"),
    "J1-3.2": Edit(b"a\r\nb\r\n", "b", "c\nd", "Succ", b"a\r\nc\r\nd\r\n"),
    "J1-3.3": Edit(b"a\nb\n", "b", "c\nd", "Succ", b"a\nc\nd\n"),
    "J1-3.4": Edit(b"hello\r\nworld\r\nhello\nworld\n", "hello\nworld", "x", "Found 2 occ"),
    "J1-3.5": Edit(b"\xef\xbb\xbfa\r\nb\r\n", "a\nb", "c\nd", "Succ", b"\xef\xbb\xbfc\r\nd\r\n"),
    "J1-4.3": Edit(b"hello", "hello", "hello", "No changes made to F."),
    "J1-4.5": Edit(PNG, "IHDR", "x", "binary"),
}


@pytest.mark.parametrize("case", EDITS)
def test_edit(hand, at, case):
    """M070"""
    edit = EDITS[case]
    file = hand.place.folder / at / "F"
    file.write_bytes(edit.before)
    done = hand.use("edit", {"path": f"{at}/F", "oldText": edit.old, "newText": edit.new})
    assert edit.said in done["content"].replace(f"{at}/F", "F")
    assert done["is_error"] == (edit.after is None)
    assert file.read_bytes() == (edit.before if edit.after is None else edit.after)
    if edit.after is not None:
        assert done["details"]["diff"]


def test_edit_at_the_edges(hand, at):
    """M078: J1-4.1, J1-4.2, J1-4.6, J1-4.7 and J1-5.1."""
    folder = hand.place.folder / at
    (folder / "empty").touch()
    none = hand.use("edit", {"path": f"{at}/empty", "oldText": "", "newText": "content"})
    assert (none["is_error"], (folder / "empty").read_bytes()) in {(True, b""), (False, b"content")}
    (folder / "big").write_bytes(b"0123456789abcde\n" * 655_360 + b"needle\n")
    big = hand.use("edit", {"path": f"{at}/big", "oldText": "needle", "newText": "thread"})
    assert (big["is_error"], (folder / "big").read_bytes()[-7:]) == (False, b"thread\n")
    (folder / "big").unlink()
    for path in ("../../etc/passwd", f"{at}/../../x"):
        out = hand.use("edit", {"path": path, "oldText": "root", "newText": "hacked"})
        assert (out["is_error"], "leaves" in out["content"]) == (True, True)
    is_folder = hand.use("edit", {"path": at, "oldText": "x", "newText": "y"})
    assert "Is a directory" in is_folder["content"]
    (hand.place.home / "notes").write_text("a\n")
    home = hand.use("edit", {"path": "~/notes", "oldText": "a", "newText": "b"})
    assert (home["is_error"], (hand.place.home / "notes").read_text()) == (False, "b\n")


def test_a_diff_far_below_counts_from_the_first_line_of_the_file(hand, at):
    """M076: J1-5.3."""
    lines = [f"line {n}" for n in range(1, 501)]
    lines[337] = "target"
    (hand.place.folder / at / "F").write_text("\n".join(lines))
    done = hand.use("edit", {"path": f"{at}/F", "oldText": "target", "newText": "replaced"})
    assert done["details"]["first_changed_line"] == 338
    assert "338 replaced" in done["details"]["diff"]


WRONG = {
    "J1-5.2": ("edit", [{"path": None, "oldText": "x", "newText": "y"}, {"path": [1]}]),
    "J2-5.6": ("bash", [{"command": None}, {"command": ["ls"]}]),
    "J3-6.3": ("read", [{"path": None}, {"path": 42}, {"path": ["a"]}]),
    "J4-3.4": ("write", [{"path": 123, "content": None}, {"path": "x", "content": {}}]),
    "J5-4.1": ("grep", [{"pattern": None, "path": "."}, {"pattern": ["x"]}]),
    "J6-3.1": ("find", [{"pattern": []}, {"pattern": None}]),
    "J7-3.1": ("ls", [{"path": 42}, {"path": []}]),
    "no object": ("read", [None, [], "x", 1, {}]),
}


@pytest.mark.parametrize("case", WRONG)
def test_arguments_of_wrong_types(hand, case):
    """M045: an answer says what is wrong, and the next line is answered, too."""
    tool, given = WRONG[case]
    for args in given:
        done = hand.use(tool, args)
        assert done["is_error"], args
        assert done["content"].startswith(f"Invalid arguments for tool: {tool}"), args


class Run(NamedTuple):
    """A command, what its answer ends with, and its limit in seconds."""

    command: str
    said: str
    is_error: bool = False
    timeout: float | None = None


COMMANDS = {
    "J2-1.1": Run("echo hello", "hello\n"),
    "J2-1.2": Run("exit 1", "Command exited with code 1", is_error=True),
    "J2-2.1": Run("echo so far; sleep 5", "so far\n\nCommand timed out after 1 seconds", True, 1),
    "J2-3.3": Run("echo out && echo err >&2", "out\nerr\n"),
    "J2-4.2": Run("yes | head -5", "y\ny\ny\ny\ny\n"),
    "J2-4.3": Run('test -n "$HOME" && test -n "$PATH" && echo both', "both\n"),
    "J2-5.1": Run("python3 -c \"print('你好' * 5000)\"", "你好" * 5000 + "\n"),
    "J2-5.2": Run("cat; read answer; echo over", "over\n", timeout=120),
    "J2-5.4": Run("a=(1 yes); if [[ -d / ]]; then cat <(echo ${a[1]}); fi", "yes\n"),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_bash(hand, case):
    """M083 M084"""
    run = COMMANDS[case]
    limit = {} if run.timeout is None else {"timeout": run.timeout}
    done = hand.use("bash", {"command": run.command, **limit})
    assert done["content"].endswith(run.said)
    assert done["is_error"] == run.is_error
    assert done["details"]["duration_ms"] >= 0


def is_running(pid: int) -> bool:
    """Whether a process runs; one that only waits to be counted does not."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False)
    return state.stdout.strip()[:1] not in {b"", b"Z"}


@pytest.mark.parametrize("tail", ["sleep 100", "wait"])
def test_bash_leaves_no_process_behind_after_its_time_limit(hand, at, tail):
    """M089: J2-4.1 and J2-5.3."""
    nap = f"sleep 100 & echo $! >>{at}/pids"
    done = hand.use("bash", {"command": f"bash -c '{nap}; {nap}; {tail}'", "timeout": 0.3})
    assert done["is_error"]
    pids = (hand.place.folder / at / "pids").read_text().split()
    assert len(pids) == 2
    assert not any(is_running(int(pid)) for pid in pids)


def test_bash_shows_the_end_of_much_output_and_stores_all_of_it(hand):
    """M085 M086 M091: J2-3.1, J2-3.2, J2-3.4 and J8-4.2."""
    done = hand.use("bash", {"command": "seq 1 40000"})
    assert "\n[Showing lines 38001-40000 of 40000. Full output: " in done["content"]
    path = Path(done["content"].split("Full output: ")[1].rstrip("]"))
    assert path.read_text() == "".join(f"{n}\n" for n in range(1, 40_001))
    wide = hand.use(
        "bash", {"command": "for i in $(seq 1500); do echo 中文中文中文中文中文中文; done"}
    )
    assert "\ufffd" not in wide["content"]
    assert "50.0KB limit" in wide["content"]
    assert " of 1500" in wide["content"]


def test_bash_refuses_what_cannot_be_undone(hand):
    """With a command that could do no harm here: there is no repository."""
    done = hand.use("bash", {"command": "git push --force origin main"})
    assert (done["is_error"], done["content"].startswith("Error: dangerous command blocked.")) == (
        True,
        True,
    )


def test_bash_without_its_folder_or_its_shell(place):
    """M088: J2-2.2 and J2-2.3."""
    answer = place.run("gong", "tool", "bash", '{"command": "echo x"}', code=1, PATH="/nonexistent")
    assert "ENOENT" in answer.stdout + answer.stderr
    gone = place.home / "gone"
    gone.mkdir()
    script = f'cd {gone}; rmdir {gone}; exec {BIN}/gong tool bash \'{{"command": "echo x"}}\''
    done = subprocess.run(["sh", "-c", script], env=place.env, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"this folder no longer exists" in done.stderr


def rows(count: int, width: int = 0) -> str:
    """Return numbered lines."""
    return "".join(f"{n}".ljust(width, ".") + "\n" for n in range(1, count + 1))


READS = {
    "J3-1.1": ("one\ntwo\nthree\n", {}, "one\ntwo\nthree\n"),
    "J3-1.3": ("", {}, ""),
    "J3-2.1": (rows(100), {"offset": 51}, "".join(f"{n}\n" for n in range(51, 101))),
    "J3-2.2": (
        rows(100),
        {"limit": 10},
        rows(10) + "\n[90 more lines in file. Use offset=11 to continue.]",
    ),
    "J3-2.3": (
        rows(100),
        {"offset": 41, "limit": 20},
        "".join(f"{n}\n" for n in range(41, 61))
        + "\n[40 more lines in file. Use offset=61 to continue.]",
    ),
    "J3-2.4": (rows(3), {"offset": 1}, rows(3)),
    "J3-2.5": (rows(3), {"offset": 100}, "Offset 100 is beyond end of file (3 lines total)"),
    "J3-3.1 J3-5.1 J8-4.1": (
        rows(2500),
        {},
        rows(2000) + "\n[Showing lines 1-2000 of 2500. Use offset=2001 to continue.]",
    ),
    "J3-5.2": (rows(100), {"offset": 100}, "100\n"),
    "J3-4.2": ("only words\n", {"name": "F.png"}, "only words\n"),
    "J3-6.1": ("words\n", {"name": "截图 2026-02-11 下午3.42.10 it’s.txt"}, "words\n"),
}


@pytest.mark.parametrize("case", READS)
def test_read(hand, at, case):
    """M057 M058 M059"""
    text, args, said = READS[case]
    name = args.get("name", "F")
    (hand.place.folder / at / name).write_text(text)
    paging = {key: value for key, value in args.items() if key != "name"}
    done = hand.use("read", {"path": f"{at}/{name}", **paging})
    assert done["content"] == said
    assert done["is_error"] == said.startswith("Offset")
    if "J3-5.1" in case:
        wanted = {"truncated": True, "total_lines": 2500, "output_lines": 2000}
        assert {key: done["details"][key] for key in wanted} == wanted
        assert done["details"]["truncated_by"] == "lines"


def test_read_at_the_edges(hand, at):
    """M060 M062 M064: J3-1.2, J3-3.2, J3-3.3, J3-4.1, J3-5.3 and J3-6.2."""
    folder = hand.place.folder / at

    def read(path):
        return hand.use("read", {"path": path})["content"]

    assert "ENOENT" in read(f"{at}/none")
    (folder / "wide").write_text(rows(500, 200))
    assert "(50.0KB limit)" in read(f"{at}/wide")
    (folder / "line").write_text("x" * 60_000)
    assert f"Use bash: sed -n '1p' {at}/line | head -c 51200" in read(f"{at}/line")
    (folder / "picture.txt").write_bytes(PNG)
    assert "image/png" in read(f"{at}/picture.txt")
    (folder / "target").write_text("through the link\n")
    (folder / "link").symlink_to("target")
    assert read(f"{at}/link") == "through the link\n"
    (hand.place.home / "test.txt").write_text("home\n")
    assert read("~/test.txt") == "home\n"


def test_write(hand, at):
    """M068: J4-1.1, J4-1.2, J4-1.3, J4-2.1, J4-2.2, J4-3.2 and J4-3.3."""
    folder = hand.place.folder / at

    def write(path, content):
        return hand.use("write", {"path": path, "content": content})

    assert write(f"{at}/a", "hello world")["content"] == (f"Successfully wrote 11 bytes to {at}/a")
    write(f"{at}/a", "new")
    assert (folder / "a").read_text() == "new"
    write(f"{at}/nested/deep/dir/test.txt", "hello")
    assert (folder / "nested/deep/dir/test.txt").read_text() == "hello"
    write(f"{at}/empty", "")
    assert (folder / "empty").read_bytes() == b""
    write(f"{at}/wide", "你好 🌍")
    assert (folder / "wide").read_text() == "你好 🌍"
    out = write("../../etc/crontab", "malicious")
    assert (out["is_error"], "leaves" in out["content"]) == (True, True)
    write("~/output/result.txt", "data")
    assert (hand.place.home / "output/result.txt").read_text() == "data"


def test_a_path_longer_than_the_system_takes(hand, at):
    """J11-3.6: reading, writing and editing say the same."""
    path = f"{at}/" + "/".join(["d" * 200] * 25) + "/F"
    said = (f"ENAMETOOLONG: file name too long: {path}", True)
    for tool, arguments in (
        ("write", {"content": "one\n"}),
        ("edit", {"oldText": "one", "newText": "two"}),
        ("read", {}),
    ):
        result = hand.use(tool, {"path": path, **arguments})
        assert (result["content"], result["is_error"]) == said


@pytest.mark.skipif(ROOT, reason="root may read and write everywhere")
def test_what_is_closed_to_this_user(hand, at):
    """M064 M068: J3-5.4 and J4-3.1."""
    folder = hand.place.folder / at
    (folder / "closed").write_text("x")
    (folder / "closed").chmod(0)
    assert "EACCES" in hand.use("read", {"path": f"{at}/closed"})["content"]
    (folder / "shut").mkdir(0o500)
    assert "EACCES" in hand.use("write", {"path": f"{at}/shut/x", "content": "x"})["content"]


def test_grep(hand, at):
    """M099 M101 M102: J5-1.1 to J5-3.3, each beside its line."""
    folder = hand.place.folder / at
    (folder / "file.txt").write_text("one\ntwo\nhello world\nfoo.bar(baz)\nHello World\n")
    (folder / "a.ex").write_text("test\n")
    (folder / "b.js").write_text("test\n")
    (folder / "ten").write_text("before\nx\nafter\n" * 10)
    (folder / "picture.png").write_bytes(PNG + b"\ntest\n")
    (folder / "many").write_text(("common " + "w" * 400 + "\n") * 1000)

    def grep(pattern, path="", **more):
        return hand.use("grep", {"pattern": pattern, "path": f"{at}/{path}", **more})["content"]

    assert grep("hello", "file.txt") == "file.txt:3: hello world"  # J5-1.1
    # J5-1.2 J5-3.3: picture.png has "test", too, and is left out beside lines that are found
    assert grep("test") == "a.ex:1: test\nb.js:1: test"
    assert grep("nonexistent", "file.txt") == "No matches found"  # J5-1.3
    one = grep("x", "ten", limit=1, context=1)  # J5-2.1
    assert one.startswith("ten-1- before\nten:2: x\nten-3- after\n")
    assert "1 matches limit reached" in one
    assert grep(r"foo\.bar\(", "file.txt") == "file.txt:4: foo.bar(baz)"  # J5-2.2
    assert grep("foo.bar(", "file.txt", literal=True) == "file.txt:4: foo.bar(baz)"  # J5-2.3
    assert grep("hello", "file.txt", ignoreCase=True).count("\n") == 1  # J5-2.4
    assert "50.0KB limit reached" in grep("common", limit=1000)  # J5-3.1
    assert grep("test", glob="*.ex") == "a.ex:1: test"  # J5-3.2


def test_find(hand, at):
    """M105 M106: J6-1.1 to J6-2.3, each beside its line."""
    folder = hand.place.folder / at
    for name in (".secret/hidden.txt", "visible.txt", "a/b/c.ex", "d.ex", "ignored.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (folder / ".gitignore").write_text("ignored.txt\n")
    (folder / "link").symlink_to("a/b")

    def find(pattern, **more):
        return hand.use("find", {"pattern": pattern, "path": at, **more})["content"].split("\n")

    assert find("*.txt") == [".secret/hidden.txt", "visible.txt"]  # J6-1.1 J6-2.1
    assert find("**/*.ex") == ["a/b/c.ex", "d.ex"]  # J6-1.2 J6-2.3: links are not followed
    assert find("*.xyz") == ["No files found matching pattern"]  # J6-1.3
    for n in range(20):  # J6-2.2
        (folder / f"n{n:02}").touch()
    assert [name for name in find("n*", limit=5) if name.startswith("n")] == [
        f"n{n:02}" for n in range(5)
    ]


def test_ls(hand, at):
    """M108: J7-1.1 to J7-2.3, each beside its line."""
    folder = hand.place.folder / at

    def ls(path):
        return hand.use("ls", {"path": path})["content"]

    assert ls(at) == "(empty directory)"  # J7-1.2
    (folder / ".hidden-dir").mkdir()
    for name in (".hidden-file", "Zebra.txt", "apple.txt", "Banana.txt"):
        (folder / name).touch()
    assert ls(at).split("\n") == [  # J7-1.1 J7-1.3
        *(".hidden-dir/", ".hidden-file", "apple.txt", "Banana.txt", "Zebra.txt")
    ]
    assert "Not a directory" in ls(f"{at}/Zebra.txt")  # J7-2.1
    assert "Path not found" in ls(f"{at}/none")  # J7-2.2
    (folder / "large").mkdir()  # J7-2.3
    for n in range(600):
        (folder / "large" / f"{n:03}").touch()
    large = ls(f"{at}/large").split("\n")
    assert large[:2] + large[499:500] == ["000", "001", "499"]
    assert "500" not in large
    assert large[-1] == "[500 entries limit reached, 100 more entries. Use limit=600 to see all.]"
