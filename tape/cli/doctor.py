"""`doctor`: whether a store, or a remote of it, holds what it should."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..errors import UsageError
from .check import verify
from .output import as_json, format_examples
from .remote import check_remote

if TYPE_CHECKING:
    from .group import GlobalOptions


@click.command(
    epilog=format_examples("tape doctor", "tape doctor --remote", "tape doctor --remote team")
)
@click.argument("name", required=False)
@click.option("--remote", is_flag=True, help="Check the remote NAME, by default the default one.")
@click.option(
    "--repair", is_flag=True, help="Complete what a push left; make damaged chunks again."
)
@click.option("--rebuild", is_flag=True, help="Make the catalogue in PostgreSQL again.")
@as_json
@click.pass_context
def doctor(
    ctx: click.Context,
    *,
    name: str | None,
    remote: bool,
    repair: bool,
    rebuild: bool,
    as_json: bool,
) -> int:
    """Verify every tape of the store, or with --remote all that a remote holds.

    The first is `tape verify --all`, the second `tape remote verify`: chunks without a gap, blobs,
    the push log, what was erased, and in PostgreSQL a catalogue equal to the chunks. --repair
    makes damaged chunks again that were pushed from here or pulled to here. Exits with 4 if
    something is wrong and was not repaired; --json prints what these print.
    """
    options: GlobalOptions = ctx.obj
    if remote:
        return check_remote(options, name, repairs=repair, rebuilds=rebuild, is_json=as_json)
    if name or repair or rebuild:
        raise UsageError("NAME, --repair and --rebuild go with --remote")
    code: int = ctx.invoke(verify, every=True, as_json=as_json, ref="", jobs=None)
    return code
