"""`redact`, `detach`, `mv`, `machine` and `reindex`: maintenance of tapes and index."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..clock import render_time
from ..errors import UsageError, WriteFailed
from ..folders import locate_repository
from ..index.library import list_tapes
from ..index.rebuild import rebuild_index
from ..store.disk import Folder
from ..store.maintenance import upkeep
from ..store.replica import Replica, check_machine_name, name_host, name_replica, read_replica
from ..text import SHORT, format_count, to_single_line
from .environment import find_facts, get_current_folder
from .output import (
    Confirmation,
    add_confirmation_options,
    as_json,
    complete_ref,
    complete_ref_or_path,
    format_examples,
    format_size,
    print_json,
    ref,
)
from .resolve import (
    clean_argument,
    open_entry,
    open_library,
    open_ref,
    split_optional_ref,
)
from .terminal import format_table, print_lines, print_warning, show_progress

if TYPE_CHECKING:
    from ..store.redaction import RedactionEntry
    from ..store.tape import Tape
    from .group import GlobalOptions


@click.command(
    epilog=format_examples(
        'tape redact 3f2a@9c1b --why "a password"',
        "tape redact 3f2a@9c1b 3f2a@77de --dry-run",
    )
)
@click.argument("refs", metavar="REF...", nargs=-1, required=True, shell_complete=complete_ref)
@click.option("--why", default="", metavar="TEXT", help="Reason; recorded on the tape.")
@add_confirmation_options
@as_json
@click.pass_obj
def redact(
    options: GlobalOptions, refs: tuple[str, ...], why: str, yes: bool, dry_run: bool, as_json: bool
) -> int:
    """Overwrite the data of entries in place; this cannot be undone.

    Their ids, hashes and places stay, and a `redact` entry records it. Their blobs are deleted, and
    so are copies in quarantine and in the index. The title of the tape and the name of its folder
    are not changed, nor are copies elsewhere: in exports, in detached tapes.

    --json prints {tape, entry, targets, blobs, quarantine, done}.
    """
    how = Confirmation(yes, dry_run, as_json)
    targets = _resolve_entry_ids(options, refs)
    with open_entry(options, refs[0]) as (tape, head):
        entries, blobs = upkeep.preview_redaction(tape, targets)
        agreed = how.confirm_plan(_describe_redaction(tape, entries, blobs))
        if agreed:
            done = upkeep.redact(tape, targets, clean_argument(why), branch=head.branch)
        else:
            done = upkeep.Redacted(None, tuple(entry.entry for entry in entries), tuple(blobs), ())
        identity = tape.id
    if as_json:
        print_json({"tape": identity, **done._asdict(), "done": agreed})
    elif agreed:
        record = f"; recorded in entry {done.entry[:SHORT]}" if done.entry else ""
        print_lines(
            [f"redacted {format_count(len(done.targets), 'entry')} of {identity[:SHORT]}{record}"]
        )
    return 0 if agreed else how.report_refusal()


def _resolve_entry_ids(options: GlobalOptions, refs: tuple[str, ...]) -> list[str]:
    """Return the ids of entries in one tape; raise UsageError for other REFs."""
    tapes, ids = set(), []
    for text in refs:
        with open_ref(options, text) as (tape, head, _):
            if head is None:
                raise UsageError(f"{text!r} does not name an entry: write TAPE@ENTRY")
            tapes.add(tape.id)
            ids.append(head.entry)
    if len(tapes) > 1:
        raise UsageError("these entries are in several tapes: redact one tape at a time")
    return ids


def _describe_redaction(tape: Tape, entries: list[RedactionEntry], blobs: list[str]) -> list[str]:
    rows = [
        (entry.entry[:SHORT], entry.type, render_time(entry.time), format_size(len(entry.data)))
        for entry in entries
    ]
    headings = ("ENTRY", "TYPE", "TIME", "SIZE")
    table = format_table(rows, (3,), headings=headings, optional=("TIME", "SIZE")) if rows else ()
    gone = f", and {format_count(len(blobs), 'blob')} with them" if blobs else ""
    count_text = format_count(len(entries), "entry")
    return [
        f"the data of {count_text} of {tape.id[:SHORT]} will be overwritten{gone}:",
        *(f"  {row}" for row in table),
        "this cannot be undone",
    ]


@click.command(epilog=format_examples("tape detach 3f2a", "tape detach 3f2a --dry-run --json"))
@ref
@add_confirmation_options
@as_json
@click.pass_obj
def detach(options: GlobalOptions, ref: str, yes: bool, dry_run: bool, as_json: bool) -> int:
    """Copy the history that a tape shares with its origin, so that it no longer needs the origin.

    Afterwards the origin can be removed. --json prints {tape, origin, phases, bytes, done}; origin
    is null for a tape without one.
    """
    how = Confirmation(yes, dry_run, as_json)
    with open_ref(options, ref) as (tape, _, __):
        origin = tape.info.origin
        if origin is None or tape.phases.has_origin:
            if as_json:
                print_json(
                    {"tape": tape.id, "origin": None, "phases": 0, "bytes": 0, "done": False}
                )
            else:
                print_lines([f"{tape.id[:SHORT]} needs no other tape: nothing to detach"])
            return 0
        shared = tape.collect_shared_segments()
        weight = sum(segment.end - segment.start for segment in shared)
        short, others = tape.id[:SHORT], (origin.tape or "")[:SHORT]
        what = f"{format_count(len(shared), 'phase')} of {others}, {format_size(weight)}"
        agreed = how.confirm_plan(
            [
                f"{what}, and the blobs they name will be copied into {short}",
                f"{others} is not changed; this cannot be undone",
            ]
        )
        if agreed:
            upkeep.detach(tape)
        identity = tape.id
    about = {"origin": origin.tape, "phases": len(shared), "bytes": weight}
    if as_json:
        print_json({"tape": identity, **about, "done": agreed})
    elif agreed:
        print_lines([f"{identity[:SHORT]}: detached"])
    return 0 if agreed else how.report_refusal()


@click.command(
    epilog=format_examples("tape mv ../new-place", "tape mv 3f2a ~/src/new-place --json")
)
@click.argument(
    "words", metavar="[REF] DIR", nargs=-1, required=True, shell_complete=complete_ref_or_path
)
@as_json
@click.pass_obj
def mv(options: GlobalOptions, words: tuple[str, ...], as_json: bool) -> None:
    """Record that the project of a tape moved to DIR: a new entry on its current branch.

    Without a REF it is this folder's newest tape. The tape itself stays where it is. --json prints
    {tape, entry, cwd, was}.
    """
    ref, folder = split_optional_ref(options, words, "a folder")
    here = "" if os.path.isabs(folder) else get_current_folder()
    cwd = clean_argument(os.path.normpath(os.path.join(here, folder)))
    with open_library(options) as opened, open_ref(options, ref) as (tape, _, __):
        was = next((row.cwd for row in list_tapes(*opened) if row.id == tape.id), None)
        if not Path(cwd).is_dir():
            print_warning(f"{cwd} is not a folder yet")
        repository = find_facts(locate_repository(cwd)).repository
        entry = upkeep.move(tape, cwd, repository)
        identity = tape.id
    if as_json:
        print_json({"tape": identity, "entry": entry, "cwd": cwd, "was": was})
    else:
        undo = f"; `tape mv {identity[:SHORT]} {was}` undoes it" if was else ""
        print_lines([to_single_line(f"{identity[:SHORT]}: working folder is now {cwd}{undo}")])


@click.command(epilog=format_examples("tape machine", "tape machine build-server"))
@click.argument("name", required=False)
@as_json
@click.pass_obj
def machine(options: GlobalOptions, name: str | None, as_json: bool) -> None:
    """Show the name of this machine that new tapes record, or set it.

    It is the name of the host when the store is first written. Tapes that are there keep the name
    that they have. --json prints {machine, replica}: `replica` is the id of this copy of the store,
    null before the first tape.
    """
    with open_library(options) as (store, _):
        if name is not None:
            name = check_machine_name(clean_argument(name))
            store.open_tapes_folder().close()
            with Folder.open(store.path) as home:
                replica = name_replica(home, store.random, name)
        else:
            store.check()
            replica = read_replica(store.path) or Replica("", name_host())
    if as_json:
        print_json({"machine": replica.machine, "replica": replica.id or None})
    else:
        print_lines([to_single_line(replica.machine)])


@click.command(epilog=format_examples("tape reindex", "tape reindex --json"))
@as_json
@click.pass_obj
def reindex(options: GlobalOptions, as_json: bool) -> None:
    """Rebuild the index by reading all tapes.

    It is never needed for correct answers: a lost or damaged index is rebuilt automatically.
    Stopped by Ctrl+C, it continues there the next time. --json prints {tapes, bytes}.
    """
    with open_library(options) as (store, _):
        store.check()
        if not store.tapes.is_dir():
            count = weight = 0
        else:
            try:
                continuation = "`tape reindex` continues there"
                with show_progress("read tape", outcome=continuation) as tell:
                    rebuild_index(store, progress=tell)
            except (sqlite3.Error, OSError) as error:
                why = getattr(error, "strerror", None) or str(error)
                raise WriteFailed(
                    f"the index of {store.path} cannot be written: {why}; "
                    "every command works without one, only slower"
                ) from error
            count, weight = len(store.folders()), (store.path / "index.db").stat().st_size
    if as_json:
        print_json({"tapes": count, "bytes": weight})
    else:
        print_lines([f"the index holds {format_count(count, 'tape')} in {format_size(weight)}"])
