"""`fork`, `branches`, `switch`, `rename` and `label`: branches, and names for tapes and entries."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from ..errors import NotFound, UsageError
from ..history.entry_lines import read_work_folder
from ..ids import is_id_prefix
from ..places.resolve import find_tape_here
from ..store.refs import MAIN_BRANCH, check_ref_name, is_ref_name, make_ref_name
from ..store.store import Beginning
from ..text import SHORT, format_names, to_single_line
from .environment import find_facts, get_current_folder
from .output import as_json, complete_ref, format_examples, print_json, ref, wait
from .resolve import (
    PROGRAM,
    clean_argument,
    open_entry,
    open_library,
    open_ref,
    split_optional_ref,
)
from .terminal import format_table, print_lines, print_warning, style_text

if TYPE_CHECKING:
    from ..store.refs import Head
    from ..store.store import Store
    from ..store.tape import Tape
    from .group import GlobalOptions


@click.command(
    epilog=format_examples(
        "tape fork 3f2a~4", "tape fork 3f2a@9c1b --name try-redis --switch", "tape fork 3f2a --new"
    )
)
@ref
@click.option("--name", help="Name of the branch, or title of the new tape.")
@click.option("--new", is_flag=True, help="Start a new tape.")
@click.option("--switch", is_flag=True, help="Make it the current branch.")
@wait
@as_json
@click.pass_obj
def fork(
    options: GlobalOptions, ref: str, name: str | None, new: bool, switch: bool, as_json: bool
) -> None:
    """Start a branch, or a new tape, at the entry that REF names.

    Nothing is copied: both sides share the past, and neither sees what the other does next. --json
    prints {tape, branch, entry}, the entry being the one it begins at.
    """
    if new and switch:
        raise UsageError("--switch chooses among the branches of one tape; omit it with --new")
    if name is not None and not new:
        name = choose_ref_name("branch", name)
    with open_library(options) as (store, index), open_entry(options, ref) as (tape, head):
        if new:
            identity, branch = create_forked_tape(store, tape, head, name), MAIN_BRANCH
        else:
            identity, branch = tape.id, tape.fork(head, name, switch=switch)
        place = identity[:SHORT] if new or switch else f"{identity[:SHORT]}:{branch}"
        how = f"tape append {place}"
        if tape.info.by.startswith("gong/") and not new:
            here = get_current_folder(is_needed=False) if switch else ""
            newest = find_tape_here(store, index, here) if here else None
            is_newest = newest is not None and newest.id == identity
            how = "gong chat -c" if is_newest else f"gong chat --session {place}"
    if as_json:
        print_json({"tape": identity, "branch": branch, "entry": head.entry})
    elif switch:
        report = f"Switched to a new branch {branch!r} at {head.entry[:SHORT]}"
        print_lines([f"{report}; continue with `{how}`"])
    else:
        print_lines([f"{place} begins at {head.entry[:SHORT]}; continue with `{how}`"])


def choose_ref_name(kind: str, typed: str) -> str:
    """Return the name of a branch or label as typed, or the nearest allowed one with a warning.

    Raises InvalidName where no part of the text can be a name.
    """
    name = typed if is_ref_name(typed) else make_ref_name(typed)
    if not name:
        return check_ref_name(kind, typed)
    if name != typed:
        print_warning(f"Named {name!r} (from {typed!r})")
    return name


def create_forked_tape(store: Store, tape: Tape, head: Head, title: str | None) -> str:
    """Create a tape that begins at an entry of another one, with its cwd, and return its id."""
    title = title or tape.refs().title
    folder = read_work_folder(tape, head)
    beginning = Beginning(
        *(folder.cwd, PROGRAM, title, title or "", folder.project),
        repository=folder.repository,
        person=find_facts(None).person,
    )
    with store.create(beginning, origin=(tape, head)) as forked:
        return forked.id


@click.command(
    epilog=format_examples(
        "tape switch try-redis", "tape switch 3f2a:main", "tape switch 3f2a:try-redis --summary"
    )
)
@click.argument("ref", metavar="[TAPE:]BRANCH", shell_complete=complete_ref)
@click.option(
    "--summary",
    metavar="[TEXT]",
    is_flag=False,
    flag_value="",
    help="Add what the branch you leave did: a text, or a summary made by rules.",
)
@wait
@as_json
@click.pass_obj
def switch(options: GlobalOptions, ref: str, summary: str | None, as_json: bool) -> None:
    """Choose the current branch of a tape; `-` is the one that was current before.

    With --summary an anchor on the branch tells a model what the branch you leave did since the two
    parted; `tape merge --undo` undoes that.

    --json prints {tape, branch}; with --summary {tape, branch, entry}, the entry of the summary, or
    null if there was nothing new.
    """
    if ref == "-":
        with open_ref(options, "", warns=False) as (tape, _, __):
            previous = tape.refs().previous
            if previous is None:
                raise NotFound(f"no other branch of {tape.id[:SHORT]} was current before this one")
            ref = f"{tape.id}:{previous}"
    with open_ref(options, _find_branch_reference(options, ref)) as (tape, head, branch):
        if branch is None or head is not None:
            raise UsageError(f"{ref!r} does not name a branch: write BRANCH or TAPE:BRANCH")
        refs, details = tape.refs(), dict[str, str | None]()
        left = refs.current if refs.current != branch else refs.previous or branch
        if summary is not None:
            from ..history.merge_summary import leave_summary  # switching reads no history else

            text = clean_argument(summary).strip()
            details["entry"] = leave_summary(tape, left, branch, text) if left != branch else None
        tape.switch(branch)
        if as_json:
            print_json({"tape": tape.id, "branch": branch, **details})
        else:
            is_moved = refs.current != branch
            print_lines(_describe_switch(tape.id[:SHORT], left, branch, details, is_moved=is_moved))


def _describe_switch(
    tape: str, left: str, branch: str, details: dict[str, str | None], *, is_moved: bool
) -> list[str]:
    """Return what a switch did; on a terminal with an offer to tell of the branch that was left."""
    lines = [f"{tape}: switched to branch {branch}"]
    if details:
        entry = details["entry"]
        summary = f"{entry[:SHORT]} summarises {left!r}" if entry else f"nothing new on {left!r}"
        lines[0] += f"; {summary}"
    elif is_moved and sys.stdout.isatty():
        lines.append(f"`tape switch {branch} --summary` adds what {left!r} did")
    return lines


def _find_branch_reference(options: GlobalOptions, word: str) -> str:
    """Return the REF of the branch that has this name in this folder's tape; else the word."""
    if is_ref_name(word):
        with suppress(NotFound), open_ref(options, f":{word}", warns=False) as (tape, _, __):
            if word in tape.refs().branches:
                return f":{word}"
    return word


@click.command(epilog=format_examples('tape rename "Login bug"', "tape rename 3f2a Login --json"))
@click.argument(
    "words", metavar="[REF] TITLE", nargs=-1, required=True, shell_complete=complete_ref
)
@wait
@as_json
@click.pass_obj
def rename(options: GlobalOptions, words: tuple[str, ...], as_json: bool) -> None:
    """Give a tape a title, this folder's newest one without a REF. Its folder keeps its name.

    --json prints {tape, title, was}.
    """
    ref, title = split_optional_ref(options, words, "a title")
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
        tape, labels = place.tape, place.tape.refs().labels
        if gone is not None:
            if gone not in labels:
                known = f"there are: {format_names(labels, gone)}" if labels else "it has no labels"
                raise NotFound(f"no label {gone!r} in tape {tape.id[:SHORT]}; {known}")
            _move_label(tape, gone, None, as_json=as_json)
        elif name:
            name = choose_ref_name("label", name)
            head = place.head or tape.head(place.branch)
            _move_label(tape, name, head.entry, as_json=as_json)
        elif as_json:
            print_json([{"label": name, "entry": entry} for name, entry in labels.items()])
        elif labels:
            named = sorted(labels.items())
            rows = [(style_text(name, bold=True), entry[:SHORT]) for name, entry in named]
            print_lines(format_table(rows, headings=("LABEL", "ENTRY")))
        else:
            short = tape.id[:SHORT]
            print_warning(f"{short} has no labels; `tape label {short} NAME` gives one")


def _move_label(tape: Tape, name: str, entry: str | None, *, as_json: bool) -> None:
    """Label an entry, or remove the label, and print how to undo it."""
    was = tape.refs().labels.get(name)
    tape.label(name, entry)
    if entry is not None and is_id_prefix(name):
        print_warning(f"{name!r} could also be the id of an entry, and ids are tried first")
    if as_json:
        print_json({"tape": tape.id, "label": name, "entry": entry, "was": was})
        return
    undo = f"; `tape label {tape.id[:SHORT]}@{was[:SHORT]} {name}` undoes it" if was else ""
    if entry is None:
        print_lines([f"removed label {name} of {tape.id[:SHORT]}{undo}"])
    else:
        before = f" (was {was[:SHORT]}){undo}" if was and was != entry else ""
        print_lines([f"{tape.id[:SHORT]}@{name} is now {entry[:SHORT]}{before}"])
