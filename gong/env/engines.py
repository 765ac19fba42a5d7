"""Searching with ripgrep and fd, so that what they find is what the search without them finds.

They walk and match; paths and globs are judged by the same rules as without them. None is returned
where a program is too old for its flags, or does not understand a pattern.
"""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from .globs import path_pattern
from .native import GIT, changed_ns
from .protocol import Listed, Match, Matches

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Sequence

    from .protocol import Search

_RG = (
    *("--json", "--line-number", "--color=never", "--hidden", "--no-config", "--sort=path"),
    *("--no-require-git", "--no-ignore-dot", "--no-ignore-exclude", "--no-ignore-global"),
    *("--crlf", "--glob=!.git"),
)
_FD = (
    *("--color=never", "--hidden", "--no-require-git", "--no-global-ignore-file"),
    *("--print0", "--no-follow", "--exclude", GIT, "."),
)
_LINE_BYTES = 1 << 26
"""The longest line of ripgrep's answers that is taken."""
_NOTHING_FOUND = 1


async def rg_search(program: str, place: str, search: Search) -> Matches | None:
    """Return the lines that match, by path; None where the search must go on without ripgrep."""
    is_dir = os.path.isdir(place)  # noqa: ASYNC240, PTH112 - one look at a folder does not wait
    if not is_dir:
        return None
    flags = [*_RG, *(["--ignore-case"] if search.ignore_case else [])]
    flags += ["--fixed-strings"] if search.literal else []
    process = await _started(program, [*flags, "--", search.pattern, "."], place)
    wanted = path_pattern(search.glob).fullmatch if search.glob else None
    found: list[Match] = []
    assert process.stdout is not None
    try:
        async for line in process.stdout:
            match = _match(line)
            if match is None or (wanted is not None and not wanted(match.path)):
                continue
            found.append(match)
            if len(found) == search.limit:
                return Matches(tuple(found), limited=True)
        code = await process.wait()
    except ValueError:
        # A line beyond all bounds.
        return None
    finally:
        await _ended(process)
    return Matches(tuple(found), limited=False) if code <= _NOTHING_FOUND else None


async def fd_list(program: str, folder: str, pattern: str) -> tuple[Listed, ...] | None:
    """Return what below a folder matches, by path; None where fd cannot say."""
    matches = path_pattern(pattern).fullmatch
    process = await _started(program, [*_FD, "."], folder)
    try:
        output, _ = await process.communicate()
    finally:
        await _ended(process)
    if process.returncode:
        return None
    names = (os.fsdecode(name).removeprefix("./") for name in output.split(b"\0") if name)
    found = [_listed(folder, name) for name in names if matches(name.removesuffix("/"))]
    return tuple(sorted(found, key=lambda one: os.fsencode(one.path).split(b"/")))


async def _started(program: str, flags: Sequence[str], folder: str) -> Process:
    return await asyncio.create_subprocess_exec(
        program,
        *flags,
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=_LINE_BYTES,
    )


async def _ended(process: Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _match(line: bytes) -> Match | None:
    event = json.loads(line)
    if event["type"] != "match":
        return None
    path = event["data"]["path"].get("text")
    number = event["data"]["line_number"]
    return None if path is None else Match(path.removeprefix("./"), number)


def _listed(folder: str, name: str) -> Listed:
    path = name.removesuffix("/")
    return Listed(path, name.endswith("/"), changed_ns(f"{folder}/{path}"))
