"""What calls do to files: checkpoints before them, and the changes after them (tape.md §3).

The agent needs no more of it than the two protocols here; `file_recorder` is the one that records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tape.model.entries import ChangedFile, Checkpoint
    from tape.model.line import Entry
    from tape.store.blobs import Blobs

    from ..env.protocol import ExecutionEnvironment
    from ..tools.tool import PreparedCall


class RecordedFiles(Protocol):
    """The files of one call, from its checkpoint to its changes."""

    @property
    def checkpoint(self) -> Checkpoint | None:
        """What is recorded before the call starts; None where nothing is new."""
        ...

    async def find_changes(self) -> tuple[ChangedFile, ...]:
        """Return what the call has changed, with the bytes stored."""
        ...


class CallRecorder(Protocol):
    """Records what the calls of a session do to files."""

    async def begin_call(
        self,
        prepared: PreparedCall,
        env: ExecutionEnvironment,
        blobs: Blobs,
        path: Sequence[Entry],
    ) -> RecordedFiles | None:
        """Store the state of the files that a call may change; None where it changes none.

        Raises WriteFailed where the disk fails.
        """
        ...

    def close(self) -> None:
        """End what watches the folder."""
        ...
