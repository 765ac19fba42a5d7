"""The catalogue of a remote in PostgreSQL: its tapes and their words, for lists and search in SQL.

Derived from the chunks (`contents`), in the tables of `migrations/remote_0002_catalogue.sql`. How
far it goes says a line of the push log, whose lines have no gap. Whoever may write it brings it up
to date; two that do so at once write each chunk once, as a row of `tapes` changes only from the
chunk before. A push waits for none of this.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from zstandard import ZstdCompressor, ZstdDecompressor, ZstdError

from ..clock import format_timestamp, parse_timestamp
from ..errors import Damaged, NotFound, UsageError
from ..model.line import JSON_ERRORS
from .catalogue_search import EVERYTHING, MICROS, TEAM, TO_TIME, clean_text, search_catalogue
from .chunk_reader import read_chunks
from .contents import RedactionFound, TapeState, add_chunk, build_facts, read_contents
from .holds import read_holds
from .objects import (
    LOG_PREFIX,
    TAPES_PREFIX,
    LogEntry,
    decode_log,
    make_chunk_key,
    make_gone_key,
    make_log_key,
    parse_chunk_key,
    parse_log_key,
)
from .read_ahead import ReadAhead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import psycopg

    from .catalogue_search import CatalogueFilter, CatalogueMatch
    from .contents import SaidEntry
    from .objects import AuditEvent
    from .postgres import PostgresRemote

_SLICE = 200
"""Tapes that one transaction writes."""
_MUCH = 1_000
"""Entries of an update after which the server counts its words again."""

_FACTS = ("title", "project", "repository", "person", "machine", "model")
_TIMES = ("created", "updated", "trashed")
_COLUMNS = ("id", "seq", *_FACTS, *_TIMES, "entries", "cost", "hold", "state")
_TYPES = {
    **dict.fromkeys(_FACTS, "text"),
    **dict.fromkeys(("seq", "known", "entries", *_TIMES), "bigint"),
    "id": "bytea",
    "cost": "float8",
    "hold": "boolean",
    "state": "bytea",
}
_NEW = ", ".join(f"%({name})s::{_TYPES[name]}[]" for name in (*_COLUMNS, "known"))
_VALUES = ", ".join(
    TO_TIME.format(f"new.{name}") if name in _TIMES else f"new.{name}" for name in _COLUMNS
)
_FROM_NEW = f"FROM unnest({_NEW}) AS new ({', '.join(_COLUMNS)}, known)"
_INSERT_TAPES = (
    f"INSERT INTO tape.tapes (team, {', '.join(_COLUMNS)}) SELECT %(team)s, {_VALUES} {_FROM_NEW} "
    "WHERE new.known = 0 ON CONFLICT DO NOTHING RETURNING id"
)
_UPDATE_TAPES = (
    f"UPDATE tape.tapes AS old SET ({', '.join(_COLUMNS[1:])}) = "
    f"ROW({_VALUES.removeprefix('new.id, ')}) {_FROM_NEW} "
    f"WHERE old.{TEAM} AND old.id = new.id AND old.seq = new.known RETURNING old.id"
)
_DELETE_SAID = f"DELETE FROM tape.said WHERE {TEAM} AND tape = ANY (%(tapes)s::bytea[])"
_SAID = (
    "unnest(%(tapes)s::bytea[], %(entries)s::bytea[], %(times)s::bigint[], %(types)s::text[], "
    "%(heads)s::text[], %(words)s::text[]) AS new (tape, entry, time, type, head, words)"
)
_INSERT_SAID = (
    "INSERT INTO tape.said (team, tape, entry, time, type, head, words) "
    f"SELECT %(team)s, tape, entry, {TO_TIME.format('time')}, type, head, "
    f"to_tsvector('simple', words) FROM {_SAID} ON CONFLICT DO NOTHING"
)
_COUNT_DIFFERENT = (
    f"SELECT count(*) FROM (SELECT * FROM tape.said WHERE {TEAM} AND tape = ANY "
    f"(%(tape)s::bytea[])) AS old FULL JOIN {_SAID} USING (tape, entry) WHERE "
    f"(old.time, old.type, old.head, old.words) IS DISTINCT FROM ({TO_TIME.format('new.time')}, "
    "new.type, new.head, to_tsvector('simple', new.words))"
)
_READ_STATES = f"SELECT id, seq, state FROM tape.tapes WHERE {TEAM} AND id = ANY (%(ids)s::bytea[])"
_READ_ROWS = (
    f"SELECT {', '.join(MICROS.format(n) if n in _TIMES else n for n in _COLUMNS[:-1])} "
    f"FROM tape.tapes WHERE {TEAM} ORDER BY id"
)
_MAY_READ = "SELECT FROM tape.tapes, tape.said LIMIT 0"
_READ_LOG = f"SELECT log FROM tape.catalogue WHERE {TEAM}"
_READ_END = f"SELECT max(key) FROM tape.objects WHERE {TEAM} AND key >= %(first)s AND key < %(end)s"
_SAVE_LOG = (
    "INSERT INTO tape.catalogue (team, log) VALUES (%(team)s, %(log)s) "
    "ON CONFLICT (team) DO UPDATE SET log = greatest(tape.catalogue.log, excluded.log)"
)
_SET_HOLDS = (
    f"UPDATE tape.tapes SET hold = NOT hold WHERE {TEAM} AND hold <> (id = ANY (%(ids)s::bytea[]))"
)
_RECORD_EVENT = (
    "INSERT INTO tape.audit (team, at, who, machine, did, tape, why) VALUES (%(team)s, "
    f"{TO_TIME.format('%(time)s::bigint')}, %(who)s, %(machine)s, %(did)s, %(tape)s, %(why)s)"
)
_READ_EVENTS = (
    f"SELECT did, tape, {MICROS.format('at')}, who, machine, why FROM tape.audit WHERE {TEAM} "
    f"AND at > {TO_TIME.format('%(since)s::bigint')} ORDER BY at"
)
_CLEAN = "SELECT gin_clean_pending_list('tape.said_words')"


class _TapeRows(NamedTuple):
    """What is to be written of a tape."""

    id: str
    known: int
    """The chunk after which it was read; 0 for none."""
    seq: int
    state: TapeState
    texts: list[SaidEntry]
    is_whole: bool
    """Whether all entries that there are of it are deleted first."""


class PostgresCatalogue:
    """The catalogue of one team."""

    def __init__(self, remote: PostgresRemote) -> None:
        self._remote, self._team = remote, {"team": remote.team}

    def update(self) -> bool:
        """Add what the push log names since the last time; return False if that is not allowed."""
        try:
            read = self._read_log_number()
            newest, last = self._find_new(read)
            if last > read:
                self._write_tapes(newest)
                self._ask(_SAVE_LOG, log=last)
            self._ask(_SET_HOLDS, ids=self._list_held())
        except UsageError:  # no right to do that: it is done by who has it
            return False
        return True

    def count_missing(self) -> int:
        """Return how many lines of the push log are not in."""
        return self._find_end() - self._read_log_number()

    def rebuild(self, progress: Callable[[int, int], None] = lambda _done, _total: None) -> None:
        """Make it again from all chunks."""
        end, newest = self._find_end(), self._list_newest()
        self._remote.transact(self._clear)
        self._write_tapes(newest, progress)
        self._ask(_SAVE_LOG, log=end)
        self._ask(_SET_HOLDS, ids=self._list_held())

    def _clear(self, connection: psycopg.Connection[Any]) -> None:
        with connection.transaction():
            for table in ("said", "tapes", "catalogue"):
                connection.execute(f"DELETE FROM tape.{table} WHERE {TEAM}", self._team)

    def check(
        self, progress: Callable[[int, int], None] = lambda _done, _total: None
    ) -> Iterator[tuple[str, str]]:
        """Yield the tapes of which it says something else than their chunks, once up to date.

        Nothing for a user who may not read it.
        """
        try:
            missing = 0 if self.update() else self.count_missing()
            self._ask(_MAY_READ)
        except UsageError:
            return
        if missing:
            yield "", f"{missing} lines of the push log are not in the catalogue"
        else:
            yield from self.find_differences(progress)

    def search(
        self, query: str, limit: int, narrow: CatalogueFilter = EVERYTHING
    ) -> list[CatalogueMatch]:
        """Return the newest entries that match a query as people write it; raise UsageError."""
        return search_catalogue(self._remote, query, limit, narrow)

    def find_differences(
        self, progress: Callable[[int, int], None] = lambda _done, _total: None
    ) -> Iterator[tuple[str, str]]:
        """Yield the tapes of which it says something else than their chunks, and what that is."""
        newest, held = self._list_newest(), {*self._list_held()}
        rows = {bytes(row[0]): row for row in self._ask(_READ_ROWS)}
        for identity in rows.keys() - {bytes.fromhex(tape) for tape in newest}:
            yield identity.hex(), "the catalogue has it, and the remote does not"
        for number, (tape, seq) in enumerate(sorted(newest.items())):
            progress(number, len(newest))
            identity = bytes.fromhex(tape)
            try:
                state, texts = read_contents(partial(read_chunks, self._remote, tape, 0, seq))
            except Damaged:
                continue  # that is a finding of its own
            expected = self._build_row(_TapeRows(tape, 0, seq, state, texts, True), held)[:-1]
            row = rows.get(identity)
            if row is None:
                yield tape, "the catalogue does not have it"
            elif names := [
                name
                for name, here, there in zip(_COLUMNS, row, expected, strict=False)
                if here != there
            ]:
                yield tape, f"the catalogue says something else of its {', '.join(names)}"
            elif count := self._ask(
                _COUNT_DIFFERENT, tape=[identity], **_build_said([(identity, texts)])
            )[0][0]:
                yield tape, f"the catalogue has other words of {count} of its entries"

    def record_event(self, event: AuditEvent) -> None:
        """Add an event to the audit; raise UsageError where that is not allowed."""
        tape = bytes.fromhex(event.tape)
        time = parse_timestamp(event.time)
        names = {"who": event.person, "machine": event.machine, "did": event.did, "why": event.why}
        texts = {name: clean_text(text) for name, text in names.items()}
        self._ask(_RECORD_EVENT, time=time, tape=tape, **texts)

    def read_events(self, since: str) -> list[dict[str, str]]:
        """Return the fields of the events since a time; none where that is not allowed."""
        try:
            rows = self._ask(_READ_EVENTS, since=parse_timestamp(since) if since else 0)
        except UsageError:
            return []
        return [
            {
                "did": did,
                "tape": bytes(tape or b"").hex(),
                "time": format_timestamp(time),
                "person": who,
                "machine": machine,
                "why": why,
            }
            for did, tape, time, who, machine, why in rows
        ]

    def _ask(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        return self._remote.ask(statement, {**self._team, **values})

    def _read_log_number(self) -> int:
        rows = self._ask(_READ_LOG)
        return int(rows[0][0]) if rows else 0

    def _find_end(self) -> int:
        """Return the number of the newest line of the push log."""
        ((key,),) = self._ask(_READ_END, first=LOG_PREFIX, end=f"{LOG_PREFIX}:")
        return parse_log_key(key or "") or 0

    def _find_new(self, read: int) -> tuple[dict[str, int], int]:
        """Return tapes with their newest chunks that the log names after a line, and its last."""
        listed = self._remote.list(LOG_PREFIX, make_log_key(read))
        numbers = {at.key: number for at in listed if (number := parse_log_key(at.key)) is not None}
        newest: dict[str, int] = {}
        for key, data in zip(numbers, self._remote.read_many([*numbers]), strict=True):
            try:
                entries = decode_log(key, data or b"[]")
            except Damaged:  # what it named is there
                entries = [LogEntry(*item) for item in self._list_newest().items()]
            for tape, seq, _ in entries:
                newest[tape] = max(seq, newest.get(tape, 0))
        return newest, max(numbers.values(), default=read)

    def _list_newest(self) -> dict[str, int]:
        """Return all tapes, each with the number of its newest chunk."""
        entries = (parse_chunk_key(listed.key) for listed in self._remote.list(TAPES_PREFIX))
        return {entry.tape: entry.seq for entry in entries if entry is not None}

    def _list_held(self) -> list[bytes]:
        return [bytes.fromhex(tape) for tape in read_holds(self._remote)]

    def _write_tapes(
        self,
        newest: Mapping[str, int],
        progress: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> None:
        """Write what chunks say of tapes, each up to the one of this number."""
        tapes, held, count = sorted(newest), {*self._list_held()}, 0
        for start in range(0, len(tapes), _SLICE):
            progress(start, len(tapes))
            part = tapes[start : start + _SLICE]
            known = {
                bytes(identity).hex(): (seq, bytes(state))
                for identity, seq, state in self._ask(
                    _READ_STATES, ids=[bytes.fromhex(tape) for tape in part]
                )
            }
            single = [tape for tape in part if newest[tape] == known.get(tape, (0, b""))[0] + 1]
            ahead = ReadAhead(self._remote, [make_chunk_key(tape, newest[tape]) for tape in single])
            rows: list[_TapeRows] = []
            for tape in part:
                seq, packed = known.get(tape, (0, b""))
                if seq < newest[tape]:
                    try:
                        rows.append(self._read_rows(ahead, tape, seq, packed, newest[tape]))
                    except (Damaged, NotFound):
                        continue  # a check of the remote names it
            self._remote.transact(partial(self._write, rows=rows, held=held))
            count += sum(len(row.texts) for row in rows)
        if count:
            self._tidy(is_much=count >= _MUCH)

    def _tidy(self, *, is_much: bool) -> None:
        """Put new words in their place, where this user owns the tables: searches are faster."""
        try:
            self._ask(_CLEAN)
            if is_much:  # searches ask what the server expects to find
                self._ask("ANALYZE tape.said")
                self._ask("ANALYZE tape.tapes")
        except UsageError:
            return

    def _read_rows(
        self, remote: ReadAhead, tape: str, known: int, packed: bytes, seq: int
    ) -> _TapeRows:
        try:
            state = _unpack_state(packed)
            texts: list[SaidEntry] = []
            for chunk in read_chunks(remote, tape, known, seq):
                texts += add_chunk(state, chunk)
        except RedactionFound:
            state, texts = read_contents(partial(read_chunks, self._remote, tape, 0, seq))
            return _TapeRows(tape, known, seq, state, texts, True)
        return _TapeRows(tape, known, seq, state, [] if state.gone else texts, bool(state.gone))

    def _build_row(self, rows: _TapeRows, held: set[bytes]) -> tuple[Any, ...]:
        """Return the values of _COLUMNS."""
        facts = build_facts(rows.state)
        trashed = None
        if rows.state.gone:
            trashed = self._read_time_gone(rows.id)
        identity = bytes.fromhex(rows.id)
        texts = [None if text is None else clean_text(text) for text in facts[:6]]
        times = (facts.created, facts.updated, trashed)
        state = ZstdCompressor().compress(msgspec.json.encode(rows.state))
        counts = (facts.entries, facts.cost, identity in held)
        return (identity, rows.seq, *texts, *times, *counts, state)

    def _read_time_gone(self, tape: str) -> int:
        """Return when a tape was taken from the remote."""
        try:
            note = msgspec.json.decode(
                self._remote.read(make_gone_key("tape", tape)), type=dict[str, str]
            )
        except (NotFound, *JSON_ERRORS):
            return 0
        return parse_timestamp(note.get("time", ""))

    def _write(
        self, connection: psycopg.Connection[Any], rows: Sequence[_TapeRows], held: set[bytes]
    ) -> None:
        built = [self._build_row(row, held) for row in rows]
        columns = [[values[at] for values in built] for at in range(len(_COLUMNS))]
        values = dict(zip(_COLUMNS, columns, strict=True))
        with connection.transaction():
            written: set[bytes] = set()
            for statement in (_UPDATE_TAPES, _INSERT_TAPES):
                changed = connection.execute(
                    statement, {**self._team, **values, "known": [row.known for row in rows]}
                )
                written |= {bytes(identity) for (identity,) in changed}
            ours = [row for row in rows if bytes.fromhex(row.id) in written]
            whole = [bytes.fromhex(row.id) for row in ours if row.is_whole]
            if whole:
                connection.execute(_DELETE_SAID, {**self._team, "tapes": whole})
            texts = _build_said((bytes.fromhex(row.id), row.texts) for row in ours)
            if texts["entries"]:
                connection.execute(_INSERT_SAID, {**self._team, **texts})


def _build_said(tapes: Iterable[tuple[bytes, Sequence[SaidEntry]]]) -> dict[str, list[Any]]:
    """Return the columns of the rows of `texts`."""
    rows = [(tape, entry) for tape, texts in tapes for entry in texts]
    return {
        "tapes": [tape for tape, _ in rows],
        "entries": [bytes.fromhex(entry.entry) for _, entry in rows],
        "times": [entry.time for _, entry in rows],
        "types": [entry.type for _, entry in rows],
        "heads": [clean_text(entry.head) for _, entry in rows],
        "words": [clean_text(entry.words) for _, entry in rows],
    }


def _unpack_state(packed: bytes) -> TapeState:
    if not packed:
        return TapeState()
    try:
        return msgspec.json.decode(ZstdDecompressor().decompress(packed), type=TapeState)
    except (ZstdError, *JSON_ERRORS) as error:
        raise Damaged(f"the catalogue cannot be continued: {error}") from error
