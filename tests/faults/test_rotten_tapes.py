"""One rotten tape in a store: the others are answered for, and it is named with the reason."""

import json
import os
import shutil
import socket
import sys
from pathlib import Path

import pytest

from tape.model.line import encode_line, read_header
from tape.store.refs import encode_ref_line as encode_ref
from tests import warm
from tests.tape import making

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent / "tape"
FIRST = "phases/0001-main-start/entries.jsonl"
DEEP = b"[" * 100_000 + b"]" * 100_000
needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")


class Shop:
    """A store of a good and a bad tape, and the command on it."""

    def __init__(self, path):
        store = making.store_in(path)
        self.home = path
        with store.create(making.beginning("good")) as tape:
            making.write(tape, "needle")
            self.good = tape.id
        with store.create(making.beginning("bad")) as tape:
            making.write(tape, "needle")
            self.bad, self.folder = tape.id, making.folder_of(store, tape)

    def run(self, *words, before=(), stdin=b""):
        """Run the real command; return code, output and complaints. It may not wait for ever."""
        done = warm.run(
            [*before, BIN, *words, "--store", self.home],
            cwd=self.home,
            env={"HOME": str(self.home.parent), "PATH": os.environ["PATH"], **warm.LOCALE},
            stdin=stdin,
            seconds=120,
        )
        said = done.stderr.decode()
        assert "Traceback" not in said
        assert "--debug shows" not in said
        return done.returncode, done.stdout, said

    def listed(self, **more):
        """Return the exit code of a list, the tapes in it, and what is said beside it."""
        code, out, said = self.run("ls", "--all", "--json", **more)
        return code, [row["id"] for row in json.loads(out)], said


@pytest.fixture
def shop(tmp_path):
    return Shop(tmp_path / "store")


@needs_strace
@pytest.mark.parametrize("name", ["tape.json", "refs.jsonl", FIRST])
def test_a_tape_that_the_disk_does_not_give_back_is_named(shop, name):
    trace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=read,pread64"]
    fails = [*trace, "-e", "inject=read,pread64:error=EIO", "-P", shop.folder / name]
    for _ in range(2):
        code, ids, said = shop.listed(before=fails)
        assert (code, ids) == (1, [shop.good])
        assert said.startswith(f"tape: {shop.folder.name} is left out: ")
        assert said.endswith("Input/output error\n")
        for words in (("search", "needle", "--json"), ("stats", "--json")):
            assert shop.run(*words, before=fails)[::2] == (1, said)
    code, ids, said = shop.listed()
    assert (code, set(ids), said) == (0, {shop.good, shop.bad}, "")


def link(shop):
    shop.folder.rename(shop.home / "elsewhere")
    shop.folder.symlink_to(shop.home / "elsewhere")


def copy(shop):
    shutil.copytree(shop.folder, shop.folder.with_name("z-copy"))


def empty(shop):
    shutil.rmtree(shop.folder)
    shop.folder.mkdir()


def later(shop):
    info = shop.folder / "tape.json"
    info.write_bytes(info.read_bytes().replace(b'"format":1', b'"format":2'))


def deep(shop):
    info = shop.folder / "tape.json"
    info.write_bytes(info.read_bytes().replace(b'"origin":null', b'"origin":' + DEEP))


def unnamed(shop):
    (shop.folder / "refs.jsonl").unlink()
    shop.folder.rename(shop.folder.with_name("\udcffbad"))  # a byte that is no UTF-8


@pytest.mark.parametrize(
    ("spoil", "said", "verified"),
    [
        (link, "a symbolic link in the place of a tape", 4),
        (copy, "the same tape as ", 0),
        (empty, "not a complete tape: tape.json: No such file", 4),
        (later, "a tape of format 2", 1),
        (deep, "cannot be read: ", 4),
        (unnamed, "refs.jsonl is missing", 4),
    ],
)
def test_what_is_left_out_of_a_list_is_named(shop, spoil, said, verified):
    spoil(shop)
    for _ in range(2):
        code, ids, told = shop.listed()
        assert (code, shop.good in ids, told.count("\n")) == (0, True, 1), told
        assert said in told
    assert shop.run("verify", "--all")[0] == verified
    code, out, _ = shop.run("search", "needle", "--json")
    assert (code, shop.good in {hit["tape"] for hit in json.loads(out)}) == (0, True)


def fifo(path):
    os.mkfifo(path)


def folder(path):
    path.mkdir()


def bound(path):
    with socket.socket(socket.AF_UNIX) as one:
        here = Path.cwd()
        os.chdir(path.parent)  # such a name may not be long
        try:
            one.bind(path.name)
        finally:
            os.chdir(here)


@pytest.mark.parametrize("make", [fifo, folder, bound])
@pytest.mark.parametrize("name", ["tape.json", "refs.jsonl", FIRST, "locks/main", "locks/refs"])
def test_no_command_waits_for_what_is_no_file(shop, make, name):
    path = shop.folder / name
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.unlink(missing_ok=True)
    make(path)
    note = b'{"type":"note","data":{"text":"x"}}\n'
    for words in (("cat",), ("verify",), ("rename", "x")):
        verb, *rest = words
        code, _, said = shop.run(verb, shop.bad[:8], *rest)
        assert code in (0, 1, 3, 4), (words, code, said)
        assert code == 0 or said or verb == "verify"
    code, _, said = shop.run("append", shop.bad[:8], stdin=note)
    assert code == 0 or said, (code, said)
    assert shop.good in shop.listed()[1]


@pytest.mark.parametrize("make", [fifo, folder, bound])
@pytest.mark.parametrize("name", ["index.db", "store.json"])
def test_no_command_waits_for_a_pipe_in_the_place_of_a_file_of_the_store(shop, make, name):
    (shop.home / name).unlink(missing_ok=True)
    make(shop.home / name)
    for words in (("ls",), ("ls", "--json"), ("search", "needle"), ("stats",), ("reindex",)):
        code, out, said = shop.run(*words)
        if name == "index.db" and words != ("reindex",):
            assert (code, bool(out) or words == ("stats",)) == (0, True), (words, said)
        else:
            assert code in (1, 4), words
            assert name in said or "index" in said


@pytest.mark.parametrize("where", ["refs", "entry"])
def test_what_is_nested_too_deep_is_passed_over(shop, where):
    if where == "refs":
        with (shop.folder / "refs.jsonl").open("ab") as journal:
            journal.write(encode_ref({"title": "x"}).replace(b'"x"', DEEP))
            journal.write(encode_ref({"title": "y", "why": "title", "time": "z"}))
    else:
        with (shop.folder / FIRST).open("r+b") as file:
            last = read_header(file.read().split(b"\n")[-2])
            data = b'{"content":%b}' % DEEP
            file.write(
                encode_line("user", last.id, last.n + 1, "2030-01-01T00:00:00.000000Z", data)[1]
            )
    code, ids, _ = shop.listed()
    assert (code, sorted(ids)) == (0, sorted([shop.good, shop.bad]))
    for verb in ("cat", "log", "show", "context", "export", "verify", "branches"):
        assert shop.run(verb, shop.bad[:8])[0] in (0, 4), verb


@pytest.mark.parametrize("verb", ["ls", "log", "tail", "search"])
def test_a_number_beyond_all_there_can_be_means_all(shop, verb):
    words = {"search": ["needle"], "ls": []}.get(verb, [shop.good])
    assert shop.run(verb, *words, "-n", str(10**30)) == shop.run(verb, *words, "-n", "99")


def test_json_says_where_a_store_is_whose_path_is_no_utf_8(tmp_path):
    odd = Shop(Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")))
    for words in (("ls", "--json"), ("show", odd.good, "--json"), ("new", "--json")):
        code, out, said = odd.run(*words)
        assert (code, said) == (0, "")
        assert "\ufffd" in json.dumps(json.loads(out), ensure_ascii=False)


def test_an_index_that_cannot_be_created_is_reported_in_one_line(shop):
    shop.run("ls")
    for path in shop.home.glob("index.db*"):
        path.unlink()
    (shop.home / "index.db").mkdir()
    code, _, said = shop.run("reindex")
    assert (code, said.count("\n")) == (1, 1)
    assert "cannot be written" in said
