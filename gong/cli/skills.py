"""`gong skills`: list, show, write and check skills."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tape.cli.output import NamingGroup, as_json, format_examples, print_json
from tape.cli.terminal import format_table, print_lines
from tape.errors import NotFound
from tape.text import show_controls, to_single_line

from ..errors import ConfigurationError
from ..private_files import locate_config_file
from ..project import locate_folder, locate_project
from ..skills.check import MAX_NAME_CHARS, MAX_STANDARD_DESCRIPTION_CHARS, check_skill
from ..skills.places import find_skills
from ..skills.skill import FILE_NAME, NAME, read_skill
from .options import load_settings, print_warning

if TYPE_CHECKING:
    from ..skills.skill import Skill, SkillSet

_FAILED_EXIT = 1
_TEMPLATE = """\
---
name: {name}
description: {description}
---

# {title}

What the user typed: $ARGUMENTS

1. …
"""


@click.group(
    cls=NamingGroup,
    epilog=format_examples(
        "gong skills list", "gong skills show commit", "gong skills new release-notes"
    ),
)
def skills() -> None:
    """List, show, write and check skills: instructions for tasks, used as /NAME."""


@skills.command("list")
@as_json
def list_skills(as_json: bool) -> None:
    """List the skills and commands for this folder, the nearest of each name.

    --json prints [{name, description, path, source}]; source is project, user, plugin:NAME or
    shipped. Those of a project have an effect when it is trusted: see gong trust.
    """
    skills = load_found()
    if as_json:
        keys = ("name", "description", "path", "source")
        print_json([{key: getattr(skill, key) for key in keys} for skill in skills.skills])
        return
    rows = [
        (_describe_source(skill), f"/{skill.name}", _describe_skill(skill))
        for skill in skills.skills
    ]
    print_lines(format_table(rows, headings=("FROM", "NAME", "DESCRIPTION"), optional=("FROM",)))
    if not all(skill.is_active for skill in skills.skills):
        print_warning("skills that are not trusted are not used: gong trust shows and allows them")


@skills.command("show")
@click.argument("name")
def show_skill(name: str) -> None:
    """Show where the skill NAME is, its fields and its text."""
    skill = _require_skill(load_found(), name)
    facts = {
        "name": skill.name,
        "description": skill.description,
        "from": f"{_describe_source(skill)}, {skill.path}",
        "arguments": skill.hint,
        "also": ", ".join(skill.aliases),
        "allows": " ".join(skill.allowed_tools),
        "refuses": " ".join(skill.disallowed_tools),
        "model": skill.model or "",
        "effort": skill.effort or "",
        "paths": " ".join(skill.paths),
        "used by": "" if skill.for_model and skill.for_user else _describe_users(skill),
    }
    lines = [f"{key + ':':<13}{to_single_line(fact)}" for key, fact in facts.items() if fact]
    print_lines([*lines, "", *map(show_controls, skill.body.split("\n"))])


@skills.command("new")
@click.argument("name")
@click.option("--user", is_flag=True, help="Write it for all your projects.")
@click.option("--description", default="What it does, and when to use it.", help="Its description.")
def write_skill(name: str, user: bool, description: str) -> None:
    """Write an empty skill NAME for this project, in .agents/skills, to be filled in."""
    if not NAME.fullmatch(name) or len(name) > MAX_NAME_CHARS:
        raise click.UsageError(
            f"{name} is not a name for a skill: use small letters, digits and single hyphens"
        )
    if len(description) > MAX_STANDARD_DESCRIPTION_CHARS or "\n" in description:
        raise click.UsageError("--description is one line of up to 1,024 characters")
    if user:
        base = locate_config_file(os.environ).parent / "skills"
    else:
        base = locate_project(locate_folder()) / ".agents/skills"
    file = base / name / FILE_NAME
    import yaml  # loads slowly

    text = _TEMPLATE.format(
        name=name,
        title=name.replace("-", " ").capitalize(),
        description=yaml.safe_dump(description, width=10_000).removesuffix("\n...\n").strip(),
    )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError as error:
        raise ConfigurationError(f"{file} is there already") from error
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be written: {error.strerror}") from error
    print_lines([f"wrote {file}", f"after filling it in: gong skills check {name}"])
    if not user:
        print_lines(["it takes effect with: gong trust --yes"])


@skills.command("check")
@click.argument("names", nargs=-1, metavar="[NAME|PATH]...")
@as_json
def check_skills(names: tuple[str, ...], as_json: bool) -> None:
    """Check skills by name or folder, by default all, against the rules of the standard.

    Exit code 1 if one has an error. Fields that nothing reads are warnings. --json prints [{name,
    path, errors, warnings}].
    """
    skills = load_found()
    chosen = [_find_checked(skills, name) for name in names] or [*skills.skills, *skills.shadowed]
    reports = []
    for skill in chosen:
        findings = check_skill(skill, Path(skill.path).parent)
        reports.append(
            {
                "name": skill.name,
                "path": skill.path,
                "errors": [each.text for each in findings if each.level == "error"],
                "warnings": [each.text for each in findings if each.level == "warning"],
            }
        )
    if as_json:
        print_json(reports)
    else:
        for report in reports:
            bad = [f"  error: {text}" for text in report["errors"]]
            bad += [f"  warning: {text}" for text in report["warnings"]]
            print_lines([f"{report['name']}: {'' if bad else 'ok'}".rstrip(": "), *bad])
    sys.exit(_FAILED_EXIT if any(report["errors"] for report in reports) else 0)


def load_found() -> SkillSet:
    """Return the skills for this folder; warns of what cannot be read, or is shadowed."""
    settings = load_settings()
    skills = find_skills(locate_folder(), os.environ, shipped=settings.skills.shipped)
    for warning in skills.warnings:
        print_warning(warning)
    return skills


def _require_skill(skills: SkillSet, name: str) -> Skill:
    skill = skills.find(name)
    if skill is None:
        from difflib import get_close_matches  # only for a wrong name

        near = get_close_matches(name, [skill.name for skill in skills.skills], n=1)
        hint = f"did you mean {near[0]}?" if near else "gong skills list names them"
        raise NotFound(f"no skill is called {name}: {hint}")
    return skill


def _find_checked(skills: SkillSet, name: str) -> Skill:
    """Return a skill by its name, or by its folder or file."""
    path = Path(name)
    file = path / FILE_NAME if path.is_dir() else path
    if not file.is_file():
        return _require_skill(skills, name)
    file = file.absolute()
    if file.name == FILE_NAME:
        return read_skill(file, file.parent.name, "file")
    return read_skill(file, file.stem, "file", is_command=True)


def _describe_skill(skill: Skill) -> str:
    return to_single_line(f"{skill.hint}  {skill.description}" if skill.hint else skill.description)


def _describe_source(skill: Skill) -> str:
    return skill.source if skill.is_active else f"{skill.source}, not trusted"


def _describe_users(skill: Skill) -> str:
    return "the user only" if skill.for_user else "the model only" if skill.for_model else "nobody"
