"""The recorder: one open branch and the path it ends, kept in step with the tape.

The tape is the bus: what is appended here is what the next model call is computed from. There is
no other history.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

from tape.branches import at
from tape.damage import warn_of_damage
from tape.entries import Anchor, Assistant, Model, State

from ..errors import NothingToUndo

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tape.blocks import BlobRef
    from tape.branches import Head
    from tape.entries import Payload
    from tape.line import Entry
    from tape.tape import Tape
    from tape.writer import Durability, Writer

_SPOKEN = frozenset({"user", "assistant"})


class Past(NamedTuple):
    """What of a branch's past stands before a model."""

    path: list[Entry]
    """Entries from the newest anchor, or the root, to the newest one."""
    kept: tuple[Entry, ...]
    """Entries before that anchor which it keeps in view."""


def past(tape: Tape, head: Head, skipped: Callable[[str], None] = warn_of_damage) -> Past:
    """Read what stands before a model at a head; what does not verify goes to `skipped` instead."""
    path = tape.entries(head, to_anchor=True, skipped=skipped)
    anchor = newest_anchor(path)
    return Past(path, tuple(tape.kept(anchor, skipped)) if anchor else ())


def newest_anchor(path: Sequence[Entry]) -> Anchor | None:
    """Return the anchor a path begins with, None where it begins at the root."""
    data = path[0].data if path else None
    return data if isinstance(data, Anchor) else None


def last_model(path: Sequence[Entry]) -> str | None:
    """Return provider/model of who answers at the end of a path; None where nobody did yet."""
    for entry in reversed(path):
        match entry.data:
            case (
                Assistant(provider=provider, model=model) | Model(provider=provider, model=model)
            ) if provider and model:
                return f"{provider}/{model}"
            case Anchor(state=State(model=str(name))) if name:
                return name
            case _:
                pass
    return None


class Recorder:
    """A branch open for writing. A context manager; closing it lets go of branch and tape."""

    def __init__(self, tape: Tape, writer: Writer) -> None:
        self.tape, self.writer = tape, writer
        self.path: list[Entry] = []
        """Entries from the newest anchor, or the root, to the newest one."""
        self.kept: tuple[Entry, ...] = ()
        """Entries before that anchor which it keeps in view."""
        self.skipped: list[str] = []
        """Lines that could not be read, one remark each."""

    @classmethod
    def open(
        cls, tape: Tape, branch: str | None = None, *, durability: Durability = "barrier"
    ) -> Self:
        """Open a branch and read its path; None is the current one, or one of its own beside it."""
        writer = tape.writer(branch, durability=durability)
        try:
            recorder = cls(tape, writer)
            recorder._read()
        except BaseException:
            writer.close()
            raise
        return recorder

    @property
    def branch(self) -> str:
        """The branch that is written."""
        return self.writer.branch

    def head(self) -> Head:
        """Return where the branch stands now; a branch not begun yet stands at its base."""
        if self.branch in self.tape.refs().branches:
            return self.tape.head(self.branch)
        return self.writer.head

    def load(self, blob: BlobRef) -> bytes:
        """Return the bytes of a picture or file on the path; raises NotFound."""
        return self.tape.load(blob)

    def append(self, payload: Payload) -> Entry:
        """Write one entry; durable after the next barrier."""
        entry = self.writer.append(payload)
        self.path.append(entry)
        return entry

    def anchor(self, anchor: Anchor) -> Entry:
        """Begin a phase with this anchor, and go on with what it keeps; durable when it returns."""
        entry = self.writer.anchor(anchor)
        self.kept = tuple(self.tape.kept(anchor, self.skipped.append))
        self.path[:] = [entry]
        return entry

    def undo_anchor(self, *, leave: bool = False) -> Anchor:
        """Go back to where the newest anchor was set, with one journal line; return the anchor.

        Raises NothingToUndo where there is none, and where somebody spoke since, unless `leave`:
        what was said since stays on the tape and leaves the branch.
        """
        anchor = newest_anchor(self.path)
        if anchor is None:
            raise NothingToUndo("nothing to undo: no compaction or handoff on this branch")
        if anchor.base.tape is not None:
            raise NothingToUndo(f"this {anchor.kind} begins a tape: go on in the old one")
        since = sum(entry.type in _SPOKEN for entry in self.path)
        if since and not leave:
            raise NothingToUndo(
                f"{since} message{'s were' if since > 1 else ' was'} said since this "
                f"{anchor.kind}: --leave goes back without what came after (it stays on the tape: "
                "tape log --graph)"
            )
        base = anchor.base
        head = at(self.tape.phases, self.branch, base.phase, base.offset, base.entry)
        self.writer.rewind(head, "undo")
        self._read()
        return anchor

    def _read(self) -> None:
        path, self.kept = past(self.tape, self.head(), self.skipped.append)
        self.path[:] = path

    def barrier(self) -> None:
        """Return when everything appended so far is on the medium."""
        self.writer.barrier()

    def close(self) -> None:
        """Let go of the branch and the tape."""
        try:
            self.writer.close()
        finally:
            self.tape.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
