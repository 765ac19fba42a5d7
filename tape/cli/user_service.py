"""Programs that run as long as the user is logged in: as services of systemd and of launchd."""

from __future__ import annotations

from plistlib import dumps
from shlex import quote, split
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def build_systemd_unit(description: str, words: Sequence[str]) -> str:
    """Return a user unit of systemd that runs a command, and runs it again where it fails."""
    return "\n".join(
        [
            *("[Unit]", f"Description={description}", ""),
            *("[Service]", f"ExecStart={' '.join(map(_quote_unit_word, words))}"),
            *("Restart=on-failure", "Nice=10", "", "[Install]", "WantedBy=default.target", ""),
        ]
    )


def build_launchd_agent(label: str, words: Sequence[str]) -> str:
    """Return an agent of launchd that runs a command, and runs it again where it fails."""
    agent = {"Label": label, "ProgramArguments": [*words], "RunAtLoad": True}
    return dumps({**agent, "KeepAlive": {"SuccessfulExit": False}}).decode()


def _quote_unit_word(word: str) -> str:
    """Return a word of a command as systemd reads it, which expands % and $."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return escaped if split(quote(word)) == [word] and quote(word) == word else f'"{escaped}"'
