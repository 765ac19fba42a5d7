"""Search with ripgrep and fd, with the same results as the search without them.

ripgrep and fd walk and match; paths and globs are judged by the same rules as without them. None
is returned where a program is too old, or does not understand a pattern or what it meets. Our own
`scanner` is for the patterns that are left.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
import subprocess
import sys
from base64 import b64decode
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from . import scanner
from .children import NOTHING, Child
from .globs import compile_glob
from .native import GIT, IGNORE_FILE, expression, files_below
from .protocol import Listed, Match, Matches
from .scanner import file_lines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from .protocol import Search

_RG = (
    *("--json", "--line-number", "--color=never", "--hidden", "--no-config", "--sort=path"),
    *("--no-require-git", "--no-ignore-dot", "--no-ignore-global", "--no-messages"),
    *("--crlf", "--glob=!.git"),
)
_FD = ("--color=never", "--hidden", "--print0", "--no-follow", "--exclude", GIT)
_ANY_FOLDER = "--no-require-git"
"""Tells fd to mind .gitignore files outside of repositories too; from 8.7 on."""
_OTHER_IGNORE_FILES = {".ignore", ".fdignore"}
"""What fd minds besides; it cannot be told not to."""
_NO_HOME = {"HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent"}
"""Files there change what fd finds."""
_LINE_BYTES = 1 << 22
"""The longest line of an answer that is taken.

ripgrep tells every match in a line: of one letter in a long line it says forty times the line.
"""
_NAME_GLOB = re.compile(r"(?:[\w.?-]|\*(?!\*))+", re.ASCII)
"""Globs of names that ripgrep reads as we do."""


class _Text(Struct, frozen=True):
    text: str | None = None
    bytes: str | None = None


class _Data(Struct, frozen=True):
    path: _Text = _Text()
    line_number: int = 0
    binary_offset: int | None = None


class _Event(Struct, frozen=True):
    type: str
    data: _Data


async def rg_search(program: str, place: str, search: Search) -> Matches | None:
    """Return the lines that match, by path; None if ripgrep cannot answer."""
    if not _is_folder(place) or not _can_be_said(search.pattern) or _would_wait(place):
        return None
    flags = [*_RG, *(["--ignore-case"] if search.ignore_case else [])]
    flags += ["--fixed-strings"] if search.literal else []
    if search.glob and _NAME_GLOB.fullmatch(search.glob):
        flags += [f"--type-add=wanted:{search.glob}", "--type=wanted"]
    wanted = compile_glob(search.glob).matches if search.glob else None
    found: list[Match] = []
    of_file: list[Match] = []
    binary = ""
    async with _answers((program, *flags, "--", search.pattern, "."), place) as (lines, _):
        async for line in _lines(lines):
            event = _event(line)
            path = _path(event.data.path)
            if event.type == "summary":
                return Matches(tuple(found), limited=False)
            if event.type == "end":
                # A zero byte may come after lines that match: the file is a binary one.
                found += of_file if event.data.binary_offset is None else ()
                of_file = []
            elif event.type == "match" and path != binary and (wanted is None or wanted(path)):
                of_file.append(Match(path, event.data.line_number))
                if len(found) + len(of_file) == search.limit:
                    if await asyncio.to_thread(file_lines, f"{place}/{path}"):
                        return Matches((*found, *of_file), limited=True)
                    binary, of_file = path, []
    return None


async def fd_list(program: str, folder: str, pattern: str) -> tuple[Listed, ...] | None:
    """Return what matches below a folder, by path; None if fd cannot answer."""
    matches = compile_glob(pattern).matches
    if _disturbed(folder) or _would_wait(folder):
        return None
    any_folder = await asyncio.to_thread(_takes, program, _ANY_FOLDER)
    if not any_folder and not _in_repository(folder):
        return None
    flags = (*_FD, _ANY_FOLDER) if any_folder else _FD
    async with _answers((program, *flags, ".", "."), folder, _NO_HOME) as (lines, child):
        output = await lines.read()
        if await child.wait():
            return None
    names = [os.fsdecode(name).removeprefix("./").rstrip("/") for name in output.split(b"\0")[:-1]]
    if any(name.rpartition("/")[2] in _OTHER_IGNORE_FILES for name in names):
        return None
    found = [_listed(folder, name) for name in names if matches(name)]
    return tuple(sorted(found, key=lambda one: os.fsencode(one.path).split(b"/")))


async def scanned(place: str, search: Search, root: str | None = None) -> Matches:
    """Return the lines that match a regular expression; ValueError when a line takes too long.

    With `root` no link below it is followed.
    """
    expression(search)
    files = await asyncio.to_thread(lambda: tuple(files_below(place, search.glob, root)))
    flags = [scanner.IGNORE_CASE] if search.ignore_case else []
    command = (
        sys.executable,
        "-ISWignore",
        scanner.__file__,
        *flags,
        root or "",
        scanner.packed(search.pattern),
    )
    asked = b"".join(os.fsencode(path) + b"\0" for path, _ in files)
    found: list[Match] = []
    async with _answers(command, "/", asked=asked) as (lines, child):
        async for line in lines:
            index, number = map(int, line.split())
            found.append(Match(files[index][1], number))
            if len(found) == search.limit:
                return Matches(tuple(found), limited=True)
        if await child.wait() == -scanner.TOO_LONG:
            raise ValueError(
                f"The pattern took too long: {search.pattern}."
                " Make it simpler: no repeats inside of repeats."
            )
    return Matches(tuple(found), limited=False)


@asynccontextmanager
async def _answers(
    command: Sequence[str],
    folder: str,
    variables: Mapping[str, str] | None = None,
    asked: bytes | None = None,
) -> AsyncIterator[tuple[asyncio.StreamReader, Child]]:
    """Start a program and give what it answers, and it; whatever happens, it has ended then."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", 0) as answers, _questions(asked) as questions:
        try:
            child = Child.start(
                command, folder, stdin=questions, stdout=writing, variables=variables
            )
        finally:
            os.close(writing)
        lines = asyncio.StreamReader(limit=_LINE_BYTES)
        protocol = asyncio.StreamReaderProtocol(lines)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: protocol, answers)
        try:
            yield lines, child
        finally:
            transport.close()
            await child.end()


@contextmanager
def _questions(asked: bytes | None) -> Iterator[int]:
    """Give what a program reads as its standard input."""
    if asked is None:
        yield NOTHING
        return
    from tempfile import TemporaryFile  # noqa: PLC0415 (only where it is needed)

    with TemporaryFile() as file:
        file.write(asked)
        file.seek(0)
        yield file.fileno()


async def _lines(answers: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the lines of an answer, up to one that is too long to be taken."""
    while True:
        try:
            line = await answers.readline()
        except ValueError:
            return
        if not line:
            return
        yield line


def _would_wait(folder: str) -> bool:
    """Whether a rule file at or above a folder is a pipe, which programs wait for."""
    place = Path(folder)
    return any((one / IGNORE_FILE).is_fifo() for one in (place, *place.parents))


def _can_be_said(pattern: str) -> bool:
    """Whether a pattern can be an argument of a program."""
    try:
        return b"\0" not in os.fsencode(pattern)
    except UnicodeEncodeError:
        return False


_event = msgspec.json.Decoder(_Event).decode


def _path(path: _Text) -> str:
    """Return a path as Python has it, whatever bytes are in it."""
    text = os.fsdecode(b64decode(path.bytes or "")) if path.text is None else path.text
    return text.removeprefix("./")


@cache
def _takes(program: str, flag: str) -> bool:
    """Whether a program knows a flag."""
    asked = subprocess.run([program, flag, "--version"], capture_output=True, check=False)  # noqa: S603 - no shell
    return asked.returncode == 0


def _disturbed(folder: str) -> bool:
    """Whether a file above a folder, which only fd minds, decides what is found in it."""
    return any(
        (above / name).exists() for above in Path(folder).parents for name in _OTHER_IGNORE_FILES
    )


def _is_folder(place: str) -> bool:
    return Path(place).is_dir()


def _in_repository(folder: str) -> bool:
    place = Path(folder)
    return any((one / GIT).exists() for one in (place, *place.parents))


def _listed(folder: str, path: str) -> Listed:
    try:
        status = os.lstat(f"{folder}/{path}")
    except OSError:
        # Gone since it was found.
        return Listed(path, is_dir=False, changed_ns=0)
    return Listed(path, stat.S_ISDIR(status.st_mode), status.st_mtime_ns)
