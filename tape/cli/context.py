"""`context`: the messages of the next model call, and their sizes in bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from ..render import SHORT, render_content, to_single_line
from ..repair import Target
from ..sendable import build_messages
from .call import open_entry
from .out import as_json, format_count, format_examples, format_size, print_json, print_lines, ref

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..branches import Head
    from ..repair import Repaired
    from ..tape import Tape
    from ..view import Message
    from .group import GlobalOptions

NO_MODEL = Target("", "", "")
"""A target that wrote none of the messages, so data for one provider only is left out."""


@click.command(epilog=format_examples("tape context", "tape context 3f2a:main~2 --json"))
@ref
@as_json
@click.pass_obj
def context(options: GlobalOptions, ref: str, as_json: bool) -> None:
    """Show what the next model call would be built from: the repaired view, with sizes in bytes.

    --json prints {tape, branch, head, messages, repair, bytes}.
    """
    with open_entry(options, ref) as (tape, head):
        seen, made = build_messages(tape, head, NO_MODEL)
        parts = weigh_messages(made, has_summary=bool(seen.summary))
    if as_json:
        print_json(
            {
                "tape": tape.id,
                "branch": head.branch,
                "head": head.entry,
                "messages": made.messages,
                "repair": made.repair,
                "bytes": parts,
            }
        )
    else:
        print_lines(format_context(tape, head, made, parts))


def weigh_messages(made: Repaired, *, has_summary: bool) -> dict[str, int]:
    """Return the bytes of the summary and of the messages of each role, as JSON content."""
    parts = dict.fromkeys(("summary", "system", "user", "assistant", "tool"), 0)
    for at, message in enumerate(made.messages):
        parts["summary" if has_summary and at == 0 else message.role] += weigh_message(message)
    return {**parts, "total": sum(parts.values())}


def weigh_message(message: Message) -> int:
    """Return the bytes of a message's content."""
    return len(msgspec.json.encode(message.content))


def format_context(tape: Tape, head: Head, made: Repaired, parts: dict[str, int]) -> Iterator[str]:
    """Yield the messages, the repairs, and the size of each part, as text."""
    for message in made.messages:
        call = f" {message.call_id}" if message.call_id else ""
        yield to_single_line(f"── {message.role}{call} · {format_size(weigh_message(message))}")
        yield from (f"  {line}".rstrip() for line in render_content(message.content))
        yield ""
    for injected in made.repair.injected if made.repair else ():
        yield to_single_line(f"repair: placeholder result for {injected.call_id}: {injected.text}")
    for dropped in made.repair.dropped if made.repair else ():
        yield f"repair: entry {dropped[:SHORT]} is not sent"
    weighed = ", ".join(f"{part} {format_size(count)}" for part, count in parts.items() if count)
    at = f"{tape.id[:SHORT]}:{head.branch}@{head.entry[:SHORT]}"
    yield f"{at}: {format_count(len(made.messages), 'message')}; {weighed or 'nothing'}"
