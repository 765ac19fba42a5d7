"""What the chunks of a tape say of it, for a catalogue: facts for lists, and words to search; pure.

Chunks are added in order, and a state continues where the one before stopped: however the chunks
are cut or merged, the outcome is the same. A redaction makes what was read before worthless: who
adds it reads the tape again, from its first chunk.
"""

from __future__ import annotations

import re
from contextlib import suppress
from math import fsum
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct, field

from ..clock import parse_timestamp
from ..errors import Damaged, TapeError
from ..index.contents import NO_CONTENTS, extract_contents
from ..index.full_text import space_cjk
from ..index.tape_record import PhaseTally
from ..model.line import JSON_ERRORS, has_valid_data, read_header
from ..store.phase import ORIGIN, order_phases
from ..store.refs import JOURNAL_NAME, decode_ref_line
from ..store.store import TapeIdentity
from ..store.tape import INFO_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .objects import Chunk

HEAD_CHARS = 200
"""How much of a text is shown of an entry that was found."""
_MAX_CHARS = 200_000
"""How much of a text is searched."""
_NO_WORD = re.compile(r"[\W_]+")


class SaidEntry(NamedTuple):
    """An entry with words."""

    entry: str
    time: int
    """In µs since 1970."""
    type: str
    head: str
    words: str
    """Its words in small letters, with a space between."""


class CatalogueFacts(NamedTuple):
    """What a list says of a tape; times are in µs since 1970."""

    title: str | None
    project: str | None
    repository: str | None
    person: str | None
    machine: str | None
    model: str | None
    created: int | None
    updated: int | None
    entries: int
    cost: float | None


class _Info(TapeIdentity):
    created: str = ""


class TapeState(Struct):
    """What is known of a tape after some chunks."""

    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of each phase that were read."""
    tallies: dict[str, PhaseTally] = field(default_factory=dict)
    title: str | None = None
    created: str = ""
    redacted: set[str] = field(default_factory=set)
    """Entries that are read as if their data were gone."""
    gone: str = ""
    """Why the tape was taken from the remote."""


class RedactionFound(TapeError):
    """A chunk redacts entries that may have been read."""

    def __init__(self, targets: frozenset[str]) -> None:
        super().__init__("entries were redacted")
        self.targets = targets


def read_words(text: str) -> str:
    """Return the words of a text as a catalogue keeps and asks for them."""
    return _NO_WORD.sub(" ", space_cjk(text[:_MAX_CHARS])).strip().lower()


def read_contents(read: Callable[[], Iterable[Chunk]]) -> tuple[TapeState, list[SaidEntry]]:
    """Return state and entries of a tape of which `read` gives all chunks; raise Damaged."""
    redacted: set[str] = set()
    while True:
        state = TapeState(redacted=redacted)
        try:
            texts = [entry for chunk in read() for entry in add_chunk(state, chunk)]
        except RedactionFound as error:
            redacted |= error.targets
        else:
            return state, [] if state.gone else texts


def add_chunk(state: TapeState, chunk: Chunk) -> list[SaidEntry]:
    """Add a chunk to the state of its tape, and return the entries with words in it.

    Raises RedactionFound for a chunk that redacts entries, unless `state` knows them, and Damaged
    for one that does not continue what was read.
    """
    if chunk.head.gone:
        state.sizes, state.tallies, state.title, state.created = {}, {}, None, ""
        state.gone = chunk.head.gone
        return []
    texts: list[SaidEntry] = []
    for part, data in chunk.iter_parts():
        if part.file == JOURNAL_NAME:
            _add_journal(state, data)
        elif part.file == INFO_NAME:
            with suppress(*JSON_ERRORS):
                state.created = msgspec.json.decode(data, type=_Info).created
        elif part.file.endswith(".jsonl"):
            phase = part.file.split("/")[1]
            size = state.sizes.get(phase, 0)
            if part.offset > size:
                raise Damaged(f"{phase}: bytes {size} to {part.offset} are in no chunk", file=phase)
            rest = data[size - part.offset :]
            texts += _add_lines(state, phase, size, rest)
            state.sizes[phase] = size + len(rest)
    return texts


def _add_journal(state: TapeState, data: bytes) -> None:
    for line in data.split(b"\n")[:-1]:
        parsed = decode_ref_line(line)
        if parsed is not None and parsed.title is not None:
            state.title = parsed.title


def _add_lines(state: TapeState, phase: str, offset: int, data: bytes) -> list[SaidEntry]:
    texts: list[SaidEntry] = []
    if phase == ORIGIN:  # what was copied from another tape is texts there
        return texts
    tally = state.tallies.setdefault(phase, PhaseTally())
    for line in data.split(b"\n")[:-1]:
        try:
            header = read_header(line)
        except TapeError:  # who pulls is told
            offset += len(line) + 1
            continue
        is_gone = header.id in state.redacted or not has_valid_data(line, header)
        told = NO_CONTENTS if is_gone else extract_contents(header, line)
        if targets := frozenset(told.targets) - state.redacted:
            raise RedactionFound(targets)
        tally.add(offset, header, told)
        offset += len(line) + 1
        text = "\n".join(filter(None, told.words or ()))
        if words := read_words(text):
            head = " ".join(text[: 4 * HEAD_CHARS].split())[:HEAD_CHARS]
            texts.append(
                SaidEntry(header.id, parse_timestamp(header.time), header.type, head, words)
            )
    return texts


def build_facts(state: TapeState) -> CatalogueFacts:
    """Return what a list says of a tape."""
    tallies = [state.tallies[name] for name in sorted(state.tallies, key=order_phases)]
    costs = [tally.cost for tally in tallies if tally.cost is not None]
    moved = max(tallies, key=lambda tally: tally.moved, default=PhaseTally())
    by_time = sorted(tallies, key=lambda tally: tally.time, reverse=True)
    prompts = (tally.prompt for tally in tallies if tally.prompt)
    return CatalogueFacts(
        state.title or next(prompts, None),
        moved.project,
        moved.repository,
        _choose_first(tally.person for tally in by_time),
        _choose_first(tally.machine for tally in by_time),
        max(tallies, key=lambda tally: tally.answered, default=PhaseTally()).model,
        parse_timestamp(state.created) if state.created else None,
        parse_timestamp(by_time[0].time) if by_time else None,
        sum(tally.entries for tally in tallies),
        fsum(costs) if costs else None,
    )


def _choose_first(values: Iterable[str | None]) -> str | None:
    return next((value for value in values if value is not None), None)
