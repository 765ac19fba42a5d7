"""`gong sessions`: the sessions of this folder; each command is one of `tape` with that choice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tape.cli import group as store
from tape.cli.output import NamingGroup, as_json, format_examples

from ..project import locate_folder
from .options import locate_store, store_option

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.group(
    cls=NamingGroup,
    epilog=format_examples("gong sessions list", "gong sessions show", "gong sessions rm 3f2a"),
)
def sessions() -> None:
    """List, show and remove the sessions of this folder. Each is a tape: see `gong tape`."""


@sessions.command(name="list")
@click.option("--all", "every", is_flag=True, help="Those of all folders, however many.")
@store_option
@as_json
def list_(*, every: bool, store: str | None, as_json: bool) -> int:
    """List the sessions of this folder, newest first; --json as `tape ls`."""
    chosen = ["--all"] if every else ["--project", locate_folder()]
    return _run_store_command("ls", store, chosen, as_json=as_json)


@sessions.command()
@click.argument("ref", default="", metavar="[REF]")
@store_option
@as_json
def show(ref: str, *, store: str | None, as_json: bool) -> int:
    """Show a session, by default this folder's newest; --json as `tape show`."""
    return _run_store_command("show", store, [ref] if ref else [], as_json=as_json)


@sessions.command()
@click.argument("refs", nargs=-1, required=True, metavar="SESSION...")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@store_option
@as_json
def rm(refs: tuple[str, ...], *, yes: bool, store: str | None, as_json: bool) -> int:
    """Move sessions to the trash of the store; `gong tape restore` brings them back."""
    return _run_store_command("rm", store, [*refs, *["--yes"] * yes], as_json=as_json)


def _run_store_command(
    name: str, store_home: str | None, arguments: Sequence[str], *, as_json: bool
) -> int:
    """Run a command of `tape` on the store that the settings choose; return its exit code."""
    home = str(locate_store(store_home))
    options = [*["--json"] * as_json, *arguments]
    return store.invoke_group(store.tape, ["--store", home, name, *options], store.GlobalOptions())
