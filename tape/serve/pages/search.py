"""Hits of a search in their conversation: under each session, the prompt and what was found.

The address holds the words in `q`, as `tape search` takes them, and in `n` how many hits are shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from starlette.routing import Route

from ...errors import UsageError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from ...index.search import SearchMatch
    from ..site import Site

_HITS = 50
_MAX_HITS = 1000
_KINDS = {
    "user": "prompt",
    "assistant": "answer",
    "tool.result": "result",
    "context": "context",
}


class EntryHit(NamedTuple):
    """An entry that was found."""

    entry: str
    kind: str
    prompt: str
    """What led to it; "" where it is a prompt, or that is unknown."""
    parts: list[tuple[str, bool]]
    """The text around the match, and whether each part of it is one."""


class SessionHits(NamedTuple):
    """What was found in a session; `first` is the best of it."""

    first: SearchMatch
    hits: list[EntryHit]


def build_routes(site: Site) -> list[Route]:
    """Return the routes of this page."""

    def show(request: Request) -> Response:
        words = " ".join(request.query_params.get("q", "").split())
        limit = _read_limit(request.query_params.get("n", ""))
        values: dict[str, Any] = {"words": words, "wrong": "", "more": ""}
        values |= {"sessions": [], "hits": 0}
        if words:
            try:
                matches = site.view.search(words, limit + 1)
            except UsageError as error:
                values["wrong"] = str(error)
            else:
                listed = matches[:limit]
                values |= {"sessions": _group_by_session(listed), "hits": len(listed)}
                if len(matches) > limit and limit < _MAX_HITS:
                    query = urlencode({"q": words, "n": limit * 2}, errors="replace")
                    values["more"] = f"/search?{query}"
        return site.render(request, "search.html", values)

    return [Route("/search", show)]


def _read_limit(text: str) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) < len(str(_MAX_HITS)) + 1
    return min(max(int(text), _HITS), _MAX_HITS) if is_number else _HITS


def _group_by_session(matches: list[SearchMatch]) -> list[SessionHits]:
    """Return the hits of each session, in the order of the best of each."""
    sessions = dict[str, SessionHits]()
    for match in matches:
        session = sessions.setdefault(match.tape, SessionHits(match, []))
        session.hits.append(
            EntryHit(
                match.entry,
                _KINDS.get(match.type, match.type),
                match.prompt.text if match.prompt else "",
                split_at_marks(match.snippet, match.marks),
            )
        )
    return list(sessions.values())


def split_at_marks(text: str, marks: tuple[tuple[int, int], ...]) -> list[tuple[str, bool]]:
    """Return the parts of a text within and outside of marks, in order."""
    parts, at = list[tuple[str, bool]](), 0
    for start, end in marks:
        parts += [(text[at:start], False), (text[start:end], True)]
        at = end
    return [part for part in (*parts, (text[at:], False)) if part[0]]
