"""Which files a command or a tool reads that its words do not name.

    cat *                        what the wildcard stands for
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
from glob import iglob
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
from .real_paths import build_match, find_real_path, has_wildcard
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
_TELLS_NO_CONTENT = {"wc", "cksum", "sum", "md5sum", "sha1sum", "sha224sum", "sha256sum"}
_TELLS_NO_CONTENT |= {"sha384sum", "sha512sum", "b2sum", "file", "echo", "basename", "dirname"}
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
        if _is_showing(use.name):
            yield from _choose_matches(_find_matches(use, match), every=every)
    given = (each for one in inputs if has_wildcard(one) for each in match(one))
    yield from _choose_matches(given, every=every)
    yield from find_linked_paths(uses, inputs, roots, match)
    yield from find_followed_paths(uses, roots, deep=deep)
    for tree in dict.fromkeys(trees):
        place = find_real_path(tree.folder)
        # A folder elsewhere is asked about itself: where nobody is asked its keys matter.
        if deep or every or any(is_inside(place, root) for root in roots):
            yield from list_tree(tree, every=every)


def _choose_matches(paths: Iterable[str], *, every: bool) -> Iterator[str]:
    """Yield those of many paths that may matter by their names."""
    return (one for one in paths if every or may_hold_credentials(one))


def find_searched_files(folder: str, glob: str | None, *, every: bool) -> Iterator[str]:
    """Yield the files that a search of a file tool looks in, below a folder or the file itself."""
    if os.path.isfile(folder):  # noqa: PTH113 (a name of any kind)
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
        for place in (target, os.path.join(target, os.path.basename(source))):  # noqa: PTH118, PTH119
            copied.append(place)
            for folder, _, names in os.walk(source):
                copied += (f"{place}{folder[len(source) :]}/{name}" for name in names)
                if len(copied) > _MAX_COPIED:
                    return None
    return copied


def _is_showing(name: str) -> bool:
    """Whether a program prints what is in the files it is given."""
    tables = load_tables()
    if name in _TELLS_NO_CONTENT or name in tables.words.look or name in _FINDERS:
        return False
    reader = tables.find_reader(name)
    return name in _SCRIPTED or (reader is not None and reader.opens)


def _find_matches(use: Invocation, match: Match) -> Iterator[str]:
    """Yield what wildcards stand for."""
    for one in use.arguments:
        if one.known and one.glob and one.text[:1] != "-":
            for path in use.places.paths(one):
                yield from match(path)


def _list_trees(use: Invocation) -> Iterator[FileTree]:
    """Yield the folders whose files a program reads."""
    if use.name in _GREPS:
        given = has_any_option(use.arguments, _RECURSIVE)
        if given or _find_value(use, "-d", "--directories") == "recurse":
            yield from _build_grep_trees(use)
    elif use.name in _SEARCHERS:
        yield from _build_search_trees(use)
    elif use.name == "diff" and has_any_option(use.arguments, ("-r", "--recursive")):
        yield from _build_trees(list_operands(use.arguments), use, FileTree(""))
    elif use.name in {"find", "fd", "fdfind"} and _is_running_reader(use.arguments):
        yield from _build_find_trees(use)
    elif use.name == "git" and any(one.text == "--untracked" for one in use.arguments):
        ignored = any(one.text == "--no-exclude-standard" for one in use.arguments)
        yield from (FileTree(one, ignored=ignored) for one in list_starts(use))
    elif use.name == "xargs" and use.before and _is_running_reader(use.arguments):
        first = use.before[0]
        if first.name in _FINDERS:
            yield from _build_find_trees(first)


def _is_running_reader(arguments: Arguments) -> bool:
    """Whether a program that shows files is among the words: what find or xargs runs."""
    return any(one.known and _is_showing(read_program_name(one)) for one in arguments)


def _build_trees(operands: Arguments, use: Invocation, like: FileTree) -> Iterator[FileTree]:
    for one in operands:
        if one.known:
            for path in use.places.paths(one):
                paths = iglob(path) if one.glob else (path,)  # noqa: PTH207
                yield from (like._replace(folder=each) for each in paths if os.path.isdir(each))  # noqa: PTH112


def _build_grep_trees(use: Invocation) -> Iterator[FileTree]:
    explicit = has_any_option(use.arguments, _EXPLICIT)
    given = list_operands(use.arguments, _GREP_VALUED)[0 if explicit else 1 :]
    only = tuple(_find_values(use.arguments, ("--include",)))
    without = tuple(_find_values(use.arguments, ("--exclude", "--exclude-dir")))
    links = has_any_option(use.arguments, ("-R", "--dereference-recursive"))
    like = FileTree("", links=links, only=only, without=without)
    if given:
        yield from _build_trees(given, use, like)
    else:
        yield from (like._replace(folder=one) for one in list_starts(use))


def _build_search_trees(use: Invocation) -> Iterator[FileTree]:
    explicit = has_any_option(use.arguments, _EXPLICIT)
    given = list_operands(use.arguments, _RG_VALUED)[0 if explicit else 1 :]
    if any(one.text in {"--files", "--type-list"} for one in use.arguments):
        return
    texts = {one.text for one in use.arguments}
    loose = sum(one.count("u") for one in texts if one[:1] == "-" != one[1:2])  # -u, -uu, -nuu
    globs = tuple(_find_values(use.arguments, ("-g", "--glob", "--iglob")))
    like = FileTree(
        "",
        hidden=loose > 1 or bool(texts & _HIDDEN_TOO) or any(one[:1] == "." for one in globs),
        ignored=loose > 0 or bool(texts & _IGNORED_TOO),
        links=bool(texts & {"-L", "--follow", "-f"}),
        only=tuple(one.rpartition("/")[2] for one in globs if one[:1] != "!" and "{" not in one),
        without=tuple(one[1:].strip("/") for one in globs if one[:1] == "!"),
    )
    if given:
        yield from _build_trees(given, use, like)
    elif not (use.before or use.given or use.read):  # else it searches its input
        yield from (like._replace(folder=one) for one in list_starts(use))


def _build_find_trees(use: Invocation) -> Iterator[FileTree]:
    """Yield what a program that lists files lists."""
    texts = [one.text for one in use.arguments]
    if use.name == "ls":
        hidden = has_any_option(use.arguments, ("-a", "-A", "--all", "--almost-all", "-f"))
        is_given = bool(list_operands(use.arguments))  # `ls -d .*`
        yield from (FileTree(one, hidden=hidden or is_given) for one in list_starts(use))
        return
    if use.name != "find":
        others = has_any_option(use.arguments, ("-o", "-i", "--others", "--ignored"))
        standard = any(one == "--exclude-standard" for one in texts)
        all_hidden = others if use.name == "git" else has_any_option(use.arguments, _FD_HIDDEN)
        all_ignored = has_any_option(use.arguments, _FD_IGNORED)
        if use.name == "git":
            all_ignored = others and (not standard or has_any_option(use.arguments, ("-i",)))
        like = FileTree("", hidden=all_hidden, ignored=all_ignored)
        yield from (like._replace(folder=one) for one in list_starts(use))
        return
    end = next((i for i, one in enumerate(texts) if one[:1] in {"-", "(", "!"}), len(texts))
    only: tuple[str, ...] = ()
    if not _NOT_ALL & {*texts[end:]}:
        named = [after for one, after in pairwise(texts) if one in _NAME_TESTS]
        only = tuple(named[:1])
    like = FileTree("", only=only)
    if end:
        yield from _build_trees(use.arguments[:end], use, like)
    else:
        yield from (like._replace(folder=one) for one in list_starts(use))


def _find_value(use: Invocation, *options: str) -> str:
    found = (find_option_value(use.arguments, one) for one in options)
    return next((one.text for one in found if one is not None), "")


def _find_values(arguments: Arguments, options: tuple[str, ...]) -> Iterator[str]:
    """Yield every value of some options, glued to them or after them."""
    left: Argument | None = None
    for one in arguments:
        if left is not None and left.text in options:
            yield one.text
        name, mark, value = one.text.partition("=")
        if mark and name in options:
            yield value
        left = one
