"""`rm`, `restore` and `gc`: moving tapes to the trash, restoring them, and deleting permanently."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import click
from msgspec import Struct
from msgspec.structs import replace

from ..errors import UsageError
from ..places.reference import Reference, parse_reference
from ..store.disk import Folder
from ..store.maintenance.gc import Garbage, GarbageSurvey, SkippedTape, delete_garbage, find_garbage
from ..store.tape_folder import find_tape_entry, get_tape_name
from ..text import SHORT, format_count, to_single_line
from .output import (
    Confirmation,
    add_confirmation_options,
    as_json,
    complete_ref,
    format_examples,
    format_size,
    print_json,
)
from .resolve import open_library, open_ref
from .terminal import format_table, print_lines, print_warning, show_progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..store.store import Store
    from ..store.tape import Tape
    from .group import GlobalOptions

_CONTINUES = "that is gone, and `tape gc` deletes the rest"
MAX_NAMED = 12
"""How many items of one kind are named one by one."""


class RemovedTape(Struct, frozen=True):
    """A tape to move to the trash."""

    tape: str
    folder: str
    title: str | None
    branches: int
    bytes: int


@click.command(
    epilog=format_examples("tape rm 3f2a", "tape rm 3f2a 9c1b --yes", "tape rm 3f2a --dry-run")
)
@click.argument("tapes", metavar="TAPE...", nargs=-1, required=True, shell_complete=complete_ref)
@add_confirmation_options
@as_json
@click.pass_obj
def rm(
    options: GlobalOptions, tapes: tuple[str, ...], yes: bool, dry_run: bool, as_json: bool
) -> int:
    """Move whole tapes to the trash of the store; `tape restore` brings them back.

    A tape that others were forked from is refused, unless they are removed too or were detached.
    --json prints {removed [{tape, folder, title, branches, bytes}], done}.
    """
    how = Confirmation(yes, dry_run, as_json)
    with open_library(options) as (store, _), ExitStack() as held:
        opened: dict[str, Tape] = {}
        for text in tapes:
            reference = parse_reference(text)
            if reference.tape is None or reference[1:] != Reference()[1:]:
                raise UsageError(f"{text!r} does not name a whole tape: write TAPE")
            tape, head, branch = held.enter_context(open_ref(options, text))
            if head is not None or branch is not None:
                raise UsageError(
                    f"{text!r} names a part of tape {tape.id[:SHORT]}: write that to remove it all"
                )
            opened.setdefault(tape.id, tape)
        # children first: they are younger
        gone = sorted(opened.values(), key=lambda tape: tape.info.created, reverse=True)
        with Folder.open(store.tapes) as folders:
            removed = [
                RemovedTape(
                    tape.id,
                    tape.folder.name,
                    tape.title(),
                    len(tape.refs().branches),
                    folders.measure_bytes(find_tape_entry(folders, tape.folder.name)),
                )
                for tape in gone
            ]
        agreed = how.confirm_plan(_describe_removal(removed))
        if agreed:
            for at, tape in enumerate(gone):
                removed[at] = replace(removed[at], folder=store.remove(tape))
                if not as_json:
                    short = tape.id[:SHORT]
                    print_lines([f"{short} is in the trash: `tape restore {short}` undoes it"])
    if as_json:
        print_json({"removed": removed, "done": agreed})
    return 0 if agreed else how.report_refusal()


def _describe_removal(removed: list[RemovedTape]) -> list[str]:
    total = sum(tape.bytes for tape in removed)
    rows = format_table(
        [
            (
                tape.tape[:SHORT],
                f'"{to_single_line(tape.title)}"' if tape.title else "–",
                format_size(tape.bytes),
            )
            for tape in removed
        ],
        right=(2,),
    )
    heading = f"{format_count(len(removed), 'tape')} will move to the trash, {format_size(total)}:"
    return [heading, *(f"  {row}" for row in rows), "`tape restore` brings them back"]


@click.command(epilog=format_examples("tape restore", "tape restore 3f2a"))
@click.argument("tapes", metavar="[TAPE]...", nargs=-1)
@as_json
@click.pass_obj
def restore(options: GlobalOptions, tapes: tuple[str, ...], as_json: bool) -> None:
    """Restore tapes from the trash; without a TAPE, list the trash.

    TAPE is an id, or the beginning of one, or the name of a folder in the trash. --json prints an
    array of {tape, folder}; a list adds bytes.
    """
    with open_library(options) as (store, _):
        if not tapes:
            listed = _list_trash(store)
            if as_json:
                print_json(listed)
            elif listed:
                rows = [
                    ((item.tape or "?")[:SHORT], item.folder, format_size(item.bytes))
                    for item in listed
                ]
                headings = ("TAPE", "FOLDER", "SIZE")
                print_lines(format_table(rows, (2,), headings=headings, optional=("SIZE",)))
            else:
                print_warning("the trash is empty")
            return
        back = []
        for name in tapes:
            folder = store.restore(name)
            identity = store.read_tape_id(folder)
            back.append({"tape": identity, "folder": folder})
            if not as_json:
                print_lines([f"{identity[:SHORT]}: restored to {folder}"])
    if as_json:
        print_json(back)


class TrashItem(Struct, frozen=True):
    """A tape in the trash."""

    tape: str | None
    """None when tape.json cannot be read."""
    folder: str
    bytes: int


def _list_trash(store: Store, *, tapes_only: bool = True) -> list[TrashItem]:
    """Return the content of the trash, as `restore` lists it and `gc --trash` empties it."""
    tapes = {trashed.folder: trashed.id for trashed in store.trash()}
    with suppress(FileNotFoundError), Folder.open(store.path / "trash") as trash:
        return [
            TrashItem(tapes.get(get_tape_name(name)) or None, name, trash.measure_bytes(name))
            for name in trash.names()
            if get_tape_name(name) in tapes or not tapes_only
        ]
    return []


class GarbageReport(Struct, frozen=True):
    """What `gc --json` prints."""

    garbage: tuple[Garbage, ...]
    """The garbage that was found, or deleted."""
    kept: tuple[SkippedTape, ...]
    """Tapes in which nothing is deleted, and why."""
    trash: list[TrashItem]
    """Items of the trash that are deleted too."""
    bytes: int
    done: bool


@click.command(epilog=format_examples("tape gc --dry-run", "tape gc", "tape gc --trash --yes"))
@click.option("--trash", "empties", is_flag=True, help="Empty the trash too.")
@add_confirmation_options
@as_json
@click.pass_obj
def gc(options: GlobalOptions, empties: bool, yes: bool, dry_run: bool, as_json: bool) -> int:
    """Delete unreachable files permanently; with --trash, removed tapes too.

    That is: uncommitted phases and, if not touched for an hour, blobs that no entry names and
    leftovers of interrupted writes. Nothing is deleted in a tape that has damage or is being
    written; those tapes are listed. Stopped by Ctrl+C, what is done is kept; the next gc continues.

    --json prints {garbage [{path, kind, bytes}], kept [{folder, why}], trash [{tape, folder,
    bytes}], bytes, done}.
    """
    how = Confirmation(yes, dry_run, as_json)
    with open_library(options) as (store, _):
        with show_progress("checked tape", outcome="nothing was deleted") as tell:
            garbage = find_garbage(store, tell)
        trash = _list_trash(store, tapes_only=False) if empties else []
        anything = bool(garbage.garbage or trash)
        agreed = anything and how.confirm_plan(_describe_collection(garbage, trash))
        if agreed:
            if empties:
                store.empty_trash()
            with show_progress("deleted", outcome=_CONTINUES) as tell:
                gone = delete_garbage(store, garbage, tell)
            garbage = GarbageSurvey(gone.garbage, (*garbage.kept, *gone.kept))
    freed = _count_bytes(garbage, trash)
    if as_json:
        print_json(GarbageReport(garbage.garbage, garbage.kept, trash, freed, agreed))
    elif agreed:
        print_lines([*_format_spared_tapes(garbage.kept), f"freed {format_size(freed)}"])
    elif not anything:
        print_lines([*_format_spared_tapes(garbage.kept), "nothing to delete"])
    return 0 if agreed or not anything else how.report_refusal()


def _count_bytes(garbage: GarbageSurvey, trash: list[TrashItem]) -> int:
    return sum(item.bytes for item in garbage.garbage) + sum(item.bytes for item in trash)


_GARBAGE_KINDS = {
    "blob": "blob that no entry names",
    "phase": "phase that was never committed",
    "leftover": "leftover of an interrupted write",
}


def _describe_collection(garbage: GarbageSurvey, trash: list[TrashItem]) -> Iterator[str]:
    yield from _format_spared_tapes(garbage.kept)
    for kind, words in _GARBAGE_KINDS.items():
        chosen = [(item.path, item.bytes) for item in garbage.garbage if item.kind == kind]
        yield from _describe_garbage(words, chosen)
    yield from _describe_garbage("item in the trash", [(item.folder, item.bytes) for item in trash])
    freed = format_size(_count_bytes(garbage, trash))
    yield f"{freed} will be deleted for good: this cannot be undone"


def _describe_garbage(words: str, things: list[tuple[str, int]]) -> Iterator[str]:
    """Yield the count of one kind, and its largest items by name."""
    if not things:
        return
    first, *rest = words.split(" ", 1)
    of_kind = " ".join([format_count(len(things), first), *rest])
    yield f"{of_kind}, {format_size(sum(weight for _, weight in things))}:"
    for path, weight in sorted(things, key=lambda thing: -thing[1])[:MAX_NAMED]:
        yield f"  {to_single_line(path)}  {format_size(weight)}"
    if len(things) > MAX_NAMED:
        yield f"  … {len(things) - MAX_NAMED} more"


def _format_spared_tapes(skipped: tuple[SkippedTape, ...]) -> Iterator[str]:
    for tape in skipped:
        yield to_single_line(f"skipped: {tape.folder}: {tape.why}")
