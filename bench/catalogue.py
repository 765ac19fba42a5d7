"""Search in the catalogue of a remote in PostgreSQL, against a statement that reads nothing.

A million entries of thirty words each stand in its tables, as pushes leave them. Three words are
looked for, one that is nowhere, one that a hundred entries have, and one that every tenth has.
Alone:

    .venv/bin/python bench/catalogue.py [ENTRIES]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from measure import Row, by_turns, seconds, table

sys.path.insert(0, str(Path(__file__).parent.parent))

from tape.remote.catalogue_search import search_catalogue
from tape.remote.postgres import PostgresRemote
from tests.tape.remote.servers import serving_postgres

if TYPE_CHECKING:
    from measure import Scale

ENTRIES, ROUNDS = 1_000_000, 50
TAPES = 1_000
FILL = """
    INSERT INTO tape.said (team, tape, entry, time, type, head, words)
    SELECT 'team', decode(lpad(to_hex(n %% {tapes}), 32, '0'), 'hex'),
    decode(lpad(to_hex(n), 40, '0'), 'hex'), '2026-01-01'::timestamptz + n * interval '31 seconds',
    CASE n %% 2 WHEN 0 THEN 'user' ELSE 'assistant' END, 'an entry of a session',
    to_tsvector('simple', (
        SELECT string_agg('w' || (50000 * power(random(), 3))::int, ' ')
        FROM generate_series(1, 30 + n %% 2)
    ) || CASE WHEN n %% 10 = 0 THEN ' common' ELSE '' END
      || CASE WHEN n %% {rare} = 0 THEN ' rare' ELSE '' END)
    FROM generate_series(1, {entries}::bigint) AS n
"""
WORDS = {"nowhere": 5, "rare": 50, "common": 100}


def fill(remote: PostgresRemote, address: str, entries: int) -> None:
    """Write entries as updates of the catalogue do, and let the server tidy up as it does."""
    remote.create("remote.json", b"{}")
    remote.ask("SELECT 1 FROM tape.said")
    with psycopg.connect(address, autocommit=True) as connection:
        statement = FILL.format(tapes=TAPES, rare=max(entries // 100, 1), entries=entries)
        connection.execute(statement.replace("%%", "%"))
        connection.execute("VACUUM ANALYZE tape.said")


def catalogue_rows(_path: Path, scale: Scale) -> list[Row]:
    """Measure a million entries, or as many thousands as a quick run has of others."""
    return measure(min(10 * scale.large, ENTRIES), min(scale.rounds, ROUNDS))


def measure(entries: int, rounds: int) -> list[Row]:
    rows = []
    with serving_postgres() as port:
        address = f"postgresql://tape@127.0.0.1:{port}/postgres"
        with PostgresRemote(address) as remote:
            fill(remote, address, entries)
            for word, target in WORDS.items():
                pair = by_turns(
                    rounds,
                    lambda word=word: seconds(lambda: search_catalogue(remote, word, 20)),
                    lambda: seconds(lambda: remote.ask("SELECT 1")),
                )
                what = f"search in PostgreSQL, {entries:,} entries: {word}"
                rows.append(Row(what, "SELECT 1", pair.ratio, "×", target))
                print(f"{pair.ours * 1e3:.2f} ms, {pair.floor * 1e3:.2f} ms", file=sys.stderr)
    return rows


def main() -> int:
    entries = int(sys.argv[1]) if len(sys.argv) > 1 else ENTRIES
    rows = measure(entries, ROUNDS)
    print("\n".join(table(rows)))
    return int(any(row.met is False for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
