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
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import BinaryIO

    FindLines = Callable[[list[str]], Iterator[tuple[int, int]]]

LARGE_BYTES = 4 * 1024 * 1024
"""A file above this is read in pieces, not whole."""
SAMPLE_BYTES = 4_100
"""Bytes at the beginning that show what kind a file is."""
PIECE_BYTES = 1024 * 1024
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
    """Whole lines of a file, one after the other."""

    data: bytes
    """The lines in UTF-8 with their ends, or bytes of a binary file; never empty."""
    is_binary: bool
    """Whether there were zero bytes up to here; they end lines, as in other search programs."""


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
    is_binary, waiting = False, list[bytes]()
    while piece:
        following = file.read(PIECE_BYTES)
        data = decoder.decode(piece, not following).encode() if decoder else piece
        if is_binary := is_binary or b"\0" in data:
            data = data.replace(b"\0", b"\n")
        end = data.rfind(b"\n") + 1 if following else len(data)
        waiting.append(data[:end] if end else data)
        if (end or not following) and (batch := b"".join(waiting)):
            yield LineBatch(batch, is_binary)
        if end:
            waiting = [data[end:]]
        piece = following


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
    for data, is_binary in batches:
        if matches and is_binary:
            break
        if needle in data:
            wanted_lines = islice(find(split_lines(data)), most - len(matches))
            matches += [(before + number, at) for number, at in wanted_lines]
            if matches and (is_binary or len(matches) == most):
                break
        before += data.count(b"\n")
    return FileMatches(matches, is_binary)


def find_lines(pattern: re.Pattern[str], lines: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield the number of each line that matches, from 1, and where the match begins, from 0."""
    search = pattern.search
    for number, line in enumerate(lines, 1):
        if match := search(line):
            yield number, match.start()


def read_lines(path: str, numbers: Iterable[int], root: str | None = None) -> dict[int, str]:
    """Return those lines of a text file that are there, by their numbers from 1."""
    pending = sorted(numbers, reverse=True)
    texts: dict[int, str] = {}
    before = 0
    for data, is_binary in read_batches(path, root):
        if is_binary:
            return {}
        ends = before + data.count(b"\n") + (not data.endswith(b"\n"))
        if pending and pending[-1] <= ends:
            lines = split_lines(data)
            while pending and pending[-1] <= ends:
                number = pending.pop()
                texts[number] = lines[number - before - 1]
        if not pending:
            break
        before = ends
    return texts


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


def _find_in_time(pattern: re.Pattern[str], lines: list[str]) -> Iterator[tuple[int, int]]:
    try:
        for start in range(0, len(lines), BATCH_LINES):
            signal.setitimer(signal.ITIMER_VIRTUAL, PROCESSOR_SECONDS)
            for number, at in find_lines(pattern, lines[start : start + BATCH_LINES]):
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
