"""What a tape has of a session: each entry by what it follows, its type and its content.

An import takes an entry once, for the step that has the same content after the same entry. Other
entries may stand between two steps:

    steps      1─2─3
    the tape   1─2─3       3 is found below 2
    the tape   1─2─b─3     also where a branch begins between them (b)
    the tape   1─2─r─3     and where remarks do (r), but by `take_said` only
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from ..model.entries import Anchor, Assistant, Branch, Context, Meta, Start, ToolResult, User
from ..model.line import encode_payload, read_header
from ..store.refs import read_head_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..model.entries import Payload
    from ..store.refs import Head
    from ..store.tape import Tape

_CHANGING = frozenset({Assistant.entry_type, ToolResult.entry_type})
"""Types of entries that a source may give another time with other words."""
_COMPLETED = frozenset({Meta.entry_type})
"""Types of entries to which an import adds what this machine knows."""
SAID = frozenset(payload.entry_type for payload in (User, Assistant, ToolResult, Context, Anchor))
"""Types of entries that are the same in a copied history; those of others may differ."""


class EntryPlace(NamedTuple):
    """Where an entry of the tape is."""

    id: str
    n: int
    phase: str
    offset: int


class RecordedEntries:
    """The entries of a tape that no step was found for yet."""

    def __init__(
        self, tape: Tape, strip_changes: Callable[[Payload], Payload] | None = None
    ) -> None:
        self._tape, self._strip_source_changes = tape, strip_changes
        self.start = EntryPlace("", 0, "", 0)
        """The tape's start entry."""
        self.branch_starts: dict[str, str] = {}
        """First entry of a branch → the one it begins after."""
        self._below: dict[tuple[str, str, str], list[EntryPlace]] = {}
        """Entry, type and content of what follows it → that, where no step was found there yet."""
        self._changing: dict[tuple[str, str], list[str]] = {}
        """Entry and type → content of what follows it, where the source may change that."""
        self._parents: set[str] = set()
        """Entries that something follows."""
        self._joints: dict[str, list[str]] = {}
        """Entry → first entries of the branches from it."""
        self._silent: dict[str, list[str]] = {}
        """Entry → remarks that follow it."""

    def read(self) -> None:
        """Take note of what the tape has."""
        committed = self._tape.refs().phases()
        for phase, offset, line in self._tape.phases.read_all_lines():
            if phase not in committed:
                continue
            header = read_header(line)
            place, parent = EntryPlace(header.id, header.n, phase, offset), header.parent_id or ""
            if header.type == Start.entry_type:
                self.start = place
            elif header.type == Branch.entry_type:
                self._joints.setdefault(parent, []).append(header.id)
                self.branch_starts[header.id] = parent
            else:
                kind = header.type
                content = "" if kind == Anchor.entry_type else header.dh
                self._below.setdefault((parent, kind, content), []).append(place)
                if kind not in SAID:
                    self._silent.setdefault(parent, []).append(header.id)
                if kind in _COMPLETED or (kind in _CHANGING and self._strip_source_changes):
                    self._changing.setdefault((parent, kind), []).append(content)
                self._parents.add(parent)

    def take(self, spot: EntryPlace, kind: str, payload: Payload | None) -> EntryPlace | None:
        """Take the entry with this content that follows another one; None if none does."""
        content = ""
        if payload is not None:
            if self._parents.isdisjoint((spot.id, *self._joints.get(spot.id, ()))):
                return None
            content = self._compute_digest(payload)
        for parent in (spot.id, *self._joints.get(spot.id, ())):
            if taken := self._take_below(parent, kind, content, payload):
                return taken
        return None

    def take_said(self, spot: EntryPlace, payload: Payload) -> EntryPlace | None:
        """Take what was said with these words after an entry, with any remarks between."""
        kind = payload.entry_type
        content = "" if isinstance(payload, Anchor) else self._compute_digest(payload)
        parents = [spot.id]
        for parent in parents:
            for before in (parent, *self._joints.get(parent, ())):
                if taken := self._take_below(before, kind, content, payload):
                    return taken
                parents += self._silent.get(before, ())
        return None

    def read_head(self, spot: EntryPlace) -> Head:
        """Return an entry of the tape as a head of its branch."""
        branch = self._tape.find_branch(spot.phase)
        return read_head_at(self._tape.phases, branch, spot.phase, spot.offset, spot.id)

    def _take_below(
        self, parent: str, kind: str, content: str, payload: Payload | None
    ) -> EntryPlace | None:
        """Take the entry with this content, but for what may change, directly after another."""
        if waiting := self._below.get((parent, kind, content)):
            return waiting.pop(0)
        if payload is None:
            return None
        for other in self._changing.get((parent, kind), ()):
            waiting = self._below.get((parent, kind, other))
            if waiting and self._is_same(waiting[0], payload):
                return waiting.pop(0)
        return None

    def _compute_digest(self, payload: Payload) -> str:
        """Return the digest of content as headers of entries have it."""
        data = self._tape.blobs.extract_long_strings(encode_payload(payload))
        return sha256(data).hexdigest()[:32]

    def _is_same(self, spot: EntryPlace, payload: Payload) -> bool:
        """Return whether an entry on the tape is this one but for what may change."""
        before = self._strip_changes(self._tape.entry(self.read_head(spot)).data)
        return self._compute_digest(before) == self._compute_digest(self._strip_changes(payload))

    def _strip_changes(self, payload: Payload) -> Payload:
        """Return an entry without what may be otherwise another time."""
        if isinstance(payload, Meta):
            return replace(payload, project=None, repository=None)
        strip = self._strip_source_changes
        return payload if strip is None else strip(payload)
