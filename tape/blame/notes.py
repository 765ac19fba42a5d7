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
    ends = [one for one, after in pairwise([*numbers, -1]) if after != one + 1]
    starts = [one for before, one in pairwise([-1, *numbers]) if before != one - 1]
    return [*zip(starts, ends, strict=True)]


def build_log(commit: NotedCommit, noted: Sequence[NotedLines]) -> str:
    """Return git-ai's authorship log, version 3.0.0."""
    said: list[str] = []
    sessions: dict[str, Any] = {}
    for path in sorted({one.path for one in noted}):
        odd = any(character in path for character in " \t\n")
        said.append(f'"{path}"' if odd else path)
        for one in (one for one in noted if one.path == path):
            key = _hash_words("s_", f"{one.session.tool}:{one.session.id}")
            sessions[key] = {
                "agent_id": {
                    "tool": one.session.tool,
                    "id": one.session.id,
                    "model": one.session.model or "unknown",
                },
                "human_author": commit.author,
                "custom_attributes": {"tape": one.session.tape},
            }
            ranges = [f"{a}-{b}" if b > a else f"{a}" for a, b in group_lines(one.lines)]
            said.append(f"  {key}::{_hash_words('t_', one.entry)} {','.join(ranges)}")
    about = {
        "schema_version": SCHEMA,
        "base_commit_sha": commit.id,
        "prompts": {},
        "sessions": sessions,
        "humans": {},
    }
    return "\n".join([*said, "---", json.dumps(about, indent=2, ensure_ascii=False), ""])


def is_own_log(text: str) -> bool:
    """Return whether a log is one of ours, or has nothing in it, so that it may be replaced."""
    _, _, about = f"\n{text}".partition("\n---\n")
    try:
        told = json.loads(about)
        own = [one["custom_attributes"]["tape"] for one in told["sessions"].values()]
    except (ValueError, TypeError, KeyError, AttributeError):
        return False
    return len(own) == len(told["sessions"]) and not told.get("prompts") and not told.get("humans")


def build_trace(commit: NotedCommit, noted: Sequence[NotedLines]) -> dict[str, Any]:
    """Return a trace record of Agent Trace, version 0.1.0."""
    files = []
    for path in sorted({one.path for one in noted}):
        conversations = []
        for one in (one for one in noted if one.path == path):
            contributor = {"type": "mixed" if one.is_mixed else "ai"}
            contributor |= {"model_id": one.session.model[:250]} if one.session.model else {}
            conversations.append(
                {
                    "url": f"tape:{one.session.tape}@{one.entry}",
                    "contributor": contributor,
                    "ranges": [
                        {"start_line": first, "end_line": last}
                        for first, last in group_lines(one.lines)
                    ],
                }
            )
        files.append({"path": path, "conversations": conversations})
    sessions = {one.session.tape: f"{one.session.tool}:{one.session.id}" for one in noted}
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
