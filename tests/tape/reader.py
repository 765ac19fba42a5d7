"""A second reader of tapes, written from the format's description; it imports nothing of `tape`.

`faults` computes every hash, parent, depth, time, ref line and blob of a tape again and returns a
sentence for each that does not hold; `heads` and `path` say what a tape tells. Oracle of the tests.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PHASE = re.compile(r"[0-9]{4,}-([a-z0-9][a-z0-9._-]{0,47}?)(-start|-compaction|-handoff|-merge)?")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,47}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z")
_TYPE = re.compile(r"[a-z][a-z0-9._-]{0,63}")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_BEGINS = {"start", "branch", "anchor"}
_INFO = ["format", "id", "created", "by", "origin"]
_ORIGIN = "0000-origin"
"""Where a detached tape holds the path it shares with its origin."""


class Line(NamedTuple):
    """One entry line as it stands in a phase file."""

    phase: str
    offset: int
    raw: bytes
    """The line without its newline."""
    entry: dict[str, Any]
    """The line as an object."""


def files(folder: Path) -> dict[str, bytes]:
    """Return path → bytes of every file that holds history: all but the lock files."""
    found = (file for file in sorted(folder.rglob("*")) if file.is_file())
    names = {file.relative_to(folder): file for file in found}
    return {
        str(name): file.read_bytes() for name, file in names.items() if name.parts[0] != "locks"
    }


def phases(folder: Path) -> dict[str, list[Line]]:
    """Return the whole lines of every phase that can be parsed, phases in order of number."""
    names = [phase.name for phase in (folder / "phases").iterdir()]
    names.sort(key=lambda name: int(name.partition("-")[0]))
    return {name: list(_lines(folder, name)) for name in names}


def _lines(folder: Path, phase: str) -> Iterator[Line]:
    offset = 0
    for raw in _bytes(folder, phase).split(b"\n")[:-1]:
        with suppress(ValueError):
            yield Line(phase, offset, raw, json.loads(raw))
        offset += len(raw) + 1


def _bytes(folder: Path, phase: str) -> bytes:
    file = folder / "phases" / phase / "entries.jsonl"
    return file.read_bytes() if file.exists() else b""


def refs(folder: Path) -> list[dict[str, Any]]:
    """Return the lines of the journal that verify, oldest first."""
    lines = (folder / "refs.jsonl").read_bytes().split(b"\n")[:-1]
    return [json.loads(line) for line in lines if _ref_holds(line)]


def _ref_holds(line: bytes) -> bool:
    start = len(b'{"h":"0123456789abcdef",')
    digits = sha256(line[start:]).hexdigest()[:16].encode()
    return line.startswith(b'{"h":"' + digits + b'",')


def current(folder: Path) -> str:
    """Return the name of the current branch."""
    return [line["current"] for line in refs(folder) if "current" in line][-1]


def heads(folder: Path) -> dict[str, str]:
    """Return branch → id of the entry it stands at."""
    found = phases(folder)
    return {name: _head(found, move)["id"] for name, move in _moves(folder).items()}


def _moves(folder: Path) -> dict[str, dict[str, Any]]:
    return {line["branch"]: line for line in refs(folder) if "branch" in line}


def _head(found: dict[str, list[Line]], move: dict[str, Any]) -> dict[str, Any]:
    if move["pin"] is None:
        return found[move["phase"]][-1].entry
    return _at(found, move["phase"], move["pin"]["offset"], move["pin"]["entry"])


def _at(found: dict[str, list[Line]], phase: str, offset: int, entry: str) -> dict[str, Any]:
    (line,) = (one for one in found.get(phase, ()) if one.offset == offset)
    if line.entry["id"] != entry:
        raise ValueError(entry)
    return line.entry


def path(folder: Path, entry: str) -> list[dict[str, Any]]:
    """Return the entries from the root to one entry, through the tapes it was forked from."""
    known: dict[str, dict[str, Any]] = {}
    tape: Path | None = folder
    while tape is not None:
        known |= {one.entry["id"]: one.entry for lines in phases(tape).values() for one in lines}
        tape = _origin(tape)
    found = [known[entry]]
    while found[-1]["parentId"] is not None:
        found.append(known[found[-1]["parentId"]])
    return found[::-1]


def view(folder: Path, entry: str) -> tuple[Any, list[dict[str, Any]]]:
    """Return what a model sees at an entry: the newest anchor's summary, and the entries in view.

    These are the ranges that the anchor keeps, in their order, then what follows it; without an
    anchor the summary is None and the whole path is in view.
    """
    found = path(folder, entry)
    places = [at for at, one in enumerate(found) if one["type"] == "anchor"]
    if not places:
        return None, found
    data = found[places[-1]]["data"]
    kept = [one for run in data["kept"] for one in _kept(folder, run)]
    return data["summary"], [*kept, *found[places[-1] + 1 :]]


def _kept(folder: Path, run: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the entries of a range, and check that they are where it says."""
    tape = folder if run.get("tape") is None else _tape(folder, run["tape"])
    lines = phases(tape)[run["phase"]]
    first = next(at for at, one in enumerate(lines) if one.offset == run["offset"])
    found = [one.entry for one in lines[first : first + run["count"]]]
    if (len(found), found[0]["id"], found[-1]["id"]) != (run["count"], run["first"], run["last"]):
        raise ValueError(run)
    return found


def _info(folder: Path) -> dict[str, Any]:
    info: dict[str, Any] = json.loads((folder / "tape.json").read_bytes())
    return info


def _origin(folder: Path) -> Path | None:
    origin = _info(folder)["origin"]
    if origin is None or (folder / "phases" / _ORIGIN).exists():
        return None
    return _tape(folder, origin["tape"])


def _tape(folder: Path, identity: str) -> Path:
    (found,) = (
        one
        for one in folder.parent.iterdir()
        if not one.name.startswith(".") and _info(one)["id"] == identity
    )
    return found


def faults(folder: Path) -> list[str]:
    """Return a sentence for everything in a tape that is not as the format says."""
    return [
        *_shape_faults(folder),
        *(fault for phase in _committed(folder) for fault in _phase_faults(folder, phase)),
        *_ref_faults(folder),
        *_blob_faults(folder),
    ]


def _committed(folder: Path) -> list[str]:
    """Return the phases that count: a beginning that no ref names was never committed."""
    named = {line["phase"] for line in refs(folder) if "branch" in line}
    return [name for name, lines in phases(folder).items() if name in named or len(lines) > 1]


def _shape_faults(folder: Path) -> Iterator[str]:
    info = _info(folder)
    if list(info) != _INFO or info["format"] != 1 or not re.fullmatch("[0-9a-f]{32}", info["id"]):
        yield "tape.json is not one of format 1"
    for file in sorted(folder.rglob("*")):
        mode = file.lstat().st_mode & 0o777
        if file.is_symlink():
            yield f"{file.name} is a symbolic link"
        elif mode != (0o700 if file.is_dir() else 0o600):
            yield f"{file.name} has mode {mode:o}"


def _phase_faults(folder: Path, phase: str) -> Iterator[str]:
    data = _bytes(folder, phase)
    if data and not data.endswith(b"\n"):
        yield f"{phase}: torn"
    before: dict[str, Any] | None = None
    redacted = _redacted(folder)
    for number, raw in enumerate(data.split(b"\n")[:-1], 1):
        try:
            entry = json.loads(raw)
            line = _line_faults(raw, entry, redacted)
            wrong = [*line, *_place_faults(folder, phase, entry, before)]
        except (ValueError, KeyError, TypeError) as error:
            entry, wrong = None, [f"unreadable: {error!r}"]
        yield from (f"{phase}, line {number}: {text}" for text in wrong)
        before = entry
    if phase == _ORIGIN and (before is None or before["id"] != _info(folder)["origin"]["entry"]):
        yield f"{phase}: does not end where the tape begins"


def _redacted(folder: Path) -> set[str]:
    lines = (one.entry for found in phases(folder).values() for one in found)
    return {target for one in lines if one["type"] == "redact" for target in one["data"]["targets"]}


def _line_faults(raw: bytes, entry: dict[str, Any], redacted: set[str]) -> Iterator[str]:
    parent = "null" if entry["parentId"] is None else f'"{entry["parentId"]}"'
    vouched = (
        f'"v":1,"parentId":{parent},"n":{entry["n"]},"time":"{entry["time"]}",'
        f'"type":"{entry["type"]}","dh":"{entry["dh"]}"'
    )
    head = f'{{"id":"{entry["id"]}",{vouched},"data":'.encode()
    if not raw.startswith(head) or not raw.endswith(b"}"):
        yield "keys, order or blanks are not those of an entry line"
    if sha256(vouched.encode()).hexdigest()[:40] != entry["id"]:
        yield "wrong id"
    if not _TIME.fullmatch(entry["time"]) or not datetime.fromisoformat(entry["time"]):
        yield "wrong form of time"
    if not _TYPE.fullmatch(entry["type"]):
        yield "wrong form of type"
    yield from _data_faults(raw[len(head) : -1], entry, redacted)


def _data_faults(data: bytes, entry: dict[str, Any], redacted: set[str]) -> Iterator[str]:
    if entry["data"] is None and entry["id"] in redacted and re.fullmatch(rb"null *", data):
        return
    if not isinstance(entry["data"], dict):
        yield "data is no object"
    if sha256(data).hexdigest()[:32] != entry["dh"]:
        yield "wrong dh"
    if re.search(rb"\s", _STRING.sub(b"", data)):
        yield "blanks outside strings"


def _place_faults(
    folder: Path, phase: str, entry: dict[str, Any], before: dict[str, Any] | None
) -> Iterator[str]:
    begins = entry["type"] in _BEGINS and phase != _ORIGIN
    if before is not None and begins:
        yield f"{entry['type']} inside a phase"
    if before is None and phase != _ORIGIN:
        yield from _first_faults(phase, entry)
        before = _base(folder, entry) if begins else None
    if before is None:
        if entry["n"] != 0 or entry["parentId"] is not None:
            yield "a root has no parent and depth 0"
        return
    if entry["parentId"] != before["id"]:
        yield "its parent is not the entry before it"
    if entry["n"] != before["n"] + 1:
        yield "wrong n"
    if not entry["time"] > before["time"]:
        yield "not later than its parent"


def _first_faults(phase: str, entry: dict[str, Any]) -> Iterator[str]:
    named = _PHASE.fullmatch(phase)
    if entry["type"] not in _BEGINS:
        yield f"a phase cannot begin with {entry['type']}"
    elif named is None or (entry["data"]["phase"], entry["data"]["branch"]) != (phase, named[1]):
        yield "its phase and branch are not those of its folder"


def _base(folder: Path, entry: dict[str, Any]) -> dict[str, Any] | None:
    base = entry["data"].get("origin") if entry["type"] == "start" else entry["data"]["base"]
    if base is None:
        return None
    if base.get("tape") and (folder / "phases" / _ORIGIN).exists():
        last = phases(folder)[_ORIGIN][-1]
        return _at({_ORIGIN: [last]}, _ORIGIN, last.offset, base["entry"])
    tape = _tape(folder, base["tape"]) if base.get("tape") else folder
    return _at(phases(tape), base["phase"], base["offset"], base["entry"])


def _ref_faults(folder: Path) -> Iterator[str]:
    data = (folder / "refs.jsonl").read_bytes()
    if not data.endswith(b"\n"):
        yield "refs.jsonl: torn"
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        if not _ref_holds(line):
            yield f"refs.jsonl, line {number}: wrong h"
    found, moves = phases(folder), _moves(folder)
    if current(folder) not in moves:
        yield "refs.jsonl: the current branch is not there"
    for name, move in moves.items():
        yield from _move_faults(found, name, move)
    named = {line["phase"] for line in refs(folder) if "branch" in line}
    for phase in found.keys() - named - {_ORIGIN}:
        if len(found[phase]) > 1:
            yield f"{phase}: entries that no ref names"


def _move_faults(found: dict[str, list[Line]], name: str, move: dict[str, Any]) -> Iterator[str]:
    if not _NAME.fullmatch(name) or ".." in name or name == "refs":
        yield f"branch {name!r}: not a name"
    try:
        _head(found, move)
    except (ValueError, KeyError, IndexError):
        yield f"branch {name}: no head"
        return
    owner = found[move["phase"]][0].entry["data"]["branch"]
    if move["pin"] is None and owner != name:
        yield f"branch {name}: the phase of another branch without a pin"


def _blob_faults(folder: Path) -> Iterator[str]:
    stored = {file.name: file for file in (folder / "blobs").rglob("*") if file.is_file()}
    for name, file in stored.items():
        if not name.startswith(".") and (
            sha256(file.read_bytes()).hexdigest() != name or file.parent.name != name[:2]
        ):
            yield f"blob {name}: not what its name says"
    for lines in phases(folder).values():
        for one in lines:
            for ref in _blob_refs(one.entry["data"]):
                file = stored.get(ref["$blob"])
                if file is None or file.stat().st_size != ref["bytes"]:
                    yield f"{one.phase}, byte {one.offset}: blob {ref['$blob']} is not there"


def _blob_refs(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "$blob" in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _blob_refs(item)
