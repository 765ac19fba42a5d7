"""Search results as text, and the fast path of `tape search`.

Nothing slow is imported: neither click nor the store.
"""

from __future__ import annotations

import os
from contextlib import nullcontext

from ..clock import read_clock, render_time
from ..errors import UsageError
from ..index.fast_search import search_fast
from ..index.full_text import build_filter, build_match_expression
from ..text import SHORT, shorten_to_width, show_controls
from .arguments import parse_plain_arguments
from .terminal import (
    get_columns,
    open_pager,
    print_json_text,
    print_lines,
    print_warning,
    style_text,
)

TYPE_CHECKING = False  # the module that has this name takes a tenth of the time of `tape ls`
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypedDict

    from ..index.full_text import FoundPrompt, Marks, RankedEntry
    from ..index.search import SearchMatch

    ShownHit = tuple[RankedEntry | SearchMatch, str, Marks, FoundPrompt | None]

    class SearchFilter(TypedDict):
        """The filters of a search, as `tape.index.search` takes them."""

        project: str | None
        model: str | None
        since: str | None
        until: str | None


HIT_LIMIT = 20
"""How many entries are shown by default."""

_TITLE_COLUMNS = 40
_NAMED_OPTIONS = {
    **{
        f"--{name}": name
        for name in ("store", "type", "project", "model", "since", "until", "limit")
    },
    "-n": "limit",
}


def answer_at_once(arguments: Sequence[str], home: str) -> bool:
    """Run `tape search` with these arguments from the index alone; return whether it could.

    It cannot for arguments other than words and options with a value, nor when the index is missing
    or has to catch up: then it returns False and prints nothing.
    """
    given = parse_plain_arguments(arguments, {"--json", "--utc"}, _NAMED_OPTIONS)
    if given is None:
        return False
    query, types = " ".join(given[0]), [value for name, value in given[1] if name == "type"]
    options = dict(given[1])
    try:
        narrow = build_filter(types, **parse_search_options(read_clock(), options))
        hits = search_fast(
            options.get("store") or home,
            build_match_expression(query) if query or not narrow[0] else "",
            narrow,
            int(options.get("limit", HIT_LIMIT)),
        )
    except (UsageError, OSError):  # OSError: the current folder was removed
        return False
    if hits is None:
        return False
    as_json = "json" in options
    with nullcontext() if as_json else open_pager():
        print_hit_objects(hits) if as_json else print_hits(hits)
        if not hits:
            warn_of_no_hits(query)
    return True


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


def print_hit_objects(hits: Sequence[ShownHit]) -> None:
    """Print hits as a JSON array."""
    print_json_text(
        [
            {name: getattr(hit, name) for name in _OBJECT_KEYS}
            | {"snippet": excerpt, "marks": marks, "score": hit.score}
            | {"prompt": None if prompt is None else {"entry": prompt.entry, "text": prompt.text}}
            for hit, excerpt, marks, prompt in hits
        ]
    )


_OBJECT_KEYS = (
    *("tape", "title", "folder", "phase", "offset", "entry", "n", "time", "type", "branch"),
)


def print_hits(hits: Sequence[ShownHit]) -> None:
    """Print hits, each with an excerpt and its marks, and the prompt that led to it."""
    lines, wide = [], get_columns()
    for hit, excerpt, marks, prompt in hits:
        place = style_text(f"{hit.tape[:SHORT]}@{hit.entry[:SHORT]}", fg="yellow")
        title = f"  {shorten_to_width(hit.title, _TITLE_COLUMNS)}" if hit.title else ""
        lines.append(f"{place}  {render_time(hit.time)}  {hit.type}{title}")
        text, at = "    ", 0
        for start, end in marks:
            text += show_controls(excerpt[at:start])
            text += style_text(show_controls(excerpt[start:end]), bold=True)
            at = end
        lines.append(text + show_controls(excerpt[at:]))
        if prompt is not None:
            asked = shorten_to_width(f"prompt {prompt.entry[:SHORT]}: {prompt.text}", wide - 4)
            lines.append(f"    {style_text(asked, dim=True)}")
    print_lines(lines)


def warn_of_no_hits(query: str) -> None:
    """Warn that there are no hits."""
    print_warning(f"nothing found for {query!r}" if query else "nothing found")
