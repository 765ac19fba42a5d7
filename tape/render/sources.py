"""What a provider's own tools did, and the pages that an answer cites, as people read it; pure.

Each provider has a form of its own: blocks and `citations` (Anthropic), items and `annotations`
(OpenAI Responses), `groundingMetadata` (Gemini). What is not known here is shown by nobody but the
raw block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from ..model.entries import Opaque, Text
from ..text import to_single_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from msgspec import Raw

    from ..model.entries import Content

_MAX_RESULTS = 10


class CitedPage(Struct, frozen=True):
    """A page that an answer cites."""

    url: str
    title: str

    def __str__(self) -> str:
        """Return title and address on one line."""
        title = to_single_line(self.title)
        return f"{title} – {self.url}" if title and title != self.url else self.url


def list_sources(content: Content) -> tuple[CitedPage, ...]:
    """Return the pages that an answer cites, each once, in their order."""
    sources: dict[str, CitedPage] = {}
    for block in content:
        if isinstance(block, Text) and bytes(block.wire):
            cited = _read_citations(_decode_object(block.wire))
        elif isinstance(block, Opaque) and b"groundingMetadata" in bytes(block.raw):
            cited = _read_grounding(_decode_object(block.raw))
        else:
            continue
        for source in cited:
            sources.setdefault(source.url, source)
    return tuple(sources.values())


def render_sources(content: Content) -> list[str]:
    """Return the pages that an answer cites as lines; none where it cites none."""
    sources = list_sources(content)
    lines = [f"[{number}] {source}" for number, source in enumerate(sources, 1)]
    return ["Sources:", *lines] if lines else []


def describe_server_block(raw: Raw) -> list[str]:
    """Return as lines what a block of a provider's own tool says; nothing of an unknown one."""
    if b"search" not in (data := bytes(raw)).lower() and b"fetch" not in data:
        return []
    block = _decode_object(raw)
    describe = _DESCRIPTIONS.get(str(block.get("type")))
    if describe is not None:
        return describe(block)
    queries = _to_list(_to_object(block.get("groundingMetadata")).get("webSearchQueries"))
    return [f"web_search: {to_single_line(str(query))}" for query in queries]


def _describe_call(block: dict[str, Any]) -> list[str]:
    arguments = _to_object(block.get("input"))
    what = arguments.get("query") or arguments.get("url")
    return [to_single_line(f"{block.get('name')}: {what}")] if what else []


def _describe_results(block: dict[str, Any]) -> list[str]:
    content = block.get("content")
    if isinstance(content, dict):
        return [to_single_line(f"web_search failed: {content.get('error_code', 'unknown')}")]
    sources = [*_read_pages(_to_list(content))]
    lines = [f"  {source}" for source in sources[:_MAX_RESULTS]]
    rest = len(sources) - len(lines)
    pages = "1 page" if len(sources) == 1 else f"{len(sources)} pages"
    return [f"web_search found {pages}", *lines, *([f"  … {rest} more"] if rest else ())]


def _describe_page(block: dict[str, Any]) -> list[str]:
    result = _to_object(block.get("content"))
    what = result.get("url") or f"failed: {result.get('error_code', 'unknown')}"
    return [to_single_line(f"web_fetch: {what}")]


def _describe_item(block: dict[str, Any]) -> list[str]:
    action = _to_object(block.get("action"))
    queries = _to_list(action.get("queries")) or [action.get("query")]
    words = "; ".join(str(query) for query in queries if query)
    if words:
        return [to_single_line(f"web_search: {words}")]
    return [to_single_line(f"web_search opened {action['url']}")] if action.get("url") else []


_DESCRIPTIONS: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "server_tool_use": _describe_call,
    "web_search_tool_result": _describe_results,
    "web_fetch_tool_result": _describe_page,
    "web_search_call": _describe_item,
}
"""What each type of a block says."""


def _read_citations(wire: dict[str, Any]) -> Iterator[CitedPage]:
    for name in ("citations", "annotations"):
        notes = [_to_object(note) for note in _to_list(wire.get(name))]
        yield from _read_pages([_to_object(note.get("url_citation")) or note for note in notes])


def _read_grounding(part: dict[str, Any]) -> Iterator[CitedPage]:
    chunks = _to_list(_to_object(part.get("groundingMetadata")).get("groundingChunks"))
    pages = (_to_object(_to_object(chunk).get("web")) for chunk in chunks)
    yield from _read_pages({**page, "url": page.get("uri")} for page in pages)


def _read_pages(pages: Iterable[Any]) -> Iterator[CitedPage]:
    for page in map(_to_object, pages):
        url, title = page.get("url"), page.get("title")
        if isinstance(url, str) and url:
            yield CitedPage(to_single_line(url), title if isinstance(title, str) else "")


def _decode_object(raw: Raw) -> dict[str, Any]:
    try:
        return _to_object(msgspec.json.decode(bytes(raw)))
    except (ValueError, RecursionError):
        return {}


def _to_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _to_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
