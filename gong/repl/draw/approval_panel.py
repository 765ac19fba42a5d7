"""What a person is asked about a call: all of it, the risky parts marked, and the keys; pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .lines import INDENT, StyledLine, StyledPart, escape_text, join_parts, wrap_parts
from .tool_cards import describe_arguments, read_arguments, render_body

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...agent.events import ApprovalRequested


def render_question(event: ApprovalRequested, columns: int) -> list[StyledLine]:
    """Return the call, why it is asked about, and the keys that answer.

    A command is shown whole, its parts that are asked about marked; an edit as a diff; any other
    call with all its arguments.
    """
    arguments = read_arguments(bytes(event.args))
    command = arguments.get("command")
    reasons = event.reasons or (event.why,)
    if isinstance(command, str):
        # A reason names a part of the command before its first colon
        parts = [reason.partition(": ")[0].removesuffix("…") for reason in reasons]
        call = mark_parts(f"{event.name}: {command}", parts)
    elif body := render_body(event.name, arguments, whole=True):
        call = [StyledLine(escape_text(describe_arguments(event.name, arguments)), "call"), *body]
    else:
        call_args = bytes(event.args).decode("utf-8", "replace")
        call = [
            StyledLine(row, "call") for row in escape_text(f"{event.name}: {call_args}").split("\n")
        ]
    first, *rest = call
    head = join_parts([StyledPart("? "), *(first.parts or [StyledPart(first.text)])], "call")
    warning = "DANGEROUS: " if event.dangerous else ""
    keys = "1 once"
    if event.offered:
        keys += f" · 2 this session · 3 always: {', '.join(event.offered)}"
    return [
        head,
        *rest,
        *(
            join_parts(row, "error" if warning else "note")
            for reason in reasons
            for row in wrap_parts(
                [StyledPart(escape_text(f"{warning}{reason}").replace("\n", " "))],
                columns,
                first=[StyledPart(INDENT)],
                rest=[StyledPart(INDENT * 2)],
            )
        ),
        *(
            join_parts(row, "note")
            for row in wrap_parts(
                [StyledPart(f"{escape_text(keys)} · 4 no (a reason, then Enter) · e edits")],
                columns,
                first=[StyledPart(INDENT)],
                rest=[StyledPart(INDENT * 2)],
            )
        ),
    ]


def format_editable(event: ApprovalRequested) -> str:
    """Return what a person edits of a call: its command, else all its arguments as JSON."""
    command = read_arguments(bytes(event.args)).get("command")
    return command if isinstance(command, str) else bytes(event.args).decode("utf-8", "replace")


def parse_edited(event: ApprovalRequested, text: str) -> dict[str, Any]:
    """Return the arguments that an edited text means; raises ValueError unless it is an object."""
    arguments = read_arguments(bytes(event.args))
    if isinstance(arguments.get("command"), str):
        return {**arguments, "command": text}
    edited = json.loads(text)
    if not isinstance(edited, dict):
        raise ValueError("the arguments have to be a JSON object")  # noqa: TRY004 (of the text)
    return edited


def mark_parts(command: str, parts: Sequence[str]) -> list[StyledLine]:
    """Return a command as lines, with the places marked where its parts stand."""
    marked = bytearray(len(command))
    for part in parts:
        start = command.find(part) if part else -1
        while start >= 0:
            marked[start : start + len(part)] = b"\1" * len(part)
            start = command.find(part, start + len(part))
    lines: list[StyledLine] = []
    at = 0
    for line in command.split("\n"):
        pieces = [
            StyledPart(escape_text(char), "risky" if marked[at + place] else "")
            for place, char in enumerate(line)
        ]
        lines.append(join_parts([StyledPart(INDENT if lines else ""), *pieces], "call"))
        at += len(line) + 1
    return lines
