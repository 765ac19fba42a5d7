"""What a conversation prints first and last: with what it works, and how to continue it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tape.text import format_count, measure_width

from ...env.wrappers import describe_folder
from ...policy.approval import ModalPolicy
from ...policy.modes import PermissionMode
from ..draw.lines import StyledLine, render_remark
from ..draw.past_turns import read_last_turns, render_last_turns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...agent.recorder import Recorder
    from ...agent.session import Session
    from ..commands.command import SessionChoice
    from ..draw.screen import Screen


def format_model(session: Session, name: str, gap: str) -> str:
    """Return the name of the model, and how hard it thinks where that is set."""
    effort = session.setup.config.effort or session.setup.model.effort
    return f"{name}{gap}{effort}" if effort else name


def render_greeting(session: Session, model_name: str, columns: int) -> list[StyledLine]:
    """Return the lines that say with what a session works: no fact is broken where it fits."""
    folder = describe_folder(session.setup.env)
    model = format_model(session, model_name, " · effort ")
    remarks = _join_facts(("gong", model, folder, "/help"), columns)
    if names := session.setup.model.instructions.names:
        remarks.append(f"instructions: {', '.join(names)}")
    policy = session.setup.policy
    if isinstance(policy, ModalPolicy) and policy.mode is PermissionMode.PLAN:
        remarks.append("plan mode is on; /plan off ends it")
    return [render_remark(remark) for remark in remarks]


def _join_facts(facts: Iterable[str], columns: int) -> list[str]:
    """Return facts as lines of at most `columns`, but for one that is longer by itself."""
    lines: list[str] = []
    for fact in facts:
        longer = f"{lines[-1]} · {fact}" if lines else fact
        if lines and measure_width(longer) <= columns:
            lines[-1] = longer
        else:
            lines.append(fact)
    return lines


def render_continuation(
    recorder: Recorder, turns: int, screen: Screen, columns: int
) -> list[StyledLine]:
    """Return the lines that say what is continued, and its last turns."""
    entries = format_count(recorder.path[-1].n + 1, "entry", "entries")
    remark = render_remark(f"continuing {_name_place(recorder)}, {entries}")
    past = read_last_turns(recorder, turns)
    return [remark, *render_last_turns(screen, past, columns)]


def render_goodbye(recorder: Recorder, opens: SessionChoice | None) -> list[StyledLine]:
    """Return the lines that say how to continue the session that is left.

    `opens` is the session that takes its place, None to quit.
    """
    place, refs = _name_place(recorder), recorder.tape.refs()
    if opens is not None:
        way_back = "" if place == opens.ref else f" · back with: /resume {place}"
        return [render_remark(f"left session {place}{way_back}")]
    is_current = refs.current == recorder.branch
    flag = "-c" if is_current else f"--session {place}"
    remarks = [f"session {place} · continue with: gong chat {flag}"]
    first, _, number = recorder.branch.rpartition(".")
    if number.isdecimal() and first in refs.branches and not is_current:
        into = "" if refs.current == first else f" --into {first}"
        remarks.append(f"bring it into {first} with: tape merge {place}{into}")
    return [render_remark(remark) for remark in remarks]


def _name_place(recorder: Recorder) -> str:
    return f"{recorder.tape.id[:8]}:{recorder.branch}"
