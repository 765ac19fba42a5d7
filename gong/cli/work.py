"""`gong work`: work that spans one or many sessions, and its handoff page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec.structs import replace

from tape.cli.environment import get_current_folder
from tape.cli.files import require_writable, write_output
from tape.cli.group import GlobalOptions
from tape.cli.output import NamingGroup, as_json, complete_ref, format_examples, print_json
from tape.cli.resolve import open_ref
from tape.cli.terminal import format_table, print_lines
from tape.clock import format_timestamp, read_clock, render_time, show_times
from tape.errors import TapeError, UsageError
from tape.remote.opening import open_store
from tape.text import SHORT, format_count, shorten_to_width, show_controls, to_single_line

from ..context.handoff import HistorySummary, render_handoff
from ..context.work import (
    WorkAdditions,
    WorkStore,
    add_to_work,
    build_work_handoff,
    complete_task,
)
from ..private_files import locate_config_file
from .options import locate_store, print_warning, report_skipped, store_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..context.work import WorkContext

_TITLE_COLUMNS = 44

work_argument = click.argument("ref", metavar="ID")


@click.group(
    cls=NamingGroup,
    epilog=format_examples(
        'gong work new "OAuth login" --goal "People log in with GitHub"',
        'gong work add oauth --todo "Write the tests" --tape 3f2a',
        "gong work done oauth 1",
        "gong work handoff oauth -o handoff.md",
    ),
)
def work() -> None:
    """Track the goal of a piece of work, what is done and to do, and hand it over.

    A piece of work spans any number of sessions and providers. ID is the beginning of its id, or
    words from its title.
    """


@work.command()
@click.argument("title")
@click.option("--goal", default="", metavar="TEXT", help="The goal.")
@click.option("--background", default="", metavar="TEXT", help="Background to know first.")
@as_json
def new(title: str, goal: str, background: str, *, as_json: bool) -> None:
    """Create a piece of work and print its id.

    --json prints it: {id, title, goal, background, completed, pending, key_files, notes, decisions,
    token_usage_by_provider, tapes, created, updated, path}.
    """
    if not title.strip():
        raise UsageError("a piece of work needs a title: gong work new 'OAuth login'")
    created = _open_work_store().create(
        to_single_line(title), goal.strip(), background.strip(), _format_now()
    )
    print_json(_encode_work(created)) if as_json else print_lines([created.id])


@work.command("list")
@as_json
def list_(*, as_json: bool) -> None:
    """List all pieces of work, the last changed first.

    --json prints an array of what `new --json` prints.
    """
    works = _open_work_store().all()
    if as_json:
        print_json([_encode_work(work) for work in works])
    elif works:
        rows = []
        for work in works:
            title = shorten_to_width(work.title, _TITLE_COLUMNS)
            done, todo, tapes = map(len, (work.completed, work.pending, work.tapes))
            with show_times(local=True):
                changed = render_time(work.updated)[:16]
            rows.append((work.id, title, str(done), str(todo), str(tapes), changed))
        headings = ("ID", "TITLE", "DONE", "TO DO", "TAPES", "CHANGED")
        optional = ("CHANGED", "TAPES", "DONE", "TO DO")
        print_lines(format_table(rows, (2, 3, 4), headings=headings, optional=optional))
    else:
        print_warning("no work yet: create one with gong work new TITLE")


@work.command()
@work_argument
@as_json
def show(ref: str, *, as_json: bool) -> None:
    """Show a piece of work; its to-do items are numbered.

    --json prints what `new --json` prints.
    """
    work = _open_work_store().find(ref)
    if as_json:
        print_json(_encode_work(work))
        return
    lines = [f"{work.id}  {to_single_line(work.title)}"]
    for name, text in (("goal", work.goal), ("background", work.background)):
        if text:
            lines += ["", f"{name}:", *(f"  {line}" for line in show_controls(text).split("\n"))]
    numbered = [f"{at}. {text}" for at, text in enumerate(work.pending, 1)]
    usage = [f"{name} {count:,} tokens" for name, count in work.token_usage_by_provider.items()]
    for name, texts in (
        ("done", work.completed),
        ("to do", numbered),
        ("key files", work.key_files),
        ("decisions", work.decisions),
        ("notes", work.notes),
        ("tapes", [identity[:SHORT] for identity in work.tapes]),
        ("spent", usage),
    ):
        if texts:
            lines += ["", f"{name}:", *(f"  {to_single_line(text)}" for text in texts)]
    print_lines(lines)


@work.command()
@work_argument
@click.option("--todo", multiple=True, metavar="TEXT", help="A to-do item.")
@click.option("--note", multiple=True, metavar="TEXT", help="A note.")
@click.option("--file", "files", multiple=True, metavar="FILE", help="A key file.")
@click.option("--decision", multiple=True, metavar="TEXT", help="A decision and its reason.")
@click.option(
    "--tape",
    "tapes",
    multiple=True,
    metavar="REF",
    shell_complete=complete_ref,
    help="A session of this work.",
)
@store_option
@as_json
def add(
    ref: str,
    *,
    todo: Sequence[str],
    note: Sequence[str],
    files: Sequence[str],
    decision: Sequence[str],
    tapes: Sequence[str],
    store: str | None,
    as_json: bool,
) -> None:
    """Add to-do items, notes, files, decisions or sessions; each option may be repeated."""
    items = (*todo, *note, *files, *decision)
    if not (items or tapes) or not all(map(str.strip, items)):
        raise UsageError("nothing to add: give --todo, --note, --file, --decision or --tape")
    works = _open_work_store()
    identity = works.find(ref).id
    tape_ids = []
    for tape in tapes:
        with open_ref(GlobalOptions(str(locate_store(store))), tape) as place:
            tape_ids.append(place.tape.id)
    more = WorkAdditions(todo, note, files, decision, tape_ids)
    changed = works.change(identity, lambda work: add_to_work(work, more), _format_now())
    counts = f"{len(changed.completed)} done, {len(changed.pending)} to do"
    tapes = format_count(len(changed.tapes), "tape")
    line = f"{identity}  {to_single_line(changed.title)}: {counts}, {tapes}"
    print_json(_encode_work(changed)) if as_json else print_lines([line])


@work.command()
@work_argument
@click.argument("what", metavar="N|TEXT")
@as_json
def done(ref: str, what: str, *, as_json: bool) -> None:
    """Mark a to-do item as done: by its number in `gong work show`, or by words of it."""
    works = _open_work_store()
    changed = works.change(
        works.find(ref).id, lambda work: complete_task(work, what), _format_now()
    )
    print_json(_encode_work(changed)) if as_json else print_lines(
        [f"done: {to_single_line(changed.completed[-1])}"]
    )


@work.command()
@work_argument
@click.option(
    "-o", "--output", metavar="FILE", help="Write the page to this file instead of printing it."
)
@click.option("--force", is_flag=True, help="With -o: replace an existing file.")
@click.option(
    "--to", "model", default="", metavar="MODEL", help="The model or person that continues."
)
@store_option
@as_json
def handoff(
    ref: str, *, output: str | None, force: bool, model: str, store: str | None, as_json: bool
) -> None:
    """Print a page from which any person or model can continue.

    The page collects from the sessions, each along its current branch, what was asked, which files
    changed, and tokens and cost by provider. The usage is saved with the work.

    --json prints the same as fields.
    """
    if output is not None:
        require_writable(Path(output), force=force)
    works = _open_work_store()
    context = works.find(ref)
    history = HistorySummary()
    with open_store(locate_store(store)) as (library, _):
        for identity in context.tapes:
            try:
                with library.open(identity) as tape:
                    history.take(tape, tape.head(), report_skipped)
            except (TapeError, OSError) as error:
                print_warning(f"tape {identity[:SHORT]} is left out: {error}")
    usage = {name: spend.usage.total for name, spend in history.spending.items()}
    if usage != context.token_usage_by_provider and usage:
        context = works.change(
            context.id, lambda work: replace(work, token_usage_by_provider=usage), _format_now()
        )
    cwd = get_current_folder(is_needed=False)
    page = build_work_handoff(context, history, cwd=cwd, created=context.updated)
    page = replace(page, to_model=model)
    if output is not None:
        write_output(Path(output), render_handoff(page))
    if as_json:
        print_json(page)
    elif output is None:
        print_lines(render_handoff(page).rstrip("\n").split("\n"))
    else:
        print_lines([f"{output} is written; give it to the model or person that continues"])


def _open_work_store() -> WorkStore:
    return WorkStore(locate_config_file(os.environ).parent)


def _format_now() -> str:
    return format_timestamp(read_clock())


def _encode_work(work: WorkContext) -> dict[str, Any]:
    """Return a piece of work as `--json` prints it, with its file."""
    return {**msgspec.structs.asdict(work), "path": str(_open_work_store().file(work.id))}
