"""What changed between two states of some files: the `files` of a tool result (pure).

before       after                        op
-----------  ---------------------------  ------------------------------------------
none         a file                       created
a file       none                         deleted
a file       other bytes, or not known    modified; a changed mode is noted beside it
a file       the same bytes, other mode   mode
deleted      created, the same bytes      renamed: one record at the new path
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from tape.model.entries import ChangedFile, SavedFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tape.model.entries import BlobRef

NOT_RECORDED = "What commands change in this environment is not recorded."
"""What a checkpoint says that it does not cover, where nobody can look at the files."""


class FileVersion(NamedTuple):
    """A file at one moment, as far as it is known and stored."""

    mode: str | None
    """Kind and permissions as six octal digits; None where the environment does not tell them."""
    digest: str | None
    """SHA-256 of its bytes; None if they were not read."""
    size: int
    blob: BlobRef | None = None
    """Its bytes, where they are stored."""
    why: str = ""
    """Why they are not."""

    def build_saved_file(self) -> SavedFile:
        """Return the bytes as a checkpoint lists them."""
        if self.blob is not None:
            return SavedFile.from_blob(self.blob)
        return SavedFile.from_skipped(self.digest, self.size, self.why)


def list_changes(
    before: Mapping[str, FileVersion | None], after: Mapping[str, FileVersion | None]
) -> tuple[ChangedFile, ...]:
    """Return what is not as before, by path; both have the same paths."""
    changes = {}
    for path in sorted(before):
        change = _compare_versions(path, before[path], after[path])
        if change is not None:
            changes[path] = change
    return tuple(_join_renames(changes).values())


def _compare_versions(
    path: str, old: FileVersion | None, new: FileVersion | None
) -> ChangedFile | None:
    if old is None and new is None:
        return None
    if old is None or new is None:
        op = "created" if old is None else "deleted"
    elif old.digest == new.digest and (old.digest is not None or old == new):
        if old.mode == new.mode:
            return None
        op = "mode"
    else:
        op = "modified"
    reasons = (version.why for version in (old, new) if version is not None and version.why)
    return ChangedFile(
        path=path,
        op=op,  # type: ignore[arg-type]
        before=old.digest if old else None,
        after=new.digest if new else None,
        mode=new.mode if new else None,
        before_mode=old.mode if old else None,
        before_blob=old.blob if old else None,
        after_blob=new.blob if new else None,
        why="; ".join(dict.fromkeys(reasons)) or None,
    )


def _join_renames(changes: dict[str, ChangedFile]) -> dict[str, ChangedFile]:
    """Make one record of a deleted and a created file with the same bytes, each used once.

    Where several have the same bytes, those with the same name go together first.
    """
    gone: dict[tuple[str, str], list[str]] = {}
    for path, change in changes.items():
        if change.op == "deleted" and change.before is not None:
            gone.setdefault((change.before, (change.before_mode or "")[:3]), []).append(path)
    joined = dict(changes)
    created = [
        change for change in changes.values() if change.op == "created" and change.after is not None
    ]
    for has_same_name in (True, False):
        for change in created:
            sources = gone.get((change.after or "", (change.mode or "")[:3]), [])
            fits = [
                path
                for path in sources
                if not has_same_name or _get_name(path) == _get_name(change.path)
            ]
            if joined[change.path].op != "created" or not fits:
                continue
            sources.remove(fits[0])
            old = joined.pop(fits[0])
            joined[change.path] = replace(
                change,
                op="renamed",
                source=old.path,
                before=old.before,
                before_mode=old.before_mode,
                before_blob=old.before_blob,
            )
    return joined


def _get_name(path: str) -> str:
    return path.rpartition("/")[2]
