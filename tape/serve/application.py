"""The table of routes, and what an error looks like.

/                       sessions: the newest first, search, facets (pages/sessions)
/search                 hits in their conversation, grouped by session (pages/search)
/running                the sessions that a program writes now (pages/running)
/costs                  what sessions cost, by day, model and others (pages/costs)
/session/ID             one session; #ENTRY leads to an entry of it, and what is written to it comes
                        as events (pages/session)
/session/ID/facts …     what of a session may be changed, and its changes (pages/changes)
/compare?a=ID&b=ID      two branches or sessions side by side (pages/compare)
/file?session=&path=    the origin of each line of a file (pages/file)
/pulled                 the line that says when the store was pulled last (pages/pulled)
/static/VERSION/NAME    scripts and styles, which may be kept for ever
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.routing import Route

from ..errors import Ambiguous, InvalidName, NotFound, TapeError, UsageError, WriteFailed
from .gate import Gate
from .pages import changes, compare, costs, file, pulled, running, search, session, sessions
from .site import PageLink
from .templating import load_assets

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from .site import Site
    from .viewers import ProxyLogin


class SitePage(NamedTuple):
    """A page: its routes, and the link to it that every page has."""

    build_routes: Callable[[Site], list[Route]]
    link: PageLink | None = None


PAGES = (
    SitePage(sessions.build_routes, PageLink("Sessions", "/")),
    SitePage(running.build_routes, PageLink("Running", "/running")),
    SitePage(search.build_routes, PageLink("Search", "/search")),
    SitePage(costs.build_routes, PageLink("Costs", "/costs")),
    SitePage(session.build_routes),
    SitePage(changes.build_routes),
    SitePage(pulled.build_routes),
    SitePage(compare.build_routes),
    SitePage(file.build_routes),
)
"""In the order of the bar."""


def build_application(
    site: Site,
    token: str,
    names: frozenset[str],
    port: int,
    login: ProxyLogin | None = None,
) -> Starlette:
    """Return the web application; `names` are the hosts that requests may name.

    With a `login` a proxy says who looks, and the token lets nobody in.
    """
    site.links = tuple(page.link for page in PAGES if page.link)
    pages = [route for page in PAGES for route in page.build_routes(site)]
    return Starlette(
        routes=[*pages, Route("/static/{version}/{name}", _send_asset)],
        middleware=[
            Middleware(Gate, token, names, port, login, may_write=site.changes is not None)
        ],
        exception_handlers={
            HTTPException: partial(_show_error, site),
            TapeError: partial(_show_error, site),
            OSError: partial(_show_error, site),
        },
    )


def _send_asset(request: Request) -> Response:
    asset = load_assets().get(request.path_params["name"])
    if asset is None or asset.version != request.path_params["version"]:
        raise HTTPException(404)
    headers = {"cache-control": "private, max-age=31536000, immutable"}
    return Response(asset.body, headers=headers, media_type=asset.media_type)


def _show_error(site: Site, request: Request, error: Exception) -> Response:
    """Return a page that says what is wrong, and no path of this machine."""
    match error:
        case HTTPException(status_code=404) | NotFound() | Ambiguous() | InvalidName():
            status, reason = 404, "There is nothing here."
        case HTTPException(status_code=status):
            reason = "This cannot be asked here."
        case UsageError():
            status, reason = 400, str(error)
        case WriteFailed():
            status, reason = 503, "Who looks cannot be recorded now, so nothing is shown."
        case _:
            status = 500
            reason = "This cannot be read."
    values = {"reason": reason, "is_damaged": status == 500}  # noqa: PLR2004
    return site.render(request, "error.html", values, status)
