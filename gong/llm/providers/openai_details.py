"""Pieces of `reasoning_details`, put together as they must go back: pure.

Pieces of words that follow each other with the same type and index are one detail; encrypted ones
always come whole.
"""

from __future__ import annotations

from typing import Any

_GROWING = ("text", "summary")


def add_detail(details: list[Any], piece: Any) -> Any:
    """Append a piece, or let the detail before it grow; return what of the piece is new."""
    last = details[-1] if details else None
    if not isinstance(last, dict) or not _is_continuation(last, piece):
        details.append(piece)
        return piece
    new = [value for name, value in piece.items() if name in _GROWING or value != last.get(name)]
    for name, value in piece.items():
        if name in _GROWING and isinstance(value, str):
            last[name] = (last.get(name) or "") + value
        elif value is not None:
            last[name] = value
    return new


def get_call_id(detail: Any) -> str | None:
    """Return the id of the call a detail belongs to, if it has one."""
    found = detail.get("id") if isinstance(detail, dict) else None
    return found if isinstance(found, str) else None


def join_text(details: list[Any]) -> str:
    """Return what can be read in details, for hosts that say it nowhere else."""
    fields = [detail for detail in details if isinstance(detail, dict)]
    texts = [one.get(name) for one in fields for name in _GROWING]
    return "".join(text for text in texts if isinstance(text, str))


def _is_continuation(last: dict[str, Any], piece: Any) -> bool:
    if not isinstance(piece, dict):
        return False
    same = all(last.get(name) == piece.get(name) for name in ("type", "index"))
    return same and any(name in piece for name in _GROWING)
