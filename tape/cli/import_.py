"""`import`: a tape from a file."""

from __future__ import annotations

import shutil
import sys
import tempfile
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import click

from ..errors import NotFound, UsageError
from ..formats.arrays import FORMATS
from ..render import SHORT
from ..store import Beginning
from ..transfer import ArrayImportReport, import_array, import_file
from .call import get_current_folder, open_library
from .out import as_json, format_count, format_examples, print_json, print_lines, print_warning
from .record import PROGRAM, clean_argument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .group import GlobalOptions

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
    type=click.Choice(["jsonl", *FORMATS]),
    default="jsonl",
    show_default=True,
    help="What wrote the file.",
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

    With --from and an API's name, FILE is the array of messages of a request to it, or the whole
    request. Calls without results, results without calls and other faults are recorded as they are;
    `tape export --to` repairs them. --json adds {unsent}: parts that are not messages, which are
    kept but never sent.
    """
    beginning = Beginning(clean_argument(get_current_folder()), PROGRAM)
    with _open_source(file) as source, open_library(options) as (store, _):
        done = (
            import_array(store, source.read(), form, beginning)
            if form in FORMATS
            else import_file(store, source, beginning)
        )
    if isinstance(done, ArrayImportReport) and done.unsent:
        are = "is not a message" if done.unsent == 1 else "are not messages"
        print_warning(
            f"{format_count(done.unsent, 'part')} of it {are} of {form}: kept on the tape, never sent"
        )
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
