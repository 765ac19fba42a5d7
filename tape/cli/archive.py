"""`archive` and `unarchive`: tapes as one compressed file each, and as folders again."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click
from msgspec import Struct

from ..clock import read_clock
from ..errors import TapeError, UsageError
from ..index.library import list_tapes
from ..places.reference import Reference, parse_reference
from ..store.maintenance.archive import measure_tape, pack_tape, unpack_tape
from ..store.tape_folder import is_archived
from ..text import SHORT, format_count, to_single_line
from .output import as_json, complete_ref, format_examples, format_size, print_json
from .resolve import open_library, open_ref
from .terminal import print_lines, print_warning, show_progress
from .timeparse import parse_moment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..index.library import Library
    from ..store.maintenance.archive import ArchivedTape
    from ..store.store import Store
    from ..store.tape import Tape
    from .group import GlobalOptions


class _Form(NamedTuple):
    """One of the two forms, and how a tape gets it."""

    change: Callable[[Store, Tape], ArchivedTape]
    is_archive: bool
    done: str
    """What is said of a tape that got it."""
    same: str
    """What is said of a tape that has it."""
    would: str


_ARCHIVE = _Form(pack_tape, True, "archived", "is archived already", "would be archived")
_FOLDER = _Form(unpack_tape, False, "is a folder again", "is a folder", "would be a folder")


class ChangedTape(Struct, frozen=True):
    """A tape and the bytes of its files before and after."""

    tape: str
    folder: str
    before: int
    after: int | None
    """None where nothing was done."""
    changed: bool


class LeftTape(Struct, frozen=True):
    """A tape that keeps its form."""

    tape: str
    folder: str
    why: str


class FormReport(Struct):
    """What `archive --json` and `unarchive --json` print."""

    tapes: list[ChangedTape]
    skipped: list[LeftTape]
    done: bool


_dry_run = click.option("--dry-run", is_flag=True, help="Only show what would be done.")


@click.command(
    epilog=format_examples(
        "tape archive 3f2a", "tape archive --older 90d --dry-run", "tape archive --older 90d"
    )
)
@click.argument("refs", metavar="[REF]...", nargs=-1, shell_complete=complete_ref)
@click.option("--older", metavar="AGE", help="All tapes not used since: 90d, 12w, 1y, or a date.")
@_dry_run
@as_json
@click.pass_obj
def archive(
    options: GlobalOptions, refs: tuple[str, ...], older: str | None, dry_run: bool, as_json: bool
) -> int:
    """Make one compressed file of each tape, in place of its folder.

    An archived tape takes a fraction of the room, and is listed, searched, shown, verified,
    exported and forked as before. The first write makes a folder of it again; so does `tape
    unarchive`. A tape that is being written is left as it is, and named. To write a copy of a tape
    elsewhere use `tape export`.

    --json prints {tapes [{tape, folder, before, after, changed}], skipped [{tape, folder, why}],
    done}: bytes before and after. Exits with the code of the first error.
    """
    if bool(refs) == bool(older):
        raise UsageError(
            "name the tapes to archive, or say --older AGE; `tape export -o FILE` writes a copy"
        )
    before = parse_moment(older, read_clock()) if older else ""
    with open_library(options) as opened:
        folders = _find_folders(options, refs) if refs else _find_older(opened, before)
        return _change_forms(opened, folders, _ARCHIVE, dry_run=dry_run, as_json=as_json)


@click.command(epilog=format_examples("tape unarchive 3f2a", "tape unarchive --all"))
@click.argument("refs", metavar="[REF]...", nargs=-1, shell_complete=complete_ref)
@click.option("--all", "every", is_flag=True, help="All archived tapes.")
@_dry_run
@as_json
@click.pass_obj
def unarchive(
    options: GlobalOptions, refs: tuple[str, ...], every: bool, dry_run: bool, as_json: bool
) -> int:
    """Make folders of archived tapes again, with the same files.

    --json prints what `tape archive --json` does.
    """
    if bool(refs) == every:
        raise UsageError("name the tapes, or say --all")
    with open_library(options) as opened:
        folders = _find_folders(options, refs) if refs else _find_archived(opened)
        return _change_forms(opened, folders, _FOLDER, dry_run=dry_run, as_json=as_json)


def _find_folders(options: GlobalOptions, refs: Sequence[str]) -> list[str]:
    """Return the folders of the tapes that REFs name; raise UsageError for parts of one."""
    folders = []
    for text in refs:
        reference = parse_reference(text)
        if reference.tape is None or reference[1:] != Reference()[1:]:
            raise UsageError(f"{text!r} does not name a whole tape: write TAPE")
        with open_ref(options, text, warns=False) as (tape, head, branch):
            if head is not None or branch is not None:
                raise UsageError(f"{text!r} names a part of tape {tape.id[:SHORT]}: write that")
            folders.append(tape.folder.name)
    return list(dict.fromkeys(folders))


def _find_older(opened: Library, before: str) -> list[str]:
    """Return the folders of the tapes last used before a time that are not archived."""
    rows = [row for row in list_tapes(*opened) if row.updated < before and not row.archived]
    return [row.folder for row in rows]


def _find_archived(opened: Library) -> list[str]:
    return [row.folder for row in list_tapes(*opened) if row.archived]


def _change_forms(
    opened: Library, folders: Sequence[str], form: _Form, *, dry_run: bool, as_json: bool
) -> int:
    """Give tapes a form, one after the other, and say so; return the exit code."""
    report, code, store = FormReport([], [], not dry_run), 0, opened.store
    with show_progress("tape") as tell:
        for at, folder in enumerate(folders):
            tell(at, len(folders))
            identity = store.read_tape_id(folder)
            try:
                with store.open_folder(folder) as tape:
                    changed = _change_form(store, tape, form, dry_run=dry_run)
            except (TapeError, OSError) as error:
                why = str(error) if isinstance(error, TapeError) else f"{error.strerror}"
                report.skipped.append(LeftTape(identity, folder, why))
                code = code or int(getattr(error, "exit_code", 1))
                print_warning(to_single_line(f"{identity[:SHORT] or folder} is left: {why}"))
            else:
                report.tapes.append(changed)
                if not as_json:
                    print_lines([_describe_change(changed, form)])
    list_tapes(*opened, limit=0)  # the index reads those that changed
    if as_json:
        print_json(report)
    elif len(folders) != 1:
        print_lines([_describe_sum(report, form)])
    return code


def _change_form(store: Store, tape: Tape, form: _Form, *, dry_run: bool) -> ChangedTape:
    if dry_run:
        is_other = is_archived(tape.folder) != form.is_archive
        size = measure_tape(store, tape)
        return ChangedTape(tape.id, tape.folder.name, size, None, is_other)
    done = form.change(store, tape)
    return ChangedTape(tape.id, tape.folder.name, done.before, done.after, done.is_changed)


def _describe_change(changed: ChangedTape, form: _Form) -> str:
    short = changed.tape[:SHORT]
    if not changed.changed:
        return f"{short} {form.same}"
    if changed.after is None:
        return f"{short} {form.would}, {format_size(changed.before)}"
    sizes = f"{format_size(changed.before)} → {format_size(changed.after)}"
    return f"{short}: {form.done}, {sizes}" if form.is_archive else f"{short} {form.done}, {sizes}"


def _describe_sum(report: FormReport, form: _Form) -> str:
    changed = [tape for tape in report.tapes if tape.changed]
    count_text, before = format_count(len(changed), "tape"), sum(tape.before for tape in changed)
    if not report.done:
        return f"{count_text} {form.would}, {format_size(before)}"
    after = sum(tape.after or 0 for tape in changed)
    return f"{count_text}, {format_size(before)} → {format_size(after)}"
