"""`export`: a tape as one self-contained file, a page, or what another program reads."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..archive.export import export_tape
from ..clock import show_times
from ..errors import UsageError
from ..formats.registry import FORMATS
from ..pages.html import export_page
from ..pages.markdown import MaskCount, render_markdown
from ..remote import REGISTRY_NAME
from ..sessions.arrays import export_array
from ..sessions.export import (
    DOCUMENTS,
    INSTALLABLE,
    SESSION_WRITERS,
    choose_install_path,
    export_every_branch,
    export_session,
)
from ..text import SHORT, format_count
from .environment import find_facts, find_store_home
from .files import open_output, require_writable
from .output import Confirmation, format_examples, print_bytes, ref
from .resolve import open_ref
from .terminal import print_lines, print_warning, warn_of_left_out_part

if TYPE_CHECKING:
    from ..store.refs import Head
    from ..store.tape import Tape
    from .files import Write
    from .group import GlobalOptions
    from .resolve import ResolvedRef


@click.command(
    epilog=format_examples(
        "tape export 3f2a -o session.jsonl",
        "tape export 3f2a:try-redis --to md -o session.md",
        "tape export 3f2a --to html -o session.html",
        "tape export 3f2a --no-redact | ssh host tape import -",
        "tape export 3f2a --to openai-chat --request -o request.json",
        "tape export 3f2a --to claude --install --yes",
    )
)
@ref
@click.option(
    "--to",
    "form",
    type=click.Choice(["jsonl", "html", "md", *SESSION_WRITERS, *FORMATS]),
    default="jsonl",
    show_default=True,
    help="A file that `tape import` reads, a page, another agent's session, or an API's messages.",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write to this file."
)
@click.option("--force", is_flag=True, help="With -o: replace an existing file.")
@click.option(
    "--redact/--no-redact",
    default=True,
    show_default=True,
    help="Mask what looks like a secret, or make an exact copy.",
)
@click.option(
    "--install", is_flag=True, help="Put a session where the other agent looks for it; asks first."
)
@click.option("-y", "--yes", is_flag=True, help="With --install: do not ask.")
@click.option(
    "--request",
    is_flag=True,
    help="Write the whole request around the array, with the system prompt.",
)
@click.option(
    "--content", is_flag=True, help="With --to otlp: what was said as well, not only that it was."
)
@click.pass_obj
def export(  # noqa: C901, PLR0917 (one argument for each option)
    options: GlobalOptions,
    ref: str,
    form: str,
    output: Path | None,
    force: bool,
    redact: bool,
    install: bool,
    yes: bool,
    request: bool,
    content: bool,
) -> int:
    """Export a tape as one self-contained file: JSON lines, or a page for people.

    A REF that names a tape exports all of it; one that names a branch or an entry exports only its
    path. html is a page with all branches, search and diffs that `tape import` reads as well; md
    shows one path. Secrets of known shapes are masked as [redacted:KIND]. A
    tape with masked secrets gets new ids, because an entry's id is a hash that covers its content;
    otherwise the copy is exact.

    --to with an agent's name writes a session that it lists, reads and resumes: claude and pi hold
    all branches, codex one. opencode (for `opencode import`), atif (Harbor), simple and otlp (spans
    of OpenTelemetry) are documents of one branch, or with -o and a folder that is there one for
    each. --install puts the file where the agent looks, after showing the path.

    --to with an API's name writes the messages of the next request to that API: the repaired view.
    Repairs are reported on standard error. A system prompt that is not part of the array is in
    --request only.
    """
    if request and form not in FORMATS:
        raise UsageError(f"--request goes with --to and the name of an API: {', '.join(FORMATS)}")
    if content and form != "otlp":
        raise UsageError("--content goes with --to otlp: other formats have it")
    if force and output is None:
        raise UsageError("--force goes with -o: standard output replaces nothing")
    if install and form not in INSTALLABLE:
        raise UsageError(f"--install goes with --to {', '.join(INSTALLABLE)}")
    if install and output is not None:
        raise UsageError("--install chooses the file: leave -o out")
    if output is not None and form in DOCUMENTS and output.is_dir():
        return _export_branches(
            options, ref, form, output, force=force, redact=redact, content=content
        )
    if output is not None:
        require_writable(output, force=force)
    click.get_current_context().with_resource(show_times(local=False))  # a page for others too
    if form in SESSION_WRITERS:
        return _export_session(
            *(options, ref, form, output),
            redact=redact,
            install=install,
            yes=yes,
            content=content,
        )
    target = nullcontext(print_bytes) if output is None else open_output(output)
    with open_ref(options, ref) as place, target as write:
        _note_export(options, place.tape, form, redact=redact)
        if form in {"jsonl", "html"}:
            _export_file(place, write, form, redact=redact)
            return 0
        head = place.head or place.tape.head(place.branch)
        if form in FORMATS:
            _export_array(place.tape, head, form, write, redact=redact, request=request)
            return 0
        masks = MaskCount() if redact else None
        for line in render_markdown(place.tape, head, masks=masks, skipped=warn_of_left_out_part):
            write(f"{line}\n".encode("utf-8", "replace"))
        if masks is not None:
            _report_masked(masks.secrets, masks.entries)
    return 0


def _note_export(options: GlobalOptions, tape: Tape, form: str, *, redact: bool) -> None:
    """Record an export in the audit of the remotes that have the tape."""
    home = Path(find_store_home(options.store))
    if not (home / REGISTRY_NAME).exists():
        return
    from ..remote.audit import note_export  # only with a remote

    replica = tape.replica()
    note_export(
        *(home, tape.id, tape.clock()),
        find_facts(None).person or "",
        "" if replica is None else replica.machine,
        form if redact else f"{form}, nothing masked",
    )


def _export_file(place: ResolvedRef, write: Write, form: str, *, redact: bool) -> None:
    head = place.head
    if head is None and place.branch is not None:
        head = place.tape.head(place.branch)
    export_form = export_page if form == "html" else export_tape
    done = export_form(place.tape, write, head=head, redact=redact)
    _report_masked(done.secrets, done.masked, f"; this copy is tape {done.tape[:SHORT]}")
    for digest in done.lost:
        print_warning(
            f"blob {digest[:12]} is missing and so is not in the copy; `tape verify` says more"
        )


def _export_session(
    options: GlobalOptions,
    ref: str,
    form: str,
    output: Path | None,
    *,
    redact: bool,
    install: bool,
    yes: bool,
    content: bool,
) -> int:
    with open_ref(options, ref) as place:
        _note_export(options, place.tape, form, redact=redact)
        head = place.head
        if head is None and place.branch is not None:
            head = place.tape.head(place.branch)
        session = export_session(
            *(place.tape, head, form),
            redact=redact,
            skipped=warn_of_left_out_part,
            with_content=content,
        )
    if install:
        output = choose_install_path(form, session.outline, os.environ)
        asking = Confirmation(yes=yes, dry_run=False, as_json=False)
        if not asking.confirm_plan([f"write {output}, {len(session.data)} bytes"]):
            return asking.report_refusal()
        output.parent.mkdir(parents=True, exist_ok=True)
    with nullcontext(print_bytes) if output is None else open_output(output) as write:
        write(session.data)
    if session.left_out:
        branches = ", ".join(session.left_out)
        print_warning(f"{form} holds one branch: {branches} left out; name one as TAPE:BRANCH")
    if session.secrets:
        print_warning(f"{format_count(session.secrets, 'secret')} masked; --no-redact keeps them")
    return 0


def _export_branches(
    options: GlobalOptions,
    ref: str,
    form: str,
    folder: Path,
    *,
    force: bool,
    redact: bool,
    content: bool,
) -> int:
    """Write a file for each branch of a tape into a folder, and print their names."""
    secrets = 0
    with open_ref(options, ref) as place:
        if place.head is not None or place.branch is not None:
            raise UsageError("a folder is for all branches: name the tape, or give -o FILE")
        _note_export(options, place.tape, form, redact=redact)
        sessions = export_every_branch(
            *(place.tape, form),
            redact=redact,
            skipped=warn_of_left_out_part,
            with_content=content,
        )
        for branch, session in sessions:
            path = folder / f"{branch}.json"
            require_writable(path, force=force)
            with open_output(path) as write:
                write(session.data)
            secrets += session.secrets
            print_lines([str(path)])
    if secrets:
        print_warning(f"{format_count(secrets, 'secret')} masked; --no-redact keeps them")
    return 0


def _export_array(
    tape: Tape, head: Head, form: str, write: Write, *, redact: bool, request: bool
) -> None:
    exported = export_array(tape, head, form, redact=redact, skipped=warn_of_left_out_part)
    write((exported.request if request else exported.array) + b"\n")
    if exported.repair is not None:
        print_warning(f"repaired: {exported.repair.why}; `tape context` says more")
    if not request and exported.beside.keys() - {"model"}:
        print_warning("the system prompt is not part of the array: --request writes both")
    if exported.secrets:
        print_warning(f"{format_count(exported.secrets, 'secret')} masked; --no-redact keeps them")


def _report_masked(secrets: int, entries: int, more: str = "") -> None:
    if secrets:
        where = f"in {format_count(entries, 'entry')}" if entries else "in its title"
        what = f"{format_count(secrets, 'secret')} masked {where}"
        print_warning(f"{what}; --no-redact makes an exact copy{more}")
