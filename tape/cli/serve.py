"""`serve`: look at the sessions of a store in a browser."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from ..errors import UsageError
from .environment import find_store_home
from .output import format_examples
from .terminal import print_lines, print_warning

if TYPE_CHECKING:
    from .group import GlobalOptions


@click.command(
    epilog=format_examples(
        "tape serve --open",
        "tape serve --port 8000",
    )
)
@click.option("--open", "opens", is_flag=True, help="Open the address in the browser.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="The port; 0 chooses a free one. Default: the one of last time, if it is free.",
)
@click.option("--new-token", is_flag=True, help="Make a new token: addresses printed before end.")
@click.pass_obj
def serve(options: GlobalOptions, opens: bool, port: int | None, new_token: bool) -> None:
    """Show the sessions of a store in a browser: lists, conversations, costs.

    Listens on the loopback address only, and prints an address with a token, which lets a browser
    in. The token stays the same for a store until --new-token. Needs gong[serve]. Ends with Ctrl+C.
    """
    try:
        from ..serve import running  # an extra, for this command only
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in {"starlette", "uvicorn", "jinja2"}:
            raise
        raise UsageError("tape serve needs `pip install 'gong[serve]'`") from error
    home = find_store_home(options.store)
    running.serve_store(
        home,
        os.environ,
        running.ServeOptions(port=port, new_token=new_token),
        announce=lambda address: _print_address(address, opens=opens),
        warn=print_warning,
    )


def _print_address(address: str, *, opens: bool) -> None:
    print_lines([address])
    sys.stdout.flush()
    if opens:
        import webbrowser  # only where it is asked for

        if not webbrowser.open(address):
            print_warning("no browser can be opened here: open the address in one")
