"""One session: the page of the HTML export, drawn by the same script, and what is written to it.

/session/ID             the page
/session/ID/events      server-sent events, from `?after=POSITION` or `Last-Event-ID` on:
    growth              lines of an export and what they say; its id is the position after them
    state               `running` while a program writes the session, else `idle`
    note                {"text", "is_wrong"}: when a store that is elsewhere was pulled last
    again               the page cannot continue: what it shows was redacted
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, StreamingResponse
from starlette.routing import Route

from ...errors import Damaged, NotFound
from ...pages.growth import TapeWatch, read_growth
from ...pages.html import ServedPage, export_page, show_readable_page
from ...sessions.continuing import list_continue_commands
from ..event_stream import HEADERS, MEDIA_TYPE, encode_event_lines
from ..templating import read_static

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request
    from starlette.responses import Response

    from ...store.tape import Tape
    from ..pulling import PullNote
    from ..site import Site

_STATE_SECONDS = 3.0
"""Between two questions whether a program writes a session."""


def build_routes(site: Site) -> list[Route]:
    """Return the routes of this page."""

    def show(request: Request) -> Response:
        page = bytearray()
        with site.view.open_tape(request.path_params["tape"]) as tape:
            served = ServedPage(
                back="/",
                commands=[*list_continue_commands(tape)],
                events=f"/session/{tape.id}/events",
                script=read_static("session.js"),
                note=note.text if (note := site.find_pull_note()) else "",
                edits=f"/session/{tape.id}" if site.changes else "",
            )
            try:
                export_page(tape, page.extend, redact=False, served=served)
            except Damaged:
                page.clear()
                show_readable_page(tape, page.extend, served)
        # The page itself says which scripts it runs.
        return HTMLResponse(
            bytes(page), headers={"content-security-policy": "frame-ancestors 'none'"}
        )

    async def send_events(request: Request) -> Response:
        tape = await run_in_threadpool(site.view.open_tape, request.path_params["tape"])
        last = request.headers.get("last-event-id") or request.query_params.get("after", "")
        return StreamingResponse(
            _stream_events(site, tape, last), headers=HEADERS, media_type=MEDIA_TYPE
        )

    return [Route("/session/{tape}", show), Route("/session/{tape}/events", send_events)]


async def _stream_events(site: Site, tape: Tape, last: str) -> AsyncIterator[bytes]:
    reader = _TapeReader(site, tape, last)
    with tape:
        async for event in site.bell.watch(reader.look, _STATE_SECONDS, reader.wait):
            yield event
            if reader.is_over:
                return


class _TapeReader:
    """What one watcher of a session has got."""

    def __init__(self, site: Site, tape: Tape, last: str) -> None:
        self._site, self._tape, self._last = site, tape, last
        self._watch = TapeWatch(tape)
        self._has_changed = self._is_due = False
        self._state = ""
        self._note: PullNote | None = None
        self.is_over = False

    async def wait(self) -> None:
        """Return when there may be something new."""
        if not self._is_due:
            await self._site.lookout.wait(self._check)

    def _check(self) -> bool:
        self._has_changed = self._has_changed or self._watch.has_changed()
        return self._has_changed

    async def look(self) -> list[bytes]:
        """Return the events since the last look."""
        events = list[bytes]()
        try:
            if self._check():
                self._has_changed = False
                events = await run_in_threadpool(self._read_growth)
            self._is_due = bool(events)
            if events:  # at once; the state with the next look
                return events
            running = await run_in_threadpool(self._site.view.find_running)
            state = "running" if any(row.id == self._tape.id for row in running) else "idle"
            if state != self._state:
                self._state = state
                events.append(encode_event_lines(state.encode(), name="state"))
            note = self._site.find_pull_note()
            if note is not None and note != self._note:
                self._note = note
                events.append(encode_event_lines(json.dumps(note._asdict()).encode(), name="note"))
        except (Damaged, NotFound, OSError):  # the page says so when it is asked for again
            self.is_over = True
            return [b": over\n\n"]
        return events

    def _read_growth(self) -> list[bytes]:
        growth = read_growth(self._tape, self._last)
        if growth is None:
            self.is_over = True
            return [encode_event_lines(b"", name="again")]
        if growth.position == self._last:
            return []
        self._last = growth.position
        fields = {
            "lines": [line[:-1].decode() for line in growth.lines],
            "view": growth.view.build(),
            "title": self._tape.title() or "",
        }
        data = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
        return [encode_event_lines(data, number=growth.position, name="growth")]
