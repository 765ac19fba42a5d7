"""`search --remote`: the words of all tapes at a remote in PostgreSQL, pulled or not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..clock import parse_timestamp, render_time
from ..errors import UsageError
from ..remote.catalogue_search import CatalogueFilter
from ..remote.registry import find_catalogue, open_named, read_registry
from ..text import SHORT, measure_width, shorten_to_width, show_controls
from .environment import find_store_home
from .output import print_json
from .terminal import get_columns, print_lines, print_warning, style_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..index.full_text import SearchFilter
    from ..remote.catalogue_search import CatalogueMatch
    from .group import GlobalOptions


def search_remote(
    options: GlobalOptions,
    name: str,
    query: str,
    limit: int,
    narrow: SearchFilter,
    *,
    is_json: bool,
    is_quiet: bool,
) -> int:
    """Print the newest entries at a remote that match; return 1 if there are none."""
    home = Path(find_store_home(options.store))
    known = read_registry(home).remotes[read_registry(home).choose(name)]
    with open_named(home, name, known) as remote:
        catalogue = find_catalogue(remote)
        if catalogue is None:
            raise UsageError(
                f"{name} is no database: `tape pull --from {name}`, then `tape search` searches it"
            )
        missing = catalogue.count_missing()
        if missing and not catalogue.update():
            print_warning(f"{name}: the newest {missing} pushes are not in its catalogue yet")
        since, until = narrow.get("since"), narrow.get("until")
        matches = catalogue.search(
            query,
            limit,
            CatalogueFilter(
                narrow.get("types", ()),
                parse_timestamp(since) if since else 0,
                parse_timestamp(until) if until else 0,
                narrow.get("project") or "",
            ),
        )
    if is_json:
        print_json([match._asdict() for match in matches])
    elif not is_quiet:
        _print_matches(matches)
        if not matches:
            print_warning(f"nothing found for {query!r} at {name}")
    return int(not matches)


def _print_matches(matches: Sequence[CatalogueMatch]) -> None:
    wide = get_columns() if sys.stdout.isatty() else 10_000
    lines = []
    for match in matches:
        place = f"{match.tape[:SHORT]}@{match.entry[:SHORT]}"
        facts = "  ".join(["", render_time(match.time), match.type])
        room = wide - measure_width(place + facts) - 2
        title = show_controls(match.title or "")
        heading = f"{style_text(place, fg='yellow')}{facts}"
        lines.append(f"{heading}  {shorten_to_width(title, room)}" if title else heading)
        lines.append(f"    {shorten_to_width(show_controls(match.head), wide - 4)}")
    print_lines(lines)
