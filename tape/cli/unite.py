"""`unite`: everything of another copy of a tape or a store comes to this one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from ..errors import NotFound, UsageError
from ..store.packed import PACKED_SUFFIX
from ..store.recorded_tape import find_existing_folder
from ..store.store import Store
from ..store.tape import INFO_NAME, Tape
from ..store.tape_folder import TapeFolder, get_tape_name
from ..text import SHORT, format_count
from ..unite.stores import TapeOutcome, add_tape_copy, unite_stores
from .output import as_json, format_examples, print_json
from .resolve import open_library
from .terminal import print_lines, print_warning, show_progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..unite.journal import KeptEnd
    from .group import GlobalOptions


class _Copy(NamedTuple):
    """A folder that was given: a store, or a tape."""

    path: Path
    store: Path | None
    """None for a tape that is in no store."""
    tape: str | None
    """The name of the tape's folder; None for a store."""


@click.command(
    epilog=format_examples("tape unite /mnt/laptop/.tape", "tape unite ~/.tape /mnt/laptop/.tape")
)
@click.argument("paths", metavar="[INTO] FROM", nargs=-1, required=True)
@as_json
@click.pass_obj
def unite(options: GlobalOptions, paths: tuple[str, ...], as_json: bool) -> int:
    """Bring everything of FROM, another copy of a store or of one tape, to INTO.

    Both are folders: a store, or the folder of a tape. Without INTO it is the store that other
    commands use. Only INTO changes, and it loses nothing: entries, branches, labels and titles of
    both are there. A branch that both copies moved keeps both ends: it is at the newer one, and the
    other becomes BRANCH.MACHINE. Uniting again adds nothing.

    --json prints an array of {tape, folder, new, entries, phases, moves, kept [{branch, other}],
    lost, error}, one for each tape. Exits with 1 if a tape could not be united.
    """
    if len(paths) > 2:  # noqa: PLR2004 (INTO and FROM)
        raise UsageError("give at most two folders: INTO and FROM")
    source = _locate_copy(paths[-1])
    target = _locate_copy(paths[0]) if len(paths) > 1 else None
    if target is not None:
        if target.store is None:
            raise UsageError(f"{target.path} is in no store: give the store that it is in")
        options.store = str(target.store)
    with open_library(options) as (store, _), show_progress("united tape") as progress:
        if source.store == store.path.resolve():
            raise UsageError(f"{paths[-1]} is in {store.path} already: give another copy")
        outcomes = []
        for outcome in _unite_copies(store, source, target):
            outcomes.append(outcome)
            progress(len(outcomes), 0)
    if as_json:
        print_json([build_outcome(outcome) for outcome in outcomes])
    else:
        print_outcomes(outcomes)
    return 1 if any(outcome.error for outcome in outcomes) else 0


def _locate_copy(text: str) -> _Copy:
    path = Path(text).resolve()
    if (path / INFO_NAME).is_file() or (path.name.endswith(PACKED_SUFFIX) and path.is_file()):
        in_store, name = path.parent.name == "tapes", get_tape_name(path.name)
        return _Copy(path, path.parent.parent if in_store else None, name)
    if (path / "tapes").is_dir():
        return _Copy(path, path, None)
    raise NotFound(f"{text} is neither a store nor the folder of a tape")


def _unite_copies(store: Store, source: _Copy, target: _Copy | None) -> Iterator[TapeOutcome]:
    only = None if target is None or target.tape is None else store.read_tape_id(target.tape)
    if source.store is None:
        name = get_tape_name(source.path.name)
        with Tape(TapeFolder.open_in(str(source.path.parent), name), store.open) as tape:
            _refuse_other_tape(only, tape.id, source.path)
            yield add_tape_copy(store, tape, find_existing_folder(store, tape.id))
        return
    there = Store(source.store, anonymous=True)
    names: Sequence[str] | None = None if source.tape is None else [source.tape]
    if only is not None:
        names = [name for name in names or there.folders() if there.read_tape_id(name) == only]
        if not names:
            raise UsageError(f"{source.path} holds no copy of tape {only[:SHORT]}")
    yield from unite_stores(store, there, names)


def _refuse_other_tape(only: str | None, tape: str, path: Path) -> None:
    if only not in (None, tape):
        raise UsageError(f"{path} is a copy of tape {tape[:SHORT]}, not of {(only or '')[:SHORT]}")


def build_outcome(outcome: TapeOutcome) -> dict[str, object]:
    """Return what --json prints of a tape."""
    union = outcome.union
    return {
        "tape": outcome.tape,
        "folder": outcome.folder,
        "new": outcome.is_new,
        "entries": union.entries if union else 0,
        "phases": list(union.phases) if union else [],
        "moves": union.moves if union else 0,
        "kept": [end._asdict() for end in union.kept] if union else [],
        "lost": list(union.lost) if union else [],
        "error": outcome.error,
    }


def describe_kept_ends(ends: Iterable[KeptEnd]) -> Iterator[str]:
    """Yield a line for each branch that moved in both copies."""
    for end in ends:
        yield f"  {end.branch} moved in both copies: the other end is {end.other}"


def print_outcomes(outcomes: Sequence[TapeOutcome]) -> None:
    """Print a line for each tape that something came to, and how many stayed as they were."""
    unchanged = 0
    for outcome in outcomes:
        short, union = outcome.tape[:SHORT] or outcome.folder, outcome.union
        if union is None:
            print_warning(f"{short}: {outcome.error}")
            continue
        if not union.moves and not union.entries:
            unchanged += 1
            continue
        came = f"{format_count(union.entries, 'entry')}, {format_count(union.moves, 'move')}"
        print_lines([f"{short}: {'new, ' if outcome.is_new else ''}{came}"])
        print_lines(describe_kept_ends(union.kept))
        if union.lost:
            print_warning(f"{short}: {format_count(len(union.lost), 'blob')} missing in that copy")
    if unchanged:
        print_lines([f"{format_count(unchanged, 'tape')} with nothing new"])
