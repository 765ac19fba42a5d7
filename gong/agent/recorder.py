"""The recorder: one open branch and its path, kept in step with the tape.

The next model call is computed from the entries appended here. There is no other history.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, Self, get_args

from msgspec.structs import force_setattr, replace

from tape.context.repair import ABORTED
from tape.damage import warn_of_damage
from tape.files.work_folder import drop_known_authorship, find_authorship
from tape.model.entries import (
    AgentStart,
    Anchor,
    Assistant,
    Context,
    Custom,
    Error,
    Meta,
    Mode,
    Model,
    Start,
    State,
    ToolResult,
    User,
    join_texts,
    select_tool_calls,
)
from tape.repository import WorkFacts
from tape.store.refs import read_head_at

from ..errors import NothingToUndo
from ..llm.models import EffortChoice

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tape.model.entries import Payload
    from tape.model.line import Entry
    from tape.store.refs import Head
    from tape.store.tape import Tape
    from tape.store.writer import Durability, Writer


_SPOKEN_TYPES = frozenset({"user", "assistant"})


class VisibleHistory(NamedTuple):
    """The part of a branch that a model sees."""

    path: list[Entry]
    """Entries from the newest anchor, or the root, to the newest one."""
    kept: tuple[Entry, ...]
    """Entries before that anchor that it keeps in view."""


def read_history(
    tape: Tape, head: Head, skipped: Callable[[str], None] = warn_of_damage
) -> VisibleHistory:
    """Read what a model sees at a head; pass lines that fail verification to `skipped`."""
    path = tape.entries(head, to_anchor=True, skipped=skipped, digests=False)
    anchor = find_newest_anchor(path)
    return VisibleHistory(path, tuple(tape.kept(anchor, skipped)) if anchor else ())


def find_newest_anchor(path: Sequence[Entry]) -> Anchor | None:
    """Return the anchor at the start of a path, None if it starts at the root."""
    data = path[0].data if path else None
    return data if isinstance(data, Anchor) else None


def find_last_model(path: Sequence[Entry]) -> str | None:
    """Return provider/model of the last answer on a path; None if there is none."""
    for entry in reversed(path):
        match entry.data:
            case (
                Assistant(provider=provider, model=model) | Model(provider=provider, model=model)
            ) if provider and model:
                return f"{provider}/{model}"
            case Anchor(state=State(model=str(name))) if name:
                return name
            case _:
                pass
    return None


def find_last_effort(path: Sequence[Entry]) -> EffortChoice | None:
    """Return the effort that the session was last set to; None if it was not, or is unknown."""
    for entry in reversed(path):
        match entry.data:
            case Model(effort=found) | Anchor(state=State(effort=found)):
                return next((choice for choice in get_args(EffortChoice) if choice == found), None)
            case _:
                pass
    return None


def find_last_mode(entries: Sequence[Entry]) -> str | None:
    """Return the permission mode that a path shows; None if it was never changed there.

    `entries` are those that the path keeps, then its own.
    """
    for entry in reversed(entries):
        match entry.data:
            case Mode(permission=found) | Anchor(state=State(mode=str(found))):
                return found
            case Custom(kind="gong.plan", data=is_on):  # of earlier versions
                return "plan" if bytes(is_on) == b"true" else None
            case _:
                pass
    return None


AGENTS = "gong.agents"
"""The kind of a custom entry that repeats, after an anchor, which sub-agents there are."""


def has_agents(path: Sequence[Entry]) -> bool:
    """Return whether a path shows that sub-agents were started."""
    return any(
        isinstance(entry.data, AgentStart)
        or (isinstance(entry.data, Custom) and entry.data.kind == AGENTS)
        for entry in path
    )


def find_open_prompt(entries: Sequence[Entry]) -> Entry | None:
    """Return the newest prompt among entries that do not end with a complete answer; else None."""
    for entry in reversed(entries):
        match entry.data:
            case Assistant(stop_reason="error" | "aborted"):
                continue
            case Assistant() as answer if not select_tool_calls(answer.content):
                return None
            case User() | Context(origin="follow_up"):
                return entry
            case _:
                pass
    return None


def describe_stop(path: Sequence[Entry]) -> str | None:
    """Return the words for the model about the stop or failure that a path ends with, or None.

    The answer that ended so is never sent itself, but a person has read its text, and continues
    from there; and the prompt without an answer must not become one with the next.
    """
    reason = ""
    for entry in reversed(path):
        match entry.data:
            case Error(kind=kind, message=message) if kind == ABORTED:
                reason = message
            case Error() if not reason:
                reason = _FAILED
            case Assistant(stop_reason="aborted" | "error", content=content) if reason:
                text = join_texts(content).strip()
                words = f"; this much of your answer had been read:]\n\n{text}" if text else "]"
                return f"[{reason}{words}"
            case Context(origin="document"):
                pass
            case ToolResult() | Assistant() | Anchor() if reason == _FAILED:
                return None
            case User() | Assistant() | ToolResult() | Context() | Anchor():
                break
            case _:
                pass
    return f"[{reason}]" if reason else None


_FAILED = "no answer came: the call of the model failed"


def _find_last_folder(path: Sequence[Entry]) -> str | None:
    """Return the folder that a path last says it works in."""
    return next(filter(None, map(_read_folder, reversed(path))), None)


_PLACING_TYPES = frozenset({Meta.entry_type, Start.entry_type, Anchor.entry_type})
"""The entries that may name a folder."""


def _read_folder(entry: Entry) -> str | None:
    """Return the folder that an entry says its session works in from there on."""
    match entry.data:
        case Meta(cwd=str(cwd)) | Start(cwd=cwd) | Anchor(state=State(cwd=str(cwd))) if cwd:
            return cwd
        case _:
            return None


def _is_same_folder(first: str | None, other: str | None) -> bool:
    """Return whether two paths lead to the same folder; one that is gone is only itself.

    A path with NUL in it, of another program, is that of no folder.
    """
    if first == other or first is None or other is None:
        return first == other
    return "\0" not in first + other and os.path.realpath(first) == os.path.realpath(other)


class Recorder:
    """A branch open for writing. A context manager that closes branch and tape."""

    def __init__(self, tape: Tape, writer: Writer) -> None:
        self.tape, self.writer = tape, writer
        self.path: list[Entry] = []
        """Entries from the newest anchor, or the root, to the newest one.

        This list only grows: where the path becomes another one, it is another list.
        """
        self.kept: tuple[Entry, ...] = ()
        """Entries before that anchor that it keeps in view."""
        self.skipped: list[str] = []
        """Lines that could not be read, one remark each."""
        self.place: Meta | None = None
        """Where the session works, if `enter_folder` said so."""
        self._find_facts: Callable[[str | None], WorkFacts] = lambda _: WorkFacts()
        self._is_placed = False
        """Whether the branch says the same."""

    @classmethod
    def open(
        cls, tape: Tape, branch: str | None = None, *, durability: Durability = "barrier"
    ) -> Self:
        """Open a branch and read its path; None is the current one, or a new one if locked."""
        writer = tape.writer(branch, durability=durability)
        try:
            recorder = cls(tape, writer)
            recorder.read_path()
        except BaseException:
            writer.close()
            raise
        return recorder

    @property
    def branch(self) -> str:
        """The name of the branch."""
        return self.writer.branch

    def head(self) -> Head:
        """Return the branch's head; the base of a branch without entries."""
        if self.branch in self.tape.refs().branches:
            return self.tape.head(self.branch)
        return self.writer.head

    def find_folder(self) -> str | None:
        """Return the folder that relative paths of the next entry are relative to, None if unknown.

        It is that of the newest `start` or `meta` entry of the branch; an anchor repeats it.
        """
        folder = _find_last_folder(self.path)
        if folder is None and find_newest_anchor(self.path) is not None:
            older = self.tape.find_entries_back(self.head(), _PLACING_TYPES, self.skipped.append)
            folder = next(filter(None, map(_read_folder, older)), None)
        return folder

    def enter_folder(
        self,
        folder: str,
        project: str | None,
        find_facts: Callable[[str | None], WorkFacts] = lambda _: WorkFacts(),
    ) -> str | None:
        """Let the session continue in a folder; return the one it worked in if that is another.

        `project` is the root of the folder's repository; `find_facts` returns what is known there.
        An entry says so before the next one.
        """
        self.place, self._is_placed = Meta(cwd=folder, project=project), False
        self._find_facts = find_facts
        before = self.find_folder()
        return None if before is None or _is_same_folder(before, folder) else before

    def record_folder(self) -> None:
        """Record the folder of `enter_folder`, and who works where, unless the branch says it."""
        if self._is_placed or self.place is None:
            return
        self._is_placed = True
        is_moved = not _is_same_folder(self.find_folder(), self.place.cwd)
        if is_moved or self._is_of_another_copy():
            place = self._describe_place(self.place)
            if is_moved or place.person or place.machine:
                self._add_to_path(self.writer.append(place))

    def _is_of_another_copy(self) -> bool:
        """Return whether another copy of the store wrote the newest phase of the branch."""
        replica = self.tape.replica()
        wrote = self.tape.phases.read_replica(self.writer.head.phase)
        return replica is not None and wrote is not None and wrote != replica.id

    def _describe_place(self, place: Meta) -> Meta:
        """Return the entry of a folder: with its repository, and with who works if that changed."""
        before = find_authorship(self.tape.entries(self.head(), skipped=self.skipped.append))
        return drop_known_authorship(self._complete_place(place), before)

    def _complete_place(self, place: Meta) -> Meta:
        """Return the entry of a folder with its repository, and with who works where."""
        facts, replica = self._find_facts(place.project), self.tape.replica()
        machine = None if replica is None else replica.machine
        return replace(place, repository=facts.repository, person=facts.person, machine=machine)

    def describe_folder(self) -> Meta | None:
        """Return what an entry of the folder of `enter_folder` would say; None without one."""
        return None if self.place is None else self._complete_place(self.place)

    def _add_to_path(self, entry: Entry) -> None:
        """Add an entry as it would be read again: a path has no digests."""
        force_setattr(entry, "dh", "")
        self.path.append(entry)

    def append(self, payload: Payload) -> Entry:
        """Write one entry; durable after the next barrier."""
        self.record_folder()
        entry = self.writer.append(payload)
        self._add_to_path(entry)
        return entry

    def anchor(self, anchor: Anchor) -> Entry:
        """Start a phase with this anchor; the path becomes what it keeps. Durable on return."""
        entry = self.writer.anchor(anchor)
        self.kept = tuple(self.tape.kept(anchor, self.skipped.append))
        self.path = []
        self._add_to_path(entry)
        return entry

    def undo_anchor(self, *, leave: bool = False) -> Anchor:
        """Reset the branch to before its newest anchor, with one journal line; return the anchor.

        Raises NothingToUndo if there is none, or if messages followed it, unless `leave`: these
        messages stay on the tape and leave the branch.
        """
        anchor = find_newest_anchor(self.path)
        if anchor is None:
            raise NothingToUndo("nothing to undo: no compaction or handoff on this branch")
        if anchor.base.tape is not None:
            raise NothingToUndo(f"this {anchor.kind} starts its tape: continue in the old one")
        since = sum(entry.type in _SPOKEN_TYPES for entry in self.path)
        if since and not leave:
            raise NothingToUndo(
                f"{since} message{'s were' if since > 1 else ' was'} added since this "
                f"{anchor.kind}: --leave drops them from the branch (they stay on the tape: "
                "tape log --graph)"
            )
        base = anchor.base
        head = read_head_at(self.tape.phases, self.branch, base.phase, base.offset, base.entry)
        self.writer.rewind(head, "undo")
        self.read_path()
        return anchor

    def read_path(self) -> None:
        """Read the path again after the branch was moved."""
        self.path, self.kept = read_history(self.tape, self.head(), self.skipped.append)
        self._is_placed = False

    def barrier(self) -> None:
        """Return when everything appended so far is on disk."""
        self.writer.barrier()

    def close(self) -> None:
        """Close the branch and the tape."""
        try:
            self.writer.close()
        finally:
            self.tape.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
