"""The text of a patch (`*** Begin Patch`) as what it does to each file.

Read kindly: what is judged here was applied already, so that a line of no known kind is passed
over instead of refused, and a patch that breaks off counts as far as it goes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .steps import Delete, Edit, FileCall, Hunk, Write

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATCH = re.compile(
    r"^[ \t]*\*\*\* Begin Patch[ \t]*\n(.*?)(?:^[ \t]*\*\*\* End Patch|\Z)",
    re.DOTALL | re.MULTILINE,
)
_HEADER = re.compile(r"\*\*\* (Add|Delete|Update) File: (.+?)\s*\Z")
_MOVE = re.compile(r"\*\*\* Move to: (.+?)\s*\Z")
_AT_END = "*** End of File"


@dataclass(slots=True)
class _Section:
    """One file of a patch while it is read."""

    kind: str
    path: str
    lines: list[str] = field(default_factory=list)


def patched(text: str) -> tuple[FileCall, ...]:
    """Return what the patches in a text do to files; nothing where it holds none."""
    bodies = _PATCH.findall(f"{text}\n".replace("\r\n", "\n"))
    return tuple(call for body in bodies for section in _sections(body) for call in _calls(section))


def _sections(body: str) -> list[_Section]:
    found: list[_Section] = []
    for line in body.split("\n")[:-1]:
        header = _HEADER.match(line)
        if header:
            found.append(_Section(header[1], header[2]))
        elif found:
            found[-1].lines.append(line)
    return found


def _calls(section: _Section) -> Iterator[FileCall]:
    match section:
        case _Section("Add", path, lines):
            text = "".join(f"{line[1:]}\n" for line in lines if line.startswith("+"))
            yield FileCall("patch", path, Write(text))
        case _Section("Delete", path):
            yield FileCall("patch", path, Delete())
        case _Section(_, path, lines):
            moved = _MOVE.match(lines[0]) if lines else None
            work = Edit(tuple(_hunks(lines[1:] if moved else lines)))
            if moved is None:
                yield FileCall("patch", path, work)
            else:
                yield FileCall("patch", moved[1], work, source=path)
                yield FileCall("patch", path, Delete())


def _hunks(lines: list[str]) -> Iterator[Hunk]:
    """Yield the hunks of an update; `@@` lines that follow each other are contexts of one."""
    contexts: list[str] = []
    body: list[str] = []
    for line in lines:
        if line.startswith("@@"):
            yield from _hunk(contexts, body)
            contexts, body = ([] if body else contexts) + [line[2:].strip()], []
        else:
            body.append(line)
    yield from _hunk(contexts, body)


def _hunk(contexts: list[str], body: list[str]) -> Iterator[Hunk]:
    at_end = _AT_END in (line.strip() for line in body)
    said = [line for line in body if line[:1] in {"", " ", "+", "-"}]
    while said and not said[-1]:  # blank lines between hunks belong to none
        said.pop()
    if said:
        old = tuple(line[1:] for line in said if line[:1] != "+")
        new = tuple(line[1:] for line in said if line[:1] != "-")
        yield Hunk(old, new, tuple(filter(None, contexts)), at_end)
