"""Options that choose tapes by what they say of themselves: repository, person, machine, agent."""

from __future__ import annotations

import os
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..errors import UsageError
from ..index.tape_filter import TapeFilter
from ..places.checkout import find_checkout

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.shell_completion import CompletionItem

R = TypeVar("R")


def _complete_agent(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    from .ref_completion import list_agent_completions  # only a shell asks

    return list_agent_completions(ctx, param, incomplete)


_OPTIONS = (
    click.option(
        "--repository",
        metavar="NAME",
        help="Only tapes of this repository, in whatever checkout: a part of HOST/OWNER/NAME, its "
        "URL, or a folder such as `.`.",
    ),
    click.option("--person", metavar="NAME", help="Only tapes of this person: name or email."),
    click.option("--machine", metavar="NAME", help="Only tapes begun on this machine."),
    click.option(
        "--agent",
        "agents",
        metavar="NAME",
        multiple=True,
        shell_complete=_complete_agent,
        help="Only sessions that this agent made, such as gong, claude or codex; may be repeated.",
    ),
)


def choose_by_facts(command: Callable[..., R]) -> Callable[..., R]:
    """Add the options to a command, which gets what they mean as its argument `tapes`."""

    @wraps(command)
    def run(
        *values: Any,
        repository: str | None,
        person: str | None,
        machine: str | None,
        agents: tuple[str, ...],
        **rest: Any,
    ) -> R:
        tapes = build_tape_filter(repository, person, machine, agents)
        return command(*values, tapes=tapes, **rest)

    for option in reversed(_OPTIONS):
        run = option(run)
    return run


def build_tape_filter(
    repository: str | None, person: str | None, machine: str | None, agents: tuple[str, ...] = ()
) -> TapeFilter:
    """Return the filter that the values of the options mean; raise UsageError for an empty one."""
    values = [("repository", repository), ("person", person), ("machine", machine)]
    for name, value in (*values, *(("agent", agent) for agent in agents)):
        if value is not None and not value.strip():
            raise UsageError(f"--{name} needs a name" + ", or a part of one" * (name != "agent"))
    chosen = TapeFilter(None, person, machine, agents=tuple(name.strip() for name in agents))
    if repository is None:
        return chosen
    if _is_path(repository) and os.path.isdir(repository):
        place = find_checkout(os.path.abspath(repository), os.environ)
        return chosen._replace(checkout=place)
    if ":" in repository:
        from ..repository import name_repository  # only for a URL

        repository = name_repository(repository) or repository
    return chosen._replace(repository=repository)


def _is_path(text: str) -> bool:
    """Return whether a text is meant as a path: a word alone is rather the name of a repository."""
    return text.startswith(("/", "~")) or text.split("/", maxsplit=1)[0] in (".", "..")
