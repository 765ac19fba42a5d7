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
from .entries import RESERVED

MAX_NESTING = 200
"""Most levels of arrays and objects, because some readers cannot parse deeper ones."""

_BRACKET = re.compile(rb'"(?:[^"\\]++|\\.)*+"|([\[{])|[\]}]')
_TYPE = re.compile(r"[a-z][a-z0-9._-]{0,63}\Z")


class IncomingEntry(NamedTuple):
    """An entry to be written."""

    type: str
    data: bytes
    """Its payload, an object, as compact JSON."""


class _JsonObject(list[tuple[str, Any]]):
    """The members of a JSON object in order, with duplicates."""

    def names(self) -> list[str]:
        return [name for name, _ in self]


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
    _check_line_keys(members, "the line")
    fields = dict(members)
    _check_entry_type(fields.get("type"))
    data = fields.get("data")
    if not isinstance(data, _JsonObject):
        raise InvalidEntry("data must be an object")
    _check_duplicate_keys(data, "data")
    if b"\\ud" in line.lower():
        _check_surrogates(members)
    raw = bytes(_LINE.decode(line).data)
    return IncomingEntry(fields["type"], msgspec.json.format(raw, indent=-1))


def _parse_incoming_json(line: bytes) -> Any:
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise InvalidEntry(f"not UTF-8: byte {error.start} of the line") from error
    if _measure_nesting(line) > MAX_NESTING:
        raise InvalidEntry(f"nested more than {MAX_NESTING} levels deep")
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise InvalidEntry(f"not JSON: {error.msg} at character {error.pos + 1}") from error


def _measure_nesting(line: bytes) -> int:
    if line.count(b"[") + line.count(b"{") <= MAX_NESTING:
        return 0
    deepest = level = 0
    for token in _BRACKET.finditer(line):
        if token[1]:
            level += 1
            deepest = max(deepest, level)
        elif token[0] in b"]}":
            level -= 1
    return deepest


def _build_json_object(members: list[tuple[str, Any]]) -> _JsonObject:
    found = _JsonObject(members)
    if "$blob" in found.names():
        raise InvalidEntry("the key `$blob` is reserved for the store; use another name")
    return found


def _refuse_json_constant(constant: str) -> NoReturn:
    raise InvalidEntry(f"{constant} is not JSON; write null or a string")


# Numbers stay text: they are not evaluated, and a long one must not take time.
_DECODER = json.JSONDecoder(
    object_pairs_hook=_build_json_object,
    parse_constant=_refuse_json_constant,
    parse_int=str,
    parse_float=str,
)


def _check_line_keys(members: _JsonObject, where: str) -> None:
    _check_duplicate_keys(members, where)
    for key in members.names():
        if key not in {"type", "data"}:
            raise InvalidEntry(f"unknown key {key!r}: a line has `type` and `data`")


def _check_duplicate_keys(members: _JsonObject, where: str) -> None:
    keys = members.names()
    if len(set(keys)) < len(keys):
        double = next(key for at, key in enumerate(keys) if key in keys[:at])
        raise InvalidEntry(f"key {double!r} is duplicated in {where}")


def _check_entry_type(kind: object) -> None:
    if not isinstance(kind, str) or not _TYPE.match(kind):
        raise InvalidEntry(f"type {kind!r} is not allowed: it must match {_TYPE.pattern[:-2]}")
    if kind in RESERVED:
        raise InvalidEntry(f"entries of type {kind!r} are written by the store alone")


def _check_surrogates(members: _JsonObject) -> None:
    try:
        json.dumps(members, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InvalidEntry("a lone surrogate (\\ud800 to \\udfff) is not valid text") from error
