"""What language servers answer, as text for a model; pure, but for the lines of files it is given.

A place is `path:line:column`, with the line of code behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from .positions import split_lines, to_path, to_spot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .positions import Encoding

MAX_PLACES = 100
_MAX_LINE = 200
_MAX_DEPTH = 20
"""Of an outline: what is nested deeper is no code of people."""
_KINDS = (
    *("file", "module", "namespace", "package", "class", "method", "property", "field"),
    *("constructor", "enum", "interface", "function", "variable", "constant", "string", "number"),
    *("boolean", "array", "object", "key", "null", "member", "struct", "event", "operator"),
    "parameter",
)


class _Position(Struct):
    line: int
    character: int


class _Range(Struct):
    start: _Position


class _Location(Struct):
    uri: str
    range: _Range


class _Link(Struct):
    targetUri: str  # noqa: N815 (as the protocol names it)
    targetSelectionRange: _Range  # noqa: N815


class _Symbol(Struct):
    name: str
    kind: int
    range: _Range | None = None
    location: _Location | None = None
    selectionRange: _Range | None = None  # noqa: N815
    containerName: str | None = None  # noqa: N815
    children: list[Any] | None = None


def convert_or_none(value: object, kind: type[Any]) -> Any:
    """Return a value as a struct; None for one that is none."""
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError:
        return None


def list_places(result: object) -> list[tuple[str, dict[str, int]]]:
    """Return path and position of each place in an answer, each once."""
    items = result if isinstance(result, list) else [result]
    places: dict[tuple[str, int, int], tuple[str, dict[str, int]]] = {}
    for item in items:
        location, link = convert_or_none(item, _Location), convert_or_none(item, _Link)
        if location is not None:
            path, start = to_path(location.uri), location.range.start
        elif link is not None:
            path, start = to_path(link.targetUri), link.targetSelectionRange.start
        else:
            continue
        if path is not None:
            position = {"line": start.line, "character": start.character}
            places[path, start.line, start.character] = path, position
    return list(places.values())


def format_places(
    places: list[tuple[str, dict[str, int]]],
    read_text: Callable[[str], str | None],
    name_path: Callable[[str], str],
    encoding: Encoding,
) -> list[str]:
    """Return a line for each place, at most a hundred."""
    lines = []
    texts: dict[str, list[str]] = {}
    for path, position in sorted(places, key=lambda place: (place[0], place[1]["line"]))[
        :MAX_PLACES
    ]:
        if path not in texts:
            texts[path] = split_lines(read_text(path) or "")
        spot = to_spot(texts[path], position, encoding)
        line = (
            texts[path][spot.line - 1].strip()[:_MAX_LINE] if spot.line <= len(texts[path]) else ""
        )
        lines.append(f"{name_path(path)}:{spot.line}:{spot.column}{f': {line}' if line else ''}")
    if len(places) > MAX_PLACES:
        lines.append(f"… and {len(places) - MAX_PLACES} more")
    return lines


def format_hover(result: object) -> str:
    """Return what an answer says about a name."""
    contents = result.get("contents") if isinstance(result, dict) else None
    parts = contents if isinstance(contents, list) else [contents]
    texts = [part.get("value") if isinstance(part, dict) else part for part in parts]
    return "\n\n".join(text.strip() for text in texts if isinstance(text, str) and text.strip())


def format_outline(result: object, depth: int = 0) -> Iterator[str]:
    """Yield a line for each symbol of a file: line, kind, name."""
    for item in result if isinstance(result, list) else ():
        symbol = convert_or_none(item, _Symbol)
        if symbol is None:
            continue
        place = symbol.selectionRange or symbol.range or (symbol.location and symbol.location.range)
        line = place.start.line + 1 if place else 0
        yield format_symbol(line, depth, name_kind(symbol.kind), symbol.name)
        if depth < _MAX_DEPTH:
            yield from format_outline(symbol.children, depth + 1)


def format_symbol(line: int, depth: int, kind: str, name: str) -> str:
    """Return the line of an outline for a symbol `depth` levels inside of others."""
    return f"{line:>6}  {'  ' * min(depth, _MAX_DEPTH)}{kind} {name}"


def format_symbols(result: object, name_path: Callable[[str], str]) -> list[str]:
    """Return a line for each symbol of a project."""
    lines = []
    for item in result if isinstance(result, list) else ():
        symbol = convert_or_none(item, _Symbol)
        if symbol is None or symbol.location is None:
            continue
        path = to_path(symbol.location.uri)
        line = symbol.location.range.start.line + 1
        inside = f" in {symbol.containerName}" if symbol.containerName else ""
        name = name_path(path) if path else symbol.location.uri
        lines.append(f"{name}:{line}: {name_kind(symbol.kind)} {symbol.name}{inside}")
    left = len(lines) - MAX_PLACES
    return [*lines[:MAX_PLACES], *([f"… and {left} more"] if left > 0 else [])]


def name_kind(kind: int) -> str:
    """Return the word for a kind of symbol."""
    return _KINDS[kind - 1] if 1 <= kind <= len(_KINDS) else "symbol"
