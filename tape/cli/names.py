"""`rename` and `label`: the names people give to tapes and entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..errors import NotFound, UsageError
from ..reference import is_prefix
from ..render import SHORT, single
from .call import found
from .out import as_json, document, examples, places, ref, say, style, table, wait, warn
from .record import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..tape import Tape
    from .call import Found
    from .group import Options


@click.command(epilog=examples('tape rename 3f2a "Login bug"', "tape rename 3f2a Login --json"))
@click.argument("ref", metavar="REF", shell_complete=places)
@click.argument("title")
@wait
@as_json
@click.pass_obj
def rename(options: Options, ref: str, title: str, as_json: bool) -> None:
    """Give a tape a title. Its folder keeps its name.

    --json prints {tape, title, was}.
    """
    title = clean(title).strip()
    if not title:
        raise UsageError("a title needs a word")
    with found(options, ref) as (tape, _, __):
        was = tape.refs().title
        tape.rename(title)
        identity = tape.id
    if as_json:
        document({"tape": identity, "title": title, "was": was})
    else:
        before = f' (was "{was}")' if was else ""
        say([single(f'{identity[:SHORT]}: renamed to "{title}"{before}')])


@click.command(
    epilog=examples(
        "tape label 3f2a",
        "tape label 3f2a good",
        "tape label 3f2a~4 before-redis",
        "tape label 3f2a --delete good",
        "tape show 3f2a@good",
    )
)
@ref
@click.argument("name", default="")
@click.option("--delete", "gone", metavar="NAME", help="Remove this label.")
@wait
@as_json
@click.pass_obj
def label(options: Options, ref: str, name: str, gone: str | None, as_json: bool) -> None:
    """Label an entry, so that TAPE@NAME means it; without NAME, list the labels of a tape.

    A label that exists moves. REF is an entry, or a tape or branch, which means its head. --json
    prints {tape, label, entry, was}, entry being null for a removed label; a list is an array of
    {label, entry}.
    """
    if name and gone is not None:
        raise UsageError("give a NAME or --delete NAME, not both")
    with found(options, ref) as place:
        if gone is not None:
            _say_move(place.tape, gone, _taken_away(place.tape, gone), as_json=as_json)
        elif name:
            _say_move(place.tape, name, _given(place, name), as_json=as_json)
        elif as_json:
            labels = place.tape.refs().labels
            document([{"label": name, "entry": entry} for name, entry in labels.items()])
        else:
            say(_listed(place.tape))


def _given(place: Found, name: str) -> tuple[str | None, str | None]:
    """Label an entry; return its id, and the id of the entry that had the label before."""
    head = place.head or place.tape.head(place.branch)
    was = place.tape.refs().labels.get(name)
    place.tape.label(name, head.entry)
    if is_prefix(name):
        warn(f"{name!r} could also be the id of an entry, and ids are tried first")
    return head.entry, was


def _taken_away(tape: Tape, name: str) -> tuple[str | None, str | None]:
    labels = tape.refs().labels
    if name not in labels:
        known = f"there are: {', '.join(labels)}" if labels else "it has no labels"
        raise NotFound(f"no label {name!r} in tape {tape.id[:SHORT]}; {known}")
    tape.label(name, None)
    return None, labels[name]


def _say_move(tape: Tape, name: str, move: tuple[str | None, str | None], *, as_json: bool) -> None:
    entry, was = move
    if as_json:
        document({"tape": tape.id, "label": name, "entry": entry, "was": was})
        return
    undo = f"; `tape label {tape.id[:SHORT]}@{was[:SHORT]} {name}` undoes it" if was else ""
    if entry is None:
        say([f"removed label {name} of {tape.id[:SHORT]}{undo}"])
    else:
        before = f" (was {was[:SHORT]}){undo}" if was and was != entry else ""
        say([f"{tape.id[:SHORT]}@{name} is now {entry[:SHORT]}{before}"])


def _listed(tape: Tape) -> Iterator[str]:
    labels = tape.refs().labels
    if not labels:
        warn(f"{tape.id[:SHORT]} has no labels; `tape label {tape.id[:SHORT]} NAME` gives one")
        return
    yield from table(
        [(style(name, bold=True), entry[:SHORT]) for name, entry in sorted(labels.items())]
    )
