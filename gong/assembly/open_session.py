"""What a front end gets back: a session that is open, or a branch that is only looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..agent.request import prepare_request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tape.index.library import Library
    from tape.store.tape import Hit

    from ..agent.front_end import ModelFactory
    from ..agent.model import AgentModel
    from ..agent.recorder import VisibleHistory
    from ..agent.request import PreparedRequest
    from ..agent.session import Session
    from ..agent.setup import ToolSource
    from ..llm.models import EffortChoice
    from ..tools.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session and what a front end needs with it."""

    session: Session
    models: ModelFactory
    library: Library
    """The store that the session is in."""
    model_name: str
    """provider/model of the session."""
    by_default: bool
    """Whether no model is configured and the offline one is used."""
    is_kept: bool = True
    """Whether its tape is there afterwards, so that it can be continued."""

    async def close(self) -> None:
        """Stop the run and close the branch and all connections."""
        await self.session.close()
        await self.models.client.close()


@dataclass(frozen=True, slots=True)
class SessionPreview:
    """An existing branch, opened read-only, with the models that could continue it."""

    hit: Hit
    history: VisibleHistory
    models: ModelFactory
    tools: ToolRegistry
    effort: EffortChoice | None
    max_output: int
    """Maximum tokens of one answer; 0 is the model's own limit."""

    async def collect_tools(
        self, model: AgentModel, sources: Sequence[ToolSource]
    ) -> tuple[ToolRegistry, list[str]]:
        """Return the tools that a model is offered, those of sources too, and what to warn of."""
        tools = model.equip(self.tools, self.models.settings.tuning)
        remarks: list[str] = []
        for source in sources:
            remarks += await source.offer(tools, has_person=False)
        return tools, remarks

    def next_request(self, model: AgentModel, tools: ToolRegistry | None = None) -> PreparedRequest:
        """Return the request of the next call to a model; None are its tools without sources."""
        tape = self.hit.tape
        tools = tools or model.equip(self.tools, self.models.settings.tuning)
        return prepare_request(
            model,
            tools.specs(),
            *self.history,
            session=tape.id,
            load=tape.load,
            effort=self.effort,
            max_output=self.max_output,
        )
