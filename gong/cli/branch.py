"""Shared by the commands on a session: options, front end, the branch that a REF names."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tape.cli.out import print_warning as say_warning
from tape.index import open_store

from .. import __version__, config
from ..agent.opening import FrontEnd, OpenSession, find_session, open_session, resume_branch
from ..errors import FolderGone

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from ..config import Settings

store_option = click.option(
    "--store", metavar="PATH", help="Folder of the tapes; default $TAPE_HOME, ~/.tape."
)
model_option = click.option(
    "-m", "--model", metavar="MODEL", help="provider/model; default: the session's last model."
)


def get_current_folder() -> str:
    """Return the current folder; raises FolderGone if it no longer exists."""
    try:
        return str(Path.cwd())
    except FileNotFoundError as error:
        raise FolderGone("this folder no longer exists: change to another and try again") from error


@contextmanager
def open_front_end(settings: Settings, model: str | None = None) -> Iterator[FrontEnd]:
    """Hold the front end of the command line for this folder; `model` is the value of -m.

    Raises FolderGone.
    """
    folder = get_current_folder()
    with open_store(config.locate_store(settings, os.environ)) as library:
        yield FrontEnd(
            library, settings, os.environ, folder, f"gong/{__version__}", model, print_warning
        )


@asynccontextmanager
async def open_existing_session(
    ref: str, *, model: str | None, store: str | None
) -> AsyncIterator[OpenSession]:
    """Hold the session of an existing branch; its model need not have a key."""
    settings = config.load_settings(os.environ, {"store": store})
    with open_front_end(settings, model) as front:
        recorder = resume_branch(front, find_session(front, ref), ref)
        host = await open_session(front, recorder, must_answer=False)
        for remark in recorder.skipped:
            print_warning(remark)
        recorder.skipped.clear()
        try:
            yield host
        finally:
            await host.close()


def print_warning(text: str) -> None:
    """Write a line to standard error."""
    say_warning(text, "gong")
