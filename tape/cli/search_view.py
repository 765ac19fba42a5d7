"""Search results as text, and the fast path of `tape search`.

Nothing slow is imported: neither click nor the store.
"""

from __future__ import annotations

import os
import re

from ..clock import read_clock
from ..errors import UsageError
from ..index.fast_search import search_fast
from ..index.fast_text import build_filter, build_match_expression
from ..text import SHORT, shorten_to_width, show_controls
from .terminal import open_pager, print_lines, print_warning, style_text

TYPE_CHECKING = False  # the module that has this name takes a tenth of the time of `tape ls`
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypedDict

    from ..index.fast_text import Marks, RankedEntry
    from ..index.search import SearchMatch

    class SearchFilter(TypedDict):
        """The filters of a search, as `tape.index.search` takes them."""

        project: str | None
        model: str | None
        since: str | None
        until: str | None


HIT_LIMIT = 20
"""How many entries are shown by default."""

_TITLE_COLUMNS = 40
_COUNT_PATTERN = re.compile(r"[1-9][0-9]{0,9}\Z")
_FAST_OPTIONS = {
    **{f"--{name}": name for name in ("store", "project", "model", "since", "until", "limit")},
    "-n": "limit",
}


def answer_at_once(arguments: Sequence[str], home: str) -> bool:
    """Run `tape search` with these arguments from the index alone; return whether it could.

    It cannot for arguments other than words and options with a value, nor when the index is missing
    or has to catch up: then it returns False and prints nothing.
    """
    given = _parse_search_arguments(arguments)
    if given is None:
        return False
    query, types, options = given
    try:
        narrow = build_filter(types, **parse_search_options(read_clock(), options))
        hits = search_fast(
            options.get("store") or home,
            build_match_expression(query),
            narrow,
            int(options["limit"]),
        )
    except (UsageError, OSError):  # OSError: the current folder was removed
        return False
    if hits is None:
        return False
    with open_pager():
        print_hits(hits)
        if not hits:
            warn_of_no_hits(query)
    return True


def _parse_search_arguments(
    arguments: Sequence[str],
) -> tuple[str, list[str], dict[str, str]] | None:
    """Return the query, the types and the other options; None where click has to parse them."""
    words, types, options = list[str](), list[str](), {"limit": str(HIT_LIMIT)}
    rest = iter(arguments)
    for one in rest:
        if one == "--type" or one in _FAST_OPTIONS:
            value = next(rest, "-")
            if value.startswith("-"):
                return None
            if one == "--type":
                types.append(value)
            else:
                options[_FAST_OPTIONS[one]] = value
        elif one.startswith("-"):
            return None
        else:
            words.append(one)
    if not words or not _COUNT_PATTERN.match(options["limit"]):
        return None
    return " ".join(words), types, options


def parse_search_options(time: int, options: Mapping[str, str]) -> SearchFilter:
    """Return the filters of a search from its option texts; raise UsageError."""
    project = options.get("project")
    return {
        "project": os.path.abspath(project) if project else None,  # noqa: PTH100 (as tapes keep it)
        "model": options.get("model"),
        "since": _parse_optional_moment(options.get("since"), time),
        "until": _parse_optional_moment(options.get("until"), time),
    }


def _parse_optional_moment(text: str | None, time: int) -> str | None:
    if not text:
        return None
    from .timeparse import parse_moment  # noqa: PLC0415 (most searches name no time)

    return parse_moment(text, time)


def print_hits(hits: Sequence[tuple[RankedEntry | SearchMatch, str, Marks]]) -> None:
    """Print hits, each with an excerpt and its marks."""
    lines = []
    for hit, excerpt, marks in hits:
        place = style_text(f"{hit.tape[:SHORT]}@{hit.entry[:SHORT]}", fg="yellow")
        title = f"  {shorten_to_width(hit.title, _TITLE_COLUMNS)}" if hit.title else ""
        lines.append(f"{place}  {hit.time[:16]}Z  {hit.type}{title}")
        text, at = "    ", 0
        for start, end in marks:
            text += show_controls(excerpt[at:start])
            text += style_text(show_controls(excerpt[start:end]), bold=True)
            at = end
        lines.append(text + show_controls(excerpt[at:]))
    print_lines(lines)


def warn_of_no_hits(query: str) -> None:
    """Warn that there are no hits."""
    print_warning(f"nothing found for {query!r}")
