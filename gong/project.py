"""Where a project begins, and the places in it whose content can make a program run.

Only looked at here; `gong.trust` reads them. Kept apart because every start asks whether there is
anything to read.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tape.folders import locate_repository

from .errors import ConfigurationError, FolderGone
from .git_programs import may_name_programs

if TYPE_CHECKING:
    from collections.abc import Mapping

PartKind = Literal["hooks", "settings", "mcp", "skills", "commands", "agents", "git"]

PLACES: tuple[tuple[PartKind, str], ...] = (
    ("settings", ".gong/config.toml"),
    ("hooks", ".gong/hooks.json"),
    ("hooks", ".claude/settings.json"),
    ("hooks", ".claude/settings.local.json"),
    ("mcp", ".mcp.json"),
    ("mcp", "mcp.json"),
    ("mcp", ".gong/mcp.json"),
    ("skills", ".gong/skills"),
    ("skills", ".agents/skills"),
    ("skills", ".claude/skills"),
    ("commands", ".claude/commands"),
    ("agents", ".gong/agents"),
    ("agents", ".claude/agents"),
)
"""What a project may bring, relative to its root; a folder counts with everything below it."""
GIT_SETTINGS = ".git/config"
"""The settings of the repository: only the programs that they name count."""
SKILL_FOLDERS = (".gong/skills", ".agents/skills", ".claude/skills")
"""Folders of skills, relative to a folder of a project: each folder above counts, to its root."""
COMMAND_FOLDER = ".claude/commands"
"""The same for commands."""


def locate_folder() -> str:
    """Return the current folder; raises FolderGone if it no longer exists."""
    try:
        return str(Path.cwd())
    except FileNotFoundError as error:
        raise FolderGone("this folder no longer exists: change to another and try again") from error


def check_folder(folder: str) -> str:
    """Return the name of a folder; raises ConfigurationError for what can name none."""
    if not folder:
        raise ConfigurationError("the name of the folder is empty")
    if "\0" in folder:
        raise ConfigurationError(f"{folder!r} names no folder: it has a zero byte")
    return folder


def locate_project(folder: str) -> Path:
    """Return the top of the repository that a folder is in, else the folder itself."""
    here = os.path.realpath(folder)
    return Path(locate_repository(here) or here)


def has_agent_files(folder: str, environ: Mapping[str, str], config_folder: Path) -> bool:
    """Return whether the user or the project of a folder may describe types of sub-agents."""
    root = locate_project(folder)
    places = [config_folder / "agents", config_folder / "plugins"]
    places += [*(root / path for kind, path in PLACES if kind == "agents")]
    if home := environ.get("HOME"):
        places.append(Path(home, ".claude/agents"))
    return any(os.path.isdir(place) for place in places)  # at every start


def list_project_folders(folder: str, environ: Mapping[str, str]) -> list[str]:
    """Return a folder and those above it up to its project's root; none for the home folder."""
    root, at = str(locate_project(folder)), os.path.realpath(folder)
    home = environ.get("HOME")
    if home and root == os.path.realpath(home):
        return []
    folders = [at]
    while at != root:
        at = os.path.dirname(at)  # at every start
        folders.append(at)
    return folders


def list_places(folder: str, environ: Mapping[str, str]) -> list[tuple[PartKind, str]]:
    """Return every place of a folder's project: those of its root, and skills nearer by."""
    root = str(locate_project(folder))
    nearer = [
        os.path.relpath(folder, root) for folder in list_project_folders(folder, environ)[:-1]
    ]
    kinds = [(kind, path) for kind, path in PLACES if kind in {"skills", "commands"}]
    places = (*PLACES, ("git", GIT_SETTINGS))
    return [*places, *((kind, f"{at}/{path}") for at in nearer for kind, path in kinds)]


def has_skills(folder: str, environ: Mapping[str, str], config_folder: str) -> bool:
    """Return whether the project, the user or a plugin may bring skills; only looks at folders."""
    home = environ.get("HOME") or "/"
    own = [f"{home}/{path}" for path in (*SKILL_FOLDERS[1:], COMMAND_FOLDER)]
    theirs = [
        f"{at}/{path}"
        for at in list_project_folders(folder, environ)
        for path in (*SKILL_FOLDERS, COMMAND_FOLDER)
    ]
    for place in (*own, f"{config_folder}/skills", f"{config_folder}/plugins", *theirs):
        with suppress(OSError):
            if os.listdir(place):  # at every start
                return True
    return False


def has_project_parts(
    folder: str, environ: Mapping[str, str], kind: PartKind | None = None
) -> bool:
    """Return whether the project of a folder has any of the places; the home folder is none.

    With `kind` only the places of that kind count.
    """
    root = str(locate_project(folder))
    home = environ.get("HOME")
    if home and root == os.path.realpath(home):
        return False
    places = [path for part_kind, path in PLACES if kind in {None, part_kind}]
    tops = {path.partition("/")[0] for path in places}
    there = {top for top in tops if os.path.exists(f"{root}/{top}")}  # at every start
    return (
        any(path.partition("/")[0] in there and os.path.exists(f"{root}/{path}") for path in places)
        or (
            kind in {None, "skills", "commands"}
            and any(
                os.path.isdir(f"{at}/{path}")
                for at in list_project_folders(folder, environ)[:-1]
                for path in (*SKILL_FOLDERS, COMMAND_FOLDER)
            )
        )
        or (kind in {None, "git"} and may_name_programs(root))
    )


_FILE_RULE = re.compile(r"(?P<tool>Edit|Read)\((?P<path>.*)\)", re.DOTALL)


def shorten_rule(rule: str, root: str) -> str:
    """Return a permission rule about a file of a project, with its path from the root: `./x`.

    So it holds wherever the project is. Any other rule stays as it is.
    """
    match, start = _FILE_RULE.fullmatch(rule), f"{_escape_wildcards(root)}/"
    if match is None or not match["path"].startswith(start):
        return rule
    return f"{match['tool']}(./{match['path'].removeprefix(start)})"


def expand_rule(rule: str, root: str) -> str:
    """Return such a rule with the whole path, where the project is at `root`."""
    match = _FILE_RULE.fullmatch(rule)
    if match is None or not match["path"].startswith("./"):
        return rule
    return f"{match['tool']}({_escape_wildcards(root)}{match['path'][1:]})"


def _escape_wildcards(path: str) -> str:
    return re.sub(r"([*?\[\\])", r"\\\1", path.rstrip("/"))
