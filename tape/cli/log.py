"""`log`, `cat` and `tail`: the entries of a path, and new ones as they are recorded."""

from __future__ import annotations

import os
import stat
import sys
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import click

from ..clock import read_clock, show_times
from ..errors import UsageError
from ..history.entry_lines import (
    LocatedLine,
    decode_legible,
    read_entry_runs,
    read_line_runs,
    read_path,
)
from ..model.entries import Assistant, ToolResult, User, select_tool_calls
from ..model.line import describe_blob_head
from ..places.reference import split_range
from ..render.entries import (
    Conversation,
    RenderOptions,
    render_entry,
    render_entry_line,
)
from ..text import SHORT, measure_width
from .entry_view import build_render_options
from .log_view import LogFilter, read_log
from .output import (
    CountedCommand,
    CountType,
    as_json,
    format_examples,
    print_bytes,
    print_json,
    print_json_array,
    print_line_array,
    ref,
)
from .resolve import open_entry, open_ref, open_second_entry
from .terminal import (
    can_colour,
    get_columns,
    paint_line,
    print_lines,
    print_shown,
    print_warning,
    strip_style,
    style_text,
    warn_of_left_out_part,
)
from .timeparse import TIME_FORMS, parse_moment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from ..history.entry_lines import DecodedLine
    from ..render.folded import FoldedLine
    from ..store.path import Segment
    from ..store.refs import Head
    from ..store.tape import Tape
    from .group import GlobalOptions
    from .log_view import LoggedEntry
    from .resolve import ResolvedRef


SHOWN_LINES = 12
"""Lines of each entry that `log` and `tail` show."""
DIFF_LINES = 60
"""Lines of each diff that `log -p` shows."""
_BRIEF = RenderOptions(paint=paint_line)


class _LogOptions(NamedTuple):
    """The values of the options of `log`, each by the name it has there."""

    short: bool
    types: tuple[str, ...]
    newest: int | None
    patches: bool
    since: str | None
    until: str | None
    author_model: str | None
    every: bool
    reverse: bool | None
    graphic: bool
    fold: bool | None
    as_json: bool

    def build_filter(self) -> LogFilter:
        """Return which entries are chosen; raises UsageError for an invalid time."""
        now = read_clock()
        return LogFilter(
            frozenset(self.types),
            parse_moment(self.since, now) if self.since else "",
            parse_moment(self.until, now) if self.until else "",
            (self.author_model or "").casefold(),
        )

    def needs_fold(self) -> bool:
        """Return whether runs of tool calls are one line each; raises UsageError."""
        has_own_form = self.as_json or self.short or self.patches or self.reverse is False
        if self.fold is not None:
            if self.fold and has_own_form:
                raise UsageError(
                    "--fold is for the log as text, newest last: omit the other option"
                )
            return self.fold
        is_chosen = self.types or self.author_model or self.every or self.newest is not None
        return sys.stdout.isatty() and not (is_chosen or has_own_form)


@click.command(
    cls=CountedCommand,
    epilog=format_examples(
        "tape log",
        "tape log --oneline -5",
        "tape log try-redis --since 2d",
        "tape log --type user",
        "tape log --all --author-model opus --json",
        "tape log --graph",
        "tape log --graph --fold",
    ),
)
@ref
@click.option("--oneline", "short", is_flag=True, help="Show one line per entry.")
@click.option(
    "--type", "types", multiple=True, metavar="TYPE", help="Only entries of this type; repeatable."
)
@click.option(
    "-n", "newest", type=CountType(), metavar="N", help="Show only the newest N; -5 is -n 5."
)
@click.option("-p", "--patch", "patches", is_flag=True, help="Show changed files as diffs.")
@click.option("--since", metavar="TIME", help=f"Only entries since: {TIME_FORMS}.")
@click.option("--until", metavar="TIME", help="Only entries before this time.")
@click.option(
    "--author-model",
    metavar="NAME",
    help="Only what matching models wrote: part of PROVIDER/MODEL.",
)
@click.option("--all", "every", is_flag=True, help="Entries of all branches, by time.")
@click.option(
    "--reverse/--newest-first",
    "reverse",
    default=None,
    help="Oldest first, the default, or newest first.",
)
@click.option("--graph", "graphic", is_flag=True, help="Draw all branches as a tree, newest first.")
@click.option(
    "--fold/--no-fold",
    "fold",
    default=None,
    help="A run of tool calls in one line: the default on a terminal. With --graph: show only "
    "prompts, anchors and named entries; count the rest.",
)
@as_json
@click.pass_obj
def log(options: GlobalOptions, /, ref: str, **values: Any) -> None:
    """List the entries of a path, newest last. On a terminal the pager opens at the end.

    There runs of tool calls are one line each, unless options choose entries or their form:
    --no-fold shows every entry.

    REF..REF2 lists what is on the path to REF2 and not on that to REF.

    Long entries and diffs are cut, with a count; `tape cat` and `tape show` cut nothing. --type
    user numbers the prompts as ^N takes them: `tape fork ^2` begins before the one numbered ^2.
    --json prints an array of the lines as stored, oldest first.

    --graph draws the whole tape of REF, as git does: one line per entry, newest first, each branch
    before its base. `*` is an entry, `#` an anchor, `o` an undone entry: it is on the tape but on
    no branch. Brackets hold the branches whose head is the entry, `*` before the current one, and
    its labels. --type and --fold leave out entries, but never named ones. --json prints {tape,
    current, branches, phases, labels, damage}: the tree itself.
    """
    log_options = _LogOptions(**values)
    if log_options.graphic:
        _print_graph(options, ref, log_options)
        return
    folds, choice = log_options.needs_fold(), log_options.build_filter()
    newest, is_newest_first = log_options.newest, log_options.reverse is False
    with _open_log_place(options, ref, every=log_options.every) as (tape, head, segments):
        is_whole = choice == LogFilter() and newest is None and not is_newest_first
        if log_options.as_json and is_whole and head is not None:
            print_line_array(read_line_runs(tape, head, segments))
            return
        numbered = User.entry_type in choice.types
        chosen = read_log(
            tape,
            head,
            choice,
            segments=segments,
            newest=newest,
            newest_first=is_newest_first,
            numbered=numbered,
        )
        if log_options.as_json:
            print_json_array(logged.step.line for logged in chosen)
        elif log_options.patches and not log_options.short:
            print_patches(tape, chosen, newest_first=is_newest_first)
        elif folds:
            print_folded(chosen)
        else:
            print_log(chosen, numbered=numbered, short=log_options.short)


@contextmanager
def _open_log_place(
    options: GlobalOptions, ref: str, *, every: bool
) -> Iterator[tuple[Tape, Head | None, Sequence[Segment] | None]]:
    """Yield the tape, the head, none for all branches, and of REF..REF2 what only REF2 has."""
    both = split_range(ref)
    if both is None:
        with open_ref(options, ref) as place:
            head = None if every else place.head or place.tape.head(place.branch)
            yield place.tape, head, None
        return
    if every:
        raise UsageError("REF..REF2 is one path: omit --all")
    with open_entry(options, both[0]) as first, open_second_entry(options, first, both[1]) as two:
        from ..history.merge_base import find_merge_base, read_path_to  # only a range needs it

        parted = find_merge_base(read_path_to(*first), read_path_to(*two))
        yield two.tape, two.head, parted.b


def print_log(chosen: Iterable[LoggedEntry], *, numbered: bool, short: bool) -> None:
    """Print entries as text, in one line each if `short`; prompts with their numbers if asked."""
    wide = get_columns()
    for step, prompt in chosen:
        mark = style_text(f"^{prompt}", bold=True) + "  " if numbered and prompt else ""
        if short:
            room = wide - measure_width(strip_style(mark))
            print_lines([mark + render_entry_line(step.entry, room)])
        else:
            heading, *body = render_entry(step.entry, SHOWN_LINES, _BRIEF)
            if isinstance(step.entry.data, User):
                body = [style_text(line, bold=True) for line in body]
            print_lines([mark + heading, *body, ""])


def print_folded(chosen: Iterable[LoggedEntry]) -> None:
    """Print prompts and answers, and what lies between them in a line."""
    from ..render.folded import FoldedLog  # only a terminal shows it

    folded = FoldedLog(get_columns(), SHOWN_LINES, _BRIEF)
    for step, _ in chosen:
        _print_folded_lines(folded.take_entry(step.entry))
    _print_folded_lines(folded.end())


def _print_folded_lines(lines: Iterable[FoldedLine]) -> None:
    looks: dict[str, dict[str, bool]] = {
        "prompt": {"bold": True},
        "heading": {"dim": True},
        "calls": {"dim": True},
        "other": {"dim": True},
    }
    print_lines(style_text(text, **looks.get(kind, {})) for kind, text in lines)


def _print_graph(options: GlobalOptions, ref: str, log_options: _LogOptions) -> None:
    """Draw the whole tape of a REF; raises UsageError for what a drawing has no use for."""
    from .graph_view import EntryFilter, build_tree, draw_tree  # only a drawing needs it

    chosen = EntryFilter(log_options.build_filter(), fold=bool(log_options.fold))
    if split_range(ref) is not None:
        raise UsageError("--graph draws the whole tape: give one REF")
    if log_options.reverse is not None:
        raise UsageError("--graph is drawn newest first: omit --reverse and --newest-first")
    with open_ref(options, ref) as place:
        if log_options.as_json:
            print_json(build_tree(place.tape))
        else:
            print_lines(draw_tree(place.tape, chosen, log_options.newest))


@click.command(epilog=format_examples("tape cat", "tape cat 3f2a:main --md > session.md"))
@ref
@click.option("--md", "markdown", is_flag=True, help="Markdown.")
@as_json
@click.pass_obj
def cat(options: GlobalOptions, ref: str, markdown: bool, as_json: bool) -> None:
    """Print a whole conversation; nothing is cut.

    --json prints an array of the lines of its entries as stored.
    """
    if markdown and as_json:
        raise UsageError("--md and --json cannot be combined")
    with open_entry(options, ref) as (tape, head):
        if as_json:
            print_line_array(read_line_runs(tape, head))
            return
        if markdown:  # a page for others too
            from ..render.markdown import (  # text needs none of it
                render_end_markdown,
                render_turn_markdown,
            )

            click.get_current_context().with_resource(show_times(local=False))
        conversation = Conversation(build_render_options(tape))
        print_run = print_at_once if can_colour() else print_shown
        render = (
            partial(render_turn_markdown, conversation) if markdown else conversation.render_turn
        )
        for run in read_entry_runs(tape, head):
            print_run([line for entry in run for line in render(entry)])
        print_run([*render_end_markdown(conversation)] if markdown else conversation.end())


def print_at_once(lines: Sequence[str]) -> None:
    """Print lines that may hold colours."""
    if lines:
        print_lines(["\n".join(lines)])


@click.command(
    cls=CountedCommand,
    epilog=format_examples(
        "tape tail",
        "tape tail 3f2a:main -n 3 --json",
        "tape tail -f 3f2a",
        "tape tail -f --json | jq .type",
    ),
)
@ref
@click.option(
    "-n",
    "newest",
    type=CountType(),
    metavar="N",
    default=10,
    show_default=True,
    help="Show only the newest N.",
)
@click.option(
    "-f", "--follow", "follows", is_flag=True, help="Follow new entries until interrupted."
)
@as_json
@click.pass_obj
def tail(options: GlobalOptions, ref: str, newest: int, follows: bool, as_json: bool) -> None:
    """Show the newest entries of a path, newest last, as `log` does.

    With -f, show each entry that any process appends to the branch. TAPE:BRANCH follows that
    branch. TAPE alone follows the current branch, and stays on it when another becomes current.
    When the branch moves back to an earlier entry, a line on standard error says so.

    --json prints an array of the lines as stored; with -f one line per entry, no array.
    """
    with open_ref(options, ref) as place:
        if follows:
            follow_branch(place, newest, as_json=as_json)
        else:
            head = place.head or place.tape.head(place.branch)
            chosen = read_path(place.tape, head, describe_blob_head, newest=newest)
            print_json_array(step.line for step in chosen) if as_json else print_entries(chosen)


def follow_branch(place: ResolvedRef, newest: int, *, as_json: bool) -> None:
    """Show the newest entries of a branch, then new ones, until interrupted."""
    if place.head is not None:
        raise UsageError("-f follows a branch, not an entry: write TAPE or TAPE:BRANCH")
    from ..history.follow import Moved, follow  # only -f follows

    tell = print_entry_lines if as_json else print_entries
    with follow(place.tape, place.branch, skipped=warn_of_left_out_part) as follower:
        tell(read_path(place.tape, follower.head, describe_blob_head, newest=newest))
        for update in follower.live(choose_wait()):
            if isinstance(update, Moved):
                print_warning(
                    f"{update.head.branch} moved to {update.head.entry[:SHORT]} ({update.why})"
                )
            else:
                at = update.head
                line = LocatedLine(update.source, at.phase, at.offset, update.line)
                tell(decode_legible([line], describe_blob_head))


def print_patches(tape: Tape, chosen: Iterable[LoggedEntry], *, newest_first: bool) -> None:
    """Print entries with their changes of files as diffs.

    What a call would do to files is shown with its result, where that recorded nothing; newest
    first, with the call.
    """
    options = build_render_options(tape, diff_lines=DIFF_LINES, with_bodies=False)
    conversation = Conversation(options)
    recorded: set[str] = set()
    for step, _ in chosen:
        call, data, looks = None, step.entry.data, options
        if newest_first:
            if isinstance(data, ToolResult) and data.files:
                recorded.add(data.call_id)
            calls = select_tool_calls(data.content) if isinstance(data, Assistant) else ()
            looks = options._replace(with_bodies=not {call.id for call in calls} <= recorded)
        else:
            conversation.note_start(data)
            conversation.note_calls(data)
            call = conversation.take_call(data) if isinstance(data, ToolResult) else None
            call = call and call._replace(head=())  # its head is in the answer above
        print_lines([*render_entry(step.entry, SHOWN_LINES, looks, call), ""])


def print_entries(chosen: Iterable[DecodedLine]) -> None:
    """Print entries as text, and flush."""
    for step in chosen:
        print_lines([*render_entry(step.entry, SHOWN_LINES, _BRIEF), ""])
    sys.stdout.flush()


def print_entry_lines(chosen: Iterable[DecodedLine]) -> None:
    """Print the lines of entries as stored, and flush."""
    for step in chosen:
        print_bytes(step.line + b"\n")
    sys.stdout.flush()


def choose_wait() -> Callable[[float], None]:
    """Return a function that waits some seconds; BrokenPipeError once a pipe's reader is gone."""
    import select  # only -f waits

    out = sys.stdout.fileno()
    if not stat.S_ISFIFO(os.fstat(out).st_mode):
        return time.sleep
    pipe = select.poll()
    pipe.register(out, 0)  # only errors are polled: the reader is gone

    def wait(seconds: float) -> None:
        if pipe.poll(seconds * 1000):
            raise BrokenPipeError

    return wait
