"""Search results as text, and the fast path of `tape search`.

Nothing slow is imported: neither click nor the store.
"""

from __future__ import annotations

import os
import re

from ..clock import now
from ..errors import UsageError
from ..glance.ranking import narrowed
from ..glance.search import found
from ..glance.words import match
from ..text import SHORT, fitted, visible
from .plain import say, warn
from .terminal import paged, style

TYPE_CHECKING = False  # the module that has this name takes a tenth of the time of `tape ls`
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import TypedDict

    from ..glance.excerpts import Marks
    from ..glance.ranking import Hit
    from ..index.matching import Match

    class Narrowing(TypedDict):
        """The filters of a search, as `tape.index.search` takes them."""

        project: str | None
        model: str | None
        since: str | None
        until: str | None


LIMIT = 20
"""How many entries are shown by default."""

_TITLE = 40
_COUNT = re.compile(r"[1-9][0-9]{0,9}\Z")
_OPTIONS = {
    **{f"--{name}": name for name in ("store", "project", "model", "since", "until", "limit")},
    "-n": "limit",
}


def at_once(arguments: Sequence[str], home: str) -> bool:
    """Run `tape search` with these arguments from the index alone; return whether it could.

    It cannot for arguments other than words and options with a value, nor when the index is missing
    or has to catch up: then it returns False and prints nothing.
    """
    given = _given(arguments)
    if given is None:
        return False
    query, types, options = given
    try:
        narrow = narrowed(types, **narrowing(now(), options))
        hits = found(options.get("store") or home, match(query), narrow, int(options["limit"]))
    except (UsageError, OSError):  # OSError: the current folder was removed
        return False
    if hits is None:
        return False
    with paged():
        show(hits)
        if not hits:
            warn_of_nothing(query)
    return True


def _given(arguments: Sequence[str]) -> tuple[str, list[str], dict[str, str]] | None:
    """Return the query, the types and the other options; None where click has to parse them."""
    words, types, options = list[str](), list[str](), {"limit": str(LIMIT)}
    rest = iter(arguments)
    for one in rest:
        if one == "--type" or one in _OPTIONS:
            value = next(rest, "-")
            if value.startswith("-"):
                return None
            if one == "--type":
                types.append(value)
            else:
                options[_OPTIONS[one]] = value
        elif one.startswith("-"):
            return None
        else:
            words.append(one)
    if not words or not _COUNT.match(options["limit"]):
        return None
    return " ".join(words), types, options


def narrowing(time: int, options: Mapping[str, str]) -> Narrowing:
    """Return the filters of a search from its option texts; raise UsageError."""
    project = options.get("project")
    return {
        "project": os.path.abspath(project) if project else None,  # noqa: PTH100 (as tapes keep it)
        "model": options.get("model"),
        "since": _moment(options.get("since"), time),
        "until": _moment(options.get("until"), time),
    }


def _moment(text: str | None, time: int) -> str | None:
    if not text:
        return None
    from .since import moment_of  # noqa: PLC0415 (most searches name no time)

    return moment_of(text, time)


def show(hits: Sequence[tuple[Hit | Match, str, Marks]]) -> None:
    """Print hits, each with an excerpt and its marks."""
    say(line for hit in hits for line in _lines(*hit))


def warn_of_nothing(query: str) -> None:
    """Warn that there are no hits."""
    warn(f"nothing found for {query!r}")


def _lines(hit: Hit | Match, excerpt: str, marks: Marks) -> Iterable[str]:
    """Yield a hit as text: its place, then the excerpt."""
    place = style(f"{hit.tape[:SHORT]}@{hit.entry[:SHORT]}", fg="yellow")
    title = f"  {fitted(hit.title, _TITLE)}" if hit.title else ""
    told = "".join(_emphasised(excerpt, marks))
    return [f"{place}  {hit.time[:16]}Z  {hit.type}{title}", f"    {told}"]


def _emphasised(excerpt: str, marks: Marks) -> Iterator[str]:
    at = 0
    for start, end in marks:
        yield visible(excerpt[at:start])
        yield style(visible(excerpt[start:end]), bold=True)
        at = end
    yield visible(excerpt[at:])
