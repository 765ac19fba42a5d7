"""What a page of a session asks and sends to change it, where a server has `--write`.

/session/ID/facts       what may be changed, and the entry `?entry=ID` that a label would be at
/session/ID/title       POST {"title"}
/session/ID/label       POST {"name", "entry"}; "" for the newest entry
/session/ID/unlabel     POST {"name"}
/session/ID/trash       POST {}

All are JSON. An answer is {"said"}: what was done, or with a status of 400 and more why not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse
from starlette.routing import Route

from ...errors import Ambiguous, NotFound
from ..changes import ChangeRefused

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from ..site import Site

T = TypeVar("T", bound=Struct)
_MAX_BYTES = 16_384


class NewTitle(Struct, forbid_unknown_fields=True):
    """The body of a new title."""

    title: str


class NewLabel(Struct, forbid_unknown_fields=True):
    """The body of a label."""

    name: str
    entry: str = ""


class OldLabel(Struct, forbid_unknown_fields=True):
    """The body that removes a label."""

    name: str


class Nothing(Struct, forbid_unknown_fields=True):
    """The body of what needs no more to be said."""


def build_routes(site: Site) -> list[Route]:
    """Return the routes of all changes; none where nothing may be changed."""
    changes = site.changes
    if changes is None:
        return []

    async def send_facts(request: Request) -> Response:
        def describe() -> dict[str, Any]:
            entry = request.query_params.get("entry", "")
            facts = changes.describe(request.path_params["tape"], entry)
            return {**facts._asdict(), "labels": [each._asdict() for each in facts.labels]}

        return await _send_answer(describe)

    def make_route(name: str, body: type[T], change: Callable[[str, T], str]) -> Route:
        async def make_change(request: Request) -> Response:
            sent = await _read_body(request, body)
            if sent is None:
                return JSONResponse({"said": "That is no change."}, 400)
            return await _send_answer(lambda: {"said": change(request.path_params["tape"], sent)})

        return Route(f"/session/{{tape}}/{name}", make_change, methods=["POST"])

    return [
        Route("/session/{tape}/facts", send_facts),
        make_route("title", NewTitle, lambda tape, sent: changes.rename(tape, sent.title)),
        make_route(
            "label", NewLabel, lambda tape, sent: changes.label(tape, sent.name, sent.entry)
        ),
        make_route("unlabel", OldLabel, lambda tape, sent: changes.remove_label(tape, sent.name)),
        make_route("trash", Nothing, lambda tape, _: changes.remove(tape)),
    ]


async def _send_answer(work: Callable[[], dict[str, Any]]) -> Response:
    try:
        return JSONResponse(await run_in_threadpool(work))
    except ChangeRefused as error:
        return JSONResponse({"said": str(error)}, 409)
    except (NotFound, Ambiguous):
        return JSONResponse({"said": "There is no such session here any more."}, 404)


async def _read_body(request: Request, body: type[T]) -> T | None:
    """Return what was sent; None for anything else. A page of another site cannot send JSON."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        return None
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > _MAX_BYTES:
            return None
    try:
        return msgspec.json.decode(data, type=body)
    except (msgspec.DecodeError, UnicodeDecodeError):  # the latter for no UTF-8
        return None
