"""`export`: a tape as a file that stands alone, or as a page."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import UsageError
from ..formats.arrays import FORMATS
from ..render import SHORT
from ..transfer import Masks, array_of, markdown
from ..transfer import export as export_tape
from .call import found
from .files import demand_place, open_output
from .out import counted, examples, raw, ref, warn

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from .call import Found
    from .files import Write
    from .group import Options


@click.command(
    epilog=examples(
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
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write here.")
@click.option("--force", is_flag=True, help="With -o: replace the file that is there.")
@click.option(
    "--redact/--no-redact",
    default=True,
    show_default=True,
    help="Mask what looks like a secret, or copy exactly.",
)
@click.option(
    "--request", is_flag=True, help="The array inside its request, with the system prompt."
)
@click.pass_obj
def export(
    options: Options,
    ref: str,
    form: str,
    output: Path | None,
    force: bool,
    redact: bool,
    request: bool,
) -> None:
    """Write a tape as one file that stands alone: JSON lines, or Markdown for people.

    A REF that names a tape means all of it, one that names a branch or an entry only the path to
    it; a page always shows one path. Secrets of known shapes are masked as [redacted:KIND]. A tape
    in which some were found is written anew under another id, because an entry's id covers what it
    says; without any the copy is exact.

    --to and an API's name writes the messages of the next request to it: the repaired view, as the
    API takes it. Repairs are told; a system prompt that has its own place is in --request only.
    """
    if request and form not in FORMATS:
        raise UsageError(f"--request goes with --to and the name of an API: {', '.join(FORMATS)}")
    if force and output is None:
        raise UsageError("--force goes with -o: nothing is replaced on standard output")
    if output is not None:
        demand_place(output, force=force)
    with found(options, ref) as place, _target(output) as write:
        if form in FORMATS:
            _array(place, form, write, redact=redact, request=request)
        elif form == "md":
            _page(place, write, redact=redact)
        else:
            _file(place, write, redact=redact)


def _target(output: Path | None) -> AbstractContextManager[Write]:
    """Return what holds the writer of the bytes: standard output, or a file."""
    return nullcontext(raw) if output is None else open_output(output)


def _file(place: Found, write: Write, *, redact: bool) -> None:
    head = place.head
    if head is None and place.branch is not None:
        head = place.tape.head(place.branch)
    done = export_tape(place.tape, write, head=head, redact=redact)
    _tell(done.secrets, done.masked, f"; this copy is tape {done.tape[:SHORT]}")
    for digest in done.lost:
        warn(f"blob {digest[:12]} is missing, so the copy lacks it too; `tape verify` says more")


def _page(place: Found, write: Write, *, redact: bool) -> None:
    head = place.head or place.tape.head(place.branch)
    masks = Masks() if redact else None
    for line in markdown(place.tape, head, masks=masks, skipped=_warn_left_out):
        write(f"{line}\n".encode("utf-8", "replace"))
    if masks is not None:
        _tell(masks.secrets, masks.entries)


def _array(place: Found, form: str, write: Write, *, redact: bool, request: bool) -> None:
    head = place.head or place.tape.head(place.branch)
    made = array_of(place.tape, head, form, redact=redact, skipped=_warn_left_out)
    write((made.request if request else made.array) + b"\n")
    if made.repair is not None:
        warn(f"repaired: {made.repair.why}; `tape context` says more")
    if not request and made.beside.keys() - {"model"}:
        warn("the system prompt stands beside the array: --request writes both")
    if made.secrets:
        warn(f"{counted(made.secrets, 'secret')} masked; --no-redact writes what was said")


def _warn_left_out(text: str) -> None:
    warn(f"{text}; left out, `tape verify` says more")


def _tell(secrets: int, entries: int, more: str = "") -> None:
    if secrets:
        where = f"in {counted(entries, 'entry')}" if entries else "in its title"
        what = f"{counted(secrets, 'secret')} masked {where}"
        warn(f"{what}; --no-redact makes the exact copy{more}")
