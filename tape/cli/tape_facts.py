"""Options that choose tapes by what they say of themselves: their repository, person, machine."""

from __future__ import annotations

import os
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..errors import UsageError
from ..index.tape_filter import FACTS, TapeFilter
from ..places.checkout import find_checkout

if TYPE_CHECKING:
    from collections.abc import Callable

R = TypeVar("R")

_OPTIONS = (
    click.option(
        "--repository",
        metavar="NAME",
        help="Only tapes of this repository, in whatever checkout: a part of HOST/OWNER/NAME, its "
        "URL, or a folder such as `.`.",
    ),
    click.option("--person", metavar="NAME", help="Only tapes of this person: name or email."),
    click.option("--machine", metavar="NAME", help="Only tapes begun on this machine."),
)


def choose_by_facts(command: Callable[..., R]) -> Callable[..., R]:
    """Add the options to a command, which gets what they mean as its argument `tapes`."""

    @wraps(command)
    def run(
        *given: Any, repository: str | None, person: str | None, machine: str | None, **rest: Any
    ) -> R:
        return command(*given, tapes=build_tape_filter(repository, person, machine), **rest)

    for option in reversed(_OPTIONS):
        run = option(run)
    return run


def build_tape_filter(
    repository: str | None, person: str | None, machine: str | None
) -> TapeFilter:
    """Return the filter that the values of the options mean; raise UsageError for an empty one."""
    given = (repository, person, machine)
    for name, value in zip(FACTS, given, strict=True):
        if value is not None and not value.strip():
            raise UsageError(f"--{name} needs a name, or a part of one")
    if repository is None:
        return TapeFilter(None, person, machine)
    if _is_path(repository) and os.path.isdir(repository):  # noqa: PTH112 (no pathlib)
        place = find_checkout(os.path.abspath(repository), os.environ)  # noqa: PTH100 (as tapes keep it)
        return TapeFilter(None, person, machine, place)
    if ":" in repository:
        from ..repository import name_repository  # only for a URL

        repository = name_repository(repository) or repository
    return TapeFilter(repository, person, machine)


def _is_path(text: str) -> bool:
    """Return whether a text is meant as a path: a word alone is rather the name of a repository."""
    return text.startswith(("/", "~")) or text.split("/", maxsplit=1)[0] in (".", "..")
