"""The text of a patch (`*** Begin Patch`) as what it does to each file.

Read kindly: what is judged here was applied already, so that a line of no known kind is passed
over instead of refused, and a patch that breaks off counts as far as it goes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .steps import FileCall, FileDelete, FileEdit, FileWrite, PatchHunk

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
class _PatchSection:
    """One file of a patch while it is read."""

    kind: str
    path: str
    lines: list[str] = field(default_factory=list)


def parse_patches(text: str) -> tuple[FileCall, ...]:
    """Return what the patches in a text do to files; nothing where it holds none."""
    bodies = _PATCH.findall(f"{text}\n".replace("\r\n", "\n"))
    return tuple(
        call
        for body in bodies
        for section in _split_patch_sections(body)
        for call in _convert_patch_section(section)
    )


def _split_patch_sections(body: str) -> list[_PatchSection]:
    found: list[_PatchSection] = []
    for line in body.split("\n")[:-1]:
        header = _HEADER.match(line)
        if header:
            found.append(_PatchSection(header[1], header[2]))
        elif found:
            found[-1].lines.append(line)
    return found


def _convert_patch_section(section: _PatchSection) -> Iterator[FileCall]:
    match section:
        case _PatchSection("Add", path, lines):
            text = "".join(f"{line[1:]}\n" for line in lines if line.startswith("+"))
            yield FileCall("patch", path, FileWrite(text))
        case _PatchSection("Delete", path):
            yield FileCall("patch", path, FileDelete())
        case _PatchSection(_, path, lines):
            moved = _MOVE.match(lines[0]) if lines else None
            work = FileEdit(tuple(_split_hunks(lines[1:] if moved else lines)))
            if moved is None:
                yield FileCall("patch", path, work)
            else:
                yield FileCall("patch", moved[1], work, source=path)
                yield FileCall("patch", path, FileDelete())


def _split_hunks(lines: list[str]) -> Iterator[PatchHunk]:
    """Yield the hunks of an update; `@@` lines that follow each other are contexts of one."""
    contexts: list[str] = []
    body: list[str] = []
    for line in lines:
        if line.startswith("@@"):
            yield from _build_hunk(contexts, body)
            contexts, body = ([] if body else contexts) + [line[2:].strip()], []
        else:
            body.append(line)
    yield from _build_hunk(contexts, body)


def _build_hunk(contexts: list[str], body: list[str]) -> Iterator[PatchHunk]:
    at_end = _AT_END in (line.strip() for line in body)
    said = [line for line in body if line[:1] in {"", " ", "+", "-"}]
    while said and not said[-1]:  # blank lines between hunks belong to none
        said.pop()
    if said:
        old = tuple(line[1:] for line in said if line[:1] != "+")
        new = tuple(line[1:] for line in said if line[:1] != "-")
        yield PatchHunk(old, new, tuple(filter(None, contexts)), at_end)
