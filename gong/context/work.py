"""Work contexts: a goal, what is done and to do, over one or many tapes and providers.

One JSON file each, `work/ID.json` beside config.toml, readable by its owner only. A change is made
under a lock, by a temporary file and a rename; fields unknown to this version are preserved.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager, suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from tape.errors import Ambiguous, Damaged, NotFound, WriteFailed
from tape.store.disk import Folder
from tape.store.locks import hold_lock

from ..summary.verbatim import shorten_path
from .handoff import Handoff, drop_repeated, list_open_items

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from tape.model.entries import Summary

    from .handoff import HistorySummary

T = TypeVar("T")

WORK_FOLDER = "work"
_LOCK_NAME = "lock"
_WORK_FILE = re.compile(r"([0-9a-f]{8})\.json\Z")


class WorkContext(Struct, frozen=True):
    """A piece of work (M167); times are those of a tape, UTC."""

    id: str
    title: str
    goal: str = ""
    background: str = ""
    completed: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    key_files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    token_usage_by_provider: dict[str, int] = field(default_factory=dict)
    """Usage from the tapes, as of the last handoff page."""
    tapes: tuple[str, ...] = ()
    """Ids of its tapes, in the order they were added."""
    created: str = ""
    updated: str = ""


class WorkAdditions(NamedTuple):
    """An addition to a piece of work."""

    todo: Sequence[str] = ()
    notes: Sequence[str] = ()
    files: Sequence[str] = ()
    decisions: Sequence[str] = ()
    tapes: Sequence[str] = ()


class WorkStore:
    """The work contexts of one config folder, which need not exist yet."""

    def __init__(self, config: Path) -> None:
        self.path = config / WORK_FOLDER

    def file(self, identity: str) -> Path:
        """Return the path of a work context's file."""
        return self.path / f"{identity}.json"

    def create(self, title: str, goal: str, background: str, now: str) -> WorkContext:
        """Create a piece of work; `now` is a tape time."""
        with self._hold_folder() as folder:
            identity = token_hex(4)
            while folder.has(f"{identity}.json"):
                identity = token_hex(4)
            work = WorkContext(identity, title, goal, background, created=now, updated=now)
            _write_work(folder, work, {})
        return work

    def all(self) -> list[WorkContext]:
        """Return all work contexts, the last changed first; raises Damaged for an invalid file."""
        try:
            with Folder.open(self.path) as folder:
                names = [name for name in folder.names() if _WORK_FILE.match(name)]
                works = [_read_work(folder, name)[0] for name in names]
        except FileNotFoundError:
            return []
        return sorted(works, key=lambda work: (work.updated, work.id), reverse=True)

    def find(self, ref: str) -> WorkContext:
        """Return the one that a REF names: the beginning of its id, its title, or words of that.

        Raises NotFound, or Ambiguous where several fit.
        """
        works = self.all()
        by_id = [work for work in works if ref.strip() and work.id.startswith(ref.lower())]
        hits = by_id or _match_words(ref, works, lambda work: work.title)
        if not hits:
            raise NotFound(f"no work {ref!r}; `gong work list` shows all work")
        if len(hits) > 1:
            raise Ambiguous(ref, tuple(f'{work.id} "{work.title}"' for work in hits))
        return hits[0]

    def change(
        self, identity: str, how: Callable[[WorkContext], WorkContext], now: str
    ) -> WorkContext:
        """Apply a change to one under the lock, and return the changed work context.

        Raises NotFound if it was removed, Damaged for an invalid file, WriteFailed.
        """
        with self._hold_folder() as folder:
            name = f"{identity}.json"
            if not folder.has(name):
                raise NotFound(f"work {identity} no longer exists; `gong work list` shows all work")
            before, raw = _read_work(folder, name)
            after = replace(how(before), id=identity, updated=now)
            _write_work(folder, after, raw)
        return after

    @contextmanager
    def _hold_folder(self) -> Iterator[Folder]:
        """Hold the folder and its lock."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with (
                Folder.open(self.path.parent) as config,
                config.make(WORK_FOLDER) as folder,
                hold_lock(folder, _LOCK_NAME),
            ):
                yield folder
        except OSError as error:
            raise WriteFailed(f"{self.path} cannot be written: {error.strerror}") from error


def _match_words(words: str, among: Sequence[T], get_text: Callable[[T], str]) -> list[T]:
    """Return those whose text is these words, else those whose text contains all of them."""
    typed = words.lower().split()
    same = [item for item in among if get_text(item).lower().split() == typed]
    return same or [
        item for item in among if typed and all(word in get_text(item).lower() for word in typed)
    ]


def _read_work(folder: Folder, name: str) -> tuple[WorkContext, dict[str, Any]]:
    """Return a work context, whose id is its file's name, and the file's raw fields."""
    try:
        raw = msgspec.json.decode(folder.read(name), type=dict[str, Any])
        return msgspec.convert({**raw, "id": name.partition(".")[0]}, WorkContext), raw
    except (msgspec.DecodeError, UnicodeError) as error:
        raise Damaged(
            f"{WORK_FOLDER}/{name} is damaged ({error}): repair it or move it away"
        ) from error


def _write_work(folder: Folder, work: WorkContext, raw: dict[str, Any]) -> None:
    data = msgspec.json.format(msgspec.json.encode({**raw, **asdict(work)})) + b"\n"
    beside = f".{work.id}.{token_hex(4)}"
    try:
        folder.create(beside, data)
        folder.move(beside, folder, f"{work.id}.json")
    except BaseException:
        with suppress(OSError):
            os.unlink(beside, dir_fd=folder.fd)
        raise


def add_to_work(work: WorkContext, more: WorkAdditions) -> WorkContext:
    """Return a piece of work with something added, without duplicates."""
    return replace(
        work,
        pending=drop_repeated((*work.pending, *more.todo)),
        notes=drop_repeated((*work.notes, *more.notes)),
        key_files=drop_repeated((*work.key_files, *more.files)),
        decisions=drop_repeated((*work.decisions, *more.decisions)),
        tapes=drop_repeated((*work.tapes, *more.tapes)),
    )


def complete_task(work: WorkContext, which: str) -> WorkContext:
    """Return a piece of work with one item done, given by number, text or words of the text.

    Numbers begin at 1. Raises NotFound, or Ambiguous where several fit.
    """
    by_number = [item for at, item in enumerate(work.pending, 1) if which.strip() == str(at)]
    hits = by_number or _match_words(which, work.pending, lambda text: text)
    if not hits:
        raise NotFound(
            f"no to-do item {which!r} in {work.id}: `gong work show {work.id}` lists them"
        )
    if len(hits) > 1:
        raise Ambiguous(which, tuple(hits))
    return replace(
        work,
        pending=tuple(item for item in work.pending if item != hits[0]),
        completed=(*(item for item in work.completed if item != hits[0]), hits[0]),
    )


def build_work_handoff(
    work: WorkContext, history: HistorySummary, *, cwd: str, created: str
) -> Handoff:
    """Return the handoff of a piece of work with the state collected from its tapes.

    What users wrote comes first; summaries on the tapes are added.
    """
    summaries = [summary for summary in history.summaries if not isinstance(summary, str)]
    plain = [summary.strip() for summary in history.summaries if isinstance(summary, str)]
    newest, *others = work.tapes[::-1] or ("",)

    def add(known: Iterable[str], collect: Callable[[Summary], Iterable[str]]) -> tuple[str, ...]:
        return drop_repeated(
            [*known, *(text for summary in summaries for text in collect(summary))]
        )

    constraints = [f"- {text}" for summary in summaries for text in summary.constraints]
    todo = add(work.pending, list_open_items)
    files = [shorten_path(path, cwd) for path in history.files]
    return Handoff(
        title=work.title,
        goal=work.goal or next((summary.goal for summary in summaries if summary.goal), ""),
        background="\n".join(filter(None, [work.background, *constraints])),
        done=add(work.completed, lambda summary: summary.done),
        todo=tuple(item for item in todo if item in work.pending or item not in work.completed),
        key_files=drop_repeated([*work.key_files, *files]),
        decisions=add(work.decisions, lambda summary: summary.decisions),
        notes=drop_repeated([*add(work.notes, lambda summary: summary.critical_context), *plain]),
        requests=tuple(history.requests),
        spending=history.spending,
        tape=newest,
        others=tuple(others),
        from_model=history.model,
        created=created,
    )
