"""Search with ripgrep, fd and our own `scanner`, with the same results as the search without them.

ripgrep and fd walk and match; paths and globs are judged by the same rules as without them. None
is returned where a program is too old, or does not understand a pattern or what it meets. `scanner`
is for the patterns that are left.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import re
import signal
import stat
import subprocess
import sys
from base64 import b64decode
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from . import scanner
from .globs import compile_glob
from .protocol import LineMatch, LineMatches, ListedPath
from .scanner import read_batches
from .search import (
    EXCLUDE_FILE,
    GIT,
    IGNORE_FILE,
    compile_expression,
    list_files_below,
    run_search,
)

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator, Sequence

    from .protocol import Search


_WALK_FLAGS = (
    "--hidden", "--no-config", "--no-messages",
    "--no-require-git", "--no-ignore-dot", "--no-ignore-global",
)  # fmt: skip
"""Which files ripgrep looks at."""
_RIPGREP_FLAGS = (
    *("--json", "--line-number", "--color=never", *_WALK_FLAGS, "--sort=path"),
    *("--crlf", "--binary", "--glob=!.git"),
)
_FD_FLAGS = ("--color=never", "--hidden", "--print0", "--no-follow", "--exclude", GIT)
_ANY_FOLDER = "--no-require-git"
"""Tells fd to mind .gitignore files outside of repositories too; from 8.7 on."""
_OTHER_IGNORE_FILES = {".ignore", ".fdignore"}
"""Further ignore files that fd always reads."""
_VARIABLES = {"HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent"}
"""All variables of a program: files in a home change what fd finds, and no key is needed."""
_LINE_BYTES = 1 << 22
"""The longest line of an answer that is taken.

ripgrep tells every match in a line: of one letter in a long line it says forty times the line.
"""
_NAME_GLOB = re.compile(r"(?:[\w.?-]|\*(?!\*))+", re.ASCII)
"""Globs of names that ripgrep reads as we do."""


class _RipgrepText(Struct, frozen=True):
    text: str | None = None
    bytes: str | None = None


class _RipgrepPlace(Struct, frozen=True):
    start: int
    """The byte of the line at which a match begins, from 0."""


class _RipgrepData(Struct, frozen=True):
    path: _RipgrepText = _RipgrepText()
    line_number: int = 0
    lines: _RipgrepText = _RipgrepText()
    submatches: tuple[_RipgrepPlace, ...] = ()
    binary_offset: int | None = None


class _RipgrepEvent(Struct, frozen=True):
    type: str
    data: _RipgrepData


async def search_with_ripgrep(program: str, place: str, search: Search) -> LineMatches | None:
    """Return the lines that match, by path; None if ripgrep cannot answer."""
    if (
        not _is_directory(place)
        or not _is_valid_argument(search.pattern)
        or _has_ignore_pipe(place)
        or _has_marked_ignore_file_above(place)
    ):
        return None
    matches, is_marked = await asyncio.gather(
        _ask_ripgrep(program, place, search), _has_marked_ignore_file_below(program, place)
    )
    return None if is_marked else matches


async def _has_marked_ignore_file_below(program: str, place: str) -> bool:
    """Whether a rule file that ripgrep reads below a folder begins with a byte order mark."""
    flags = (f"--glob={IGNORE_FILE}", f"--glob=!{GIT}", "--files", "--null")
    async with _start_program((program, *_WALK_FLAGS, *flags), place) as (lines, _):
        names = (await lines.read()).split(b"\0")[:-1]
    return any(_is_marked(Path(place, os.fsdecode(name))) for name in names)


async def _ask_ripgrep(program: str, place: str, search: Search) -> LineMatches | None:
    flags = _list_ripgrep_flags(search)
    accepts = compile_glob(search.glob).matches if search.glob else None
    matches: list[LineMatch] = []
    of_file: list[LineMatch] = []
    binary: list[str] = []
    async with _start_program((program, *flags, "--", search.pattern, "."), place) as (lines, _):
        async for line in _read_answer_lines(lines):
            event = _decode_event(line)
            path = _decode_path(event.data.path)
            if event.type == "summary":
                return LineMatches(tuple(matches), limited=False, binary=tuple(binary))
            if event.type == "end":
                # A zero byte may come after lines that match: the file is a binary one.
                if event.data.binary_offset is None:
                    matches += of_file
                elif of_file:
                    binary.append(path)
                of_file = []
            elif (
                event.type == "match"
                and path not in binary[-1:]
                and (accepts is None or accepts(path))
            ):
                at = _find_start(event.data)
                of_file.append(LineMatch(path, event.data.line_number, at))
                if len(matches) + len(of_file) == search.limit:
                    number = event.data.line_number
                    if await asyncio.to_thread(_is_text_up_to, f"{place}/{path}", number):
                        matches += of_file
                        return LineMatches(tuple(matches), limited=True, binary=tuple(binary))
                    binary.append(path)
                    of_file = []
    return None


def _is_text_up_to(path: str, number: int) -> bool:
    """Return whether a file has no zero byte before the line `number` ends, nor near that."""
    for data, is_binary, *_ in read_batches(path):
        number -= data.count(b"\n")
        if is_binary or number <= 0:
            return not is_binary
    return True


def _list_ripgrep_flags(search: Search) -> list[str]:
    flags = [*_RIPGREP_FLAGS, *(["--ignore-case"] if search.ignore_case else [])]
    flags += ["--fixed-strings"] if search.literal else []
    if search.glob and _NAME_GLOB.fullmatch(search.glob):
        flags += [f"--type-add=wanted:{search.glob}", "--type=wanted"]
    return flags


async def list_with_fd(program: str, folder: str, pattern: str) -> tuple[ListedPath, ...] | None:
    """Return what matches below a folder, by path; None if fd cannot answer."""
    matches = compile_glob(pattern).matches
    if (
        _has_foreign_ignore_file(folder)
        or _has_ignore_pipe(folder)
        or _has_marked_ignore_file_above(folder)
    ):
        return None
    any_folder = await asyncio.to_thread(_has_flag, program, _ANY_FOLDER)
    if not any_folder and not any((parent / GIT).exists() for parent in _list_folders_up(folder)):
        return None
    flags = (*_FD_FLAGS, _ANY_FOLDER) if any_folder else _FD_FLAGS
    async with _start_program((program, *flags, ".", "."), folder) as (lines, child):
        output = await lines.read()
        if await child.wait():
            return None
    names = [os.fsdecode(name).removeprefix("./").rstrip("/") for name in output.split(b"\0")[:-1]]
    if any(name.rpartition("/")[2] in _OTHER_IGNORE_FILES for name in names):
        return None
    rules = (name for name in names if name.rpartition("/")[2] == IGNORE_FILE)
    if any(_is_marked(Path(folder, name)) for name in rules):
        return None
    paths = []
    for name in filter(matches, names):
        is_dir, changed_ns = False, 0
        with suppress(OSError):  # it may be gone since it was found
            status = os.lstat(f"{folder}/{name}")
            is_dir, changed_ns = stat.S_ISDIR(status.st_mode), status.st_mtime_ns
        paths.append(ListedPath(name, is_dir, changed_ns))
    return tuple(sorted(paths, key=lambda path: os.fsencode(path.path).split(b"/")))


async def search_with_scanner(place: str, search: Search, root: str | None = None) -> LineMatches:
    """Return the lines that match a regular expression; ValueError when a line takes too long.

    With `root` no link below it is followed.
    """
    compile_expression(search)
    files = await run_search(lambda: tuple(list_files_below(place, search.glob, root)))
    flags = [scanner.IGNORE_CASE] if search.ignore_case else []
    command = (
        sys.executable,
        "-ISWignore",
        scanner.__file__,
        *flags,
        str(search.limit),
        root or "",
        scanner.encode_pattern(search.pattern),
    )
    names = b"".join(os.fsencode(path) + b"\0" for path, _ in files)
    matches: list[LineMatch] = []
    binary: list[str] = []
    async with _start_program(command, "/", names) as (lines, child):
        async for line in lines:
            index, number, at = map(int, line.split())
            if not number:
                binary.append(files[index][1])
                continue
            matches.append(LineMatch(files[index][1], number, at))
            if len(matches) == search.limit:
                return LineMatches(tuple(matches), limited=True, binary=tuple(binary))
        if await child.wait() == -scanner.TIMEOUT_SIGNAL:
            raise ValueError(
                f"The pattern took too long: {search.pattern}."
                " Make it simpler: no repeats inside of repeats."
            )
    return LineMatches(tuple(matches), limited=False, binary=tuple(binary))


@asynccontextmanager
async def _start_program(
    command: Sequence[str], folder: str, stdin: bytes = b""
) -> AsyncIterator[tuple[asyncio.StreamReader, Process]]:
    """Start a program that reads `stdin`; give what it answers, and it. It has ended afterwards."""
    child = await asyncio.create_subprocess_exec(
        *command,
        stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=_VARIABLES,
        limit=_LINE_BYTES,
    )
    if child.stdin is not None:
        child.stdin.write(stdin)
        child.stdin.close()
    assert child.stdout is not None
    try:
        yield child.stdout, child
    finally:
        if child.returncode is None:
            # child.kill() would collect one that has just ended, and its watcher then warns.
            with suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)
        await child.communicate()  # what is left in the pipe keeps it from being collected


async def _read_answer_lines(answers: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the lines of an answer, up to one that is too long to be taken."""
    while True:
        try:
            line = await answers.readline()
        except ValueError:
            return
        if not line:
            return
        yield line


def _has_ignore_pipe(folder: str) -> bool:
    """Whether a rule file at or above a folder is a pipe, which programs wait for."""
    return any((parent / IGNORE_FILE).is_fifo() for parent in _list_folders_up(folder))


def _has_marked_ignore_file_above(folder: str) -> bool:
    """Whether a rule file at or above a folder begins with a byte order mark.

    ripgrep before 14 and fd before 9 take the mark for a part of the first pattern.
    """
    files = (IGNORE_FILE, EXCLUDE_FILE)
    return any(_is_marked(parent / name) for parent in _list_folders_up(folder) for name in files)


def _is_marked(file: Path) -> bool:
    """Whether a regular file begins with a byte order mark."""
    try:
        if not file.is_file():
            return False
        with file.open("rb") as data:
            return data.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8
    except OSError:
        return False


def _list_folders_up(folder: str) -> tuple[Path, ...]:
    return (Path(folder), *Path(folder).parents)


def _is_valid_argument(pattern: str) -> bool:
    """Whether a pattern can be an argument of a program."""
    try:
        return b"\0" not in os.fsencode(pattern)
    except UnicodeEncodeError:
        return False


def _find_start(match: _RipgrepData) -> int:
    """Return the character of a line at which its first match begins."""
    start = match.submatches[0].start if match.submatches else 0
    line = _encode_told(match.lines).removeprefix(codecs.BOM_UTF8)
    return len(line[:start].decode("utf-8", "surrogateescape"))


def _decode_path(named: _RipgrepText) -> str:
    """Return a path below the folder."""
    return os.fsdecode(_encode_told(named)).removeprefix("./")


def _encode_told(text: _RipgrepText) -> bytes:
    """Return the bytes of what ripgrep tells; it gives base64 where they are not UTF-8."""
    return b64decode(text.bytes or "") if text.text is None else text.text.encode()


_decode_event = msgspec.json.Decoder(_RipgrepEvent).decode


@cache
def _has_flag(program: str, flag: str) -> bool:
    """Whether a program knows a flag."""
    answer = subprocess.run([program, flag, "--version"], capture_output=True, check=False)
    return answer.returncode == 0


def _has_foreign_ignore_file(folder: str) -> bool:
    """Whether a file above a folder, which only fd minds, decides what is found in it."""
    return any(
        (above / name).exists() for above in Path(folder).parents for name in _OTHER_IGNORE_FILES
    )


def _is_directory(place: str) -> bool:
    return Path(place).is_dir()
