"""M039: what a sub-agent says is shown in its card, and forgotten when it is complete."""

from __future__ import annotations

from gong.agent import events
from gong.repl.draw.agent_cards import AgentCards, describe_end
from tape.model.entries import Usage

START = events.SubagentStart("Explore", "look around", "a/b", agent="agent-1")


def show(*seen, now=12.0):
    clock = iter((0.0, now)).__next__
    cards = AgentCards(clock)
    for event in seen:
        cards.take_event(event)
    return [line.text for line in cards.render(80)]


def test_a_sub_agent_that_thinks():
    assert show(START) == ["agent-1 Explore: look around · thinking · 12 s"]


def test_the_tool_that_it_called_last_and_its_tokens():
    used = events.MessageEnd("e", (), "tool_calls", Usage(total=3212), agent="agent-1")
    tool = events.ToolExecutionStart("c", "grep", "running", agent="agent-1")
    assert show(START, used, tool) == ["agent-1 Explore: look around · grep · 3,212 tokens · 12 s"]


def test_what_it_says_is_shown_until_the_message_is_complete():
    """M039: tokens of a sub-agent in its card, the buffer is reset when they are done."""
    said = [events.MessageUpdate("text", 0, one, agent="agent-1") for one in ("I saw\n", "it")]
    done = events.MessageEnd("e", (), "stop", Usage(total=5), agent="agent-1")
    assert show(START, *said) == ["agent-1 Explore: look around · “…I saw it” · 12 s"]
    assert show(START, *said, done) == ["agent-1 Explore: look around · thinking · 5 tokens · 12 s"]


def test_its_line_goes_with_its_end():
    end = events.SubagentEnd("Explore", "completed", 2, Usage(total=9), agent="agent-1")
    assert show(START, end) == []
    assert describe_end(end).text == "agent-1 (Explore) completed: 2 model calls, 9 tokens"


def test_events_of_others_change_nothing():
    other = events.ToolExecutionStart("c", "grep", "running")
    unknown = events.ToolExecutionStart("c", "grep", "running", agent="agent-7")
    assert show(other, unknown) == []


def test_a_line_is_as_wide_as_the_screen_and_safe():
    evil = events.SubagentStart("x\x1b[31m", "y\n" * 90, "a/b", agent="agent-1")
    [line] = show(evil)
    assert len(line) <= 80
    assert "\x1b" not in line
    assert "\n" not in line
