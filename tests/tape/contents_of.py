"""Everything an index holds, without the keys and numbers it was free to choose."""

from __future__ import annotations

from tape.index.database import erase_removed_words
from tape.index.tape_record import TALLY_COLUMNS

PLACE = """
    lower(hex(t.id)), p.name, p.branch, e."offset"
"""
FROM = """
    FROM entries e JOIN phases p ON p.key = e.phase JOIN tapes t ON t.id = p.tape
    JOIN types k ON k.key = e.type
"""
QUESTIONS = {
    "entries": f"SELECT {PLACE}, lower(hex(e.id)), e.length, e.n, e.time, k.name {FROM}",
    "usage": f"SELECT {PLACE}, u.* {FROM} JOIN usage u ON u.entry = e.key",
    "calls": f"SELECT {PLACE}, c.* {FROM} JOIN calls c ON c.entry = e.key",
    "files": f"SELECT {PLACE}, f.* {FROM} JOIN files f ON f.entry = e.key",
    "said": f"SELECT {PLACE}, e.key, w.term, w.offset {FROM} JOIN temp.every_said w "
    "ON w.doc = e.key",
    "words": f"SELECT {PLACE}, e.key, w.term {FROM} JOIN temp.every_word w ON w.doc = e.key",
    "branches": "SELECT * FROM branches",
    "labels": "SELECT * FROM labels",
    "phases": f"SELECT tape, name, {TALLY_COLUMNS}, (SELECT purpose || provider || model "
    "FROM callers k WHERE k.key = asked) FROM phases",
    "sums": "SELECT p.tape, p.name, k.purpose, k.provider, k.model, s.day, s.calls, s.input, "
    "s.output, s.total, s.cost, s.unpriced, s.tool_calls, s.tool_errors, s.tool_ms, s.first, "
    "s.last FROM sums s JOIN phases p ON p.key = s.phase LEFT JOIN callers k ON k.key = s.caller",
    "stray": "SELECT (SELECT count(*) FROM temp.every_said w WHERE w.doc NOT IN "
    "(SELECT key FROM entries)), (SELECT count(*) FROM temp.every_word w WHERE w.doc NOT IN "
    "(SELECT key FROM entries)), (SELECT count(*) FROM usage WHERE entry NOT IN "
    "(SELECT key FROM entries)), (SELECT count(*) FROM said_docsize WHERE id NOT IN "
    "(SELECT key FROM entries)), (SELECT count(*) FROM files WHERE entry NOT IN "
    "(SELECT key FROM entries)), (SELECT count(*) FROM entries WHERE phase NOT IN "
    "(SELECT key FROM phases)), (SELECT rtrim(hex(block), '0') FROM said_data WHERE id = 1)",
}
KEYED = {"usage": 4, "calls": 4, "files": 4, "said": 4, "words": 4}
"""Where a column stands that holds a number the index was free to choose."""


def contents_of(db):
    """Return question → what the tables answer, sorted."""
    erase_removed_words(db)
    for name, table in (("every_said", "said"), ("every_word", "words")):
        kind = f"fts5vocab(main, {table}, instance)"
        db.execute(f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{name} USING {kind}")
    found = {}
    for name, question in QUESTIONS.items():
        at = KEYED.get(name)
        rows = [row if at is None else row[:at] + row[at + 1 :] for row in db.execute(question)]
        found[name] = sorted(rows, key=repr)
    return found
