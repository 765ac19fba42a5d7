"""`gong init`: a first AGENTS.md for this project."""

from __future__ import annotations

from pathlib import Path

import click

from tape.cli.output import format_examples
from tape.cli.terminal import print_lines
from tape.text import clean_words

from ..context.instructions import find_project_root
from ..context.project_notes import describe_project
from ..errors import ConfigurationError
from ..project import locate_folder

_NAME = "AGENTS.md"


@click.command(epilog=format_examples("gong init", "gong init --dry-run"))
@click.option("--dry-run", is_flag=True, help="Print the text, write nothing.")
def init(dry_run: bool) -> None:
    """Write a first AGENTS.md with the commands and folders of the project.

    It is written at the root of the repository, or into this folder outside of one. A file that is
    there is never changed.
    """
    folder = Path(find_project_root(locate_folder()))
    text = clean_words(describe_project(folder))
    if dry_run:
        print_lines(text.splitlines())
        return
    file = folder / _NAME
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError as error:
        raise ConfigurationError(
            f"{file} is there already: edit it, or see gong init --dry-run"
        ) from error
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be written: {error.strerror}") from error
    print_lines([f"wrote {file}: complete its layout and conventions"])
