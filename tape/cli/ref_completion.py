"""Completions from the index as it is: tapes, branches, labels and new entries; agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click.shell_completion import CompletionItem

from ..index import reader
from ..text import SHORT, to_single_line
from .environment import find_store_home, get_current_folder

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator

    import click

MAX_OFFERED = 50
"""How many tapes, or entries, are offered."""


def list_ref_completions(
    ctx: click.Context, _: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return completions of a REF: tapes, branches after `:`, labels and new entries after `@`."""
    home = find_store_home(ctx.obj.store if ctx.obj else None)
    completions = reader.query_index_file(
        home, lambda db: list(_iter_ref_completions(db, incomplete))
    )
    return [
        CompletionItem(value, help=to_single_line(about) or None)
        for value, about in completions or ()
    ]


def list_agent_completions(
    ctx: click.Context, _: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return completions of the name of an agent that made a session here."""
    names = reader.query_index_file(
        find_store_home(getattr(ctx.obj, "store", None)), reader.fetch_agents
    )
    return [CompletionItem(name) for name in names or () if name.startswith(incomplete.lower())]


def _iter_ref_completions(db: sqlite3.Connection, text: str) -> Iterator[tuple[str, str]]:
    if "@" in text:
        before, _, entry = text.rpartition("@")
        tape, _, branch = before.partition(":")
        known = reader.find_tape_id(db, tape, get_current_folder())
        labels = (
            [(name, at[:SHORT]) for name, at in reader.fetch_labels(db, known)] if known else []
        )
        entries = reader.fetch_entries(db, known, branch, MAX_OFFERED) if known else ()
        offered = [*labels, *((at[:SHORT], about) for at, about in entries)]
        yield from _filter_completions(f"{before}@", entry, offered)
    elif ":" in text:
        tape, _, branch = text.partition(":")
        known = reader.find_tape_id(db, tape, get_current_folder())
        yield from _filter_completions(
            f"{tape}:", branch, reader.fetch_branches(db, known) if known else ()
        )
    else:
        for identity, title in reader.fetch_tapes(db, text, MAX_OFFERED):
            yield identity[: max(SHORT, len(text))], title  # as long as it is shown or was typed


def _filter_completions(
    before: str, incomplete: str, offered: Iterable[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    for word, about in offered:
        if word.startswith(incomplete):
            yield before + word, about
