"""Results of `generate` and `stream_text`: steps, complete results, and running streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from tape.model.entries import Usage

from ..llm.types import Response, TextDelta

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence

    from tape.model.entries import Content, ToolCall

    from ..llm.accumulate import StreamAccumulator
    from ..llm.types import StreamEvent
    from .functions import FunctionResult


class StepResult(NamedTuple):
    """One model call and the tools its answer asked for."""

    response: Response
    tool_results: tuple[FunctionResult, ...] = ()

    @property
    def text(self) -> str:
        """The text of the answer."""
        return self.response.text

    @property
    def reasoning(self) -> str:
        """The thinking before it."""
        return self.response.reasoning

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Its tool calls."""
        return self.response.tool_calls

    @property
    def usage(self) -> Usage:
        """The usage of the call."""
        return self.response.usage


class StepFinish(Struct, frozen=True, tag_field="type", tag="step_finish"):
    """The event at the end of a step."""

    step: StepResult


class GenerateResult(NamedTuple):
    """All steps; `text`, `usage` and the rest are those of the last one."""

    steps: tuple[StepResult, ...]
    output: Any = None
    """The object, from `generate_object`."""

    @property
    def response(self) -> Response:
        """The last answer."""
        return self.steps[-1].response

    @property
    def text(self) -> str:
        """The last answer's text."""
        return self.steps[-1].text

    @property
    def reasoning(self) -> str:
        """The last answer's thinking."""
        return self.steps[-1].reasoning

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The last answer's calls."""
        return self.steps[-1].tool_calls

    @property
    def tool_results(self) -> tuple[FunctionResult, ...]:
        """The results of these calls."""
        return self.steps[-1].tool_results

    @property
    def finish_reason(self) -> str:
        """The stop reason of the last answer."""
        return self.response.stop_reason

    @property
    def usage(self) -> Usage:
        """The usage of the last call."""
        return self.steps[-1].usage

    @property
    def total_usage(self) -> Usage:
        """The usage of all calls."""
        return sum((step.usage for step in self.steps), start=Usage())


class StreamResult:
    """A running answer: iterate it, or its `text_stream`; afterwards it has the result."""

    def __init__(
        self,
        events: AsyncGenerator[StreamEvent | StepFinish, None],
        answers: Sequence[StreamAccumulator] = (),
    ) -> None:
        self._events, self._answers = events, answers
        self._steps: list[StepResult] = []

    def __aiter__(self) -> AsyncIterator[StreamEvent | StepFinish]:
        return self._iter_events()

    async def text_stream(self) -> AsyncGenerator[str, None]:
        """Yield the text of all steps as it arrives."""
        async for event in self:
            if isinstance(event, TextDelta):
                yield event.delta

    @property
    def partial(self) -> Content:
        """The newest step's answer so far, also of one that failed."""
        return self._answers[-1].partial() if self._answers else ()

    async def result(self) -> GenerateResult:
        """Read the rest of the stream and return the result."""
        async for _ in self:
            pass
        return GenerateResult(tuple(self._steps))

    async def close(self) -> None:
        """Stop; the connection is closed."""
        await self._events.aclose()

    async def _iter_events(self) -> AsyncGenerator[StreamEvent | StepFinish, None]:
        async for event in self._events:
            if isinstance(event, StepFinish):
                self._steps.append(event.step)
            yield event
