"""`context`: the messages of the next model call, and their sizes in bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from ..render import SHORT, content_lines, single
from ..repair import Target
from ..sendable import sendable
from .call import entry
from .out import as_json, counted, document, examples, ref, say, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..branches import Head
    from ..repair import Repaired
    from ..tape import Tape
    from ..view import Message
    from .group import Options

NOBODY = Target("", "", "")
"""A target that wrote none of the messages, so data for one provider only is left out."""


@click.command(epilog=examples("tape context", "tape context 3f2a:main~2 --json"))
@ref
@as_json
@click.pass_obj
def context(options: Options, ref: str, as_json: bool) -> None:
    """Show what the next model call would be built from: the repaired view, with sizes in bytes.

    --json prints {tape, branch, head, messages, repair, bytes}.
    """
    with entry(options, ref) as (tape, head):
        seen, made = sendable(tape, head, NOBODY)
        parts = weights(made, has_summary=bool(seen.summary))
    if as_json:
        document(
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
        say(lines(tape, head, made, parts))


def weights(made: Repaired, *, has_summary: bool) -> dict[str, int]:
    """Return the bytes of the summary and of the messages of each role, as JSON content."""
    parts = dict.fromkeys(("summary", "system", "user", "assistant", "tool"), 0)
    for at, message in enumerate(made.messages):
        parts["summary" if has_summary and at == 0 else message.role] += weight(message)
    return {**parts, "total": sum(parts.values())}


def weight(message: Message) -> int:
    """Return the bytes of a message's content."""
    return len(msgspec.json.encode(message.content))


def lines(tape: Tape, head: Head, made: Repaired, parts: dict[str, int]) -> Iterator[str]:
    """Yield the messages, the repairs, and the size of each part, as text."""
    for message in made.messages:
        call = f" {message.call_id}" if message.call_id else ""
        yield single(f"── {message.role}{call} · {size(weight(message))}")
        yield from (f"  {line}".rstrip() for line in content_lines(message.content))
        yield ""
    for injected in made.repair.injected if made.repair else ():
        yield single(f"repair: placeholder result for {injected.call_id}: {injected.text}")
    for dropped in made.repair.dropped if made.repair else ():
        yield f"repair: entry {dropped[:SHORT]} is not sent"
    weighed = ", ".join(f"{part} {size(count)}" for part, count in parts.items() if count)
    at = f"{tape.id[:SHORT]}:{head.branch}@{head.entry[:SHORT]}"
    yield f"{at}: {counted(len(made.messages), 'message')}; {weighed or 'nothing'}"
