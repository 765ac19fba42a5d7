"""What every environment does, as cases that run in a folder of one: `gong env check`, and tests.

Each case gets an empty folder of its own in the environment and says what is wrong by raising
`CaseFailed`. A case with a need is skipped where the environment lacks it.
"""

from __future__ import annotations

import asyncio
import errno
import posixpath
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from ..errors import GongError
from .protocol import FileUpdate, Search

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence

    from .protocol import ExecutionEnvironment

Need = Literal["", "commands", "links", "modes", "bytes"]
"""What a case needs: a shell, links, permissions of files, names that are no UTF-8."""


class CaseFailed(Exception):
    """An environment does otherwise than it should."""


@dataclass(frozen=True, slots=True)
class CaseFolder:
    """An environment, and the empty folder in it that a case has."""

    env: ExecutionEnvironment
    folder: str

    def at(self, name: str) -> str:
        """Return an absolute path in the folder."""
        return f"{self.folder}/{name}"

    async def run(self, command: str, **options: Any) -> Any:
        """Run a command in the folder."""
        return await self.env.exec_command(command, working_dir=self.folder, **options)

    async def put(self, name: str, data: bytes = b"x") -> str:
        """Write a file of the folder; return its path."""
        await self.env.write_file(self.at(name), data)
        return self.at(name)


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that every environment does."""

    name: str
    run: Callable[[CaseFolder], Awaitable[None]]
    need: Need = ""


def check_equal(actual: object, expected: object) -> None:
    """Raise CaseFailed where two values differ."""
    if actual != expected:
        raise CaseFailed(f"{actual!r:.300} instead of {expected!r:.300}")


async def check_error(work: Coroutine[Any, Any, object], *numbers: int) -> None:
    """Raise CaseFailed where no error with one of these numbers comes."""
    try:
        result = await work
    except OSError as error:
        if error.errno not in numbers:
            raise CaseFailed(f"{error!r:.300} instead of errno {numbers}") from None
        return
    raise CaseFailed(f"{result!r:.200} instead of errno {numbers}")


# --- names and bytes ---

NAMES = {
    "plain": "a.txt",
    "blank": "a b.txt",
    "leading blank": " a",
    "trailing blank": "a ",
    "single quote": "it's",
    "double quote": 'say "hi"',
    "both quotes": "'\"'\"'",
    "backquote": "`id`",
    "dollar": "$HOME",
    "substitution": "$(id)",
    "backslash": "a\\b",
    "trailing backslash": "a\\",
    "newline": "a\nb",
    "trailing newline": "a\n",
    "only newline": "\n",
    "tab": "a\tb",
    "carriage return": "a\rb",
    "semicolon": "a;id",
    "ampersand": "a&id",
    "pipe": "a|id",
    "redirection": "a>b<c",
    "leading dash": "-rf",
    "option of stat": "--help",
    "star": "*",
    "question mark": "a?b",
    "bracket": "[a-z]",
    "braces": "{a,b}",
    "tilde": "~root",
    "hash": "#a",
    "exclamation": "!a",
    "percent": "%s%n",
    "equals": "a=b",
    "dot file": ".hidden",
    "three dots": "...",
    "accents": "é.txt",
    "Chinese": "文件.txt",
    "emoji": "😀",
    "right to left": "\u202eabc",
    "escape": "a\x1b[31mb",
    "control 0x81": "a\x81b\x88",
    "long": "n" * 200,
}
ODD_NAMES = {"no UTF-8": "a\udcffb", "lone bytes": "\udc81\udc82\udc88"}

CONTENTS = {
    "empty": b"",
    "text": b"hello\nworld\n",
    "no newline at the end": b"hello",
    "only newlines": b"\n\n\n",
    "zero bytes": b"a\0b\0\0",
    "all bytes": bytes(range(256)),
    "carriage returns": b"a\r\nb\r\n",
    "UTF-16": "hé\n".encode("utf-16"),
    "looks like an answer": b"1 z\n1 x\n2 e 0\ngong x\n",
    "looks like a request": b"0 quit\nquit\n",
    "a quote": b"'",
    "4096 bytes": b"x" * 4096,
    "65536 bytes": bytes(range(256)) * 256,
    "300000 bytes": b"line of text\n" * 23_077,
}


async def _check_keep_name(stage: CaseFolder, name: str) -> None:
    path = await stage.put(name, b"data\n")
    check_equal(await stage.env.read_file(path), b"data\n")
    check_equal(await stage.env.file_exists(path), True)
    listed = await stage.env.list_directory(stage.folder)
    check_equal([(entry.name, entry.is_dir, entry.size) for entry in listed], [(name, False, 5)])


async def _check_keep_folder_name(stage: CaseFolder, name: str) -> None:
    path = await stage.put(f"{name}/{name}/f", b"1")
    check_equal(await stage.env.read_file(path, stage.folder), b"1")
    listed = await stage.env.list_directory(stage.folder, 3)
    check_equal([entry.name for entry in listed], [name, f"{name}/{name}", f"{name}/{name}/f"])


async def _check_keep_bytes(stage: CaseFolder, data: bytes) -> None:
    path = await stage.put("f", data)
    check_equal(await stage.env.read_file(path), data)
    await stage.env.write_file(path, data[::-1], stage.folder)
    check_equal(await stage.env.read_file(path, stage.folder), data[::-1])


async def _check_pass_argument(stage: CaseFolder, name: str) -> None:
    result = await stage.run('printf %s "$ARGUMENT"', env_vars={"ARGUMENT": name})
    check_equal(result.output.decode("utf-8", "surrogateescape"), name)


async def _check_work_in_folder(stage: CaseFolder, name: str) -> None:
    await stage.put(f"{name}/f", b"1")
    result = await stage.env.exec_command("cat f", working_dir=stage.at(name))
    check_equal((result.output, result.exit_code), (b"1", 0))


# --- errors ---


async def _check_read_missing(stage: CaseFolder) -> None:
    await check_error(stage.env.read_file(stage.at("none")), errno.ENOENT)


async def _check_read_below_missing(stage: CaseFolder) -> None:
    await check_error(stage.env.read_file(stage.at("none/f")), errno.ENOENT)


async def _check_read_folder(stage: CaseFolder) -> None:
    await stage.put("d/f")
    await check_error(stage.env.read_file(stage.at("d")), errno.EISDIR)


async def _check_read_below_file(stage: CaseFolder) -> None:
    await stage.put("f")
    await check_error(stage.env.read_file(stage.at("f/g")), errno.ENOTDIR, errno.ENOENT)


async def _check_write_over_folder(stage: CaseFolder) -> None:
    await stage.put("d/f")
    await check_error(stage.env.write_file(stage.at("d"), b""), errno.EISDIR, errno.EINVAL)
    check_equal(await stage.env.read_file(stage.at("d/f")), b"x")


async def _check_write_below_file(stage: CaseFolder) -> None:
    await stage.put("f", b"1")
    await check_error(stage.env.write_file(stage.at("f/g"), b""), errno.ENOTDIR, errno.EEXIST)
    check_equal(await stage.env.read_file(stage.at("f")), b"1")


async def _check_name_too_long(stage: CaseFolder) -> None:
    await check_error(stage.env.write_file(stage.at("n" * 300), b""), errno.ENAMETOOLONG)
    check_equal(await stage.env.list_directory(stage.folder), ())


async def _check_zero_byte(stage: CaseFolder) -> None:
    try:
        await stage.env.read_file(stage.at("a\0b"))
    except (ValueError, OSError):
        return
    raise CaseFailed("a zero byte in a name was read")


async def _check_list_missing(stage: CaseFolder) -> None:
    await check_error(stage.env.list_directory(stage.at("none")), errno.ENOENT)


async def _check_list_file(stage: CaseFolder) -> None:
    await stage.put("f")
    await check_error(stage.env.list_directory(stage.at("f")), errno.ENOTDIR)


async def _check_pipe_is_no_file(stage: CaseFolder) -> None:
    await stage.run("mkfifo p")
    await check_error(stage.env.read_file(stage.at("p")), errno.EINVAL)
    await check_error(stage.env.write_file(stage.at("p"), b""), errno.EINVAL, errno.ENXIO)


async def _check_device_is_no_file(stage: CaseFolder) -> None:
    await check_error(stage.env.read_file("/dev/zero"), errno.EINVAL, errno.ENOENT)


# --- writing ---


async def _check_folders_are_made(stage: CaseFolder) -> None:
    await stage.put("a/b/c/d", b"1")
    check_equal(await stage.env.read_file(stage.at("a/b/c/d")), b"1")


async def _check_no_leftovers(stage: CaseFolder) -> None:
    for number in range(5):
        await stage.put("f", b"%d" % number)
    listed = await stage.env.list_directory(stage.folder)
    check_equal([entry.name for entry in listed], ["f"])


async def _check_mode_stays(stage: CaseFolder) -> None:
    await stage.put("f")
    await stage.run("chmod 751 f")
    await stage.put("f", b"new")
    result = await stage.run("ls -l f")
    check_equal(result.output[:10], b"-rwxr-x--x")


async def _check_link_stays(stage: CaseFolder) -> None:
    await stage.put("f", b"1")
    await stage.run("ln -s f l")
    await stage.put("l", b"2")
    check_equal(await stage.env.read_file(stage.at("f")), b"2")
    check_equal((await stage.run("readlink l")).output, b"f\n")


async def _check_link_below_root(stage: CaseFolder) -> None:
    await stage.put("d/f", b"1")
    await stage.run("ln -s d l; ln -s d/f k")
    numbers = errno.ELOOP, errno.ENOTDIR
    await check_error(stage.env.read_file(stage.at("l/f"), stage.folder), *numbers)
    await check_error(stage.env.read_file(stage.at("k"), stage.folder), *numbers)
    await check_error(stage.env.write_file(stage.at("l/f"), b"2", stage.folder), *numbers)
    await check_error(stage.env.write_file(stage.at("k"), b"2", stage.folder), *numbers)
    check_equal(await stage.env.read_file(stage.at("d/f")), b"1")


async def _check_relative_path(stage: CaseFolder) -> None:
    real = await stage.env.real_path(stage.env.working_directory)
    check_equal(await stage.env.real_path("."), real)


async def _check_real_path(stage: CaseFolder) -> None:
    await stage.run(
        "mkdir -p d/e; ln -s d l; ln -s ../l/e d/m; ln -s loop loop; ln -s gone dangling"
    )
    base = await stage.env.real_path(stage.folder)
    for path, expected in {
        "l": "d",
        "l/e": "d/e",
        "d/m/x": "d/e/x",
        "none/x": "none/x",
        "l/../f": "f",
        "dangling": "gone",
        "d/./e//f": "d/e/f",
    }.items():
        check_equal(await stage.env.real_path(stage.at(path)), f"{base}/{expected}")


async def _check_dangling_link(stage: CaseFolder) -> None:
    await stage.run("ln -s gone l")
    check_equal(await stage.env.file_exists(stage.at("l")), False)
    check_equal(await stage.env.list_directory(stage.folder), ())


async def _check_linked_folder(stage: CaseFolder) -> None:
    await stage.run("mkdir d; echo 1 > d/f; ln -s d l")
    listed = await stage.env.list_directory(stage.folder, 2)
    kinds = [(entry.name, entry.is_dir) for entry in listed]
    check_equal(kinds, [("d", True), ("d/f", False), ("l", True)])


async def _check_depth(stage: CaseFolder) -> None:
    await stage.put("a/b/c")
    await stage.put("a/z")
    for depth, expected in {
        1: ["a"],
        2: ["a", "a/b", "a/z"],
        3: ["a", "a/b", "a/b/c", "a/z"],
    }.items():
        listed = await stage.env.list_directory(stage.folder, depth)
        check_equal([entry.name for entry in listed], expected)


async def _check_exists(stage: CaseFolder) -> None:
    await stage.put("d/f")
    for path, expected in {
        "d": True,
        "d/f": True,
        "d/g": False,
        "e": False,
        "d/f/g": False,
    }.items():
        check_equal(await stage.env.file_exists(stage.at(path)), expected)


async def _check_closed_file(stage: CaseFolder) -> None:
    await stage.put("f")
    await stage.run("chmod 0 f")
    if (await stage.run("id -u")).output == b"0\n":
        return  # root may read all
    await check_error(stage.env.read_file(stage.at("f")), errno.EACCES)


# --- many changes ---


def _build_update(
    stage: CaseFolder, name: str, before: bytes | None, after: bytes | None
) -> FileUpdate:
    return FileUpdate(stage.at(name), before, after)


async def _check_change_all(stage: CaseFolder) -> None:
    await stage.put("a", b"1")
    await stage.put("gone", b"2")
    changes = (
        _build_update(stage, "a", b"1", b"2"),
        _build_update(stage, "n/m/b", None, b"3"),
        _build_update(stage, "gone", b"2", None),
    )
    root = await stage.env.real_path(stage.folder)
    real = [c._replace(path=c.path.replace(stage.folder, root, 1)) for c in changes]
    check_equal(await stage.env.change_files(real, root), None)
    listed = await stage.env.list_directory(stage.folder, 3)
    check_equal([entry.name for entry in listed if not entry.is_dir], ["a", "n/m/b"])
    check_equal(await stage.env.read_file(stage.at("a")), b"2")


async def _check_change_none(stage: CaseFolder, bad: str) -> None:
    root = await stage.env.real_path(stage.folder)
    await stage.put("a", b"1")
    await stage.put("b", b"2")
    last = {
        "changed": FileUpdate(f"{root}/b", b"other", b"3"),
        "missing": FileUpdate(f"{root}/none", b"1", b"3"),
        "there": FileUpdate(f"{root}/b", None, b"3"),
        "missing to delete": FileUpdate(f"{root}/none", b"1", None),
        "below a file": FileUpdate(f"{root}/b/c", None, b"3"),
    }[bad]
    changes = (
        FileUpdate(f"{root}/a", b"1", b"9"),
        FileUpdate(f"{root}/new/f", None, b"9"),
        last,
    )
    refusal = await stage.env.change_files(changes, root)
    if refusal is None:
        raise CaseFailed("changes were made that cannot all be")
    check_equal((refusal.path, refusal.left), (last.path, ()))
    listed = await stage.env.list_directory(stage.folder, 3)
    check_equal([entry.name for entry in listed], ["a", "b"])
    check_equal(await stage.env.read_file(stage.at("a")), b"1")
    check_equal(await stage.env.read_file(stage.at("b")), b"2")


async def _check_change_linked(stage: CaseFolder) -> None:
    root = await stage.env.real_path(stage.folder)
    await stage.run("mkdir d; ln -s d l; echo 1 > d/f")
    refusal = await stage.env.change_files([FileUpdate(f"{root}/l/f", b"1\n", b"2")], root)
    check_equal(refusal is None, False)
    check_equal(await stage.env.read_file(stage.at("d/f")), b"1\n")


# --- searching ---

TREE = {
    ".gitignore": b"*.log\nbuild/\n/top\n!keep.log\n",
    "a.py": b"import os\nprint('hello')\n",
    "b.txt": b"Hello World\nhello\n",
    "keep.log": b"hello\n",
    "x.log": b"hello\n",
    "build/out.txt": b"hello\n",
    "top": b"hello\n",
    "sub/top": b"hello\n",
    "sub/.gitignore": b"secret*\n",
    "sub/secret.txt": b"hello\n",
    "sub/deep/c.py": b"def f(x):\n    return x  # hello\n",
    "bin.dat": b"\0\1hello\0\n",
    ".hidden": b"hello\n",
}

_FOUND = [
    (".hidden", 1),
    ("a.py", 2),
    ("b.txt", 2),
    ("keep.log", 1),
    ("sub/deep/c.py", 2),
    ("sub/top", 1),
]
SEARCHES = {
    "text": (Search("hello", literal=True), _FOUND),
    "any case": (Search("HELLO", ignore_case=True), sorted([*_FOUND, ("b.txt", 1)])),
    "expression": (Search(r"^def \w+\("), [("sub/deep/c.py", 1)]),
    "expression of digits": (Search(r"\d+"), []),
    "glob": (Search("hello", glob="*.py"), [("a.py", 2), ("sub/deep/c.py", 2)]),
    "glob of a path": (Search("hello", glob="sub/**"), [("sub/deep/c.py", 2), ("sub/top", 1)]),
    "limit": (Search("hello", limit=2), [(".hidden", 1), ("a.py", 2)]),
    "literal brackets": (Search("f(x)", literal=True), [("sub/deep/c.py", 1)]),
    "nothing": (Search("nowhere"), []),
    "quote": (Search("'hello'"), [("a.py", 2)]),
    "dash": (Search("-e"), []),
}

GLOBS = {
    "*.py": ["a.py", "sub/deep/c.py"],
    "**/*.py": ["a.py", "sub/deep/c.py"],
    "sub/*": ["sub/.gitignore", "sub/deep", "sub/top"],
    "*.log": ["keep.log"],
    "build/**": [],
    "none*": [],
}


async def _check_plant(stage: CaseFolder) -> None:
    for name, data in TREE.items():
        await stage.put(name, data)


async def _check_search(stage: CaseFolder, which: str) -> None:
    await _check_plant(stage)
    search, expected = SEARCHES[which]
    matches = await stage.env.grep(stage.folder, search)
    check_equal([(match.path, match.line) for match in matches.found], expected)
    check_equal(matches.limited, which == "limit")


async def _check_search_one_file(stage: CaseFolder) -> None:
    await _check_plant(stage)
    matches = await stage.env.grep(stage.at("b.txt"), Search("hello"))
    check_equal([(match.path, match.line) for match in matches.found], [("b.txt", 2)])


async def _check_search_missing(stage: CaseFolder) -> None:
    await check_error(stage.env.grep(stage.at("none"), Search("x")), errno.ENOENT)


async def _check_search_wrong(stage: CaseFolder) -> None:
    await stage.put("f")
    try:
        await stage.env.grep(stage.folder, Search("("))
    except ValueError:
        return
    raise CaseFailed("a pattern that is none was searched")


async def _check_glob(stage: CaseFolder, pattern: str) -> None:
    await _check_plant(stage)
    paths = await stage.env.glob(stage.folder, pattern)
    check_equal(sorted(item.path for item in paths), GLOBS[pattern])


# --- commands ---

COMMANDS: dict[str, tuple[str, bytes, int]] = {
    "output": ("echo hi", b"hi\n", 0),
    "errors are merged": ("echo a; echo b >&2", b"a\nb\n", 0),
    "exit code": ("exit 7", b"", 7),
    "exit code 255": ("exit 255", b"", 255),
    "exit code 130": ("exit 130", b"", 130),
    "not found": ("/no/such/program 2>/dev/null", b"", 127),
    "killed": ("kill -9 $$", b"", 137),
    "terminated": ("kill -TERM $$", b"", 143),
    "false": ("false", b"", 1),
    "no input": ("cat; echo end", b"end\n", 0),
    "quotes": ("printf '%s' \"it's\"", b"it's", 0),
    "several lines": ("echo a\necho b", b"a\nb\n", 0),
    "here document": ("cat <<'X'\n$HOME `id`\nX\n", b"$HOME `id`\n", 0),
    "binary output": ("printf '\\000\\377\\001'", b"\0\xff\1", 0),
    "pipeline": ("printf 'b\\na\\n' | sort", b"a\nb\n", 0),
    "looks like an answer": ("printf '1 z\\n2 x\\n'", b"1 z\n2 x\n", 0),
    "output without a newline": ("printf a", b"a", 0),
    "no editor": ("echo $EDITOR $PAGER", b"true cat\n", 0),
    "many lines": ("yes | head -n 2000 | wc -l | tr -d ' '", b"2000\n", 0),
    "comment": ("true # not run", b"", 0),
    "background is not waited for": ("sleep 30 & echo started", b"started\n", 0),
    "subshell": ("(cd / && pwd)", b"/\n", 0),
    "long command": ("true " + "x" * 50_000 + "; echo end", b"end\n", 0),
}


async def _check_command(stage: CaseFolder, which: str) -> None:
    command, output, code = COMMANDS[which]
    result = await stage.run(command)
    check_equal((result.output, result.exit_code, result.timed_out), (output, code, False))


async def _check_split_streams(stage: CaseFolder) -> None:
    result = await stage.run("echo out; echo err >&2; exit 3", split=True)
    check_equal((result.stdout, result.stderr, result.exit_code), (b"out\n", b"err\n", 3))


async def _check_not_split(stage: CaseFolder) -> None:
    result = await stage.run("echo out")
    check_equal((result.stdout, result.stderr), (None, None))


async def _check_time_limit(stage: CaseFolder) -> None:
    result = await stage.run("echo begun; sleep 60", timeout_ms=1000)
    check_equal((result.output, result.timed_out), (b"begun\n", True))


async def _check_gone(stage: CaseFolder, *files: str) -> None:
    """Raise CaseFailed where a process whose number is in a file still runs; a zombie does not."""
    command = (
        'for f; do p=$(cat "$f"); s=$(ps -o stat= -p $p 2>/dev/null || cut -d" " -f3 /proc/$p/stat'
        ' 2>/dev/null); case $s in "" | Z*) ;; *) echo "left $s" ;; esac; done'
    )
    result = await stage.run(f"set -- {' '.join(files)}; {command}; true")
    check_equal(result.output, b"")


async def _check_processes_end(stage: CaseFolder) -> None:
    await stage.run("(sleep 61 & echo $! > p1; sleep 62 & echo $! > p2; wait)", timeout_ms=1500)
    await _check_gone(stage, "p1", "p2")


async def _check_daemons_end(stage: CaseFolder) -> None:
    command = "(trap '' TERM HUP; exec sleep 63) & echo $! > p; sleep 64"
    await stage.run(command, timeout_ms=1500)
    await _check_gone(stage, "p")


async def _check_cancelled(stage: CaseFolder) -> None:
    begun = asyncio.Event()
    running = asyncio.create_task(
        stage.run("echo $$ > p; echo begun; sleep 65", on_output=lambda _: begun.set())
    )
    await asyncio.wait_for(begun.wait(), 60)
    running.cancel()
    await asyncio.wait({running})
    check_equal(running.cancelled(), True)
    await _check_gone(stage, "p")


async def _check_output_is_live(stage: CaseFolder) -> None:
    chunks: list[bytes] = []
    first = asyncio.Event()

    def take(chunk: bytes) -> None:
        chunks.append(chunk)
        first.set()

    running = asyncio.create_task(
        stage.run("echo one; while [ ! -e go ]; do sleep 0.1; done; echo two", on_output=take)
    )
    await asyncio.wait_for(first.wait(), 60)
    check_equal(b"".join(chunks), b"one\n")
    await stage.put("go")
    check_equal((await running).output, b"one\ntwo\n")
    check_equal(b"".join(chunks), b"one\ntwo\n")


async def _check_large_output(stage: CaseFolder) -> None:
    result = await stage.run("head -c 1000000 /dev/zero")
    check_equal((result.total_bytes, len(result.output)), (1_000_000, 102_400))


async def _check_side_by_side(stage: CaseFolder) -> None:
    results = await asyncio.gather(*(stage.run(f"echo {number}") for number in range(8)))
    check_equal([result.output for result in results], [b"%d\n" % number for number in range(8)])


async def _check_meet(stage: CaseFolder) -> None:
    command = "touch {}; while [ ! -e {} ]; do sleep 0.05; done; echo met"
    results = await asyncio.gather(
        stage.run(command.format("a", "b")), stage.run(command.format("b", "a"))
    )
    check_equal([result.output for result in results], [b"met\n", b"met\n"])


async def _check_variables(stage: CaseFolder) -> None:
    result = await stage.run("printf '%s' \"$A\"", env_vars={"A": 'it\'s\n"x" $HOME'})
    check_equal(result.output, b'it\'s\n"x" $HOME')


async def _check_folder_gone(stage: CaseFolder) -> None:
    try:
        await stage.env.exec_command("true", working_dir=stage.at("none"))
    except (GongError, OSError):
        return
    raise CaseFailed("a command ran in a folder that is not there")


async def _check_writes_are_seen(stage: CaseFolder) -> None:
    await stage.put("f", b"written\n")
    check_equal((await stage.run("cat f; echo more >> f")).output, b"written\n")
    check_equal(await stage.env.read_file(stage.at("f")), b"written\nmore\n")


async def _check_tilde(stage: CaseFolder) -> None:
    home = (await stage.run('printf %s "$HOME"')).output.decode()
    if home:
        check_equal(stage.env.resolve("~/x"), posixpath.normpath(f"{home}/x"))


async def _check_facts(stage: CaseFolder) -> None:
    env = stage.env
    check_equal(env.working_directory.startswith("/"), True)
    check_equal(env.platform in {"linux", "darwin", "windows", "wasm"}, True)
    check_equal(bool(env.os_version), True)


def _make_cases() -> tuple[Case, ...]:
    cases = [Case("facts", _check_facts), Case("relative paths", _check_relative_path)]
    cases += [
        Case(f"name: {what}", partial(_check_keep_name, name=name)) for what, name in NAMES.items()
    ]
    cases += [
        Case(f"name: {what}", partial(_check_keep_name, name=name), "bytes")
        for what, name in ODD_NAMES.items()
    ]
    for what in ("blank", "newline", "leading dash", "both quotes", "substitution", "star"):
        cases += [
            Case(f"folder: {what}", partial(_check_keep_folder_name, name=NAMES[what])),
            Case(
                f"command in: {what}", partial(_check_work_in_folder, name=NAMES[what]), "commands"
            ),
            Case(f"variable: {what}", partial(_check_pass_argument, name=NAMES[what]), "commands"),
        ]
    cases += [
        Case(f"bytes: {what}", partial(_check_keep_bytes, data=d)) for what, d in CONTENTS.items()
    ]
    cases += [
        Case("reading what is missing", _check_read_missing),
        Case("reading below what is missing", _check_read_below_missing),
        Case("reading a folder", _check_read_folder),
        Case("reading below a file", _check_read_below_file),
        Case("writing over a folder", _check_write_over_folder),
        Case("writing below a file", _check_write_below_file),
        Case("a name that is too long", _check_name_too_long, "commands"),
        Case("a zero byte in a name", _check_zero_byte, "commands"),
        Case("listing what is missing", _check_list_missing, "commands"),
        Case("listing a file", _check_list_file, "commands"),
        Case("a pipe", _check_pipe_is_no_file, "commands"),
        Case("a device", _check_device_is_no_file),
        Case("folders are made", _check_folders_are_made),
        Case("nothing is left behind", _check_no_leftovers),
        Case("a mode stays", _check_mode_stays, "modes"),
        Case("a link stays", _check_link_stays, "links"),
        Case("no link below a root", _check_link_below_root, "links"),
        Case("real paths", _check_real_path, "links"),
        Case("a dangling link", _check_dangling_link, "links"),
        Case("a link to a folder", _check_linked_folder, "links"),
        Case("depth", _check_depth),
        Case("what exists", _check_exists),
        Case("a closed file", _check_closed_file, "modes"),
        Case("changes: all", _check_change_all),
        Case("changes: through a link", _check_change_linked, "links"),
        Case("search: one file", _check_search_one_file),
        Case("search: what is missing", _check_search_missing, "commands"),
        Case("search: no expression", _check_search_wrong),
    ]
    for bad in ("changed", "missing", "there", "missing to delete", "below a file"):
        cases.append(Case(f"changes: none, {bad}", partial(_check_change_none, bad=bad)))
    cases += [Case(f"search: {which}", partial(_check_search, which=which)) for which in SEARCHES]
    cases += [Case(f"glob: {pattern}", partial(_check_glob, pattern=pattern)) for pattern in GLOBS]
    cases += [Case(f"command: {w}", partial(_check_command, which=w), "commands") for w in COMMANDS]
    for name, run in _COMMAND_CASES.items():
        cases.append(Case(f"command: {name}", run, "commands"))
    return tuple(cases)


_COMMAND_CASES: dict[str, Callable[[CaseFolder], Awaitable[None]]] = {
    "separate streams": _check_split_streams,
    "merged streams": _check_not_split,
    "a time limit": _check_time_limit,
    "processes end with it": _check_processes_end,
    "those that ignore signals, too": _check_daemons_end,
    "cancelled": _check_cancelled,
    "output is live": _check_output_is_live,
    "large output": _check_large_output,
    "side by side": _check_side_by_side,
    "at the same time": _check_meet,
    "variables": _check_variables,
    "a folder that is gone": _check_folder_gone,
    "writes are seen": _check_writes_are_seen,
    "home": _check_tilde,
}
CASES = _make_cases()


async def run_cases(
    env: ExecutionEnvironment, folder: str, cases: Sequence[Case] = CASES
) -> AsyncIterator[tuple[Case, str]]:
    """Run cases below a folder of an environment; yield each with what is wrong, "" for nothing."""
    for number, case in enumerate(cases):
        own = f"{folder}/case-{number}"
        await env.write_file(f"{own}/made", b"")
        await env.change_files([FileUpdate(f"{own}/made", b"", None)], own)
        wrong = ""
        try:
            await case.run(CaseFolder(env, own))
        except Exception as error:  # noqa: BLE001 (whatever it is, the case has failed)
            wrong = str(error) or type(error).__name__
        yield case, wrong
