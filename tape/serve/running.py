"""A store served until a signal ends the program: port, token, application."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from ..errors import UsageError
from .access import LOCAL_NAMES
from .application import build_application
from .changes import StoreChanges
from .kept_address import keep_address, locate_address, make_address, read_address
from .listening import format_address, open_port, serve_application
from .site import Site
from .store_view import StoreView
from .view_audit import ViewAudit

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping

    from .pulling import Puller
    from .viewers import ProxyLogin

_HOST = "127.0.0.1"


class ServeOptions(NamedTuple):
    """How a store is served."""

    port: int | None = None
    """0 for a free one; None for that of last time."""
    new_token: bool = False
    login: ProxyLogin | None = None
    """Whom a proxy lets in; None for who has the token."""
    host: str = _HOST
    names: tuple[str, ...] = ()
    """Names of this server besides those that only this machine has."""
    may_write: bool = False
    """Whether pages may change titles and labels, and move sessions to the trash."""
    puller: Puller | None = None
    """Pulls a copy of a store that is elsewhere; None for a store that is here."""


def serve_store(
    home: str,
    environ: Mapping[str, str],
    options: ServeOptions,
    *,
    announce: Callable[[str], None],
    warn: Callable[[str], None],
) -> None:
    """Serve the store at `home`; `announce` gets the address, with the token if that lets in.

    Raises UsageError where the port cannot be used, or everybody could ask.
    """
    login = options.login
    if login is None and (options.names or options.host not in LOCAL_NAMES):
        raise UsageError("other machines are let in by a proxy only: give --login-header NAME too")
    file = locate_address(home, environ)
    address = (None if options.new_token else read_address(file)) or make_address()
    audit = ViewAudit(home) if login else None
    view = StoreView(home, audit.record if audit else None)
    view.store.check()
    bound = _open_port(options.host, options.port, address.port)
    port = bound.getsockname()[1]
    try:
        keep_address(file, address._replace(port=port))
    except OSError as error:
        warn(f"the token is for this run only: {error.strerror}")
    record_change = audit.record_change if audit else None
    changes = StoreChanges(view, record_change) if options.may_write else None
    puller = options.puller
    site = Site(view, changes, puller)
    names = LOCAL_NAMES | {options.host, *map(str.lower, options.names)}
    application = build_application(site, address.token, names, port, login)
    query = "" if login else f"?token={address.token}"

    async def serve() -> None:
        # Only now: a signal before the loop runs would end the program amid its setup.
        announce(f"{format_address(options.host, bound)}/{query}")
        await serve_application(application, bound, site.bell.close)

    try:
        if puller:
            puller.start()
        asyncio.run(serve())
    finally:
        if puller:
            puller.close()
        view.close()


def _open_port(host: str, port: int | None, last_port: int) -> socket.socket:
    if port is not None:
        return open_port(host, port)
    try:
        return open_port(host, last_port)
    except UsageError:  # another program has it now
        return open_port(host, 0)
