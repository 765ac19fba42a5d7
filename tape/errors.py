"""The error tree of the store; every error knows the exit code its command line gives it.

TapeError                 1  something went wrong; the text says what to do
├── UsageError            2  the caller asked for something that cannot be
│   ├── InvalidName          a branch, label or folder name that may not become a path
│   └── InvalidEntry         data that may not be written as an entry
├── NotFound              3  no such tape, branch, entry or label
├── Ambiguous             3  a prefix that fits several; `hits` lists them
├── Damaged               4  bytes that do not verify; `file`, `offset` say where
├── Busy                  5  another writer holds the lock
├── NewerFormat           1  written by a later version: refused, never touched
├── OlderFormat           1  of an earlier version that this one cannot lift: never touched
├── WriteFailed           1  the disk said no; nothing acknowledged is lost
│   └── SyncFailed           it took the bytes and may not keep them: the writer closes
└── Overtaken             1  somebody else wrote into a file this writer holds
"""

from __future__ import annotations


class TapeError(Exception):
    """Something went wrong in the store; the text says what to do."""

    exit_code = 1


class UsageError(TapeError):
    """What was asked for cannot be; asking differently helps."""

    exit_code = 2


class InvalidName(UsageError):
    """A name that may not become part of a path."""

    def __init__(self, kind: str, name: str, rule: str) -> None:
        super().__init__(f"{kind} {name!r} is not allowed: {rule}")
        self.kind, self.name = kind, name


class InvalidEntry(UsageError):
    """Data that may not be written as an entry."""


class NotFound(TapeError):
    """No such tape, branch, entry or label."""

    exit_code = 3


class Ambiguous(TapeError):
    """A prefix that fits more than one thing; `hits` names them."""

    exit_code = 3

    def __init__(self, what: str, hits: tuple[str, ...]) -> None:
        super().__init__(f"{what!r} is ambiguous, give more of it: {', '.join(hits)}")
        self.hits = hits


class Damaged(TapeError):
    """Bytes that do not verify; `file` (inside the tape) and `offset` say where."""

    exit_code = 4

    def __init__(self, message: str, *, file: str = "", offset: int | None = None) -> None:
        super().__init__(message)
        self.file, self.offset = file, offset


class Busy(TapeError):
    """Another writer holds the lock."""

    exit_code = 5


class NewerFormat(TapeError):
    """Written by a later version of the format: refused and never touched."""


class OlderFormat(TapeError):
    """Written by an earlier version of the format that this one cannot lift: never touched."""


class WriteFailed(TapeError):
    """The disk refused; what was acknowledged before still stands."""


class SyncFailed(WriteFailed):
    """The disk took the bytes and may not keep them: whoever wrote them stops."""


class Overtaken(TapeError):
    """A file grew while this writer held it: somebody else wrote, so it stops."""
