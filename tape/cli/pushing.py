"""`push`, `pull` and `clone`: tapes go to a remote and come from it."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import contextmanager
from functools import reduce, wraps
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..clock import read_clock
from ..errors import Busy, RemoteUnavailable, UsageError
from ..folders import locate_repository
from ..index.library import read_tape_rows
from ..remote.behind import note_failure
from ..remote.changed import find_changed, read_stamps
from ..remote.metrics import PushMetrics, render_metrics
from ..remote.pull import pull_tapes
from ..remote.push import Pusher, add_origins
from ..remote.registry import (
    KnownRemote,
    add_remote,
    check_remote_name,
    check_remote_url,
    read_registry,
)
from ..repository import find_work_facts
from ..store.recorded_tape import TapeFolders
from ..text import SHORT, format_count
from .environment import find_store_home, get_current_folder
from .listing import select_in_project
from .output import (
    REFUSED_CODE,
    Confirmation,
    add_confirmation_options,
    as_json,
    complete_ref,
    format_examples,
    format_size,
    print_json,
)
from .remote import open_named_remote, update_catalogue
from .resolve import open_library, open_ref
from .terminal import print_lines, print_warning, show_progress
from .timeparse import TIME_FORMS, parse_moment

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from ..index.library import Library
    from ..index.reader import TapeRow
    from ..remote.cursor import Cursor
    from ..remote.push import PushOutcome
    from ..unite.stores import TapeOutcome
    from .group import GlobalOptions
    from .remote import OpenRemote

_MAX_NAMED = 5
"""How many entries with secrets are named of one tape."""
_INTERVAL, _MAX_INTERVAL = 2.0, 60.0
"""Seconds between two looks for what is new, and the most while the remote does not answer."""
_FLUSH_SECONDS = 4.5
"""How long the last push of a watch may take."""
_UNASKED = Confirmation(yes=True, dry_run=False, as_json=False)


class _Choice(NamedTuple):
    """Which tapes are pushed."""

    refs: tuple[str, ...]
    every: bool
    project: str | None
    """A folder: only tapes that work there or below."""
    since: str
    """A time as on a tape; "" for any."""
    raw: bool
    """Also entries that hold secrets."""
    known: bool
    """Only tapes that the remote has something of."""


def _add_choice_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the argument and options that choose tapes to a command, as `choice`."""

    @wraps(command)
    def call(
        *args: Any, refs: tuple[str, ...], every: bool, project: str | None, since: str | None,
        raw: bool, known: bool, **others: Any,
    ) -> int:  # fmt: skip
        begin = parse_moment(since, read_clock()) if since else ""
        choice = _Choice(refs, every, project, begin, raw, known)
        return command(*args, choice=choice, **others)

    options = (
        click.argument("refs", metavar="[REF]...", nargs=-1, shell_complete=complete_ref),
        click.option("--all", "every", is_flag=True, help="All tapes of the store."),
        click.option("--project", metavar="FOLDER", help="Only tapes of this folder or below."),
        click.option("--since", metavar="TIME", help=f"Only tapes used since: {TIME_FORMS}."),
        click.option("--raw", is_flag=True, help="Also entries that hold secrets."),
        click.option("--known", is_flag=True, help="Only tapes that were pushed to it before."),
    )
    return reduce(lambda called, add: add(called), reversed(options), call)


@click.command(
    epilog=format_examples(
        "tape push", "tape push 3f2a --to team", "tape push --all --dry-run", "tape push --since 7d"
    )
)
@_add_choice_options
@click.option("--to", "name", metavar="NAME", help="The remote; by default the default one.")
@click.option("--watch", is_flag=True, help="Keep pushing what is written, until Ctrl+C.")
@click.option(
    "--metrics",
    type=click.IntRange(0, 65_535),
    metavar="PORT",
    help="With --watch: figures for Prometheus at this port of this machine; 0 is any.",
)
@add_confirmation_options
@as_json
@click.pass_obj
def push(
    options: GlobalOptions,
    *,
    choice: _Choice,
    name: str | None,
    watch: bool,
    metrics: int | None,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Bring tapes to a remote: those of REF, else of this repository or folder.

    Only what the remote does not have leaves, and nothing is asked of it where that is nothing. A
    tape that holds what an export would mask stays here, and its entries are named: redact them, or
    pass --raw. Where another machine moved a branch first, its end stays, and the end here becomes
    BRANCH.MACHINE. The first push to a remote asks before anything leaves.

    --watch pushes what is written until it is stopped, then what is left; `tape remote service`
    prints a service that does so. --metrics serves its figures to Prometheus: what was pushed, what
    failed, how far the remote is behind, and when something was pushed last.

    --json prints an array of {tape, chunks, bytes, kept [{branch, other}], secrets [{entry, kind}],
    error}, one for each tape that has something new. Exits with 1 if a tape was not pushed.
    """
    how = Confirmation(yes, dry_run, as_json)
    if watch and (dry_run or as_json):
        raise UsageError("--watch goes with neither --dry-run nor --json")
    if not watch:
        if metrics is not None:
            raise UsageError("--metrics goes with --watch")
        return _push_once(options, name, choice, how)
    stop = Event()
    _set_at(stop, signal.SIGTERM)
    with _serve_figures(options, name, metrics) as figures:
        code = _push_once(options, name, choice, how, figures=figures)
        if code != REFUSED_CODE:
            code = _push_until_stopped(options, name, choice, stop, figures)
    return code


@contextmanager
def _serve_figures(
    options: GlobalOptions, name: str | None, port: int | None
) -> Iterator[PushMetrics]:
    """Yield the figures of a watch, and serve them if there is a port for it."""
    home = Path(find_store_home(options.store))
    with open_library(options, publishes=False) as (store, _):
        replica = store.replica()
    machine = "" if replica is None else replica.machine
    figures = PushMetrics(read_registry(home).choose(name), machine)
    if port is None:
        yield figures
        return
    from ..remote.metrics_page import serve_metrics  # only if it is asked for

    with serve_metrics(port, lambda: render_metrics(figures.list_metrics())) as address:
        print_lines([f"figures at {address}"])
        yield figures


def _push_once(
    options: GlobalOptions,
    name: str | None,
    choice: _Choice,
    how: Confirmation,
    *,
    is_quiet: bool = False,
    figures: PushMetrics | None = None,
) -> int:
    """Push what is new and print what was done; with `is_quiet` nothing where nothing is new."""
    try:
        return _push_new(options, name, choice, how, is_quiet=is_quiet, figures=figures)
    except RemoteUnavailable as error:
        if figures is not None:
            figures.record_failure()
        home = Path(find_store_home(options.store))
        note_failure(home, read_registry(home).choose(name), str(error))
        raise


def _push_new(
    options: GlobalOptions,
    name: str | None,
    choice: _Choice,
    how: Confirmation,
    *,
    is_quiet: bool,
    figures: PushMetrics | None,
) -> int:
    with open_named_remote(options, name) as opened:
        library = opened.library
        new = find_changed(library, opened.cursor)
        folders = TapeFolders(library.store)
        chosen = _choose_tapes(options, library, choice, new)
        for row in read_tape_rows(*library, chosen):
            folders.add(row.folder)
        changed = add_origins(library.store, folders, chosen)
        stamps = {**new, **read_stamps(library, [tape for tape in changed if tape not in new])}
        if choice.known:
            changed = [tape for tape in changed if opened.cursor.read_tape(tape).seq]
        is_first = not opened.cursor.read_log_number("end")
        asks = how.dry_run or (changed and is_first)
        if asks and not how.confirm_plan(_describe_push(opened, changed)):
            return how.report_refusal()
        waiting = opened.cursor.read_waiting()
        if figures is not None:
            figures.record_changed(len(changed))
        outcomes: list[PushOutcome] = []
        cursor = opened.cursor
        is_due = cursor.list_erasures() or cursor.list_events() or cursor.list_unlogged()
        if changed or is_due:
            raw = choice.raw or opened.known.raw
            outcomes = _push_tapes(build_pusher(opened, stamps, raw=raw, folders=folders), changed)
        _end_waiting(opened.cursor, waiting, new, outcomes)
        if figures is not None:
            figures.record_push(outcomes, time.time())
        if any(outcome.chunks for outcome in outcomes):
            update_catalogue(opened.remote)
    pushed = [outcome for outcome in outcomes if outcome.chunks or outcome.error or outcome.secrets]
    if how.as_json:
        print_json([_build_pushed(outcome) for outcome in pushed])
    elif pushed or not is_quiet:
        _print_pushed(pushed, opened.name, len(changed))
    return 1 if any(outcome.error or outcome.secrets for outcome in outcomes) else 0


def _end_waiting(
    cursor: Cursor,
    waiting: dict[str, float],
    new: Collection[str],
    outcomes: Sequence[PushOutcome],
) -> None:
    """Record which of the tapes that wait are at the remote now, and why others are not.

    `new` are those that had changed before the push.
    """
    tried = {outcome.tape for outcome in outcomes}
    complaints = {
        outcome.tape: outcome.error or "it holds secrets"
        for outcome in outcomes
        if outcome.error or outcome.secrets
    }
    for tape, last in waiting.items():
        if tape in complaints:
            cursor.save_complaint(tape, complaints[tape])
        elif tape in tried or tape not in new:
            cursor.end_waiting(tape, last)


def _set_at(stop: Event, number: signal.Signals) -> None:
    """Set an event at a signal; the process ends soon after it in any case."""

    def end(*_: object) -> None:
        if not stop.is_set():
            stop.set()
            Thread(target=_end_late_process, daemon=True).start()

    signal.signal(number, end)


def _push_until_stopped(
    options: GlobalOptions,
    name: str | None,
    choice: _Choice,
    stop: Event,
    figures: PushMetrics,
) -> int:
    """Push what is new again and again, until SIGTERM or Ctrl+C, and then once more."""
    _set_at(stop, signal.SIGINT)
    print_lines(["watching; Ctrl+C ends it"])
    pause, complaint = _INTERVAL, ""
    while True:
        sys.stdout.flush()  # a log shows each push when it is done
        stop.wait(pause)
        is_last = stop.is_set()
        try:
            code = _push_once(options, name, choice, _UNASKED, is_quiet=True, figures=figures)
            pause, complaint = _INTERVAL, ""
        except (RemoteUnavailable, Busy) as error:
            if str(error) != complaint:
                complaint = str(error)
                print_warning(complaint)
            code, pause = error.exit_code, min(2 * pause, _MAX_INTERVAL)
        if is_last:
            return code


def _end_late_process() -> None:
    """End the process where the last push takes too long: the next one completes it."""
    time.sleep(_FLUSH_SECONDS)
    print_warning("the remote does not answer: the next push brings what is left")
    sys.stdout.flush()
    os._exit(RemoteUnavailable.exit_code)


def _choose_tapes(
    options: GlobalOptions, library: Library, choice: _Choice, new: Collection[str]
) -> list[str]:
    """Return the chosen ones of the tapes that are new to a remote."""
    if choice.refs:
        if choice.every or choice.project or choice.since:
            raise UsageError("REF names the tapes: leave out --all, --project and --since")
        chosen = []
        for text in choice.refs:
            with open_ref(options, text) as (tape, _, _branch):
                chosen.append(tape.id)
        return [tape for tape in chosen if tape in new]
    if not new or (choice.every and not choice.project and not choice.since):
        return [*new]
    rows: Sequence[TapeRow] = read_tape_rows(*library, [*new])
    folder = choice.project
    if folder is None and not choice.every and not choice.since:
        here = get_current_folder()
        folder = locate_repository(here) or here
    if folder is not None:
        rows = select_in_project(rows, folder)
    return [row.id for row in rows if row.updated >= choice.since]


def _describe_push(opened: OpenRemote, tapes: Sequence[str]) -> Iterator[str]:
    """Yield what would leave, and where to."""
    yield f"{format_count(len(tapes), 'tape')} would go to {opened.name}: {opened.known.url}"
    rows = {row.id: row for row in read_tape_rows(*opened.library, tapes[:_MAX_NAMED])}
    for tape in tapes[:_MAX_NAMED]:
        row = rows.get(tape)
        yield f"  {tape[:SHORT]}  {(row and row.title) or '–'}"
    if len(tapes) > _MAX_NAMED:
        yield f"  and {len(tapes) - _MAX_NAMED} more"


def _push_tapes(pusher: Pusher, tapes: Sequence[str]) -> list[PushOutcome]:
    outcomes: list[PushOutcome] = []
    with show_progress("pushed tape") as progress:
        for outcome in pusher.push(tapes):
            outcomes.append(outcome)
            progress(len(outcomes), len(tapes))
    return outcomes


def build_pusher(
    opened: OpenRemote,
    stamps: dict[str, str | None],
    *,
    raw: bool,
    folders: TapeFolders | None = None,
) -> Pusher:
    """Return what pushes to a remote in the name of who works here."""
    person = find_work_facts(None, os.environ).person or ""
    return Pusher(
        opened.library.store,
        opened.remote,
        opened.cursor,
        person=person,
        raw=raw,
        stamps=stamps,
        folders=folders,
    )


def _build_pushed(outcome: PushOutcome) -> dict[str, object]:
    return {
        "tape": outcome.tape,
        "chunks": outcome.chunks,
        "bytes": outcome.bytes,
        "kept": [end._asdict() for end in outcome.kept],
        "secrets": [secret._asdict() for secret in outcome.secrets],
        "error": outcome.error,
    }


def _print_pushed(outcomes: Sequence[PushOutcome], name: str, changed: int) -> None:
    done = [outcome for outcome in outcomes if outcome.chunks]
    for outcome in outcomes:
        short = outcome.tape[:SHORT]
        holders = dict(outcome.holders)
        for end in outcome.kept:
            why = f"{end.branch} moved at {name} too"
            if end.branch in holders:
                why = f"{holders[end.branch]} works on {end.branch}"
            print_lines([f"{short}: {why}: what was written here is {end.other}"])
        if outcome.error:
            print_warning(f"{short}: {outcome.error}")
        if outcome.secrets:
            places = ", ".join(
                f"{secret.entry[:SHORT]} ({secret.kind})" for secret in outcome.secrets[:_MAX_NAMED]
            )
            more = len(outcome.secrets) - _MAX_NAMED
            places += f" and {more} more" if more > 0 else ""
            print_warning(
                f"{short} stays here, it holds secrets: {places}; "
                f"`tape redact {short}@{outcome.secrets[0].entry[:SHORT]}` erases one, "
                "--raw pushes them"
            )
    if done:
        size = format_size(sum(outcome.bytes for outcome in done))
        print_lines([f"pushed {format_count(len(done), 'tape')} to {name}, {size}"])
    elif not changed or not outcomes:
        print_lines([f"nothing new for {name}"])


@click.command(epilog=format_examples("tape pull", "tape pull 3f2a --from team"))
@click.argument("refs", metavar="[TAPE]...", nargs=-1)
@click.option("--from", "name", metavar="NAME", help="The remote; by default the default one.")
@as_json
@click.pass_obj
def pull(options: GlobalOptions, refs: tuple[str, ...], name: str | None, as_json: bool) -> int:
    """Bring what a remote has of tapes here, all of them or those whose ids begin with TAPE.

    Nothing here is lost: what both sides wrote is united, as `tape unite` does, and where both
    moved a branch, the end at the remote keeps its name. A tape in the trash here stays there.

    --json prints an array of {tape, folder, new, entries, phases, moves, kept [{branch, other}],
    lost, error}, one for each tape. Exits with 1 if a tape could not be pulled.
    """
    with open_named_remote(options, name) as opened:
        opened.library.store.open_tapes_folder().close()
        outcomes = _pull_tapes(opened, refs)
    return _report_pulled(outcomes, opened.name, is_json=as_json)


def _pull_tapes(opened: OpenRemote, prefixes: tuple[str, ...]) -> list[TapeOutcome]:
    outcomes: list[TapeOutcome] = []
    with show_progress("pulled tape") as progress:
        for outcome in pull_tapes(
            opened.library.store, opened.remote, opened.cursor, prefixes or None
        ):
            outcomes.append(outcome)
            progress(len(outcomes), 0)
    return outcomes


def _report_pulled(outcomes: Sequence[TapeOutcome], name: str, *, is_json: bool) -> int:
    from .unite import build_outcome, print_outcomes  # what a union did is shown alike

    if is_json:
        print_json([build_outcome(outcome) for outcome in outcomes])
    elif outcomes:
        print_outcomes(outcomes)
    else:
        print_lines([f"nothing new at {name}"])
    return 1 if any(outcome.error for outcome in outcomes) else 0


@click.command(
    epilog=format_examples(
        "tape clone /mnt/team/tapes", "tape --store ~/team clone /mnt/team/tapes"
    )
)
@click.argument("url")
@click.option("--name", default="origin", show_default=True, help="The name of the remote here.")
@as_json
@click.pass_obj
def clone(options: GlobalOptions, url: str, name: str, as_json: bool) -> int:
    """Bring all tapes of the remote at URL here, and add it as a remote of this store.

    The store is made if there is none, and keeps what it has. --json prints what `tape pull` does.
    """
    home = Path(find_store_home(options.store))
    url = check_remote_url(url)
    known = read_registry(home).remotes.get(check_remote_name(name))
    if known is not None and known.url != url:
        raise UsageError(f"{name} is {known.url} here: choose another --name")
    if known is None:
        with open_library(options, publishes=False) as (store, _):
            add_remote(store, name, KnownRemote(url))
    with open_named_remote(options, name) as opened:
        outcomes = _pull_tapes(opened, ())
    return _report_pulled(outcomes, name, is_json=as_json)
