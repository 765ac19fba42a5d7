"""`rm`, `restore` and `gc`: moving tapes to the trash, restoring them, and deleting permanently."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct
from msgspec.structs import asdict, replace

from ..disk import Folder
from ..errors import UsageError
from ..gc import Garbage, Kept, Survey, delete, survey
from ..reference import Reference, parse
from ..render import SHORT, single
from .call import found, library
from .consent import How, asking
from .out import (
    as_json,
    counted,
    document,
    examples,
    places,
    progress,
    say,
    size,
    table,
    warn,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..store import Store
    from ..tape import Tape
    from .group import Options

MOST = 12
"""How many items of one kind are named one by one."""


class Removed(Struct, frozen=True):
    """A tape to move to the trash."""

    tape: str
    folder: str
    title: str | None
    branches: int
    bytes: int


@click.command(epilog=examples("tape rm 3f2a", "tape rm 3f2a 9c1b --yes", "tape rm 3f2a --dry-run"))
@click.argument("tapes", metavar="TAPE...", nargs=-1, required=True, shell_complete=places)
@asking
@as_json
@click.pass_obj
def rm(options: Options, tapes: tuple[str, ...], yes: bool, dry_run: bool, as_json: bool) -> int:
    """Move whole tapes to the trash of the store; `tape restore` brings them back.

    A tape that others were forked from is refused, unless they are removed too or were detached.
    --json prints {removed [{tape, folder, title, branches, bytes}], done}.
    """
    how = How(yes, dry_run, as_json)
    with library(options) as (store, _), ExitStack() as held:
        opened: dict[str, Tape] = {}
        for text in tapes:
            tape = held.enter_context(found(options, _whole(text))).tape
            opened.setdefault(tape.id, tape)
        gone = sorted(opened.values(), key=lambda tape: tape.info.created, reverse=True)
        removed = [_about(store, tape) for tape in gone]  # children first: they are younger
        agreed = how.agreed(_rm_plan(removed))
        if agreed:
            todo = zip(removed, gone, strict=True)
            removed = [_removed(store, tape, one, as_json=as_json) for one, tape in todo]
    if as_json:
        document({"removed": removed, "done": agreed})
    return 0 if agreed else how.undone()


def _whole(text: str) -> str:
    """Return the REF if it names a whole tape; raise UsageError otherwise."""
    reference = parse(text)
    if reference.tape is None or reference[1:] != Reference()[1:]:
        raise UsageError(f"{text!r} does not name a whole tape: write TAPE")
    return text


def _about(store: Store, tape: Tape) -> Removed:
    refs, name = tape.refs(), tape.folder.name
    with Folder.open(store.tapes) as tapes:
        return Removed(tape.id, name, tape.title(), len(refs.branches), tapes.weight(name))


def _removed(store: Store, tape: Tape, about: Removed, *, as_json: bool) -> Removed:
    """Move a tape to the trash, then print how to restore it."""
    folder = store.remove(tape)
    if not as_json:
        short = tape.id[:SHORT]
        say([f"{short} is in the trash: `tape restore {short}` undoes it"])
    return replace(about, folder=folder)


def _rm_plan(removed: list[Removed]) -> list[str]:
    total = sum(one.bytes for one in removed)
    rows = table(
        [
            (one.tape[:SHORT], f'"{single(one.title)}"' if one.title else "–", size(one.bytes))
            for one in removed
        ],
        right=(2,),
    )
    heading = f"{counted(len(removed), 'tape')} will move to the trash, {size(total)}:"
    return [heading, *(f"  {row}" for row in rows), "`tape restore` brings them back"]


@click.command(epilog=examples("tape restore", "tape restore 3f2a"))
@click.argument("tapes", metavar="[TAPE]...", nargs=-1)
@as_json
@click.pass_obj
def restore(options: Options, tapes: tuple[str, ...], as_json: bool) -> None:
    """Restore tapes from the trash; without a TAPE, list the trash.

    TAPE is an id, or the beginning of one, or the name of a folder in the trash. --json prints an
    array of {tape, folder}; a list adds bytes.
    """
    with library(options) as (store, _):
        if not tapes:
            listed = [asdict(one) for one in _trashed(store)]
            document(listed) if as_json else say(_trash_lines(listed))
            return
        back = [_restored(store, name, as_json=as_json) for name in tapes]
    if as_json:
        document(back)


class Trashed(Struct, frozen=True):
    """A tape in the trash."""

    tape: str | None
    """None when tape.json cannot be read."""
    folder: str
    bytes: int


def _trashed(store: Store, *, tapes_only: bool = True) -> list[Trashed]:
    """Return the content of the trash, as `restore` lists it and `gc --trash` empties it."""
    tapes = {one.folder: one.id for one in store.trash()}
    with suppress(FileNotFoundError), Folder.open(store.path / "trash") as trash:
        return [
            Trashed(tapes.get(name) or None, name, trash.weight(name))
            for name in trash.names()
            if name in tapes or not tapes_only
        ]
    return []


def _trash_lines(listed: list[dict[str, Any]]) -> list[str]:
    if not listed:
        warn("the trash is empty")
        return []
    rows = [((one["tape"] or "?")[:SHORT], one["folder"], size(one["bytes"])) for one in listed]
    return table(rows, right=(2,))


def _restored(store: Store, name: str, *, as_json: bool) -> dict[str, str]:
    folder = store.restore(name)
    identity = store.id_of(folder)
    if not as_json:
        say([f"{identity[:SHORT]}: restored to {folder}"])
    return {"tape": identity, "folder": folder}


class Collected(Struct, frozen=True):
    """What `gc --json` prints."""

    garbage: tuple[Garbage, ...]
    """The garbage that was found, or deleted."""
    kept: tuple[Kept, ...]
    """Tapes in which nothing is deleted, and why."""
    trash: list[Trashed]
    """Items of the trash that are deleted too."""
    bytes: int
    done: bool


@click.command(epilog=examples("tape gc --dry-run", "tape gc", "tape gc --trash --yes"))
@click.option("--trash", "empties", is_flag=True, help="Empty the trash too.")
@asking
@as_json
@click.pass_obj
def gc(options: Options, empties: bool, yes: bool, dry_run: bool, as_json: bool) -> int:
    """Delete unreachable files permanently; with --trash, removed tapes too.

    That is: uncommitted phases and, if not touched for an hour, blobs that no entry names and
    leftovers of interrupted writes. Nothing is deleted in a tape that has damage or is being
    written; those tapes are listed.

    --json prints {garbage [{path, kind, bytes}], kept [{folder, why}], trash [{tape, folder,
    bytes}], bytes, done}.
    """
    how = How(yes, dry_run, as_json)
    with library(options) as (store, _):
        with progress("checked tape") as tell:
            found = survey(store, tell)
        trash = _trashed(store, tapes_only=False) if empties else []
        anything = bool(found.garbage or trash)
        agreed = anything and how.agreed(_gc_plan(found, trash))
        if agreed:
            if empties:
                store.empty_trash()
            found = _without(found, delete(store, found))
    freed = _bytes(found, trash)
    if as_json:
        document(Collected(found.garbage, found.kept, trash, freed, agreed))
    elif agreed:
        say([*_kept_lines(found.kept), f"freed {size(freed)}"])
    elif not anything:
        say([*_kept_lines(found.kept), "nothing to delete"])
    return 0 if agreed or not anything else how.undone()


def _bytes(found: Survey, trash: list[Trashed]) -> int:
    return sum(one.bytes for one in found.garbage) + sum(one.bytes for one in trash)


def _without(found: Survey, gone: Survey) -> Survey:
    """Return the deleted garbage, with the kept tapes of both surveys."""
    return Survey(gone.garbage, (*found.kept, *gone.kept))


_KINDS = {
    "blob": "blob that no entry names",
    "phase": "phase that was never committed",
    "leftover": "leftover of an interrupted write",
}


def _gc_plan(found: Survey, trash: list[Trashed]) -> Iterator[str]:
    yield from _kept_lines(found.kept)
    for kind, words in _KINDS.items():
        chosen = [(one.path, one.bytes) for one in found.garbage if one.kind == kind]
        yield from _group(words, chosen)
    yield from _group("item in the trash", [(one.folder, one.bytes) for one in trash])
    yield f"{size(_bytes(found, trash))} will be deleted for good: this cannot be undone"


def _group(words: str, things: list[tuple[str, int]]) -> Iterator[str]:
    """Yield the count of one kind, and its largest items by name."""
    if not things:
        return
    first, *rest = words.split(" ", 1)
    of_kind = " ".join([counted(len(things), first), *rest])
    yield f"{of_kind}, {size(sum(weight for _, weight in things))}:"
    for path, weight in sorted(things, key=lambda thing: -thing[1])[:MOST]:
        yield f"  {single(path)}  {size(weight)}"
    if len(things) > MOST:
        yield f"  … {len(things) - MOST} more"


def _kept_lines(kept: tuple[Kept, ...]) -> Iterator[str]:
    for one in kept:
        yield single(f"skipped: {one.folder}: {one.why}")
