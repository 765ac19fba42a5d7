"""One session: the page of the HTML export, drawn by the same script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse
from starlette.routing import Route

from ...pages.html import export_page
from ...text import SHORT

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from ..site import Site


def build_routes(site: Site) -> list[Route]:
    """Return the routes of this page."""

    def show(request: Request) -> Response:
        page = bytearray()
        with site.view.open_tape(request.path_params["tape"]) as tape:
            command = f"gong --session {tape.id[:SHORT]}"
            export_page(tape, page.extend, redact=False, back="/", command=command)
        # The page itself says which scripts it runs.
        return HTMLResponse(
            bytes(page), headers={"content-security-policy": "frame-ancestors 'none'"}
        )

    return [Route("/session/{tape}", show)]
