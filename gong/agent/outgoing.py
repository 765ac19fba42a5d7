"""The request of the next model call: view, repair, placeholders, request; pure.

The same path always gives the same request; the loop sends it, `gong context` shows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tape.repair import Target, repair
from tape.view import View, view

from ..context.elide import elide_results
from ..llm.types import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tape.blocks import BlobRef
    from tape.entries import Repair
    from tape.line import Entry
    from tape.view import Message

    from ..llm.types import ToolSpec
    from .parts import AgentModel


class PreparedRequest(NamedTuple):
    """A request, the view it was made from, and the repairs it needed."""

    request: Request
    view: View
    repair: Repair | None


def prepare_request(
    model: AgentModel,
    tools: Sequence[ToolSpec],
    path: Sequence[Entry],
    kept: Sequence[Entry],
    *,
    session: str,
    load: Callable[[BlobRef], bytes],
    plain: bool = False,
) -> PreparedRequest:
    """Return the next call's request; `plain` leaves out provider-specific blocks."""
    target = Target("", "", "", model.target.sees_images) if plain else model.target
    seen = view(path, kept)
    repaired = repair(seen, target)
    request = Request(
        model=model.id,
        messages=tuple(apply_elisions(repaired.messages, seen)),
        system=model.build_system(tools),
        tools=tuple(tools),
        session=session,
        load=load,
    )
    return PreparedRequest(request, seen, repaired.repair)


def apply_elisions(messages: Sequence[Message], seen: View) -> Sequence[Message]:
    """Return repaired messages to send, with placeholders for elided results."""
    return elide_results(messages, (*seen.kept, *seen.entries))
