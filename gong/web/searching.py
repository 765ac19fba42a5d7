"""A search of the web by a service or a command that the user has set, and what it found as pages.

A service answers in JSON: a list of results, in whatever place, each with an address, a title and
some words under the names that services use. A command prints the same, or text, which is taken as
it is.
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlsplit

from ..child_programs import OutputTooLong, run_for_output
from .addresses import InvalidAddress, parse_address
from .fetching import FetchedPage, FetchError, WebAccess, request_page
from .page_text import decode_page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..tool_settings import SearchSettings

_SECONDS = 30.0
_MAX_BYTES = 2_000_000
_URLS = ("url", "link", "href")
_TITLES = ("title", "name")
_WORDS = ("content", "description", "snippet", "text", "abstract", "body")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_MAX_DEPTH = 4


class SearchResult(NamedTuple):
    """A page that was found."""

    url: str
    title: str
    words: str


class FoundPages(NamedTuple):
    """What a search found: pages, or text where there is no list of them."""

    results: tuple[SearchResult, ...]
    text: str = ""


async def search_web(search: SearchSettings, query: str, environ: Mapping[str, str]) -> FoundPages:
    """Return what the service or the command of the settings finds; raises FetchError."""
    try:
        async with asyncio.timeout(_SECONDS):
            if search.url:
                data = await _ask_service(search, query, environ)
            else:
                data = await _run_command(search.command, query, environ)
    except TimeoutError:
        raise FetchError(f"the search did not end within {_SECONDS:g} s") from None
    text = decode_page(data, "") or ""
    with suppress(ValueError, RecursionError):
        if results := _find_results(json.loads(text), 0):
            return FoundPages(results)
        return FoundPages(())
    return FoundPages((), text.strip())


async def _ask_service(search: SearchSettings, query: str, environ: Mapping[str, str]) -> bytes:
    url = _insert_variables(search.url, environ).replace("{query}", quote(query, safe=""))
    try:
        address = parse_address(url)
    except InvalidAddress as error:
        raise FetchError(f"url of [web.search] in config.toml: {error}") from None
    headers = {
        name.lower(): _insert_variables(value, environ) for name, value in search.headers.items()
    }
    body = None
    if search.body:
        filled = _fill_in(search.body, query, environ)
        body = json.dumps(filled).encode()
        headers = {"content-type": "application/json", **headers}
    # the user has named this host
    access = WebAccess(private_hosts=(urlsplit(address.origin).netloc,), max_bytes=_MAX_BYTES)
    page = await request_page(
        address, access, headers={"accept": "application/json", **headers}, body=body
    )
    if not isinstance(page, FetchedPage):
        raise FetchError(f"{address.origin} leads elsewhere: {page.url}")
    return page.body


def _fill_in(value: Any, query: str, environ: Mapping[str, str]) -> Any:
    """Return JSON with the query and variables in its texts."""
    if isinstance(value, str):
        return _insert_variables(value, environ).replace("{query}", query)
    if isinstance(value, list):
        return [_fill_in(item, query, environ) for item in value]
    if isinstance(value, dict):
        return {name: _fill_in(item, query, environ) for name, item in value.items()}
    return value


def _insert_variables(text: str, environ: Mapping[str, str]) -> str:
    """Return a text with variables of the environment in it; raises FetchError."""

    def insert(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in environ:
            raise FetchError(
                f"[web.search] in config.toml needs the variable {name}: it is not set"
            )
        return environ[name]

    return _VARIABLE.sub(insert, text)


async def _run_command(command: Sequence[str], query: str, environ: Mapping[str, str]) -> bytes:
    words = [word.replace("{query}", query) for word in command]
    try:
        run = await run_for_output(words, environ, max_bytes=_MAX_BYTES, seconds=_SECONDS)
    except TimeoutError:
        raise
    except OutputTooLong:
        raise FetchError(f"{words[0]} printed more than {_MAX_BYTES:,} bytes") from None
    except (OSError, ValueError) as error:
        raise FetchError(f"command of [web.search] in config.toml: {words[0]}: {error}") from None
    if run.exit_code:
        why = run.errors.decode("utf-8", "replace").strip().partition("\n")[0]
        raise FetchError(f"{words[0]} ended with exit code {run.exit_code}: {why}")
    return run.output


def _find_results(value: Any, depth: int) -> tuple[SearchResult, ...]:
    """Return the first list of results in JSON, whatever the names of what is around it."""
    if isinstance(value, list):
        results = tuple(result for item in value if (result := _read_result(item)) is not None)
        if results:
            return results
    if depth < _MAX_DEPTH and isinstance(value, dict):
        for item in value.values():
            if results := _find_results(item, depth + 1):
                return results
    return ()


def _read_result(item: Any) -> SearchResult | None:
    if not isinstance(item, dict):
        return None
    url, title, words = (
        next((item[name] for name in names if isinstance(item.get(name), str)), "")
        for names in (_URLS, _TITLES, _WORDS)
    )
    return SearchResult(url, title, words) if url.startswith(("http://", "https://")) else None
