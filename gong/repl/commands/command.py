"""A slash command as a value, and what it replies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ...agent.recorder import find_newest_anchor
from ...errors import ConfigurationError, NothingToUndo

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from tape.model.entries import Anchor

    from ...agent.events import Event
    from ...agent.recorder import Recorder
    from ..draw.picker import Picker


class SessionChoice(NamedTuple):
    """The session that the conversation goes to next."""

    ref: str | None = None
    """A tape, branch or entry; None is a new session."""
    forks: bool = False
    """Whether a new branch starts there."""
    model: str | None = None
    """provider/model to use; None leaves the choice to the session and the settings."""
    draft: str = ""
    """Text that stands in its prompt."""
    line: str = ""
    """A command that it begins with."""
    place: str | None = None
    """Where its tools act; None is where they did."""


class CommandReply(NamedTuple):
    """The result of a command; `leaves` ends the conversation, `opens` continues it elsewhere."""

    text: str = ""
    failed: bool = False
    leaves: bool = False
    opens: SessionChoice | None = None
    draft: str = ""
    """Text that is put into the prompt where it is empty."""
    picks: Picker | None = None
    """A list to choose from; what is chosen is the next command."""
    work: AsyncGenerator[Event, None] | None = None
    """Work to run before the next prompt; input that arrives meanwhile is queued."""
    work_name: str = "the compaction"
    """What that work is called; empty for a run like that of a prompt, which takes input."""
    later: Awaitable[CommandReply] | None = None
    """What the command prints once it has ended; the conversation continues meanwhile."""
    types: Callable[[Any], None] | None = None
    """What happens in the prompt then, once the command is no longer in it."""
    after: Callable[[], str] = lambda: ""
    """Returns the text to show after that work."""


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """One slash command."""

    name: str
    argument: str
    """The argument as /help shows it; empty for none."""
    about: str
    busy: bool
    """Whether the command may run while the agent works."""
    run: Callable[[Any, str], CommandReply]


def require_recorder(host: Any) -> Recorder:
    """Return what records the session; raises ConfigurationError before its first prompt."""
    recorder: Recorder | None = host.session.recorder
    if recorder is None:
        raise ConfigurationError("the session is empty: type a prompt first")
    return recorder


def undo_anchor(host: Any, kinds: Sequence[str], *, leave: bool) -> Anchor:
    """Undo the newest anchor of a session, where it is of one of these kinds; return it.

    Raises NothingToUndo where it is of another kind, which has its own command.
    """
    newest = find_newest_anchor(require_recorder(host).path)
    if newest is not None and newest.kind not in kinds:
        command = "/merge --undo" if newest.kind == "merge" else "/compact --undo"
        raise NothingToUndo(f"the newest summary is of a {newest.kind}: {command} undoes it")
    anchor: Anchor = host.session.undo(leave=leave)
    return anchor


def format_model_name(host: Any) -> str:
    """Return provider/model of the current model."""
    return str(host.session.setup.model.name)
