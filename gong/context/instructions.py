"""Instructions for the agent that a project and its user have written: AGENTS.md and its relatives.

Read are, each after the one it may correct:

    1. the user's own: the first of AGENTS.md and AGENT.md beside config.toml, and of AGENT.md and
       CLAUDE.md in ~/.claude
    2. in each folder from the git root down to the working folder: the first of AGENTS.md and
       AGENT.md, then the file of the model's family, such as CLAUDE.md; where there is none of
       these, the first of CLAUDE.md, GEMINI.md and .codex/instructions.md, for every model

    repository/AGENTS.md          read first
    repository/CLAUDE.md          with the profile anthropic; not beside AGENT.md, which replaces it
    repository/lib/CLAUDE.md      with every profile: lib has no AGENTS.md
    repository/app/AGENTS.md      read last when the session is in repository/app: it wins

CLAUDE.md and GEMINI.md may import: `@docs/style.md` outside of code names a file, relative to the
one that names it, whose text comes before it. A project's file imports only from the project, and
nothing hidden, such as .env; nothing is imported twice.

All texts together have 32 KB at most. The nearest file gets its part first: what no longer fits is
cut from the ones that are further away. A file that cannot be used is named in a remark.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

from ..env.protocol import is_inside_folder

MAX_INSTRUCTION_BYTES = 32_768
"""Bytes of all texts together."""
TRUNCATION_MARKER = "[Project instructions truncated at 32KB]"
MAX_IMPORT_DEPTH = 5
_GENERAL_NAMES = ("AGENTS.md", "AGENT.md")
_CLAUDE_NAME = "CLAUDE.md"
_USER_NAMES = ("AGENT.md", _CLAUDE_NAME)
_FAMILY_NAMES = (_CLAUDE_NAME, "GEMINI.md", ".codex/instructions.md")
_IMPORTING_NAMES = frozenset({_CLAUDE_NAME, "GEMINI.md"})
INSTRUCTION_NAMES = (*_GENERAL_NAMES, *_FAMILY_NAMES)
"""Names of files that are read in a folder of a project."""
_CODE = re.compile(r"^(?P<fence>```|~~~).*?^(?P=fence)|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_IMPORT = re.compile(r"(?<!\S)@(?P<path>[^\s@`]+)")
_PATH_END = ".,;:!?)]\"'"
_OPEN_HIDDEN = frozenset({".agents", ".claude", ".codex", ".gemini", ".github", ".gong"})
"""Hidden folders that hold instructions, from which a project's file may import."""


class InstructionFile(NamedTuple):
    """One file of instructions."""

    path: str
    """Absolute."""
    name: str
    """For people: relative to the working folder, or to home as ~."""
    text: str
    """Its text, or the beginning of it with the marker."""


class Instructions(NamedTuple):
    """What was read at the start of a session; the same bytes in each of its requests."""

    files: tuple[InstructionFile, ...] = ()
    """In the order in which they are sent; the last one wins."""
    remarks: tuple[str, ...] = ()
    """What could not be used, and why."""

    @property
    def names(self) -> list[str]:
        """The names of the files, in order."""
        return [file.name for file in self.files]


def read_instructions(
    folder: str, *, home: str, config_folder: str, own_file: str | None = None
) -> Instructions:
    """Return the instructions for a session in a folder.

    `own_file` is the one of the model's family. All paths are absolute. Never raises OSError.
    """
    root = find_project_root(folder)
    reader = _InstructionReader(folder, root, home)
    user_files = [
        *(Path(config_folder, name) for name in _GENERAL_NAMES),
        *(Path(home, ".claude", name) for name in _USER_NAMES),
    ]
    user_file = next(filter(os.path.lexists, user_files), None)
    if user_file is not None:
        reader.add_file(user_file, is_own=True)
    parts = Path(folder).relative_to(root).parts
    for place in (Path(root, *parts[:depth]) for depth in range(len(parts) + 1)):
        for name in _choose_names(place, own_file):
            reader.add_file(place / name)
    files, remarks = _fit_files(reader.files)
    return Instructions(files, (*reader.remarks, *remarks))


def _choose_names(place: Path, own_file: str | None) -> list[str]:
    """Return the names of the files that are read in one folder, in order."""
    general = next((name for name in _GENERAL_NAMES if os.path.lexists(place / name)), None)
    own = own_file if own_file is not None and os.path.lexists(place / own_file) else None
    if own == _CLAUDE_NAME and general == "AGENT.md":
        own = None
    chosen = [name for name in (general, own) if name is not None]
    # rules of a project are for whoever works on it: those for another family are better than none
    return chosen or [name for name in _FAMILY_NAMES if os.path.lexists(place / name)][:1]


def find_project_root(folder: str) -> str:
    """Return the nearest folder above that has a `.git`, else the folder itself."""
    for place in (Path(folder), *Path(folder).parents):
        if os.path.lexists(place / ".git"):
            return str(place)
    return folder


def render_instructions(instructions: Instructions) -> str:
    """Return the layer of the system prompt; empty if there are no instructions."""
    if not instructions.files:
        return ""
    parts = [
        f'<instructions from="{file.path}">\n{file.text.strip(chr(10))}\n</instructions>'
        for file in instructions.files
    ]
    about = (
        "Instructions of the user and of the project. Where two of them disagree, the later one"
        " applies; what the user says in the conversation applies before all of them."
    )
    return "\n\n".join([about, *parts])


class _InstructionReader:
    """Reads files and what they import, each once."""

    def __init__(self, folder: str, root: str, home: str) -> None:
        self.folder, self.root, self.home = folder, root, home
        self.files: list[InstructionFile] = []
        self.remarks: list[str] = []
        self._seen: set[str] = set()

    def add_file(self, path: Path, *, is_own: bool = False, depth: int = 0) -> None:
        """Add a file after what it imports.

        Unless it is the user's own, it and its imports must be in the project.
        """
        real = os.path.realpath(path)
        if real in self._seen:
            return
        self._seen.add(real)
        if not is_own and not is_inside_folder(real, os.path.realpath(self.root)):
            self.remarks.append(f"{path} is not read: it leads out of the project, to {real}")
            return
        try:
            text = _read_text(real)
        except OSError as error:
            self.remarks.append(f"{path} is not read: {error.strerror or error}")
            return
        imported: list[str] = []
        if path.name in _IMPORTING_NAMES or depth:
            # each `@path` outside of code, once and in order
            imported = list_imports(text)
            for name in imported:
                self._add_import(path, name, is_own=is_own, depth=depth + 1)
        rest = text
        for name in imported:
            rest = rest.replace(f"@{name}", "")
        if rest.strip():
            shown_name = os.path.relpath(path, self.folder)
            if not path.is_relative_to(self.root) and path.is_relative_to(self.home):
                shown_name = f"~/{path.relative_to(self.home)}"
            self.files.append(InstructionFile(str(path), shown_name, text))

    def _add_import(self, by: Path, name: str, *, is_own: bool, depth: int) -> None:
        named = self.home + name[1:] if name.startswith("~/") else name
        path = Path(os.path.normpath(by.parent / named))
        if not os.path.lexists(path):
            if "/" in name or name.endswith(".md"):  # else a name of somebody, such as @alice
                self.remarks.append(f"{by} imports {name}, which does not exist")
            return
        why = None
        if depth > MAX_IMPORT_DEPTH:
            why = f"it is imported {depth} levels deep"
        elif not is_own and not is_inside_folder(str(path), self.root):
            why = "it is outside of the project"
        elif not is_own and _is_hidden(path.relative_to(self.root)):
            why = "it is hidden"
        if why is None:
            self.add_file(path, is_own=is_own, depth=depth)
        else:
            self.remarks.append(f"{by} imports {name}, which is not read: {why}")


def list_imports(text: str) -> list[str]:
    """Return what a text imports: each name once, in order."""
    names = (match["path"].rstrip(_PATH_END) for match in _IMPORT.finditer(_CODE.sub(" ", text)))
    return [*dict.fromkeys(name for name in names if name)]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") and part not in _OPEN_HIDDEN for part in path.parts)


def _read_text(path: str) -> str:
    """Return the text of a regular file, as far as it could be sent; raises OSError."""
    # a pipe without a writer must not stop the session
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("it is not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_INSTRUCTION_BYTES + 1)
    finally:
        os.close(descriptor)
    if b"\0" in data:
        raise OSError("it is a binary file")
    return data.decode("utf-8-sig", "replace")


def _fit_files(files: list[InstructionFile]) -> tuple[tuple[InstructionFile, ...], list[str]]:
    """Return the files that fit, the last one first, and a remark on what does not."""
    left, fitting, cut = MAX_INSTRUCTION_BYTES, [], []
    for file in reversed(files):
        data = file.text.encode()
        if len(data) > left:
            cut.append(file.name)
            if len(cut) > 1:  # the marker is there already, and there is no room
                continue
            beginning = data[:left].decode("utf-8", "ignore")
            file = file._replace(text=f"{beginning}\n{TRUNCATION_MARKER}")  # noqa: PLW2901
            data = data[:left]
            left = 0
        else:
            left -= len(data)
        fitting.append(file)
    names = ", ".join(reversed(cut))
    remarks = [f"instructions are longer than 32 KB: {names} is cut or left out"] if cut else []
    return tuple(reversed(fitting)), remarks
