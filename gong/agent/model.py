"""A model as a session calls it: how to call it, what it can do, what its answers cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from tape.context.view import Target
from tape.model.entries import NO_JSON

from ..context.instructions import Instructions

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from tape.context.view import ForeignThinking
    from tape.model.entries import Cost, Usage

    from ..llm.models import Effort, EffortChoice, ProfileName
    from ..llm.types import Request, StreamEvent, ToolSpec
    from ..tool_settings import ToolSettings
    from ..tools.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class AgentModel:
    """A model: how to call it, and the names under which its answers are recorded."""

    provider: str
    id: str
    api: str
    endpoint: str
    stream: Callable[[Request], AsyncGenerator[StreamEvent, None]]
    system: str | Callable[[Sequence[ToolSpec]], str]
    """The system prompt, or a function from tools to it; the same in every turn."""
    cost: Callable[[Usage], Cost | None] = lambda _: None
    """Returns the cost of a call; None if unknown."""
    window: int | None = None
    """Size of the context window in tokens, None if unknown."""
    options: Raw = field(default_factory=lambda: NO_JSON)
    """A JSON object of the provider's own, for the body of each request."""
    sees_images: bool = True
    blocks_images: bool = False
    """Whether the user wants no pictures to be sent."""
    foreign_thinking: ForeignThinking = "text"
    """What becomes of the readable thinking of other models."""
    max_output: int | None = None
    """Maximum tokens of one answer, None if unknown."""
    reasons: bool | None = None
    """Whether it can be told how hard to think, None if unknown."""
    efforts: tuple[Effort, ...] = ()
    """The efforts that it accepts; empty if unknown."""
    effort: EffortChoice | None = None
    """How hard it thinks unless the session says otherwise."""
    profile: ProfileName = "default"
    """The family whose tools and instructions it gets."""
    instructions: Instructions = Instructions()
    """What the system prompt has from AGENTS.md and its relatives."""
    equip: Callable[[ToolRegistry, ToolSettings], ToolRegistry] = lambda tools, _: tools
    """Returns a registry with the tools that this model is offered, in these settings."""
    native_objects: bool = False
    """Whether its provider takes a `response_format`."""
    forces_calls: bool = True
    """Whether its provider can be told which tool to call."""

    @property
    def name(self) -> str:
        """provider/model."""
        return f"{self.provider}/{self.id}"

    def choose_options(self, *, has_tools: bool) -> Raw:
        """Return the options of a call: without tools of ours also without those of the provider.

        A title or a summary is no reason to search the web.
        """
        if has_tools or b'"tools"' not in bytes(self.options):
            return self.options
        options = msgspec.json.decode(bytes(self.options))
        options.pop("tools", None)
        return Raw(msgspec.json.encode(options)) if options else NO_JSON

    def build_system(self, tools: Sequence[ToolSpec]) -> str:
        """Return the system prompt of a call with these tools."""
        return self.system if isinstance(self.system, str) else self.system(tools)

    def can_hold_objects(self, *, has_tools: bool) -> bool:
        """Return whether its provider itself holds an answer to a schema, beside tools or not."""
        return self.native_objects and (not has_tools or self.api == "openai-responses")

    @property
    def target(self) -> Target:
        """The model that messages are repaired for."""
        return Target(
            self.endpoint,
            self.api,
            self.id,
            self.sees_images,
            self.blocks_images,
            self.foreign_thinking,
        )
