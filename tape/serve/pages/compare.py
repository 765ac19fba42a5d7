"""Two branches of a session, or two sessions, side by side: where they part, and what each did.

Invariant: it is the report of `tape diff`. The address holds both sides in `a` and `b`, each as
`ID`, `ID:BRANCH` or `ID@ENTRY`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from starlette.routing import Route

from ...clock import parse_timestamp
from ...errors import NotFound
from ...history.comparison import compare_places, describe_ops, format_span
from ...render.entries import render_entry_line
from ...store.tape import Hit
from ...text import format_count
from ..templating import format_moment, format_money, format_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request
    from starlette.responses import Response

    from ...history.activity import Activity
    from ...history.comparison import BranchComparison, BranchSide
    from ...model.line import Entry
    from ...store.refs import Head
    from ...store.tape import Tape
    from ..site import Site

_PLACE = re.compile(r"([0-9a-f]{4,32})(?::([a-z0-9][a-z0-9._-]{0,47})|@([0-9a-f]{4,40}))?\Z")
_LINE = 120
"""Characters of the common entry that are shown."""


class SideView(NamedTuple):
    """One side as the page shows it."""

    title: str
    side: BranchSide
    period: str
    """When and how long; "" where nothing was done."""
    facts: list[tuple[str, str]]
    branches: list[tuple[str, str, bool]]
    """Name, address with it in place of this one, whether it is this one."""


class FileRow(NamedTuple):
    """A file, and what each side did to it; "" for nothing."""

    path: str
    query: str
    """That of its page."""
    a: str
    b: str


def build_routes(site: Site) -> list[Route]:
    """Return the routes of this page."""

    def show(request: Request) -> Response:
        names = {side: request.query_params.get(side, "").strip() for side in ("a", "b")}
        values: dict[str, Any] = {"names": names, "compared": None}
        if all(names.values()):
            values |= _compare_sides(site, names)
        return site.render(request, "compare.html", values)

    return [Route("/compare", show)]


def _compare_sides(site: Site, names: dict[str, str]) -> dict[str, Any]:
    skipped = list[str]()
    with _open_place(site, names["a"]) as a, _open_place(site, names["b"]) as b:
        heads = Hit(a, _find_head(a, names["a"])), Hit(b, _find_head(b, names["b"]))
        compared = compare_places(*heads, skipped.append)
        sides = [
            _build_side(tape, side, names, key)
            for tape, side, key in ((a, compared.report.a, "a"), (b, compared.report.b, "b"))
        ]
    common = compared.common
    return {
        "compared": compared.report,
        "common": _describe_entry(common) if common else "",
        "sides": sides,
        "files": list(_list_files(compared)),
        "is_partial": bool(skipped),
        "swapped": _build_address(names["b"], names["a"]),
    }


def _describe_entry(entry: Entry) -> str:
    """Return what an entry is and how it begins, without its id."""
    return " ".join(render_entry_line(entry, _LINE).split()[1:])


def _open_place(site: Site, name: str) -> Tape:
    match = _PLACE.match(name)
    if match is None:
        raise NotFound("that names no session")
    return site.view.open_tape(match[1])


def _find_head(tape: Tape, name: str) -> Head:
    match = _PLACE.match(name)
    if match is None or match[3] is None:
        return tape.head(match[2] if match else None)
    hits = tape.find_own_entries(match[3])
    if len(hits) != 1:
        raise NotFound("that names no entry")
    return hits[0].head


def _build_address(a: str, b: str) -> str:
    return f"/compare?{urlencode({'a': a, 'b': b})}"


def _build_side(tape: Tape, side: BranchSide, names: dict[str, str], key: str) -> SideView:
    branches = []
    for name in tape.refs().branches:
        place = {**names, key: f"{tape.id}:{name}"}
        branches.append((name, _build_address(place["a"], place["b"]), name == side.branch))
    return SideView(
        tape.title() or "Without a title",
        side,
        _describe_period(side.since),
        list(_list_facts(side.since)),
        branches,
    )


def _describe_period(since: Activity) -> str:
    if since.began is None or since.ended is None:
        return ""
    seconds = max(parse_timestamp(since.ended) - parse_timestamp(since.began), 0) // 1_000_000
    return f"{format_moment(since.began)}, {format_span(seconds)}"


def _list_facts(since: Activity) -> Iterator[tuple[str, str]]:
    for tool in since.tools:
        notes = [format_count(tool.calls, "call")]
        notes += [f"{tool.failed} failed"] * bool(tool.failed)
        notes += [f"{tool.open} without a result"] * bool(tool.open)
        yield tool.name, ", ".join(notes)
    for use in since.models:
        cost = f", {format_money(use.cost.amount)}" if use.cost else ""
        tokens = format_tokens(use.usage.total)
        yield use.model, f"{format_count(use.calls, 'call')}, {tokens} tokens{cost}"
    for name, count in (("Summaries", since.anchors), ("Errors", since.errors)):
        if count:
            yield name, str(count)


def _list_files(compared: BranchComparison) -> Iterator[FileRow]:
    a, b = (
        {use.path: describe_ops(use.ops) for use in side.since.files}
        for side in (compared.report.a, compared.report.b)
    )
    for path in sorted({*a, *b}):
        tape = compared.report.a.tape if path in a else compared.report.b.tape
        query = urlencode({"session": tape, "path": path}, errors="replace")
        yield FileRow(path, query, a.get(path, ""), b.get(path, ""))
