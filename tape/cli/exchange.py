"""`import` and `export`: a tape as one self-contained file, a page, or an array of messages."""

from __future__ import annotations

import shutil
import sys
import tempfile
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import click

from ..clock import show_times
from ..errors import NotFound, UsageError
from ..exchange.arrays import ArrayImportReport, export_array, import_array
from ..exchange.export import export_tape
from ..exchange.import_ import ImportReport, import_file
from ..exchange.markdown import MaskCount, render_markdown
from ..exchange.pi_import import SessionImportReport, import_pi_session
from ..exchange.pi_session import is_pi_header
from ..formats.registry import FORMATS
from ..store.store import Beginning
from ..text import SHORT, format_count
from .files import open_output, require_writable
from .output import as_json, format_examples, print_bytes, print_json, ref
from .resolve import (
    PROGRAM,
    clean_argument,
    get_current_folder,
    open_library,
    open_ref,
)
from .terminal import print_lines, print_warning, warn_of_left_out_part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..store.refs import Head
    from ..store.tape import Tape
    from .files import Write
    from .group import GlobalOptions
    from .resolve import ResolvedRef


STDIN = "-"


@click.command(
    name="import",
    epilog=format_examples(
        "tape import session.jsonl",
        "tape log 3f2a --json | tape --store /backup import -",
        "tape import notes.jsonl --json",
        "tape export 3f2a --to gemini | tape import --from gemini -",
    ),
)
@click.argument("file", metavar="FILE")
@click.option(
    "--from",
    "form",
    type=click.Choice(["jsonl", "pi", *FORMATS]),
    default="jsonl",
    show_default=True,
    help="What wrote the file; a session of pi is recognized without it.",
)
@as_json
@click.pass_obj
def import_(options: GlobalOptions, file: str, form: str, as_json: bool) -> None:
    """Import a tape from FILE, or from standard input with `-`.

    FILE is what `tape export` wrote, the entries of one path as `tape log --json` prints them, or
    lines {"type":…,"data":{…}} as `tape append` takes them. Every hash is checked, and the tape is
    created whole or not at all. Importing it again adds nothing. --json prints {id, path, added,
    entries, lost}: entries added, entries in the file, and blobs that are named but missing from
    it.

    FILE may also be a session of pi, of version 1, 2 or 3: its branches become branches, and its
    compactions anchors. --json adds {branches, skipped, version}: lines that could not be read, and
    the version of the file.

    With --from and an API's name, FILE is the array of messages of a request to it, or the whole
    request. Calls without results, results without calls and other faults are recorded as they are;
    `tape export --to` repairs them. --json adds {unsent}: parts that are not messages, which are
    kept but never sent.
    """
    beginning = Beginning(clean_argument(get_current_folder()), PROGRAM)
    with _open_source(file) as source, open_library(options) as (store, _):
        if form == "jsonl" and is_pi_header(source.readline()):
            form = "pi"
        source.seek(0)
        if form == "pi":
            done: ImportReport = import_pi_session(store, source.read(), beginning)
        elif form in FORMATS:
            done = import_array(store, source.read(), form, beginning)
        else:
            done = import_file(store, source, beginning)
    if isinstance(done, ArrayImportReport) and done.unsent:
        parts = format_count(done.unsent, "part")
        are = "is not a message" if done.unsent == 1 else "are not messages"
        print_warning(f"{parts} of it {are} of {form}: kept on the tape, never sent")
    if isinstance(done, SessionImportReport) and done.skipped:
        lines = format_count(done.skipped, "line")
        print_warning(f"{lines} could not be read as entries of pi: left out")
    if done.lost:
        are = "is" if done.lost == 1 else "are"
        print_warning(
            f"{format_count(done.lost, 'blob')} that its entries name {are} not in the file"
        )
    if as_json:
        print_json(done)
    elif done.added:
        count = format_count(done.added, "entry")
        print_lines(
            [f"{done.id[:SHORT]} now has {count}; continue with `tape append {done.id[:SHORT]}`"]
        )
    else:
        print_lines([f"{done.id[:SHORT]} is already in the store: nothing added"])


globals()["import"] = import_  # the command's name is a Python keyword


@contextmanager
def _open_source(file: str) -> Iterator[BinaryIO]:
    """Open the source so that it can be read twice: a stream is copied to a temporary file."""
    if file == STDIN and sys.stdin.isatty():
        raise UsageError("standard input is a terminal: name a FILE, or pipe one in")
    if file != STDIN and not Path(file).exists():
        raise NotFound(f"no file {file!r}")
    with nullcontext(sys.stdin.buffer) if file == STDIN else Path(file).open("rb") as source:
        if file != STDIN and source.seekable():
            yield source
            return
        with tempfile.TemporaryFile() as kept:
            shutil.copyfileobj(source, kept)
            kept.seek(0)
            yield cast("BinaryIO", kept)


@click.command(
    epilog=format_examples(
        "tape export 3f2a -o session.jsonl",
        "tape export 3f2a:try-redis --to md -o session.md",
        "tape export 3f2a --no-redact | ssh host tape import -",
        "tape export 3f2a --to openai-chat --request -o request.json",
    )
)
@ref
@click.option(
    "--to",
    "form",
    type=click.Choice(["jsonl", "md", *FORMATS]),
    default="jsonl",
    show_default=True,
    help="A file that `tape import` reads, a page of Markdown, or an API's array of messages.",
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
    "--request",
    is_flag=True,
    help="Write the whole request around the array, with the system prompt.",
)
@click.pass_obj
def export(
    options: GlobalOptions,
    ref: str,
    form: str,
    output: Path | None,
    force: bool,
    redact: bool,
    request: bool,
) -> None:
    """Export a tape as one self-contained file: JSON lines, or Markdown for people.

    A REF that names a tape exports all of it; one that names a branch or an entry exports only its
    path. A page always shows one path. Secrets of known shapes are masked as [redacted:KIND]. A
    tape with masked secrets gets new ids, because an entry's id is a hash that covers its content;
    otherwise the copy is exact.

    --to with an API's name writes the messages of the next request to that API: the repaired view.
    Repairs are reported on standard error. A system prompt that is not part of the array is in
    --request only.
    """
    if request and form not in FORMATS:
        raise UsageError(f"--request goes with --to and the name of an API: {', '.join(FORMATS)}")
    if force and output is None:
        raise UsageError("--force goes with -o: standard output replaces nothing")
    if output is not None:
        require_writable(output, force=force)
    click.get_current_context().with_resource(show_times(local=False))  # a page for others too
    target = nullcontext(print_bytes) if output is None else open_output(output)
    with open_ref(options, ref) as place, target as write:
        if form == "jsonl":
            _export_file(place, write, redact=redact)
            return
        head = place.head or place.tape.head(place.branch)
        if form in FORMATS:
            _export_array(place.tape, head, form, write, redact=redact, request=request)
            return
        masks = MaskCount() if redact else None
        for line in render_markdown(place.tape, head, masks=masks, skipped=warn_of_left_out_part):
            write(f"{line}\n".encode("utf-8", "replace"))
        if masks is not None:
            _report_masked(masks.secrets, masks.entries)


def _export_file(place: ResolvedRef, write: Write, *, redact: bool) -> None:
    head = place.head
    if head is None and place.branch is not None:
        head = place.tape.head(place.branch)
    done = export_tape(place.tape, write, head=head, redact=redact)
    _report_masked(done.secrets, done.masked, f"; this copy is tape {done.tape[:SHORT]}")
    for digest in done.lost:
        print_warning(
            f"blob {digest[:12]} is missingand so is not in the copy; `tape verify` says more"
        )


def _export_array(
    tape: Tape, head: Head, form: str, write: Write, *, redact: bool, request: bool
) -> None:
    made = export_array(tape, head, form, redact=redact, skipped=warn_of_left_out_part)
    write((made.request if request else made.array) + b"\n")
    if made.repair is not None:
        print_warning(f"repaired: {made.repair.why}; `tape context` says more")
    if not request and made.beside.keys() - {"model"}:
        print_warning("the system prompt is not part of the array: --request writes both")
    if made.secrets:
        print_warning(f"{format_count(made.secrets, 'secret')} masked; --no-redact keeps them")


def _report_masked(secrets: int, entries: int, more: str = "") -> None:
    if secrets:
        where = f"in {format_count(entries, 'entry')}" if entries else "in its title"
        what = f"{format_count(secrets, 'secret')} masked {where}"
        print_warning(f"{what}; --no-redact makes an exact copy{more}")
