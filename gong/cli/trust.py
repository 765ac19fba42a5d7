"""`gong trust`: what this project brings that could run, and the answer whether it may."""

from __future__ import annotations

import os
import textwrap
from typing import TYPE_CHECKING

import click

from tape.cli.output import as_json, format_examples, print_json
from tape.cli.streams import use_bare_streams
from tape.cli.terminal import format_table, get_columns, print_lines
from tape.text import to_single_line

from ..project import locate_folder
from ..trust import read_project, refuse_project, revoke_trust, trust_project

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..trust import Project

_QUESTION = "Trust this project? It could run all of this."
_VERBS = {
    "hooks": "runs at ",
    "mcp": "server ",
    "skills": "instructions ",
    "commands": "command ",
    "agents": "sub-agent ",
    "git": "git runs ",
}
"""What each kind of part does with what it names."""


@click.command(epilog=format_examples("gong trust", "gong trust --yes", "gong trust --revoke"))
@click.option("--yes", is_flag=True, help="Trust all of it, as it is now.")
@click.option("--revoke", is_flag=True, help="Withdraw the trust: nothing takes effect any more.")
@as_json
def trust(yes: bool, revoke: bool, as_json: bool) -> None:
    """Show what this project brings that could run; with --yes, trust it.

    These are hooks, settings, MCP servers, skills, commands and agents in .gong, .claude,
    .agents and .mcp.json, and programs that the settings of its repository name for git. A part
    that changes afterwards has to be trusted again. --json prints {project, trusted, parts:
    [{kind, path, state, digest, runs}]}; state is trusted, refused or new.
    """
    if yes and revoke:
        raise click.UsageError("--yes and --revoke cannot be combined")
    folder = locate_folder()
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


def ask_for_trust(folder: str, environ: Mapping[str, str]) -> None:
    """Ask on the terminal about parts of a project that no answer was given for; once for each.

    Esc leaves it open: nothing takes effect, and the next session asks again.
    """
    project = read_project(folder, environ)
    if not any(part.state == "new" for part in project.parts):
        return
    import asyncio

    from ..repl.draw.choice_list import Choice, ChoiceList
    from ..repl.draw.choice_screen import ask_choice

    columns = get_columns()
    for line in render_parts(project):
        indent = " " * (2 + len(line) - len(line.lstrip(" ")))
        rows = textwrap.wrap(
            line, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
        click.echo("\n".join(rows if line[:6].isspace() else [line]), err=True)
    answers = (
        Choice("yes", "yes: all of this may take effect, as it is now", "1", "y"),
        Choice("no", "no: none of it, and do not ask again until it changes", "2", "n"),
        Choice("later", "not now: none of it, ask again next time (Esc)", "3"),
    )
    with use_bare_streams():
        answer = asyncio.run(ask_choice(_QUESTION, ChoiceList(answers, cursor=2), "later"))
    if answer == "yes":
        trust_project(project, environ)
    elif answer == "no":
        refuse_project(project, environ)
    results = {"yes": "trusted", "no": "not trusted: gong trust shows it, gong trust --yes does"}
    click.echo(results.get(answer, "not trusted this time"), err=True)


def render_project(project: Project) -> Iterator[str]:
    """Yield the lines that show what a project brings, what it runs, and what to do."""
    if not project.parts:
        yield f"{project.root} brings nothing that needs trust"
        return
    yield from render_parts(project)
    if project.list_untrusted():
        yield "What is not trusted has no effect. To trust it, after reading it: gong trust --yes"
    else:
        yield "All of it is trusted. To withdraw that: gong trust --revoke"


def render_parts(project: Project) -> Iterator[str]:
    """Yield the lines that show each part of a project and what it runs."""
    yield f"{to_single_line(str(project.root))} brings:"
    rows = [(part.state, part.kind, part.path) for part in project.parts]
    heading, *lines = format_table(rows, headings=("STATE", "KIND", "FILE"), optional=("KIND",))
    yield f"  {heading}"
    for part, line in zip(project.parts, lines, strict=True):
        yield f"  {line}"
        verb = _VERBS.get(part.kind, "")
        yield from (f"      {verb}{to_single_line(text)}" for text in part.runs)
