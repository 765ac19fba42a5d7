"""`unpush` and `hold`: what leaves a remote again, and what may not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..clock import read_clock
from ..errors import Ambiguous, NotFound, UsageError
from ..index.library import list_tapes
from ..remote.holds import read_holds
from ..remote.objects import TAPES_PREFIX, parse_chunk_key
from ..text import SHORT, format_count
from .listing import select_in_project
from .output import (
    Confirmation,
    add_confirmation_options,
    as_json,
    complete_ref,
    format_examples,
    print_json,
)
from .pushing import build_pusher
from .remote import open_named_remote, update_catalogue
from .terminal import format_table, print_lines, print_warning
from .timeparse import TIME_FORMS, parse_moment

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ..index.reader import TapeRow
    from .group import GlobalOptions
    from .remote import OpenRemote


@click.command(
    epilog=format_examples(
        "tape unpush 3f2a --why 'pushed by mistake'",
        "tape unpush --before 1y --why 'kept for a year' --dry-run",
    )
)
@click.argument("tape", required=False, shell_complete=complete_ref)
@click.option("--from", "name", metavar="NAME", help="The remote; by default the default one.")
@click.option("--before", metavar="TIME", help=f"All tapes last used before: {TIME_FORMS}.")
@click.option(
    "--project",
    metavar="FOLDER",
    help="Of those only tapes of this folder or below, or repository.",
)
@click.option("--why", default="", help="The reason, which others see when they pull.")
@add_confirmation_options
@as_json
@click.pass_obj
def unpush(
    options: GlobalOptions,
    *,
    tape: str | None,
    name: str | None,
    before: str | None,
    project: str | None,
    why: str,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Take tapes from a remote: their bytes leave it, and the tapes here stay.

    TAPE is an id, or the beginning of it; it need not be here any more. --before takes the tapes of
    this store that were not used since, but for those that are held: a rule of retention for a
    timer. Who pulls then finds a tape in the trash. It is never pushed there again: `tape fork
    --new` makes a tape that can be. --json prints an array of {tape, remote, done}.
    """
    how = Confirmation(yes, dry_run, as_json)
    if (tape is None) == (before is None) or (project and not before):
        raise UsageError("name a TAPE, or --before TIME, which --project limits")
    with open_named_remote(options, name) as opened:
        there = list_remote_tapes(opened, tape or "")
        if tape is not None:
            chosen = [find_remote_tape(opened, there, tape)]
        else:
            chosen = _choose_old(opened, there, before or "", project)
        agreed = bool(chosen) and how.confirm_plan(
            f"tape {identity[:SHORT]} will leave {opened.known.url}" for identity in chosen
        )
        if agreed:
            pusher = build_pusher(opened, {}, raw=False)
            for identity in chosen:
                pusher.unpush(identity, why)
            update_catalogue(opened.remote)
    if as_json:
        print_json([{"tape": id_, "remote": opened.name, "done": agreed} for id_ in chosen])
    elif not chosen:
        print_lines([f"nothing to take from {opened.name}"])
    return 0 if agreed or not chosen else how.report_refusal()


def list_remote_tapes(opened: OpenRemote, prefix: str = "") -> dict[str, int]:
    """Return the tapes at a remote whose ids begin so, with the number of their newest chunk."""
    keys = (parse_chunk_key(item.key) for item in opened.remote.list(f"{TAPES_PREFIX}{prefix}"))
    return {entry.tape: entry.seq for entry in keys if entry is not None}


def find_remote_tape(opened: OpenRemote, tapes: Collection[str], prefix: str) -> str:
    """Return the only one of the tapes that were found; raise NotFound, Ambiguous."""
    if not tapes:
        raise NotFound(f"{opened.name} has no tape {prefix!r}")
    if len(tapes) > 1:
        raise Ambiguous(prefix, tuple(identity[:SHORT] for identity in tapes))
    return next(iter(tapes))


def _choose_old(
    opened: OpenRemote, there: Mapping[str, int], before: str, project: str | None
) -> list[str]:
    """Return the tapes of this store that are at a remote, not used since, and not held.

    What others wrote since the last pull may be newer than what is here: such a tape stays.
    """
    moment = parse_moment(before, read_clock())
    rows: Sequence[TapeRow] = list_tapes(*opened.library)
    if project is not None:
        here = {row.id for row in select_in_project(rows, project)}
        rows = [row for row in rows if row.id in here or row.repository == project]
    old = {row.id for row in rows if row.updated < moment}
    old &= {*there} - {*read_holds(opened.remote)} - opened.cursor.read_gone()
    unknown = {tape for tape in old if opened.cursor.read_tape(tape).seq < there[tape]}
    if unknown:
        print_warning(
            f"{format_count(len(unknown), 'tape')} of {opened.name} may have been used since: "
            "`tape pull` brings what is new there"
        )
    return sorted(old - unknown)


@click.command(
    epilog=format_examples(
        "tape hold 3f2a --why 'an audit'", "tape hold", "tape hold 3f2a --release"
    )
)
@click.argument("tape", required=False, shell_complete=complete_ref)
@click.option("--at", "name", metavar="NAME", help="The remote; by default the default one.")
@click.option("--release", is_flag=True, help="End it.")
@click.option("--why", default="", help="The reason, which others see.")
@as_json
@click.pass_obj
def hold(
    options: GlobalOptions,
    *,
    tape: str | None,
    name: str | None,
    release: bool,
    why: str,
    as_json: bool,
) -> int:
    """Keep a tape at a remote: nobody can take it from there until that is released.

    TAPE is its id, or the beginning of it. Without one, lists the tapes that are held. Every hold
    and release is kept, with person and time. --json prints an array of {tape, time, person,
    machine, why}: the tapes that are held then.
    """
    with open_named_remote(options, name) as opened:
        if tape is not None:
            identity = find_remote_tape(opened, list_remote_tapes(opened, tape), tape)
            build_pusher(opened, {}, raw=False).hold(identity, why, held=not release)
            update_catalogue(opened.remote)
        elif release or why:
            raise UsageError("name the TAPE")
        holds = read_holds(opened.remote)
    if as_json:
        keys = ("time", "person", "machine", "why")
        print_json(
            [
                {"tape": identity, **{key: getattr(held, key) for key in keys}}
                for identity, held in sorted(holds.items())
            ]
        )
        return 0
    rows = [
        (identity[:SHORT], held.time, held.person or held.machine, held.why)
        for identity, held in sorted(holds.items())
    ]
    print_lines(format_table(rows))
    return 0
