r"""Lines of files that match a pattern; as a program, so that a pattern can be ended.

Python's regular expressions may work on one line for ever and let nothing else run meanwhile. Here
the system ends the program when it does. Run as a file it is given a pattern and the folder that
the files are below, or nothing, and reads paths from standard input, each ended by a zero byte; it
writes a line "PATH LINE START" for each match of a file, up to a limit, all as numbers: of a
path from 0, and of the first character of the match from 0. LINE is 0 for a binary file with a
match; one in which the pattern takes too long is left out:

    scanner.py [-i] 9 /root 'a+b'   <  "/root/x\0/root/y\0"   >  "1 3 0\n1 7 4\n"   (y, lines 3, 7)

It imports none of our rooms, so that it begins at once. The package `regex`, whose search takes a
time limit, was measured and not taken: on 200,000 lines it takes 0.77 s and with the limit 1.7 s,
where `re` takes 0.15 s, and it reads patterns and words errors differently.
"""

from __future__ import annotations

import codecs
import os
import re
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import BinaryIO

    FindLines = Callable[[list[str], int], Iterator[tuple[int, int]]]

LARGE_BYTES = 4 * 1024 * 1024
"""A file above this is read in pieces, not whole."""
SAMPLE_BYTES = 4_100
"""Bytes at the beginning that show what kind a file is."""
PIECE_BYTES = 1024 * 1024
LINE_BYTES = 4 * 1024 * 1024
"""A line above this is searched in parts; one match is found where it is within a part."""
OVERLAP_BYTES = 64 * 1024
"""How much of a part the next one begins with."""
SHOWN_CHARACTERS = 256 * 1024
"""Characters of a longer line that are read on each side of its match."""
PROCESSOR_SECONDS = 1.0
"""What BATCH lines may take, of the processor."""
BATCH_LINES = 4096
TIMEOUT_SIGNAL = signal.SIGVTALRM
"""The signal that ends the program when they take more."""
IGNORE_CASE = "-i"

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def open_below(root: str, path: str, flags: int) -> int:
    """Return a descriptor of what is at `path`; both are real paths, and a link raises OSError.

    Folders are opened one by one from `root`, so that no link put there meanwhile leads out.
    """
    folder = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    at = os.open(root, folder)
    *folders, last = path[len(root) :].strip("/").split("/")
    if not last:
        return at
    for name, kind in (*((part, folder) for part in folders), (last, flags)):
        try:
            child_fd = os.open(name, kind | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
        finally:
            os.close(at)
        at = child_fd
    return at


def open_at_once(path: str, flags: int) -> int:
    """Return a descriptor; a pipe that nobody writes to is not waited for."""
    return os.open(path, flags | os.O_NONBLOCK)


class LineBatch(NamedTuple):
    """Lines of a file, one after the other; of a very long one a part."""

    data: bytes
    """The lines in UTF-8 with their ends, or bytes of a binary file; never empty."""
    is_binary: bool
    """Whether there were zero bytes up to here; they end lines, as in other search programs."""
    skipped: int = 0
    """Characters of the first line that came before, in batches with parts of it."""
    is_cut: bool = False
    """Whether its last line, a very long one, continues in the next batch."""


def read_batches(path: str, root: str | None = None) -> Iterator[LineBatch]:
    """Yield the lines of a file in order; of one above LARGE_BYTES a batch is in memory at once.

    Nothing of an empty or a closed file. With `root` no link below it is followed.
    """
    try:
        with open(path, "rb", opener=partial(open_below, root) if root else open_at_once) as file:
            yield from _read_open_file(file)
    except OSError:
        return


def _read_open_file(file: BinaryIO) -> Iterator[LineBatch]:
    sample = file.read(SAMPLE_BYTES)
    decoder = None
    if sample.startswith(_UTF_16):
        decoder = codecs.getincrementaldecoder("utf-16")("replace")
    piece = sample.removeprefix(codecs.BOM_UTF8) + file.read(LARGE_BYTES - len(sample))
    is_binary, waiting, skipped = False, list[bytes](), 0
    while piece:
        following = file.read(PIECE_BYTES)
        data = decoder.decode(piece, not following).encode() if decoder else piece
        if is_binary := is_binary or b"\0" in data:
            data = data.replace(b"\0", b"\n")
        end = data.rfind(b"\n") + 1 if following else len(data)
        waiting.append(data[:end] if end else data)
        if (end or not following) and (batch := b"".join(waiting)):
            yield LineBatch(batch, is_binary, skipped)
        if end:
            waiting, skipped = [data[end:]], 0
        elif sum(map(len, waiting)) >= LINE_BYTES:
            batch, waiting = b"".join(waiting), []
            stop = _find_character_start(batch, len(batch))
            yield LineBatch(batch[:stop], is_binary, skipped, is_cut=True)
            start = _find_character_start(batch, stop - OVERLAP_BYTES)
            skipped += len(batch[:start].decode("utf-8", "surrogateescape"))
            waiting = [batch[start:]]
        piece = following


_MAX_CHARACTER = 4
"""Bytes of UTF-8 that one character has at most."""


def is_text_with_zeros(path: str, root: str | None = None) -> bool:
    """Return whether a file begins as text in UTF-8, but for zero bytes; a picture does not."""
    try:
        with open(path, "rb", opener=partial(open_below, root) if root else open_at_once) as file:
            codecs.utf_8_decode(file.read(SAMPLE_BYTES), "strict", False)
    except (OSError, UnicodeDecodeError):
        return False
    return True


def _find_character_start(data: bytes, at: int) -> int:
    """Return where the character that ends at or behind `at` begins, `at` if one ends there."""
    for start in range(at - 1, max(at - _MAX_CHARACTER, 0), -1):
        if data[start] < 0x80:  # noqa: PLR2004 (ASCII)
            return at
        if data[start] >= 0xC0:  # noqa: PLR2004 (the first byte of several)
            length = 2 + (data[start] >= 0xE0) + (data[start] >= 0xF0)  # noqa: PLR2004 (as above)
            return at if start + length <= at else start
    return at


def split_text_lines(data: bytes) -> list[str]:
    """Return the lines of a file without their ends; none of a binary one."""
    if data.startswith(_UTF_16):
        data = data.decode("utf-16", "replace").encode()
    return [] if b"\0" in data else split_lines(data.removeprefix(codecs.BOM_UTF8))


def split_lines(data: bytes) -> list[str]:
    """Return lines without their ends."""
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines] if b"\r" in data else lines


class FileMatches(NamedTuple):
    """Lines of a file that match."""

    lines: list[tuple[int, int]]
    """The number of each from 1, and where its first match begins, in characters from 0."""
    is_binary: bool
    """Whether there were zero bytes, as far as it was read."""


def find_matches(
    batches: Iterable[LineBatch], find: FindLines, most: int, needle: bytes = b""
) -> FileMatches:
    """Return at most `most` lines of a file; those that match hold `needle`."""
    matches: list[tuple[int, int]] = []
    before, is_binary = 0, False
    for data, is_binary, skipped, _ in batches:
        if matches and is_binary:
            break
        if needle in data:
            for number, at in find(split_lines(data), skipped):
                if not (matches and before + number == matches[-1][0]):  # its first match counts
                    matches.append((before + number, at))
                if len(matches) == most:
                    break
            if matches and (is_binary or len(matches) == most):
                break
        before += data.count(b"\n")
    return FileMatches(matches, is_binary)


def find_lines(
    pattern: re.Pattern[str], lines: Iterable[str], skipped: int = 0
) -> Iterator[tuple[int, int]]:
    """Yield the number of each line that matches, from 1, and where the match begins, from 0.

    Of the first line `skipped` characters came before: its beginning is none.
    """
    search, start = pattern.search, 1 if skipped else 0
    for number, line in enumerate(lines, 1):
        if match := search(line, start):
            yield number, match.start() + skipped
        start = skipped = 0


class LinePart(NamedTuple):
    """A line, or of a very long one what is around a place in it."""

    text: str
    start: int = 0
    """Characters of the line before it."""
    has_more: bool = False
    """Whether the line continues after it."""


def read_lines(
    path: str, starts: Mapping[int, int], root: str | None = None
) -> dict[int, LinePart]:
    """Return those lines of a text file that are there, by their numbers from 1.

    `starts` has for each number the character from 0 that is to be in what is returned of it.
    """
    pending = sorted(starts, reverse=True)
    parts: dict[int, LinePart] = {}
    before = 0
    for data, is_binary, skipped, is_cut in read_batches(path, root):
        if is_binary:
            return {}
        lines = before + data.count(b"\n")
        ends = lines + (not data.endswith(b"\n"))
        if pending and pending[-1] <= ends:
            texts = split_lines(data)
            while pending and (number := pending[-1]) <= ends:
                text, first = texts[number - before - 1], skipped if number == before + 1 else 0
                at, continues = starts[number] - first, is_cut and number == ends
                parts[number] = _cut_line(text, first, at, continues=continues)
                if continues and at >= len(text):
                    break  # the place is in a later part of this line
                pending.pop()
        if not pending:
            break
        before = lines
    return parts


def _cut_line(text: str, skipped: int, at: int, *, continues: bool) -> LinePart:
    """Return a line, or of a long one what is around the character `at` of `text`."""
    start = max(min(at, len(text)) - SHOWN_CHARACTERS, 0)
    end = max(at, 0) + SHOWN_CHARACTERS
    return LinePart(text[start:end], skipped + start, continues or end < len(text))


def main() -> None:
    """Search the files that standard input names."""
    *flags, most, root, source = sys.argv[1:]
    ignore_case = re.IGNORECASE if IGNORE_CASE in flags else re.NOFLAG
    find = partial(_find_in_time, re.compile(decode_pattern(source), ignore_case))
    paths = sys.stdin.buffer.read().split(b"\0")[:-1]
    for index, name in enumerate(paths):
        batches = _limit_time(read_batches(name.decode("utf-8", "surrogateescape"), root))
        try:
            places, is_binary = find_matches(batches, find, int(most))
        except TimeoutError:
            continue
        if is_binary:
            places = [(0, 0)] if places else []
        sys.stdout.write("".join(f"{index} {number} {at}\n" for number, at in places))
        sys.stdout.flush()


def _limit_time(batches: Iterable[LineBatch]) -> Iterator[LineBatch]:
    """Yield batches; too much time in a line ends the program, in a binary file that file alone."""
    for batch in batches:
        signal.signal(TIMEOUT_SIGNAL, _stop_match if batch.is_binary else signal.SIG_DFL)
        yield batch


def _stop_match(*_: object) -> None:
    raise TimeoutError


def _find_in_time(
    pattern: re.Pattern[str], lines: list[str], skipped: int
) -> Iterator[tuple[int, int]]:
    try:
        for start in range(0, len(lines), BATCH_LINES):
            signal.setitimer(signal.ITIMER_VIRTUAL, PROCESSOR_SECONDS)
            first = 0 if start else skipped
            for number, at in find_lines(pattern, lines[start : start + BATCH_LINES], first):
                yield start + number, at
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def encode_pattern(pattern: str) -> str:
    """Return any pattern as an argument of the program."""
    return pattern.encode("unicode_escape").decode("ascii")


def decode_pattern(argument: str) -> str:
    """Return the pattern that was packed."""
    return argument.encode("ascii").decode("unicode_escape")


if __name__ == "__main__":
    main()
