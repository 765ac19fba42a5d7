"""What held when something was done on a tape: the folder worked in, and the newest prompt."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ..blocks import join_texts
from ..branches import read_head_at
from ..checked import FSCK_ADVICE
from ..entries import Context, Meta, Start, User
from ..errors import Damaged, TapeError
from ..line import (
    blank_redacted_data,
    decode_line,
    has_valid_data,
    is_data_redacted,
    read_header,
    read_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..line import Entry
    from ..tape import Tape

_MOVES = frozenset({"start", "meta"})
_ASKS = frozenset({"user", "context"})
_TYPED = frozenset({"steering", "follow_up"})
"""Origins of what a person typed though it is no prompt of its own."""


class PhaseNotes(NamedTuple):
    """A phase, and where in it something was said that holds from there on: byte offsets."""

    name: str
    branch: str
    moves: list[int]
    asks: list[int]

    def note_line(self, offset: int, kind: str) -> None:
        """Keep where a line stands that may change what holds."""
        if kind in _MOVES:
            self.moves.append(offset)
        elif kind in _ASKS:
            self.asks.append(offset)


class _PhaseContext(NamedTuple):
    """What held when a phase began."""

    cwd: str | None = None
    prompt: str | None = None


class WorkContext:
    """Answers for one tape; lines that cannot be read are told to `skipped`."""

    def __init__(self, tape: Tape, skipped: Callable[[str], None]) -> None:
        self.tape, self.skipped = tape, skipped
        self._pasts: dict[str, _PhaseContext] = {}

    def entry(self, line: bytes) -> Entry | None:
        """Return the entry of a line, None where it does not verify."""
        try:
            header = read_header(line)
            if not has_valid_data(line, header):
                line = blank_redacted_data(line, self.tape.phases.redacted_ids())
                if not is_data_redacted(line, header):
                    raise Damaged(
                        f"entry {header.id[:12]}: its data does not match its hash; {FSCK_ADVICE}"
                    )
            return decode_line(line, self.tape.blobs.text)
        except TapeError as error:
            self.report_skipped(str(error))
            return None

    def report_skipped(self, text: str) -> None:
        """Tell of something on this tape that is left out."""
        self.skipped(f"{self.tape.id[:8]}: {text}")

    def cwd(self, phase: PhaseNotes, offset: int) -> str:
        """Return the folder the session worked in at a place; empty where nothing says."""
        own = self._read_newest(phase, phase.moves, offset, read_cwd)
        return own or self._load_phase_context(phase.name).cwd or ""

    def prompt(self, phase: PhaseNotes, offset: int) -> str | None:
        """Return the first line of the newest prompt before a place."""
        own = self._read_newest(phase, phase.asks, offset, read_prompt)
        return self._load_phase_context(phase.name).prompt if own is None else own

    def find_newest_cwd(self) -> str | None:
        """Return where the tape works now."""
        return self._newest_cwd

    @cached_property
    def _newest_cwd(self) -> str | None:
        lines = (line for _, _, line in self.tape.iter_own_lines() if read_type(line) in _MOVES)
        moves = [entry for entry in map(self.entry, lines) if entry and read_cwd(entry)]
        return read_cwd(max(moves, key=lambda entry: entry.time, default=None))

    def _read_newest(
        self,
        phase: PhaseNotes,
        offsets: list[int],
        end: int,
        said: Callable[[Entry | None], str | None],
    ) -> str | None:
        """Return what the newest of these lines before `end` says."""
        with self.tape.phases.open(phase.name) as file:
            entries = (self.entry(file.line_at(at)) for at in reversed(offsets) if at < end)
            return next((text for text in map(said, entries) if text is not None), None)

    def _load_phase_context(self, phase: str) -> _PhaseContext:
        if phase not in self._pasts:
            self._pasts[phase] = self._walk_phase_context(phase)
        return self._pasts[phase]

    def _walk_phase_context(self, phase: str) -> _PhaseContext:
        """Return what the path that leads to a phase says, read from its end."""
        past = _PhaseContext()
        begin = read_head_at(self.tape.phases, "", phase, 0)
        for segment in reversed(self.tape.path(begin)[:-1]):
            for _, line in segment.checked_lines_back(self.report_skipped):
                past = self._extend_context(past, line)
                if None not in past:
                    return past
        return past

    def _extend_context(self, past: _PhaseContext, line: bytes) -> _PhaseContext:
        kind = read_type(line)
        if kind in _MOVES and past.cwd is None:
            return past._replace(cwd=read_cwd(self.entry(line)))
        if kind in _ASKS and past.prompt is None:
            return past._replace(prompt=read_prompt(self.entry(line)))
        return past


def read_cwd(entry: Entry | None) -> str | None:
    """Return the folder that an entry says is worked in from now on."""
    return entry.data.cwd if entry and isinstance(entry.data, Start | Meta) else None


def read_prompt(entry: Entry | None) -> str | None:
    """Return the first line of what a person typed; None where an entry is nothing of the kind."""
    match entry and entry.data:
        case User(content=content):
            pass
        case Context(origin=origin, content=content) if origin in _TYPED:
            pass
        case _:
            return None
    return join_texts(content).strip().partition("\n")[0].rstrip()
