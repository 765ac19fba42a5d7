"""The recorder: one open branch and the path it ends, kept in step with the tape.

The tape is the bus: what is appended here is what the next model call is computed from. There is
no other history.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from tape.errors import NotFound

if TYPE_CHECKING:
    from tape.blocks import BlobRef
    from tape.branches import Head
    from tape.entries import Payload
    from tape.line import Entry
    from tape.tape import Tape
    from tape.writer import Durability, Writer


class Recorder:
    """A branch open for writing. A context manager; closing it lets go of branch and tape."""

    def __init__(self, tape: Tape, writer: Writer, path: list[Entry]) -> None:
        self.tape, self.writer = tape, writer
        self.path = path
        """Entries from the newest anchor, or the root, to the newest one."""
        self.skipped: list[str] = []
        """Lines that could not be read, one remark each."""

    @classmethod
    def open(
        cls, tape: Tape, branch: str | None = None, *, durability: Durability = "barrier"
    ) -> Self:
        """Open a branch and read its path; None is the current one, or one of its own beside it."""
        writer = tape.writer(branch, durability=durability)
        try:
            recorder = cls(tape, writer, [])
            recorder.path += tape.entries(
                recorder.head(), to_anchor=True, skipped=recorder.skipped.append
            )
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
        tape = self.tape
        while True:
            try:
                return tape.blobs.read(blob.hash)
            except NotFound:
                origin = tape.origin()
                if origin is None:
                    raise
                tape = origin

    def append(self, payload: Payload) -> Entry:
        """Write one entry; durable after the next barrier."""
        entry = self.writer.append(payload)
        self.path.append(entry)
        return entry

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
