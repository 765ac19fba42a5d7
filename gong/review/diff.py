"""What changed, from git or a patch: each file with its new text and the lines that are new.

asked for     compared                                  the new text is read from
------------  ----------------------------------------  -----------------------------------
nothing       the last commit with the folder's files   the folder; files not yet added, too
--staged      the last commit with what is staged       what is staged
A..B, COMMIT  those commits; COMMIT with its parent     B
--pr FILE     what the patch says                       the folder where it has the lines, else
                                                        the lines of the patch alone

A first commit, and a folder before it, are compared with an empty one.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..errors import ConfigurationError
from ..git_programs import build_git_variables
from ..subagents.worktree import read_git, run_git

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(?P<first>\d+)(?:,(?P<count>\d+))? @@")
_PARENT = re.compile(r"(?P<commit>.+?)(?:\^1?|~(?P<steps>\d*))")
"""A revision that names the parent of another."""
_ESCAPE = re.compile(r"\\([0-7]{3}|.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_MAX_BYTES = 2_000_000
_DIFF = (
    "diff",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--src-prefix=a/",
    "--dst-prefix=b/",
)


class ReviewedFile(NamedTuple):
    """A file with new lines."""

    path: str
    """Relative to the top of the repository."""
    lines: tuple[str, ...]
    """Its new text; lines that are not known are empty."""
    changed: frozenset[int]
    """Numbers of the new lines, from 1."""
    is_whole: bool = True
    """Whether all lines are known."""

    @property
    def text(self) -> str:
        """Its new text."""
        return "\n".join(self.lines)

    def get_line(self, number: int) -> str:
        """Return a line by its number; empty where there is none."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def has_change(self, first: int, last: int) -> bool:
        """Return whether a line from `first` to `last` is new."""
        return any(number in self.changed for number in range(first, last + 1))


class ReviewedChanges(NamedTuple):
    """What is reviewed."""

    root: str
    """The top of the repository."""
    files: tuple[ReviewedFile, ...]
    patch: str


async def read_changes(
    folder: str,
    environ: Mapping[str, str],
    *,
    revisions: str = "",
    staged: bool = False,
    patch: str | None = None,
) -> ReviewedChanges:
    """Return what changed. Raises ConfigurationError where no repository or no such commit is."""
    variables = build_git_variables(environ, folder)

    async def ask(*words: str) -> str:
        return await read_git(variables, root, "-c", "core.quotePath=true", *words)

    root = folder
    if patch is None or await _is_repository(variables, folder):
        root = await run_git(variables, folder, "rev-parse", "--show-toplevel")
    untracked: list[str] = []
    new = ""
    if patch is None and staged:
        patch, new = await ask(*_DIFF, "--cached"), ":"
    elif patch is None and revisions:
        patch, new = await _compare_revisions(ask, revisions)
    elif patch is None:
        has_commit = await _has_commit(variables, root)
        patch = await ask(*_DIFF, "HEAD" if has_commit else await _find_empty_tree(ask))
        listed = await ask("ls-files", "--others", "--exclude-standard", "-z")
        untracked = [path for path in listed.split("\0") if path]
    files = []
    for path, added in parse_patch(patch):
        if new:
            lines = _split_lines(await ask("show", f"{new}{path}"))
        else:
            lines = _read_lines(Path(root, path))
        files.append(_build_file(path, lines, added))
    for path in untracked:
        lines = _read_lines(Path(root, path))
        files.append(ReviewedFile(path, lines, frozenset(range(1, len(lines) + 1))))
    ordered = sorted((file for file in files if file.changed), key=lambda file: file.path)
    return ReviewedChanges(root, tuple(ordered), patch)


async def _compare_revisions(ask: Callable[..., Awaitable[str]], revisions: str) -> tuple[str, str]:
    """Return the patch of a range or of one commit, and what `git show` names its end by."""
    old, dots, end = revisions.partition("..")
    base = old if dots else f"{old}^"
    new = (end.lstrip(".") or "HEAD") if dots else old
    parent = _PARENT.fullmatch(base)
    if parent is not None and await _is_root(ask, parent):
        ends: tuple[str, ...] = (await _find_empty_tree(ask), new)
    else:
        ends = (revisions,) if dots else (base, new)
    return await ask(*_DIFF, *ends, "--"), f"{new}:"


async def _is_root(ask: Callable[..., Awaitable[str]], parent: re.Match[str]) -> bool:
    """Return whether the commit whose parent is meant has none, also outside a shallow clone."""
    steps = int(parent["steps"] or 1) - 1
    commit = f"{parent['commit']}~{steps}^{{commit}}"
    head, _, _ = (await ask("cat-file", "commit", commit)).partition("\n\n")
    return "\nparent " not in head


async def _find_empty_tree(ask: Callable[..., Awaitable[str]]) -> str:
    return (await ask("hash-object", "-t", "tree", "--stdin")).strip()


def _build_file(path: str, lines: tuple[str, ...], added: dict[int, str]) -> ReviewedFile:
    """Return a file; where its text is not that of the patch, with the patch's lines alone."""
    get_line = dict(enumerate(lines, 1)).get
    is_whole = all(get_line(number) == text for number, text in added.items())
    if not is_whole:
        lines = tuple(added.get(number, "") for number in range(1, max(added) + 1))
    return ReviewedFile(path, lines, frozenset(added), is_whole)


async def _is_repository(variables: Mapping[str, str], folder: str) -> bool:
    return await _can_parse(variables, folder, "--show-toplevel")


async def _has_commit(variables: Mapping[str, str], folder: str) -> bool:
    return await _can_parse(variables, folder, "--verify", "HEAD")


async def _can_parse(variables: Mapping[str, str], folder: str, *words: str) -> bool:
    try:
        await run_git(variables, folder, "rev-parse", *words)
    except ConfigurationError:
        return False
    return True


def _read_lines(file: Path) -> tuple[str, ...]:
    """Return the lines of a text file; nothing of a link, a binary file, or a very large one."""
    try:
        if file.is_symlink() or not file.is_file() or file.stat().st_size > _MAX_BYTES:
            return ()
        data = file.read_bytes()
    except OSError:
        return ()
    if b"\0" in data:
        return ()
    return _split_lines(data.decode("utf-8", "surrogateescape"))


def _split_lines(text: str) -> tuple[str, ...]:
    return tuple(line.removesuffix("\r") for line in text.removesuffix("\n").split("\n"))


def parse_patch(patch: str) -> Iterator[tuple[str, dict[int, str]]]:
    """Yield the files of a unified diff with their new lines by number; pure.

    A file that was deleted or has no new lines is left out.
    """
    path, added, number, left = "", dict[int, str](), 0, 0
    for line in patch.split("\n"):
        if left > 0 and line[:1] in {"+", " ", ""}:
            if line.startswith("+"):
                added[number] = line[1:].removesuffix("\r")
            number, left = number + 1, left - 1
        elif line.startswith("+++ "):
            if path and added:
                yield path, added
            path, added = _read_path(line[4:]), {}
        elif (match := _HUNK.match(line)) is not None:
            number, left = int(match["first"]), int(match["count"] or 1)
    if path and added:
        yield path, added


def _read_path(text: str) -> str:
    """Return the path of a `+++` line; empty for a file that is gone."""
    if text.startswith('"'):
        text = _parse_quoted(text[1:].rpartition('"')[0])
    else:
        text = text.partition("\t")[0].removesuffix("\r")
    return "" if text == "/dev/null" else text.removeprefix("b/")


def _parse_quoted(text: str) -> str:
    def decode(match: re.Match[str]) -> str:
        escape = match[1]
        return chr(int(escape, 8)) if len(escape) > 1 else _ESCAPED.get(escape, escape)

    raw = _ESCAPE.sub(decode, text)
    return raw.encode("latin-1", "replace").decode("utf-8", "surrogateescape")
