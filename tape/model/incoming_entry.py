"""Entries from other programs: a line of JSON → type and data, checked (tape.md §2).

Pure. Only blanks outside strings are removed; numbers, key order and escapes are unchanged.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple, NoReturn

import msgspec
from msgspec import Raw, Struct

from ..errors import InvalidEntry
from .entries import ENTRY_TYPE, RESERVED

MAX_NESTING = 200
"""Most levels of arrays and objects, because some readers cannot parse deeper ones."""

_BRACKET = re.compile(rb'"(?:[^"\\]++|\\.)*+"|([\[{])|[\]}]')


class IncomingEntry(NamedTuple):
    """An entry to be written."""

    type: str
    data: bytes
    """Its payload, an object, as compact JSON."""


class _JsonObject(list[tuple[str, Any]]):
    """The members of a JSON object in order, with duplicates."""

    def refuse_duplicates(self, where: str) -> None:
        keys = [name for name, _ in self]
        if len(set(keys)) < len(keys):
            double = next(key for at, key in enumerate(keys) if key in keys[:at])
            raise InvalidEntry(f"key {double!r} is duplicated in {where}")


class _IncomingLine(Struct, gc=False):
    type: str
    data: Raw


_LINE = msgspec.json.Decoder(_IncomingLine)


def parse_incoming_entry(line: bytes) -> IncomingEntry:
    """Return the entry of a line `{"type":…,"data":{…}}`; raise InvalidEntry with the reason.

    Refuses invalid UTF-8, lone surrogates, NaN and Infinity, the key `$blob`, a duplicate key at
    the top of the line or of its data, and the types that only the store itself writes.
    """
    members = _parse_incoming_json(line)
    if not isinstance(members, _JsonObject):
        raise InvalidEntry('not an object: give {"type":…,"data":{…}}')
    members.refuse_duplicates("the line")
    fields = dict(members)
    for key in fields:
        if key not in {"type", "data"}:
            raise InvalidEntry(f"unknown key {key!r}: a line has `type` and `data`")
    kind, data = fields.get("type"), fields.get("data")
    if not isinstance(kind, str) or not re.fullmatch(ENTRY_TYPE, kind):
        raise InvalidEntry(f"type {kind!r} is not allowed: it must match {ENTRY_TYPE}")
    if kind in RESERVED:
        raise InvalidEntry(f"entries of type {kind!r} are written by the store alone")
    if not isinstance(data, _JsonObject):
        raise InvalidEntry("data must be an object")
    data.refuse_duplicates("data")
    if b"\\ud" in line.lower():
        try:
            json.dumps(members, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise InvalidEntry("a lone surrogate (\\ud800 to \\udfff) is not valid text") from error
    raw = bytes(_LINE.decode(line).data)
    return IncomingEntry(kind, msgspec.json.format(raw, indent=-1))


def _parse_incoming_json(line: bytes) -> Any:
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise InvalidEntry(f"not UTF-8: byte {error.start} of the line") from error
    level = 0
    if line.count(b"[") + line.count(b"{") > MAX_NESTING:
        for token in _BRACKET.finditer(line):
            level += 1 if token[1] else -(token[0] in b"]}")
            if level > MAX_NESTING:
                raise InvalidEntry(f"nested more than {MAX_NESTING} levels deep")
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise InvalidEntry(f"not JSON: {error.msg} at character {error.pos + 1}") from error


def _build_json_object(members: list[tuple[str, Any]]) -> _JsonObject:
    if any(name == "$blob" for name, _ in members):
        raise InvalidEntry("the key `$blob` is reserved for the store; use another name")
    return _JsonObject(members)


def _refuse_json_constant(constant: str) -> NoReturn:
    raise InvalidEntry(f"{constant} is not JSON; write null or a string")


# Numbers stay text: they are not evaluated, and a long one must not take time.
_DECODER = json.JSONDecoder(
    object_pairs_hook=_build_json_object,
    parse_constant=_refuse_json_constant,
    parse_int=str,
    parse_float=str,
)
