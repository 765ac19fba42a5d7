"""Full-text search over all tapes: ranked in SQLite, excerpts from the lines themselves.

Invariant: of the transcripts only the lines of the returned hits are read. A hit whose line no
longer matches, because it was just redacted or changed on the disk, is left out; a change is
reported.

The words of a line are those that `tape.index.contents` extracts. A line as it is written is read
here, with few modules; whatever is not quite as expected (a header that the index does not know,
numbers and escapes that only some readers take) raises ValueError and is read by those modules.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import closing, suppress
from functools import partial
from hashlib import sha256
from math import isinf
from typing import TYPE_CHECKING, NamedTuple, Unpack

from ..clock import format_timestamp, parse_timestamp
from ..damage import warn_of_damage
from ..errors import Damaged, TapeError
from .full_text import (
    BYTES_OF_CHARACTER,
    LARGE_RESULT_CHARS,
    RESULT_CHARS,
    FoundPrompt,
    build_search,
    decode_start,
    find_hits,
    find_prompt_line,
    iter_argument_texts,
)
from .reader import is_caught_up, query_index_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from sqlite3 import Connection
    from typing import Any

    from ..store.packed import PackedTape
    from .full_text import RankedEntry, SearchFilter, Texts


class SearchMatch(NamedTuple):
    """One entry that a search found."""

    tape: str
    """32 hex digits."""
    title: str | None
    folder: str
    phase: str
    offset: int
    entry: str
    """40 hex digits."""
    n: int
    time: str
    """As on the tape: UTC with microseconds."""
    type: str
    branch: str | None
    """The branch its phase was written on."""
    snippet: str
    """The text around the match, in one line."""
    marks: tuple[tuple[int, int], ...]
    """Start and end, in characters of the snippet, of each match."""
    score: float
    """The higher, the better the match."""
    prompt: FoundPrompt | None = None
    """The prompt that led to it, where it is not one itself."""
    cwd: str = ""
    """Where its tape works; what follows is of the tape too."""
    repository: str | None = None
    person: str | None = None
    machine: str | None = None
    agent: str | None = None


_READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_INT64_DIGITS = 18
"""Most digits of an integer that certainly fits into 64 bits."""


def search_caught_up(
    home: str, query: str, limit: int, **narrow: Unpack[SearchFilter]
) -> list[SearchMatch] | None:
    """Return what `find_matches` does, from the index of the store at `home`.

    None if the index has to catch up first, or to erase words of deleted entries.
    """
    expression, where = build_search(query, **narrow)

    def question(db: Connection) -> list[SearchMatch] | None:
        erases = db.execute("SELECT 1 FROM removed WHERE key > 0 LIMIT 1").fetchone()
        if erases or not is_caught_up(db, home):
            return None
        return find_matches(db, home, expression, where, limit)

    return query_index_file(home, question)


def find_matches(
    db: Connection,
    home: str,
    expression: str,
    narrow: tuple[str, Sequence[object]],
    limit: int,
) -> list[SearchMatch]:
    """Return the best matches of an FTS5 expression, newer first among equals, each entry once.

    `home` is the folder of the store, and `narrow` more of a WHERE clause with its values, as
    `build_filter` gives them.
    """
    with closing(_LineReader(home)) as lines:
        hits = find_hits(
            *(db, expression, narrow, limit),
            lambda hit, may_match: _read_hit_texts(lines, hit, may_match),
        )
        return [
            SearchMatch(
                *(hit.tape, hit.title, hit.folder, hit.phase, hit.offset, hit.entry, hit.n),
                *(format_timestamp(hit.time), hit.type, hit.branch, text, marks, hit.score),
                *(_read_prompt(db, lines, hit), hit.cwd, hit.repository, hit.person),
                *(hit.machine, hit.agent),
            )
            for hit, text, marks in hits
        ]


def _read_hit_texts(
    lines: _LineReader, hit: RankedEntry, may_match: Callable[[bytes], bool]
) -> Texts | None:
    """Return the texts of a hit from its line; None if it changed, or `may_match` is False for it.

    A line that was just redacted or moved is left out silently; one that changed on the disk gives
    a DamageWarning.
    """
    try:
        line = lines.read(hit)
    except OSError:  # it was just moved or deleted
        return None
    load = None
    if b'"$blob":"' in line and hit.type == "tool.result":  # its words need not be in the line
        load, may_match = partial(lines.read_blob_start, hit.folder), lambda _: True
    try:
        return extract_texts(line, hit, may_match, load)
    except ValueError:
        return _extract_unusual_texts(line, hit, may_match, load)


def _extract_unusual_texts(
    line: bytes,
    hit: RankedEntry,
    may_match: Callable[[bytes], bool],
    load: Callable[[str, int], str] | None,
) -> Texts | None:
    from ..model.line import (  # most lines are as expected
        has_valid_data,
        is_redaction_begun,
        read_header,
    )
    from ..store.path import FSCK_ADVICE
    from .contents import extract_contents

    try:
        header = read_header(line)
        if header.id != hit.entry:
            raise Damaged("another entry is there")
        if not has_valid_data(line, header) and not is_redaction_begun(line, header):
            raise Damaged("its data does not match its hash")
    except TapeError as error:
        place = f"{hit.tape[:8]} {hit.phase}: line at byte {hit.offset} skipped"
        warn_of_damage(f"{place}: entry {hit.entry[:12]}: {error}; {FSCK_ADVICE}")
        return None
    return extract_contents(header, line, load).words if may_match(line) else None


def extract_texts(
    line: bytes,
    hit: RankedEntry,
    may_match: Callable[[bytes], bool] = lambda _: True,
    load: Callable[[str, int], str] | None = None,
) -> Texts | None:
    """Return the texts said, called and answered in the line (without newline) of a hit.

    `load` returns the beginning of a blob, as for `contents.extract_contents`. None if the line is
    as it was indexed, and `may_match` is False for it. Raises ValueError if it is not the line in
    the index, or has an unexpected shape.
    """
    cut = line.find(b',"data":', 49)
    hashes = sha256(line[49:cut]).hexdigest()[:40], sha256(line[cut + 8 : -1]).hexdigest()[:32]
    if hashes != (line[7:47].decode("latin-1"), line[cut - 33 : cut - 1].decode("latin-1")):
        raise ValueError("its hashes do not hold")
    if not may_match(line) and line[7:47].decode("latin-1") == hit.entry:
        return None
    if _SURROGATE.search(line):
        raise ValueError("may not be well-formed text")
    try:
        entry = _STRICT_JSON.decode(line.decode())
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    match entry:
        case {
            "v": 1,
            "id": hit.entry,
            "n": hit.n,
            "type": hit.type,
            "time": str(time),
            "data": dict(data),
        } if parse_timestamp(time) == hit.time:
            texts = _split_texts_by_source(hit.type, data.get("content", ""))
            if hit.type == "tool.result" and (whole := _join_whole_result(data, load)):
                texts = ("", "", f"{texts[2]}\n{whole}" if texts[2] else whole)
            return texts
    raise ValueError("not the line that was indexed")


def _split_texts_by_source(kind: str, content: object) -> Texts:
    blocks = content if isinstance(content, list) else [{"text": content}]
    for block in blocks:
        if not isinstance(block, dict) or not all(
            isinstance(block.get(key, ""), str) for key in ("type", "id", "name")
        ):
            raise ValueError("not the blocks of a message")
    match kind:
        case "user" | "context":
            return _join_block_texts(blocks), "", ""
        case "assistant":
            return _join_block_texts(blocks), "\n".join(_iter_call_texts(blocks)), ""
        case "tool.result":
            return "", "", _join_block_texts(blocks, RESULT_CHARS)
    raise ValueError("an entry of this type has no words")


def _join_whole_result(data: dict[str, Any], load: Callable[[str, int], str] | None) -> str:
    """Return the text of a result that is kept beside it."""
    content = data.get("content", "")
    blocks = content if isinstance(content, list) else [{"text": content}]
    blobs = [block["text"] for block in blocks if isinstance(block.get("text"), dict)]
    full_texts, room = list[str](), LARGE_RESULT_CHARS
    for text in (*blobs, data.get("full")):
        match text:
            case None:
                whole = ""
            case str():
                whole = text
            case {"$blob": str(digest), "bytes": int()}:
                whole = load(digest, room) if load else ""
            case _:
                raise ValueError("neither a text nor a blob")
        if room and whole:
            full_texts.append(whole[:room])
            room -= len(full_texts[-1])
    return "\n".join(full_texts)


def _join_block_texts(blocks: list[dict[str, Any]], limit: int | None = None) -> str:
    heads = [_get_text_or_head(block.get("text", "")) for block in blocks]
    parts = zip(blocks, heads, strict=True)
    return "\n".join([text[:limit] for b, text in parts if text and b.get("type") != "thinking"])


def _iter_call_texts(blocks: list[dict[str, Any]]) -> Iterator[str]:
    for block in blocks:
        if block.get("type") == "tool_call":
            yield block.get("name", "")
            text = block.get("args_text")
            yield from iter_argument_texts(
                block.get("args") if text is None else _get_text_or_head(text)
            )


def _get_text_or_head(text: object) -> str:
    """Return a text, or for a blob the beginning in its reference."""
    match text:
        case str():
            return text
        case {"$blob": str(), "bytes": int(), "head": str(head)}:
            return head
    raise ValueError("neither a text nor a blob")


def _parse_int64(number: str) -> int:
    if len(number) > _INT64_DIGITS or number == "-0":
        raise ValueError("not a number of 64 bits")
    return int(number)


def _parse_finite(number: str) -> float:
    value = float(number)
    if isinf(value):
        raise ValueError("not a number of 64 bits")
    return value


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


_STRICT_JSON = json.JSONDecoder(
    parse_int=_parse_int64, parse_float=_parse_finite, parse_constant=_refuse_constant
)


def extract_prompt_text(line: bytes, entry: str) -> str:
    """Return what the prompt in a line (without newline) says; raise ValueError if it changed."""
    cut = line.find(b',"data":', 49)
    is_whole = sha256(line[cut + 8 : -1]).hexdigest()[:32] == line[cut - 33 : cut - 1].decode()
    if line[7:47].decode() != entry or not is_whole:
        raise ValueError("not the line that was indexed")
    content = json.loads(line)["data"].get("content", "")
    blocks = content if isinstance(content, list) else [{"text": content}]
    blocks_of_text = [block.get("text", "") for block in blocks if isinstance(block, dict)]
    return " ".join(" ".join(map(_get_text_or_head, blocks_of_text)).split())


def _read_prompt(db: Connection, lines: _LineReader, hit: RankedEntry) -> FoundPrompt | None:
    """Return the prompt that led to a hit; None where it is unknown, redacted or damaged."""
    prompt_line = find_prompt_line(db, hit)
    if prompt_line is None:
        return None
    entry, offset, length = prompt_line
    with suppress(ValueError, OSError):
        line = lines.read(hit._replace(offset=offset, length=length))
        return FoundPrompt(entry, extract_prompt_text(line, entry))
    return None


class _LineReader:
    """Reads lines of hits; the last phase stays open, as many hits may be in it."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._phase: tuple[str, str] | None = None
        self._fd = -1
        self._archive: PackedTape | None = None

    def read(self, hit: RankedEntry) -> bytes:
        """Return the bytes at the place of a hit."""
        archive = self._archive
        if archive is not None and archive.name == hit.folder and not archive.is_deleted():
            return archive.read(_build_phase_path(hit.phase), hit.offset, hit.length)
        if self._phase != (hit.folder, hit.phase):
            self.close()
            try:
                self._fd = _open_phase(self._home, hit)
            except (FileNotFoundError, NotADirectoryError):
                archive = self._open_archive(hit.folder)
                return archive.read(_build_phase_path(hit.phase), hit.offset, hit.length)
            self._phase = hit.folder, hit.phase
        return os.pread(self._fd, hit.length, hit.offset)

    def _open_archive(self, folder: str) -> PackedTape:
        """Open an archived tape, which stays open; raise FileNotFoundError, or another OSError."""
        from ..store.disk import Folder  # most tapes are folders
        from ..store.packed import PackedTape

        if self._archive is not None:
            self._archive.close()
            self._archive = None
        try:
            with Folder.open(os.path.join(self._home, "tapes")) as tapes:
                self._archive = PackedTape.open(tapes, folder)
        except TapeError as error:
            raise OSError(str(error)) from error
        return self._archive

    def read_blob_start(self, folder: str, digest: str, limit: int) -> str:
        """Return the first characters of a blob of a tape; none if it is missing."""
        if not digest.isalnum():
            return ""
        path = os.path.join(self._home, "tapes", folder, "blobs", digest[:2], digest)
        size = limit * BYTES_OF_CHARACTER
        archive = self._archive
        if archive is not None and archive.name == folder:
            with suppress(OSError):
                return decode_start(archive.read(f"blobs/{digest[:2]}/{digest}", 0, size), limit)
            return ""
        try:
            fd = os.open(path, _READ_FLAGS)
        except (OSError, ValueError):
            return ""
        try:
            return decode_start(os.pread(fd, size, 0), limit)
        finally:
            os.close(fd)

    def close(self) -> None:
        if self._phase is not None:
            os.close(self._fd)
            self._phase = None
        if self._archive is not None:
            self._archive.close()
            self._archive = None


def _build_phase_path(phase: str) -> str:
    return f"phases/{phase}/entries.jsonl"


def _open_phase(home: str, hit: RankedEntry) -> int:
    path = os.path.join(home, "tapes", hit.folder, "phases", hit.phase, "entries.jsonl")
    return os.open(path, _READ_FLAGS)
