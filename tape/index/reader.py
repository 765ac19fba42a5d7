"""The index as it is, read without the rest of the package: all that a list needs to import.

Invariant: nothing is written and no tape is opened. What the index alone cannot answer gives None:
then the caller asks `tape.index.library`, which catches up first. What makes a file an index, and
how to connect to it, is said here, and `tape.index.database` uses it.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing, suppress
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from .tape_filter import EVERY_TAPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .tape_filter import Checkout, TapeFilter

T = TypeVar("T")

INDEX_NAME = "index.db"
LOG_NAME = "index.writers"
"""Name of the log of writers; `tape.index.writer_log` says what is in it."""
LARGE_LOG = 1 << 16
"""Bytes from which on the log is truncated when it is no longer needed."""
CHECK_NAME = "index.checked"
"""Name of the file whose time is that of the last check of older tapes; it holds where that ended:
16 bytes of an id, none after the last tape."""
APPLICATION_ID = int.from_bytes(b"tape", "big")
"""The `application_id` of an index."""
ORIGIN_PHASE = "0000-origin"
"""The phase of a copied past: `tape.store.phase.ORIGIN`."""
ARCHIVE_SUFFIX = b".tar.zst"
"""The end of the name of an archived tape's file: `tape.store.packed.PACKED_SUFFIX`."""
SCHEMA_VERSION = 13
"""The `user_version` of an index: how many steps `migrations/index.py` has."""

_ALWAYS_CHECKED = 100
"""How many tapes, the newest ones, are compared with their files at each question."""
_SLICE_TAPES = 1000
"""How many of the others are compared once a minute."""
_SLICE_SECONDS = 60
_STORE_MARK = b'{"format":1,'
_INDEX_ERRORS = (sqlite3.Error, OSError, ValueError, OverflowError)


def query_index_file(home: str, question: Callable[[sqlite3.Connection], T]) -> T | None:
    """Return what the index of the store at `home` answers; None where it is not ready for it."""
    with suppress(*_INDEX_ERRORS), closing(connect_index(home, timeout=1)) as db:
        if read_marks(db) == (APPLICATION_ID, SCHEMA_VERSION):
            return question(db)
    return None


def connect_index(home: str | os.PathLike[str], *, timeout: float) -> sqlite3.Connection:
    """Connect to the file there, whatever it is; `timeout` is in seconds.

    Raises sqlite3.OperationalError where none is, or something that is not a regular file.
    """
    path = os.path.join(os.path.abspath(home), INDEX_NAME)
    with suppress(FileNotFoundError):
        if not S_ISREG(os.stat(path).st_mode):
            raise sqlite3.OperationalError(f"{INDEX_NAME} is not a file")
    for special in "%?#":
        path = path.replace(special, f"%{ord(special):02x}")
    uri = f"file://{path}?mode=rw"
    return sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None)


def read_marks(db: sqlite3.Connection) -> tuple[int, int]:
    """Return the `application_id` and `user_version` of a file."""
    marks: tuple[int, int] = db.execute(
        "SELECT application_id, user_version FROM pragma_application_id, pragma_user_version"
    ).fetchone()
    return marks


_ARCHIVED = "archive"
"""The name in the stamps of an archived tape, which has one file."""


class TapeRow(NamedTuple):
    """One tape in a list. Times are as on the tape: UTC text with microseconds."""

    id: str
    """32 hex digits."""
    folder: str
    """Name of its folder in `tapes/`."""
    title: str | None
    """The given title, or else the beginning of the first prompt; None without a prompt."""
    cwd: str
    """The current folder: cwd of the newest `start` or `meta` entry."""
    project: str | None
    created: str
    updated: str
    """Time of the newest head."""
    model: str | None
    """Of the newest answer."""
    entries: int
    """Number of its own entries, without its origin's."""
    branches: int
    cost: float | None
    """USD of all calls; None if no cost is known."""
    provider: str | None
    """Of the newest answer."""
    tokens: int
    """Of all calls: what was read, cached or not, and what was written."""
    input_tokens: int
    """What was read, without what was cached."""
    output_tokens: int
    git_branch: str | None
    """The branch of git that the session started on."""
    mode: str | None
    """The permission mode."""
    todos: str | None
    """The todo list, as JSON."""
    repository: str | None = None
    """That of the current folder, as `host/owner/name`."""
    person: str | None = None
    """`Name <email>`, as newest said."""
    machine: str | None = None
    """The name of the machine, as newest said."""
    agent: str | None = None
    """The program that made the session: the agent it was imported from, if it was."""
    archived: bool = False
    """It is one file: `FOLDER.tar.zst`."""


TAPE_COLUMNS = ", ".join(
    (
        *("lower(hex(id))", "CAST(folder AS BLOB)"),
        *TapeRow._fields[2:-1],  # named as the columns are
        f"coalesce(stamps, '') LIKE '{_ARCHIVED}/%'",
    )
)
"""The columns of `tapes` from which `to_tape_row` makes a row."""


def to_tape_row(identity: str, folder: bytes, *rest: Any) -> TapeRow:
    """Return the row of a tape from its columns."""
    return TapeRow._make((identity, os.fsdecode(folder), *rest[:-1], bool(rest[-1])))


def fetch_newest_tapes(
    home: str,
    limit: int | None,
    checkout: Checkout | None = None,
    narrow: TapeFilter = EVERY_TAPE,
) -> list[TapeRow] | None:
    """Return the tapes newest first, at most `limit`, of those that `narrow` means.

    With `checkout` the newest ones of its folder and repository too, behind. None if the index has
    to catch up first: a tape is being written, was added, or removed.
    """

    def question(db: sqlite3.Connection) -> list[TapeRow] | None:
        if not is_caught_up(db, home):
            return None
        return select_newest_tapes(db, limit, checkout, narrow)

    return query_index_file(home, question)


def select_newest_tapes(
    db: sqlite3.Connection,
    limit: int | None,
    checkout: Checkout | None = None,
    narrow: TapeFilter = EVERY_TAPE,
) -> list[TapeRow]:
    """Return what is indexed of the tapes that `fetch_newest_tapes` returns."""
    condition, values = narrow.build_condition()
    where = f" AND {condition}" if condition else ""
    newest = db.execute(
        f"{_SELECT_LISTED}{where} ORDER BY updated DESC, id DESC LIMIT ?",
        (*values, -1 if limit is None else limit),
    )
    if limit is None:
        texts: dict[str, str] = {}  # folders and names are those of thousands
        return [
            to_tape_row(
                *row[:3], *[texts.setdefault(t, t) if type(t) is str else t for t in row[3:]]
            )
            for row in newest
        ]
    rows = {row[0]: row for row in newest}
    if checkout is not None and len(rows) == limit:  # there may be older ones
        root = checkout.root.rstrip("/")
        # 0 is the character behind /
        places = checkout.root, f"{root}/", f"{root}0", limit, checkout.repository
        near = db.execute(f"{_SELECT_LISTED}{_IN_CHECKOUT}{_NEWEST}", places)
        rows |= {row[0]: row for row in near}
    return [to_tape_row(*row) for row in rows.values()]


def select_named_tapes(db: sqlite3.Connection, tapes: Iterable[str], text: str) -> list[TapeRow]:
    """Return the tapes with these ids, and those with a text in what a row of a list says.

    That is id, title, folder, repository and person, in any case of letters. Newest first.
    """
    db.create_function("folded", 1, str.lower, deterministic=True)  # not only A to Z
    ids_json = "[{}]".format(",".join(f'"{tape}"' for tape in tapes))
    rows = db.execute(f"{_SELECT_LISTED}{_NAMED}", (ids_json, text.lower()))
    return [to_tape_row(*row) for row in rows]


_SELECT_LISTED = f"SELECT {TAPE_COLUMNS} FROM tapes WHERE folder <> ''"
_NEWEST = " ORDER BY updated DESC, id DESC LIMIT ?4"
# Each place is found by the index on it; of a folder with thousands of tapes only the newest ones.
_IN_CHECKOUT = (
    f" AND id IN (SELECT * FROM (SELECT id FROM tapes WHERE cwd = ?1{_NEWEST})"
    f" UNION SELECT * FROM (SELECT id FROM tapes WHERE project = ?1{_NEWEST})"
    f" UNION SELECT * FROM (SELECT id FROM tapes WHERE repository = ?5{_NEWEST})"
    " UNION SELECT id FROM tapes WHERE cwd > ?2 AND cwd < ?3"
    " UNION SELECT id FROM tapes WHERE project > ?2 AND project < ?3)"
)

_NAMED = """ AND (lower(hex(id)) IN (SELECT value FROM json_each(?1)) OR instr(folded(
    lower(hex(id)) || ' ' || coalesce(title, '') || ' ' || cwd || ' '
    || coalesce(repository, '') || ' ' || coalesce(person, '')), ?2) > 0)
    ORDER BY updated DESC, id DESC"""


def is_caught_up(db: sqlite3.Connection, home: str) -> bool:
    """Return whether no tape is being written, and none was added, removed or changed since.

    And whether the log of writers is not so large that it should be truncated.
    """
    fd = os.open(os.path.join(home, "store.json"), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if os.read(fd, len(_STORE_MARK)) != _STORE_MARK:
            return False
    finally:
        os.close(fd)
    # Cheapest first; each of the four shows changes that those before it do not.
    seen: dict[str, int] = dict(db.execute("SELECT key, value FROM meta"))
    now = os.stat(os.path.join(home, "tapes")).st_mtime_ns
    log = read_log_head(os.path.join(home, LOG_NAME))
    writing = db.execute(
        "SELECT 1 FROM writers UNION ALL SELECT 1 FROM arrivals LIMIT 1"
    ).fetchone()
    return (
        writing is None
        and seen.get("tapes_mtime_ns") == now
        and log == (seen.get("log_number", 0), seen.get("log_offset", 0))
        and log[1] < LARGE_LOG
        and next(find_changed_tapes(db, home), None) is None
    )


def read_tapes_mtime(home: str) -> int:
    """Return the time of the last change of `tapes/`, in ns; 0 before the first tape."""
    try:
        return os.stat(os.path.join(home, "tapes")).st_mtime_ns
    except FileNotFoundError:  # the first tape creates it
        return 0


def find_changed_tapes(db: sqlite3.Connection, home: str, *, every: bool = False) -> Iterator[str]:
    """Yield the ids of the tapes whose files are not those that were read.

    Whatever wrote them without a line in the log of writers is noticed so: a program without the
    index, a restored folder, rsync. The newest 100 tapes are compared at each question, and at most
    once a minute the next thousand by their ids: with two calls of stat, a tape takes about 10 µs.
    With `every` all are compared.
    """
    checked, now = os.path.join(home, CHECK_NAME), time.time()
    limit = -1 if every else _ALWAYS_CHECKED
    rows = db.execute(f"{_SELECT_STAMPS} ORDER BY updated DESC LIMIT ?", (limit,))
    stamped = rows.fetchall()
    last = None if every else _read_slice_end(checked, now)
    if last is not None:
        rows = db.execute(f"{_SELECT_STAMPS} AND id > ? ORDER BY id LIMIT ?", (last, _SLICE_TAPES))
        others = rows.fetchall()
        last = bytes.fromhex(others[-1][0]) if len(others) == _SLICE_TAPES else b""
        stamped += others
    fd = os.open(os.path.join(home, "tapes"), os.O_RDONLY | os.O_CLOEXEC)
    try:
        for tape, folder, stamps in stamped:
            try:
                if stamps and stamps.startswith(f"{_ARCHIVED}/"):
                    file_stat = os.stat(folder + ARCHIVE_SUFFIX, dir_fd=fd)
                    is_same = stamps == describe_archive_stamps(file_stat)
                else:
                    names = stamps.split("/")[3::3] if stamps else ()
                    is_same = stamps == describe_stamps(fd, folder + b"/", names)
            except OSError:
                is_same = False
            if not is_same:
                yield tape
    finally:
        os.close(fd)
    if last is not None:
        with suppress(OSError):  # in a store that cannot be written some are compared each time
            _write_slice_end(checked, last, now)


_SELECT_STAMPS = "SELECT lower(hex(id)), CAST(folder AS BLOB), stamps FROM tapes WHERE folder <> ''"
_CHECK_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def _read_slice_end(path: str, now: float) -> bytes | None:
    """Return the id at which the last comparison ended; None where that was just now."""
    with suppress(OSError):
        fd = os.open(path, os.O_RDONLY | _CHECK_FLAGS)
        try:
            if 0 <= now - os.fstat(fd).st_mtime < _SLICE_SECONDS:
                return None
            return os.read(fd, 16)
        finally:
            os.close(fd)
    return b""


def _write_slice_end(path: str, last: bytes, now: float) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | _CHECK_FLAGS, 0o600)
    try:
        os.pwrite(fd, last, 0)
        os.ftruncate(fd, len(last))
        os.utime(fd, (now, now))
    finally:
        os.close(fd)


def describe_stamps(fd: int, folder: bytes, segments: Iterable[str]) -> str:
    """Return name, size and time of a tape's journal and of segments, as one text.

    `fd` is an open folder and `folder` the path from there, with a slash at its end:

        refs.jsonl/310/1764000000000000000/0001-main-start/5120/1764000000000000001

    Times are those of the last change, in ns. Raises OSError where a file is missing.
    """
    file_stat = os.stat(folder + b"refs.jsonl", dir_fd=fd)
    text = f"refs.jsonl/{file_stat.st_size}/{file_stat.st_mtime_ns}"
    for name in segments:
        file_stat = os.stat(b"%bphases/%b/entries.jsonl" % (folder, os.fsencode(name)), dir_fd=fd)
        text += f"/{name}/{file_stat.st_size}/{file_stat.st_mtime_ns}"
    return text


def describe_archive_stamps(file_stat: os.stat_result) -> str:
    """Return size and time of the file of an archived tape, as `describe_stamps` does."""
    return f"{_ARCHIVED}/{file_stat.st_size}/{file_stat.st_mtime_ns}"


def read_log_head(path: str) -> tuple[int, int]:
    """Return the number in the first line of the log of writers, and its size; 0, 0 without one."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return 0, 0
    try:
        size = os.fstat(fd).st_size
        with suppress(ValueError):
            return int(os.pread(fd, 16, 0), 16) >> 1, size  # a column has 63 bits
        return 0, size
    finally:
        os.close(fd)


def compute_id_range(prefix: str, digits: int) -> tuple[bytes, bytes]:
    """Return the lowest and the highest id of `digits` hex digits that begins with `prefix`."""
    return bytes.fromhex(prefix.ljust(digits, "0")), bytes.fromhex(prefix.ljust(digits, "f"))


def fetch_tapes(db: sqlite3.Connection, prefix: str, limit: int) -> list[tuple[str, str]]:
    """Return id and title of the newest tapes whose id begins so."""
    return db.execute(
        "SELECT lower(hex(id)), coalesce(title, '') FROM tapes WHERE id BETWEEN ? AND ? "
        "ORDER BY updated DESC LIMIT ?",
        (*compute_id_range(prefix, 32), limit),
    ).fetchall()


def find_tape_id(db: sqlite3.Connection, word: str, cwd: str) -> bytes | None:
    """Return the id of the only tape with this id prefix; without one, of the newest in `cwd`."""
    if word:
        tapes = [bytes.fromhex(tape) for tape, _ in fetch_tapes(db, word, 2)]
        return tapes[0] if len(tapes) == 1 else None
    newest = "SELECT id FROM tapes WHERE cwd = ? ORDER BY updated DESC LIMIT 1"
    row: tuple[bytes] | None = db.execute(newest, (cwd,)).fetchone()
    return row and row[0]


def fetch_agents(db: sqlite3.Connection) -> list[str]:
    """Return the agents that made sessions, each once."""
    return [name for (name,) in db.execute("SELECT DISTINCT agent FROM tapes WHERE agent > ''")]


def fetch_branches(db: sqlite3.Connection, tape: bytes) -> list[tuple[str, str]]:
    """Return the name of each branch of a tape, and the time of its head."""
    query = "SELECT name, coalesce(time, '') FROM branches WHERE tape = ? ORDER BY time DESC"
    return db.execute(query, (tape,)).fetchall()


def fetch_labels(db: sqlite3.Connection, tape: bytes) -> list[tuple[str, str]]:
    """Return the labels of a tape and the ids of their entries."""
    query = "SELECT name, lower(hex(entry)) FROM labels WHERE tape = ? ORDER BY name"
    return db.execute(query, (tape,)).fetchall()


def fetch_entries(
    db: sqlite3.Connection, tape: bytes, branch: str, limit: int
) -> list[tuple[str, str]]:
    """Return id, and depth with type, of entries before a branch's head, newest first.

    "" is the current branch. Only entries that were indexed shortly before the head are searched.
    """
    return db.execute(
        "SELECT DISTINCT lower(hex(e.id)), e.n || ' ' || t.name "
        "FROM branches b JOIN entries h ON substr(h.id, 1, 4) = substr(b.entry, 1, 4) "
        "JOIN entries e ON e.key BETWEEN h.key - 500 AND h.key AND e.phase = h.phase "
        "JOIN types t ON t.key = e.type "
        "WHERE h.id = b.entry AND b.tape = ?1 AND (b.name = ?2 OR (?2 = '' AND b.current)) "
        "ORDER BY e.n DESC LIMIT ?3",
        (tape, branch, limit),
    ).fetchall()
