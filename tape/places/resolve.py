"""REF to place: which entry of which tape a reference means (tape.md §8).

The first of these that finds something decides; more than one hit raises Ambiguous:

    TAPE             id prefix of a tape · folder name · id in a folder's name ·
                     branch of this folder's tape
    a bare word      the same, but before the branch: id prefix of an entry of any tape ·
                     label of any tape
    @ENTRY           id prefix of an entry of the tape, else of its origin · label of the tape
    HEAD             as nothing, if nothing else has that name: a word of git
    nothing          the newest tape of the working folder, else of its repository (of this
                     checkout, else of another one); of a tape, its current branch's head

Three digits can be an id too, and as well a word: then a label or branch of that name comes first.

Each question is asked of the index if there is one, else of the files, with the same answer.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ..errors import Ambiguous, NotFound, TapeError, UsageError
from ..folders import locate_repository
from ..ids import is_id_prefix
from ..index.database import ManyNewTapes
from ..index.library import ask_index, list_newest_tapes, list_tapes, read_tape_row
from ..index.tape_filter import TapeFilter
from ..store.packed import PACKED_SUFFIX
from ..store.phase import ORIGIN
from ..store.refs import is_ref_name, read_head_at
from ..store.tape import Hit
from ..store.tape_folder import get_tape_name
from .checkout import find_checkout
from .newest import TapePlace, TooMuch, find_newest_tape
from .reference import (
    MIN_SURE_DIGITS,
    Reference,
    build_session_branch,
    build_session_label,
    find_session_name,
    parse_reference,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..index.lookups import EntryLocation
    from ..index.projection import Index
    from ..index.reader import TapeRow
    from ..store.refs import Head
    from ..store.store import Store
    from ..store.tape import Tape
    from .reference import SessionName


_TAPE_ID = 32
"""Hex digits of a tape's id; a longer prefix can only be an entry's."""
_MAX_LISTED = 10
"""How many hits of an ambiguous word are listed."""


class _FoundPlace(NamedTuple):
    """A tape's folder, and the id of an entry in it, or one of its branches, if that was found."""

    folder: str
    entry: str | None = None
    branch: str | None = None


class FoundReference(NamedTuple):
    """The tape that a REF means, and the rest of it."""

    folder: str
    """Name of the tape's folder."""
    reference: Reference
    """What the REF says of that tape; a bare word that is no tape has become a branch or entry."""


def find_reference(store: Store, index: Index | None, text: str, cwd: str) -> FoundReference:
    """Return the tape that a REF means; its branch and entry are not looked up.

    A REF that names no tape means the one with the newest head among those whose cwd is `cwd`, else
    among those of the same repository, first in this checkout; `cwd` may be "" for REFs without
    branch names. Raises UsageError, NotFound and Ambiguous, and NewerFormat or Damaged of the store
    itself.
    """
    store.check()
    reference = parse_reference(text)
    try:
        place = _find_meant_tape(store, index, reference, cwd)
    except NotFound as error:
        name = find_session_name(text)
        if name is None:
            raise
        label = build_session_label(*name)
        places = _find_labels(store, index, label)
        if not places:
            missing = f"{text} has not been imported: `tape import auto` does that"
            raise NotFound(missing) from error
        place = _require_single_place(store, label, places)
        if reference.branch is not None or reference.entry is not None:
            place = place._replace(entry=None)
        else:
            place = _find_session_branch(store, index, name, place)
    reference = reference._replace(tape=None)
    if place.entry is not None:
        reference = reference._replace(entry=place.entry)
    if place.branch is not None:
        reference = reference._replace(branch=place.branch)
    return FoundReference(place.folder, reference)


def _find_session_branch(
    store: Store, index: Index | None, name: SessionName, place: _FoundPlace
) -> _FoundPlace:
    """Return the branch of a session on the tape of another one, whose newest entry is labelled.

    The entry itself, where no branch of the session ends or continues there: imports of earlier
    versions made none for a session that has nothing of its own.
    """
    stem = f"{build_session_branch(*name)}-"
    with store.open_folder(place.folder) as tape:
        branches = tape.refs().branches
        own = [branch for branch in reversed(branches) if branch.startswith(stem)]
        for branch in own:
            pin = branches[branch][0].pin
            if pin is not None and pin.entry == place.entry:
                return place._replace(entry=None, branch=branch)
        hits = _find_entry_hits(tape, index, place.entry or "") if own else []
        for branch in own:
            if any(move.phase == hit.head.phase for hit in hits for move in branches[branch][1:]):
                return place._replace(entry=None, branch=branch)
    return place


def resolve_reference(store: Store, index: Index | None, text: str, cwd: str) -> Hit:
    """Return the entry a REF means, with its tape, which the caller closes.

    `cwd` is as in `find_reference`. Raises UsageError, NotFound, Ambiguous, and Damaged or
    NewerFormat of the tape.
    """
    return open_found_entry(store, index, find_reference(store, index, text, cwd))


def open_found_entry(store: Store, index: Index | None, target: FoundReference) -> Hit:
    """Return the entry of a REF whose tape is found, as `resolve_reference` does."""
    tape = store.open_folder(target.folder)
    try:
        hit = _find_in_tape(tape, index, target.reference)
    except BaseException:
        tape.close()
        raise
    if hit.tape is tape:
        return hit
    with tape:  # the entry is in an origin, which closes with its child: open it by itself
        return Hit(store.open(hit.tape.id), hit.head)


def resolve_in_tape(tape: Tape, text: str, branch: str) -> Hit:
    """Return the entry that a REF means which is about one tape, there or in its origin.

    `branch` is meant where the REF names none. A bare word is the id of an entry or a label.
    Raises UsageError, also for a REF of another tape, NotFound and Ambiguous.
    """
    reference = parse_reference(text)
    if reference.is_bare:
        reference = reference._replace(tape=None, entry=reference.tape)
    elif reference.tape is not None and not tape.id.startswith(reference.tape):
        raise UsageError(f"{text} names another tape than {tape.id[:8]}")
    return _find_in_tape(tape, None, reference._replace(branch=reference.branch or branch))


def _find_in_tape(tape: Tape, index: Index | None, reference: Reference) -> Hit:
    if reference.entry is not None:
        hit = _find_entry_or_label(tape, index, reference)
    else:
        hit = Hit(tape, tape.head(reference.branch, moves_ago=reference.moves_ago or 0))
    if reference.prompts_back:
        return hit.tape.find_before_prompt(hit.head, reference.prompts_back)
    return hit.tape.find_ancestor(hit.head, reference.back)


def find_tape_elsewhere(store: Store, index: Index | None, cwd: str) -> TapeRow | None:
    """Return the newest tape of a folder's repository that was recorded in another checkout."""
    checkout = find_checkout(cwd, os.environ)
    if checkout.repository is None:
        return None
    rows = list_newest_tapes(store, index, 1, None, TapeFilter(checkout=checkout))
    return rows[0] if rows else None


def find_tape_here(store: Store, index: Index | None, cwd: str) -> TapePlace | None:
    """Return the newest tape that works in a folder now, else the newest of its repository.

    Waits for no index that has yet to be made, unless the files tell it later.
    """
    try:
        return _list_tape_here(store, index, cwd, waits=False)
    except ManyNewTapes:
        with suppress(TooMuch):
            return find_newest_tape(store, cwd, locate_repository(cwd))
    return _list_tape_here(store, index, cwd, waits=True)


def _list_tape_here(
    store: Store, index: Index | None, cwd: str, *, waits: bool
) -> TapePlace | None:
    here = list_tapes(store, index, cwd=cwd, limit=1, waits=waits)
    root = None if here else locate_repository(cwd)
    if root is not None:
        here = list_tapes(store, index, project=root, limit=1, waits=waits)
    return TapePlace(here[0].id, here[0].folder) if here else None


def _find_meant_tape(
    store: Store, index: Index | None, reference: Reference, cwd: str
) -> _FoundPlace:
    """Return the tape that a reference names, and for a bare word perhaps the entry or branch.

    The first question with an answer decides; several answers to it raise Ambiguous.

        word                 asked in this order
        up to 3 letters      labels, branches of this folder's tape, tapes, entries
        4 letters or more    tapes, entries, labels, branches of this folder's tape
        with @ENTRY          the same without entries and labels
        with :BRANCH         tapes only
        HEAD, nothing found  this folder's tape

    Raises NotFound.
    """
    word = reference.tape
    if word is None:
        here = find_tape_here(store, index, cwd) or find_tape_elsewhere(store, index, cwd)
        if here is None:
            raise NotFound(f"no tape for {cwd} yet; `tape ls --all` lists those of other folders")
        return _FoundPlace(here.folder)
    ids, names = [_find_tapes], []
    if reference.is_bare:
        ids.append(_find_entries)
        names.append(_find_labels)
    if reference.branch is None:
        names.append(partial(_find_branch_here, cwd=cwd))
    # Three hex digits may well be a word that somebody chose as a name; more hardly ever are.
    questions = [*ids, *names] if len(word) >= MIN_SURE_DIGITS else [*names, *ids]
    for ask in questions:
        places = ask(store, index, word)
        if places:
            return _require_single_place(store, word, places)
    if word == _GIT_HEAD and reference.branch is None:
        return _find_meant_tape(store, index, reference._replace(tape=None), cwd)
    kinds = "tape" if reference.branch else "tape or branch"
    if reference.is_bare:
        kinds = "tape, entry, label or branch"
    raise NotFound(f"no {kinds} {word!r}; `tape ls --all` lists the tapes")


_GIT_HEAD = "HEAD"
"""What git calls that which a REF leaves out, where nothing else has that name."""


def _find_branch_here(
    store: Store, index: Index | None, word: str, *, cwd: str
) -> list[_FoundPlace]:
    """Return the branch of this folder's tape that has this name."""
    here = find_tape_here(store, index, cwd) if cwd and is_ref_name(word) else None
    # a damaged tape cannot be the one with this branch
    with suppress(OSError, TapeError):
        if here is not None:
            with store.open_folder(here.folder) as tape:
                if word in tape.refs().branches:
                    return [_FoundPlace(here.folder, branch=word)]
    return []


def _find_tapes(store: Store, index: Index | None, word: str) -> list[_FoundPlace]:
    """Return the tapes a word names: by id, by folder, or by the id in a folder's name.

    Ids in folder names are tried last: they find damaged or newer tapes, which then raise.
    """

    def read_ids() -> list[str]:
        ids = {store.read_tape_id(name): name for name in reversed(store.folders())}
        return [name for tape, name in ids.items() if tape.startswith(word)]  # the first of copies

    folders: set[str] = set()
    is_prefix = is_id_prefix(word)
    if is_prefix and len(word) <= _TAPE_ID:
        folders.update(ask_index(index, lambda index: index.folders(word), read_ids))
    with suppress(OSError):  # the word is too long for a file name
        name, place = get_tape_name(word), f"{store.home}/tapes/{get_tape_name(word)}"
        is_there = os.path.isdir(place) or os.path.isfile(f"{place}{PACKED_SUFFIX}")
        if is_there and not word.startswith("."):
            folders.add(name)
    if not folders and is_prefix:
        ends = {name: name.rpartition("-")[2] for name in store.folders()}
        folders = {
            name
            for name, end in ends.items()
            if is_id_prefix(end) and (end.startswith(word) or word.startswith(end))
        }
    return [_FoundPlace(folder) for folder in sorted(folders)]


def _find_entries(store: Store, index: Index | None, word: str) -> list[_FoundPlace]:
    """Return the entries whose id begins with `word`, once if copies of a tape have them."""
    if not is_id_prefix(word):
        return []

    def select_readable(index: Index) -> list[_FoundPlace]:
        entries = []
        for place in index.places(word):
            # a damaged tape must not hide entries of others
            with suppress(OSError, TapeError), store.open_folder(place.folder) as tape:
                _read_indexed_head(tape, place)
                entries.append((place.phase, place.folder, place.entry))
        return _list_entries_once(entries)

    def read_entries() -> list[_FoundPlace]:
        entries = []
        for folder, tape in _open_readable_tapes(store):
            with suppress(OSError, TapeError):  # as above
                hits = tape.find_own_entries(word)
                entries += [(hit.head.phase, folder, hit.head.entry) for hit in hits]
        return _list_entries_once(entries)

    return ask_index(index, select_readable, read_entries)


def _read_indexed_head(tape: Tape, place: EntryLocation) -> Head:
    """Return the head at an entry; raise Damaged if it is not where the index says."""
    branch = tape.find_branch(place.phase)
    return read_head_at(tape.phases, branch, place.phase, place.offset, place.entry)


def _list_entries_once(hits: Iterable[tuple[str, str, str]]) -> list[_FoundPlace]:
    """Return each (phase, folder, id) entry once; one in a copied past only if alone."""
    places = sorted((phase != ORIGIN, _FoundPlace(folder, entry)) for phase, folder, entry in hits)
    return list({place.entry: place for _, place in places}.values())


def _find_labels(store: Store, index: Index | None, word: str) -> list[_FoundPlace]:
    if not is_ref_name(word):
        return []

    def read_labels() -> list[tuple[str, str]]:
        places = []
        for folder, tape in _open_readable_tapes(store):
            with suppress(OSError, TapeError):  # as above
                entry = tape.refs().labels.get(word)
                places += [(folder, entry)] if entry else []
        return places

    labels = ask_index(index, lambda index: index.find_labelled(word), read_labels)
    return [_FoundPlace(folder, entry) for folder, entry in labels]


def _open_readable_tapes(store: Store) -> Iterator[tuple[str, Tape]]:
    """Yield every tape that can be opened, each open during its iteration."""
    for folder in store.folders():
        try:
            tape = store.open_folder(folder)
        except (OSError, TapeError):  # naming the tape itself raises the reason
            continue
        with tape:
            yield folder, tape


def _require_single_place(store: Store, word: str, places: list[_FoundPlace]) -> _FoundPlace:
    if len(places) == 1:
        return places[0]
    digits, lines = max(len(word) + 4, 8), []
    for folder, entry, _ in places[
        :_MAX_LISTED
    ]:  # enough of each id to be unique, and the tape's title
        row = read_tape_row(store, folder)
        tape = row.id[:digits] if row else folder
        title = f' "{row.title}"' if row and row.title else ""
        lines.append(f"{entry[:digits]} in {tape}{title}" if entry else f"{tape}{title}")
    if len(places) > _MAX_LISTED:
        lines.append(f"{len(places) - _MAX_LISTED} more")
    raise Ambiguous(word, tuple(lines))


def _find_entry_hits(tape: Tape, index: Index | None, prefix: str) -> list[Hit]:
    """Return the entries with an id prefix, in the tape itself or else in its origin."""

    def select_own(index: Index) -> list[Hit]:
        with suppress(TapeError):  # then every line is read
            return [Hit(tape, _read_indexed_head(tape, p)) for p in index.places(prefix, tape.id)]
        return []

    return ask_index(index, select_own, list[Hit]) or tape.find_entry(prefix)


def _find_entry_or_label(tape: Tape, index: Index | None, reference: Reference) -> Hit:
    """Return the entry with an id prefix or label, on the reference's branch if it has one."""
    word = reference.entry
    assert word is not None
    labelled = tape.refs().labels.get(word)
    hits = []
    if is_id_prefix(word) and not (labelled and len(word) < MIN_SURE_DIGITS):
        hits = _find_entry_hits(tape, index, word)
    if not hits and labelled:
        hits = _find_entry_hits(tape, index, labelled)
    if not hits:
        raise NotFound(f"no entry or label {word!r} in tape {tape.id[:8]}")
    if len(hits) > 1:
        raise Ambiguous(word, tuple(f"{h.head.entry} in {h.head.phase}" for h in hits))
    (hit,) = hits
    if reference.branch is None or hit.tape is not tape:
        return hit
    return Hit(tape, hit.head._replace(branch=tape.head(reference.branch).branch))
