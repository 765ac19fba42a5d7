"""The pages of --help as click writes them, ready in a file: shown before click is loaded.

`make docs` writes the file of each program, and a test compares each page with click's own. A file
holds pages one after the other, each under its command line:

    $ tape ls --help
    Usage: tape ls [OPTIONS]
    …
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # the module that has this name takes a tenth of the time of `tape ls`
if TYPE_CHECKING:
    from collections.abc import Sequence

HELP_OPTIONS = ("--help", "-h")
WIDTH = 80
"""Columns from which on click's pages do not change any more."""


def find_help_page(program: str, arguments: Sequence[str], pages: str) -> str | None:
    """Return the page that these arguments ask for, from the file `pages`.

    None where they ask for none, or where click has to write it: for a narrow terminal.
    """
    *words, last = arguments or [""]
    title = " ".join([program, *words])
    if last not in HELP_OPTIONS or title.split() != [program, *words] or _get_columns() < WIDTH:
        return None
    try:
        with open(pages, encoding="utf-8") as file:  # noqa: PTH123 (pathlib takes longer than this)
            text = file.read()
    except OSError:
        return None
    _, found, rest = f"\n{text}".partition(f"\n$ {title} --help\n")
    return rest.partition("\n$ ")[0].removesuffix("\n") + "\n" if found else None


def _get_columns() -> int:
    """Return the columns of the screen as click counts them; where none is known, as many."""
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told):
        return int(told)
    try:
        screen = sys.__stdout__
        return (os.get_terminal_size(screen.fileno()).columns if screen else 0) or WIDTH
    except (OSError, ValueError):  # no terminal
        return WIDTH
