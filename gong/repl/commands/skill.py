"""Skills in the terminal: /skills, and each skill as a command of its own.

typed              runs
-----------------  ------------------------------------------------------------
/name words        a built-in command of that name, else the skill
/skill:name words  the skill, also where a command has its name
/plugin:name       that of a plugin, also where a nearer one has its name
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tape.text import shorten_to_width, to_single_line

from .command import CommandReply

if TYPE_CHECKING:
    from collections.abc import Container

    from ...assembly.open_session import OpenSession
    from ...skills.session_skills import SessionSkills
    from ...skills.skill import Skill

_MAX_COLUMNS = 70


def show_skills(host: OpenSession, name: str, taken: Container[str]) -> CommandReply:
    """Return the list of skills, or one; `taken` are the names of built-in commands."""
    skills = _load_skills(host)
    if skills is None or not skills.found.skills:
        return CommandReply("there are no skills: write one with gong skills new NAME")
    if name:
        skill = skills.found.find(name)
        if skill is None:
            return CommandReply(f"no skill is called {name}; /skills lists them", failed=True)
        usage = f"/{_name_command(skill, taken)} {skill.hint}".rstrip()
        return CommandReply(f"{usage}\n{skill.description}\n{skill.path}\n\n{skill.body}")
    rows = [
        f"/{_name_command(skill, taken)} {skill.hint}".rstrip()
        + f"  {to_single_line(skill.description)}"
        + ("" if skill.is_active else "  (not trusted: gong trust)")
        for skill in skills.found.skills
        if skill.for_user
    ]
    return CommandReply("\n".join(shorten_to_width(row, _MAX_COLUMNS * 2) for row in rows))


def is_skill(text: str, host: OpenSession, taken: Container[str]) -> bool:
    """Return whether a line names a skill, and none of the built-in commands `taken`."""
    name = text[1:].split(maxsplit=1)[0] if text[1:].strip() else ""
    if not name or name in taken:
        return False
    skills = _load_skills(host)
    return skills is not None and skills.found.find(name) is not None


def list_skill_commands(host: OpenSession, taken: Container[str]) -> dict[str, tuple[str, str]]:
    """Return the arguments of each skill and what it does, by the name to type.

    `taken` are the names of built-in commands.
    """
    skills = _load_skills(host)
    if skills is None:
        return {}
    return {
        _name_command(skill, taken): (skill.hint, to_single_line(skill.description))
        for skill in skills.list_for_user()
    }


def _load_skills(host: OpenSession) -> SessionSkills | None:
    load = host.session.setup.load_skills
    return None if load is None else load()


def _name_command(skill: Skill, taken: Container[str]) -> str:
    return f"skill:{skill.name}" if skill.name in taken else skill.name
