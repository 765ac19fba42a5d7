"""Which files a command or a tool reads that its words do not name.

    cat *                        what the wildcard matches
    grep -r x src                all files below the folder
    rg x                         those that are not hidden and not ignored
    find . -exec head {} +       those that find lists, by their names
    find . | xargs cat           the same
    rg -L, find -L, cp -rL       the links below a folder, where the option follows them
    git show, git log -p         files that a repository tracks (`tracked_files`)
    cat notes, cd linked && ls   where a link leads (`links`)

Asks the disk which names there are; no file is opened but .gitignore, and nothing is run. At most
20,000 names are looked at, those near the top first. Folders of packages hold none of the
user's files and are passed over.
"""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

from ..commands.invocation import is_inside
from ..commands.matching import find_option_value, has_any_option, list_operands, read_program_name
from ..commands.tables import load_tables
from .file_trees import FileTree, list_tree, may_hold_credentials
from .git_index import list_tracked_credentials
from .links import (
    find_followed_paths,
    find_linked_paths,
    list_starts,
)
from .real_paths import (
    build_match,
    find_real_path,
    has_wildcard,
    is_file,
    is_folder,
    list_folder,
    match_files,
)
from .tracked_files import find_shown_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ...shell.expansion import Argument, Arguments
    from ..commands.invocation import Invocation
    from .real_paths import Match
    from .tracked_files import ListChanged

_GREPS = {"grep", "egrep", "fgrep", "zgrep"}
_SEARCHERS = {"rg", "ag"}
_FINDERS = {"find", "fd", "fdfind", "ls", "git"}
_TELLS_NO_CONTENT = {
    "wc", "cksum", "sum", "md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum",
    "b2sum", "file", "echo", "basename", "dirname",
}  # fmt: skip
_SCRIPTED = {"sed", "awk", "gawk", "mawk", "nawk"}
_RECURSIVE = ("-r", "-R", "--recursive", "--dereference-recursive")
_EXPLICIT = ("-e", "-f", "--regexp", "--file", "--files")
_GREP_VALUED = ("-e", "-f", "-m", "-A", "-B", "-C", "-d", "--include", "--exclude")
_RG_VALUED = (*_GREP_VALUED[:-3], "-g", "--glob", "--iglob", "-t", "-T", "-j", "--type", "--sort")
_HIDDEN_TOO = {"--hidden", "-.", "--unrestricted", "-a", "--all-types"}
_IGNORED_TOO = {"--no-ignore", "--no-ignore-vcs", "--no-ignore-dot", "--unrestricted", "-a"}
_FD_HIDDEN = ("-H", "-u", "--hidden", "--unrestricted")
_FD_IGNORED = ("-I", "-u", "--no-ignore", "--no-ignore-vcs", "--unrestricted")
_NAME_TESTS = {"-name", "-iname"}
_NOT_ALL = {"-o", "-or", "!", "-not", "(", ","}


def find_unnamed_files(
    uses: Iterable[Invocation],
    inputs: Iterable[str],
    roots: Sequence[str],
    list_changed: ListChanged,
    *,
    every: bool,
    deep: bool = False,
) -> Iterator[str]:
    """Yield the absolute paths of files that programs read although no word of them names them.

    `inputs` are the files that are redirected into commands; they, `roots` and `deep` are as
    `find_linked_paths` and `find_followed_paths` take them, `every` as `list_tree` does.
    """
    trees: list[FileTree] = []
    uses, inputs = tuple(uses), tuple(inputs)
    match = build_match()
    for use in uses:
        trees += _list_trees(use)
        yield from find_shown_files(use, list_changed)
        if use.name == "xargs" and use.before[:1] and use.before[0].name == "git":
            for folder in list_starts(use):  # what is tracked may be hidden, and ignored
                yield from (file.path for file in list_tracked_credentials(folder))
        if is_showing(use.name):
            yield from _choose_matches(_find_matches(use, match), every=every)
    matches = (each for path in inputs if has_wildcard(path) for each in match(path))
    yield from _choose_matches(matches, every=every)
    yield from find_linked_paths(uses, inputs, roots, match)
    yield from find_followed_paths(uses, roots, deep=deep)
    for tree in dict.fromkeys(trees):
        place = find_real_path(tree.folder)
        # A folder elsewhere is asked about itself: where nobody is asked its keys matter.
        if deep or every or any(is_inside(place, root) for root in roots):
            yield from list_tree(tree, every=every)


def _choose_matches(paths: Iterable[str], *, every: bool) -> Iterator[str]:
    """Yield those of many paths that may matter by their names."""
    return (path for path in paths if every or may_hold_credentials(path))


def find_searched_files(folder: str, glob: str | None, *, every: bool) -> Iterator[str]:
    """Yield the files that a search of a file tool looks in, below a folder or the file itself."""
    if is_file(folder):  # a name of any kind
        yield folder
    else:
        yield from list_tree(FileTree(folder, ignored=False, links=False, glob=glob), every=every)


_MAX_COPIED = 2_000


def list_copied_files(paths: Sequence[str]) -> list[str] | None:
    """Return the files that a copy or move of absolute paths to the last of them may make.

    None where there are more than 2,000: any file may be among them.
    """
    *sources, target = paths
    copied = []
    for source in sources:
        # `cp -r a/. b` makes b/x of a/x, `cp -r a b` b/a/x
        for place in (target, os.path.join(target, os.path.basename(source))):
            copied.append(place)
            for folder, names in _walk_files(source):
                copied += (f"{place}{folder[len(source) :]}/{name}" for name in names)
                if len(copied) > _MAX_COPIED:
                    return None
    return copied


def _walk_files(top: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each folder at and below one, with the names of its files; no link is followed."""
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        with suppress(OSError, ValueError):
            listed = list_folder(folder)
            inner = {name for name, file in listed.items() if file.is_folder}
            yield folder, [name for name in listed if name not in inner]
            waiting += [f"{folder}/{name}" for name in inner if not listed[name].is_link]


def is_showing(name: str) -> bool:
    """Return whether a program prints what is in the files it is given."""
    tables = load_tables()
    if name in _TELLS_NO_CONTENT or name in tables.words.look or name in _FINDERS:
        return False
    reader = tables.find_reader(name)
    return name in _SCRIPTED or (reader is not None and reader.opens)


def _find_matches(use: Invocation, match: Match) -> Iterator[str]:
    """Yield what wildcards match."""
    for argument in use.arguments:
        if argument.known and argument.glob and argument.text[:1] != "-":
            for path in use.places.paths(argument):
                yield from match(path)


def _list_trees(use: Invocation) -> Iterator[FileTree]:
    """Yield the folders whose files a program reads."""
    if use.name in _GREPS:
        is_recursive = has_any_option(use.arguments, _RECURSIVE)
        if is_recursive or _find_value(use, "-d", "--directories") == "recurse":
            yield from _build_grep_trees(use)
    elif use.name in _SEARCHERS:
        yield from _build_search_trees(use)
    elif use.name == "diff" and has_any_option(use.arguments, ("-r", "--recursive")):
        yield from _build_trees(list_operands(use.arguments), use, FileTree(""))
    elif use.name in {"find", "fd", "fdfind"} and _is_running_reader(use.arguments):
        yield from _build_find_trees(use)
    elif use.name == "git" and any(argument.text == "--untracked" for argument in use.arguments):
        ignored = any(argument.text == "--no-exclude-standard" for argument in use.arguments)
        yield from (FileTree(start, ignored=ignored) for start in list_starts(use))
    elif use.name == "xargs" and use.before and _is_running_reader(use.arguments):
        first = use.before[0]
        if first.name in _FINDERS:
            yield from _build_find_trees(first)


def _is_running_reader(arguments: Arguments) -> bool:
    """Whether a program that shows files is among the words: what find or xargs runs."""
    return any(argument.known and is_showing(read_program_name(argument)) for argument in arguments)


def _build_trees(operands: Arguments, use: Invocation, like: FileTree) -> Iterator[FileTree]:
    for operand in operands:
        if operand.known:
            for path in use.places.paths(operand):
                paths = match_files(path) if operand.glob else (path,)
                yield from (like._replace(folder=each) for each in paths if is_folder(each))


def _build_grep_trees(use: Invocation) -> Iterator[FileTree]:
    explicit = has_any_option(use.arguments, _EXPLICIT)
    operands = list_operands(use.arguments, _GREP_VALUED)[0 if explicit else 1 :]
    only = tuple(_find_values(use.arguments, ("--include",)))
    without = tuple(_find_values(use.arguments, ("--exclude", "--exclude-dir")))
    links = has_any_option(use.arguments, ("-R", "--dereference-recursive"))
    like = FileTree("", links=links, only=only, without=without)
    if operands:
        yield from _build_trees(operands, use, like)
    else:
        yield from (like._replace(folder=start) for start in list_starts(use))


def _build_search_trees(use: Invocation) -> Iterator[FileTree]:
    explicit = has_any_option(use.arguments, _EXPLICIT)
    operands = list_operands(use.arguments, _RG_VALUED)[0 if explicit else 1 :]
    if any(argument.text in {"--files", "--type-list"} for argument in use.arguments):
        return
    texts = {argument.text for argument in use.arguments}
    loose = sum(text.count("u") for text in texts if text[:1] == "-" != text[1:2])  # -u, -uu, -nuu
    globs = tuple(_find_values(use.arguments, ("-g", "--glob", "--iglob")))
    like = FileTree(
        "",
        hidden=loose > 1
        or bool(texts & _HIDDEN_TOO)
        or any(pattern[:1] == "." for pattern in globs),
        ignored=loose > 0 or bool(texts & _IGNORED_TOO),
        links=bool(texts & {"-L", "--follow", "-f"}),
        only=tuple(
            pattern.rpartition("/")[2]
            for pattern in globs
            if pattern[:1] != "!" and "{" not in pattern
        ),
        without=tuple(pattern[1:].strip("/") for pattern in globs if pattern[:1] == "!"),
    )
    if operands:
        yield from _build_trees(operands, use, like)
    elif not (use.before or use.given or use.read):  # else it searches its input
        yield from (like._replace(folder=start) for start in list_starts(use))


def _build_find_trees(use: Invocation) -> Iterator[FileTree]:
    """Yield what a program that lists files lists."""
    texts = [argument.text for argument in use.arguments]
    if use.name == "ls":
        hidden = has_any_option(use.arguments, ("-a", "-A", "--all", "--almost-all", "-f"))
        is_given = bool(list_operands(use.arguments))  # `ls -d .*`
        yield from (FileTree(start, hidden=hidden or is_given) for start in list_starts(use))
        return
    if use.name != "find":
        others = has_any_option(use.arguments, ("-o", "-i", "--others", "--ignored"))
        standard = any(text == "--exclude-standard" for text in texts)
        all_hidden = others if use.name == "git" else has_any_option(use.arguments, _FD_HIDDEN)
        all_ignored = has_any_option(use.arguments, _FD_IGNORED)
        if use.name == "git":
            all_ignored = others and (not standard or has_any_option(use.arguments, ("-i",)))
        like = FileTree("", hidden=all_hidden, ignored=all_ignored)
        yield from (like._replace(folder=start) for start in list_starts(use))
        return
    end = next((i for i, text in enumerate(texts) if text[:1] in {"-", "(", "!"}), len(texts))
    only: tuple[str, ...] = ()
    if not _NOT_ALL & {*texts[end:]}:
        named = [after for test, after in pairwise(texts) if test in _NAME_TESTS]
        only = tuple(named[:1])
    like = FileTree("", only=only)
    if end:
        yield from _build_trees(use.arguments[:end], use, like)
    else:
        yield from (like._replace(folder=start) for start in list_starts(use))


def _find_value(use: Invocation, *options: str) -> str:
    values = (find_option_value(use.arguments, option) for option in options)
    return next((value.text for value in values if value is not None), "")


def _find_values(arguments: Arguments, options: tuple[str, ...]) -> Iterator[str]:
    """Yield every value of some options, glued to them or after them."""
    left: Argument | None = None
    for argument in arguments:
        if left is not None and left.text in options:
            yield argument.text
        name, mark, value = argument.text.partition("=")
        if mark and name in options:
            yield value
        left = argument
