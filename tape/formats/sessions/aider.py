"""Chats of aider, `.aider.chat.history.md` in a project, → steps.

One file holds the chats of a project, each below "# aider chat started at TIME".
`select_session` gives one chat as lines: {"aider_session", "cwd", "started"}, then {"line"} for
each line of its text. The file is prose: edits and commands are words in it.

    lines                         becomes
    ----------------------------  -------------------------------------------------------------
    `#### words`                  user
    `> words`                     note; "Tokens: 2.1k sent, 310 received" are those of the answer
                                  before it, "Main model: NAME with …" is the model
    anything else                 an answer

Both marks end with two blanks as aider writes them, so that in a fenced block of an answer a line
with such a mark, but without the blanks, is the answer's own.
"""

from __future__ import annotations

import re
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from ...model.entries import Assistant, Note, Text, Usage, User
from ..wire import encode_json
from .steps import NEWEST, SourceSession, SourceStep, decode_object, read_text, read_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from ...model.entries import Payload
    from ..wire import Put, WireObject

TOOL = "aider"
FORMAT = "aider-chat-history"
_HEADING = re.compile(r"# aider chat started at (.+?)\s*$")
_TOKENS = re.compile(r"Tokens: ([\d.,]+k?) sent,.*?([\d.,]+k?) received")
_MODEL = re.compile(r"(?:Main model|Model|Models): (\S+)")


def is_session_line(value: WireObject) -> bool:
    """Return whether an object begins a chat."""
    return "aider_session" in value


def list_sessions(lines: Iterable[str]) -> list[str]:
    """Return when each chat in a file began, as its heading says: that is its name there."""
    return [match[1] for line in lines if (match := _HEADING.match(line))]


def select_session(lines: Iterable[str], path: Path, started: str) -> Iterator[bytes]:
    """Yield the lines of one chat in the file at `path`, an absolute one."""
    facts = {"cwd": str(path.parent), "started": started}
    yield encode_json({"aider_session": _build_session_id(str(path), started), **facts})
    is_inside = False
    for line in lines:
        if match := _HEADING.match(line):
            is_inside = match[1] == started
        elif is_inside:
            yield encode_json({"line": line})


def _build_session_id(path: str, started: str) -> str:
    """Return the id of a chat: aider has none."""
    return sha256(f"{path}\0{started}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def read_session(read_lines: Callable[[], Iterable[bytes]], name: str) -> SourceSession:
    """Return the chat in some lines; `name` is its id where they do not say."""
    facts: WireObject = {}
    for line in read_lines():
        facts = decode_object(line) or {}
        break

    def read_steps(_put: Put) -> Iterator[SourceStep]:
        lines = [read_text((decode_object(line) or {}).get("line")) for line in read_lines()][1:]
        return _read_steps(lines)

    return SourceSession(
        TOOL,
        FORMAT,
        read_text(facts.get("aider_session")) or name,
        read_steps,
        cwd=read_text(facts.get("cwd")) or None,
        created=read_time(facts.get("started")),
    )


def _find_kinds(lines: list[str]) -> Iterator[str]:
    """Yield who wrote each line."""
    is_fenced = False
    for line in lines:
        kind = "user" if line.startswith("#### ") else "note" if line.startswith("> ") else "answer"
        if is_fenced and not line.endswith("  "):
            kind = "answer"
        is_fenced = kind == "answer" and is_fenced != line.startswith("```")
        yield kind


def _read_steps(lines: list[str]) -> Iterator[SourceStep]:
    """Yield a step for each run of lines of one kind."""
    model, number = "", 0
    runs = [
        (kind, "\n".join(_strip_mark(line, kind) for _, line in group).strip())
        for kind, group in groupby(zip(_find_kinds(lines), lines, strict=True), itemgetter(0))
    ]
    for at, (kind, text) in enumerate(runs):
        if not text:
            continue
        payload: Payload
        if kind == "user":
            payload = User((Text(text),))
        elif kind == "note":
            match = _MODEL.search(text)
            model = match[1] if match else model
            payload = Note(text)
        else:
            after = runs[at + 1][1] if at + 1 < len(runs) else ""
            payload = Assistant(
                (Text(text),), provider=TOOL, model=model, stop_reason="stop",
                usage=_read_usage(after),
            )  # fmt: skip
        number += 1
        yield SourceStep(f"#{number}", NEWEST, None, (payload,))


def _strip_mark(line: str, kind: str) -> str:
    if kind == "answer":
        return line
    return line.removeprefix("#### " if kind == "user" else "> ").rstrip()


def _read_usage(text: str) -> Usage:
    match = _TOKENS.search(text)
    sent, received = (_read_tokens(match[1]), _read_tokens(match[2])) if match else (0, 0)
    return Usage(input=sent, output=received, total=sent + received)


def _read_tokens(text: str) -> int:
    """Return a count such as 310, 1,234 or 2.1k."""
    number = text.replace(",", "").rstrip(".")
    try:
        return round(float(number.removesuffix("k")) * (1000 if number.endswith("k") else 1))
    except ValueError:
        return 0
