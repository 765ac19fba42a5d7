"""The journal of branches, titles and labels: refs.jsonl, one hashed line per move (tape.md §4).

Invariant: a ref line is the commit point of what it names. Lines are appended only under the lock
`locks/refs`; readers need none. What each line changes (file order is order):

| line with | changes |
|---|---|
| branch, phase, pin null | the branch continues at the end of that phase |
| branch, phase, pin | its head is the pinned entry; the next append opens a new phase |
| current | the branch that is opened when none is named |
| label, entry or null | adds, moves or removes a label |
| title | the title |

So a fork, an undo and a rewind are each one line with a pin: their cost does not depend on the size
of the history. A journal from its first line on, and the state after each line (`a` to `d` are
entries in the order they were written):

| line | current | head of main | head of try |
|---|---|---|---|
| branch main, phase 0001-main-start (start) | main | end of 0001: b | – |
| current main (start) | main | b | – |
| branch try, phase 0001-main-start, pin b (fork) | main | b | b |
| current try (switch) | try | b | b |
| branch try, phase 0002-try (go-on), with c in it | try | b | end of 0002: c, then d |
| branch try, phase 0002-try, pin c (undo) | try | b | c; d stays on disk |

A bad last line is torn: writers move it to quarantine. One further up is damage.

A union with another copy of the tape (`unite`) brings whole phases and lines at once. `.unite/` has
the phases, and then `refs.jsonl` with the lines: from there on the union is decided, and whoever
holds the journal's lock next completes it (`is_union_decided`), if its own program was killed.
"""

from __future__ import annotations

import os
import re
import unicodedata
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ..clock import choose_entry_time, format_timestamp, parse_timestamp, read_clock
from ..errors import Damaged, InvalidName, NotFound, UsageError
from ..model.entries import Place
from ..model.line import JSON_ERRORS, Header, read_header
from ..text import format_names, replace_surrogates
from . import disk
from .locks import hold_lock_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .disk import Folder
    from .phase import Phases


JOURNAL_NAME = "refs.jsonl"
UNITE_FOLDER = ".unite"
"""The folder of a tape in which phases of another copy are collected."""
MAIN_BRANCH = "main"
_HASHED = 24  # offset of the hashed rest: after `{"h":"`, 16 digits and `",`
_BRANCH = r"[a-z0-9][a-z0-9._-]{0,47}\Z"
_MAX_NAME = 48
_RULE = "it must match [a-z0-9][a-z0-9._-]{0,47} without '..', and not be 'refs'"


class Pin(Struct, frozen=True, gc=False):
    """An entry a branch points at: byte offset of its line in the phase, and its id."""

    offset: int
    entry: str


class Move(Struct, frozen=True, gc=False):
    """One move of a branch: its phase, and the pinned entry when it is not that phase's end."""

    branch: str
    phase: str
    pin: Pin | None
    why: str
    time: str


class Refs(Struct, gc=False):
    """The state of the journal: the newest line of a name counts, in file order."""

    branches: dict[str, tuple[Move, ...]]
    """All moves of each branch, oldest first."""
    labels: dict[str, str]
    """Entry id of each label."""
    current: str = MAIN_BRANCH
    title: str | None = None
    damage: tuple[Damaged, ...] = ()
    """Messages about lines with a wrong hash: readers skip them with a warning, writers refuse."""
    size: int = 0
    """Size up to the end of the last good line; the rest is torn."""
    previous: str | None = None
    """The branch that was current before `current`."""
    named: str = ""
    """The newest time of a line of labels, title or current branch."""

    def copy(self) -> Refs:
        """Return an independent copy that the caller may change."""
        return replace(self, branches=self.branches.copy(), labels=self.labels.copy())

    def phases(self) -> set[str]:
        """Return the phases that moves name: the committed ones."""
        return {move.phase for moves in self.branches.values() for move in moves}


class Changes(Struct, gc=False):
    """The changes by a writer or a move: what an index has to read again."""

    branches: set[str] = field(default_factory=set)
    """Branches with new journal lines or new entries."""
    phases: set[str] = field(default_factory=set)
    """Phases with new entries, and the base phases of new ones."""
    begun: set[str] = field(default_factory=set)
    """The new phases."""
    labels: set[str] = field(default_factory=set)
    ends: bool = False
    """Whether the writer ends with them."""
    fails: bool = False
    """Whether it ends as not all of them could be synced."""

    def add(self, other: Changes) -> None:
        """Add the changes of another move or writer."""
        self.branches |= other.branches
        self.phases |= other.phases
        self.begun |= other.begun
        self.labels |= other.labels

    def clear(self) -> None:
        """Remove all changes."""
        for names in (self.branches, self.phases, self.begun, self.labels):
            names.clear()


class RefLine(Struct, gc=False):
    """One line of the journal: what it moves, and when."""

    h: str
    why: str
    time: str
    branch: str | None = None
    phase: str | None = None
    pin: Pin | None = None
    current: str | None = None
    title: str | None = None
    label: str | None = None
    entry: str | None = None


_DECODER = msgspec.json.Decoder(RefLine)


def is_ref_name(name: str) -> bool:
    """Return whether a name may be that of a branch or label."""
    return bool(re.match(_BRANCH, name)) and ".." not in name and name != "refs"


def check_ref_name(kind: str, name: str) -> str:
    """Return a branch or label name that may become part of a path; raise InvalidName."""
    if not is_ref_name(name):
        raise InvalidName(kind, name, _RULE)
    return name


def make_ref_name(text: str) -> str:
    """Return the name of a branch or label that comes nearest to a text; "" if none does.

    "Try Redis!" becomes try-redis, "Größe.." becomes grosse.
    """
    plain = unicodedata.normalize("NFKD", text.replace("ß", "ss").casefold())
    plain = "".join(char for char in plain if not unicodedata.combining(char))
    name = re.sub(r"[^a-z0-9._-]+", "-", plain)
    name = re.sub(r"\.{2,}", ".", name).strip("-._")[:_MAX_NAME].rstrip("-._")
    return name if is_ref_name(name) else ""


def encode_ref_line(fields: dict[str, Any]) -> bytes:
    """Return one journal line, with its hash and newline."""
    rest = msgspec.json.encode(fields)[1:]
    return b'{"h":"%b",%b\n' % (sha256(rest).hexdigest()[:16].encode(), rest)


def decode_ref_line(line: bytes) -> RefLine | None:
    """Return a journal line, given without its newline; None if it does not match its hash."""
    if sha256(line[_HASHED:]).hexdigest()[:16].encode() != line[6:22]:
        return None
    try:
        parsed = _DECODER.decode(line)
        if parsed.h.encode() != line[6:22]:
            return None
        for name in (parsed.branch, parsed.current, parsed.label):
            if name is not None:
                check_ref_name("name", name)
    except (InvalidName, *JSON_ERRORS):
        return None
    return parsed


def replay_journal(data: bytes, onto: Refs | None = None) -> Refs:
    """Return the state that a journal's bytes describe; a torn last line is left out.

    With `onto`, a state without damage, only the bytes after it are read; `onto` is changed.
    """
    refs = Refs({}, {}) if onto is None else onto
    bad, offset = [], refs.size
    for line in data[refs.size :].split(b"\n")[:-1]:
        parsed = decode_ref_line(line)
        if parsed is None:
            # Whether it is torn or damaged depends on what follows it: decided after the last line.
            bad.append(
                Damaged(
                    f"{JOURNAL_NAME}: damaged line at byte {offset}",
                    file=JOURNAL_NAME,
                    offset=offset,
                )
            )
        else:
            _apply_ref_line(refs, parsed)
            # A good line after a bad one moves the size past it, so writers never cut good lines.
            refs.size = offset + len(line) + 1
        offset += len(line) + 1
    # One bad line at the end is what a crash in the middle of a write leaves. Two cannot come from
    # one write, so they are damage.
    behind = sum(1 for damage in bad if (damage.offset or 0) >= refs.size)
    refs.damage = tuple(bad if behind > 1 else bad[: len(bad) - behind])  # a bad last line is torn
    return refs


def _apply_ref_line(refs: Refs, line: RefLine) -> None:
    if line.branch is not None and line.phase is not None:
        # Earlier moves stay: `branch@{1}` and `gong redo` ask where a branch was before.
        move = Move(line.branch, line.phase, line.pin, line.why, line.time)
        refs.branches[line.branch] = (*refs.branches.get(line.branch, ()), move)
        return
    refs.named = max(refs.named, line.time)
    if line.current is not None:
        if line.current != refs.current:
            refs.previous = refs.current
        refs.current = line.current
    elif line.label is not None:
        if line.entry is None:
            refs.labels.pop(line.label, None)
        else:
            refs.labels[line.label] = line.entry
    elif line.title is not None:
        refs.title = line.title


class Journal:
    """refs.jsonl of one tape; `folder` is the tape's own."""

    __slots__ = ("_known", "clock", "folder")

    def __init__(self, folder: Folder, clock: Callable[[], int] = read_clock) -> None:
        self.folder, self.clock = folder, clock
        self._known = (b"", Refs({}, {}))

    def read(self) -> Refs:
        """Return the current state, not to be changed; raise Damaged if the journal is missing.

        Needs no lock.
        """
        return self._replay_new_lines(self._read_bytes())

    def read_lines(self) -> tuple[Refs, list[tuple[str, bytes]]]:
        """Return the current state, and hash `h` and text of each line that it is made of.

        Lines are without their newlines; raises Damaged for one that does not match its hash.
        """
        data = self._read_bytes()
        refs = self._replay_new_lines(data)
        if refs.damage:
            raise refs.damage[0]
        return refs, [(line[6:22].decode(), line) for line in data[: refs.size].split(b"\n")[:-1]]

    def _replay_new_lines(self, data: bytes) -> Refs:
        """Return the state of `data`; only the part that was not read before is parsed."""
        known, state = self._known
        if data == known:
            return state
        # `tape fsck --repair` may have rewritten the file: only a file that begins with the known
        # bytes is continued.
        refs = replay_journal(data, state.copy() if data.startswith(known) else None)
        if refs.size == len(data) and not refs.damage:
            self._known = data, refs
        return refs

    def read_names_since(self, offset: int) -> set[str] | None:
        """Return the branches and labels that lines behind an offset move.

        None where the journal was cut or a line does not match its hash.
        """
        data = self._read_bytes()
        lines = [decode_ref_line(line) for line in data[offset:].split(b"\n")[:-1]]
        if len(data) < offset or None in lines:
            return None
        return {name for line in lines if line for name in (line.branch, line.label) if name}

    def sync_journal(self) -> None:
        """Sync the journal: its last writer may have been killed before its sync."""
        if self.folder.durable:
            with disk.Descriptor(self.folder.file(JOURNAL_NAME)) as file:
                disk.sync_file(file.fd)

    def _read_bytes(self) -> bytes:
        try:
            return self.folder.read(JOURNAL_NAME)
        except FileNotFoundError as error:
            raise Damaged(
                f"{self.folder.name}: {JOURNAL_NAME} is missing", file=JOURNAL_NAME
            ) from error

    @contextmanager
    def open_moves(self, *, changes: Changes | None = None) -> Iterator[Moves]:
        """Hold the lock of the journal: read the state, then append moves.

        Moves are added to `changes`, also if the append then fails. Raises Busy if another process
        holds the lock for longer than `limit_lock_wait` allows.
        """
        with hold_lock_in(self.folder, "refs"):
            data = self._read_bytes()
            with disk.Descriptor(self.folder.file(JOURNAL_NAME, os.O_RDWR | os.O_APPEND)) as file:
                refs = self._replay_new_lines(data)
                # A move after damage would hide which state the branch had: a person decides first.
                if refs.damage:
                    raise Damaged(
                        f"{refs.damage[0]}; nothing was written, `tape fsck` explains it",
                        file=JOURNAL_NAME,
                        offset=refs.damage[0].offset,
                    )
                # Without this cut the new line would be glued to the torn one and lost with it.
                if refs.size < len(data):
                    quarantine_bytes(self.folder, f"refs.{refs.size}", data[refs.size :])
                    os.ftruncate(file.fd, refs.size)
                    if self.folder.durable:
                        disk.sync_file(file.fd)
                moves = Moves(self, file.fd, refs.copy(), Changes() if changes is None else changes)
                if is_union_decided(self.folder):
                    moves.complete_union()
                yield moves


class Moves:
    """The journal while its lock is held."""

    __slots__ = ("_changes", "_fd", "_journal", "_size", "refs")

    def __init__(self, journal: Journal, fd: int, refs: Refs, changes: Changes) -> None:
        self._journal, self._fd, self.refs, self._changes = journal, fd, refs, changes
        self._size = refs.size

    def branch(self, name: str, phase: str, pin: Pin | None, why: str) -> None:
        """Point a branch at a phase, or at a pinned entry."""
        self._changes.branches.add(name)
        self._append_line({"branch": name, "phase": phase, "pin": pin, "why": why})

    def current(self, name: str, why: str = "switch") -> None:
        """Make a branch the current one."""
        self._append_line({"current": name, "why": why})

    def title(self, text: str, why: str = "title") -> None:
        """Give the tape a title."""
        self._append_line({"title": replace_surrogates(text), "why": why})

    def label(self, name: str, entry: str | None) -> None:
        """Label an entry, or remove the label."""
        self._changes.labels.add(name)
        self._append_line({"label": name, "entry": entry, "why": "label"})

    def encode_union(self, lines: Sequence[bytes], decisions: Sequence[dict[str, Any]]) -> bytes:
        """Return lines of another copy's journal, and moves that decide between the two.

        The decisions are newer than all lines, whatever the clocks of the two machines say.
        """
        own = self._journal.folder.read(JOURNAL_NAME)[: self._size].split(b"\n")[:-1]
        times = [line.time for line in map(decode_ref_line, (*own, *lines)) if line]
        time = self._journal.clock()
        if times:
            time = choose_entry_time(parse_timestamp(max(times)), time)
        made = [encode_ref_line({**one, "time": format_timestamp(time)}) for one in decisions]
        return b"".join((*(line + b"\n" for line in lines), *made))

    def adopt(self, lines: Sequence[bytes], decisions: Sequence[dict[str, Any]]) -> None:
        """Append what `encode_union` returns."""
        self.append_lines(self.encode_union(lines, decisions))

    def complete_union(self) -> None:
        """Move the phases in `.unite/` to the others, and append the lines that are beside them.

        What a killed program did of that is not done again.
        """
        folder = self._journal.folder
        with folder.sub(UNITE_FOLDER) as aside, folder.sub("phases") as phases:
            data = aside.read(JOURNAL_NAME)
            for name in aside.names():
                if name != JOURNAL_NAME and not phases.has(name):
                    aside.move(name, phases, name)
        own = {*folder.read(JOURNAL_NAME)[: self._size].split(b"\n")}
        lines = [line for line in data.split(b"\n")[:-1] if line not in own]
        self.append_lines(b"".join(line + b"\n" for line in lines))
        folder.remove(UNITE_FOLDER)
        folder.sync()

    def append_lines(self, data: bytes) -> None:
        """Append whole lines in one write, so that no reader sees one without the others."""
        if not data:
            return
        disk.append_bytes(self._fd, data, self._size)
        if self._journal.folder.durable:
            disk.sync_file(self._fd)
        self._size += len(data)
        replay_journal(self._journal.folder.read(JOURNAL_NAME), self.refs)

    def _append_line(self, fields: dict[str, Any]) -> None:
        time = self._journal.clock()
        if "branch" not in fields and self.refs.named:
            # Of two copies the newest name counts: one whose clock is behind can rename as well.
            time = choose_entry_time(parse_timestamp(self.refs.named), time)
        line = encode_ref_line({**fields, "time": format_timestamp(time)})
        disk.append_bytes(self._fd, line, self._size)
        if self._journal.folder.durable:
            disk.sync_file(self._fd)
        self._size += len(line)
        parsed = decode_ref_line(line[:-1])
        assert parsed is not None
        _apply_ref_line(self.refs, parsed)


def is_union_decided(tape: Folder) -> bool:
    """Return whether a union is to be completed: whoever began it was killed, or is at it."""
    return bool(read_union_phases(tape))


def read_union_phases(tape: Folder) -> set[str]:
    """Return the phases that the lines of such a union name; none where there is none."""
    with suppress(FileNotFoundError, NotADirectoryError), tape.sub(UNITE_FOLDER) as aside:
        lines = map(decode_ref_line, aside.read(JOURNAL_NAME).split(b"\n")[:-1])
        return {line.phase for line in lines if line and line.phase}
    return set()


def quarantine_bytes(folder: Folder, name: str, data: bytes) -> str:
    """Store torn bytes in `quarantine/`, synced, and return the name of the file."""
    with folder.make("quarantine") as quarantine:
        free = quarantine.choose_free_name(name)
        quarantine.create(free, data)
        quarantine.sync()
    folder.sync()  # the first one made that folder
    return free


class Head(NamedTuple):
    """The entry at the end of a branch, or any entry on it."""

    branch: str
    phase: str
    offset: int
    """Offset of the first byte of its line."""
    end: int
    """Offset after its newline: the path includes this phase up to here."""
    header: Header
    pinned: bool = False
    """True if the next append must open a new phase."""
    torn: int = 0
    """Number of bytes after `end` that are not a complete line."""

    @property
    def entry(self) -> str:
        """Id of the entry."""
        return self.header.id

    @property
    def place(self) -> Place:
        """The place of the entry."""
        return Place(phase=self.phase, offset=self.offset, entry=self.header.id)


def find_head(refs: Refs, phases: Phases, branch: str, *, moves_ago: int = 0) -> Head:
    """Return the head of a branch, or its head `moves_ago` ref lines ago."""
    moves = refs.branches.get(branch)
    if not moves:
        raise NotFound(f"no branch {branch!r}; there are: {format_names(refs.branches, branch)}")
    if moves_ago >= len(moves):
        times = "once" if len(moves) == 1 else f"{len(moves)} times"
        raise NotFound(f"branch {branch!r} has moved {times}, not {moves_ago + 1} times")
    move = moves[-1 - moves_ago]
    if move.pin is not None:
        return read_head_at(phases, move.branch, move.phase, move.pin.offset, move.pin.entry)
    with phases.open(move.phase) as file:
        tail = file.tail()
    if tail.header is None:
        raise Damaged(f"{move.phase}: it has no valid entry", file=move.phase, offset=0)
    return Head(
        move.branch, move.phase, tail.offset, tail.end, tail.header, torn=tail.size - tail.end
    )


def read_head_at(
    phases: Phases, branch: str, phase: str, offset: int, entry: str | None = None
) -> Head:
    """Return a head at the entry line at `offset`; raise Damaged if `entry` is not there."""
    with phases.open(phase) as file:
        line = file.line_at(offset)
    header = read_header(line)
    if entry is not None and header.id != entry:
        raise Damaged(
            f"{phase}: byte {offset} should hold entry {entry[:12]}", file=phase, offset=offset
        )
    return Head(branch, phase, offset, offset + len(line) + 1, header, pinned=True)


def fork_branch(
    moves: Moves, phases: Phases, base: Head, name: str | None, why: str = "fork"
) -> str:
    """Start a branch at `base` with one journal line and return its name."""
    name = (
        choose_branch_name(moves.refs, "fork") if name is None else check_ref_name("branch", name)
    )
    if name in moves.refs.branches:
        raise UsageError(f"branch {name!r} already exists; choose another --name")
    pin_branch(moves, phases, name, base, why)
    return name


def pin_branch(moves: Moves, phases: Phases, name: str, to: Head, why: str) -> None:
    """Point a branch at an entry of its tape; the lock of an existing branch must be held."""
    read_head_at(phases, name, to.phase, to.offset, to.entry)  # the entry must be in this tape
    phases.sync(to.phase)
    moves.branch(name, to.phase, Pin(to.offset, to.entry), why)


def switch_branch(moves: Moves, name: str) -> None:
    """Make `name` the current branch."""
    if name not in moves.refs.branches:
        known = format_names(moves.refs.branches, name)
        raise NotFound(f"no branch {name!r}; there are: {known}")
    if name != moves.refs.current:
        moves.current(name)


def choose_branch_name(refs: Refs, stem: str, separator: str = "-", first: int = 1) -> str:
    """Return `stem`, separator and the lowest number no branch ever had."""
    stem, k = stem[:40].rstrip("."), first  # a name may not have two dots in a row
    while f"{stem}{separator}{k}" in refs.branches:
        k += 1
    return f"{stem}{separator}{k}"
