"""Which uses of git show what tracked files with credentials hold, though no word names them.

    git log -p, git grep, git diff A:DIR B:DIR    every tracked file, or those of the paths given
    git show REV, git diff REV, git diff A..B     those that git names for these commits
    git diff, git diff --cached, git status -v    those that changed, or are staged
    git cat-file -p OBJECT                        the file whose object it is
    git log, git show --stat, git diff --name-only    none: what they print holds no content

The index of the repository is read, and git is asked which of its files differ; with options that
are not known here all of them count. Of a whole history (`log -p`) only what is still tracked is
looked for: the rest is there for whoever has the repository.
"""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ...shell.expansion import Argument
from ..commands.matching import has_any_option, list_operands, list_options
from ..commands.tables import load_tables
from .git_index import is_credentials_path, list_tracked_credentials
from .real_paths import is_there
from .repositories import find_top, list_git_folders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..commands.invocation import Invocation

    ListChanged = Callable[[str, Sequence[str]], frozenset[str] | None]
    """Returns which files a diff of a repository shows; None where git does not say."""

_PATCH = re.compile(
    r"-[pu].*|-U.*|--patch.*|--unified.*|--full-diff|--binary|-c|--cc|--dd|--remerge-diff"
    r"|--diff-merges.*"
)
_NO_CONTENT = (
    "--stat", "--name-only", "--name-status", "--numstat", "--shortstat", "--summary",
    "--raw", "--no-patch", "--dirstat", "--quiet", "--compact-summary",
)  # fmt: skip
_ONLY_NAMES = ("--count", "--files-with-matches", "--files-without-match", "--name-only", "--quiet")
_NAME_LETTERS, _GREP_VALUED = "lLcq", "efABCmO"
_SHOWING = {"show", "diff", "range-diff"}
_SHOWING_PATCHES = {"log", "whatchanged", "stash", "diff-tree", "diff-index", "reflog", "shortlog"}
_FLAGS = re.compile(
    r"-[pusawbziR]|-\d+|--(?:patch|stat|cached|staged|oneline|graph|all|decorate|color|no-color"
    r"|no-pager|reverse|cc|root|merge-base|word-diff|full-diff|no-merges|merges|first-parent|follow"
    r"|name-only|name-status|no-patch|exit-code|ignore-all-space|abbrev-commit|minimal|histogram"
    r"|text|function-context|recursive|untracked|line-number|ignore-case)"
)
"""Options that take no argument of their own: a word after them may be a path."""
_GREP_FLAGS = re.compile(r"-[nhHEGFPivwWrplLcqoaIz]+")
_PLAIN = re.compile(
    r"--(?:no-pager|no-optional-locks|check|cached|staged|stat|patch|oneline|exit-code|text|minimal"
    r"|histogram|patience|summary|numstat|abbrev(?:-commit|=.*)?|function-context|verbose"
    r"|(?:no-)?color(?:=.*)?|color-words(?:=.*)?|word-diff(?:=.*)?|ignore-.*|unified=\d+"
    r"|format=.*|pretty(?:=.*)?|no-renames|find-renames|no-prefix|diff-algorithm=\w+)"
    r"|-[pubwWav]+|-U\d+|-[MC]\d*%?|-vv|--"
)
"""Options that change how a diff looks, and not what is compared."""
_REVISION = re.compile(r"[\w.@][\w./@{}~^+-]*")
_UNDOING = {f"--no-{option[2:]}" for option in (*_NO_CONTENT, *_ONLY_NAMES)} - {"--no-no-patch"}
_BRACED = re.compile(r"\{[^}]*\}")
_OBJECT = re.compile(r"[0-9a-f]{4,64}")
_EXCLUDED = re.compile(r":(?:[!^]|\((?:[a-z,]+,)?exclude(?:,[a-z,]+)?\))/?")


class _Chosen(NamedTuple):
    """Which files a use of git is about."""

    paths: list[str]
    """As they are given, from the folder, or absolute; none for all."""
    without: list[str]
    """Those that are left out."""
    revisions: list[str]

    def has(self, path: str, folder: str) -> bool:
        """Return whether a file is among them."""
        if any(_is_chosen(path, pattern, folder) for pattern in self.without):
            return False
        return not self.paths or any(_is_chosen(path, pattern, folder) for pattern in self.paths)


def find_shown_files(use: Invocation, list_changed: ListChanged) -> Iterator[str]:
    """Yield the tracked files with credentials whose content a use of git may show."""
    operands = list_operands(use.arguments, load_tables().valued.get("git", ()))
    if use.name != "git" or not operands:
        return
    command = operands[0].text
    for folder in list_git_folders(use):
        if folder is None:
            continue
        if command == "cat-file":
            yield from _find_objects(use, folder)
        elif _is_showing_content(command, use):
            chosen = _choose_files(command, use, folder)
            if chosen is None:
                continue
            yield from _find_compared(command, use, chosen, folder, list_changed)


def _find_objects(use: Invocation, folder: str) -> Iterator[str]:
    prefixes = [argument.text for argument in use.arguments if _OBJECT.fullmatch(argument.text)]
    for file in list_tracked_credentials(folder) if prefixes else ():
        if any(file.oid.startswith(prefix) for prefix in prefixes):
            yield file.path


def _find_compared(
    command: str, use: Invocation, chosen: _Chosen, folder: str, list_changed: ListChanged
) -> Iterator[str]:
    """Yield the files that are chosen, of a diff only those that it shows."""
    words = _list_compared(command, use, chosen)
    top = find_top(folder) or folder
    changed = list_changed(top, words) if words else None
    if changed is not None:
        yield from (
            path for path in changed if is_credentials_path(path) and chosen.has(path, folder)
        )
        if command != "status":
            return
    for tracked in list_tracked_credentials(folder):
        is_compared = words is None or (words and changed is None) or tracked.is_changed
        if is_compared and chosen.has(tracked.path, folder):
            yield tracked.path


def _list_compared(command: str, use: Invocation, chosen: _Chosen) -> tuple[str, ...] | None:
    """Return the words by which git tells what a use compares; none for the index and the disk.

    None where all may be shown.
    """
    staged = has_any_option(use.arguments, ("--cached", "--staged"))
    options = (option.text for option in list_options(use.arguments))
    if command not in {"diff", "show", "status"} or not all(map(_PLAIN.fullmatch, options)):
        return None
    if not all(map(_REVISION.fullmatch, chosen.revisions)):
        return None
    if command == "show":
        return ("show", *(chosen.revisions or ["HEAD"]))
    if command == "status":
        return ("diff", "--cached")
    if not staged and not chosen.revisions:
        return ()
    return ("diff", *(["--cached"] if staged else []), *chosen.revisions)


def _is_showing_content(command: str, use: Invocation) -> bool:
    texts = [argument.text for argument in use.arguments]
    has_patch_option = any(map(_PATCH.fullmatch, texts))
    if not _UNDOING.isdisjoint(texts):  # `-l --no-files-with-matches`
        return command in {*_SHOWING, "grep"} or has_patch_option
    if command == "grep":
        return not _is_naming_only(use)
    if command == "status":
        return any(re.fullmatch(r"-v+|--verbose", text) for text in texts)
    if command in _SHOWING:
        return has_patch_option or not _is_quiet(use)
    return command in _SHOWING_PATCHES and has_patch_option


def _is_quiet(use: Invocation) -> bool:
    """Whether the options of a diff hide the content."""
    texts = [argument.text for argument in use.arguments]
    return "-s" in texts or has_any_option(use.arguments, _NO_CONTENT)


def _is_naming_only(use: Invocation) -> bool:
    """Whether git grep prints names or counts: `-l`, also `-nl`, but not the value in `-el`."""
    for argument in use.arguments:
        for letter in argument.text[1:] if argument.text[:1] == "-" != argument.text[1:2] else "":
            if letter in _GREP_VALUED:
                break
            if letter in _NAME_LETTERS:
                return True
    return has_any_option(use.arguments, _ONLY_NAMES)


def _choose_files(command: str, use: Invocation, folder: str) -> _Chosen | None:
    """Return which files are chosen; None where each is named, so that its name is judged."""
    texts = [argument.text for argument in use.arguments]
    named = _list_named_words(command, use)
    revisions = [word for word in named if not is_there(f"{folder}/{word}")]
    paths = [word for word in named if word not in revisions]
    if "--" in texts:
        paths = texts[texts.index("--") + 1 :]
        revisions = [word for word in named if word not in paths]
    inside = {
        revision: path for revision in revisions if (path := _split_revision(revision)) is not None
    }
    if inside and inside.keys() == {*revisions} and not paths:
        if command == "show":
            return None  # `git show REV:FILE` shows this file, or what a folder is called
        top = find_top(folder) or folder
        paths = [path if path[:2] == "./" else f"{top}/{path}" for path in inside.values()]
    without = [_EXCLUDED.sub("", path) for path in paths if _EXCLUDED.match(path)]
    included = [path for path in paths if not _EXCLUDED.match(path)]
    if command == "grep" and not included:
        included = ["."]  # below the folder it runs in
    return _Chosen(included, without, revisions)


def _list_named_words(command: str, use: Invocation) -> list[str]:
    """Return the revisions and paths, without the subcommand, a pattern, or values of options."""
    explicit = has_any_option(use.arguments, ("-e", "-f"))
    skip = 2 if command == "grep" and not explicit else 1
    operands = list_operands(use.arguments, load_tables().valued.get("git", ()))[skip:]
    flags = (_FLAGS, _GREP_FLAGS) if command == "grep" else (_FLAGS,)
    words = []
    for left, argument in pairwise((Argument(""), *use.arguments)):
        is_option = left.text[:1] == "-" and "=" not in left.text and left.text != "--"
        is_flag = any(flag.fullmatch(left.text) for flag in flags)
        if argument in operands and (is_flag or not is_option):
            words.append(argument.text)
    return words


def _split_revision(word: str) -> str | None:
    """Return the path of `REV:PATH`; None for a revision alone, whatever its message holds."""
    if word.startswith(":/"):
        return None
    revision, mark, path = _BRACED.sub("", word).partition(":")
    return path if mark and revision else None


def _is_chosen(path: str, pattern: str, folder: str) -> bool:
    """Return whether a path of git's command line may choose a file; magic chooses all."""
    if pattern[:1] == ":":
        return True
    place = os.path.normpath(os.path.join(folder, pattern))
    return path == place or path.startswith(f"{place}/") or fnmatchcase(path, place)
