"""`gong plugin`: install, list, remove and write plugins."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from tape.cli.output import NamingGroup, as_json, format_examples, print_json
from tape.cli.terminal import format_table, print_lines
from tape.text import to_single_line

from ..errors import ConfigurationError
from ..plugins.install import fetch_plugin, install_plugin, remove_plugin
from ..plugins.installed import list_plugins
from ..plugins.manifest import encode_manifest
from .options import print_warning

_SKILL = """\
---
name: {name}
description: What it does, and when to use it.
---

$ARGUMENTS
"""


@click.group(
    cls=NamingGroup,
    epilog=format_examples(
        "gong plugin add ./my-plugin", "gong plugin list", "gong plugin remove my-plugin"
    ),
)
def plugin() -> None:
    """Install, list, remove and write plugins: skills, agents, hooks and servers together."""


@plugin.command("add")
@click.argument("source", metavar="PATH|GIT")
@click.option("--yes", is_flag=True, help="Install without asking.")
def add_plugin(source: str, yes: bool) -> None:
    """Install the plugin of a folder or git repository, after showing what it would run.

    OWNER/NAME is a repository of GitHub; #NAME at the end chooses a plugin of a marketplace. An
    older copy of the same name is replaced.
    """
    with fetch_plugin(source, os.environ) as plugin:
        for warning in plugin.list_warnings():
            print_warning(warning)
        runs = [*plugin.describe_runs()]
        about = f"{plugin.name} {plugin.manifest.version}".rstrip()
        lines = [f"plugin {about} would run:" if runs else f"plugin {about} runs nothing"]
        for line in (*lines, *(f"  {to_single_line(run)}" for run in runs)):
            click.echo(line, err=True)
        if not yes:
            if not sys.stdin.isatty():
                raise click.UsageError("not a terminal: pass --yes")
            if not click.confirm("Install this plugin?", err=True):
                raise ConfigurationError("nothing was installed")
        name, place = plugin.name, install_plugin(plugin, os.environ)
    print_lines([f"installed {name} in {place}"])


@plugin.command("list")
@as_json
def show_plugins(as_json: bool) -> None:
    """List the installed plugins and what each would run.

    --json prints [{name, version, description, path, kind, runs}]; kind is standard or claude.
    """
    plugins, warnings = list_plugins(os.environ)
    for warning in warnings:
        print_warning(warning)
    if as_json:
        print_json(
            [
                {
                    "name": plugin.name,
                    "version": plugin.manifest.version,
                    "description": plugin.manifest.description,
                    "path": str(plugin.root),
                    "kind": plugin.manifest.kind,
                    "runs": [*plugin.describe_runs()],
                }
                for plugin in plugins
            ]
        )
        return
    if not plugins:
        print_lines(["no plugin is installed"])
        return
    rows = [
        (plugin.name, plugin.manifest.version, to_single_line(plugin.manifest.description))
        for plugin in plugins
    ]
    print_lines(format_table(rows, headings=("NAME", "VERSION", "DESCRIPTION")))


@plugin.command("remove")
@click.argument("name")
def drop_plugin(name: str) -> None:
    """Remove the installed plugin NAME."""
    print_lines([f"removed {remove_plugin(name, os.environ)}"])


@plugin.command("new")
@click.argument("name")
@click.option("--description", default="", help="What it is for.")
def write_plugin(name: str, description: str) -> None:
    """Write an empty plugin NAME of Agent Plugins 1.0.0 into a folder of this name."""
    manifest = encode_manifest(name, description)
    root, skill = Path(name), name.replace(".", "-").strip("-") or "skill"
    try:
        root.mkdir()
        (root / "plugin.json").write_bytes(manifest)
        folder = root / "skills" / skill
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(_SKILL.format(name=skill), "utf-8")
    except FileExistsError as error:
        raise ConfigurationError(f"{name} is there already") from error
    except OSError as error:
        raise ConfigurationError(f"{name} cannot be written: {error.strerror}") from error
    print_lines([f"wrote {root / 'plugin.json'}", f"install it with: gong plugin add ./{name}"])
