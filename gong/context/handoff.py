"""Handoffs: the state of a session or of a piece of work, as one page of Markdown.

`HistorySummary` collects requests, changed files and costs from tapes, as a stream; long texts are
cut. The same input always makes the same page: times are passed in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tape.clock import shorten_timestamp
from tape.damage import warn_of_damage
from tape.history.activity import summarize_activity
from tape.model.entries import Anchor, Assistant, Summary
from tape.model.line import describe_blob_head
from tape.store.path import Segment
from tape.text import SHORT, show_controls, to_single_line

from ..summary.verbatim import extract_typed_text, shorten_path
from .costs import CostReport, Spend, format_cost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tape.history.activity import Activity
    from tape.model.line import Entry
    from tape.store.refs import Head
    from tape.store.tape import Tape


MAX_REQUEST_CHARS = 2_000
"""Characters above which a request is cut to its beginning."""
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

        def count_entries() -> Iterator[Entry]:
            nonlocal summary
            for _, entry in read_path_entries(tape, head, skipped):
                if isinstance(entry.data, Anchor):
                    summary = entry.data.summary
                if entry.id not in self.seen:
                    self._count_entry(entry, tape)
                yield entry

        activity = summarize_activity(count_entries())
        self.files |= {use.path: None for use in activity.files}
        if summary:
            self.summaries.append(summary)
        return activity

    def _count_entry(self, entry: Entry, tape: Tape) -> None:
        data, text = entry.data, extract_typed_text(entry) or ""
        if text.strip():
            more = len(text) - MAX_REQUEST_CHARS
            place = f"{tape.id[:SHORT]}@{entry.id[:SHORT]}"
            rest = f"… [{more} characters more: tape show {place}]" if more > 0 else ""
            self.requests.append(text[:MAX_REQUEST_CHARS] + rest)
        if isinstance(data, Assistant) and data.model:
            self.model = f"{data.provider}/{data.model}" if data.provider else data.model
        if entry.type in _COUNTED_TYPES:
            self.seen.add(entry.id)
            self.costs.take(entry)


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
    source = segment.source._replace(expand=describe_blob_head)
    for run in segment._replace(source=source).read_runs(skipped):
        yield from run


HEADLINE_CHARS = 120
"""Characters of the beginning of a text whose full form is elsewhere on the page."""
_ELLIPSIS = re.compile(" ?…")


class Handoff(Struct, frozen=True, kw_only=True):
    """The state of a piece of work."""

    title: str = ""
    goal: str = ""
    background: str = ""
    done: tuple[str, ...] = ()
    todo: tuple[str, ...] = ()
    key_files: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()
    """The user's requests, verbatim, oldest first."""
    spending: dict[str, Spend] = {}  # msgspec copies it
    """Tokens and cost by provider."""
    tape: str = ""
    """Id of the tape to continue."""
    branch: str = ""
    entry: str = ""
    """Id of the newest entry."""
    others: tuple[str, ...] = ()
    """Ids of further tapes of the work."""
    from_model: str = ""
    to_model: str = ""
    created: str = ""
    """Tape time; empty to leave it out."""


def build_handoff(
    known: Handoff, summary: Summary | str, activity: Activity, *, cwd: str = ""
) -> Handoff:
    """Return `known` completed from a summary and the activity since, or all activity.

    `known` has what neither contains: title, place, models, requests and spending.
    If the summary is empty, it is made from the prompts: the first is the goal, those that were
    answered are done, the others are to do. Paths below `cwd` are relative to it.
    """
    if not isinstance(summary, Summary):
        summary = Summary(critical_context=(summary.strip(),) if summary.strip() else ())
    prompts = [
        exchange.prompt.text for exchange in activity.exchanges if exchange.prompt is not None
    ]
    requests = known.requests or summary.requests
    done, todo = list(summary.done), list_open_items(summary)
    if not (summary.done or summary.in_progress or summary.next_steps):
        for exchange in activity.exchanges:
            prompt = _shorten_goal(exchange.prompt.text, requests) if exchange.prompt else ""
            if exchange.answer:
                done.append(
                    f"{prompt}: {exchange.answer.text}" if exchange.prompt else exchange.answer.text
                )
            elif exchange.prompt:
                todo.append(prompt)
    files = (*summary.files_changed, *(use.path for use in activity.files))
    words = "\n".join(map(to_single_line, requests))
    notes = [note for note in summary.critical_context if to_single_line(note) not in words]
    return replace(
        known,
        goal=_shorten_goal(summary.goal or next(iter(prompts), ""), requests),
        background="\n".join(f"- {constraint}" for constraint in summary.constraints),
        done=drop_repeated(done),
        todo=drop_repeated(todo),
        key_files=drop_repeated(shorten_path(file, cwd) for file in files),
        decisions=summary.decisions,
        notes=tuple(notes),
        requests=requests,
    )


def list_open_items(summary: Summary) -> list[str]:
    """Return what a summary says is still to do: in progress, blocked, and next."""
    blocked = (f"blocked: {item}" for item in summary.blocked)
    return [*summary.in_progress, *blocked, *summary.next_steps]


def extract_headline(text: str) -> str:
    """Return the first line of a text, cut if it is long."""
    first = next((line.strip() for line in text.split("\n") if line.strip()), "")
    if len(first) > HEADLINE_CHARS:
        return f"{first[:HEADLINE_CHARS].rstrip()}…"
    return f"{first} …" if first != text.strip() else first


def _shorten_goal(goal: str, requests: Sequence[str]) -> str:
    """Return a goal; the headline of a request if the goal is only its beginning."""
    begins = to_single_line(_ELLIPSIS.split(goal, maxsplit=1)[0])
    for request in requests:
        if begins and to_single_line(request).startswith(begins):
            return extract_headline(request)
    return goal


def drop_repeated(texts: Iterable[str]) -> tuple[str, ...]:
    """Return texts in order, each once, without blank ones."""
    return tuple(dict.fromkeys(text for text in texts if text.strip()))


def render_handoff(handoff: Handoff) -> str:
    """Return the handoff as Markdown (M168), without empty sections."""
    title = to_single_line(extract_headline(handoff.title or handoff.goal)) or "work in progress"
    sections = {
        "Goal": show_controls(handoff.goal).strip(),
        "Background": show_controls(handoff.background).strip(),
        "Done": _render_items(handoff.done, "- [x] "),
        "To do": _render_items(handoff.todo, "- [ ] "),
        "Key files": _render_items(handoff.key_files),
        "Decisions": _render_items(handoff.decisions),
        "Notes": _render_items(handoff.notes),
        "The user's own requests, word for word": _render_items(handoff.requests),
        "Tokens and cost": _render_spending(handoff.spending),
        "How to continue": _render_commands(handoff),
    }
    parts = [f"# Handoff: {title}"]
    if origin := _render_origin(handoff):
        parts += ["\n\n", origin]
    for name, text in sections.items():  # joined once: the requests may be millions of characters
        if text:
            parts += [f"\n\n## {name}\n\n", text]
    return "".join((*parts, "\n"))


def _render_items(texts: Sequence[str], mark: str = "- ") -> str:
    """Return texts as a list; continuation lines are indented."""
    return "\n".join(mark + show_controls(text).strip().replace("\n", "\n  ") for text in texts)


def _render_origin(handoff: Handoff) -> str:
    """Return one line: time, models, tape, branch and entry."""
    place = f"tape {handoff.tape[:SHORT]}" if handoff.tape else ""
    parts = [
        f"{shorten_timestamp(handoff.created)[:16]} UTC" if handoff.created else "",
        f"from {handoff.from_model}" if handoff.from_model else "",
        f"to {handoff.to_model}" if handoff.to_model else "",
        f"{place}, branch {handoff.branch}" if place and handoff.branch else place,
        f"entry {handoff.entry[:SHORT]}" if handoff.entry else "",
    ]
    return to_single_line(" · ".join(part for part in parts if part))


def _render_spending(spending: Mapping[str, Spend]) -> str:
    rows = [*spending.items(), ("Total", sum(spending.values(), Spend()))] if spending else []
    return "\n".join(
        f"- {to_single_line(name) or '–'}: {spend.usage.total:,} tokens ({format_cost(spend)})"
        for name, spend in rows
    )


def _render_commands(handoff: Handoff) -> str:
    """Return the commands that continue from here, with any provider."""
    if not handoff.tape:
        return ""
    model = handoff.to_model or "MODEL"
    tapes = ", ".join(
        f"`tape cat {tape_id[:SHORT]}`" for tape_id in (handoff.tape, *handoff.others)
    )
    return (
        f"    gong chat --session {handoff.tape[:SHORT]} -m {model}\n\n"
        "The model gets the conversation itself, fitted to its provider; elsewhere, start with this"
        f" page. In full: {tapes}."
    )
