"""`rename` and `label`: the names people give to tapes and entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..errors import NotFound, UsageError
from ..reference import is_id_prefix
from ..render import SHORT, to_single_line
from .call import open_ref
from .out import (
    as_json,
    complete_ref,
    format_examples,
    format_table,
    print_json,
    print_lines,
    print_warning,
    ref,
    style_text,
    wait,
)
from .record import clean_argument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..tape import Tape
    from .call import ResolvedRef
    from .group import GlobalOptions


@click.command(
    epilog=format_examples('tape rename 3f2a "Login bug"', "tape rename 3f2a Login --json")
)
@click.argument("ref", metavar="REF", shell_complete=complete_ref)
@click.argument("title")
@wait
@as_json
@click.pass_obj
def rename(options: GlobalOptions, ref: str, title: str, as_json: bool) -> None:
    """Give a tape a title. Its folder keeps its name.

    --json prints {tape, title, was}.
    """
    title = clean_argument(title).strip()
    if not title:
        raise UsageError("a title needs a word")
    with open_ref(options, ref) as (tape, _, __):
        was = tape.refs().title
        tape.rename(title)
        identity = tape.id
    if as_json:
        print_json({"tape": identity, "title": title, "was": was})
    else:
        before = f' (was "{was}")' if was else ""
        print_lines([to_single_line(f'{identity[:SHORT]}: renamed to "{title}"{before}')])


@click.command(
    epilog=format_examples(
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
def label(options: GlobalOptions, ref: str, name: str, gone: str | None, as_json: bool) -> None:
    """Label an entry, so that TAPE@NAME means it; without NAME, list the labels of a tape.

    A label that exists moves. REF is an entry, or a tape or branch, which means its head. --json
    prints {tape, label, entry, was}, entry being null for a removed label; a list is an array of
    {label, entry}.
    """
    if name and gone is not None:
        raise UsageError("give a NAME or --delete NAME, not both")
    with open_ref(options, ref) as place:
        if gone is not None:
            _report_label_move(place.tape, gone, _remove_label(place.tape, gone), as_json=as_json)
        elif name:
            _report_label_move(place.tape, name, _set_label(place, name), as_json=as_json)
        elif as_json:
            labels = place.tape.refs().labels
            print_json([{"label": name, "entry": entry} for name, entry in labels.items()])
        else:
            print_lines(_format_labels(place.tape))


def _set_label(place: ResolvedRef, name: str) -> tuple[str | None, str | None]:
    """Label an entry; return its id, and the id of the entry that had the label before."""
    head = place.head or place.tape.head(place.branch)
    was = place.tape.refs().labels.get(name)
    place.tape.label(name, head.entry)
    if is_id_prefix(name):
        print_warning(f"{name!r} could also be the id of an entry, and ids are tried first")
    return head.entry, was


def _remove_label(tape: Tape, name: str) -> tuple[str | None, str | None]:
    labels = tape.refs().labels
    if name not in labels:
        known = f"there are: {', '.join(labels)}" if labels else "it has no labels"
        raise NotFound(f"no label {name!r} in tape {tape.id[:SHORT]}; {known}")
    tape.label(name, None)
    return None, labels[name]


def _report_label_move(
    tape: Tape, name: str, move: tuple[str | None, str | None], *, as_json: bool
) -> None:
    entry, was = move
    if as_json:
        print_json({"tape": tape.id, "label": name, "entry": entry, "was": was})
        return
    undo = f"; `tape label {tape.id[:SHORT]}@{was[:SHORT]} {name}` undoes it" if was else ""
    if entry is None:
        print_lines([f"removed label {name} of {tape.id[:SHORT]}{undo}"])
    else:
        before = f" (was {was[:SHORT]}){undo}" if was and was != entry else ""
        print_lines([f"{tape.id[:SHORT]}@{name} is now {entry[:SHORT]}{before}"])


def _format_labels(tape: Tape) -> Iterator[str]:
    labels = tape.refs().labels
    if not labels:
        print_warning(
            f"{tape.id[:SHORT]} has no labels; `tape label {tape.id[:SHORT]} NAME` gives one"
        )
        return
    yield from format_table(
        [(style_text(name, bold=True), entry[:SHORT]) for name, entry in sorted(labels.items())]
    )
