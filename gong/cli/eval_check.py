"""`gong eval check`: trajectories of any agent, checked by their record alone."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tape.cli.group import GlobalOptions
from tape.cli.output import as_json, format_examples, print_json
from tape.cli.resolve import open_ref
from tape.cli.terminal import format_table, print_lines
from tape.errors import NotFound, TapeError, UsageError
from tape.sessions.sources import find_sessions_in, list_sessions_in, open_session_file
from tape.text import show_controls

from ..context.handoff import read_path_entries, read_tape_entries
from ..evals.check.finding import CheckLimits
from ..evals.check.report import check_trajectory, describe_report
from ..evals.check.trajectory import build_tape_trajectory, build_trajectory
from .call_prices import CallPrices
from .options import locate_store, print_warning, report_skipped, store_option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tape.sessions.sources import SessionFile

    from ..evals.check.report import CheckReport
    from ..evals.check.trajectory import Trajectory

_FOUND_EXIT = 1


@click.command(
    epilog=format_examples(
        "gong eval check 3f2a",
        "gong eval check trajectory.json --root /app --max-cost 0.50 --max-turns 40",
        "gong eval check trajectory.json --json",
    )
)
@click.argument("trajectories", nargs=-1, required=True, metavar="TRAJECTORY...")
@click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="FOLDER",
    help="A folder where it may write, on the machine of the session; may be given again."
    " Default: where the session began.",
)
@click.option(
    "--max-cost",
    type=click.FloatRange(min=0, min_open=True),
    metavar="USD",
    help="Max cost of each, with sub-agents.",
)
@click.option(
    "--max-turns", type=click.IntRange(min=1), metavar="N", help="Max answers of the model in each."
)
@store_option
@as_json
def check(
    trajectories: tuple[str, ...],
    *,
    roots: tuple[str, ...],
    max_cost: float | None,
    max_turns: int | None,
    store: str | None,
    as_json: bool,
) -> int:
    """Check sessions: every call has one result, no edit before a read, no write out of the root.

    TRAJECTORY is a file with a session of any agent (Claude Code, Codex, Gemini CLI, pi, ATIF and
    whatever `tape import` reads), a folder of such files, or the REF of a tape. Nothing is run and
    nothing changed: what a session did is judged by its record. Exits with 1 where something is
    found, or a file cannot be read.

    --json prints {checked, unreadable}; each checked has {trajectory, tool, session, roots,
    entries, calls, turns, cost, damaged, findings [{kind, entry, tool, detail}]}: docs/evals.md.
    """
    absolute = tuple(os.path.normpath(Path(root).expanduser().absolute()) for root in roots)
    limits, price = CheckLimits(absolute, max_cost or 0.0, max_turns or 0), CallPrices()
    reports: list[CheckReport] = []
    unreadable: list[dict[str, str]] = []
    for name, read in (each for named in trajectories for each in _list_sources(named, store)):
        try:
            report = check_trajectory(name, read(), limits, price)
        except (TapeError, OSError) as error:
            unreadable.append({"trajectory": name, "why": str(error)})
            print_warning(f"{name} cannot be checked: {str(error).removeprefix(name).lstrip()}")
            continue
        if not as_json:
            print_lines([""] if reports and reports[-1].findings else [])
            _print_report(report)
        reports.append(report)
    if as_json:
        print_json({"checked": reports, "unreadable": unreadable})
    return _FOUND_EXIT if unreadable or any(report.findings for report in reports) else 0


def _list_sources(named: str, store: str | None) -> Iterator[tuple[str, Callable[[], Trajectory]]]:
    """Yield the name of each trajectory that is meant, and what reads it."""
    path = Path(named)
    if not path.exists():
        yield named, partial(_read_ref, named, store)
    elif path.is_dir() and (files := find_sessions_in(path)):
        yield from ((file.name, partial(_read_file, file)) for file in files)
    elif path.is_file():
        yield from ((file.name, partial(_read_file, file)) for file in list_sessions_in(path))
    else:
        yield named, _raise_empty


def _raise_empty() -> Trajectory:
    raise UsageError("there is no session in it")


def _read_file(file: SessionFile) -> Trajectory:
    session, _ = open_session_file(file)
    return build_trajectory(session)


def _read_ref(named: str, store: str | None) -> Trajectory:
    """Return the trajectory of a tape, or of the path that a REF names."""
    try:
        options = GlobalOptions(str(locate_store(store)))
        with open_ref(options, named) as (tape, head, branch):
            if head is None and branch is None:
                entries = read_tape_entries(tape, report_skipped)
            else:
                entries = read_path_entries(tape, head or tape.head(branch), report_skipped)
            return build_tape_trajectory(tape.id, (entry for _, entry in entries))
    except NotFound as error:
        raise NotFound("there is no such file, and no such tape") from error
    except UsageError as error:
        raise NotFound("there is no such file") from error


def _print_report(report: CheckReport) -> None:
    rows = [
        (finding.entry, finding.tool, finding.kind, finding.detail) for finding in report.findings
    ]
    table = format_table(rows, headings=("ENTRY", "TOOL", "FINDING", "DETAIL")) if rows else []
    print_lines(map(show_controls, [describe_report(report), *table]))
