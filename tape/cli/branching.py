"""`fork`, `branches` and `switch`: continuing from another entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..entries import Meta, Start
from ..errors import UsageError
from ..refs import MAIN, checked_name
from ..render import SHORT
from ..store import Beginning
from .call import entry, found, library
from .out import as_json, document, examples, places, ref, say, wait
from .record import PROGRAM
from .summary import branch_lines, branch_rows
from .walk import steps

if TYPE_CHECKING:
    from ..branches import Head
    from ..store import Store
    from ..tape import Tape
    from .group import Options


@click.command(
    epilog=examples(
        "tape fork 3f2a~4", "tape fork 3f2a@9c1b --name try-redis --switch", "tape fork 3f2a --new"
    )
)
@ref
@click.option("--name", help="Name of the branch, or title of the new tape.")
@click.option("--new", is_flag=True, help="Start a new tape.")
@click.option("--switch", is_flag=True, help="Make it the current branch.")
@wait
@as_json
@click.pass_obj
def fork(
    options: Options, ref: str, name: str | None, new: bool, switch: bool, as_json: bool
) -> None:
    """Start a branch, or a new tape, at the entry that REF names.

    Nothing is copied: both sides share the past, and neither sees what the other does next. --json
    prints {tape, branch, entry}, the entry being the one it begins at.
    """
    if new and switch:
        raise UsageError("--switch chooses among the branches of one tape; omit it with --new")
    if name is not None and not new:
        checked_name("branch", name)
    with library(options) as (store, _), entry(options, ref) as (tape, head):
        if new:
            identity, branch = begun(store, tape, head, name), MAIN
        else:
            identity, branch = tape.id, tape.fork(head, name, switch=switch)
    if as_json:
        document({"tape": identity, "branch": branch, "entry": head.entry})
    else:
        place = identity[:SHORT] if new or switch else f"{identity[:SHORT]}:{branch}"
        say([f"{place} begins at {head.entry[:SHORT]}; continue with `tape append {place}`"])


def begun(store: Store, tape: Tape, head: Head, title: str | None) -> str:
    """Create a tape that begins at an entry of another one, with its cwd, and return its id."""
    title = title or tape.refs().title
    cwd, project = place(tape, head)
    beginning = Beginning(cwd, PROGRAM, title, title or "", project)
    with store.create(beginning, origin=(tape, head)) as made:
        return made.id


def place(tape: Tape, head: Head) -> tuple[str, str | None]:
    """Return the working folder and the project of a path, from its newest entry that has them."""
    cwd, project = "", None
    for step in steps(tape, head, types=frozenset({"start", "meta"})):
        match step.entry.data:
            case Start():
                cwd, project = step.entry.data.cwd, step.entry.data.project
            case Meta(cwd=str(moved)):
                cwd = moved
            case _:
                pass
    return cwd, project


@click.command(epilog=examples("tape branches", "tape branches 3f2a --json"))
@ref
@as_json
@click.pass_obj
def branches(options: Options, ref: str, as_json: bool) -> None:
    """List the branches of a tape with their heads: entry, depth, time and type.

    --json prints an array of {branch, current, phase, entry, n, time, type, pinned, moves, error}.
    """
    with found(options, ref) as (tape, _, __):
        rows = branch_rows(tape, tape.refs())
        document(rows) if as_json else say(branch_lines(rows))


@click.command(epilog=examples("tape switch 3f2a:try-redis", "tape switch :main"))
@click.argument("ref", metavar="[TAPE]:BRANCH", shell_complete=places)
@wait
@as_json
@click.pass_obj
def switch(options: Options, ref: str, as_json: bool) -> None:
    """Choose the current branch of a tape. --json prints {tape, branch}."""
    with found(options, ref) as (tape, head, branch):
        if branch is None or head is not None:
            raise UsageError(f"{ref!r} does not name a branch: write TAPE:BRANCH")
        tape.switch(branch)
        if as_json:
            document({"tape": tape.id, "branch": branch})
        else:
            say([f"{tape.id[:SHORT]}: switched to branch {branch}"])
