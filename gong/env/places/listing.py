"""Searching a place: its files are read there; names, ignore rules and lines are judged here.

The same rules as on this machine: `search` and `scanner` decide. Two things keep it fast: folders
that the rules leave out at the top are not listed, and programs over there (rg, grep) say first
which files may match. The files that are left are copied into a folder of their own, under numbers:
no name of the place is ever opened here.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from ..globs import compile_glob
from ..protocol import LineMatch, LineMatches, ListedPath, Search
from ..scanner import is_text_with_zeros
from ..search import (
    GIT,
    IGNORE_FILE,
    IgnoreRules,
    compile_expression,
    is_plain_search,
    parse_ignore_file,
    run_search,
    search_below,
)
from ..search_programs import search_with_scanner

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence

    from .messages import FoundPath

    Walk = Callable[[str, str | None, int, Sequence[str]], Awaitable[list[FoundPath]]]
    """Lists what is below a folder: its path, a root, how deep (0: all) and arguments of find."""
    ReadMany = Callable[[Sequence[str]], Awaitable[dict[str, bytes | OSError]]]

_GROUP_BYTES = 16 << 20
"""So much is read at once."""
_MAX_PRUNED = 200
_UTF_16_MARKS = ("\udcff\udcfe", "\udcfe\udcff")
"""How files begin that no program over there can search."""


class PlaceFiles(NamedTuple):
    """What a search needs of a place."""

    walk: Walk
    read_many: ReadMany
    filter_names: Callable[[str, Sequence[str], Sequence[str]], Awaitable[set[str]]]
    """Given a folder, names and a program: those of the names that it prints."""


async def list_not_ignored(
    place: PlaceFiles, folder: str, root: str | None, without: Collection[str] = ()
) -> list[tuple[FoundPath, bool]]:
    """Return what is below a folder without what rules leave out, each with whether it is a folder.

    Nor is what folders of the names in `without` hold. In the order of the walk on this machine: by
    name, a folder before its content.
    """
    outer = await _load_outer_rules(place, folder)
    top = await place.walk(folder, root, 1, ())
    rules = await _load_rules(place, folder, top, outer)
    pruned = [
        item.path
        for item in top
        if stat.S_ISDIR(item.state.mode) and _is_left_out(rules, folder, item.path, is_dir=True)
    ][:_MAX_PRUNED]
    everything = top
    if any(stat.S_ISDIR(item.state.mode) and item.path not in pruned for item in top):
        tests = ["(", "-name", GIT]
        for name in without:
            tests += ["-o", "-type", "d", "-name", name]
        for path in pruned:
            tests += ["-o", "-path", "./" + re.sub(r"([*?\[\\])", r"\\\1", path)]
        everything = await place.walk(folder, root, 0, (*tests, ")", "-prune", "-o"))
    everything = [item for item in everything if GIT not in item.path.split("/")]
    rules = await _load_rules(place, folder, everything, outer)
    open_folders: dict[str, bool] = {"": True}
    chosen = []
    # A zero sorts before all that names hold, so the parts of paths are compared one by one.
    everything.sort(key=lambda item: os.fsencode(item.path).replace(b"/", b"\0"))
    for item in everything:
        above = posixpath.dirname(item.path)
        is_dir = stat.S_ISDIR(item.state.mode)
        keeps = open_folders.get(above, False) and not _is_left_out(
            rules, folder, item.path, is_dir=is_dir
        )
        if is_dir:
            open_folders[item.path] = keeps
        if keeps:
            chosen.append((item, is_dir))
    return chosen


def _is_left_out(
    rules: dict[str, IgnoreRules | None], folder: str, path: str, *, is_dir: bool
) -> bool:
    above = posixpath.dirname(path)
    while above and above not in rules:
        above = posixpath.dirname(above)
    own = rules.get(above)
    return own is not None and own.is_ignored(f"{folder.rstrip('/')}/{path}", is_dir=is_dir)


async def _load_outer_rules(place: PlaceFiles, folder: str) -> IgnoreRules | None:
    """Return the rules of the folders around a folder, up to the top of its repository."""
    around = [folder]
    while around[-1] != "/":
        around.append(posixpath.dirname(around[-1]))
    # A name below a folder that is not there tells where the repository ends.
    names = [posixpath.join(at, name) for at in around for name in (f"{GIT}/HEAD", GIT)]
    rule_files = [
        posixpath.join(at, name) for at in around for name in (IGNORE_FILE, ".git/info/exclude")
    ]
    contents = await place.read_many([*names, *rule_files])
    rules: IgnoreRules | None = None
    inside = []
    for at in around:
        inside.append(at)
        if any(
            isinstance(contents[posixpath.join(at, name)], bytes) for name in (f"{GIT}/HEAD", GIT)
        ):
            break
    for at in reversed(inside):
        if at == inside[-1]:
            rules = _extend_rules(rules, at, contents[posixpath.join(at, ".git/info/exclude")])
        if at != folder:
            rules = _extend_rules(rules, at, contents[posixpath.join(at, IGNORE_FILE)])
    return rules


def _extend_rules(
    outer: IgnoreRules | None, folder: str, content: bytes | OSError
) -> IgnoreRules | None:
    rules = parse_ignore_file(content) if isinstance(content, bytes) else ()
    return IgnoreRules(folder, rules, outer) if rules else outer


async def _load_rules(
    place: PlaceFiles,
    folder: str,
    items: Iterable[FoundPath],
    outer: IgnoreRules | None,
) -> dict[str, IgnoreRules | None]:
    """Return the rules that hold in each folder that has a file of rules, and in the top one."""
    names = [
        item.path
        for item in items
        if posixpath.basename(item.path) == IGNORE_FILE and stat.S_ISREG(item.state.mode)
    ]
    names.sort(key=lambda name: name.count("/"))
    paths = {name: posixpath.join(folder, name) for name in names}
    contents = await place.read_many(list(paths.values())) if names else {}
    rules: dict[str, IgnoreRules | None] = {"": outer}
    for name in names:
        at = posixpath.dirname(name)
        above = at
        while above and above not in rules:
            above = posixpath.dirname(above)
        real = posixpath.join(folder, at) if at else folder
        rules[at] = _extend_rules(rules[above], real, contents[paths[name]])
    return rules


async def find_in_place(
    place: PlaceFiles, folder: str, pattern: str, root: str | None
) -> tuple[ListedPath, ...]:
    """Return what below a folder matches a pattern; ValueError for one that is none."""
    matches = compile_glob(pattern).matches
    return tuple(
        ListedPath(item.path, is_dir, item.state.changed_ns)
        for item, is_dir in await list_not_ignored(place, folder, root)
        if matches(item.path)
    )


async def search_in_place(
    place: PlaceFiles, path: str, search: Search, root: str | None, *, is_folder: bool
) -> LineMatches:
    """Return the lines that match, in the files below a folder or in one file."""
    compile_expression(search)
    accepts = compile_glob(search.glob).matches if search.glob else None
    if not is_folder:
        name = posixpath.basename(path)
        if accepts is not None and not accepts(name):
            return LineMatches((), limited=False)
        return await _search_group(place, posixpath.dirname(path), [name], search, whole=path)
    files = [
        (item.path, item.state.size)
        for item, _ in await list_not_ignored(place, path, root)
        if stat.S_ISREG(item.state.mode) and (accepts is None or accepts(item.path))
    ]
    names = await _keep_likely(place, path, [name for name, _ in files], search)
    sizes = dict(files)
    lines: list[LineMatch] = []
    binary: list[str] = []
    for group in _group_names(names, sizes):
        left = Search(
            search.pattern, None, search.ignore_case, search.literal, search.limit - len(lines)
        )
        matches = await _search_group(place, path, group, left)
        lines += matches.found
        binary += matches.binary
        if matches.limited:
            return LineMatches(tuple(lines), limited=True, binary=tuple(binary))
    return LineMatches(tuple(lines), limited=False, binary=tuple(binary))


def _group_names(names: Sequence[str], sizes: dict[str, int]) -> Iterable[list[str]]:
    group: list[str] = []
    total = 0
    for name in names:
        if group and total + sizes[name] > _GROUP_BYTES:
            yield group
            group, total = [], 0
        group.append(name)
        total += sizes[name]
    if group:
        yield group


async def _keep_likely(
    place: PlaceFiles, folder: str, names: list[str], search: Search
) -> list[str]:
    """Return the files that may match, as a program over there sees it."""
    pattern = search.pattern
    if not names or not is_plain_search(search) or not pattern.isprintable():
        return names
    if search.ignore_case and not (pattern.isascii() and not set(pattern.lower()) & set("ks")):
        return names  # letters beyond ASCII that are the same in another case
    case = ("-i",) if search.ignore_case else ()
    needles = [argument for text in (pattern, *_UTF_16_MARKS) for argument in ("-e", text)]
    plain = [name for name in names if "\n" not in name]
    likely = await place.filter_names(folder, plain, ["grep", "-lsF", *case, *needles, "--"])
    return [name for name in names if name in likely or "\n" in name]


async def _search_group(
    place: PlaceFiles, folder: str, names: Sequence[str], search: Search, whole: str = ""
) -> LineMatches:
    paths = [whole] if whole else [posixpath.join(folder, name) for name in names]
    contents = await place.read_many(paths)
    if whole and isinstance(error := contents[whole], OSError):
        raise error
    with TemporaryDirectory(prefix="gong-search-") as copies:
        for number, path in enumerate(paths):
            data = contents[path]
            if isinstance(data, bytes):
                _write_copy(f"{copies}/{number:08}", data)
        if is_plain_search(search):
            matches = await run_search(search_below, copies, search)
        else:
            matches = await search_with_scanner(copies, search)
        binary = matches.binary
        if matches.found and binary:
            binary = tuple(b for b in binary if is_text_with_zeros(f"{copies}/{b}"))
    return LineMatches(
        tuple(match._replace(path=names[int(match.path)]) for match in matches.found),
        matches.limited,
        tuple(names[int(name)] for name in binary),
    )


def _write_copy(path: str, data: bytes) -> None:
    Path(path).write_bytes(data)
