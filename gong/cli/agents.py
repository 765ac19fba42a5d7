"""`gong agents`: the types of sub-agents for this folder."""

from __future__ import annotations

import os

import click
from msgspec import Struct

from tape.cli.output import NamingGroup, as_json, format_examples, print_json
from tape.cli.terminal import format_table, print_lines

from ..project import locate_folder
from ..subagents.types import load_agent_types
from ..trust import read_project
from .options import print_warning


class ListedType(Struct, frozen=True):
    """One type as `gong agents list --json` prints it."""

    name: str
    description: str
    source: str
    path: str
    model: str
    tools: tuple[str, ...] | None
    """None is all that its parent has."""


@click.group(cls=NamingGroup, epilog=format_examples("gong agents list", "gong agents list --json"))
def agents() -> None:
    """List the types of sub-agents for this folder: docs/agents.md."""


@agents.command("list")
@as_json
def list_agents(as_json: bool) -> None:
    """List the types that come with gong, and those that files of yours and the project describe.

    --json prints [{name, description, source, path, model, tools}]; source is built-in, user or
    project; tools is null where it has those of the agent that starts it.
    """
    folder = locate_folder()
    types = load_agent_types(folder, os.environ)
    for part in read_project(folder, os.environ).list_untrusted("agents"):
        print_warning(f"{part.path} is not trusted, so without effect (gong trust shows it)")
    for warning in types.warnings:
        print_warning(warning)
    if as_json:
        print_json(
            [
                ListedType(
                    kind.name, kind.description, kind.source, kind.path, kind.model, kind.tools
                )
                for kind in types.types.values()
            ]
        )
        return
    rows = [(kind.name, kind.source, kind.summary) for kind in types.types.values()]
    print_lines(format_table(rows, headings=("TYPE", "FROM", "FOR")))
