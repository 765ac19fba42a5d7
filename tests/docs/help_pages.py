"""Write the help pages that the commands show before click is loaded, from click: `make docs`.

With the name of a program, print its pages instead, for a screen of $COLUMNS columns. This is a
process of its own because click remembers the help option of a command from the first context.
"""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import click

import gong.cli
import tape.cli
from gong.cli.run import gong as gong_group
from tape.cli.group import tape as tape_group
from tape.cli.help_pages import WIDTH

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAMS = {"tape": (tape.cli.HELP_PAGES, tape_group), "gong": (gong.cli.HELP_PAGES, gong_group)}
"""The file of each program's pages, and its commands."""


def list_paths(group: click.Group) -> Iterator[tuple[str, ...]]:
    """Yield the words of each command of a group, of all depths; not of another program."""
    yield ()
    ctx = click.Context(group, info_name=group.name)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if isinstance(command, click.Group) and command is not tape_group:
            yield from ((name, *inner) for inner in list_paths(command))
        elif command is not tape_group:
            yield (name,)


def render_pages(group: click.Group) -> str:
    """Return the file of all pages of a program, as click prints them."""
    pages = []
    for path in list_paths(group):
        with redirect_stdout(StringIO()) as page:
            group.main([*path, "--help"], prog_name=group.name, standalone_mode=False)
        pages.append(f"$ {' '.join([group.name or '', *path])} --help\n{page.getvalue()}")
    return "\n".join(pages)


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.stdout.write(render_pages(PROGRAMS[sys.argv[1]][1]))
    else:
        os.environ["COLUMNS"] = str(WIDTH)
        for file, group in PROGRAMS.values():
            Path(file).write_text(render_pages(group), "utf-8")
