"""`new` and `append`: recording by any program."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, cast, get_args

import click

from ..errors import InvalidEntry, UsageError
from ..folders import locate_repository
from ..model.incoming_entry import parse_incoming_entry
from ..store.store import Beginning
from ..store.writer import Durability
from .environment import find_facts, get_current_folder
from .output import as_json, format_examples, print_bytes, print_json, ref
from .resolve import PROGRAM, clean_argument, open_library, open_ref
from .terminal import print_lines, print_warning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from ..store.writer import Writer
    from .group import GlobalOptions
    from .resolve import ResolvedRef

_CHUNK_BYTES = 1 << 20


@click.command(
    epilog=format_examples(
        'tape new --title "Login bug"', "tape append $(tape new) < entries.jsonl"
    )
)
@click.option("--title", help="Title of the tape; it also names its folder.")
@click.option("--cwd", help="Folder the session works in. Default: the current one.")
@as_json
@click.pass_obj
def new(options: GlobalOptions, title: str | None, cwd: str | None, as_json: bool) -> None:
    """Create a tape and print its id.

    The store is created with it if there is none. The tape names the repository of its folder by
    the remote, without credentials, and the person as git knows them, or as $TAPE_PERSON says:
    `Name <email>`, or `off` for nobody. --json prints {id, path}.
    """
    title = clean_argument(title or "") or None
    place = clean_argument(os.path.abspath(cwd or get_current_folder()))
    project = locate_repository(place)
    beginning = Beginning(
        cwd=place,
        program=PROGRAM,
        title=title,
        slug=title or "",
        project=project,
        **find_facts(project)._asdict(),
    )
    with open_library(options) as (store, _), store.create(beginning) as tape:
        path = str(store.tapes.absolute() / tape.folder.name)
        print_json({"id": tape.id, "path": path}) if as_json else print_lines([tape.id])


@click.command(
    epilog=format_examples(
        """echo '{"type":"note","data":{"text":"hi"}}' | tape append 3f2a""",
        "tape append 3f2a:main --wait --durability entry < entries.jsonl",
    )
)
@ref
@click.option(
    "--durability",
    type=click.Choice(get_args(Durability)),
    default="barrier",
    show_default=True,
    help="Sync after every entry, once per batch of lines read, or never.",
)
@click.option("--wait", is_flag=True, help="Wait for a busy branch.")
@as_json
@click.pass_obj
def append(options: GlobalOptions, ref: str, durability: str, wait: bool, as_json: bool) -> None:
    """Record entries from JSON lines on standard input.

    Each line is {"type":…,"data":{…}}; each is answered with the id of its entry, on one line, once
    the entry is on the disk. If a line is refused, the entries before it stay recorded. A bare TAPE
    whose current branch is busy gets a new branch; TAPE:BRANCH is refused instead. --json prints an
    array of the ids, as they come.
    """
    with open_ref(options, ref) as place:
        refuse_entry_ref(place)
        durability_level = cast("Durability", durability)
        with place.tape.writer(place.branch, wait=wait, durability=durability_level) as writer:
            if writer.instead_of is not None:
                why = f"{writer.instead_of} is busy"
                if writer.holder is not None:
                    why = f"{writer.holder} works on {writer.instead_of}"
                print_warning(f"{why}, so entries go to a new branch {writer.branch}")
            answer = IdPrinter(as_json=as_json)
            try:
                record_batches(writer, sys.stdin.buffer, answer)
            finally:
                answer.close_array()


def refuse_entry_ref(place: ResolvedRef) -> None:
    """Raise UsageError for a REF that names an entry: appending there needs a fork."""
    if place.head is not None:
        at = f"{place.tape.id[:8]}@{place.head.entry[:8]}"
        raise UsageError(f"entries are appended to a branch, not at an entry: `tape fork {at}`")


class IdPrinter:
    """Writes the ids of recorded entries to standard output."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json, self._start = as_json, b"[\n"

    def print_ids(self, ids: list[str]) -> None:
        """Print the ids of entries that are on the disk."""
        for identity in ids:
            if self._as_json:
                print_bytes(b'%b"%b"' % (self._start, identity.encode()))
                self._start = b",\n"
            else:
                print_bytes(identity.encode() + b"\n")
        sys.stdout.flush()

    def close_array(self) -> None:
        """Close the JSON document."""
        if self._as_json:
            print_bytes(b"[]\n" if self._start == b"[\n" else b"\n]\n")


def record_batches(writer: Writer, source: BinaryIO, answer: IdPrinter) -> None:
    """Write the available lines, sync once, print their ids; repeat until the end of input."""
    for batch in read_batches(source):
        ids: list[str] = []
        try:
            for number, line in batch:
                ids.append(record_line(writer, number, line))
        finally:
            writer.barrier()
            answer.print_ids(ids)


def record_line(writer: Writer, number: int, line: bytes) -> str:
    """Write the entry of one line and return its id; raise InvalidEntry with the line's number."""
    try:
        entry = parse_incoming_entry(line)
        return writer.append_data(entry.type, entry.data)
    except InvalidEntry as error:
        raise InvalidEntry(f"line {number}: {error}") from error


def read_batches(source: BinaryIO) -> Iterator[list[tuple[int, bytes]]]:
    """Yield the numbered lines available at each read; blank ones are left out."""
    read: Callable[[int], bytes] = getattr(source, "read1", source.read)
    number, parts = 0, [b""]
    while part := read(_CHUNK_BYTES):
        parts.append(part)
        if b"\n" not in part:
            continue
        *whole, rest = b"".join(parts).split(b"\n")
        parts = [rest]
        yield [(at, line) for at, line in enumerate(whole, number + 1) if line.strip()]
        number += len(whole)
    rest = b"".join(parts)
    if rest.strip():
        yield [(number + 1, rest)]
