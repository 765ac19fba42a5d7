"""One line for each sub-agent that runs, under the answer: what it does right now.

event of the sub-agent      its line
--------------------------  ------------------------------------------------------
subagent_start              appears: id, type and task
tool_start                  the tool that it called last
message_update of text      the end of what it says, until the message is complete
message_end                 its tokens; what it said is gone
subagent_end                gone; of a run in the background a remark stays
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tape.text import format_count, format_seconds, to_single_line

from ...agent import events
from .lines import StyledLine, clip_line, render_remark

if TYPE_CHECKING:
    from collections.abc import Callable

_ANSWER_CHARS = 200
"""Characters of an answer that are kept for its line."""
_ANSWER_COLUMNS = 40


@dataclass(slots=True)
class _Card:
    type: str
    task: str
    started_at: float
    doing: str = ""
    answer: str = ""
    tokens: int = 0


class AgentCards:
    """The lines of the sub-agents of one session, which `take_event` is subscribed to."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._cards: dict[str, _Card] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no sub-agent runs."""
        return not self._cards

    def take_event(self, event: events.Event) -> None:
        """Note what a sub-agent does."""
        if isinstance(event, events.SubagentStart):
            self._cards[event.agent] = _Card(event.type, event.task, self._clock())
            return
        card = self._cards.get(event.agent)
        if card is None:
            return
        match event:
            case events.SubagentEnd():
                del self._cards[event.agent]
            case events.ToolExecutionStart(name=name):
                card.doing = name
            case events.MessageUpdate(part="text", delta=delta):
                card.answer = (card.answer + delta)[-_ANSWER_CHARS:]
            case events.MessageEnd(usage=usage):
                card.answer, card.tokens = "", card.tokens + usage.total
            case _:
                pass

    def render(self, columns: int) -> list[StyledLine]:
        """Return the lines, oldest sub-agent first."""
        lines = (_render_card(agent, card, self._clock()) for agent, card in self._cards.items())
        return [StyledLine(clip_line(line, columns), "result") for line in lines]


def _render_card(agent: str, card: _Card, now: float) -> str:
    last_words = to_single_line(card.answer)
    doing = (
        f"“…{last_words[-_ANSWER_COLUMNS:].lstrip()}”" if last_words else card.doing or "thinking"
    )
    spent = [f"{card.tokens:,} tokens"] if card.tokens else []
    parts = (doing, *spent, format_seconds(now - card.started_at))
    return f"{agent} {to_single_line(card.type)}: {to_single_line(card.task)} · {' · '.join(parts)}"


def describe_end(event: events.SubagentEnd) -> StyledLine:
    """Return the remark about a run in the background that has ended."""
    calls = format_count(event.turns, "model call")
    text = f"{event.agent} ({event.type}) {event.status}: {calls}, {event.usage.total:,} tokens"
    return render_remark(text, "note" if event.status == "completed" else "error")
