"""`fork`, `branches` and `switch`: continuing from another entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..entries import Meta, Start
from ..errors import UsageError
from ..refs import MAIN_BRANCH, check_ref_name
from ..render import SHORT
from ..store import Beginning
from .call import open_entry, open_library, open_ref
from .out import as_json, complete_ref, format_examples, print_json, print_lines, ref, wait
from .record import PROGRAM
from .summary import format_branches, summarize_branches
from .walk import read_path

if TYPE_CHECKING:
    from ..branches import Head
    from ..store import Store
    from ..tape import Tape
    from .group import GlobalOptions


@click.command(
    epilog=format_examples(
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
    options: GlobalOptions, ref: str, name: str | None, new: bool, switch: bool, as_json: bool
) -> None:
    """Start a branch, or a new tape, at the entry that REF names.

    Nothing is copied: both sides share the past, and neither sees what the other does next. --json
    prints {tape, branch, entry}, the entry being the one it begins at.
    """
    if new and switch:
        raise UsageError("--switch chooses among the branches of one tape; omit it with --new")
    if name is not None and not new:
        check_ref_name("branch", name)
    with open_library(options) as (store, _), open_entry(options, ref) as (tape, head):
        if new:
            identity, branch = create_forked_tape(store, tape, head, name), MAIN_BRANCH
        else:
            identity, branch = tape.id, tape.fork(head, name, switch=switch)
    if as_json:
        print_json({"tape": identity, "branch": branch, "entry": head.entry})
    else:
        place = identity[:SHORT] if new or switch else f"{identity[:SHORT]}:{branch}"
        print_lines(
            [f"{place} begins at {head.entry[:SHORT]}; continue with `tape append {place}`"]
        )


def create_forked_tape(store: Store, tape: Tape, head: Head, title: str | None) -> str:
    """Create a tape that begins at an entry of another one, with its cwd, and return its id."""
    title = title or tape.refs().title
    cwd, project = find_work_folder(tape, head)
    beginning = Beginning(cwd, PROGRAM, title, title or "", project)
    with store.create(beginning, origin=(tape, head)) as made:
        return made.id


def find_work_folder(tape: Tape, head: Head) -> tuple[str, str | None]:
    """Return the working folder and the project of a path, from its newest entry that has them."""
    cwd, project = "", None
    for step in read_path(tape, head, types=frozenset({"start", "meta"})):
        match step.entry.data:
            case Start():
                cwd, project = step.entry.data.cwd, step.entry.data.project
            case Meta(cwd=str(moved)):
                cwd = moved
            case _:
                pass
    return cwd, project


@click.command(epilog=format_examples("tape branches", "tape branches 3f2a --json"))
@ref
@as_json
@click.pass_obj
def branches(options: GlobalOptions, ref: str, as_json: bool) -> None:
    """List the branches of a tape with their heads: entry, depth, time and type.

    --json prints an array of {branch, current, phase, entry, n, time, type, pinned, moves, error}.
    """
    with open_ref(options, ref) as (tape, _, __):
        rows = summarize_branches(tape, tape.refs())
        print_json(rows) if as_json else print_lines(format_branches(rows))


@click.command(epilog=format_examples("tape switch 3f2a:try-redis", "tape switch :main"))
@click.argument("ref", metavar="[TAPE]:BRANCH", shell_complete=complete_ref)
@wait
@as_json
@click.pass_obj
def switch(options: GlobalOptions, ref: str, as_json: bool) -> None:
    """Choose the current branch of a tape. --json prints {tape, branch}."""
    with open_ref(options, ref) as (tape, head, branch):
        if branch is None or head is not None:
            raise UsageError(f"{ref!r} does not name a branch: write TAPE:BRANCH")
        tape.switch(branch)
        if as_json:
            print_json({"tape": tape.id, "branch": branch})
        else:
            print_lines([f"{tape.id[:SHORT]}: switched to branch {branch}"])
