"""Cards of the agent's own tools: questions and answers, todo lists, plans, sub-agents; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tape.render.own_calls import TODO_MARKS, describe_own_call, flatten_object
from tape.text import to_single_line

from .lines import INDENT, StyledLine, StyledPart, escape_text, join_parts, wrap_parts
from .tool_cards import render_result

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SILENT = {"skill", "compact", "enter_plan_mode", "structured_output"}
"""Tools whose result is for the model alone."""
_TODO_STYLES = {"pending": "", "in_progress": "call", "completed": "faint"}
_MARK_STYLES = {"pending": "", "in_progress": "call", "completed": "added"}


class OwnCard(NamedTuple):
    """The card of a call of such a tool."""

    sentence: str
    lines: list[StyledLine]


def render_own_card(
    name: str,
    arguments: dict[str, object],
    details: dict[str, object],
    text: str,
    columns: int,
    *,
    is_error: bool,
) -> OwnCard | None:
    """Return the card of a call that has ended; None for any other tool.

    `text` is its result for the model.
    """
    own = describe_own_call(name, arguments)
    if own is None:
        return None
    kind = name.lower()
    answers = details.get("answers")
    if isinstance(answers, dict):
        return OwnCard(own.sentence, [*_render_answers(answers, columns)])
    if isinstance(details.get("approved"), bool):
        verb = "approved" if details["approved"] else "not approved"
        reason = str(details.get("reason") or "")
        lines = [*_wrap_text(reason, columns)] if reason else []
        return OwnCard(f"Plan {verb}", lines)
    items = details.get("todos")
    if isinstance(items, list) and not is_error:
        current = _find_current(items)  # the list itself stands above the prompt
        return OwnCard(f"{own.sentence}{f' · {current}' if current else ''}", [])
    if kind in _SILENT and not is_error:
        return OwnCard(own.sentence, [])
    flat = flatten_object(text.strip())
    result = text if flat is None else "\n".join(flat)
    return OwnCard(own.sentence, render_result(result, columns, is_error=is_error))


def _render_answers(answers: dict[str, object], columns: int) -> Iterator[StyledLine]:
    for question, chosen in answers.items():
        texts = [str(text) for text in chosen] if isinstance(chosen, list) else []
        answer = "; ".join(texts) or "(no answer)"
        parts = [
            StyledPart(to_single_line(question)),
            StyledPart(f" → {to_single_line(answer)}", "strong"),
        ]
        rows = wrap_parts(parts, columns, first=[StyledPart(INDENT)], rest=[StyledPart(INDENT * 2)])
        yield from (join_parts(row, "result") for row in rows)


def _wrap_text(text: str, columns: int) -> Iterator[StyledLine]:
    rows = wrap_parts(
        [StyledPart(escape_text(" ".join(text.split())))],
        columns,
        first=[StyledPart(INDENT)],
        rest=[StyledPart(INDENT)],
    )
    return (join_parts(row, "result") for row in rows)


def render_todo(item: object, columns: int) -> StyledLine:
    """Return a thing to do of a todo list, as `☑ Read it`, cut to the width."""
    fields = item if isinstance(item, dict) else {}
    status = str(fields.get("status", "pending"))
    status = status if status in TODO_MARKS else "pending"
    active = str(fields.get("activeForm") or "") if status == "in_progress" else ""
    words = to_single_line(active or str(fields.get("content", "")))
    (row, *more) = wrap_parts([StyledPart(words)], max(columns - 2 * len(INDENT) - 1, 8))
    text = "".join(part.text for part in row) + "…" * bool(more)
    mark = StyledPart(f"{INDENT}{TODO_MARKS[status]} ", _MARK_STYLES[status])
    return join_parts([mark, StyledPart(text, _TODO_STYLES[status])])


def _find_current(items: Sequence[object]) -> str:
    """Return what is worked on in a todo list; empty for nothing."""
    for item in items:
        if isinstance(item, dict) and item.get("status") == "in_progress":
            return to_single_line(str(item.get("activeForm") or item.get("content", "")))
    return ""
