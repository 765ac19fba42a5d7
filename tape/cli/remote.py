"""`remote`: the places elsewhere that hold tapes of this store, and how far apart they are."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import click
import msgspec

from ..clock import format_timestamp, read_clock, render_time
from ..errors import Damaged, NotFound, RemoteUnavailable, TapeError, UsageError
from ..remote.audit import read_events, read_local_events
from ..remote.behind import read_remote_behind
from ..remote.changed import find_changed
from ..remote.cursor import REMOTES_NAME, Cursor
from ..remote.leases import Lease, LeasedBranch, find_fresh_leases
from ..remote.merging import find_mergeable, merge_chunks
from ..remote.missing import is_complete
from ..remote.pull import find_new_chunks
from ..remote.rebuilding import find_unreadable, rebuild_chunks
from ..remote.registry import (
    MODES,
    SCHEMES,
    KnownRemote,
    add_remote,
    check_remote_name,
    check_remote_url,
    find_catalogue,
    list_caches,
    open_named,
    probe_remote,
    read_registry,
    write_registry,
)
from ..remote.verification import count_objects, verify_remote
from ..repository import find_work_facts
from ..store.store import Store
from ..text import SHORT, format_count
from .environment import find_store_home
from .output import as_json, format_examples, format_size, print_json
from .resolve import open_library
from .terminal import format_table, print_lines, print_warning, show_progress
from .timeparse import TIME_FORMS, parse_moment
from .user_service import build_launchd_agent, build_systemd_unit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..index.library import Library
    from ..remote.behind import BehindState
    from ..remote.remote import Remote
    from ..remote.verification import RemoteFinding
    from .group import GlobalOptions

_SERVICES = {
    "systemd": "~/.config/systemd/user/tape-push.service, `systemctl --user enable --now`",
    "launchd": "~/Library/LaunchAgents/tape-push.plist, then `launchctl load`",
}
"""Where the text of each service belongs."""
_WAIT = 600.0
"""Seconds to wait for another process that pushes to or pulls from the same remote."""


@click.group(
    invoke_without_command=True,
    epilog=format_examples(
        "tape remote add team /mnt/team/tapes", "tape remote", "tape remote rm team"
    ),
)
@as_json
@click.pass_context
def remote(ctx: click.Context, as_json: bool) -> int:
    """List the remotes of this store: name, default, mode, address, and which is behind.

    A remote holds the bytes of tapes on another machine. It is behind while tapes that were written
    here wait for a push of their own. --json prints an array of {name, url, default, raw, mode,
    behind, complaint}: how many tapes wait, and why the last push failed.
    """
    if ctx.invoked_subcommand is None:
        return _list_remotes(ctx.obj, is_json=as_json)
    return 0


@remote.command(name="ls")
@as_json
@click.pass_obj
def list_(options: GlobalOptions, as_json: bool) -> int:
    """List the remotes, as `tape remote` alone does."""
    return _list_remotes(options, is_json=as_json)


def _list_remotes(options: GlobalOptions, *, is_json: bool) -> int:
    home = Path(find_store_home(options.store))
    registry = read_registry(home)
    default = registry.find_default()
    states = {name: read_remote_behind(home, name) for name in registry.remotes}
    if is_json:
        print_json(
            [
                {
                    "name": name,
                    "url": known.url,
                    "default": name == default,
                    "raw": known.raw,
                    "mode": known.mode,
                    "behind": states[name].tapes,
                    "complaint": states[name].complaint or None,
                }
                for name, known in sorted(registry.remotes.items())
            ]
        )
        return 0
    rows = [
        (name, "default" if name == default else "", known.mode, known.url)
        for name, known in sorted(registry.remotes.items())
    ]
    print_lines(format_table(rows))
    for name in sorted(registry.remotes):
        if states[name].tapes:
            print_warning(_describe_behind(states[name]))
    if not rows:
        print_warning("this store has no remote: `tape remote add NAME URL` adds one")
    return 0


def _describe_behind(state: BehindState) -> str:
    since = render_time(format_timestamp(round(state.since * 1_000_000)))
    why = f": {state.complaint}" if state.complaint else ""
    return f"{state.describe()} since {since}{why}"


@remote.command(
    epilog=format_examples("tape remote add team /mnt/team/tapes"),
    help="Add a remote, and check that it keeps what it is given.\n\nURL is a folder, or "
    + "; ".join(f"{scheme}://…, {what}" for scheme, what in SCHEMES.items())
    + ". The first remote is the default one. Refuses a server that creates one object for two "
    "machines at once. Nothing is pushed.",
)
@click.argument("name")
@click.argument("url")
@click.option("--raw", is_flag=True, help="Push entries with secrets to it, too.")
@click.option(
    "--mode",
    type=click.Choice([*MODES]),
    default="async",
    show_default=True,
    help="When what is written goes there: "
    + "; ".join(f"{mode}, {what}" for mode, what in MODES.items())
    + ".",
)
@click.pass_obj
def add(options: GlobalOptions, name: str, url: str, raw: bool, mode: str) -> int:
    """Add a remote."""
    home = Path(find_store_home(options.store))
    if mode == "barrier" and not raw:
        raise UsageError(
            "--mode barrier sends every entry before anybody can look at it, secrets too: say so "
            "with --raw"
        )
    url = check_remote_url(url)
    with open_library(options, publishes=False) as (store, _):
        add_remote(store, check_remote_name(name), KnownRemote(url, raw=raw, mode=mode))
    print_lines([f"added {name}: {read_registry(home).remotes[name].url}"])
    return 0


@remote.command(name="rm")
@click.argument("name")
@click.pass_obj
def remove(options: GlobalOptions, name: str) -> int:
    """Forget a remote; what it holds stays there."""
    home = Path(find_store_home(options.store))
    registry = read_registry(home)
    registry.choose(name)
    with Cursor.open(home, name):  # nobody pushes to it now
        del registry.remotes[name]
        registry.default = registry.default if registry.default != name else None
        write_registry(home, registry)
    (home / REMOTES_NAME / f"{name}.db").unlink(missing_ok=True)
    for cache in list_caches(home, name):
        shutil.rmtree(cache, ignore_errors=True)
    print_lines([f"{name} is forgotten here; what it holds stays there"])
    return 0


@remote.command()
@click.argument("name")
@click.pass_obj
def default(options: GlobalOptions, name: str) -> int:
    """Choose the remote that push and pull use when none is named."""
    home = Path(find_store_home(options.store))
    registry = read_registry(home)
    registry.default = registry.choose(name)
    write_registry(home, registry)
    return 0


@remote.command()
@click.argument("name", required=False)
@click.option("--probe", is_flag=True, help="Try whether it creates an object only once.")
@as_json
@click.pass_obj
def status(options: GlobalOptions, name: str | None, probe: bool, as_json: bool) -> int:
    """Show how far this store and a remote are apart: tapes to push, tapes to pull, the last push.

    Names who works on a branch there now. --probe tries again whether it creates an
    object once. --json prints {name, url, push, pull, pushed, behind, complaint, working [{tape,
    branch, person, machine, time}], away}: how many tapes have something new here, and there, when
    something was pushed last, how many tapes wait for a push of their own, and why the last one
    failed. Where the remote does not answer, away says why, pull is null, and the exit code 75.
    """
    with _open_named_cursor(options, name) as (library, chosen, known, cursor):
        push = len(_find_unpushed(library, cursor))
        pushed = cursor.read_log_number("time")
        state = read_remote_behind(library.store.path, chosen)
        pull, working, away = None, list[tuple[LeasedBranch, Lease]](), None
        try:
            with open_named(library.store.path, chosen, known) as there:
                pull = len(find_new_chunks(there, cursor).wanted)
                working = find_fresh_leases(there)
                if probe:
                    probe_remote(there)
        except RemoteUnavailable as error:
            away = error
    last = format_timestamp(pushed) if pushed else None
    code = 0 if away is None else away.exit_code
    if as_json:
        print_json(
            {
                "name": chosen,
                "url": known.url,
                "push": push,
                "pull": pull,
                "pushed": last,
                "behind": state.tapes,
                "complaint": state.complaint or None,
                "working": [
                    {
                        "tape": at.tape,
                        "branch": at.branch,
                        "person": lease.person,
                        "machine": lease.machine,
                        "time": lease.time,
                    }
                    for at, lease in working
                ],
                "away": None if away is None else str(away),
            }
        )
        return code
    print_lines(
        [
            f"{chosen}: {known.url}",
            f"  {format_count(push, 'tape')} to push, "
            + (
                "unknown how many to pull"
                if pull is None
                else f"{format_count(pull, 'tape')} to pull"
            ),
            f"  last push: {render_time(last) if last else 'none from here'}",
            *([f"  {_describe_behind(state)}"] if state.tapes else ()),
            *(f"  {at.tape[:SHORT]}: {lease.holder} works on {at.branch}" for at, lease in working),
            *(["  it creates an object only once"] if probe and away is None else ()),
        ]
    )
    if away is not None:
        print_warning(str(away))
    return code


def _find_unpushed(library: Library, cursor: Cursor) -> list[str]:
    """Return the tapes that have something new; of others that is noted, as a push does.

    What a barrier published is at the remote, but nobody looked at all of the tape.
    """
    unpushed = []
    for tape, stamps in find_changed(library, cursor).items():
        known = cursor.read_tape(tape)
        if known.seq:  # a damaged one is said so by the push
            with suppress(TapeError), library.store.open(tape) as opened:
                if is_complete(opened, known):
                    cursor.save_tape(tape, known, stamps)
                    continue
        unpushed.append(tape)
    return unpushed


@remote.command(epilog=format_examples("tape remote verify", "tape remote verify team --repair"))
@click.argument("name", required=False)
@click.option(
    "--repair", is_flag=True, help="Complete what a push left; make damaged chunks again."
)
@click.option("--rebuild", is_flag=True, help="Make the catalogue in PostgreSQL again.")
@as_json
@click.pass_obj
def verify(
    options: GlobalOptions, name: str | None, repair: bool, rebuild: bool, as_json: bool
) -> int:
    """Check all that a remote holds: it is pulled into an empty store, and each tape is verified.

    Names chunks that are missing or damaged, blobs that are missing, what no line of the push log
    names, what was redacted and is still there, and of PostgreSQL where the catalogue says
    something else than the chunks. --repair ends what no log line names and what is still there,
    and makes damaged chunks again that were pushed from here or pulled to here; --rebuild makes the
    catalogue again. The pulled copy is removed. --json prints {tapes, chunks, bytes, findings
    [{tape, message, repaired}]}. Exits with 4 if something is wrong and was not repaired.
    """
    return check_remote(options, name, repairs=repair, rebuilds=rebuild, is_json=as_json)


def check_remote(
    options: GlobalOptions, name: str | None, *, repairs: bool, rebuilds: bool, is_json: bool
) -> int:
    """Print what is wrong at a remote, and repair it if that is wanted; return the exit code."""
    with open_named_remote(options, name) as opened, TemporaryDirectory(prefix="tape-") as folder:
        if rebuilds:
            catalogue = find_catalogue(opened.remote)
            if catalogue is None:
                raise UsageError(f"{opened.name} has no catalogue: only PostgreSQL has one")
            with show_progress("catalogued tape") as progress:
                catalogue.rebuild(progress)
        with show_progress("pulled tape") as progress:
            empty, find = Store(Path(folder)), partial(_find_rebuild, opened)
            findings = [
                (finding, repairs and _try_repair(finding))
                for finding in verify_remote(opened.remote, empty, progress, find)
            ]
        counts = count_objects(opened.remote)
    if is_json:
        rows = [
            {"tape": finding.tape, "message": finding.message, "repaired": is_repaired}
            for finding, is_repaired in findings
        ]
        print_json({**counts._asdict(), "findings": rows})
    else:
        size = f"{format_count(counts.chunks, 'chunk')}, {format_size(counts.bytes)}"
        end = "" if findings else ": all good"
        print_lines([f"{opened.name}: {format_count(counts.tapes, 'tape')}, {size}{end}"])
        for finding, is_repaired in findings:
            how = " (repaired)" if is_repaired else ""
            how = " (--repair ends it)" if finding.repair and not is_repaired else how
            print_lines([f"  {finding.tape[:SHORT] or 'the remote'}: {finding.message}{how}"])
    return 0 if all(is_repaired for _, is_repaired in findings) else Damaged.exit_code


def _try_repair(finding: RemoteFinding) -> bool:
    """Return whether something that is wrong was repaired; what prevents that is printed."""
    if finding.repair is None:
        return False
    try:
        finding.repair()
    except (Damaged, NotFound) as error:
        print_warning(f"{finding.tape[:SHORT]}: {error}")
        return False
    return True


def _find_rebuild(opened: OpenRemote, tape: str, newest: int) -> Callable[[], int] | None:
    """Return what makes damaged chunks of a tape again; None where what they held is not here."""
    store, known = opened.library.store, opened.cursor.read_tape(tape)
    unreadable = find_unreadable(opened.remote, tape, newest)
    if unreadable is None or unreadable > known.seq or not store.has(tape):
        return None

    def rebuild() -> int:
        person = find_work_facts(None, os.environ).person or ""
        with store.open(tape) as ours:
            return rebuild_chunks(opened.remote, ours, known, newest, store.replica(), person)

    return rebuild


@remote.command(epilog=format_examples("tape remote audit", "tape remote audit team --since 1w"))
@click.argument("name", required=False)
@click.option("--since", metavar="TIME", help=f"Only what was done since: {TIME_FORMS}.")
@click.option(
    "--here", is_flag=True, help="List who looked at or changed tapes that no remote has."
)
@as_json
@click.pass_obj
def audit(
    options: GlobalOptions, name: str | None, since: str | None, here: bool, as_json: bool
) -> int:
    """List who took tapes from a remote, held, redacted, exported or saw them, oldest first.

    Exports of a tape that a remote has, and what people see and change of it by `tape serve
    --login-header`, are recorded here, and come there with the next push. In PostgreSQL these are
    rows of tape.audit.
    --json prints an array of {did, tape, time, person, machine, why}.
    """
    begin = parse_moment(since, read_clock()) if since else ""
    if here:
        if name:
            raise UsageError("give a NAME or --here, not both")
        events = read_local_events(Path(find_store_home(options.store)), begin)
    else:
        with open_named_remote(options, name) as opened:
            events = read_events(opened.remote, begin)
    if as_json:
        print_json([msgspec.structs.asdict(event) for event in events])
        return 0
    rows = [
        (
            render_time(event.time),
            event.did,
            event.tape[:SHORT],
            event.person or event.machine,
            event.why,
        )
        for event in events
    ]
    print_lines(format_table(rows))
    return 0


@remote.command(epilog=format_examples("tape remote compact", "tape remote compact --min-chunks 2"))
@click.argument("name", required=False)
@click.option(
    "--min-chunks",
    type=click.IntRange(min=2),
    default=16,
    show_default=True,
    help="Only tapes with at least this many.",
)
@as_json
@click.pass_obj
def compact(options: GlobalOptions, name: str | None, min_chunks: int, as_json: bool) -> int:
    """Merge the small chunks of tapes at a remote, so that who pulls them asks less often.

    Nothing that they hold changes, and others may push and pull meanwhile. --json prints an array
    of {tape, merged, error}: how many chunks went into others.
    """
    done: list[tuple[str, int, str | None]] = []
    with open_named_remote(options, name) as opened:
        tapes = find_mergeable(opened.remote, min_chunks)
        with show_progress("compacted tape") as progress:
            for tape in tapes:
                try:
                    done.append((tape, merge_chunks(opened.remote, tape), None))
                except Damaged as error:
                    done.append((tape, 0, str(error)))
                progress(len(done), len(tapes))
    if as_json:
        keys = ("tape", "merged", "error")
        print_json([dict(zip(keys, row, strict=True)) for row in done])
    else:
        for tape, _, complaint in done:
            if complaint:
                print_warning(f"{tape[:SHORT]}: {complaint}")
        merged = format_count(sum(count for _, count, _ in done), "chunk")
        print_lines([f"merged {merged} of {format_count(len(done), 'tape')} into others"])
    return Damaged.exit_code if any(complaint for _, _, complaint in done) else 0


@remote.command()
@click.argument("name", required=False)
@click.option("--for", "manager", type=click.Choice([*_SERVICES]), help="Print only this one's.")
@as_json
@click.pass_obj
def service(options: GlobalOptions, name: str | None, manager: str | None, as_json: bool) -> int:
    """Print user services that push all that is written to a remote.

    One for systemd and one for launchd, each runs `tape push --all --watch`: put in place what you
    want; nothing is ever installed. --json prints {systemd, launchd}, each {place, text}.
    """
    home = Path(find_store_home(options.store)).absolute()
    name = read_registry(home).choose(name)
    words = [shutil.which("tape") or "tape", "--store", str(home)]
    words += ["push", "--all", "--watch", "--to", name]
    texts = {
        "systemd": build_systemd_unit("Push the sessions of coding agents", words),
        "launchd": build_launchd_agent("tape-push", words),
    }
    chosen = {key: text for key, text in texts.items() if manager in (None, key)}
    if as_json:
        print_json({key: {"place": _SERVICES[key], "text": text} for key, text in chosen.items()})
        return 0
    for key, text in chosen.items():
        print_lines([f"# {_SERVICES[key]}", *text.splitlines(), ""])
    return 0


class OpenRemote(NamedTuple):
    """A remote of a store, and what the store knows of it."""

    library: Library
    name: str
    known: KnownRemote
    remote: Remote
    cursor: Cursor


@contextmanager
def open_named_remote(options: GlobalOptions, name: str | None) -> Iterator[OpenRemote]:
    """Yield the remote of this name, or the default one, and its cursor; raise NotFound."""
    with (
        _open_named_cursor(options, name) as (library, chosen, known, cursor),
        open_named(library.store.path, chosen, known) as remote,
    ):
        yield OpenRemote(library, chosen, known, remote, cursor)


@contextmanager
def _open_named_cursor(
    options: GlobalOptions, name: str | None
) -> Iterator[tuple[Library, str, KnownRemote, Cursor]]:
    """Yield what this store knows of a remote, without asking it; raise NotFound."""
    with open_library(options, publishes=False) as library:
        registry = read_registry(library.store.path)
        name = registry.choose(name)
        with Cursor.open(library.store.path, name, wait=_WAIT) as cursor:
            yield library, name, registry.remotes[name], cursor


def update_catalogue(remote: Remote) -> None:
    """Bring the catalogue of a remote up to date, where it has one and that is allowed."""
    catalogue = find_catalogue(remote)
    if catalogue is not None:
        catalogue.update()
