r"""What a helper is sent and what it answers: pure, and all of it that knows the form.

A request is one line of shell text that calls a function of `helper.sh`, before it the number of
its bodies, which follow as a line with their length and then that many characters of base64:

    1 put 7 '' '/srv/a b' none ''\n      a word is quoted, so no name is ever a word of the shell
    8\n
    aGVsbG8K

An answer is lines of at most 4 000 characters, `ID KIND …`; those of several requests are mixed:

    kind   rest            what it says
    -----  --------------  -------------------------------------------------------------
    o, e   NUMBER DATA     bytes of the output, or of the errors, numbered from 0
    zo,ze  NUMBER          the end of them, and how many lines there were
    p, e   PID / CODE      the command runs / its shell has ended (as `e` without data)
    s      0 STAT          state of a file: mode (hex), size, times, inode, names, owner
    k, n   INDEX [DATA]    the path of that number is there / is not, and why
    r      DATA            a path
    y, f                   yes, no
    l      DATA            a file that could not be put back
    x      DATA            failed, with the complaint of the program; nothing follows
    z                      done; nothing follows
    d                      what carried it out has ended; without a `z` or `x` before, it was killed

Whatever a helper says is data: a line of another form, a number out of order or an id of no request
makes the place unusable (`BrokenAnswer`), and nothing else.
"""

from __future__ import annotations

import errno
import os
import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from typing import TYPE_CHECKING, NamedTuple

from ...errors import PlaceLost

if TYPE_CHECKING:
    from collections.abc import Iterator

LINE_BYTES = 8192
"""No line of an answer is longer."""
INLINE_BYTES = 2048
"""A body up to this is part of the request's line."""
_ANSWER = rb"([0-9]{1,9}) (zo|ze|[oepsknryflxzd])(?: ([0-9]{1,12}))?(?: ?([A-Za-z0-9+/=.\- ]*))?"


class BrokenAnswer(PlaceLost):
    """What came is no answer of a helper; `what` it is instead."""

    def __init__(self, what: str) -> None:
        why = f"its helper does not answer as it should: {what}"
        super().__init__("the place", why, has_started=None)
        self.what = what


class RequestKilled(PlaceLost):
    """What carried a request out over there was killed: its answers stop, those of others do not.

    `number` is that of the request.
    """

    def __init__(self, place: str, number: int) -> None:
        super().__init__(place, "what carried it out there was killed", has_started=None)
        self.number = number


class AnswerLine(NamedTuple):
    """One line of an answer."""

    id: int
    kind: str
    number: int | None
    rest: bytes

    @property
    def data(self) -> bytes:
        """The bytes that it carries; BrokenAnswer where they are none."""
        try:
            return b64decode(self.rest, validate=True)
        except (NotBase64, ValueError):
            raise BrokenAnswer("bytes that are no base64") from None


def parse_answer(line: bytes) -> AnswerLine:
    """Return what a line says; BrokenAnswer where it is of no such form."""
    match = re.fullmatch(_ANSWER, line)
    if match is None:
        raise BrokenAnswer(f"a line that is no answer: {line[:60]!r}")
    number = None if match[3] is None else int(match[3])
    return AnswerLine(int(match[1]), match[2].decode(), number, match[4] or b"")


def quote_word(text: str | bytes) -> bytes:
    """Return any name as one word of a shell, in one line; ValueError for a zero byte."""
    data = os.fsencode(text)
    if b"\0" in data:
        raise ValueError("embedded null byte")
    data = data.replace(b"'", b"'\\''").replace(b"\n", b"'\"$n\"'")
    return b"'" + data + b"'"


def build_request(
    function: str,
    number: int,
    *words: str | bytes,
    bodies: tuple[bytes, ...] = (),
    prefix: bytes = b"",
) -> bytes:
    """Return the bytes of a request; `prefix` is shell text before the call, ended by `; `."""
    line = b" ".join((function.encode(), b"%d" % number, *map(quote_word, words)))
    encoded = [b64encode(body) for body in bodies]
    if sum(map(len, encoded)) <= INLINE_BYTES:
        inline = b"".join(b"B%d='%s'; " % (k, body) for k, body in enumerate(encoded, 1))
        return b"0 " + inline + prefix + line + b"\n"
    parts = [b"%d " % len(encoded) + prefix + line + b"\n"]
    parts += [b"%d\n%s" % (len(body), body) for body in encoded]
    return b"".join(parts)


def build_exports(variables: dict[str, str]) -> tuple[bytes, list[str]]:
    """Return shell text that sets variables, and `NAME=VALUE` of those whose name a shell refuses.

    A name with other bytes than letters, digits and `_` is set by `env`.
    """
    plain, others = b"", []
    for name, value in variables.items():
        if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name, re.ASCII):
            plain += name.encode() + b"=" + quote_word(value) + b"; export " + name.encode() + b"; "
        else:
            others.append(f"{name}={value}")
    return plain, others


class RemoteState(NamedTuple):
    """What `stat` says of a file."""

    mode: int
    size: int
    changed_ns: int
    status_ns: int
    inode: int
    names: int
    owner: int
    group: int

    @property
    def signature(self) -> tuple[int, int, int, int, int, int]:
        """What tells whether a file has changed, as `DiskFile` has it."""
        return self.size, self.changed_ns, self.status_ns, self.inode, self.mode, self.names


def parse_state(rest: bytes) -> RemoteState:
    """Return what the fields of `stat` say; BrokenAnswer for others."""
    fields = rest.split(b" ")
    match = re.fullmatch(rb"[0-9a-f]{1,8} [0-9]+( -?[0-9]+(\.[0-9]{1,9})?){2}( [0-9]+){4}", rest)
    if match is None or len(rest) > 200:  # noqa: PLR2004 (eight numbers)
        raise BrokenAnswer("a state of a file that is none")
    changed, status = (_parse_time(field) for field in fields[2:4])
    return RemoteState(int(fields[0], 16), int(fields[1]), changed, status, *map(int, fields[4:]))


def _parse_time(field: bytes) -> int:
    seconds, _, part = field.partition(b".")
    return int(seconds) * 10**9 + int(part.ljust(9, b"0") or b"0")


class FoundPath(NamedTuple):
    """A record of `walk`."""

    path: str
    """Relative to the folder."""
    state: RemoteState


def parse_records(data: bytes, nonce: str) -> Iterator[FoundPath]:
    """Yield what `walk` found, in its order; BrokenAnswer where a path leads elsewhere.

    A record begins with a word that no name of the place can hold, so a name may hold lines.
    """
    mark = b"@" + nonce.encode() + b" "
    if data and not (data.startswith(mark) and data.endswith(b"\n")):
        raise BrokenAnswer("a listing that is none")
    for record in data[:-1].split(b"\n" + mark) if data else ():
        fields = record.removeprefix(mark).split(b" ", 8)
        if len(fields) != 9 or not fields[8].startswith(b"./"):  # noqa: PLR2004 (eight and a name)
            raise BrokenAnswer("a listing that is none")
        path = fields[8][2:]
        if not path or any(part in (b"", b".", b"..") for part in path.split(b"/")):
            raise BrokenAnswer("a listing with a path that leads elsewhere")
        yield FoundPath(os.fsdecode(path), parse_state(b" ".join(fields[:8])))


_WORDS = {
    os.strerror(number): number
    for number in (
        *(errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR, errno.ELOOP),
        *(errno.EEXIST, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENAMETOOLONG, errno.EIO),
        *(errno.EBUSY, errno.EFBIG, errno.ENOTEMPTY, errno.ESTALE, errno.ETXTBSY, errno.EXDEV),
        *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINVAL, errno.EOPNOTSUPP),
    )
}
_WORDS |= {
    "Not a regular file": errno.EINVAL,
    "Symbolic link loop": errno.ELOOP,  # musl
    "Filename too long": errno.ENAMETOOLONG,
    "Directory nonexistent": errno.ENOENT,  # dash
    "Quota exceeded": errno.EDQUOT,
}
_MAX_WORDS = 200


def build_error(complaint: bytes, path: str) -> OSError:
    """Return the error that a program complained of, in words of its C locale."""
    lines = complaint.decode("utf-8", "replace").strip().split("\n")
    words = lines[-1].rpartition(": ")[2].strip()
    number = _WORDS.get(words)
    if number is None:
        words = "".join(c if c.isprintable() else "?" for c in lines[-1])[:_MAX_WORDS]
        return OSError(errno.EIO, words or os.strerror(errno.EIO), path)
    return OSError(number, words if number == errno.EINVAL else os.strerror(number), path)
