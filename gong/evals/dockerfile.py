"""The steps of a Dockerfile that can be done without a container: files, folders, commands.

    FROM                         the programs of this machine take its place
    WORKDIR, ENV, COPY, ADD      as in a container
    RUN                          a command, with the rights of the try
    RUN apt-get install ...      packages that this machine has to have; nothing is installed
    ARG                          its default
    CMD, LABEL, EXPOSE and so    nothing: no program of the image is started
    anything else                a fault that names the line

Pure.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from dataclasses import dataclass, field
from typing import NamedTuple

_IGNORED = {
    *("CMD", "ENTRYPOINT", "LABEL", "EXPOSE", "MAINTAINER", "STOPSIGNAL", "HEALTHCHECK", "USER"),
    *("SHELL", "VOLUME"),
}
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::-([^}]*))?\}|(\w+))")


class DockerfileFault(Exception):
    """A step that needs a container; the text names it."""


class CopyStep(NamedTuple):
    """Files of the folder `environment`, by patterns, to a path of the box."""

    sources: tuple[str, ...]
    target: str
    """Absolute; it ends with "/" where it is a folder."""


class RunStep(NamedTuple):
    """A command with the folder and the variables it runs with."""

    command: str
    workdir: str
    env: dict[str, str]


class InstallStep(NamedTuple):
    """Packages of Debian that a line only installs."""

    packages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a Dockerfile makes."""

    steps: tuple[CopyStep | RunStep | InstallStep, ...] = ()
    workdir: str = ""
    """Where work begins; "" where no line says it."""
    env: dict[str, str] = field(default_factory=dict)


def parse_dockerfile(text: str) -> Recipe:  # noqa: C901 (a case for each instruction)
    """Return the steps of a Dockerfile; raises DockerfileFault."""
    steps: list[CopyStep | RunStep | InstallStep] = []
    workdir, env, known, images = "", {}, {}, 0  # type: ignore[var-annotated]
    for line in _join_lines(text):
        name, _, rest = line.partition(" ")
        rest = rest.strip()
        match name.upper():
            case "FROM":
                images += 1
                if images > 1:
                    raise DockerfileFault("a second FROM needs a container")
            case "WORKDIR":
                path = _expand_variables(rest, known)
                workdir = posixpath.normpath(posixpath.join(workdir or "/", path))
            case "ENV":
                env |= _parse_assignments(rest, known)
                known |= env
            case "ARG":
                variable, equals, default = rest.partition("=")
                known[variable.strip()] = (
                    _expand_variables(_strip_quotes(default), known) if equals else ""
                )
            case "COPY" | "ADD":
                steps.append(_parse_copy(line, rest, workdir or "/", known))
            case "RUN":
                if rest.startswith("--") or "<<" in rest:
                    raise DockerfileFault(f"{line[:60]!r} needs a container")
                command = _parse_command(rest)
                packages = find_packages(command)
                steps.append(
                    RunStep(command, workdir or "/", dict(env))
                    if packages is None
                    else InstallStep(packages)
                )
            case ignored if ignored in _IGNORED:
                pass
            case _:
                raise DockerfileFault(f"{line[:60]!r} is not understood")
    return Recipe(tuple(steps), workdir, env)


def find_packages(command: str) -> tuple[str, ...] | None:
    """Return the packages that a command installs with apt; None if it does anything else."""
    packages: list[str] = []
    for part in re.split(r"&&|;|\n", command):
        try:
            words = shlex.split(part)
        except ValueError:
            return None
        while words and re.fullmatch(r"\w+=\S*", words[0]):
            words = words[1:]
        match [word for word in words if not word.startswith("-")]:
            case ["apt-get" | "apt", "install", *names]:
                packages += (name.partition("=")[0].partition(":")[0] for name in names)
            case ["apt-get" | "apt", "update" | "clean" | "autoremove" | "upgrade"]:
                pass
            case ["rm", *paths] if all(path.startswith("/var/lib/apt/") for path in paths):
                pass
            case _:
                return None
    if not all(re.fullmatch(r"[a-z0-9][a-z0-9+.-]*", name) for name in packages):
        return None
    return tuple(packages)


def _join_lines(text: str) -> list[str]:
    lines, held = [], ""
    for row in text.replace("\r\n", "\n").split("\n"):
        stripped = row.strip()
        if stripped.startswith("#") or (not stripped and held):
            continue
        if stripped.endswith("\\"):
            held += stripped[:-1].rstrip() + " "
            continue
        line, held = (held + stripped).strip(), ""
        if line:
            lines.append(line)
    return [*lines, held.strip()] if held.strip() else lines


def _expand_variables(text: str, known: dict[str, str]) -> str:
    def replace(match: re.Match[str]) -> str:
        return known.get(match[1] or match[3], match[2] or "")

    return _VARIABLE.sub(replace, _strip_quotes(text))


def _strip_quotes(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _split_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        raise DockerfileFault(f"{text[:60]!r} has a quote without an end") from None


def _parse_assignments(text: str, known: dict[str, str]) -> dict[str, str]:
    first = text.split(maxsplit=1)
    if first and "=" not in first[0]:
        return {first[0]: _expand_variables(first[1] if first[1:] else "", known)}
    pairs = (word.partition("=") for word in _split_words(text))
    return {name: _expand_variables(value, known) for name, equals, value in pairs if equals}


def _parse_copy(line: str, text: str, workdir: str, known: dict[str, str]) -> CopyStep:
    options = []
    while text.startswith("--"):
        option, _, text = text.partition(" ")
        options.append(option)
        text = text.strip()
    words = _parse_json(text) or _split_words(text)
    if any(not option.startswith(("--chown=", "--chmod=")) for option in options):
        raise DockerfileFault(f"{line[:60]!r} needs a container")
    *sources, target = [_expand_variables(word, known) for word in words] or [""]
    if not sources or any("://" in source or "<<" in source for source in sources):
        raise DockerfileFault(f"{line[:60]!r} needs a container")
    if any(".." in source.split("/") for source in sources):
        raise DockerfileFault(f"{line[:60]!r} leaves the folder of the environment")
    place = posixpath.normpath(posixpath.join(workdir, target))
    is_folder = target.endswith(("/", "/.")) or target == "." or len(sources) > 1
    return CopyStep(tuple(sources), f"{place}/" if is_folder else place)


def _parse_json(text: str) -> list[str]:
    """Return the words of a JSON array; none where it is no such array."""
    if not text.startswith("["):
        return []
    try:
        words = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return words if all(isinstance(word, str) for word in words) else []


def _parse_command(text: str) -> str:
    words = _parse_json(text)
    return shlex.join(words) if words else text
