"""A reader of tapes written from docs/format.md alone: it imports nothing of `tape`.

`read_tape` checks what it reads and returns what a tape says; a fault raises FormatError.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ENTRY = re.compile(
    rb'\{"id":"([0-9a-f]{40})",("v":1,"parentId":(?:null|"[0-9a-f]{40}"),"n":[0-9]+,"time":"[^"]+",'
    rb'"type":"[a-z][a-z0-9._-]{0,63}","dh":"([0-9a-f]{32})"),"data":(.*)\}'
)
_MOVE = re.compile(rb'\{"h":"([0-9a-f]{16})",(.*)')
_PHASE = re.compile(
    r"[0-9]{4,}-([a-z0-9][a-z0-9._-]{0,47}?)(?:-start|-compaction|-handoff|-merge)?"
)
ORIGIN = "0000-origin"
_BEGINNINGS = {"start", "branch", "anchor"}


class FormatError(ValueError):
    """Something is not as the format says."""


@dataclass
class TapeContents:
    """What a tape says: ids of heads by branch and label, entries by id with those of origins."""

    id: str
    current: str = ""
    title: str | None = None
    heads: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str | None] = field(default_factory=dict)
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)

    def list_path(self, entry: str | None) -> list[str]:
        """Return the ids from the root to an entry."""
        path: list[str] = []
        while entry is not None:
            path.append(entry)
            entry = self.entries[entry]["parentId"]
        return path[::-1]


def read_tape(folder: Path) -> TapeContents:
    """Return what the tape in a folder says."""
    info = json.loads((folder / "tape.json").read_bytes())
    if info["format"] != 1:
        raise FormatError("a newer format")
    tape = TapeContents(info["id"])
    if info["origin"] is not None and not (folder / "phases" / ORIGIN).exists():
        tape.entries |= read_tape(_find_tape(folder.parent, info["origin"]["tape"])).entries
    moves = list(_read_moves(folder))
    named = {move["phase"] for move in moves if "branch" in move}
    phases = {path.name: list(_read_phase(path)) for path in sorted((folder / "phases").iterdir())}
    unnamed = {name for name, lines in phases.items() if len(lines) < 2} - named - {ORIGIN}
    phases = {name: lines for name, lines in phases.items() if name not in unnamed}
    for lines in phases.values():
        tape.entries |= {entry["id"]: entry for _, entry in lines}
    for name, lines in phases.items():
        _check_phase(tape, name, [entry for _, entry in lines])
    _check_blobs(folder)
    for move in moves:
        _apply_move(tape, move, phases)
    return tape


def _find_tape(tapes: Path, identity: str) -> Path:
    paths = [path for path in tapes.iterdir() if path.name[0] != "."]
    return next(
        path for path in paths if json.loads((path / "tape.json").read_bytes())["id"] == identity
    )


def _read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    offset = 0
    for line in path.read_bytes().split(b"\n")[:-1]:  # what follows the last one is torn
        yield offset, line
        offset += len(line) + 1


def _read_phase(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for offset, line in _read_lines(path / "entries.jsonl"):
        found = _ENTRY.fullmatch(line)
        if found is None or sha256(found[2]).hexdigest()[:40].encode() != found[1]:
            raise FormatError(f"{path.name}, byte {offset}: no entry")
        entry = json.loads(line)
        if sha256(found[4]).hexdigest()[:32] != entry["dh"] and found[4].rstrip() != b"null":
            raise FormatError(f"{path.name}, byte {offset}: other data")
        yield offset, entry


def _check_phase(tape: TapeContents, name: str, entries: list[dict[str, Any]]) -> None:
    redactions = [entry["data"] for entry in tape.entries.values() if entry["type"] == "redact"]
    redacted = {target for data in redactions for target in data["targets"]}
    before: dict[str, Any] | None = None
    for entry in entries:
        data, begins = entry["data"], entry["type"] in _BEGINNINGS and name != ORIGIN
        is_first = before is None and name != ORIGIN
        if (data is None and entry["id"] not in redacted) or begins != is_first:
            raise FormatError(f"{name}: {entry['id']} may not be here")
        if begins:
            match = _PHASE.fullmatch(name)
            if match is None or (data["phase"], data["branch"]) != (name, match[1]):
                raise FormatError(f"{name}: begins with another phase")
            base = data.get("base") or data.get("origin")
            before = tape.entries[base["entry"]] if base else None
        parent, depth = (before["id"], before["n"] + 1) if before else (None, 0)
        is_later = before is None or entry["time"] > before["time"]
        if (entry["parentId"], entry["n"]) != (parent, depth) or not is_later:
            raise FormatError(f"{name}: {entry['id']} does not follow its parent")
        before = entry


def _check_blobs(folder: Path) -> None:
    for path in (folder / "blobs").rglob("[!.]*"):
        if path.is_file() and sha256(path.read_bytes()).hexdigest() != path.name:
            raise FormatError(f"blob {path.name} holds something else")


def _read_moves(folder: Path) -> Iterator[dict[str, Any]]:
    for _, line in _read_lines(folder / "refs.jsonl"):
        found = _MOVE.fullmatch(line)
        if found is not None and sha256(found[2]).hexdigest()[:16].encode() == found[1]:
            yield json.loads(line)


def _apply_move(tape: TapeContents, move: dict[str, Any], phases: dict[str, Any]) -> None:
    match move:
        case {"branch": branch, "phase": phase, "pin": None}:
            tape.heads[branch] = phases[phase][-1][1]["id"]
        case {"branch": branch, "phase": phase, "pin": {"offset": offset, "entry": entry}}:
            if dict(phases[phase])[offset]["id"] != entry:
                raise FormatError(f"{branch}: another entry at its pin")
            tape.heads[branch] = entry
        case {"current": name}:
            tape.current = name
        case {"title": title}:
            tape.title = title
        case {"label": label, "entry": entry}:
            tape.labels[label] = entry
