"""Collects prompts, changed files and costs from tapes, as a stream; long texts are cut."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tape.blocks import text_of
from tape.damage import warn_of_damage
from tape.entries import Anchor, Assistant, Context, Summary, User
from tape.path import Segment
from tape.render import beginning
from tape.text import SHORT
from tape.tree.deeds import deeds

from .costs import Costs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tape.branches import Head
    from tape.line import Entry
    from tape.tape import Tape
    from tape.tree.deeds import Deeds

    from .costs import Spend


LONG = 2_000
"""Characters above which a request is cut to its beginning."""
_TYPED = frozenset({"steering", "follow_up"})
_COUNTED = frozenset({"user", "context", "assistant", "usage"})


@dataclass(slots=True)
class Gathered:
    """The state of a piece of work over several tapes; entries that they share count once."""

    summaries: list[Summary | str] = field(default_factory=list)
    """The newest summary of each tape that has one."""
    requests: list[str] = field(default_factory=list)
    """The user's requests, verbatim; a long one is cut, with a reference to its entry."""
    files: dict[str, None] = field(default_factory=dict)
    """Files that changed, by absolute path if the tape records it."""
    costs: Costs = field(default_factory=lambda: Costs("provider"))
    model: str = ""
    """provider/model of the newest answer read."""
    seen: set[str] = field(default_factory=set)
    """Ids of the entries of models and users that were counted."""

    @property
    def spending(self) -> dict[str, Spend]:
        """Tokens and cost by provider, those with most tokens first."""
        return {row.key: row.spend for row in self.costs.rows()}

    def take(
        self, tape: Tape, head: Head, skipped: Callable[[str], None] = warn_of_damage
    ) -> Deeds:
        """Add the path to a head, and return the activity on it."""
        summary: Summary | str | None = None

        def told() -> Iterator[Entry]:
            nonlocal summary
            for _, entry in on_path(tape, head, skipped):
                if isinstance(entry.data, Anchor):
                    summary = entry.data.summary
                self._count(entry, tape)
                yield entry

        done = deeds(told())
        self.files |= {use.path: None for use in done.files}
        if summary:
            self.summaries.append(summary)
        return done

    def _count(self, entry: Entry, tape: Tape) -> None:
        if entry.id in self.seen:
            return
        match entry.data:
            case User(content=content):
                self._asked(text_of(content), f"{tape.id[:SHORT]}@{entry.id[:SHORT]}")
            case Context(origin=origin, content=content) if origin in _TYPED:
                self._asked(text_of(content), f"{tape.id[:SHORT]}@{entry.id[:SHORT]}")
            case Assistant(provider=provider, model=model) if model:
                self.model = f"{provider}/{model}" if provider else model
        if entry.type in _COUNTED:
            self.seen.add(entry.id)
            self.costs.take(entry)

    def _asked(self, text: str, place: str) -> None:
        more = len(text) - LONG
        if text.strip():
            rest = f"… [{more} characters more: tape show {place}]" if more > 0 else ""
            self.requests.append(text[:LONG] + rest)


def on_path(
    tape: Tape, head: Head, skipped: Callable[[str], None] = warn_of_damage
) -> Iterator[tuple[str, Entry]]:
    """Yield the entries of the path to a head, oldest first, each with the branch it is of."""
    for segment in tape.path(head):
        branch = tape.tape_of(segment.source).branch_of(segment.phase)
        for entry in _entries(segment, skipped):
            yield branch, entry


def on_tape(
    tape: Tape, skipped: Callable[[str], None] = warn_of_damage
) -> Iterator[tuple[str, Entry]]:
    """Yield the entries of all branches once, phase by phase, without those of the origin."""
    committed = tape.refs().phases()
    for phase in (name for name in tape.phases.names() if name in committed):
        branch = tape.branch_of(phase)
        with tape.phases.open(phase) as file:
            end = file.tail().end
        for entry in _entries(Segment(tape.source, phase, end), skipped):
            yield branch, entry


def _entries(segment: Segment, skipped: Callable[[str], None]) -> Iterator[Entry]:
    source = segment.source._replace(expand=beginning)
    for run in segment._replace(source=source).runs(skipped):
        yield from run
