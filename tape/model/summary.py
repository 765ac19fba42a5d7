"""Summaries as Markdown: for the model that continues, and for people, in ANCHOR.md."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..clock import shorten_timestamp

if TYPE_CHECKING:
    from .entries import Anchor, Summary

ANCHOR_PAGE = "ANCHOR.md"
"""Name of the file beside the entries of a phase that begins with an anchor; never read back.
"""

_SUMMARY_SECTIONS = (
    ("Constraints and preferences", "constraints"),
    ("Done", "done"),
    ("In progress", "in_progress"),
    ("Blocked", "blocked"),
    ("Key decisions", "decisions"),
    ("Next steps", "next_steps"),
    ("Critical context", "critical_context"),
    ("Files read", "files_read"),
    ("Files changed", "files_changed"),
    ("The user's own requests, word for word", "requests"),
)


def render_summary(summary: Summary | str) -> str:
    """Return a summary as the Markdown a model reads; empty sections are left out."""
    if isinstance(summary, str):
        return summary
    parts = [f"## Goal\n{summary.goal}"] if summary.goal else []
    for title, name in _SUMMARY_SECTIONS:
        lines: tuple[str, ...] = getattr(summary, name)
        if lines:
            parts.append(f"## {title}\n" + "\n".join(f"- {line}" for line in lines))
    return "\n\n".join(parts)


def read_anchor_summary(anchor: Anchor, cwd: str | None) -> Summary | str:
    """Return the summary of an anchor for a session that works in `cwd` now.

    Where it worked in another folder, the files have absolute paths.
    """
    summary, folder = anchor.summary, anchor.state.cwd
    if isinstance(summary, str) or not folder or folder == cwd:
        return summary
    read, changed = (
        tuple(posixpath.join(folder, name) for name in names)
        for names in (summary.files_read, summary.files_changed)
    )
    return replace(summary, files_read=read, files_changed=changed)


def render_anchor_page(anchor: Anchor, time: str) -> bytes:
    """Return the content of ANCHOR.md for an anchor written at `time`, a tape's time text."""
    heading = f"# {anchor.kind} on {anchor.branch}, {shorten_timestamp(time)} UTC"
    summary = render_summary(anchor.summary)
    return f"{heading}\n\n{summary}".rstrip().encode("utf-8", "replace") + b"\n"
