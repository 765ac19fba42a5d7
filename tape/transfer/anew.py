"""A tape written anew without its secrets: another id, other hashes, the same history.

Invariant: what comes out is a whole tape again, every hash and every place in it true. The same
tape gives the same bytes each time. Entries of a copied past that stand before the first masked
one stay as they are; all of the tape's own change, for their root names the tape.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ..entries import Start
from ..phase import ORIGIN
from ..refs import encode
from ..store import slug
from .masking import masked
from .shapes import Masks
from .survey import ENTRY, lines_of, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .plan import Part, Plan
    from .shapes import Header
    from .survey import Line, Survey

_PLACE = re.compile(rb'"offset":([0-9]+)(,(?:"count":[0-9]+,)?"(?:entry|first)":"([0-9a-f]{40})")')
_PARENT = re.compile(rb'(,"parentId":)(?:null|"[0-9a-f]{40}")(,"n":)')
_HASH = re.compile(rb'"dh":"[0-9a-f]{32}"\Z')
_BODY = 49  # where the bytes begin that the id covers: after `{"id":"`, 40 digits and `",`
_DATA = b',"data":'


class Anew:
    """A plan without its secrets, in place of the plan itself."""

    def __init__(self, plan: Plan, found: Survey, tape: str) -> None:
        self._plan, self._found, self._old = plan, found, tape
        self.tape = sha256(f"masked {tape}".encode()).hexdigest()[:32]
        """Id of the tape that comes out."""
        self._ids: dict[str, str] = {}
        self._offsets: dict[str, int] = {}
        self._known: Callable[[str], object] = self._ids.get
        self._settle()

    def _settle(self) -> None:
        """Learn the new ids and places of all entries that others name.

        Phases are gone through side by side: an entry may name one of a later phase, written
        before it on another branch.
        """
        phases = {
            line.header.id: part.name
            for part in self._plan.parts
            for line in lines_of(part)
            if line.header.id in self._found.wanted
        }
        going = {part.name: self._going(part) for part in self._plan.parts}

        def known(entry: str) -> None:
            while entry in phases and entry not in self._ids:
                if next(going[phases[entry]], None) is None:
                    return

        self._known = known
        for steps in going.values():
            for _ in steps:
                pass
        self._known = self._ids.get

    def lines(self, part: Part) -> Iterator[bytes]:
        """Yield the lines of a phase, written anew, each with its newline."""
        return self._going(part)

    def _going(self, part: Part) -> Iterator[bytes]:
        before: str | None = None
        offset = 0
        for line in lines_of(part):
            parent = before
            if before is None and line.header.parent_id is not None:
                self._known(line.header.parent_id)
                parent = self._ids.get(line.header.parent_id, line.header.parent_id)
            raw = self._line(line, parent, is_own=part.name != ORIGIN)
            before = raw[7:47].decode()
            if line.header.id in self._found.wanted and line.header.id not in self._ids:
                self._ids[line.header.id] = before
                if part.name != ORIGIN:  # a place in the past is one in the tape it comes from
                    self._offsets[line.header.id] = offset
            offset += len(raw)
            yield raw

    def _line(self, line: Line, parent: str | None, *, is_own: bool) -> bytes:
        data = line.data
        if line.header.id in self._found.masked:
            data = without_secrets(self._found, data).data
        data = self._renamed(data)
        if is_own and line.header.type == Start.entry_type:
            data = self._start(data)
        if data == line.data and parent == line.header.parent_id:
            return line.raw + b"\n"
        return _rewritten(line, parent, data)

    def _renamed(self, data: bytes) -> bytes:
        """Return data with the new ids and places of the entries it names."""
        for entry in ENTRY.findall(data):
            self._known(entry.decode())
        data = _PLACE.sub(self._placed, data)
        return ENTRY.sub(lambda found: b'"%b"' % self._id(found[1]), data)

    def _placed(self, found: re.Match[bytes]) -> bytes:
        offset = self._offsets.get(found[3].decode())
        return found[0] if offset is None else b'"offset":%d%b' % (offset, found[2])

    def _id(self, entry: bytes) -> bytes:
        return self._ids.get(entry.decode(), entry.decode()).encode()

    def _start(self, data: bytes) -> bytes:
        """Return the data of the start entry with the new id, and the old one beside it."""
        old = b'"tape":"%b"' % self._old.encode()
        data = data.replace(old, b'"tape":"%b"' % self.tape.encode(), 1)
        return data[:-1] + b',"masked_from":"%b"}' % self._old.encode()

    def refs(self) -> list[bytes]:
        """Return the lines of the journal, each with its newline."""
        return [self._ref(line) for line in self._plan.refs]

    def _ref(self, line: bytes) -> bytes:
        fields: dict[str, Any] = msgspec.json.decode(line)
        del fields["h"]
        if fields.get("pin"):
            entry = fields["pin"]["entry"]
            at = self._offsets.get(entry, fields["pin"]["offset"])
            fields["pin"] = {"offset": at, "entry": self._ids.get(entry, entry)}
        if fields.get("entry"):
            fields["entry"] = self._ids.get(fields["entry"], fields["entry"])
        for said in ("title", "why"):
            if fields.get(said):
                fields[said] = masked(fields[said]).text
        return encode(fields)

    def header(self) -> Header:
        """Return the first line: the new tape.json, and what was masked."""
        info: dict[str, Any] = msgspec.json.decode(self._plan.header.tape)
        info["id"] = self.tape
        if info.get("origin"):
            entry = info["origin"]["entry"]
            info["origin"]["entry"] = self._ids.get(entry, entry)
        path = self._plan.header.path
        return replace(
            self._plan.header,
            tape=Raw(msgspec.json.encode(info)),
            folder=self._folder(info["created"]),
            path=path and self._ids.get(path, path),
            masked=Masks(self._old, self._found.secrets, len(self._found.masked)),
        )

    def _folder(self, created: str) -> str:
        titles = [msgspec.json.decode(line).get("title") for line in self.refs()]
        said = [title for title in titles if title]
        return f"{created[:10]}-{slug(said[-1] if said else '')}-{self.tape[:8]}"


def _rewritten(line: Line, parent: str | None, data: bytes) -> bytes:
    """Return a line with another parent and other data, in the format it was written in.

    The hash of data that is as it was stays: that of redacted data can no more be computed.
    """
    body = line.raw[_BODY : line.header.data - len(_DATA)]
    name = f'"{parent}"' if parent else "null"
    body = _PARENT.sub(rb"\g<1>%b\g<2>" % name.encode(), body, count=1)
    if data != line.data:
        body = _HASH.sub(b'"dh":"%b"' % sha256(data).hexdigest()[:32].encode(), body)
    identity = sha256(body).hexdigest()[:40]
    return b'{"id":"%b",%b,"data":%b}\n' % (identity.encode(), body, data)
