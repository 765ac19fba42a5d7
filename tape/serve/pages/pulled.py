"""What every page says of the last pull, where the store is elsewhere.

/pulled?seen=TEXT       the line as it is now; nothing (204) where it still says so
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request

    from ..site import Site


def build_routes(site: Site) -> list[Route]:
    """Return the route of the line."""

    def show(request: Request) -> Response:
        note = site.find_pull_note()
        if note is None or note.text == request.query_params.get("seen"):
            return Response(status_code=204)
        return site.render(request, "pulled.html", {})

    return [Route("/pulled", show)]
