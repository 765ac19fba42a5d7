"""The error tree of the store; every error has the exit code of its command line.

TapeError                 1  something went wrong; the text says what to do
├── UsageError            2  the request is invalid
│   ├── InvalidName          a branch, label or folder name that may not become a path
│   └── InvalidEntry         data that may not be written as an entry
├── NotFound              3  no such tape, branch, entry or label
├── Ambiguous             3  a prefix that matches several; `hits` lists them
├── Damaged               4  bytes that do not verify; `file`, `offset` are their place
├── Busy                  5  another writer holds the lock
├── NewerFormat           1  written by a later version: refused, never changed
├── OlderFormat           1  of an earlier version that this one cannot read: never changed
├── WriteFailed           1  the disk refused to write; acknowledged data is safe
│   └── SyncFailed           data may not have reached the disk: the writer closes
├── Overtaken             1  another process wrote to a file of this writer
└── RemoteUnavailable    75  a remote that does not answer now: try again
"""

from __future__ import annotations


class TapeError(Exception):
    """Something went wrong in the store; the text says what to do."""

    exit_code = 1


class UsageError(TapeError):
    """The request is invalid; another request may work."""

    exit_code = 2


class InvalidName(UsageError):
    """A name that may not be part of a path."""

    def __init__(self, kind: str, name: str, rule: str) -> None:
        super().__init__(f"{kind} {name!r} is not allowed: {rule}")
        self.kind, self.name = kind, name


class InvalidEntry(UsageError):
    """Data that may not be written as an entry."""


class NotFound(TapeError):
    """No such tape, branch, entry or label."""

    exit_code = 3


class Ambiguous(TapeError):
    """A prefix that matches more than one item; `hits` names them."""

    exit_code = 3

    def __init__(self, what: str, hits: tuple[str, ...]) -> None:
        super().__init__(f"{what!r} is ambiguous, give more of it: {', '.join(hits)}")
        self.hits = hits


class Damaged(TapeError):
    """Bytes that do not verify; `file` (inside the tape) and `offset` are their place."""

    exit_code = 4

    def __init__(self, message: str, *, file: str = "", offset: int | None = None) -> None:
        super().__init__(message)
        self.file, self.offset = file, offset


class Busy(TapeError):
    """Another writer holds the lock."""

    exit_code = 5


class NewerFormat(TapeError):
    """Written by a later version of the format: refused and never changed."""


class OlderFormat(TapeError):
    """Written by an earlier version of the format that this one cannot read: never changed."""


class WriteFailed(TapeError):
    """The disk refused to write; what was acknowledged before is still stored."""


class SyncFailed(WriteFailed):
    """A sync failed, so data may not have reached the disk: the writer stops."""


class Overtaken(TapeError):
    """A file changed size while this writer had it open: another process wrote, so it stops."""


class RemoteUnavailable(TapeError):
    """A remote cannot be reached, or does not answer in time; the same request may work later."""

    exit_code = 75
