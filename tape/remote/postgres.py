"""A remote in PostgreSQL: one row for each object; needs the extra `postgres` (psycopg).

    postgresql://USER@HOST:PORT/DATABASE?team=NAME

Passwords come from where libpq finds them (`PGPASSWORD`, ~/.pgpass), never from the address. Teams
share a database and see rows of their own. The tables are made when they are first missed, from
the steps in `migrations/remote_*.sql`. Each operation is one statement and one transaction; none
needs a lock that outlives it, and what the server asks to repeat is repeated.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from queue import Empty, LifoQueue
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from ..errors import NotFound, RemoteUnavailable, UsageError
from ..index.database import find_migrations
from .remote import Listed, Remote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Rows = list[tuple[Any, ...]]

T = TypeVar("T")

_TEAM = "team"
_PAGE = 1_000
"""Keys that are listed by one statement."""
_READ_BYTES = 32 << 20
"""Bytes of objects that one statement reads at most, but for a single object."""
_TRIES = 20
_PAUSE = 0.02
_CONNECT_SECONDS, _STATEMENT_SECONDS = 10, 60
_REPEATED = (errors.SerializationFailure, errors.DeadlockDetected)
_MISSING = (errors.UndefinedTable, errors.InvalidSchemaName)
_NEW_STEPS = "CREATE SCHEMA IF NOT EXISTS tape"
_STEPS_TABLE = "CREATE TABLE IF NOT EXISTS tape.steps (number integer PRIMARY KEY)"
_CREATE = (
    "INSERT INTO tape.objects (team, key, body) "
    "SELECT %s, key, body FROM unnest(%b::text[], %b::bytea[]) AS new (key, body) "
    "ON CONFLICT DO NOTHING RETURNING key"
)
_REPLACE = (
    "INSERT INTO tape.objects (team, key, body) VALUES (%s, %s, %b) "
    "ON CONFLICT (team, key) DO UPDATE SET body = excluded.body"
)
_READ = "SELECT body FROM tape.objects WHERE team = %s AND key = %s"
_READ_PART = (
    "SELECT substring(body FROM %s::int FOR least(octet_length(body), %s)::int) "
    "FROM tape.objects WHERE team = %s AND key = %s"
)
_READ_MANY = "SELECT key, body FROM tape.objects WHERE team = %s AND key = ANY (%s::text[])"
_SIZES = (
    "SELECT key, octet_length(body) FROM tape.objects WHERE team = %s AND key = ANY (%s::text[])"
)
_LIST = (
    "SELECT key, octet_length(body) FROM tape.objects "
    "WHERE team = %s AND key > %s AND key >= %s AND (%s = '' OR key < %s) ORDER BY key LIMIT %s"
)
_CLOCK = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


class PostgresRemote(Remote):
    """Objects of one team in the tables of a database."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._conninfo, self.team = _parse_url(url)
        self._idle: LifoQueue[psycopg.Connection[Any]] = LifoQueue()
        self._is_closed = False

    def create(self, key: str, data: bytes) -> bool:
        """Create an object by an INSERT that a row of the same key turns into nothing."""
        return self.create_many([(key, data)])[0]

    def create_many(self, objects: Sequence[tuple[str, bytes]]) -> Sequence[bool]:
        """Create several objects in one transaction, and all of those that are new or none."""
        first: dict[str, int] = {}
        for number, (key, _) in enumerate(objects):
            first.setdefault(key, number)
        if not first:
            return []
        keys = sorted(first)  # two that create the same keys wait for each other in one order
        bodies = [objects[first[key]][1] for key in keys]
        created = {key for (key,) in self.ask(_CREATE, (self.team, keys, bodies))}
        return [key in created and first[key] == at for at, (key, _) in enumerate(objects)]

    def replace(self, key: str, data: bytes) -> None:
        """Replace the body of a row."""
        self.ask(_REPLACE, (self.team, key, data))

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        """Return the body of a row, or a part of it."""
        if start == 0 and end is None:
            rows = self.ask(_READ, (self.team, key))
        else:
            length = 2**31 - 1 if end is None else max(end - start, 0)
            rows = self.ask(_READ_PART, (start + 1, length, self.team, key))
        if not rows:
            raise NotFound(f"the remote has no {key}")
        return bytes(rows[0][0])

    def read_many(self, keys: Sequence[str]) -> Sequence[bytes | None]:
        """Return the bodies of several rows, by as few statements as their sizes allow."""
        bodies: dict[str, bytes] = {}
        for part in self._split(keys):
            bodies |= self.ask(_READ_MANY, (self.team, part))
        return [bodies.get(key) for key in keys]

    def _split(self, keys: Sequence[str]) -> Iterator[list[str]]:
        """Yield keys in groups that are read at once."""
        if len(keys) < 2:  # noqa: PLR2004 (sizes of several)
            yield from [[*keys]] if keys else []
            return
        group: list[str] = []
        size = 0
        for key, length in self.ask(_SIZES, (self.team, [*keys])):
            if group and size + length > _READ_BYTES:
                yield group
                group, size = [], 0
            group.append(key)
            size += length
        if group:
            yield group

    def list(self, prefix: str, after: str = "") -> Iterator[Listed]:
        """Yield the keys that begin so, a page for each statement."""
        end = prefix and prefix[:-1] + chr(ord(prefix[-1]) + 1)
        while True:
            rows = self.ask(_LIST, (self.team, after, prefix, end, end, _PAGE))
            yield from (Listed(*row) for row in rows)
            if len(rows) < _PAGE:
                return
            after = rows[-1][0]

    def now(self) -> int:
        """Return the time of the server's clock."""
        ((now,),) = self.ask(_CLOCK)
        return int(now)

    def close(self) -> None:
        """Close the connections."""
        self._is_closed = True
        while True:
            try:
                self._idle.get_nowait().close()
            except Empty:
                return

    def ask(self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> Rows:
        """Execute a statement in a transaction of its own, and return its rows."""

        def execute(connection: psycopg.Connection[Any]) -> Rows:
            with connection.cursor(binary=True) as cursor:
                cursor.execute(statement, values)
                return [] if cursor.description is None else cursor.fetchall()

        return self.transact(execute)

    def transact(self, work: Callable[[psycopg.Connection[Any]], T]) -> T:
        """Return what some work with a connection does, again where the server asks for that."""
        try:
            try:
                return self._repeat(work)
            except _MISSING:
                self._apply_steps()
                return self._repeat(work)
        except errors.InsufficientPrivilege as error:
            raise UsageError(f"{self.url}: {_read_message(error)}") from error
        except psycopg.Error as error:
            raise RemoteUnavailable(f"{self.url}: {_read_message(error)}") from error

    def _repeat(self, work: Callable[[psycopg.Connection[Any]], T]) -> T:
        for turn in range(_TRIES):
            try:
                with self._connect() as connection:
                    return work(connection)
            except _REPEATED:
                time.sleep(_PAUSE * turn)
        raise RemoteUnavailable(f"{self.url}: the server is too busy: try again")

    @contextmanager
    def _connect(self) -> Iterator[psycopg.Connection[Any]]:
        """Yield a connection that no other thread has; a broken one is not used again."""
        try:
            connection = self._idle.get_nowait()
            while connection.closed:
                connection = self._idle.get_nowait()
        except Empty:
            connection = self._open_connection()
        try:
            yield connection
        finally:
            is_idle = connection.info.transaction_status == TransactionStatus.IDLE
            if self._is_closed or connection.closed or not is_idle:
                connection.close()
            else:
                self._idle.put(connection)

    def _open_connection(self) -> psycopg.Connection[Any]:
        connection = psycopg.connect(
            self._conninfo,
            autocommit=True,
            connect_timeout=_CONNECT_SECONDS,
            prepare_threshold=None,  # poolers that share connections know no prepared statements
            application_name="tape",
            tcp_user_timeout=_STATEMENT_SECONDS * 1000,
        )
        with connection.transaction():
            connection.execute(
                "SELECT set_config('tape.team', %s, false), "
                "set_config('statement_timeout', %s, false)",
                (self.team, str(_STATEMENT_SECONDS * 1000)),
            )
        return connection

    def _apply_steps(self) -> None:
        """Make the tables that are missing; whoever comes second finds them."""
        steps = sorted(find_migrations().glob("remote_*.sql"))
        for turn in range(_TRIES):
            try:
                with self._connect() as connection, connection.transaction():
                    connection.execute(_NEW_STEPS)
                    connection.execute(_STEPS_TABLE)
                    rows = connection.execute("SELECT number FROM tape.steps").fetchall()
                    done = {number for (number,) in rows}
                    for path in steps:
                        number = int(path.name.split("_")[1])
                        if number not in done:
                            connection.execute(path.read_bytes())
                            connection.execute(
                                "INSERT INTO tape.steps (number) VALUES (%s)", (number,)
                            )
            except (errors.UniqueViolation, errors.DuplicateTable, *_REPEATED):
                time.sleep(_PAUSE * turn)  # another machine makes them right now
            else:
                return


def _parse_url(url: str) -> tuple[str, str]:
    """Return what libpq is given of an address, and the team; raise UsageError."""
    parts = urlsplit(url)
    if parts.password is not None or "password=" in parts.query:
        raise UsageError(
            "an address is kept in a file: give the password as PGPASSWORD or in ~/.pgpass, "
            "not as a part of it"
        )
    options = parse_qsl(parts.query, keep_blank_values=True)
    team = dict(options).get(_TEAM) or _TEAM
    query = urlencode([(name, value) for name, value in options if name != _TEAM], quote_via=quote)
    conninfo = f"postgresql://{parts.netloc}{parts.path}{query and '?'}{query}"
    try:
        conninfo_to_dict(conninfo)
    except psycopg.Error as error:
        raise UsageError(f"{url}: {_read_message(error)}") from error
    return conninfo, team


def _read_message(error: psycopg.Error) -> str:
    """Return what the server or libpq says, in one line."""
    return " ".join((error.diag.message_primary or str(error) or type(error).__name__).split())
