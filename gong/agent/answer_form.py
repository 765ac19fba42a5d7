"""The object that a run has to end with: how the model is asked for it, and what it answered.

    model                                  how it is asked                  what is taken
    -------------------------------------  -------------------------------  -------------------
    held to schemas by its provider, and   `response_format` with each      the text of the last
    without tools or of the Responses API  call                             answer
    any other                              the tool `structured_output`,    the call's arguments,
                                           forced after an end without it   else a text that fits

The other APIs that hold answers to schemas do not do so beside tools, or not all hosts of them.

    what came                         first                              again
    --------------------------------  ---------------------------------  --------------------------
    an object that fits               the run ends with it               –
    an object, or a text in place of  the model gets the fault        the run fails with NoObject
    it, that does not fit
    the end, and no call of the tool  the model is asked for the call    the run fails with NoObject
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from ..errors import NoObject
from ..llm.types import ToolChoice
from ..sdk.objects import build_response_format, parse_object, remove_fence
from ..tools.tool import AgentTool, AnyObject, ToolOutcome

if TYPE_CHECKING:
    from ..llm.types import Request
    from ..sdk.objects import JsonSchema
    from ..tools.tool import ToolContext

ANSWER_TOOL = "structured_output"
_DESCRIPTION = (
    "Give your final answer: the arguments are the answer. Call this once, as the last thing, when"
    " the work is done. What you write beside it is not read."
)
_REMINDER = (
    f"Your final answer is missing: call {ANSWER_TOOL} now, with the answer as its arguments."
)
_REPAIR = "Answer again, with one JSON object that fits the schema, and nothing else."


class AnswerForm:
    """The schema that the answers of a session have to fit, and the answer of the current run."""

    def __init__(self, schema: JsonSchema, *, by_tool: bool) -> None:
        self.schema, self.by_tool = schema, by_tool
        self.begin_run()

    def begin_run(self) -> None:
        """Forget the answer of the run before."""
        self.answer: Any = None
        """The object; None until there is one."""
        self.error: NoObject | None = None
        """Why there is none, at the end of a run that failed."""
        self.is_settled = False
        """Whether this turn has ended the run, with an object or an error."""
        self._is_wrong = self._is_asked = self._is_forced = False

    def build_tool(self) -> AgentTool:
        """Return the tool that takes the answer."""
        return AgentTool(
            name=ANSWER_TOOL,
            description=_DESCRIPTION,
            arguments=AnyObject,
            run=self._take_call,
            schema=self.schema,
        )

    def begin_turn(self, request: Request, *, forces_calls: bool) -> Request:
        """Let the next answer settle the run; return its request, asking as this form does.

        `forces_calls` says whether the provider can be told which tool to call.
        """
        self.is_settled = False
        if not self.by_tool:
            return replace(request, response_format=build_response_format(self.schema))
        if self._is_forced and forces_calls:
            return replace(request, tool_choice=ToolChoice("named", ANSWER_TOOL))
        return request

    async def _take_call(self, arguments: AnyObject, _context: ToolContext) -> ToolOutcome:
        """Take the arguments of a call as the answer; an error is the model's to correct."""
        self._is_forced = False
        text = msgspec.json.encode(arguments.value).decode()
        if (wrong := self._take_object(text)) is not None:
            return ToolOutcome.error(f"{wrong}. Call {ANSWER_TOOL} again.", kind="ValidationError")
        return ToolOutcome.from_text("The answer is taken.")

    def take_text(self, text: str) -> str | None:
        """Take the last words of a run; return the text for the model, None to end the run."""
        if self.is_settled or (self.by_tool and self.answer is not None):
            return None
        if not self.by_tool:
            wrong = self._take_object(text)
            return None if self.is_settled else f"{wrong}. {_REPAIR}"
        try:
            self.answer = parse_object(remove_fence(text), self.schema)
        except NoObject as error:
            if self._is_asked:
                self.error = error
                return None
            self._is_asked = self._is_forced = True
            return _REMINDER
        return None

    def _take_object(self, text: str) -> str | None:
        """Take an object; return what is wrong with it."""
        try:
            self.answer = parse_object(remove_fence(text), self.schema)
        except NoObject as error:
            if self._is_wrong:
                self.error, self.is_settled = error, True
            self._is_wrong = True
            return str(error)
        self.error, self.is_settled = None, True
        return None
