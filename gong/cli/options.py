"""What the commands share: options, the settings of this process, and warnings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from tape.cli import terminal

from .. import config

if TYPE_CHECKING:
    from pathlib import Path

    from ..config import Settings

store_option = click.option(
    "--store", metavar="PATH", help="Folder of the tapes; default $TAPE_HOME, ~/.tape."
)
model_option = click.option(
    "-m", "--model", metavar="MODEL", help="provider/model; default: the session's last model."
)
tools_option = click.option("--tools", metavar="LIST", help="Tool names, a preset, or none.")


def load_settings(**flags: Any) -> Settings:
    """Return the settings with these flags; None is a flag that was not given."""
    return config.load_settings(os.environ, flags)


def locate_store(store: str | None) -> Path:
    """Return the folder of the tapes; `store` is the value of --store."""
    return config.locate_store(load_settings(store=store), os.environ)


def parse_tool_names(given: str | None) -> tuple[str, ...] | None:
    """Return the names of --tools: empty for `none`, None if it was not given.

    Raises UsageError if it contains no name.
    """
    if given is None:
        return None
    if given == "none":
        return ()
    names = tuple(name.strip() for name in given.split(",") if name.strip())
    if not names:
        raise click.UsageError(
            f"--tools {given!r} names no tool: give names separated by commas, a preset, or none"
        )
    return names


def print_warning(text: str) -> None:
    """Write a line to standard error."""
    terminal.print_warning(text, "gong")


def report_skipped(remark: str) -> None:
    """Warn of a line of a tape that was skipped."""
    print_warning(f"{remark}; `tape verify` shows details")
