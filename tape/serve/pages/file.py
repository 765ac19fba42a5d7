"""A file as it is now: which prompt and entry of which session each of its lines is from.

Invariant: what is said of lines is that of `tape blame`. A file is read only where a session of the
store changed it, and within the folder that the named session works in, wherever links lead. The
address holds the session in `session`, the path in `path`, and in `from` the first line.
"""

from __future__ import annotations

import os.path
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from starlette.routing import Route

from ...errors import NotFound, UsageError
from ...index.lookups import select_rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request
    from starlette.responses import Response

    from ...blame.history import BlamedFile, ChangeCause
    from ..site import Site

_LINES = 5000
"""Most lines of a page."""
_MAX_BYTES = 8 * 1024 * 1024
_MAX_PATH = 4096


class LineRange(NamedTuple):
    """Lines with one origin."""

    by: ChangeCause | None
    """None where no session explains them."""
    doubt: str | None
    lines: list[tuple[int, str]]
    """Their numbers and texts."""


def build_routes(site: Site) -> list[Route]:
    """Return the routes of this page."""

    def show(request: Request) -> Response:
        session = request.query_params.get("session", "")
        path = request.query_params.get("path", "")
        with site.view.open_tape(session) as tape:
            identity = tape.id
        file = _find_file(site, identity, path)
        blamed = _blame_file(site, file)
        first = _read_number(request.query_params.get("from", ""), len(blamed.lines))
        last = min(first + _LINES - 1, len(blamed.lines))
        ranges = list(_clip_ranges(blamed, first, last))
        values: dict[str, Any] = {
            "file": path,
            "session": identity,
            "lines": len(blamed.lines),
            "unknown": sum(r.last - r.first + 1 for r in blamed.ranges if r.by is None),
            "ranges": ranges,
            "more": "",
        }
        if last < len(blamed.lines):
            query = {"session": identity, "path": path, "from": last + 1}
            values["more"] = f"/file?{urlencode(query, errors='replace')}"
        return site.render(request, "file.html", values)

    return [Route("/file", show)]


def _find_file(site: Site, session: str, path: str) -> Path:
    """Return where a file of a session is; raise NotFound where it is none that may be read.

    Links are followed first, so that none leads out of the folder.
    """
    rows = site.view.ask(lambda db: select_rows_of([session], db))
    if not rows or not path or "\0" in path or len(path) > _MAX_PATH:
        raise NotFound("there is no such file")
    cwd, top = Path(rows[0].cwd), os.path.realpath(rows[0].project or rows[0].cwd)
    if not cwd.is_absolute():
        raise NotFound("the session has no folder")
    for place in (cwd / path, Path("/") / path):  # git leaves out the first /
        real = os.path.realpath(place)
        if os.path.commonpath((real, top)) == top and Path(real).is_file():
            return Path(os.path.normpath(place))
    raise NotFound("there is no such file")


def _blame_file(site: Site, file: Path) -> BlamedFile:
    """Return the origin of each line; raise as `blame_file` does, without a path in the message."""
    if file.stat().st_size > _MAX_BYTES:
        raise UsageError("This file is too large to be shown here: ask tape blame.")
    try:
        return site.view.blame_file(file)
    except UsageError as error:
        raise UsageError("This file is no text, so it has no lines.") from error


def _read_number(text: str, last: int) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) < 10  # noqa: PLR2004
    return min(max(int(text), 1), max(last, 1)) if is_number else 1


def _clip_ranges(blamed: BlamedFile, first: int, last: int) -> Iterator[LineRange]:
    for part in blamed.ranges:
        start, end = max(part.first, first), min(part.last, last)
        if start <= end:
            lines = [(number, blamed.lines[number - 1]) for number in range(start, end + 1)]
            yield LineRange(part.by, part.doubt, lines)
