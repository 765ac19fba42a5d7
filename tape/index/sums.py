"""Sums of the calls of each phase by day and model, so that statistics need not read each call.

    table sums    phase, day (UTC), caller → calls, tokens, cost, and the tool calls it asked for

A tool call belongs to the newest answer before it in its phase; caller 0 is none. What a tape
copied from its origin is not in it: each entry of that counts where it was written.

Invariant: the rows of a phase are the sums over its lines that are indexed, however these were cut
into runs; they go with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlite3 import Connection

TOKEN_COLUMNS = ("input", "output", "reasoning", "cache_read", "cache_write", "total")
_KNOWN = (*TOKEN_COLUMNS, "duration_ms", "cost")
"""Sums that are NULL where no call says anything."""
_COUNTS = ("calls", "unpriced", "tool_calls", "tool_errors", "tool_ms")
_DAY = "date(e.time / 1000000, 'unixepoch')"

_MERGE = f"""
    ON CONFLICT DO UPDATE SET
    {", ".join(f"{name} = {name} + excluded.{name}" for name in _COUNTS)},
    {
    ", ".join(
        f"{name} = coalesce({name} + excluded.{name}, {name}, excluded.{name})" for name in _KNOWN
    )
},
    first = min(first, excluded.first), last = max(last, excluded.last)
"""
_ADD_CALLS = f"""
    INSERT INTO sums (
        phase, day, caller, calls, {", ".join(_KNOWN)}, unpriced,
        tool_calls, tool_errors, tool_ms, first, last
    )
    SELECT ?1, {_DAY}, m.caller, count(*), {", ".join(f"sum(m.{name})" for name in _KNOWN)},
    sum(m.cost IS NULL), 0, 0, 0, min(e.time), max(e.time)
    FROM model_calls m JOIN entries e ON e.key = m.entry
    WHERE m.entry BETWEEN ?2 AND ?3 GROUP BY 2, 3 {_MERGE}
"""
_ADD_TOOL_CALLS = f"""
    INSERT INTO sums (
        phase, day, caller, calls, unpriced, tool_calls, tool_errors, tool_ms, first, last
    )
    SELECT ?1, {_DAY}, coalesce((
        SELECT m.caller FROM model_calls m JOIN callers k ON k.key = m.caller
        WHERE m.entry BETWEEN ?2 AND c.entry AND k.purpose = 'answer' ORDER BY m.entry DESC LIMIT 1
    ), (SELECT asked FROM phases WHERE key = ?1), 0), 0, 0,
    count(*), sum(c.is_error), sum(c.duration_ms), min(e.time), max(e.time)
    FROM calls c JOIN entries e ON e.key = c.entry
    WHERE c.entry BETWEEN ?2 AND ?3 GROUP BY 2, 3 {_MERGE}
"""
_NOTE_ASKED = """
    UPDATE phases SET asked = coalesce((
        SELECT m.caller FROM model_calls m JOIN callers k ON k.key = m.caller
        WHERE m.entry BETWEEN ?2 AND ?3 AND k.purpose = 'answer' ORDER BY m.entry DESC LIMIT 1
    ), asked) WHERE key = ?1
"""


def add_sums(db: Connection, phase: int, first: int, last: int) -> None:
    """Add the lines of a phase that were just inserted with these keys, without a gap."""
    place = (phase, first, last)
    db.execute(_ADD_CALLS, place)
    db.execute(_ADD_TOOL_CALLS, place)
    db.execute(_NOTE_ASKED, place)


def delete_sums(db: Connection, where: str, *values: object) -> None:
    """Delete what is summed of the phases that match `where`."""
    db.execute(f"DELETE FROM sums WHERE phase IN (SELECT key FROM phases WHERE {where})", values)
    db.execute(f"UPDATE phases SET asked = NULL WHERE asked IS NOT NULL AND {where}", values)
