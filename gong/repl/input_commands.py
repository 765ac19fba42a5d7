"""Slash commands about what is typed: pictures, the editor, keys, copying."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tape.model.entries import join_texts

from .commands import CommandReply, add_command

if TYPE_CHECKING:
    from ..assembly.open_session import OpenSession


@add_command("image", "PATH", "attach a picture to the prompt", busy=True)
def _attach_image(_host: OpenSession, path: str) -> CommandReply:
    if not path:
        return CommandReply("name a picture: /image PATH", failed=True)
    return CommandReply(types=lambda typing: typing.add_picture(path.strip("'\"")))


@add_command("editor", "", "write the prompt in $VISUAL or $EDITOR", busy=True)
def _open_editor(_host: OpenSession, _argument: str) -> CommandReply:
    return CommandReply(types=lambda typing: typing.open_editor())


@add_command("keys", "", "show what keys do, and your own", busy=True)
def _show_keys(_host: OpenSession, _argument: str) -> CommandReply:
    return CommandReply(types=lambda typing: typing.say(typing.keys.render_keys()))


@add_command("theme", "[NAME]", "show the themes, or use one", busy=True)
def _choose_theme(_host: OpenSession, name: str) -> CommandReply:
    from .styles import THEMES  # noqa: PLC0415 (it imports prompt-toolkit)

    if name and name not in THEMES:
        return CommandReply(f"there is no theme {name}: {', '.join(THEMES)}", failed=True)
    return CommandReply(types=lambda typing: typing.use_theme(name))


@add_command("copy", "", "copy the last answer into the clipboard", busy=True)
def _copy_answer(host: OpenSession, _argument: str) -> CommandReply:
    for message in reversed(host.session.list_messages()):
        if message.role == "assistant" and (text := join_texts(message.content)).strip():
            return CommandReply(types=lambda typing: typing.copy_text(text))
    return CommandReply("there is no answer to copy", failed=True)
