"""`serve`: look at the sessions of a store in a browser."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import UsageError
from .environment import find_store_home, is_elsewhere
from .output import format_examples
from .terminal import print_lines, print_warning

if TYPE_CHECKING:
    from .group import GlobalOptions


@click.command(
    epilog=format_examples(
        "tape serve --open",
        "tape serve --port 8000",
        "tape serve --write",
        "tape serve --store s3://tapes/team --pull-every 60",
        "tape serve --login-header X-User --login-from 127.0.0.1 --name tapes.example.org",
    )
)
@click.option("--open", "opens", is_flag=True, help="Open the address in the browser.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="The port; 0 chooses a free one. Default: the one of last time, if it is free.",
)
@click.option("--new-token", is_flag=True, help="Make a new token: addresses printed before end.")
@click.option(
    "--write",
    "may_write",
    is_flag=True,
    help="Let pages change titles and labels, and move sessions to the trash.",
)
@click.option(
    "--pull-every",
    metavar="SECONDS",
    type=click.FloatRange(1),
    default=15,
    show_default=True,
    help="Ask a store that is elsewhere so often for what is new.",
)
@click.option("--login-header", metavar="NAME", help="Let in whom a proxy names in this header.")
@click.option(
    "--login-from",
    metavar="ADDRESS",
    multiple=True,
    help="The proxy asks from this IP address or network; others are refused. May be repeated.",
)
@click.option("--team-header", metavar="NAME", help="The proxy names teams in this header.")
@click.option(
    "--teams",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="TOML: the repositories and people whose sessions a team sees.",
)
@click.option(
    "--host",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="Listen here; another machine's proxy needs --login-header.",
)
@click.option(
    "--name",
    "names",
    metavar="HOST",
    multiple=True,
    help="What browsers call this server, where a proxy leads to it. May be repeated.",
)
@click.pass_obj
def serve(
    options: GlobalOptions,
    *,
    opens: bool,
    port: int | None,
    new_token: bool,
    may_write: bool,
    pull_every: float,
    login_header: str | None,
    login_from: tuple[str, ...],
    team_header: str | None,
    teams: Path | None,
    host: str,
    names: tuple[str, ...],
) -> None:
    """Show the sessions of a store in a browser: lists, conversations, costs.

    Listens on the loopback address only, and prints an address with a token, which lets a browser
    in. The token stays the same for a store until --new-token. Nothing can be changed there without
    --write. Needs gong[serve]. Ends with Ctrl+C.

    With --login-header a proxy lets people in instead, and who looks at a session or changes it is
    recorded: `tape remote audit` lists it.
    """
    try:
        from ..serve import running, viewers  # an extra, for this command only
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in {"starlette", "uvicorn", "jinja2"}:
            raise
        raise UsageError("tape serve needs `pip install 'gong[serve]'`") from error
    login = viewers.make_proxy_login(login_header, login_from, team_header, teams)
    home = find_store_home(options.store)
    puller = None
    if is_elsewhere(options.store):
        from ..serve.pulling import Puller  # only for such a store

        puller = Puller(home, pull_every)
    running.serve_store(
        home,
        os.environ,
        running.ServeOptions(port, new_token, login, host, names, may_write, puller),
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
