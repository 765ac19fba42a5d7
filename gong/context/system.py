"""The system prompt: who the agent is, how it works here, and where it is.

It must not change between the turns of a session, or the provider's prompt cache is lost: the date
stands in it, never the time.
"""

from __future__ import annotations

from typing import NamedTuple

_BASE = """\
You are gong, a coding agent in a terminal. You work in the user's folder with the tools you are \
given; everything you do is recorded.

- Look before you change: read a file before you edit it, and make the smallest change that does \
what was asked.
- Use `edit` to change a part of a file, `write` for new files or whole rewrites, `bash` to run \
commands.
- When a tool reports an error, read it, adapt, and say so if you cannot go on.
- Check your work by running it where that is possible.
- Answer briefly, in the user's language. Say what you did and what you found, not what you are \
about to do."""


class Surroundings(NamedTuple):
    """Where a session works, as the model is told."""

    folder: str
    platform: str
    os_version: str
    date: str
    """YYYY-MM-DD"""
    git_branch: str | None = None


def system_prompt(where: Surroundings, model: str) -> str:
    """Return the whole system prompt of a session."""
    lines = [
        f"Working directory: {where.folder}",
        f"Is git repository: {'yes' if where.git_branch is not None else 'no'}",
        f"Git branch: {where.git_branch}" if where.git_branch is not None else "",
        f"Platform: {where.platform}",
        f"OS version: {where.os_version}",
        f"Today's date: {where.date}",
        f"Model: {model}",
    ]
    block = "\n".join(line for line in lines if line)
    return f"{_BASE}\n\n<environment>\n{block}\n</environment>"
