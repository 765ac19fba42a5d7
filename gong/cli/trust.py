"""`gong trust`: what this project brings that could run, and the answer whether it may."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from tape.cli.output import as_json, format_examples, print_json
from tape.cli.terminal import format_table, print_lines

from .. import config
from ..trust import read_project, revoke_trust, trust_project

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..trust import Project


@click.command(epilog=format_examples("gong trust", "gong trust --yes", "gong trust --revoke"))
@click.option("--yes", is_flag=True, help="Let all of it take effect, as it is now.")
@click.option("--revoke", is_flag=True, help="Forget the answer: nothing takes effect any more.")
@as_json
def trust(yes: bool, revoke: bool, as_json: bool) -> None:
    """Show what this project brings that could run, and with --yes let it take effect.

    These are hooks, settings, MCP servers, skills and agents in .gong, .claude, .agents and
    .mcp.json. A part that changes afterwards has to be trusted again. --json prints {project,
    trusted, parts: [{kind, path, state, digest, runs}]}; state is trusted, refused or new.
    """
    if yes and revoke:
        raise click.UsageError("--yes and --revoke cannot be combined")
    folder = config.locate_folder()
    project = read_project(folder, os.environ)
    if yes or revoke:
        change = trust_project if yes else revoke_trust
        change(project, os.environ)
        project = read_project(folder, os.environ)
    if as_json:
        keys = ("kind", "path", "state", "digest", "runs")
        parts = [{key: getattr(part, key) for key in keys} for part in project.parts]
        trusted = not project.list_untrusted()
        print_json({"project": str(project.root), "trusted": trusted, "parts": parts})
        return
    print_lines(render_project(project))


def render_project(project: Project) -> Iterator[str]:
    """Yield the lines that show what a project brings, what it runs, and what to do."""
    if not project.parts:
        yield f"{project.root} brings nothing that needs trust"
        return
    yield f"{project.root} brings:"
    rows = [(part.state, part.kind, part.path) for part in project.parts]
    for part, line in zip(project.parts, format_table(rows), strict=True):
        yield f"  {line}"
        yield from (f"      {one}" for one in part.runs)
    if project.list_untrusted():
        yield "What is not trusted takes no effect. After reading it: gong trust --yes"
    else:
        yield "All of it takes effect. To end that: gong trust --revoke"
