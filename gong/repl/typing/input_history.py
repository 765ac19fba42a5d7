"""The prompts of earlier sessions in this project, for Up and Ctrl+R.

They are read from the tapes, newest session first, in a thread, so that no key waits for them. What
is typed in this conversation comes first; commands are in the history of this conversation only.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from prompt_toolkit.history import History, ThreadedHistory

from tape.errors import TapeError
from tape.folders import locate_repository
from tape.index.library import list_tapes
from tape.model.entries import Text, User
from tape.model.line import decode_line, describe_blob_head, read_type
from tape.remote.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tape.store.tape import Tape

MAX_TAPES, MAX_PROMPTS = 100, 1000
"""Sessions and prompts that are read at most."""


class _ProjectHistory(History):
    """The prompts on the tapes of one project."""

    def __init__(self, home: Path, folder: str) -> None:
        super().__init__()
        self._home, self._folder = home, folder

    def load_history_strings(self) -> Iterator[str]:
        """Yield the prompts, newest session first; called in a thread of its own."""
        with suppress(TapeError, OSError):  # a store that cannot be read: then there are none
            yield from iter_project_prompts(self._home, self._folder)

    def store_string(self, string: str) -> None:
        """Do nothing: the session records its prompts."""


def open_history(home: Path, folder: str) -> History:
    """Return the history of the project that a folder is in, from the store at `home`."""
    return ThreadedHistory(_ProjectHistory(home, folder))


def iter_project_prompts(home: Path, folder: str) -> Iterator[str]:
    """Yield each prompt of the project once, of the newest session first, newest first.

    The project is the repository that the folder is in, or else the folder. Raises TapeError and
    OSError where the store cannot be read; a damaged tape is left out.
    """
    top = locate_repository(folder)
    seen: set[str] = set()
    with open_store(home) as library:
        cwd = None if top else folder
        for row in list_tapes(*library, cwd=cwd, project=top, limit=MAX_TAPES):
            with suppress(TapeError, OSError), library.store.open(row.id) as tape:
                for prompt in _iter_tape_prompts(tape):
                    if prompt.strip() and prompt not in seen:
                        seen.add(prompt)
                        yield prompt
                        if len(seen) == MAX_PROMPTS:
                            return


def _iter_tape_prompts(tape: Tape) -> Iterator[str]:
    for segment in tape.walk_path_back(tape.head()):
        for _, line in segment.read_checked_lines_back(lambda _: None):
            if read_type(line) != User.entry_type:
                continue
            data = decode_line(line, describe_blob_head).data
            if isinstance(data, User):
                yield next((block.text for block in data.content if isinstance(block, Text)), "")
