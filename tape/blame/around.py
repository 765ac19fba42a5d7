"""What held when something was done on a tape: the folder worked in, and the newest prompt."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ..blocks import text_of
from ..branches import at
from ..checked import ADVICE
from ..entries import Context, Meta, Start, User
from ..errors import Damaged, TapeError
from ..line import blank_named, data_holds, decode, is_redacted, kind_of, read_header

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..line import Entry
    from ..tape import Tape

_MOVES = frozenset({"start", "meta"})
_ASKS = frozenset({"user", "context"})
_TYPED = frozenset({"steering", "follow_up"})
"""Origins of what a person typed though it is no prompt of its own."""


class Phase(NamedTuple):
    """A phase, and where in it something was said that holds from there on: byte offsets."""

    name: str
    branch: str
    moves: list[int]
    asks: list[int]

    def note(self, offset: int, kind: str) -> None:
        """Keep where a line stands that may change what holds."""
        if kind in _MOVES:
            self.moves.append(offset)
        elif kind in _ASKS:
            self.asks.append(offset)


class _Past(NamedTuple):
    """What held when a phase began."""

    cwd: str | None = None
    prompt: str | None = None


class Around:
    """Answers for one tape; lines that cannot be read are told to `skipped`."""

    def __init__(self, tape: Tape, skipped: Callable[[str], None]) -> None:
        self.tape, self.skipped = tape, skipped
        self._pasts: dict[str, _Past] = {}

    def entry(self, line: bytes) -> Entry | None:
        """Return the entry of a line, None where it does not verify."""
        try:
            header = read_header(line)
            if not data_holds(line, header):
                line = blank_named(line, self.tape.phases.redacted_ids())
                if not is_redacted(line, header):
                    raise Damaged(
                        f"entry {header.id[:12]}: its data does not match its hash; {ADVICE}"
                    )
            return decode(line, self.tape.blobs.text)
        except TapeError as error:
            self.tell(str(error))
            return None

    def tell(self, text: str) -> None:
        """Tell of something on this tape that is left out."""
        self.skipped(f"{self.tape.id[:8]}: {text}")

    def cwd(self, phase: Phase, offset: int) -> str:
        """Return the folder the session worked in at a place; empty where nothing says."""
        own = self._newest(phase, phase.moves, offset, cwd_of)
        return own or self._past(phase.name).cwd or ""

    def prompt(self, phase: Phase, offset: int) -> str | None:
        """Return the first line of the newest prompt before a place."""
        own = self._newest(phase, phase.asks, offset, asked)
        return self._past(phase.name).prompt if own is None else own

    def newest_cwd(self) -> str | None:
        """Return where the tape works now."""
        return self._newest_cwd

    @cached_property
    def _newest_cwd(self) -> str | None:
        lines = (line for _, _, line in self.tape.own_lines() if kind_of(line) in _MOVES)
        moves = [entry for entry in map(self.entry, lines) if entry and cwd_of(entry)]
        return cwd_of(max(moves, key=lambda entry: entry.time, default=None))

    def _newest(
        self, phase: Phase, offsets: list[int], end: int, said: Callable[[Entry | None], str | None]
    ) -> str | None:
        """Return what the newest of these lines before `end` says."""
        with self.tape.phases.open(phase.name) as file:
            entries = (self.entry(file.line_at(at)) for at in reversed(offsets) if at < end)
            return next((text for text in map(said, entries) if text is not None), None)

    def _past(self, phase: str) -> _Past:
        if phase not in self._pasts:
            self._pasts[phase] = self._walked(phase)
        return self._pasts[phase]

    def _walked(self, phase: str) -> _Past:
        """Return what the path that leads to a phase says, read from its end."""
        past = _Past()
        begin = at(self.tape.phases, "", phase, 0)
        for segment in reversed(self.tape.path(begin)[:-1]):
            for _, line in segment.checked_back(self.tell):
                past = self._further(past, line)
                if None not in past:
                    return past
        return past

    def _further(self, past: _Past, line: bytes) -> _Past:
        kind = kind_of(line)
        if kind in _MOVES and past.cwd is None:
            return past._replace(cwd=cwd_of(self.entry(line)))
        if kind in _ASKS and past.prompt is None:
            return past._replace(prompt=asked(self.entry(line)))
        return past


def cwd_of(entry: Entry | None) -> str | None:
    """Return the folder that an entry says is worked in from now on."""
    return entry.data.cwd if entry and isinstance(entry.data, Start | Meta) else None


def asked(entry: Entry | None) -> str | None:
    """Return the first line of what a person typed; None where an entry is nothing of the kind."""
    match entry and entry.data:
        case User(content=content):
            pass
        case Context(origin=origin, content=content) if origin in _TYPED:
            pass
        case _:
            return None
    return text_of(content).strip().partition("\n")[0].rstrip()
