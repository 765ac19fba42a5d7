"""The git working copy a session begins in, as `git` itself tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tape.entries import Git

if TYPE_CHECKING:
    from ..env.protocol import ExecutionEnvironment

_COMMAND = "git --no-optional-locks status --porcelain=v2 --branch --untracked-files=normal"
_TIMEOUT_MS = 2_000


async def working_copy(env: ExecutionEnvironment) -> Git | None:
    """Return the working copy of the environment's folder; None where there is none."""
    result = await env.exec_command(_COMMAND, timeout_ms=_TIMEOUT_MS)
    if result.exit_code != 0 or result.timed_out:
        return None
    return parse_status(result.output.decode("utf-8", "replace"))


def parse_status(text: str) -> Git:
    """Return what `git status --porcelain=v2 --branch` says."""
    lines = text.split("\n")
    facts = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# branch."))
    branch, commit = facts.get("branch.head"), facts.get("branch.oid")
    return Git(
        branch=None if branch == "(detached)" else branch,
        commit=None if commit == "(initial)" else commit,
        dirty=any(line and not line.startswith("#") for line in lines),
    )
