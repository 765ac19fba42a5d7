"""The branch a verb works on: where REF leads, opened, with the model that answers there."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from tape.find import find
from tape.index import open_store

from .. import __version__, config
from ..agent.assembly import Host, assemble, new_tape, resumed, session_tools
from ..agent.outgoing import outgoing
from ..agent.record import last_model
from ..errors import FolderGone

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from tape.line import Entry
    from tape.tape import Hit

    from ..agent.outgoing import Outgoing
    from ..agent.parts import Model
    from ..agent.record import Past, Recorder
    from ..config import Settings

store_option = click.option(
    "--store", metavar="PATH", help="Folder of the tapes; default $TAPE_HOME, ~/.tape."
)
model_option = click.option(
    "-m", "--model", metavar="MODEL", help="provider/model; default: who answered last."
)


def current_folder() -> str:
    """Return the folder we stand in; raises FolderGone."""
    try:
        return str(Path.cwd())
    except FileNotFoundError as error:
        raise FolderGone("this folder is gone: change to another and try again") from error


def with_last_model(settings: Settings, path: Sequence[Entry], flag: str | None) -> Settings:
    """Return settings whose model is the flag's, else who answered last, else as they are."""
    name = flag or last_model(path)
    return replace(settings, model=name) if name else settings


def next_request(hit: Hit, read: Past, who: Model, settings: Settings) -> Outgoing:
    """Return what the next call to a model would send of a branch that is only read."""
    specs = session_tools(settings).specs()
    return outgoing(who, specs, *read, session=hit.tape.id, load=hit.tape.load)


@asynccontextmanager
async def opened(ref: str, *, model: str | None, store: str | None) -> AsyncIterator[Host]:
    """Hold the session of an existing branch; its model may be without a key."""
    settings = config.load(os.environ, {"store": store})
    folder = current_folder()
    with open_store(config.store_path(settings, os.environ)) as library:
        hit = find(library.store, library.index, ref, folder)
        recorder = resumed(hit, ref, settings)
        say_of_branch(recorder)
        try:
            host = await assemble(
                with_last_model(settings, recorder.path, model),
                os.environ,
                folder,
                new_tape(library.store, settings),
                program=f"gong/{__version__}",
                recorder=recorder,
                must_answer=False,
            )
        except BaseException:
            recorder.close()
            raise
        try:
            yield host
        finally:
            await host.close()


def say_of_branch(recorder: Recorder) -> None:
    """Say on standard error that a branch is not the one that was asked for, or was torn."""
    writer = recorder.writer
    if writer.instead_of is not None:
        warn(
            f"branch {writer.instead_of} is being written by another program: "
            f"this session goes on in a branch of its own, {recorder.branch}"
        )
    if writer.torn is not None:
        warn(f"the end of the tape was torn by a crash; it was moved to quarantine/{writer.torn}")


def warn(text: str) -> None:
    """Say something on standard error."""
    click.echo(f"gong: {text}", err=True)
