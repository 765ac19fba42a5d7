"""REF to place: which entry of which tape a reference means (tape.md §8).

Uses the index if there is one, else the files, which give the same answer.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from .errors import Ambiguous, InvalidName, NotFound, TapeError
from .index.library import list_tapes, read_tape_row
from .reference import Reference, is_id_prefix, parse_reference
from .store.phase import ORIGIN
from .store.refs import check_ref_name, read_head_at
from .store.tape import Hit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .index.projection import Index
    from .index.tables import EntryLocation
    from .store.store import Store
    from .store.tape import Tape


_TAPE_ID = 32
"""Hex digits of a tape's id; a longer prefix can only be an entry's."""


class _FoundPlace(NamedTuple):
    """A tape's folder, and the id of an entry in it if one was found."""

    folder: str
    entry: str | None = None


def resolve_reference(store: Store, index: Index | None, text: str, cwd: str) -> Hit:
    """Return the entry a REF means, with its tape, which the caller closes.

    A REF that names no tape means the one with the newest head among those whose cwd is `cwd`;
    `cwd` may be "" for other REFs. Raises UsageError, NotFound, Ambiguous, and Damaged or
    NewerFormat of the tape.
    """
    reference = parse_reference(text)
    folder, entry = _find_meant_tape(store, index, reference, cwd)
    if entry is not None:
        reference = Reference(entry=entry, back=reference.back)
    tape = store.open_folder(folder)
    try:
        hit = _find_hit_within(tape, index, reference)
    except BaseException:
        tape.close()
        raise
    return hit if hit.tape is tape else _reopen_hit(store, tape, hit)


def _reopen_hit(store: Store, tape: Tape, hit: Hit) -> Hit:
    """Return a hit in an origin with its own open tape; the origin closes with its child."""
    with tape:
        return Hit(store.open(hit.tape.id), hit.head)


def _find_meant_tape(
    store: Store, index: Index | None, reference: Reference, cwd: str
) -> _FoundPlace:
    """Return the tape that a reference names, and for a bare word perhaps the entry."""
    if reference.tape is None:
        return _FoundPlace(_find_newest_tape(store, index, cwd))
    tapes = _find_tapes(store, index, reference.tape)
    if tapes or not reference.is_bare:
        return _require_single_place(store, reference.tape, tapes, "tape")
    entries = _find_entries(store, index, reference.tape)
    labels = [] if entries else _find_labels(store, index, reference.tape)
    if not (entries or labels) and _is_local_branch(store, index, reference.tape, cwd):
        raise NotFound(
            f"no tape, entry or label {reference.tape!r}; a branch is written :{reference.tape}"
        )
    return _require_single_place(store, reference.tape, entries or labels, "tape, entry or label")


def _is_local_branch(store: Store, index: Index | None, word: str, cwd: str) -> bool:
    """Return whether a word names a branch of the newest tape of a folder."""
    here = list_tapes(store, index, cwd=cwd, limit=1) if cwd else []
    with suppress(OSError, TapeError):  # a damaged tape cannot be the one with this branch
        if here:
            with store.open_folder(here[0].folder) as tape:
                return word in tape.refs().branches
    return False


def _find_newest_tape(store: Store, index: Index | None, cwd: str) -> str:
    here = list_tapes(store, index, cwd=cwd, limit=1)
    if not here:
        raise NotFound(f"no tape for {cwd} yet; `tape ls --all` lists those of other folders")
    return here[0].folder


def _find_tapes(store: Store, index: Index | None, word: str) -> list[_FoundPlace]:
    """Return the tapes a word names: by id, by folder, or by the id in a folder's name.

    Ids in folder names are tried last: they find damaged or newer tapes, which then raise.
    """
    folders = set(_find_tapes_by_id(store, index, word)) if is_id_prefix(word) else set()
    with suppress(OSError):  # the word is too long for a file name
        if not word.startswith(".") and (store.tapes / word).is_dir():
            folders.add(word)
    if not folders and is_id_prefix(word):
        folders = {name for name in store.folders() if _has_id_suffix(name, word)}
    return [_FoundPlace(folder) for folder in sorted(folders)]


def _find_tapes_by_id(store: Store, index: Index | None, prefix: str) -> list[str]:
    if len(prefix) > _TAPE_ID:
        return []
    if index is not None:
        with suppress(OSError, sqlite3.Error):  # no index, or one behind: read the files
            return index.folders(prefix)
    ids = {
        store.read_tape_id(name): name for name in reversed(store.folders())
    }  # of several copies the first
    return [name for tape, name in ids.items() if tape.startswith(prefix)]


def _has_id_suffix(name: str, prefix: str) -> bool:
    end = name.rpartition("-")[2]
    return is_id_prefix(end) and (end.startswith(prefix) or prefix.startswith(end))


def _find_entries(store: Store, index: Index | None, word: str) -> list[_FoundPlace]:
    """Return the entries whose id begins with `word`, once if copies of a tape have them."""
    if not is_id_prefix(word):
        return []
    if index is not None:
        with suppress(OSError, sqlite3.Error):
            places = [place for place in index.places(word) if _is_entry_in_place(store, place)]
            return _list_entries_once((place.phase, place.folder, place.entry) for place in places)
    return _list_entries_once(
        (hit.head.phase, folder, hit.head.entry)
        for folder, tape in _open_readable_tapes(store)
        for hit in _list_own_entries(tape, word)
    )


def _list_entries_once(hits: Iterable[tuple[str, str, str]]) -> list[_FoundPlace]:
    """Return each (phase, folder, id) entry once; one in a copied past only if alone."""
    found = sorted((phase != ORIGIN, _FoundPlace(folder, entry)) for phase, folder, entry in hits)
    return list({one.entry: one for _, one in found}.values())


def _is_entry_in_place(store: Store, place: EntryLocation) -> bool:
    """Return whether an entry is where the index says, in a readable tape."""
    try:
        with store.open_folder(place.folder) as tape:
            read_head_at(
                tape.phases, tape.find_branch(place.phase), place.phase, place.offset, place.entry
            )
    except (OSError, TapeError):  # a damaged tape must not hide entries of others
        return False
    return True


def _list_own_entries(tape: Tape, prefix: str) -> list[Hit]:
    try:
        return tape.find_own_entries(prefix)
    except (OSError, TapeError):  # a damaged tape must not hide entries of others
        return []


def _find_labels(store: Store, index: Index | None, word: str) -> list[_FoundPlace]:
    with suppress(InvalidName):
        return _find_labelled_entries(store, index, check_ref_name("label", word))
    return []


def _find_labelled_entries(store: Store, index: Index | None, word: str) -> list[_FoundPlace]:
    if index is not None:
        with suppress(OSError, sqlite3.Error):
            return [_FoundPlace(folder, entry) for folder, entry in index.find_labelled(word)]
    found = []
    for folder, tape in _open_readable_tapes(store):
        with suppress(OSError, TapeError):  # as above
            entry = tape.refs().labels.get(word)
            found += [_FoundPlace(folder, entry)] if entry else []
    return found


def _open_readable_tapes(store: Store) -> Iterator[tuple[str, Tape]]:
    """Yield every tape that can be opened, each open during its iteration."""
    for folder in store.folders():
        try:
            tape = store.open_folder(folder)
        except (OSError, TapeError):  # naming the tape itself raises the reason
            continue
        with tape:
            yield folder, tape


def _require_single_place(
    store: Store, word: str, found: list[_FoundPlace], kinds: str
) -> _FoundPlace:
    if not found:
        raise NotFound(f"no {kinds} {word!r}; `tape ls --all` lists the tapes")
    if len(found) > 1:
        raise Ambiguous(word, tuple(_describe_place(store, one, len(word) + 4) for one in found))
    return found[0]


def _describe_place(store: Store, found: _FoundPlace, digits: int) -> str:
    """Return a description of a hit: enough of its id to be unique, and its title."""
    row = read_tape_row(store, found.folder)
    tape = row.id[: max(digits, 8)] if row else found.folder
    title = f' "{row.title}"' if row and row.title else ""
    return f"{found.entry[: max(digits, 8)]} in {tape}{title}" if found.entry else f"{tape}{title}"


def _find_hit_within(tape: Tape, index: Index | None, reference: Reference) -> Hit:
    """Return the entry inside a tape that the rest of a reference names."""
    if reference.entry is not None:
        hit = _find_entry_or_label(tape, index, reference)
    else:
        hit = Hit(tape, tape.head(reference.branch, moves_ago=reference.moves_ago or 0))
    return hit.tape.find_ancestor(hit.head, reference.back)


def _find_entry_hits(tape: Tape, index: Index | None, prefix: str) -> list[Hit]:
    """Return the entries with an id prefix, in the tape itself or else in its origin."""
    if index is not None:
        with suppress(OSError, sqlite3.Error, TapeError):  # then every line is read
            found = [
                Hit(
                    tape,
                    read_head_at(
                        tape.phases, tape.find_branch(p.phase), p.phase, p.offset, p.entry
                    ),
                )
                for p in index.places(prefix, tape.id)
            ]
            if found:
                return found
    return tape.find_entry(prefix)


def _find_entry_or_label(tape: Tape, index: Index | None, reference: Reference) -> Hit:
    """Return the entry with an id prefix or label, on the reference's branch if it has one."""
    assert reference.entry is not None
    hits = _find_entry_hits(tape, index, reference.entry) if is_id_prefix(reference.entry) else []
    if not hits and (entry := tape.refs().labels.get(reference.entry)):
        hits = _find_entry_hits(tape, index, entry)
    if not hits:
        raise NotFound(f"no entry or label {reference.entry!r} in tape {tape.id[:8]}")
    if len(hits) > 1:
        raise Ambiguous(reference.entry, tuple(f"{h.head.entry} in {h.head.phase}" for h in hits))
    (hit,) = hits
    if reference.branch is None or hit.tape is not tape:
        return hit
    return Hit(tape, hit.head._replace(branch=tape.head(reference.branch).branch))
