"""Whether the last answer of a run is a whole one, in words for people; pure.

Every front end says so: an answer that was cut or has no text looks like one that is whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tape.model.entries import Thinking, is_wordless, select_tool_calls

if TYPE_CHECKING:
    from tape.model.entries import Content

_WHOLE_STOPS = {"stop", "tool_calls"}


def describe_short_answer(content: Content, stop_reason: str) -> str:
    """Return in one line why the last answer of a run is not a whole one; "" if it is."""
    if stop_reason == "length":
        return "the answer was cut at the limit of its length (max_output_tokens)"
    if stop_reason not in _WHOLE_STOPS:
        return f"the answer ended early: {stop_reason}"
    if stop_reason == "tool_calls" and not select_tool_calls(content):
        return "the answer ended with tool calls, and has none"
    if not is_wordless(content):
        return ""
    if any(isinstance(block, Thinking) for block in content):
        return "the answer has no text: the model only thought"
    return "the answer is empty"
