"""What `--write` lets people change in pages: titles, labels, and which sessions are in the trash.

Invariant: it is what `tape rename`, `tape label` and `tape rm` do, by the same functions of the
store. Who may not see a session cannot change it; where people are logged in, a change that cannot
be recorded is not made; a session that is held at a remote is not moved to the trash.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from ..errors import (
    Ambiguous,
    Busy,
    NotFound,
    RemoteUnavailable,
    TapeError,
    UsageError,
    WriteFailed,
)
from ..remote.audit import list_holders
from ..remote.holds import read_holds
from ..remote.opening import open_store
from ..remote.registry import open_named, read_registry
from ..render.entries import render_entry_line
from ..store.disk import Folder
from ..store.refs import check_ref_name, is_ref_name, make_ref_name
from ..store.tape_folder import find_tape_entry
from ..text import SHORT, show_controls, to_single_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ..remote.objects import AuditedAct
    from ..store.store import Store
    from ..store.tape import Tape
    from .store_view import StoreView
    from .viewers import Viewer

_LINE = 160
"""Characters of an entry that are shown."""
_WITHOUT_REMOTE = "It is changed here. The remote does not answer, and gets it with the next push."


class ChangeRefused(TapeError):
    """A change that is not made; the text says why, and names nothing of this machine."""


class LabelPlace(NamedTuple):
    """A label, and the entry that has it."""

    name: str
    entry: str


class ChangeableFacts(NamedTuple):
    """What a page says of a session when it asks what to change."""

    title: str
    labels: list[LabelPlace]
    entry: str
    """The entry that would be labelled."""
    says: str
    """What that entry is, and how it begins."""
    branches: int
    bytes: int
    """Size of the whole session."""


class StoreChanges:
    """Changes of the sessions of one store, which is opened for each.

    Each raises ChangeRefused, or NotFound or Ambiguous where somebody has no such session, and
    returns what was done as a sentence.
    """

    def __init__(
        self,
        view: StoreView,
        record: Callable[[Viewer, AuditedAct, Tape, str], None] | None = None,
    ) -> None:
        """Where people are logged in, `record` gets each change before it is made; it may raise."""
        self._view, self._record = view, record

    def describe(self, prefix: str, entry: str) -> ChangeableFacts:
        """Return what may be changed; `entry` is an id, "" for the newest of the current branch."""
        with _say_what_is_wrong(), self._view.open_tape(prefix) as tape:
            refs, identity = tape.refs(), _find_entry(tape, entry)
            hit = tape.find_entry(identity)[0]
            says = render_entry_line(hit.tape.entry(hit.head), _LINE)
            with Folder.open(self._view.store.tapes) as folders:
                size = folders.measure_bytes(find_tape_entry(folders, tape.folder.name))
            return ChangeableFacts(
                show_controls(to_single_line(tape.title() or "")),
                [LabelPlace(*each) for each in sorted(refs.labels.items())],
                identity,
                " ".join(says.split()[1:]),
                len(refs.branches),
                size,
            )

    def rename(self, prefix: str, title: str) -> str:
        """Give a session a title."""
        title = title.strip()
        with self._open_tape(prefix) as (_, tape):
            if not title:
                raise ChangeRefused("A title needs a word.")
            self._note("rename", tape)
            tape.rename(title)
        return f"It is renamed to “{show_controls(to_single_line(title))}”."

    def label(self, prefix: str, name: str, entry: str) -> str:
        """Label an entry, "" for the newest of the current branch; a label that exists moves."""
        with self._open_tape(prefix) as (_, tape):
            name = name.strip()
            chosen = name if is_ref_name(name) else make_ref_name(name)
            check_ref_name("label", chosen or name)
            identity = _find_entry(tape, entry)
            self._note("label", tape, chosen)
            tape.label(chosen, identity)
        return f"The label {chosen} is at {identity[:SHORT]} now."

    def remove_label(self, prefix: str, name: str) -> str:
        """Remove a label."""
        with self._open_tape(prefix) as (_, tape):
            was = tape.refs().labels.get(name)
            if was is None:
                raise ChangeRefused("There is no such label any more.")
            self._note("label", tape, f"{name} removed")
            tape.label(name, None)
        return f"The label {name} is removed; it was at {was[:SHORT]}."

    def remove(self, prefix: str) -> str:
        """Move a session to the trash."""
        with self._open_tape(prefix) as (store, tape):
            _refuse_held(store.path, tape)
            with tape.hold_still():  # a program that writes it is met before anything is recorded
                pass
            self._note("trash", tape)
            try:
                store.remove(tape)
            except UsageError as error:  # its text names other sessions
                raise ChangeRefused(
                    "Other sessions were forked from this one: `tape detach` each of them first."
                ) from error
        return f"It is in the trash: `tape restore {tape.id[:SHORT]}` brings it back."

    def _note(self, did: AuditedAct, tape: Tape, why: str = "") -> None:
        if self._record is not None:
            self._record(self._view.find_viewer(), did, tape, why)

    @contextmanager
    def _open_tape(self, prefix: str) -> Iterator[tuple[Store, Tape]]:
        """Yield the store, which publishes what is written, and a tape that somebody may see."""
        folder = self._view.find_folder(prefix)
        person = self._view.find_viewer().name or None
        with (
            _say_what_is_wrong(),
            open_store(self._view.home, person=person) as (store, _),
            store.open_folder(folder) as tape,
        ):
            yield store, tape


def _find_entry(tape: Tape, entry: str) -> str:
    """Return the whole id of an entry; the newest of the current branch without one."""
    if not entry:
        return tape.head().entry
    entries = {hit.head.entry for hit in tape.find_entry(entry)}
    if len(entries) != 1:
        raise ChangeRefused("There is no such entry in this session.")
    return entries.pop()


def _refuse_held(store: Path, tape: Tape) -> None:
    """Raise ChangeRefused for a session that is held at a remote, or may be."""
    known = read_registry(store).remotes
    for name in list_holders(store, tape.id):
        try:
            with open_named(store, name, known[name]) as remote:
                hold = read_holds(remote, tape.id).get(tape.id)
        except RemoteUnavailable as error:
            raise ChangeRefused(
                f"The remote {name} does not answer, so whether the session is held there is "
                "unknown: try again later."
            ) from error
        if hold is not None:
            why = f", {show_controls(to_single_line(hold.why))}" if hold.why else ""
            raise ChangeRefused(f"It is held at {name}{why}: `tape hold --release` ends that.")


@contextmanager
def _say_what_is_wrong() -> Iterator[None]:
    """Turn the errors of a store into words for people who see nothing of its machine."""
    try:
        yield
    except (ChangeRefused, NotFound, Ambiguous):
        raise
    except Busy as error:
        raise ChangeRefused("A program is writing the session: try again when it ended.") from error
    except RemoteUnavailable as error:
        raise ChangeRefused(_WITHOUT_REMOTE) from error
    except UsageError as error:
        raise ChangeRefused(f"{error}.") from error
    except (WriteFailed, OSError) as error:
        raise ChangeRefused("This cannot be written now.") from error
    except TapeError as error:
        raise ChangeRefused("It cannot be read: `tape verify` says what is wrong.") from error
