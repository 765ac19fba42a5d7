"""Slash commands about what is typed: pictures, the editor, keys, copying."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tape.model.entries import join_texts

from .command import CommandReply, SlashCommand

if TYPE_CHECKING:
    from ...assembly.open_session import OpenSession


def _attach_image(_host: OpenSession, path: str) -> CommandReply:
    if not path:
        return CommandReply("name a picture: /image PATH", failed=True)
    return CommandReply(types=lambda typing: typing.add_picture(path.strip("'\"")))


def _open_editor(_host: OpenSession, _argument: str) -> CommandReply:
    return CommandReply(types=lambda typing: typing.open_editor())


def _show_keys(_host: OpenSession, _argument: str) -> CommandReply:
    return CommandReply(types=lambda typing: typing.say(typing.keys.render_keys()))


def _choose_theme(_host: OpenSession, name: str) -> CommandReply:
    from ..draw.styles import THEMES  # it imports prompt-toolkit

    if name and name not in THEMES:
        return CommandReply(f"there is no theme {name}: {', '.join(THEMES)}", failed=True)
    return CommandReply(types=lambda typing: typing.use_theme(name))


def _copy_answer(host: OpenSession, _argument: str) -> CommandReply:
    for message in reversed(host.session.list_messages()):
        if message.role == "assistant" and (text := join_texts(message.content)).strip():
            return CommandReply(types=lambda typing: typing.copy_text(text))
    return CommandReply("there is no answer to copy", failed=True)


COMMANDS = (
    SlashCommand("image", "PATH", "attach a picture to the prompt", busy=True, run=_attach_image),
    SlashCommand(
        "editor", "", "write the prompt in $VISUAL or $EDITOR", busy=True, run=_open_editor
    ),
    SlashCommand("keys", "", "show what keys do, and your own", busy=True, run=_show_keys),
    SlashCommand("theme", "[NAME]", "show the themes, or use one", busy=True, run=_choose_theme),
    SlashCommand(
        "copy", "", "copy the last answer into the clipboard", busy=True, run=_copy_answer
    ),
)
"""The commands of this module."""
