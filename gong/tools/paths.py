"""Which file or folder a model means by a path, and words for what goes wrong with one.

The name as it is written comes first, then the path rule (no leading "@", plain blanks), then what
macOS writes for the same name, then the only name in its folder that reads the same: as listings
show it, so that whatever was listed can be handed back. Whether a path may be used is decided on
what is found here. Files are changed one at a time: a lock for each path, taken in one order.
"""

from __future__ import annotations

import asyncio
import errno
import os
import posixpath
import re
import unicodedata
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from ..env.protocol import UNICODE_SPACES, is_inside_folder
from .limits import MAX_WHOLE_BYTES, format_limit, format_size
from .tool import ToolOutcome

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from ..env.protocol import ExecutionEnvironment


_HALF_OF_DAY = re.compile(r" (AM|PM)\b", re.IGNORECASE)
_AMBIGUOUS = re.compile(r" |'|\\n")
_SINGLE_QUOTES = re.compile("[\u2018-\u201b]")


async def locate_path(env: ExecutionEnvironment, path: str) -> str:
    """Return the absolute path of what a model means by `path`; by the rule where none is there.

    ValueError for what no system takes as a path, OSError for one that is too long.
    """
    exact, plain = _resolve_both(env, path)
    for spelling in list_spellings(exact, plain):
        if await _has_path(env, spelling):
            return spelling
    for candidate in dict.fromkeys((exact, plain)):
        match = await _find_by_look(env, candidate)
        if match is not None:
            return match
    return plain


_MAX_PATH_BYTES = 4095
"""The longest path of Linux: what is longer could be written, folder by folder, and not be read."""


def _resolve_both(env: ExecutionEnvironment, path: str) -> tuple[str, str]:
    """Return the absolute path as it is written, and by the rule."""
    try:
        is_path = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        is_path = False
    if not is_path:
        raise ValueError(f"Not a path: {path!r}.")
    exact, plain = env.resolve(path, exact=True), env.resolve(path)
    if len(os.fsencode(exact)) > _MAX_PATH_BYTES:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path)
    return exact, plain


def list_spellings(exact: str, plain: str) -> tuple[str, ...]:
    """Return the absolute paths that may be meant, the likeliest first: as written, by the rule."""
    apart = unicodedata.normalize("NFD", plain)
    # What macOS writes: an odd blank before AM and PM, letters taken apart, curly quotes.
    odd = (
        *(_HALF_OF_DAY.sub("\u202f\\1", plain), apart),
        *(plain.replace("'", "\u2019"), apart.replace("'", "\u2019")),
    )
    return tuple(dict.fromkeys((exact, plain, *odd)))


async def locate_new_path(env: ExecutionEnvironment, path: str) -> str:
    """Return the absolute path of a file that is written, whether or not it is there.

    A folder is taken as it is written where it is there so, as is the file itself. Errors are those
    of `locate_path`.
    """
    exact, plain = _resolve_both(env, path)
    for candidate in (exact, plain):
        if await _has_path(env, candidate):
            return candidate
    mixed = build_mixed_spelling(exact)
    folder = posixpath.dirname(exact)
    if folder != posixpath.dirname(plain) and await _has_path(env, folder):
        return mixed
    return plain


def build_mixed_spelling(exact: str) -> str:
    """Return the path of a new file: its folder as written, its name by the rule."""
    folder, name = posixpath.split(exact)
    return posixpath.join(folder, UNICODE_SPACES.sub(" ", name))


def format_path(path: str) -> str:
    """Return a path on one line, as UTF-8 whatever bytes its names hold."""
    try:
        data = os.fsencode(path)
    except UnicodeEncodeError:
        data = path.encode("utf-8", "surrogatepass")
    return data.decode("utf-8", "replace").replace("\n", "\\n")


async def _find_by_look(env: ExecutionEnvironment, path: str) -> str | None:
    """Return the only path whose names read like these; None where there is none, or several."""
    base = posixpath.normpath(env.working_directory)
    start = base if is_inside_folder(path, base) and path != base else "/"
    at = start
    for name in path[len(start) :].strip("/").split("/"):
        candidate = posixpath.join(at, name)
        if not await _has_path(env, candidate):
            if not may_look_alike(name):
                return None
            try:
                entries = await env.list_directory(at)
            except (OSError, ValueError):
                return None
            alike = find_alike(name, [entry.name for entry in entries])
            if alike is None:
                return None
            candidate = posixpath.join(at, alike)
        at = candidate
    return at


def may_look_alike(name: str) -> bool:
    """Return whether another name may read like this one."""
    return not name.isascii() or _AMBIGUOUS.search(name) is not None


def find_alike(name: str, names: Iterable[str]) -> str | None:
    """Return the only one of some names that reads like this one; None where none does, or more."""
    look = _normalize_name(name)
    alike = [name for name in names if _normalize_name(name) == look]
    return alike[0] if len(alike) == 1 else None


def _normalize_name(name: str) -> str:
    """Return what a name looks like: the same for all names a reader takes for one another."""
    text = UNICODE_SPACES.sub(" ", _SINGLE_QUOTES.sub("'", format_path(name)))
    return unicodedata.normalize("NFC", text)


async def _has_path(env: ExecutionEnvironment, path: str) -> bool:
    try:
        return await env.file_exists(path)
    except (OSError, ValueError):
        # What may not be looked at is refused where it is used.
        return False


def describe_os_error(error: OSError, path: str) -> str:
    """Return what went wrong with `path`: "ENOENT: no such file or directory: notes.txt"."""
    match error:
        case IsADirectoryError():
            return f"Is a directory: {path}"
        case NotADirectoryError():
            return f"Not a directory: {path}"
    if error.errno is None:
        # What an environment refuses in its own words.
        return str(error)
    name = errno.errorcode.get(error.errno, "EIO")
    return f"{name}: {(error.strerror or str(error)).lower()}: {path}"


def describe_refused_path(path: str) -> str:
    """Return the error for a path that leaves the working directory."""
    return f'Path leaves the working directory: {path}. Name a file inside it, without "..".'


def build_path_error(error: OSError | ValueError, path: str, missing: str = "") -> ToolOutcome:
    """Return the result for a path that cannot be used; `missing` is said where nothing is there.

    ValueError is for what is wrong with the call: a pattern, or a path no system takes.
    """
    match error:
        case FileNotFoundError():
            text = f"{missing}: {path}" if missing else describe_os_error(error, path)
            return ToolOutcome.error(text, kind="FileNotFound")
        case PermissionError():
            return ToolOutcome.error(describe_os_error(error, path), kind="PermissionDenied")
        case OSError():
            return ToolOutcome.error(describe_os_error(error, path))
    return ToolOutcome.error(str(error), kind="ValidationError")


async def measure_file(env: ExecutionEnvironment, path: str, root: str | None = None) -> int:
    """Return the size of a file in bytes, 0 where the environment cannot tell it; raises OSError.

    An environment of others may not have the method.
    """
    measure = getattr(env, "measure_file", None)
    size: int = 0 if measure is None else await measure(path, root)
    return size


async def measure_oversize(env: ExecutionEnvironment, path: str, root: str | None = None) -> int:
    """Return the size of a file in bytes if it is too large to be taken whole, else 0."""
    try:
        size = await measure_file(env, path, root)
    except (OSError, ValueError):
        return 0  # reading it says what is wrong
    return size if size > MAX_WHOLE_BYTES else 0


async def explain_oversize(env: ExecutionEnvironment, path: str, root: str | None = None) -> str:
    """Return why a file is too large to be changed by a tool, "" if it is not."""
    if not (size := await measure_oversize(env, path, root)):
        return ""
    limit = format_limit(MAX_WHOLE_BYTES)
    return (
        f"it has {format_size(size)}, the limit is {limit}. Use bash to change it, such as sed -i"
    )


_LOCKS: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
"""The locks that are held or waited for."""


@asynccontextmanager
async def hold_locks(paths: Iterable[str]) -> AsyncIterator[None]:
    """Hold the locks of these paths; whoever holds one of them already is waited for."""
    async with AsyncExitStack() as stack:
        for path in sorted(set(paths)):
            await stack.enter_async_context(_LOCKS.setdefault(path, asyncio.Lock()))
        yield
