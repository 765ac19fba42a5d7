"""Where skills are, and which one of a name is used: the nearest.

    nearest                                                              source
    1  each folder from the working folder up to the project's root      project
         .gong/skills  .agents/skills  .claude/skills  .claude/commands
    2  ~/.config/gong/skills  ~/.agents/skills  ~/.claude/skills         user
         ~/.claude/commands
    3  the skills and commands of plugins                                plugin:NAME
    4  those that come with gong                                         shipped

A skill of a plugin is found by `PLUGIN:NAME` too, also where its name is shadowed. Those of a
project that is not trusted are found, so that they can be listed, and never used.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from ..plugins.installed import list_part_files, list_plugins
from ..private_files import locate_config_file, locate_home
from ..project import COMMAND_FOLDER, SKILL_FOLDERS, list_project_folders
from ..trust import read_project
from .skill import Skill, SkillSet, read_skill

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .skill import SkillTrust

SHIPPED_FOLDER = Path(__file__).parent / "data"


class SkillPlace(NamedTuple):
    """A folder of skills or of commands."""

    folder: Path
    """Of a plugin it may be one file."""
    source: str
    kind: Literal["skills", "commands"] = "skills"
    trust: SkillTrust = "own"
    plugin: str = ""
    """The root folder of the plugin that it belongs to."""


def find_skills(
    folder: str,
    environ: Mapping[str, str],
    *,
    shipped: bool = True,
) -> SkillSet:
    """Return the skills for a working folder; what cannot be read is left out with a warning."""
    places = [*list_project_places(folder, environ), *list_user_places(environ)]
    places += list_plugin_places(environ)
    if shipped:
        places.append(SkillPlace(SHIPPED_FOLDER, "shipped"))
    return read_places(places)


def read_places(places: Iterable[SkillPlace]) -> SkillSet:
    """Return the skills of places, the nearest first."""
    skills, names = SkillSet(), dict[str, Skill]()
    twice: dict[tuple[str, str], list[str]] = {}
    seen: set[Path] = set()
    for place in places:
        for skill in _read_place(place, seen, skills.warnings):
            winner = names.setdefault(skill.name, skill)
            if winner is skill:
                skills.skills.append(skill)
                continue
            skills.shadowed.append(skill)
            if skill.plugin and winner.plugin and skill.source != winner.source:
                twice.setdefault((winner.source, skill.source), []).append(skill.name)
            elif skill.source != "shipped" and not skill.plugin:  # found by PLUGIN:NAME
                skills.warnings.append(f"{skill.path} is shadowed: /{skill.name} is {winner.path}")
    skills.warnings += [_describe_twice(*pair, same) for pair, same in twice.items()]
    return skills


_MAX_NAMES = 5


def _describe_twice(first: str, second: str, same: Sequence[str]) -> str:
    """Return a line about skills that two plugins, given as sources, both have."""
    winner, other = (source.partition(":")[2] for source in (first, second))
    more = f" and {len(same) - _MAX_NAMES} more" if len(same) > _MAX_NAMES else ""
    names = f"{', '.join(same[:_MAX_NAMES])}{more}"
    return (
        f"the plugins {winner} and {other} both have the skills {names}: "
        f"/{same[0]} is {winner}:{same[0]}, the other one is /{other}:{same[0]}"
    )


def list_project_places(folder: str, environ: Mapping[str, str]) -> Iterator[SkillPlace]:
    """Yield the places of the project, the nearest first, with their trust."""
    project = read_project(folder, environ)
    states = {part.path: part.state for part in project.parts}
    for at in list_project_folders(folder, environ):
        for name in (*SKILL_FOLDERS, COMMAND_FOLDER):
            path = (Path(at) / name).relative_to(project.root).as_posix()
            if path in states:
                kind: Literal["skills", "commands"] = (
                    "commands" if name == COMMAND_FOLDER else "skills"
                )
                yield SkillPlace(Path(at) / name, "project", kind, states[path])


def list_user_places(environ: Mapping[str, str]) -> Iterator[SkillPlace]:
    """Yield the places of the user, the nearest first."""
    home = locate_home(environ)
    for folder in (
        locate_config_file(environ).parent / "skills",
        home / ".agents/skills",
        home / ".claude/skills",
    ):
        yield SkillPlace(folder, "user")
    yield SkillPlace(home / COMMAND_FOLDER, "user", "commands")


def list_plugin_places(environ: Mapping[str, str]) -> Iterator[SkillPlace]:
    """Yield the places of the installed plugins; one that cannot be used has none."""
    plugins, _ = list_plugins(environ)
    for plugin in plugins:
        kinds: tuple[Literal["skills", "commands"], ...] = ("skills", "commands")
        for kind in kinds:
            for folder in plugin.list_places(kind):
                root = str(plugin.root)
                yield SkillPlace(folder, f"plugin:{plugin.name}", kind, plugin=root)


def _read_place(place: SkillPlace, seen: set[Path], warnings: list[str]) -> Iterator[Skill]:
    """Yield the skills of a place by name; a file that was read before is left out."""
    for file, name in list_part_files(place.folder, place.kind):
        try:
            real = file.resolve()
            if real in seen:
                continue
            seen.add(real)
            skill = read_skill(
                *(file, name, place.source, place.trust),
                is_command=place.kind == "commands",
                plugin=place.plugin,
            )
        except (OSError, RuntimeError) as error:  # links that go in circles
            warnings.append(f"{file} cannot be read: {error}")
            continue
        if skill.warning is not None and not place.plugin:  # told when it was installed
            warnings.append(f"{file}: {skill.warning}")
        yield skill
