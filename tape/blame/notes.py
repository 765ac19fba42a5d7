"""Who wrote the lines of a commit, as other tools read it: git-ai's log and Agent Trace; pure.

Both say for the lines that a commit adds which session wrote them; lines that no tape explains are
in neither. No word of a prompt is in them, since notes are pushed with the code; `tape show
TAPE@ENTRY` shows it, and both name tape and entry.

    src/auth.py                                          git-ai: one block a file
      s_c9883b05a2487d::t_9f8e7d6c5b4a32 1-10,15         session and call, lines
    ---
    {"schema_version":"authorship/3.0.0",…}              the sessions
"""

from __future__ import annotations

import json
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import NAMESPACE_URL, uuid5

from ..version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SCHEMA = "authorship/3.0.0"
"""Version of git-ai's log."""
TRACE_VERSION = "0.1.0"
"""Version of Agent Trace."""
_DIGITS = 14


class NotedSession(NamedTuple):
    """The session that wrote lines."""

    tape: str
    tool: str
    """The agent: claude, codex, gong."""
    id: str
    """The agent's own id of it."""
    model: str | None


class NotedLines(NamedTuple):
    """Lines of a file from one call."""

    path: str
    """From the top of the repository."""
    lines: Sequence[int]
    """Numbers from 1, ascending."""
    session: NotedSession
    entry: str
    """Id of the answer with the call."""
    is_mixed: bool = False
    """Whether somebody has changed them since."""


class NotedCommit(NamedTuple):
    """The commit that notes are about."""

    id: str
    author: str
    """NAME <EMAIL>."""
    time: str
    """RFC 3339."""


def group_lines(lines: Iterable[int]) -> list[tuple[int, int]]:
    """Return ascending numbers as ranges: 1 2 3 7 → (1, 3) (7, 7)."""
    numbers = [*lines]
    ends = [number for number, after in pairwise([*numbers, -1]) if after != number + 1]
    starts = [number for before, number in pairwise([-1, *numbers]) if before != number - 1]
    return [*zip(starts, ends, strict=True)]


def build_log(commit: NotedCommit, noted: Sequence[NotedLines]) -> str:
    """Return git-ai's authorship log, version 3.0.0."""
    sections: list[str] = []
    sessions: dict[str, Any] = {}
    for path in sorted({lines.path for lines in noted}):
        odd = any(character in path for character in " \t\n")
        sections.append(f'"{path}"' if odd else path)
        for lines in (lines for lines in noted if lines.path == path):
            key = _hash_words("s_", f"{lines.session.tool}:{lines.session.id}")
            sessions[key] = {
                "agent_id": {
                    "tool": lines.session.tool,
                    "id": lines.session.id,
                    "model": lines.session.model or "unknown",
                },
                "human_author": commit.author,
                "custom_attributes": {"tape": lines.session.tape},
            }
            ranges = [f"{a}-{b}" if b > a else f"{a}" for a, b in group_lines(lines.lines)]
            sections.append(f"  {key}::{_hash_words('t_', lines.entry)} {','.join(ranges)}")
    about = {
        "schema_version": SCHEMA,
        "base_commit_sha": commit.id,
        "prompts": {},
        "sessions": sessions,
        "humans": {},
    }
    return "\n".join([*sections, "---", json.dumps(about, indent=2, ensure_ascii=False), ""])


def is_own_log(text: str) -> bool:
    """Return whether a log is one of ours, or has nothing in it, so that it may be replaced."""
    _, _, about = f"\n{text}".partition("\n---\n")
    try:
        metadata = json.loads(about)
        own = [session["custom_attributes"]["tape"] for session in metadata["sessions"].values()]
    except (ValueError, TypeError, KeyError, AttributeError):
        return False
    return (
        len(own) == len(metadata["sessions"])
        and not metadata.get("prompts")
        and not metadata.get("humans")
    )


def build_trace(commit: NotedCommit, noted: Sequence[NotedLines]) -> dict[str, Any]:
    """Return a trace record of Agent Trace, version 0.1.0."""
    files = []
    for path in sorted({lines.path for lines in noted}):
        conversations = []
        for part in (part for part in noted if part.path == path):
            contributor = {"type": "mixed" if part.is_mixed else "ai"}
            contributor |= {"model_id": part.session.model[:250]} if part.session.model else {}
            conversations.append(
                {
                    "url": f"tape:{part.session.tape}@{part.entry}",
                    "contributor": contributor,
                    "ranges": [
                        {"start_line": first, "end_line": last}
                        for first, last in group_lines(part.lines)
                    ],
                }
            )
        files.append({"path": path, "conversations": conversations})
    sessions = {part.session.tape: f"{part.session.tool}:{part.session.id}" for part in noted}
    return {
        "version": TRACE_VERSION,
        "id": str(uuid5(NAMESPACE_URL, json.dumps([commit.id, files]))),
        "timestamp": commit.time,
        "vcs": {"type": "git", "revision": commit.id},
        "tool": {"name": "tape", "version": __version__},
        "files": files,
        "metadata": {"tape": {"sessions": sessions}},
    }


def is_own_trace(text: str) -> bool:
    """Return whether a record is one of ours, so that it may be replaced."""
    try:
        return bool(json.loads(text)["tool"]["name"] == "tape")
    except (ValueError, TypeError, KeyError):
        return False


def _hash_words(prefix: str, words: str) -> str:
    return prefix + sha256(words.encode()).hexdigest()[:_DIGITS]
