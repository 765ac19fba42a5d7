"""What a front end gets back: a session that is open, or a branch that is only looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .run_context import prepare_request

if TYPE_CHECKING:
    from tape.index.library import Library
    from tape.store.tape import Hit

    from ..llm.models import EffortChoice
    from ..tools.registry import ToolRegistry
    from .front_end import ModelFactory
    from .recorder import VisibleHistory
    from .run_context import AgentModel, PreparedRequest
    from .session import Session


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

    def next_request(self, model: AgentModel) -> PreparedRequest:
        """Return the request of the next call to a model."""
        tape = self.hit.tape
        tools = model.equip(self.tools, self.models.settings.tuning).specs()
        return prepare_request(
            model,
            tools,
            *self.history,
            session=tape.id,
            load=tape.load,
            effort=self.effort,
            max_output=self.max_output,
        )
