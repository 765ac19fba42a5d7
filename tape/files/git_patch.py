"""Two versions of a file → a patch as git writes it, for people and for `git apply`; pure.

    before  after   lines of the patch
    –       file    new file mode, all lines added
    file    –       deleted file mode, all lines removed
    file    file    old mode, new mode; rename from, rename to; the hunks: what of it applies
    file    link    a deleted file, then a new one: as git does

A line ends at a newline and nowhere else, and a last line without one is marked. A file with a NUL
byte near its beginning is binary, as for git: its patch is one sentence, or its bytes.
"""

from __future__ import annotations

import stat
import zlib
from base64 import b85encode
from difflib import SequenceMatcher
from hashlib import sha1
from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple

from ..text import replace_surrogates

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

CONTEXT_LINES = 3
"""Unchanged lines around a change."""
COMPARED_LINES = 4_000
"""Longer spans are compared change by change: comparing them whole costs their square."""
AGREEING_LINES = 3
"""As many lines the same in both end a change, in a long span."""
LOOKED_AHEAD = (16, 256, 4_096)
"""How far behind the start of a change its end is looked for, in lines, a little first."""
REGULAR_MODE = "100644"
"""The mode of a file where none is known."""
NO_NEWLINE = b"\\ No newline at end of file\n"
_LINK_MODE = "120000"
_BINARY_BYTES = 8_000
"""How much of a file git looks through for a NUL byte."""
_BINARY_LINE = 52
"""Compressed bytes in one line of a binary patch."""
_SHORT_HASH = 7

Opcode = tuple[str, int, int, int, int]
"""What becomes of a span of lines, as difflib says it: tag, and start and end in old and new."""


class PatchSide(NamedTuple):
    """A file at one moment."""

    path: str
    data: bytes
    """Its content; of a link the target."""
    mode: str = REGULAR_MODE
    """Kind and permissions, six octal digits: 100644, 100600, 120777."""

    @property
    def git_mode(self) -> str:
        """The mode as git knows it: 100644, 100755 or 120000."""
        try:
            bits = int(self.mode, 8)
        except ValueError:  # another program's
            return REGULAR_MODE
        if stat.S_ISLNK(bits):
            return _LINK_MODE
        return "100755" if bits & stat.S_IXUSR else REGULAR_MODE


def is_binary(data: bytes) -> bool:
    """Return whether git takes a file for binary."""
    return b"\0" in data[:_BINARY_BYTES]


def build_patch(
    before: PatchSide | None, after: PatchSide | None, *, with_bytes: bool = False
) -> list[bytes]:
    """Return the lines of the patch that turns one version of a file into another.

    Each ends with a newline; no lines where nothing changed. Binary files are named in one line,
    or `with_bytes` given so that `git apply` can take them.
    """
    if before is None or after is None:
        return [] if before is after else list(_build_section(before, after, with_bytes))
    modes = before.git_mode, after.git_mode
    if modes[0] != modes[1] and _LINK_MODE in modes:
        gone = _build_section(before, None, with_bytes)
        return [*gone, *_build_section(None, after, with_bytes)]
    if modes[0] == modes[1] and before[:2] == after[:2]:
        return []
    return list(_build_section(before, after, with_bytes))


def _build_section(
    before: PatchSide | None, after: PatchSide | None, with_bytes: bool
) -> Iterator[bytes]:
    """Yield the patch of one file, headers first."""
    first, two = before or after, after or before
    assert first is not None
    assert two is not None
    yield b"diff --git %b %b\n" % (quote_path(f"a/{first.path}"), quote_path(f"b/{two.path}"))
    old, new = before.data if before else b"", after.data if after else b""
    yield from _build_mode_lines(before, after)
    if first.path != two.path:
        yield b"rename from %b\nrename to %b\n" % (quote_path(first.path), quote_path(two.path))
    if old == new and before and after:
        return
    hashes = [_hash_version(before), _hash_version(after)]
    mode = b" " + first.git_mode.encode() if before and first.git_mode == two.git_mode else b""
    if before is None or after is None:
        mode = b""
    binary = is_binary(old) or is_binary(new)
    digits = None if binary and with_bytes else _SHORT_HASH
    yield b"index %b..%b%b\n" % (hashes[0][:digits], hashes[1][:digits], mode)
    if old == new:  # an empty file that came or went
        return
    names = (
        quote_path(f"a/{first.path}") if before else b"/dev/null",
        quote_path(f"b/{two.path}") if after else b"/dev/null",
    )
    if binary and with_bytes:
        yield b"GIT binary patch\n"
        yield from _encode_binary(new)
        yield from _encode_binary(old)
    elif binary:
        yield b"Binary files %b and %b differ\n" % names
    else:
        ends = [b"\t" if b" " in name else b"" for name in names]  # else the name might end there
        yield b"--- %b%b\n+++ %b%b\n" % (names[0], ends[0], names[1], ends[1])
        yield from build_hunks(old, new)


def _build_mode_lines(before: PatchSide | None, after: PatchSide | None) -> Iterator[bytes]:
    if before is None and after is not None:
        yield b"new file mode %b\n" % after.git_mode.encode()
    elif after is None and before is not None:
        yield b"deleted file mode %b\n" % before.git_mode.encode()
    elif before and after and before.git_mode != after.git_mode:
        modes = before.git_mode.encode(), after.git_mode.encode()
        yield b"old mode %b\nnew mode %b\n" % modes


def quote_path(path: str) -> bytes:
    """Return a path as git writes it in a patch: quoted where it holds what would end it.

    Bytes that are no UTF-8 are octal, as `os.fsdecode` gives them.
    """
    try:
        raw = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raw = replace_surrogates(path).encode()
    try:
        raw.decode()
        odd = any(byte in _QUOTED for byte in raw)
    except UnicodeDecodeError:
        odd = True
    if not odd:
        return raw
    return b'"%b"' % b"".join(map(_quote_byte, raw))


_QUOTED = bytes(range(0x20)) + b'\x7f"\\'
_ESCAPES = dict(zip(b'\a\b\t\n\v\f\r"\\', b'abtnvfr"\\', strict=True))


def _quote_byte(byte: int) -> bytes:
    if byte in _ESCAPES:
        return b"\\%c" % _ESCAPES[byte]
    return b"%c" % byte if 0x20 <= byte < 0x7F else b"\\%03o" % byte  # noqa: PLR2004 (printable)


def _hash_version(version: PatchSide | None) -> bytes:
    """Return the id that git gives a file, 40 hex digits; zeros for no file."""
    if version is None:
        return b"0" * 40
    data = b"blob %d\0%b" % (len(version.data), version.data)
    return sha1(data, usedforsecurity=False).hexdigest().encode()


def _encode_binary(data: bytes) -> Iterator[bytes]:
    """Yield bytes as a binary patch holds them: deflated, in lines of base 85."""
    yield b"literal %d\n" % len(data)
    packed = zlib.compress(data)
    for at in range(0, len(packed), _BINARY_LINE):
        part = packed[at : at + _BINARY_LINE]
        size = len(part)
        letter = size + 64 if size <= 26 else size + 70  # noqa: PLR2004 (A to Z, then a to z)
        yield b"%c%b\n" % (letter, b85encode(part, pad=True))
    yield b"\n"


def build_hunks(before: bytes, after: bytes) -> Iterator[bytes]:
    """Yield the hunks that turn one text into another, line by line, each ending in a newline."""
    old, new = BytesIO(before).readlines(), BytesIO(after).readlines()
    for group in _group_opcodes(_compare_trimmed(old, new)):
        first, last = group[0], group[-1]
        ranges = _format_range(first[1], last[2]), _format_range(first[3], last[4])
        yield b"@@ -%b +%b @@\n" % ranges
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                yield from _mark_lines(b" ", old[old_start:old_end])
            else:
                yield from _mark_lines(b"-", old[old_start:old_end])
                yield from _mark_lines(b"+", new[new_start:new_end])


def count_changed_lines(before: bytes, after: bytes) -> tuple[int, int] | None:
    """Return how many lines were added and removed; None where one version is binary."""
    if is_binary(before) or is_binary(after):
        return None
    changes = [
        opcode
        for opcode in _compare_trimmed(BytesIO(before).readlines(), BytesIO(after).readlines())
        if opcode[0] != "equal"
    ]
    return sum(opcode[4] - opcode[3] for opcode in changes), sum(
        opcode[2] - opcode[1] for opcode in changes
    )


def _mark_lines(sign: bytes, lines: Iterable[bytes]) -> Iterator[bytes]:
    for line in lines:
        if line.endswith(b"\n"):
            yield sign + line
        else:
            yield b"%b%b\n" % (sign, line)
            yield NO_NEWLINE


def _format_range(start: int, end: int) -> bytes:
    """Return a range of lines as a hunk's header gives it: counted from 1, an empty one before."""
    count = end - start
    if count == 1:
        return b"%d" % (start + 1)
    return b"%d,%d" % (start + (count > 0), count)


def _group_opcodes(opcodes: Sequence[Opcode]) -> Iterator[list[Opcode]]:
    """Yield the changes that are near each other, with the lines of context around them."""
    group: list[Opcode] = []
    for tag, i, i_end, j, j_end in opcodes:
        if tag != "equal":
            group.append((tag, i, i_end, j, j_end))
            continue
        same = i_end - i
        if group and same > 2 * CONTEXT_LINES:
            group.append(("equal", i, i + CONTEXT_LINES, j, j + CONTEXT_LINES))
            yield group
            group = []
        elif group:
            group.append(("equal", i, i_end, j, j_end))
            continue
        start = max(i, i_end - CONTEXT_LINES)
        group = [("equal", start, i_end, j_end - (i_end - start), j_end)]
    if any(opcode[0] != "equal" for opcode in group):
        if group[-1][0] == "equal":
            tag, i, i_end, j, j_end = group[-1]
            end = min(i_end, i + CONTEXT_LINES)
            group[-1] = (tag, i, end, j, j + end - i)
        yield group


def _compare_trimmed(old: Sequence[bytes], new: Sequence[bytes]) -> list[Opcode]:
    """Return what becomes of the lines, comparing only those between the first and last change."""
    top = count_equal_lines(old, new, 0, 0)
    bottom = count_equal_lines(old[top:][::-1], new[top:][::-1], 0, 0)
    ends = len(old) - bottom, len(new) - bottom
    middle = compare_lines(old[top : ends[0]], new[top : ends[1]])
    moved = [(tag, i + top, i2 + top, j + top, j2 + top) for tag, i, i2, j, j2 in middle]
    head: list[Opcode] = [("equal", 0, top, 0, top)] if top else []
    tail: list[Opcode] = [("equal", ends[0], len(old), ends[1], len(new))] if bottom else []
    return [*head, *moved, *tail]


def compare_lines(old: Sequence[bytes], new: Sequence[bytes]) -> list[Opcode]:
    """Return what becomes of the lines of one text in another, as difflib says it."""
    if len(old) + len(new) > COMPARED_LINES:
        return list(_compare_stepwise(old, new))
    return list(SequenceMatcher(None, old, new, autojunk=False).get_opcodes())


def _compare_stepwise(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[Opcode]:
    i = j = 0
    while True:
        same = count_equal_lines(old, new, i, j)
        if same:
            yield "equal", i, i + same, j, j + same
            i, j = i + same, j + same
        if i == len(old) and j == len(new):
            return
        old_end, new_end = _find_change_end(old, new, i, j)
        yield "replace", i, old_end, j, new_end
        i, j = old_end, new_end


def count_equal_lines(old: Sequence[bytes], new: Sequence[bytes], i: int, j: int) -> int:
    """Return how many lines from `i` and `j` on are the same in both."""
    most, same, step = min(len(old) - i, len(new) - j), 0, 1
    while same < most:
        step = min(step, most - same)
        if old[i + same : i + same + step] == new[j + same : j + same + step]:
            same, step = same + step, step * 2
        elif step == 1:
            break
        else:
            step = max(1, step // 4)
    return same


def _find_change_end(old: Sequence[bytes], new: Sequence[bytes], i: int, j: int) -> tuple[int, int]:
    """Return where lines agree again behind `i` and `j`; both ends where that is too far."""
    for ahead in LOOKED_AHEAD:
        places: dict[tuple[bytes, ...], int] = {}
        for place in range(j, min(j + ahead, len(new)) + 1):
            places.setdefault(tuple(new[place : place + AGREEING_LINES]), place)
        ends = [
            (old_end, new_end)
            for old_end in range(i, min(i + ahead, len(old)) + 1)
            if (new_end := places.get(tuple(old[old_end : old_end + AGREEING_LINES]))) is not None
        ]
        if ends:
            return min(ends, key=sum)
    return len(old), len(new)
