"""Questions about calls that wait for a person: asked by the policy, answered by a front end.

no question  ──ask──▶  open: `approval_request` is emitted, the session awaits input
open         ──answer, the person leaves, or the end of the run──▶  no question
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from tape.formats.wire import clean_value, encode_json
from tape.text import clean_words

from ..errors import ConfigurationError
from ..policy.approval import ANSWERS, LASTING_ANSWERS, ApprovalAnswer
from . import events

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..policy.approval import Answer, ApprovalRequest

_NOBODY = ApprovalAnswer("no", "no user is present to answer")


class Approvals:
    """The open questions of a session."""

    def __init__(
        self, emit: Callable[[events.Event], None], note: Callable[[], None] = lambda: None
    ) -> None:
        self._emit = emit
        self._note = note
        """Called when a question was opened or closed."""
        self.has_person = True
        """Whether somebody answers."""
        self._open: dict[str, asyncio.Future[ApprovalAnswer]] = {}
        self._requests: dict[str, ApprovalRequest] = {}
        """What each open question is about."""

    @property
    def is_waiting(self) -> bool:
        """Whether a question is open."""
        return bool(self._open)

    async def ask(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Tell the front ends about a question, and wait for its answer; `no` without a person."""
        if not self.has_person:
            return _NOBODY
        ruling = request.ruling
        answer: asyncio.Future[ApprovalAnswer] = asyncio.get_running_loop().create_future()
        self._open[request.call_id] = answer
        self._requests[request.call_id] = request
        self._note()
        self._emit(
            events.ApprovalRequested(
                request.call_id,
                request.name,
                ruling.why,
                ruling.offered,
                ruling.by == "danger",
                Raw(encode_json(request.arguments)),
                ruling.reasons,
                request.details,
                agent=request.agent,
            )
        )
        try:
            return await answer
        finally:
            del self._open[request.call_id], self._requests[request.call_id]
            self._note()

    def close_questions(self) -> None:
        """Refuse what is open, and what will be asked: no user is present to answer."""
        self.has_person = False
        for question in self._open.values():
            if not question.done():
                question.set_result(_NOBODY)

    def answer(
        self,
        call_id: str,
        decision: Answer,
        reason: str = "",
        arguments: Mapping[str, Any] | None = None,
        rule: str | None = None,
    ) -> None:
        """Answer a question; the question stays open where this raises.

        A lasting decision about a call that no rule covers holds once: a warning says so.
        `rule` is what the person read as the rule of a lasting decision, of several all of them,
        with ", " between. Raises ConfigurationError where none is open for this call, for an
        unknown decision, and for a rule that was not offered.
        """
        if not isinstance(decision, str) or decision not in ANSWERS:
            known = f"{', '.join(ANSWERS[:-1])} or {ANSWERS[-1]}"
            raise ConfigurationError(f"{decision!r} is not a decision about a call: use {known}")
        if not isinstance(reason, str):
            raise ConfigurationError(f"the reason of a decision is a text, not {reason!r}")
        if not isinstance(arguments, Mapping | None):
            raise ConfigurationError(f"the arguments of a call are a mapping, not {arguments!r}")
        if (decision == "edit") is (arguments is None):
            raise ConfigurationError("an edit, and nothing else, needs the new arguments")
        question = self._open.get(call_id) if isinstance(call_id, str) else None
        if question is None or question.done():
            raise ConfigurationError(f"no question is open about the call {call_id}")
        request = self._requests[call_id]
        offered = ", ".join(request.ruling.offered)
        if rule is not None and rule != offered:
            raise ConfigurationError(f"the rule {rule!r} was not offered; {offered or 'none'} was")
        if arguments is not None:
            arguments = _check_arguments(arguments)
        if decision in LASTING_ANSWERS and not offered:
            text = f"{request.name}: no rule covers this call, so it is allowed this once alone"
            self._emit(events.Warn(text))
        question.set_result(ApprovalAnswer(decision, clean_words(reason), arguments))


def _check_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return edited arguments as they are written; raise ConfigurationError if JSON has no form."""
    try:
        cleaned: dict[str, Any] = clean_value(dict(arguments))
        encode_json(cleaned)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        text = f"the arguments of a call are a JSON object: {error}"
        raise ConfigurationError(text) from error
    return cleaned
