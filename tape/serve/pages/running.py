"""The sessions that a program writes now.

/running                the list
/running/events         server-sent events: `change` where the list is another, or was written
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from starlette.routing import Route

from ..event_stream import HEADERS, MEDIA_TYPE, encode_event_lines

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from ...index.reader import TapeRow
    from ..site import Site

_LOOK_SECONDS = 1.0


def build_routes(site: Site) -> list[Route]:
    """Return the routes of this page."""

    def show(request: Request) -> Response:
        rows = site.view.find_running()
        return site.render(request, "running.html", {"rows": rows, "version": _name_version(rows)})

    async def send_events(request: Request) -> Response:
        last = request.headers.get("last-event-id") or request.query_params.get("after", "")

        async def look() -> list[bytes]:
            nonlocal last
            version = _name_version(await run_in_threadpool(site.view.find_running))
            if version == last:
                return []
            last = version
            return [encode_event_lines(b"", number=version, name="change")]

        stream = site.bell.watch(look, _LOOK_SECONDS)
        return StreamingResponse(stream, headers=HEADERS, media_type=MEDIA_TYPE)

    return [Route("/running", show), Route("/running/events", send_events)]


def _name_version(rows: tuple[TapeRow, ...]) -> str:
    """Return what is another text where the list shows something else."""
    facts = repr([(row.id, row.updated, row.title) for row in rows])
    return sha256(facts.encode("utf-8", "surrogatepass")).hexdigest()[:16]
