"""What is left of changes: the version of each file at an entry, and the difference of two; pure.

Changes of a path are those of `changes.list_file_changes`. A rename is two effects: the old path is
gone, the new one holds its bytes.

    changes                                    what is left of them
    -----------------------------------------  -----------------------------------
    created, modified                          created
    created, deleted                           nothing
    modified to the bytes it had before        nothing
    a renamed to b, b modified                 renamed from a, with other bytes
    a renamed to b, b renamed to a             nothing
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .changes import ChangeOp, KnownVersion, PathChange


class FileEffect(NamedTuple):
    """What a run of changes did to one path."""

    path: str
    before: KnownVersion | None
    """Its version before the first change."""
    after: KnownVersion | None
    """Its version after the last one."""
    source: str | None
    """The path under which its bytes were before the run, if it is another one."""
    restored: tuple[KnownVersion | None, ...]
    """The versions that restores among the changes found or left."""
    entry: str
    """Id of the entry of the last change."""
    recorded: bool
    """Whether all its changes were recorded with their bytes."""


class NetChange(NamedTuple):
    """What is left of the changes of one file."""

    path: str
    op: ChangeOp
    source: str | None
    """The old path of a renamed file."""
    before: KnownVersion | None
    after: KnownVersion | None
    entry: str
    recorded: bool


def is_same_version(first: KnownVersion | None, other: KnownVersion | None) -> bool:
    """Return whether two versions certainly are the same file: its bytes, and its mode if known."""
    if first is None or other is None:
        return first is other
    same_mode = first.mode == other.mode or first.mode is None or other.mode is None
    return first.digest is not None and first.digest == other.digest and same_mode


def fold_changes(changes: Iterable[PathChange]) -> dict[str, FileEffect]:
    """Return what a run of changes did to each path, in the order of their last change."""
    effects: dict[str, FileEffect] = {}
    for change in changes:
        origin = None
        if change.source is not None:
            old = effects.get(change.source)
            origin = old.source if old is not None and old.source else change.source
            _add_effect(effects, change, change.source, change.before, None, None)
        before = None if change.source is not None else change.before
        _add_effect(effects, change, change.path, before, change.after, origin)
    return effects


def _add_effect(
    effects: dict[str, FileEffect],
    change: PathChange,
    path: str,
    before: KnownVersion | None,
    after: KnownVersion | None,
    origin: str | None,
) -> None:
    known = effects.pop(path, None)
    first = before if known is None else known.before
    source = origin or (known.source if known is not None and after is not None else None)
    restored = known.restored if known is not None else ()
    if change.is_restore:
        restored = (*restored, before, after)
    recorded = change.recorded and (known is None or known.recorded)
    effects[path] = FileEffect(
        path, first, after, source if source != path else None, restored, change.entry, recorded
    )


def list_net_changes(changes: Iterable[PathChange]) -> list[NetChange]:
    """Return what is left of a run of changes, by path."""
    return _pair_renames(fold_changes(changes))


def compare_paths(first: Sequence[PathChange], other: Sequence[PathChange]) -> list[NetChange]:
    """Return how the files at the end of path `other` differ from those at the end of path `first`.

    Both are the changes of whole paths that begin alike. What one of them never touched is as it
    was before the other did.
    """
    shared = 0
    while shared < min(len(first), len(other)) and first[shared] == other[shared]:
        shared += 1
    mine, theirs = fold_changes(first[shared:]), fold_changes(other[shared:])
    back = {effect.source: path for path, effect in mine.items() if effect.source is not None}
    joined: dict[str, FileEffect] = {}
    for path in (*mine, *(path for path in theirs if path not in mine)):
        a, b = mine.get(path), theirs.get(path)
        if b is None:
            assert a is not None  # it is in one of them
            joined[path] = a._replace(before=a.after, after=a.before, source=back.get(path))
        elif a is None:
            joined[path] = b
        else:
            both = a.recorded and b.recorded
            joined[path] = b._replace(before=a.after, recorded=both)
    return _pair_renames(joined)


def find_states(changes: Iterable[PathChange]) -> dict[str, KnownVersion | None]:
    """Return the version of each file that changed, after the last change."""
    return {path: effect.after for path, effect in fold_changes(changes).items()}


def _pair_renames(effects: Mapping[str, FileEffect]) -> list[NetChange]:
    left = {
        path: effect
        for path, effect in effects.items()
        if not is_same_version(effect.before, effect.after)
    }
    by_path: dict[str, NetChange] = {}
    moved: set[str] = set()
    for path, effect in left.items():
        source = effect.source
        op = name_change(effect.before, effect.after)
        gone = left.get(source) if source is not None else None
        if op == "created" and gone is not None and gone.after is None and source not in moved:
            assert source is not None  # `gone` is there
            moved.add(source)
            by_path[path] = NetChange(
                path, "renamed", source, gone.before, effect.after, effect.entry, effect.recorded
            )
        else:
            by_path[path] = NetChange(
                path, op, None, effect.before, effect.after, effect.entry, effect.recorded
            )
    return [by_path[path] for path in sorted(by_path) if path not in moved]


def name_change(before: KnownVersion | None, after: KnownVersion | None) -> ChangeOp:
    """Return what turns one version of a file into another, which is not the same."""
    if before is None:
        return "created"
    if after is None:
        return "deleted"
    if after.digest is None:
        return "modified"
    return "mode" if before.digest == after.digest else "modified"
