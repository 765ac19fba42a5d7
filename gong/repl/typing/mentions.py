"""`@path` in a prompt → the file's content, which the model gets with it.

typed                 given along
--------------------  -----------------------------------------------------
@src/app.py           the file, up to 2,000 lines
@src/app.py:10-20     these lines; `:10` is one line
@"my notes.txt"       a name with blanks
@src/                 the names in the folder
@shot.png             the picture, as `/image shot.png`
@someone              nothing: there is no such file
"""

from __future__ import annotations

import re
from errno import EACCES
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...agent.documents import AttachedDocument
from ...llm.picture_sources import detect_picture_type
from .pictures import attach_picture

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .pictures import PictureRules

MAX_LINES, MAX_BYTES, MAX_NAMES = 2000, 200_000, 200
_MENTION = re.compile(
    r'(?:^|(?<=\s))@(?:"(?P<quoted>[^"\n]+)"(?P<after>:\d{1,9}(?:-\d{1,9})?)?|(?P<bare>\S+))'
)
_RANGE = re.compile(r":(\d{1,9})(?:-(\d{1,9}))?\Z")
_AFTER_WORD = ".,;:!?)]}'\""


def build_denial(name: str, rule: str) -> str:
    """Return what is said of a file that a rule denies to read."""
    return f"@{name} is not attached: the rule {rule} denies to read it"


class MentionedFiles(NamedTuple):
    """What a prompt names."""

    documents: list[AttachedDocument]
    remarks: list[str]
    """What a person should know: what was given, cut, or could not be read."""


def read_mentions(
    text: str,
    folder: str,
    rules: PictureRules,
    locate: Callable[[str], Path] | None = None,
    find_denied: Callable[[str], str] | None = None,
) -> MentionedFiles:
    """Return the documents that a prompt names with `@`, each once; it reads files.

    Relative paths start at `folder`, `~` is the user's home; `locate` says where the file of a
    name is otherwise; `find_denied` returns the rule that denies to read a path, or "".
    """
    locate = partial(locate_file, folder) if locate is None else locate
    mentions = MentionedFiles([], [])
    seen: set[tuple[Path, str]] = set()
    for match in _MENTION.finditer(text):
        name, lines = _find_file(match, locate)
        if name is None:
            continue
        path = locate(name)
        if (path, lines) in seen:
            continue
        seen.add((path, lines))
        if find_denied is not None and (rule := find_denied(str(path))):
            mentions.remarks.append(build_denial(name, rule))
            continue
        try:
            _add_document(mentions, path, name, lines, rules)
        except OSError as error:
            mentions.remarks.append(f"@{name} cannot be read: {error.strerror or error}")
    return mentions


def list_mentioned_names(text: str) -> list[str]:
    """Return the names that may be files which a prompt names, as typed, each once."""
    matches = _MENTION.finditer(text)
    return [*dict.fromkeys(name for match in matches for name, _ in _list_tries(match) if name)]


def locate_file(folder: str, name: str) -> Path:
    """Return the path of a name that a person typed in a folder; `~` is the user's home."""
    try:
        return Path(folder, Path(name).expanduser())
    except RuntimeError:  # nobody has the name behind `~`: it is one of a file
        return Path(folder, name)


def _find_file(match: re.Match[str], locate: Callable[[str], Path]) -> tuple[str | None, str]:
    """Return the path that a mention names, as typed, and its lines such as `:10-20`."""
    for name, lines_of in _list_tries(match):
        if name and _is_there(locate(name)):
            return name, lines_of
    return None, ""


def _is_there(path: Path) -> bool:
    """Return whether there is a file, also one that may not be looked at; none of a long name."""
    try:
        return path.exists()
    except OSError as error:
        return error.errno == EACCES


def _list_tries(match: re.Match[str]) -> Sequence[tuple[str, str]]:
    if match["quoted"]:
        tries: Sequence[tuple[str, str]] = [(match["quoted"], match["after"] or "")]
    else:
        word = match["bare"]
        tries = []
        for candidate in (word, word.rstrip(_AFTER_WORD)):
            lines = _RANGE.search(candidate)
            tries.append((candidate, ""))
            if lines is not None:
                tries.append((candidate[: lines.start()], lines[0]))
    return tries


def _add_document(
    mentions: MentionedFiles, path: Path, name: str, lines: str, rules: PictureRules
) -> None:
    if path.is_dir():
        names = sorted(
            f"{child.name}/" if child.is_dir() else child.name for child in path.iterdir()
        )
        more = f"\n… {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        listed = "\n".join(names[:MAX_NAMES])
        mentions.documents.append(
            AttachedDocument(f'<folder path="{name}">\n{listed}{more}\n</folder>')
        )
        mentions.remarks.append(f"attached {name}: {len(names)} names")
        return
    if not path.is_file():
        mentions.remarks.append(f"@{name} is not attached: it is not a file")
        return
    with path.open("rb") as file:
        head = file.read(64)
    if detect_picture_type(head) is not None:
        document, remark = attach_picture(path, name, rules)
        mentions.remarks.append(remark)
        if document is not None:
            mentions.documents.append(document)
        return
    if b"\0" in head:
        mentions.remarks.append(f"@{name} is not attached: it is not text")
        return
    document, remark = _read_lines(path, name, lines)
    mentions.remarks.append(remark)
    if document is not None:
        mentions.documents.append(document)


def _read_lines(path: Path, name: str, lines: str) -> tuple[AttachedDocument | None, str]:
    """Return the lines of a text file that fit, and what is said of them."""
    line_range = _RANGE.match(lines)
    first = int(line_range[1]) if line_range else 1
    last = int(line_range[2] or line_range[1]) if line_range else first + MAX_LINES - 1
    taken: list[str] = []
    count, room = 0, MAX_BYTES
    with path.open("rb") as file:
        for count, line in enumerate(file, 1):
            if first <= count <= min(last, first + MAX_LINES - 1) and room > 0:
                taken.append(line[:room].decode("utf-8", "replace"))
                room -= len(line)
    if count and not taken:
        return None, f"@{name}{lines} is not attached: the file has {count} lines"
    end = first + len(taken) - 1
    is_whole = first == 1 and end >= count
    about = "" if is_whole else f' lines="{first}-{end}" of="{count}"'
    text = "".join(taken)
    gap = "" if text.endswith("\n") or not text else "\n"
    document = AttachedDocument(f'<file path="{name}"{about}>\n{text}{gap}</file>')
    what = f"{count} lines" if is_whole else f"lines {first}-{end} of {count}"
    return document, f"attached {name}: {what}"
