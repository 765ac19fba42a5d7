"""One entry of a tape as people see it: with its call, and with what it changed in files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..history.entry_lines import (
    decode_legible,
    iter_lines,
    read_entry_at,
    read_line_at,
)
from ..model.entries import NO_JSON, Assistant, ToolResult, ToolStart, User, select_tool_calls
from ..render.entries import (
    RenderOptions,
    render_entry,
)
from ..render.paint import leave_plain
from .output import (
    print_bytes,
)
from .terminal import (
    can_colour,
    paint_line,
    print_lines,
)

if TYPE_CHECKING:
    from ..render.calls import RenderedCall
    from ..store.refs import Head
    from ..store.tape import Tape


def print_line(tape: Tape, head: Head) -> None:
    """Print the line of an entry as stored."""
    print_bytes(read_line_at(tape, head) + b"\n")


def print_entry(tape: Tape, head: Head, *, as_json: bool) -> None:
    """Print an entry as text, or its line; raise Damaged where it does not verify."""
    step = read_entry_at(tape, head)
    if as_json:
        print_bytes(step.line + b"\n")
        return
    looks, call = build_render_options(tape), None
    if isinstance(step.entry.data, ToolResult):
        call = _find_call(tape, head, step.entry.data.call_id, looks)
    print_lines(render_entry(step.entry, None, looks, call))


def build_render_options(tape: Tape, **more: Any) -> RenderOptions:
    """Return how entries of a tape are shown here: with diffs, and colours where they are on."""
    return RenderOptions(tape.load, paint_line if can_colour() else leave_plain, **more)


_CALL_TYPES = frozenset(kind.entry_type for kind in (User, Assistant, ToolStart))


def _find_call(tape: Tape, head: Head, call_id: str, options: RenderOptions) -> RenderedCall | None:
    """Return the call that the result at a head answers; None where the path has none."""
    ran = NO_JSON
    back = iter_lines(tape.path(head), back=True)
    for step in decode_legible(back, None, _CALL_TYPES):
        match step.entry.data:
            case ToolStart() as start if start.call_id == call_id:
                ran = start.args
            case Assistant(content=content):
                calls = {call.id: call for call in select_tool_calls(content)}
                if call_id in calls:
                    from ..render.calls import render_call  # few entries are results

                    return render_call(calls[call_id], ran, options.paint)
            case User():
                break
            case _:
                pass
    return None
