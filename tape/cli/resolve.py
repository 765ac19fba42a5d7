"""What a command works on: the store and the tape named by argv, environment and current folder."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ..damage import warn_of_damage
from ..errors import NotFound, TapeError, UsageError
from ..ids import is_id_prefix
from ..index import library as indexed
from ..index.library import find_unlisted
from ..places.reference import MIN_SURE_DIGITS, parse_reference, render_reference
from ..places.resolve import find_reference, open_found_entry
from ..remote.opening import open_store
from ..store.locks import is_lock_held
from ..store.path import FSCK_ADVICE
from ..store.refs import JOURNAL_NAME, find_head
from ..version import __version__
from .environment import find_store_home, get_current_folder
from .terminal import print_warning, show_progress, warn_of_left_out_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..index.library import Library
    from ..places.resolve import FoundReference
    from ..store.refs import Head
    from ..store.tape import Hit, Tape
    from .group import GlobalOptions


PROGRAM = f"tape/{__version__}"
"""The name of this program as a tape records it."""
_MAX_NAMED = 5
"""How many skipped tapes are named one by one."""


class ResolvedRef(NamedTuple):
    """The tape and perhaps the entry that a REF names."""

    tape: Tape
    head: Head | None
    """The entry; None where the REF names a tape or a branch, whose head may be damaged."""
    branch: str | None
    """The branch the REF names."""


def open_library(options: GlobalOptions, *, publishes: bool = True) -> Library:
    """Return the store and its index; a context manager.

    Without `publishes` what is written does not go to a remote by itself: it comes from there.
    """
    opener = open_store if publishes else indexed.open_store
    return opener(find_store_home(options.store), telling=partial(show_progress, "read tape"))


@contextmanager
def open_entry(options: GlobalOptions, text: str) -> Iterator[Hit]:
    """Yield the entry that a REF names; for a tape or a branch, its head."""
    with open_library(options) as opened:
        hit = open_found_entry(*opened, _find_given_reference(opened, text))
        with hit.tape:
            warn_of_skipped_refs(hit.tape)
            yield hit


@contextmanager
def open_second_entry(options: GlobalOptions, first: Hit, text: str) -> Iterator[Hit]:
    """Yield the entry that a REF names, of the same tape if it names none or only a branch."""
    second = parse_reference(text)
    if not second.tape:
        text = render_reference(second._replace(tape=first.tape.id))
    elif not second.branch and second.tape in first.tape.refs().branches:
        text = render_reference(second._replace(tape=first.tape.id, branch=second.tape))
    with open_entry(options, text) as two:
        yield two


@contextmanager
def open_ref(options: GlobalOptions, text: str, *, warns: bool = True) -> Iterator[ResolvedRef]:
    """Yield the tape that a REF names, and the entry if it names one."""
    with open_library(options) as opened:
        reference = _find_given_reference(opened, text)
        if reference.reference.names_entry:
            tape, head = open_found_entry(*opened, reference)
        else:
            tape, head = opened.store.open_folder(reference.folder), None
        with tape:
            if warns:
                warn_of_skipped_refs(tape)
            yield ResolvedRef(tape, head, reference.reference.branch)


def _find_given_reference(opened: Library, text: str) -> FoundReference:
    """Return the tape that a REF means in the current folder, and the rest of the REF."""
    is_needed = not parse_reference(text).tape
    return find_reference(*opened, text, get_current_folder(is_needed=is_needed))


def warn_of_skipped_refs(tape: Tape) -> None:
    """Warn of journal lines and of ends of branches that readers skip."""
    refs = tape.refs()
    for damage in refs.damage:
        warn_of_left_out_part(str(damage))
    if not refs.damage and not is_lock_held(tape.folder, "refs"):
        size = tape.folder.stat(JOURNAL_NAME).st_size - refs.size
        if size > 0 and tape.refs().size == refs.size:
            print_warning(
                f"{JOURNAL_NAME}: the last {size} bytes skipped: incomplete or damaged; "
                f"{FSCK_ADVICE}"
            )
    for branch in refs.branches:
        with suppress(TapeError):  # reported where the branch is used
            tape.report_torn_tail(find_head(refs, tape.phases, branch), warn_of_damage)


def warn_of_moved_project(opened: Library) -> None:
    """Tell of tapes whose folder is gone, where it may have become the current one."""
    from ..places.moved import describe_moved_project, find_moved_project  # only lists tell

    with suppress(OSError):  # the current folder was removed
        here = os.getcwd()
        if (moved := find_moved_project(*opened, here)) is not None:
            print_warning(describe_moved_project(moved))


class LeftOutTapes(NamedTuple):
    """How many tapes a question about all tapes could not read."""

    tapes: int
    code: int
    """The exit code: 1 where the system refused to read a tape, 0 where only damaged ones are
    missing, or none."""


def warn_of_left_out(opened: Library) -> LeftOutTapes:
    """Warn of each tape that a question about all tapes leaves out, with the reason."""
    unlisted = find_unlisted(*opened)
    for folder in unlisted[:_MAX_NAMED]:
        print_warning(f"{folder.folder} is left out: {folder.why}")
    if len(unlisted) > _MAX_NAMED:
        print_warning(
            f"{len(unlisted) - _MAX_NAMED} more are left out; `tape verify --all` names them"
        )
    return LeftOutTapes(len(unlisted), int(any(folder.is_unread for folder in unlisted)))


def split_optional_ref(options: GlobalOptions, words: Sequence[str], what: str) -> tuple[str, str]:
    """Return the REF, "" if it was left out, and the last word of a command that takes two.

    `what` names the last word. Raises UsageError for more words, and for an id alone, after which
    that word was probably forgotten.
    """
    if len(words) > 2:  # noqa: PLR2004
        raise UsageError(f"{len(words)} words were given: put {what} of several words in quotes")
    *ref, last = words
    if not ref and is_id_prefix(last) and len(last) >= MIN_SURE_DIGITS:
        with suppress(NotFound), open_ref(options, last, warns=False):
            raise UsageError(f"{last!r} names a tape: give {what} after it")
    return (ref or [""])[0], last


def clean_argument(text: str) -> str:
    """Return an argument as text; bytes that are not UTF-8 become U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
