"""Collects prompts, changed files and costs from tapes, as a stream; long texts are cut.

A handoff: the state of a session or piece of work, as one page of Markdown.

Pure: the same input always makes the same page; times are passed in.
"""

from __future__ import annotations

import dataclasses
import posixpath
import re
from typing import TYPE_CHECKING

from msgspec import Struct, field

from tape.clock import shorten_timestamp
from tape.damage import warn_of_damage
from tape.history.activity import summarize_activity
from tape.model.entries import Anchor, Assistant, Context, Summary, User, join_texts
from tape.render import render_blob_head
from tape.store.path import Segment
from tape.text import SHORT, show_controls, to_single_line

from .costs import CostReport, Spend, format_cost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tape.history.activity import Activity, Exchange
    from tape.model.line import Entry
    from tape.store.refs import Head
    from tape.store.tape import Tape


MAX_REQUEST_CHARS = 2_000
"""Characters above which a request is cut to its beginning."""
_TYPED_ORIGINS = frozenset({"steering", "follow_up"})
_COUNTED_TYPES = frozenset({"user", "context", "assistant", "usage"})


@dataclasses.dataclass(slots=True)
class HistorySummary:
    """The state of a piece of work over several tapes; entries that they share count once."""

    summaries: list[Summary | str] = dataclasses.field(default_factory=list)
    """The newest summary of each tape that has one."""
    requests: list[str] = dataclasses.field(default_factory=list)
    """The user's requests, verbatim; a long one is cut, with a reference to its entry."""
    files: dict[str, None] = dataclasses.field(default_factory=dict)
    """Files that changed, by absolute path if the tape records it."""
    costs: CostReport = dataclasses.field(default_factory=lambda: CostReport("provider"))
    model: str = ""
    """provider/model of the newest answer read."""
    seen: set[str] = dataclasses.field(default_factory=set)
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
                self._count_entry(entry, tape)
                yield entry

        done = summarize_activity(count_entries())
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
    spending: dict[str, Spend] = field(default_factory=dict)
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
    summary: Summary | str,
    deeds: Activity,
    *,
    spending: Mapping[str, Spend] | None = None,
    cwd: str = "",
    title: str = "",
    requests: Sequence[str] = (),
    tape: str = "",
    branch: str = "",
    entry: str = "",
    from_model: str = "",
    to_model: str = "",
    created: str = "",
) -> Handoff:
    """Return the handoff of a summary and the activity since, or of all activity.

    If the summary is empty, it is made from the prompts: the first is the goal, those that were
    answered are done, the others are to do. Paths below `cwd` are relative to it.
    """
    told = (
        summary if isinstance(summary, Summary) else Summary(critical_context=_wrap_text(summary))
    )
    prompts = tuple(one.prompt.text for one in deeds.exchanges if one.prompt is not None)
    asked = tuple(requests) or _collect_requests(told.requests, prompts)
    is_bare = not (told.done or told.in_progress or told.next_steps)
    answered = (_describe_exchange(one, asked) for one in deeds.exchanges) if is_bare else ()
    open_ = (
        _shorten_goal(one.prompt.text, asked)
        for one in deeds.exchanges
        if one.prompt and not one.answer
    )
    return Handoff(
        title=title,
        goal=_shorten_goal(told.goal or next(iter(prompts), ""), asked),
        background="\n".join(f"- {one}" for one in told.constraints),
        done=_drop_repeated([*told.done, *answered]),
        todo=_drop_repeated(
            [
                *told.in_progress,
                *(f"blocked: {one}" for one in told.blocked),
                *told.next_steps,
                *(open_ if is_bare else ()),
            ]
        ),
        key_files=_drop_repeated(
            shorten_path(one, cwd)
            for one in (*told.files_changed, *(use.path for use in deeds.files))
        ),
        decisions=told.decisions,
        notes=tuple(one for one in told.critical_context if not _is_in_requests(one, asked)),
        requests=asked,
        spending=dict(sum_spending(deeds) if spending is None else spending),
        tape=tape,
        branch=branch,
        entry=entry,
        from_model=from_model,
        to_model=to_model,
        created=created,
    )


def _wrap_text(text: str) -> tuple[str, ...]:
    return (text.strip(),) if text.strip() else ()


def _describe_exchange(one: Exchange, requests: Sequence[str]) -> str:
    """Return a prompt and the beginning of its answer; empty without an answer."""
    if one.answer is None:
        return ""
    if one.prompt is None:
        return one.answer.text
    return f"{_shorten_goal(one.prompt.text, requests)}: {one.answer.text}"


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


def _is_in_requests(text: str, requests: Sequence[str]) -> bool:
    """Return whether a request contains a text verbatim."""
    words = to_single_line(text)
    return any(words in to_single_line(request) for request in requests)


def _collect_requests(requests: Sequence[str], prompts: Sequence[str]) -> tuple[str, ...]:
    """Return requests verbatim, and the beginnings of prompts that are not among them."""
    whole = [to_single_line(one) for one in requests]
    more = (
        one for one in prompts if not any(said.startswith(to_single_line(one)) for said in whole)
    )
    return _drop_repeated([*requests, *more])


def _drop_repeated(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts if text.strip()))


def shorten_path(path: str, cwd: str) -> str:
    """Return a path, relative to a folder if it is below it."""
    path = posixpath.normpath(path)
    if not cwd or not path.startswith(f"{cwd.rstrip('/')}/"):
        return path
    return posixpath.relpath(path, cwd)


def sum_spending(deeds: Activity) -> dict[str, Spend]:
    """Return tokens and cost by provider, those with most tokens first."""
    found: dict[str, Spend] = {}
    for use in deeds.models:
        provider = use.model.partition("/")[0]
        cost = None if use.cost is None else use.cost.amount
        unknown = use.calls if cost is None and use.usage.total else 0
        found[provider] = found.get(provider, Spend()) + Spend(use.calls, use.usage, cost, unknown)
    return dict(sorted(found.items(), key=lambda one: (-one[1].usage.total, one[0])))


def render_handoff(handoff: Handoff) -> str:
    """Return the handoff as Markdown (M168), without empty sections."""
    parts = [
        f"# Handoff: {to_single_line(extract_headline(handoff.title or handoff.goal)) or 'work in progress'}",
        _render_origin(handoff),
        _render_section("Goal", show_controls(handoff.goal).strip()),
        _render_section("Background", show_controls(handoff.background).strip()),
        _render_section("Done", _render_items(handoff.done, "- [x] ")),
        _render_section("To do", _render_items(handoff.todo, "- [ ] ")),
        _render_section("Key files", _render_items(handoff.key_files)),
        _render_section("Decisions", _render_items(handoff.decisions)),
        _render_section("Notes", _render_items(handoff.notes)),
        _render_section("The user's own requests, word for word", _render_items(handoff.requests)),
        _render_section("Tokens and cost", _render_spending(handoff.spending)),
        _render_section("How to continue", _render_commands(handoff)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _render_section(title: str, text: str) -> str:
    return f"## {title}\n\n{text}" if text else ""


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
    total = Spend()
    for spend in spending.values():
        total += spend
    rows = [*spending.items(), ("Total", total)] if spending else []
    return "\n".join(
        f"- {to_single_line(name) or '–'}: {spend.usage.total:,} tokens ({format_cost(spend)})"
        for name, spend in rows
    )


def _render_commands(handoff: Handoff) -> str:
    """Return the commands that continue from here, with any provider."""
    if not handoff.tape:
        return ""
    model = handoff.to_model or "MODEL"
    tapes = ", ".join(f"`tape cat {one[:SHORT]}`" for one in (handoff.tape, *handoff.others))
    return (
        f"    gong chat --session {handoff.tape[:SHORT]} -m {model}\n\n"
        "The model gets the conversation itself, fitted to its provider; elsewhere, start with this"
        f" page. In full: {tapes}."
    )
