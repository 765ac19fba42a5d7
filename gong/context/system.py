"""The system prompt: the agent's role, its rules, and its working environment.

It must not change between the turns of a session, or the provider's prompt cache is lost: it
contains the date but not the time, and the names of the tools, which change only on request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from .git import GitRepository

_WHO = """\
You are gong, a coding agent in a terminal. You work in the user's folder with the tools you are \
given; everything you do is recorded."""
_WHO_WITHOUT_TOOLS = """\
You are gong, a coding agent in a terminal. You have no tools in this session: you cannot look at \
the user's folder or change it. Say so when you would need that; everything you say is recorded."""
_CHANGING = (
    "Look before you change: read a file before you change it, and make the smallest change that"
    " does what was asked."
)
_FAILING = "When a tool reports an error, read it, adapt, and say so if you cannot continue."
_CHECKING = "Check your work by running it where that is possible."
_ANSWERING = (
    "Answer briefly, in the user's language. Say what you did and what you found, not what you are"
    " about to do."
)
_COMMIT_DIGITS = 12

_EDITORS = ("edit", "edit_file", "replace", "apply_patch")
_WRITERS = ("write", "write_file")
_SHELLS = ("bash", "shell")
_USES = (
    (_EDITORS, "to change a part of a file"),
    (_WRITERS, "for new files or whole rewrites"),
    (_SHELLS, "to run commands"),
)
"""Names of tools with the same purpose, and that purpose."""


class Surroundings(NamedTuple):
    """A session's working environment, for the system prompt."""

    folder: str
    platform: str
    os_version: str
    date: str
    """YYYY-MM-DD"""
    repository: GitRepository | None = None


def build_system_prompt(where: Surroundings, model: str, tools: Collection[str]) -> str:
    """Return the whole system prompt of a session that has tools of these names."""
    who = _WHO if tools else _WHO_WITHOUT_TOOLS
    rules = "\n".join(f"- {rule}" for rule in _list_rules(tools))
    lines = "\n".join(_describe_environment(where, model))
    return f"{who}\n\n{rules}\n\n<environment>\n{lines}\n</environment>"


def _list_rules(tools: Collection[str]) -> Iterator[str]:
    if any(name in tools for name in (*_EDITORS, *_WRITERS)):
        yield _CHANGING
    uses = [
        f"{' or '.join(f'`{name}`' for name in there)} {purpose}"
        for names, purpose in _USES
        if (there := [name for name in names if name in tools])
    ]
    if uses:
        yield f"Use {', '.join(uses)}."
    if tools:
        yield _FAILING
    if any(name in tools for name in _SHELLS):
        yield _CHECKING
    yield _ANSWERING


def _describe_environment(where: Surroundings, model: str) -> Iterator[str]:
    yield f"Working directory: {where.folder}"
    yield f"Is git repository: {'no' if where.repository is None else 'yes'}"
    if where.repository is not None and (checked_out := _describe_checkout(where.repository)):
        yield f"Git branch: {checked_out}"
    yield f"Platform: {where.platform}"
    yield f"OS version: {where.os_version}"
    yield f"Today's date: {where.date}"
    yield f"Model: {model}"


def _describe_checkout(repository: GitRepository) -> str | None:
    branch, commit = repository.branch, repository.commit
    if branch is not None:
        is_new = commit is None and repository.dirty is not None
        return f"{branch} (no commit yet)" if is_new else branch
    return None if commit is None else f"none (detached HEAD at {commit[:_COMMIT_DIGITS]})"
