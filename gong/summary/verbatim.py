"""What a summary contains verbatim: the user's own requests, and the files calls touched. Pure.

Texts are cut the longest first, so that short ones stay whole. A cut text says how much is missing
and which entry contains all of it.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from tape.files.calls import FileRead, parse_file_calls
from tape.model.entries import (
    NO_JSON,
    Assistant,
    Context,
    Summary,
    ToolCall,
    ToolResult,
    ToolStart,
    User,
    join_texts,
    select_tool_calls,
)
from tape.text import SHORT

from .parse import parse_summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from msgspec import Raw

    from tape.model.line import Entry

TYPED_ORIGINS = frozenset({"steering", "follow_up"})
"""Origins of context entries with input that the user typed while the agent worked."""
REQUESTS_LIMIT = 12_000
"""Maximum characters of the user's own requests in a summary."""
MAX_FILES = 100
"""Maximum files of each kind that a summary names, the newest."""
_MIN_REQUEST_CHARS = 80
"""Minimum characters to which a request is cut."""
_CUT_NOTICE = re.compile(r"… \[(\d+) characters more(, (?:entry \w+|tape_search finds them))?\]\Z")
_SEARCH_HINT = ", tape_search finds them"
_OMISSION_LINE = re.compile(r"\[(\d+) more requests? stood here: tape_search finds them\]\Z")
_MORE_FILES_LINE = re.compile(r"… and (\d+) more\Z")


def compute_cut_length(lengths: Iterable[int], room: int) -> int:
    """Return the greatest length to which the longer ones must be cut so that all fit `room`."""
    left, remaining = room, sorted(lengths)
    for done, length in enumerate(remaining):
        share = left // (len(remaining) - done)
        if length > share:
            return max(share, 0)
        left -= length
    return max(remaining, default=0)


def extract_typed_text(entry: Entry) -> str | None:
    """Return the user's text in an entry; None for every other entry."""
    data = entry.data
    if isinstance(data, User) or (isinstance(data, Context) and data.origin in TYPED_ORIGINS):
        return join_texts(data.content)
    return None


def complete_summary(
    summary: Summary,
    entries: Sequence[Entry],
    previous: Summary | str | None,
    *,
    folders: SummaryFolders,
    limit_chars: int = REQUESTS_LIMIT,
) -> Summary:
    """Return a model's summary with the requests and files of `entries` and the earlier one."""
    read, changed = collect_files(entries, folders, previous)
    words = quote_requests(entries, previous, limit_chars)
    # Facts of requests stay in the context section too: later summaries keep fewer requests.
    return replace(summary, requests=words, files_read=read, files_changed=changed)


class _QuotedRequest(NamedTuple):
    """A request: its text, the number of characters cut off, and the entry with all of it."""

    text: str
    cut: int = 0
    where: str = ""

    def render_cut(self, limit: int) -> str:
        text = self.text if len(self.text) <= limit else self.text[:limit].rstrip()
        cut = self.cut + len(self.text) - len(text)
        return f"{text}… [{cut} characters more{self.where}]" if cut else text


def quote_requests(
    entries: Iterable[Entry], previous: Summary | str | None, limit_chars: int
) -> tuple[str, ...]:
    """Return the user's own requests verbatim, oldest first, after those of the earlier summary.

    Above `limit_chars` the longest are cut first. If even that is too much, requests after the
    first are left out, the oldest first, and a line says how many.
    """
    left_out, requests = 0, []
    for text in parse_earlier_summary(previous).requests:
        if omission := _OMISSION_LINE.match(text):
            left_out += int(omission[1])
        elif cut := _CUT_NOTICE.search(text):
            hint = cut[2] or _SEARCH_HINT
            requests.append(_QuotedRequest(text[: cut.start()], int(cut[1]), hint))
        else:
            requests.append(_QuotedRequest(text, 0, _SEARCH_HINT))
    for entry in entries:
        text = (extract_typed_text(entry) or "").strip()
        requests += [_QuotedRequest(text, 0, f", entry {entry.id[:SHORT]}")] if text else []
    return _fit_requests(requests, left_out, limit_chars)


def _fit_requests(requests: list[_QuotedRequest], left_out: int, room: int) -> tuple[str, ...]:
    """Return requests fitted into `room` characters of a summary."""
    spare = _count_omitted(requests, room)
    left_out, requests = left_out + spare, [*requests[:1], *requests[1 + spare :]]
    quotes = _level_requests(requests, room)
    while len(requests) > 2 and sum(map(len, quotes)) + _MIN_REQUEST_CHARS > room:  # noqa: PLR2004 (first, last)
        size, spare = sum(map(len, quotes)) + _MIN_REQUEST_CHARS, 0
        while spare < len(requests) - 2 and size > room:
            size -= len(quotes[1 + spare])
            spare += 1
        left_out += spare
        requests = [requests[0], *requests[1 + spare :]]
        quotes = _level_requests(requests, room - _MIN_REQUEST_CHARS)
        if size <= room:
            break
    if left_out:
        line = f"[{left_out} more request{'s' * (left_out > 1)} stood here: tape_search finds them]"
        quotes.insert(1, line)
    return tuple(quotes)


def _count_omitted(requests: Sequence[_QuotedRequest], room: int) -> int:
    """Return how many requests after the first find no room, even if each is cut to the least."""
    size, spare = sum(min(len(request.text), _MIN_REQUEST_CHARS) for request in requests), 0
    while spare < len(requests) - 2 and size > room:
        size -= min(len(requests[1 + spare].text), _MIN_REQUEST_CHARS)
        spare += 1
    return spare


def _level_requests(requests: Sequence[_QuotedRequest], room: int) -> list[str]:
    whole = [request.render_cut(len(request.text)) for request in requests]
    if sum(map(len, whole)) <= room:
        return whole
    sizes = [len(request.text) for request in requests]
    notice = 55 if any(request.where == _SEARCH_HINT for request in requests) else 40
    limit = compute_cut_length((size + notice for size in sizes), room) - notice
    return [request.render_cut(max(limit, _MIN_REQUEST_CHARS)) for request in requests]


def parse_earlier_summary(summary: Summary | str | None) -> Summary:
    """Return the fields of an earlier summary of any form."""
    if summary is None:
        return Summary()
    return parse_summary(summary) if isinstance(summary, str) else summary


class SummaryFolders(NamedTuple):
    """The folders that relative paths are relative to."""

    cwd: str
    """That of the summary: the session's, from now on."""
    of_entry: Mapping[str, str] = {}
    """Of entries, by id, where it is another one."""

    def rename(self, path: str, folder: str) -> str:
        """Return a path that is relative to a folder as the summary names it."""
        return shorten_path(posixpath.join(folder or self.cwd, path), self.cwd)


def collect_files(
    entries: Iterable[Entry], folders: SummaryFolders, previous: Summary | str | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the files that successful calls read, and those that calls changed.

    What results recorded as changed counts, also of commands, else what the arguments say. Paths
    inside the folder of the summary are relative to it. A changed file is not among those read.
    Each appears once, where it was used last; above MAX_FILES a last line says how many are left
    out.
    """
    earlier = parse_earlier_summary(previous)
    read, more_read = _parse_file_names(earlier.files_read, folders)
    changed, more_changed = _parse_file_names(earlier.files_changed, folders)
    calls: dict[str, tuple[ToolCall, Raw]] = {}
    for entry in entries:
        data = entry.data
        if isinstance(data, Assistant):
            calls.update((call.id, (call, NO_JSON)) for call in select_tool_calls(data.content))
        elif isinstance(data, ToolStart) and data.call_id in calls:
            calls[data.call_id] = (calls[data.call_id][0], data.args)
        elif isinstance(data, ToolResult) and data.call_id in calls:
            call, ran = calls.pop(data.call_id)
            folder = folders.of_entry.get(entry.id, "")
            uses = () if data.is_error else parse_file_calls(call, ran)
            used = [(use.path, read) for use in uses if isinstance(use.work, FileRead)]
            recorded = [path for file in data.files for path in (file.source, file.path) if path]
            named = [use.path for use in uses if not isinstance(use.work, FileRead)]
            used += [(path, changed) for path in recorded or named]
            for name, names in used:
                path = folders.rename(name, folder)
                names.pop(path, None)
                names[path] = None
    read = {path: None for path in read if path not in changed}
    return _keep_newest_files([*read], more_read), _keep_newest_files([*changed], more_changed)


def _parse_file_names(names: Iterable[str], folders: SummaryFolders) -> tuple[dict[str, None], int]:
    """Return the names in an earlier summary, and the number of those it left out."""
    rests = {name: _MORE_FILES_LINE.match(name) for name in names}
    more = sum(int(rest[1]) for rest in rests.values() if rest)
    return dict.fromkeys(folders.rename(name, "") for name, rest in rests.items() if not rest), more


def _keep_newest_files(names: Sequence[str], more: int) -> tuple[str, ...]:
    more += max(len(names) - MAX_FILES, 0)
    return (*names[-MAX_FILES:], *([f"… and {more} more"] if more else []))


def shorten_path(path: str, cwd: str) -> str:
    """Return a path relative to the folder `cwd` if it is inside, else absolute."""
    whole = posixpath.normpath(posixpath.join(cwd or ".", path))
    folder = posixpath.normpath(cwd) if cwd else ""
    if folder and whole.startswith(folder.rstrip("/") + "/"):
        return whole[len(folder.rstrip("/")) + 1 :]
    return whole
