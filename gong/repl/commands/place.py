"""The slash command about where tools act."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...env.wrappers import describe_folder
from .command import CommandReply, SessionChoice, SlashCommand, format_model_name

if TYPE_CHECKING:
    from ...assembly.open_session import OpenSession


def _change_place(host: OpenSession, place: str) -> CommandReply:
    """Show where tools act, or open this session again in another place."""
    if not place:
        names = ", ".join(host.models.settings.env)
        text = describe_folder(host.session.setup.env)
        return CommandReply(f"{text}\nplaces: local{', ' if names else ''}{names}")
    recorder = host.session.recorder
    ref = f"{recorder.tape.id}:{recorder.branch}" if recorder else None
    return CommandReply(opens=SessionChoice(ref, model=format_model_name(host), place=place))


COMMANDS = (
    SlashCommand(
        "env",
        "[PLACE]",
        "show where tools act, or let them act in another place; local is this machine",
        busy=False,
        run=_change_place,
    ),
)
"""The commands of this module."""
