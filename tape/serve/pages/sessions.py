"""The list of sessions: the newest first, as words and facets leave them, fifty at a time.

The address holds every choice: words in `q`, a parameter for each facet, and in `after` where the
next fifty begin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from starlette.routing import Route

from ...index.facets import (
    FACETS,
    TapeChoice,
    select_facet,
    select_sums,
    select_tapes_after,
)

if TYPE_CHECKING:
    from sqlite3 import Connection

    from starlette.requests import Request
    from starlette.responses import Response

    from ...index.facets import Facet, FacetValue, TapeSums
    from ...index.reader import TapeRow
    from ..site import Site

_ROWS = 50
_FACET_VALUES = 8
"""How many values of a facet are facets before the others."""
_MAX_FACET_VALUES = 200
_LABELS: dict[Facet, str] = {
    "agent": "Agent",
    "project": "Project",
    "repository": "Repository",
    "person": "Person",
    "machine": "Machine",
    "model": "Model",
    "day": "Day",
}


class FacetLink(NamedTuple):
    """A value of a facet as a link that chooses it, or takes the choice away."""

    name: str
    tapes: int
    address: str
    is_chosen: bool


class FacetLinks(NamedTuple):
    """A facet with its values."""

    label: str
    links: list[FacetLink]
    more: str
    """Address of the page with all of its values; "" where these are all."""


class _Results(NamedTuple):
    rows: list[TapeRow]
    sums: TapeSums | None
    facets: dict[Facet, list[FacetValue]]


def build_routes(site: Site) -> list[Route]:
    """Return the routes of this page."""

    def show(request: Request) -> Response:
        choice = _read_choice(site, request)
        after = _read_place(request.query_params.get("after", ""))
        opened = request.query_params.get("all", "")

        def question(db: Connection) -> _Results:
            rows = select_tapes_after(db, choice, _ROWS + 1, after)
            if after:
                return _Results(rows, None, {})
            facets = {
                facet: select_facet(
                    db,
                    choice,
                    facet,
                    _MAX_FACET_VALUES if facet == opened else _FACET_VALUES + 1,
                )
                for facet in FACETS
            }
            return _Results(rows, select_sums(db, choice), facets)

        results = site.view.ask(question)
        rows = results.rows[:_ROWS]
        more = ""
        if len(results.rows) > _ROWS:
            more = _build_address(choice, after=f"{rows[-1].updated}.{rows[-1].id}")
        values: dict[str, Any] = {
            "words": choice.words,
            "rows": rows,
            "more": more,
            "last_day": after[0][:10] if after else "",
        }
        if after:
            return site.render(request, "session_rows.html", values)
        facets = [_link_facet(choice, facet, results.facets[facet], opened) for facet in FACETS]
        chosen = [
            FacetLink(
                f"{_LABELS[facet]}: {value or '–'}", 0, _build_address(choice, without=facet), True
            )
            for facet, value in choice.values.items()
        ]
        values |= {
            "facets": [facet for facet in facets if facet.links],
            "chosen": chosen,
            "fields": choice.values,
            "sums": results.sums,
        }
        return site.render(request, "sessions.html", values)

    return [Route("/", show)]


def _read_choice(site: Site, request: Request) -> TapeChoice:
    parameters = request.query_params
    values: dict[Facet, str] = {facet: parameters[facet] for facet in FACETS if facet in parameters}
    words = " ".join(parameters.get("q", "").split())
    return TapeChoice(values, words, site.view.find_said(words) if words else ())


def _read_place(text: str) -> tuple[str, str] | None:
    """Return time and id of the last row before a page; None where the text is not so."""
    time, _, tape = text.rpartition(".")
    is_id = len(tape) == 32 and all(digit in "0123456789abcdef" for digit in tape)  # noqa: PLR2004
    return (time, tape) if is_id and time else None


def _link_facet(
    choice: TapeChoice, facet: Facet, values: list[FacetValue], opened: str
) -> FacetLinks:
    links = [
        FacetLink(
            each.value or "–",
            each.tapes,
            _build_address(choice, without=facet)
            if choice.values.get(facet) == each.value
            else _build_address(choice, **{facet: each.value}),
            choice.values.get(facet) == each.value,
        )
        for each in values
    ]
    if len(values) == 1 and not values[0].value:  # nobody says anything
        links = []
    more = ""
    if facet != opened and len(values) > _FACET_VALUES:
        links = [
            *links[:_FACET_VALUES],
            *(link for link in links[_FACET_VALUES:] if link.is_chosen),
        ]
        more = _build_address(choice, all=facet)
    return FacetLinks(_LABELS[facet], links, more)


def _build_address(choice: TapeChoice, *, without: str = "", **changes: str) -> str:
    """Return the address of this choice with some values changed."""
    values = {"q": choice.words} if choice.words else dict[str, str]()
    values |= {str(facet): value for facet, value in choice.values.items()} | changes
    values.pop(without, None)
    return f"/?{urlencode(values, errors='replace')}" if values else "/"
