"""Verify a remote: all of it is pulled into an empty store, as after the loss of every machine.

What a pull refuses is a finding, and so is what `verify` finds in the pulled tapes, a chunk that no
line of the push log names, and what should have been erased and is there. The last two are repaired
by what an interrupted push or erasure would have done next, and chunks are made again from what is
here (`rebuilding`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ..check.finding import Counts
from ..check.verify import verify
from ..errors import Damaged, TapeError
from ..model.line import blank_redacted_data, read_id
from ..store.recorded_tape import TapeFolders
from .cursor import Cursor
from .erasure import erase_redacted
from .objects import (
    LOG_PREFIX,
    REMOTE_KEY,
    TAPES_PREFIX,
    LogEntry,
    decode_log,
    decode_remote_info,
    encode_log,
    make_gone_key,
    make_log_key,
    parse_chunk_key,
    parse_log_key,
)
from .pull import pull_tape
from .registry import find_catalogue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..store.store import Store
    from .remote import Remote


class RemoteFinding(NamedTuple):
    """Something that is wrong at a remote."""

    tape: str
    """Its id; "" where it is about the whole remote."""
    message: str
    repair: Callable[[], object] | None = None
    """What ends it; None if nothing here can."""


class RemoteCounts(NamedTuple):
    """How much a remote holds."""

    tapes: int
    chunks: int
    bytes: int


def verify_remote(
    remote: Remote,
    empty: Store,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    find_rebuild: Callable[[str, int], Callable[[], object] | None] = lambda _tape, _seq: None,
) -> Iterator[RemoteFinding]:
    """Yield what is wrong at a remote; `empty` is a store that is filled with its tapes.

    `find_rebuild` gets a tape that cannot be pulled and the number of its newest chunk; it returns
    what makes the damaged ones again, or None.
    """
    try:
        decode_remote_info(remote.read(REMOTE_KEY))
    except TapeError as error:
        yield RemoteFinding("", f"{REMOTE_KEY}: {error}")
    newest, nonempty = _list_tapes(remote)
    empty.open_tapes_folder().close()
    folders = TapeFolders(empty)
    with Cursor.open(empty.path, "verified") as cursor:
        for number, (tape, seq) in enumerate(sorted(newest.items())):
            progress(number, len(newest))
            outcome = pull_tape(empty, remote, cursor, folders, tape, seq)
            if outcome.error is not None:
                yield RemoteFinding(tape, outcome.error, find_rebuild(tape, seq))
        gone = cursor.read_gone()
    yield from _find_unlogged(remote, newest)
    for listed in remote.list(make_gone_key("tape", "")):
        tape = listed.key.rpartition("/")[2]
        if nonempty.get(tape, 0) > (tape in gone):
            short = tape[:8]
            yield RemoteFinding(
                tape,
                f"it was to be taken from here, and is not: `tape unpush {short}` completes it",
            )
    redacted = {listed.key.rpartition("/")[2] for listed in remote.list(make_gone_key("entry", ""))}
    for name in empty.folders():
        yield from _verify_tape(remote, empty, name, redacted)
    catalogue = find_catalogue(remote)
    for tape, message in () if catalogue is None else catalogue.check(progress):
        yield RemoteFinding(tape, f"{message}: `tape remote verify --rebuild` makes it again")


def count_objects(remote: Remote) -> RemoteCounts:
    """Return how much a remote holds, by one list."""
    tapes, chunks, size = set(), 0, 0
    for listed in remote.list(TAPES_PREFIX):
        place = parse_chunk_key(listed.key)
        if place is not None and listed.size:
            tapes.add(place.tape)
            chunks, size = chunks + 1, size + listed.size
    return RemoteCounts(len(tapes), chunks, size)


def _list_tapes(remote: Remote) -> tuple[dict[str, int], dict[str, int]]:
    """Return for each tape the number of its newest chunk, and how many are not empty."""
    newest: dict[str, int] = {}
    nonempty: dict[str, int] = {}
    for listed in remote.list(TAPES_PREFIX):
        if place := parse_chunk_key(listed.key):
            newest[place.tape] = place.seq
            nonempty[place.tape] = nonempty.get(place.tape, 0) + bool(listed.size)
    return newest, nonempty


def _find_unlogged(remote: Remote, newest: dict[str, int]) -> Iterator[RemoteFinding]:
    """Yield the chunks that no line of the push log names: a pull would miss them."""
    logged: dict[str, int] = {}
    end = 0
    keys = [listed.key for listed in remote.list(LOG_PREFIX) if parse_log_key(listed.key)]
    for key, data in zip(keys, remote.read_many(keys), strict=True):
        end = parse_log_key(key) or end
        try:
            entries = decode_log(key, data or b"[]")
        except Damaged as error:  # what it named is told below
            yield RemoteFinding("", str(error), partial(remote.replace, key, b"[]"))
            continue
        for tape, seq, _ in entries:
            logged[tape] = max(seq, logged.get(tape, 0))
    for tape, seq in newest.items():
        if seq > logged.get(tape, 0):
            message = f"no line of the push log names its chunk {seq}"
            write_line = partial(_write_log_line, remote, end + 1, LogEntry(tape, seq))
            yield RemoteFinding(tape, message, write_line)


def _write_log_line(remote: Remote, number: int, entry: LogEntry) -> None:
    while not remote.create(make_log_key(number), encode_log([entry])):
        number += 1


def _verify_tape(
    remote: Remote, store: Store, name: str, redacted: set[str]
) -> Iterator[RemoteFinding]:
    """Yield what is wrong with a tape that was pulled."""
    with store.open_folder(name) as tape:
        for finding in verify(tape, Counts()):
            if finding.level != "note":
                yield RemoteFinding(tape.id, f"{finding.file}: {finding.message}")
        there = {
            entry
            for _, _, line in tape.phases.read_all_lines()
            if (entry := read_id(line)) in redacted and blank_redacted_data(line, {entry}) != line
        }
    if there:
        message = f"the data of {len(there)} redacted entries is there"
        note = {"why": "redacted before"}
        yield RemoteFinding(tape.id, message, partial(erase_redacted, remote, tape.id, there, note))
