"""`files`: what a path changed in files, the difference between two places, a file as it was."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from posixpath import isabs, join, normpath, relpath
from typing import TYPE_CHECKING, NamedTuple

import click

from ..errors import NotFound, UsageError
from ..files.changes import KnownVersion, list_file_changes
from ..files.git_patch import REGULAR_MODE, PatchSide, build_patch, count_changed_lines
from ..files.states import compare_paths, find_states, list_net_changes
from ..history.entry_lines import read_path
from ..model.entries import BlobRef, Checkpoint, Meta, Start
from ..places.reference import split_range
from ..render.calls import OP_LETTERS, paint_patch_lines
from ..store.tape import Hit
from ..text import SHORT, to_single_line
from .environment import get_current_folder
from .output import as_json, complete_ref, format_examples, print_bytes, print_json, print_utf8
from .resolve import open_entry, open_second_entry
from .terminal import format_table, paint_line, print_lines, print_warning, style_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..files.changes import PathChange
    from ..files.states import NetChange
    from ..model.entries import FileState
    from .group import GlobalOptions

_TYPES = frozenset(
    {"start", "meta", "user", "assistant", "tool.start", "checkpoint", "tool.result"}
)
"""Entry types that say something of files, or of where they are."""


class SavedVersion(NamedTuple):
    """A file as a checkpoint before a call, or a change, found it."""

    n: int
    """Depth of the entry."""
    path: str
    version: KnownVersion | None


class PathFiles(NamedTuple):
    """What a path says of files."""

    ids: list[str]
    """Ids of its entries about files."""
    changes: list[PathChange]
    saved: list[SavedVersion]
    folder: str
    """The folder in force at its end, from the root; "" if unknown."""
    project: str
    """The project it belongs to, else the folder."""


@click.command(
    epilog=format_examples(
        "tape files",
        "tape files -p | git apply -R",
        "tape files 3f2a:main 3f2a:try-redis -p",
        "tape files ^ :main --json",
        "tape files --at @good src/auth.py",
    )
)
@click.argument("a", default="", metavar="[REF]", shell_complete=complete_ref)
@click.argument("b", default="", metavar="[REF2]", shell_complete=complete_ref)
@click.option("-p", "--patch", "as_patch", is_flag=True, help="Print a patch that git applies.")
@click.option("--at", "at", metavar="REF", help="Print FILE, given instead of REF, as it was then.")
@as_json
@click.pass_obj
def files(
    options: GlobalOptions, a: str, b: str, *, as_patch: bool, at: str | None, as_json: bool
) -> None:
    """List the files that a path changed, up to REF, or how they differ between two REFs.

    Shows what is left of all changes: a file that was created and deleted again is not listed. Two
    REFs may be on different branches or tapes: from the files at REF to those at REF2, also written
    REF..REF2. At a prompt they are as they were before its work.

    -p prints the changes as a patch, from the folder of the project, for `git apply`; on a terminal
    binary files are only named. A file whose bytes were not stored is left out with a warning.

    --at REF FILE prints the bytes of a file as they were at an entry; exits with 3 where they are
    not known, and says why.

    --json prints an array of {path, op, from?, before, after, entry}, oldest change first: op is
    created, modified, deleted, renamed, mode or unknown, before and after are SHA-256 or null,
    entry is the one that changed the file last.
    """
    if at is not None:
        if b or not a or as_patch or as_json:
            raise UsageError("--at takes a REF and one FILE: tape files --at REF FILE")
        print_file_at(options, at, a)
        return
    is_range = bool(b)
    if not b and (both := split_range(a)) is not None:
        (a, b), is_range = both, True
    with ExitStack() as opened:
        first_hit = opened.enter_context(open_entry(options, a))
        two = opened.enter_context(open_second_entry(options, first_hit, b)) if is_range else None
        first = read_path_files(first_hit)
        if two is None:
            last, changes = first, list_net_changes(first.changes)
        else:
            last = read_path_files(two)
            changes = compare_paths(first.changes, last.changes)
        order = {change.entry: change.n for change in (*first.changes, *last.changes)}
        changes.sort(key=lambda change: (order[change.entry], change.path))
        hits = [hit for hit in (two, first_hit) if hit is not None]
        if as_json:
            print_json([build_changed_path(change, last.folder) for change in changes])
        elif as_patch:
            print_patch(hits, changes, last)
        else:
            print_lines(format_changes(hits, changes, order, last.folder))
            if not changes:
                print_warning("no file changed")


def read_path_files(hit: Hit) -> PathFiles:
    """Return what the path to an entry says of files."""
    entries = [step.entry for step in read_path(*hit, types=_TYPES)]
    changes = list_file_changes(entries)
    saved = [
        SavedVersion(change.n, change.source or change.path, change.before) for change in changes
    ]
    saved += [SavedVersion(change.n, change.path, None) for change in changes if change.source]
    folder = project = ""
    for entry in entries:
        match entry.data:
            case Start(cwd=cwd, project=root):
                folder, project = cwd, root or ""
            case Meta(cwd=str(cwd)):
                folder = cwd
            case Checkpoint(files=states):
                for state in states:
                    path = normpath(join(folder, state.path))
                    saved.append(SavedVersion(entry.n, path, _read_saved_version(state)))
            case _:
                pass
    if not is_inside(folder, project):
        project = folder
    return PathFiles([entry.id for entry in entries], changes, saved, folder, project)


def _read_saved_version(state: FileState) -> KnownVersion | None:
    saved = state.before
    if saved is None:
        return None
    return KnownVersion(saved.digest, state.mode, saved.blob or None, why=saved.why or None)


def is_inside(path: str, folder: str) -> bool:
    """Return whether a path is below a folder or the folder itself, by its letters."""
    return bool(folder) and f"{path}/".startswith(f"{folder.rstrip('/')}/")


def shorten_path(path: str, folder: str) -> str:
    """Return a path relative to a folder if it is in it, else as it is."""
    return relpath(path, folder) if is_inside(path, folder) else path


def build_changed_path(change: NetChange, folder: str) -> dict[str, object]:
    """Return a change as `--json` prints it."""
    fields: dict[str, object] = {"path": shorten_path(change.path, folder), "op": change.op}
    if change.source is not None:
        fields["from"] = shorten_path(change.source, folder)
    for name, version in (("before", change.before), ("after", change.after)):
        fields[name] = version and version.digest
    return {**fields, "entry": change.entry}


def format_changes(
    hits: Sequence[Hit], changes: Sequence[NetChange], order: dict[str, int], folder: str
) -> list[str]:
    """Return a line per changed file: how, its path, lines added and removed, the newest entry."""
    rows = []
    for change in changes:
        path = to_single_line(shorten_path(change.path, folder))
        if change.source is not None:
            path = f"{to_single_line(shorten_path(change.source, folder))} → {path}"
        letter = OP_LETTERS.get(change.op, "?")
        rows.append(
            (
                letter,
                path,
                _describe_lines(hits, change),
                f"n={order[change.entry]}",
                change.entry[:SHORT],
            )
        )
    return format_table(rows) if rows else []


def _describe_lines(hits: Sequence[Hit], change: NetChange) -> str:
    """Return how many lines were added and removed, or why that is not known."""
    try:
        before, after = _load_sides(hits, change, "")
    except NotFound as error:
        return to_single_line(str(error))
    parts = []
    if before and after and before.mode != after.mode:
        parts.append(to_single_line(f"{before.mode} → {after.mode}"))
    old, new = before.data if before else b"", after.data if after else b""
    if old == new:
        return ", ".join(parts)
    counts = count_changed_lines(old, new)
    if counts is None:
        parts.append("binary")
    else:
        plus = style_text(f"+{counts[0]}", fg="green")
        parts.append(f"{plus} {style_text(f'-{counts[1]}', fg='red')}")
    return ", ".join(parts)


def print_patch(hits: Sequence[Hit], changes: Sequence[NetChange], last: PathFiles) -> None:
    """Print changes as one patch, exact in a pipe; on a terminal for people."""
    is_terminal = sys.stdout.isatty()
    for change in changes:
        try:
            sides = _load_sides(hits, change, last.project)
        except NotFound as error:
            print_warning(f"{shorten_path(change.path, last.folder)} is left out: {error}")
            continue
        if any(side is not None and isabs(side.path) for side in sides):
            print_warning(f"{change.path} is left out: it is outside of {last.project or '?'}")
            continue
        lines = build_patch(*sides, with_bytes=not is_terminal)
        if is_terminal:
            print_lines(paint_patch_lines(lines, paint_line))
        else:
            print_bytes(b"".join(lines))


def _load_sides(
    hits: Sequence[Hit], change: NetChange, folder: str
) -> tuple[PatchSide | None, PatchSide | None]:
    """Return both versions of a changed file with their bytes; raise NotFound where one has none.

    A mode that is not known is that of the other version.
    """
    before, after = change.before, change.after
    modes = [version.mode for version in (after, before) if version and version.mode]
    usual = modes[0] if modes else REGULAR_MODE
    if before and after and before.digest == after.digest and before.digest and not before.blob:
        before, after = (
            side._replace(text="") for side in (before, after)
        )  # only the mode differs
    paths = change.source or change.path, change.path
    first, two = (
        version
        and PatchSide(
            shorten_path(path, folder), load_version(hits, version), version.mode or usual
        )
        for path, version in zip(paths, (before, after), strict=True)
    )
    return first, two


def load_version(hits: Sequence[Hit], version: KnownVersion) -> bytes:
    """Return the bytes of a version of a file; raise NotFound, which says why there are none."""
    if version.text is not None:
        return version.text.encode("utf-8", "surrogatepass")
    if version.blob is None:
        raise NotFound(version.why or "its bytes were not recorded")
    for hit in hits[:-1]:
        try:
            return hit.tape.load(BlobRef(version.blob, 0))
        except NotFound:
            continue
    return hits[-1].tape.load(BlobRef(version.blob, 0))


def print_file_at(options: GlobalOptions, ref: str, file: str) -> None:
    """Print a file as it was at an entry; raise NotFound where that is not known."""
    with open_entry(options, ref) as hit:
        past = read_path_files(hit)
        here = normpath(join(get_current_folder(is_needed=False) or "/", file))
        folders = (past.folder, past.project)
        inside = [normpath(join(folder, file)) for folder in folders if folder]
        where = list(dict.fromkeys((here, os.path.realpath(here), *inside)))
        version = find_version_at(hit, past, where)
        if version is None:
            raise NotFound(f"{file}: there was no such file at {hit.head.entry[:SHORT]}")
        try:
            data = load_version([hit], version)
        except NotFound as error:
            raise NotFound(f"{file} at {hit.head.entry[:SHORT]}: {error}") from error
        print_utf8(data)


def find_version_at(hit: Hit, past: PathFiles, paths: Sequence[str]) -> KnownVersion | None:
    """Return a file as it was at an entry; None if there was none. Raises NotFound.

    Not changed before, it was as the next change or checkpoint on the branch found it.
    """
    states = find_states(past.changes)
    for path in paths:
        if path in states:
            return states[path]
    untouched = _find_untouched(hit, past, paths)
    if untouched is None:
        raise NotFound(
            f"{paths[0]}: its content at {hit.head.entry[:SHORT]} is not on the tape: "
            "no call recorded it"
        )
    return untouched.version


def _find_untouched(hit: Hit, past: PathFiles, paths: Sequence[str]) -> SavedVersion | None:
    """Return what is said of a file that no change before an entry touched: last before, or next.

    What was said before stands, since a call that changes a file finds it first.
    """
    before = [saved for saved in past.saved if saved.path in paths]
    if before:
        return max(before, key=lambda saved: saved.n)
    whole = read_path_files(Hit(hit.tape, hit.tape.head(hit.head.branch)))
    if whole.ids[: len(past.ids)] != past.ids:  # the branch goes another way
        return None
    after = [saved for saved in whole.saved if saved.path in paths and saved.n > hit.head.header.n]
    return min(after, key=lambda saved: saved.n, default=None)
