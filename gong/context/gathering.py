"""Collects prompts, changed files and costs from tapes, as a stream; long texts are cut."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tape.blocks import join_texts
from tape.damage import warn_of_damage
from tape.entries import Anchor, Assistant, Context, Summary, User
from tape.path import Segment
from tape.render import render_blob_head
from tape.text import SHORT
from tape.tree.deeds import summarize_activity

from .costs import CostReport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tape.branches import Head
    from tape.line import Entry
    from tape.tape import Tape
    from tape.tree.deeds import Activity

    from .costs import Spend


MAX_REQUEST_CHARS = 2_000
"""Characters above which a request is cut to its beginning."""
_TYPED_ORIGINS = frozenset({"steering", "follow_up"})
_COUNTED_TYPES = frozenset({"user", "context", "assistant", "usage"})


@dataclass(slots=True)
class HistorySummary:
    """The state of a piece of work over several tapes; entries that they share count once."""

    summaries: list[Summary | str] = field(default_factory=list)
    """The newest summary of each tape that has one."""
    requests: list[str] = field(default_factory=list)
    """The user's requests, verbatim; a long one is cut, with a reference to its entry."""
    files: dict[str, None] = field(default_factory=dict)
    """Files that changed, by absolute path if the tape records it."""
    costs: CostReport = field(default_factory=lambda: CostReport("provider"))
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
    ) -> Activity:
        """Add the path to a head, and return the activity on it."""
        summary: Summary | str | None = None

        def told() -> Iterator[Entry]:
            nonlocal summary
            for _, entry in read_path_entries(tape, head, skipped):
                if isinstance(entry.data, Anchor):
                    summary = entry.data.summary
                self._count_entry(entry, tape)
                yield entry

        done = summarize_activity(told())
        self.files |= {use.path: None for use in done.files}
        if summary:
            self.summaries.append(summary)
        return done

    def _count_entry(self, entry: Entry, tape: Tape) -> None:
        if entry.id in self.seen:
            return
        match entry.data:
            case User(content=content):
                self._add_request(join_texts(content), f"{tape.id[:SHORT]}@{entry.id[:SHORT]}")
            case Context(origin=origin, content=content) if origin in _TYPED_ORIGINS:
                self._add_request(join_texts(content), f"{tape.id[:SHORT]}@{entry.id[:SHORT]}")
            case Assistant(provider=provider, model=model) if model:
                self.model = f"{provider}/{model}" if provider else model
        if entry.type in _COUNTED_TYPES:
            self.seen.add(entry.id)
            self.costs.take(entry)

    def _add_request(self, text: str, place: str) -> None:
        more = len(text) - MAX_REQUEST_CHARS
        if text.strip():
            rest = f"… [{more} characters more: tape show {place}]" if more > 0 else ""
            self.requests.append(text[:MAX_REQUEST_CHARS] + rest)


def read_path_entries(
    tape: Tape, head: Head, skipped: Callable[[str], None] = warn_of_damage
) -> Iterator[tuple[str, Entry]]:
    """Yield the entries of the path to a head, oldest first, each with the branch it is of."""
    for segment in tape.path(head):
        branch = tape.find_tape(segment.source).find_branch(segment.phase)
        for entry in _read_segment(segment, skipped):
            yield branch, entry


def read_tape_entries(
    tape: Tape, skipped: Callable[[str], None] = warn_of_damage
) -> Iterator[tuple[str, Entry]]:
    """Yield the entries of all branches once, phase by phase, without those of the origin."""
    committed = tape.refs().phases()
    for phase in (name for name in tape.phases.names() if name in committed):
        branch = tape.find_branch(phase)
        with tape.phases.open(phase) as file:
            end = file.tail().end
        for entry in _read_segment(Segment(tape.source, phase, end), skipped):
            yield branch, entry


def _read_segment(segment: Segment, skipped: Callable[[str], None]) -> Iterator[Entry]:
    source = segment.source._replace(expand=render_blob_head)
    for run in segment._replace(source=source).read_runs(skipped):
        yield from run
