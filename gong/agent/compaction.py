"""One compaction: a summary in the anchor of a new phase replaces the older part of a view.

The entries it covers stay on the tape (tape.md §6). A model writes the summary; if that fails,
rules do. The user's own requests and the names of files never come from a model. An example of a
view of 9 entries, cut at its 6th; `A` is the new anchor:

    before   [ 1 2 3 4 5 6 7 8 9 ]       60,000 tokens
    after    A(summary of 1–5) [ 6 7 8 9 ]    21,000 tokens

A is durable before anything follows. It names the range it covers and the ranges it keeps, so undo
only resets the branch to before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tape.context.repair import iter_repaired_messages
from tape.context.view import Message, View, view
from tape.files.work_folder import find_entry_folders
from tape.history.merge_summary import read_folder_entries
from tape.history.picks import find_foreign_entries
from tape.model.entries import (
    NO_JSON,
    Anchor,
    Context,
    CoveredRange,
    State,
    Summary,
    SummaryAuthor,
    Text,
    Tokens,
)
from tape.model.line import describe_missing_blob
from tape.model.summary import read_anchor_summary, render_summary

from ..context.tokens import count_fixed_tokens, count_messages_tokens
from ..context.trim import HistoryCut, build_sizer, find_cut, iter_elided_messages
from ..errors import (
    CompactionCancelled,
    GongError,
    ModelError,
    NothingToCompact,
    NotSmaller,
    SummaryUnusable,
)
from ..llm.tokens import estimate_tokens
from ..llm.types import Request
from ..summary.parse import validate_summary
from ..summary.prompt import build_pieces, build_summary_prompt
from ..summary.transcript import measure_transcript
from ..summary.verbatim import SummaryFolders, complete_summary
from ..tools.todo import render_todos
from . import events
from .dialogue import encode_todos, find_todos
from .recorder import find_last_mode, find_newest_anchor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tape.model.entries import KeptRange, SideUsage
    from tape.model.line import Entry
    from tape.store.path import Segment
    from tape.store.refs import Head
    from tape.store.tape import Tape

    from ..summary.transcript import TranscriptPiece
    from .model import AgentModel
    from .recorder import Recorder
    from .run_context import RunContext
    from .setup import SessionSetup


TARGET_SHARE = 0.36
"""Target size of the request after a compaction, as a share of the one before."""
_REQUESTS_SHARE, _SUMMARY_SHARE = 0.35, 0.25
"""Shares of that size for the user's own requests and for the summary."""
_MIN_TOKENS = 500
"""Tokens that each of the two may take at least."""
_CHARS_PER_TOKEN = 3
"""Characters per token, to turn a token limit into characters."""
_MAX_CHARS_PER_TOKEN = 16
"""Characters of a token that no text exceeds on average; only columns of blanks come near."""
_MAX_ANSWER_TOKENS = 16_384
"""Maximum tokens of a model's summary, and of its thinking before it."""
_UNKNOWN_WINDOW = 100_000
"""Tokens a summariser gets if its context window is unknown."""
_SKILLS_SHARE = 0.1
"""Share of the context window that skills may take again after a summary."""
_MAX_TRIES = 4


class CompactionRequest(Struct, frozen=True):
    """A request for a compaction."""

    reason: str
    """The cause: window, overflow, user, model, handoff."""
    focus: str = ""
    """What the summary should focus on."""
    kind: Literal["compaction", "handoff"] = "compaction"
    hard: bool = False
    """Keep no recent messages besides the summary."""
    gain: float = 0.0
    """Minimum share of the request to free; below it NothingToCompact is raised."""
    to: str | None = None
    """provider/model that continues; None is the current one."""


class CompactionResult(NamedTuple):
    """The result of a compaction: estimated tokens of the next request before and after."""

    anchor: Entry
    before: int
    after: int


class CompactionPlan(NamedTuple):
    """What a compaction would do."""

    covered: tuple[Entry, ...]
    """What the summary replaces, oldest first."""
    kept: tuple[Entry, ...]
    """What stays in view behind the summary."""
    before: int
    """Estimated tokens of the next request now."""
    fixed: int
    """Those of system prompt and tools."""
    at_least: int
    """Those of the next request afterwards, without the summary."""
    budget: CompactionBudget
    is_split: bool
    """Whether the cut is inside of a turn."""


class CompactionBudget(NamedTuple):
    """Tokens that each part may take."""

    messages: int
    requests: int
    summary: int


class SummaryResult(NamedTuple):
    """A summary, the model that wrote it (None: rules), and the usage of that call."""

    summary: Summary
    by: SummaryAuthor | None
    took: SideUsage | None
    """Usage, recorded after the anchor so that undo restores the entries before it."""


def build_repeated_handoff(
    setup: SessionSetup, recorder: Recorder, anchor: Anchor, to: str
) -> Anchor:
    """Return the newest anchor again, as a handoff to the model `to`."""
    state = build_state(setup, recorder, to)
    return replace(anchor, kind="handoff", reason="handoff", state=state)


def plan_compaction(
    setup: SessionSetup, recorder: Recorder, request: CompactionRequest
) -> CompactionPlan:
    """Return what a compaction of the view would replace and keep; raises NothingToCompact."""
    model = setup.model
    seen = view(recorder.path, recorder.kept)
    entries = (*seen.kept, *seen.entries)
    specs = setup.tools.specs()
    fixed = count_fixed_tokens(model.build_system(specs), specs)
    before = fixed + _count_view_tokens(seen, model)
    window = _find_window(setup, request.to)
    budget = _plan_budget(min(before, window or before), fixed, setup.compaction.keep)
    size, end = build_sizer(entries), len(entries)
    cut = HistoryCut(end, end) if request.hard else find_cut(entries, budget.messages, size)
    if cut is None or not any(map(size, entries[: cut.first])):
        raise NothingToCompact("there is nothing to compact yet")
    covered, kept = entries[: cut.first], entries[cut.first :]
    at_least = fixed + _count_view_tokens(View(None, kept, ()), model)
    return CompactionPlan(covered, kept, before, fixed, at_least, budget, cut.split)


async def compact_branch(context: RunContext, request: CompactionRequest) -> CompactionResult:
    """Compact the view of the branch; raises NothingToCompact and leaves the branch as it is.

    Raises NotSmaller if the next request would not shrink; the usage of the summary is recorded.
    Raises CompactionCancelled if a hook is against it.
    """
    setup, recorder = context.setup, context.recorder
    plan = plan_compaction(setup, recorder, request)
    covered, kept, before = plan.covered, plan.kept, plan.before
    # Asked twice: now, so that no summary is paid for in vain, and with the summary's own size.
    _require_gain(request, before, plan.at_least)
    hooks, trigger = setup.hooks, "manual" if request.reason == "user" else "auto"
    meta = {"trigger": trigger, "reason": request.reason, "focus": request.focus}
    if (why := await hooks.check_operation("compact", {**meta, "tokens": before})) is not None:
        raise CompactionCancelled(f"a hook cancelled the compaction: {why}")
    context.emit(events.CompactionStart(request.kind, request.reason, before))
    anchor, folder = find_newest_anchor(recorder.path), find_session_folder(setup, recorder)
    summary, by, usage = await write_summary(
        context,
        request,
        covered,
        read_anchor_summary(anchor, folder) if anchor else None,
        plan.budget,
        split=plan.is_split,
        folders=_find_entry_folders(recorder, covered, folder),
    )
    seen = View(render_summary(summary), kept, ())
    after = plan.fixed + _count_view_tokens(seen, setup.model)
    try:
        _require_gain(request, before, after)
    except NothingToCompact as error:
        # The model was paid for its summary, whether it is used or not.
        record_side_usage(recorder, usage)
        if request.gain:
            context.emit(events.Warn(str(error)))
        raise
    covers = _find_covered_range(recorder, covered)
    entry = context.set_anchor(
        Anchor(
            kind=request.kind,
            summary=summary,
            kept=find_kept_ranges(recorder, kept),
            covers=covers,
            tokens=Tokens(before, after),
            by=by,
            reason=request.reason,
            state=build_state(setup, recorder, request.to),
        )
    )
    record_side_usage(recorder, usage)
    if request.kind == "compaction":
        _repeat_todos(recorder)
        _repeat_skills(recorder, covered, kept, context.window or _UNKNOWN_WINDOW)
    name = f"{by.provider}/{by.model}" if by else None
    count = covers.count if covers else len(covered)
    context.emit(events.CompactionEnd(request.kind, entry.id, before, after, count, name))
    await hooks.end_compaction(recorder, trigger, render_summary(summary))
    return CompactionResult(entry, before, after)


def _find_covered_range(recorder: Recorder, covered: Sequence[Entry]) -> CoveredRange | None:
    """Return the range of the path that a summary replaces; picks of a merge are not on the path.

    None if it replaces nothing but picks.
    """
    anchor, foreign = find_newest_anchor(recorder.path), set[str]()
    if anchor is not None and anchor.kept:
        recorder.barrier()
        foreign = find_foreign_entries(recorder.tape, recorder.head(), anchor)
    own = [entry for entry in covered if entry.id not in foreign]
    return CoveredRange(own[0].id, own[-1].id, own[-1].n - own[0].n + 1) if own else None


def _require_gain(request: CompactionRequest, before: int, after: int) -> None:
    if request.gain and after > before * (1 - request.gain):
        raise NothingToCompact(
            f"a compaction would free too little: {before:,} tokens would become {after:,}"
        )
    if after >= before:
        raise NotSmaller(
            f"a summary would not make the next request smaller: {before:,} tokens would"
            f" become {after:,}"
        )


def _count_view_tokens(seen: View, model: AgentModel) -> int:
    messages = iter_repaired_messages(seen, model.target)
    return count_messages_tokens(iter_elided_messages(messages, (*seen.kept, *seen.entries)))


def _find_window(setup: SessionSetup, to: str | None) -> int | None:
    """Return the context window of the model that continues, in tokens; None if unknown."""
    if to is None or to == setup.model.name or setup.find_model is None:
        return setup.model.window
    try:
        return setup.find_model(to).window
    except GongError:  # no such model here, or no key for it
        return setup.model.window


def _plan_budget(before: int, fixed: int, keep: int) -> CompactionBudget:
    """Return the budget of each part, so that the next request is a small share of this one.

    `before` is this one's size, at most the context window: more cannot be sent anyway. Of 60,000
    tokens, 5,000 of them fixed, 21,600 are the target. The 16,600 for the rest are 5,810
    for the user's requests, 4,150 for the summary, and 6,640 (at most `keep`) for messages.
    """
    room = max(int(before * TARGET_SHARE) - fixed, 0)
    requests, summary = int(room * _REQUESTS_SHARE), int(room * _SUMMARY_SHARE)
    messages = min(room - requests - summary, keep)
    return CompactionBudget(messages, max(requests, _MIN_TOKENS), max(summary, _MIN_TOKENS))


def record_side_usage(recorder: Recorder, usage: SideUsage | None) -> None:
    """Record the usage of a summary, after its anchor."""
    if usage is not None:
        recorder.append(usage)
        recorder.barrier()


def find_kept_ranges(recorder: Recorder, kept: Sequence[Entry]) -> tuple[KeptRange, ...]:
    """Return the newest entries in view as the ranges that an anchor keeps.

    Raises NothingToCompact if they are not found, so that nothing leaves the view by mistake.
    """
    if not kept:
        return ()
    recorder.barrier()
    anchor, first = find_newest_anchor(recorder.path), kept[0].id
    earlier: tuple[KeptRange, ...] = ()
    behind = recorder.path
    # The first kept entry may be before the anchor, one that it kept in view: its ranges are cut.
    if anchor is not None and any(entry.id == first for entry in recorder.kept):
        earlier = recorder.tape.trim_kept_ranges(anchor, first)
        behind = recorder.path[1:]
        first = behind[0].id if behind else ""
    elif first != behind[0].id:
        behind = behind[next(n for n, entry in enumerate(behind) if entry.id == first) :]
    count = behind[-1].n - behind[0].n + 1 if behind else 0
    newest = recorder.tape.newest(recorder.head(), count)
    if count and (not newest or newest[0].first != first):
        raise NothingToCompact("this branch cannot be read: tape verify shows why")
    return (*earlier, *newest)


def find_session_folder(setup: SessionSetup, recorder: Recorder) -> str:
    """Return the folder that a session works in, as its tape names it."""
    return recorder.find_folder() or setup.env.working_directory


def _find_entry_folders(
    recorder: Recorder, entries: Sequence[Entry], folder: str
) -> dict[str, str]:
    """Return the folder in force at those entries in view where it is another than `folder`, by id.

    At an entry that a merge picked it is that of its own branch.
    """
    tape, head = recorder.tape, recorder.head()
    anchor = find_newest_anchor(recorder.path)
    has_picks = anchor is not None and anchor.kept
    foreign = find_foreign_entries(tape, head, anchor) if anchor and has_picks else set()
    own = [entry for entry in entries if entry.id not in foreign]
    marks = read_folder_entries(_read_path_since(tape, head, own))
    folders = find_entry_folders(own, marks, folder)
    for entry in entries:
        if entry.id in foreign:
            for hit in tape.find_entry(entry.id):
                marks = read_folder_entries(hit.tape.path(hit.head))
                folders |= find_entry_folders([entry], marks, folder)
    return folders


def _read_path_since(tape: Tape, head: Head, entries: Sequence[Entry]) -> list[Segment]:
    """Return the end of a path from an anchor on that stands before some entries of it."""
    oldest = min((entry.n for entry in entries), default=0)
    segments: list[Segment] = []
    for segment in tape.walk_path_back(head):
        segments.insert(0, segment)
        first = segment.source.phases.first(segment.phase, describe_missing_blob)
        if first is None or segment.start > 0 or first.n > oldest:
            continue
        if isinstance(first.data, Anchor) and first.data.state.cwd:
            break
    return segments


def build_state(setup: SessionSetup, recorder: Recorder, to: str | None) -> State:
    """Return the session state that an anchor stores; `to` is the model that continues."""
    entries = (*recorder.kept, *recorder.path)
    model, effort = to or setup.model.name, setup.config.effort
    todos = find_todos(entries)
    return State(
        model=model,
        effort=effort,
        mode=find_last_mode(entries),
        tools=setup.tools.active,
        cwd=find_session_folder(setup, recorder),
        todos=encode_todos(todos) if todos else NO_JSON,
    )


def _repeat_todos(recorder: Recorder) -> None:
    """Show the model its todo list again, word for word, where something of it is left to do."""
    todos = find_todos((*recorder.kept, *recorder.path))
    if any(todo.status != "completed" for todo in todos):
        text = f"Your todo list, as it was before the summary:\n{render_todos(todos)}"
        recorder.append(Context("user", "note", (Text(text),)))


def _repeat_skills(
    recorder: Recorder, covered: Sequence[Entry], kept: Sequence[Entry], window: int
) -> None:
    """Show the model the skills again that the summary covers; `window` is its own, in tokens."""
    from ..skills.loaded import build_reminders  # only after a summary

    room = int(window * _SKILLS_SHARE * _CHARS_PER_TOKEN)
    for reminder in build_reminders(covered, kept, room):
        recorder.append(reminder)


async def write_summary(
    context: RunContext,
    request: CompactionRequest,
    covered: Sequence[Entry],
    previous: Summary | str | None,
    budget: CompactionBudget,
    *,
    split: bool,
    folders: Mapping[str, str],
) -> SummaryResult:
    """Return a summary of entries by a model, or by rules if that fails.

    `folders` are those in force at the entries where it is not the session's, by id.
    """
    from ..summary.rules import (  # its patterns cost 30 ms of every start
        limit_summary,
        summarize_pieces,
    )

    setup = context.setup
    model = setup.summariser or setup.model
    by, usage = None, None
    limit_chars = budget.summary * _CHARS_PER_TOKEN
    try:
        text, usage = await context.request_text(
            model,
            request.kind,
            _build_request(
                model,
                build_pieces(covered, previous),
                request.focus,
                limit_chars,
                split=split,
                session=context.recorder.tape.id,
            ),
            retries=True,
        )
        summary = limit_summary(validate_summary(text), 2 * limit_chars)
        by = SummaryAuthor(usage.provider, usage.model, usage.usage)
    except (ModelError, SummaryUnusable) as error:
        # A full context window is no time to fail: rules need no network, and never answer badly.
        context.emit(events.Warn(f"the summary was made by rules, because {error}"))
        pieces = build_pieces(covered, previous)
        summary = summarize_pieces(pieces, request.focus, limit=limit_chars)
    whole = complete_summary(
        summary,
        covered,
        previous,
        folders=SummaryFolders(find_session_folder(setup, context.recorder), folders),
        limit_chars=budget.requests * _CHARS_PER_TOKEN,
    )
    return SummaryResult(whole, by, usage)


def _build_request(
    model: AgentModel,
    pieces: Sequence[TranscriptPiece],
    focus: str,
    limit_chars: int,
    *,
    split: bool,
    session: str,
) -> Request:
    """Return the request for a summary, with as many of the pieces as fit the model.

    How many characters fit depends on the text, so a prompt that is too long is built again with
    fewer characters, in the ratio of its tokens to the room.
    """
    window = model.window or _UNKNOWN_WINDOW
    answer = min(_MAX_ANSWER_TOKENS, window // 4)
    room = window - answer
    characters = min(measure_transcript(pieces), room * _MAX_CHARS_PER_TOKEN)
    prompt = ""
    for _ in range(_MAX_TRIES):
        del prompt  # two of them would be held at once
        system, prompt = build_summary_prompt(
            pieces,
            focus=focus,
            split_turn=split,
            budget_chars=characters,
            answer_chars=limit_chars,
        )
        tokens = estimate_tokens(system) + estimate_tokens(prompt)
        if tokens <= room:
            break
        characters = int(min(characters, len(prompt)) * room / tokens * 0.9)
    return Request(
        model=model.id,
        messages=(Message("user", (Text(prompt),)),),
        system=system,
        max_tokens=answer,
        session=session,
    )
