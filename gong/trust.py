"""Which projects may run what they bring: hooks, settings, MCP servers, skills, agents, filters.

A repository that was cloned can hold files that make a program run. They take effect only after
the user said yes to them, and only as they were then: the answer names the hash of each part, so
a part that changed is asked about again. A removed part needs no new answer.

    part now              state        takes effect
    --------------------  -----------  -------------------------------------------
    same hash as trusted  trusted      yes
    same hash as refused  refused      no, and `gong chat` does not ask again
    anything else         new          no, until `gong trust --yes` or the question

The hash of a part covers the files of the project that its commands name, because a hook that runs
`./check.sh` runs whatever is in check.sh.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import subprocess
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from tape.text import replace_surrogates

from .errors import ConfigurationError
from .front_matter import parse_front_matter
from .git_programs import build_git_variables, list_git_programs, may_name_programs
from .private_files import locate_state_folder, write_private_file
from .project import COMMAND_FOLDER, SKILL_FOLDERS, list_places, locate_project

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .git_programs import GitProgram
    from .project import PartKind

PartState = Literal["trusted", "refused", "new"]

_SHARED_SETTINGS = (".claude/settings.json", ".claude/settings.local.json")
"""Settings of another program: only their hooks count here."""
_LABEL_NOISE = {"hooks", "mcpServers", "servers"}
"""Keys that tell nothing about what runs."""
_GIT_SECONDS = 10.0
_WORD = re.compile(r"""[^\s'"`=;|&()<>]+""")
_PROJECT_VARIABLE = re.compile(r"\$\{?(?:CLAUDE|GONG)_PROJECT_DIR\}?/*")


@dataclass(frozen=True, slots=True)
class ProjectPart:
    """A file or folder of a project that takes effect only when it is trusted."""

    kind: PartKind
    path: str
    """Relative to the project's root."""
    state: PartState
    digest: str
    """sha256 of the part and of the project's files that its commands name."""
    content: bytes
    """The bytes that were hashed, for a reader to use; empty for a folder."""
    runs: tuple[str, ...]
    """What would run or be read, one line each, for people."""


@dataclass(frozen=True, slots=True)
class Project:
    """A project and what it brings."""

    root: Path
    parts: tuple[ProjectPart, ...]

    def list_untrusted(self, kind: PartKind | None = None) -> tuple[ProjectPart, ...]:
        """Return the parts, all or of a kind, that may not take effect."""
        return tuple(
            part for part in self.parts if part.state != "trusted" and kind in {None, part.kind}
        )


class _Answers(Struct, frozen=True):
    """The answers about one project: path of a part → its hash then."""

    trusted: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


class _TrustFile(Struct, frozen=True):
    projects: dict[str, _Answers] = field(default_factory=dict)


def locate_trust_file(environ: Mapping[str, str]) -> Path:
    """Return the file of all answers, which need not exist."""
    return locate_state_folder(environ) / "trust.json"


def read_project(folder: str, environ: Mapping[str, str]) -> Project:
    """Return what the project of a folder brings, and whether each part is trusted.

    The home folder is no project: what is there is the user's own. An answer file that cannot be
    read counts as no answer.
    """
    root = locate_project(folder)
    home = environ.get("HOME")
    if home and root == Path(os.path.realpath(home)):
        return Project(root, ())
    answers = _Answers()
    with suppress(ConfigurationError):
        answers = _read_answers(locate_trust_file(environ)).projects.get(str(root), answers)
    return Project(root, tuple(_read_parts(root, list_places(folder, environ), answers, environ)))


def list_untrusted_git_programs(folder: str, environ: Mapping[str, str]) -> tuple[GitProgram, ...]:
    """Return the programs that the repository of a folder names and the user did not trust."""
    if not may_name_programs(folder):
        return ()
    project = read_project(folder, environ)
    if not project.list_untrusted("git"):
        return ()
    return list_git_programs(str(project.root), partial(ask_git, project.root, environ))


def trust_project(project: Project, environ: Mapping[str, str]) -> None:
    """Record a yes to all parts as they were read; replaces an earlier answer.

    Raises ConfigurationError if the file of answers is damaged or cannot be written.
    """
    _write_answers(project, {part.path: "trusted" for part in project.parts}, environ)


def trust_part(folder: str, path: str, environ: Mapping[str, str]) -> None:
    """Record a yes to one part as it is now; the answers about the others stay.

    Raises as `trust_project`.
    """
    project = read_project(folder, environ)
    _write_answers(project, {path: "trusted"}, environ)


def refuse_project(project: Project, environ: Mapping[str, str]) -> None:
    """Record a no to the parts that are not trusted; the others stay. Raises as `trust_project`."""
    refused = {part.path: "refused" for part in project.list_untrusted()}
    _write_answers(project, refused, environ)


def revoke_trust(project: Project, environ: Mapping[str, str]) -> None:
    """Forget every answer about a project. Raises as `trust_project`."""
    _write_answers(project, None, environ)


def _read_parts(
    root: Path,
    places: Sequence[tuple[PartKind, str]],
    answers: _Answers,
    environ: Mapping[str, str],
) -> Iterator[ProjectPart]:
    for kind, path in places:
        read = _read_git_part(root, environ) if kind == "git" else _read_part(root, path)
        if read is None:
            continue
        digest = _hash_part(root, read.content, read.files)
        if answers.trusted.get(path) == digest:
            state: PartState = "trusted"
        else:
            state = "refused" if answers.refused.get(path) == digest else "new"
        yield ProjectPart(kind, path, state, digest, read.content, read.runs)


class _ReadPart(NamedTuple):
    """What a place holds: its bytes, what it runs for people, and the files that belong to it."""

    content: bytes
    runs: tuple[str, ...]
    files: list[Path]


def _read_part(root: Path, path: str) -> _ReadPart | None:
    """Return what is at a path of a project; None where there is nothing to trust."""
    place = root / path
    if place.is_dir():
        files = [*_walk_files(place)]
        names = {file.relative_to(place).parts[0] for file in files}
        if path.endswith((*SKILL_FOLDERS, COMMAND_FOLDER)):
            names = {describe_skill(place, file) for file in files} - {""} or names
        return _ReadPart(b"", tuple(sorted(names)), files)
    if not place.is_file():
        return None
    try:
        content = place.read_bytes()
    except OSError:
        return None  # whoever reads it later cannot either
    value = _parse_part(path, content)
    if path in _SHARED_SETTINGS and isinstance(value, dict):
        value = value.get("hooks")
        content = msgspec.json.encode({"hooks": value})
    if not value:
        return None
    runs = tuple(dict.fromkeys(_describe_runs(value)))
    return _ReadPart(content, runs, [*_list_named_files(root, value)])


def _read_git_part(root: Path, environ: Mapping[str, str]) -> _ReadPart | None:
    """Return the programs that the settings of a project's repository name; None without any."""
    programs = list_git_programs(str(root), partial(ask_git, root, environ))
    if not programs:
        return None
    runs = tuple(replace_surrogates(f"{program.key}: {program.value}") for program in programs)
    files = [*_list_named_files(root, [{"command": program.value} for program in programs])]
    return _ReadPart(msgspec.json.encode(runs), runs, files)


def ask_git(root: Path, environ: Mapping[str, str], argv: Sequence[str]) -> bytes | None:
    """Return what git prints in a folder, without variables that name another repository."""
    variables = build_git_variables(environ, str(root))
    try:
        done = subprocess.run(
            argv,
            cwd=root,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout


def _parse_part(path: str, content: bytes) -> Any:
    """Return the value of a settings file; its text if it cannot be parsed."""
    try:
        if path.endswith(".toml"):
            import tomllib  # only for a project with settings

            return tomllib.loads(content.decode())
        return msgspec.json.decode(content)
    except ValueError:  # of TOML, JSON and Unicode: its reader will say what is wrong
        return content.decode("utf-8", "replace")


def _walk_files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, links followed, each folder once."""
    seen: set[str] = set()
    for at, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(at)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders.sort()
        yield from (Path(at, name) for name in sorted(names))


def describe_skill(folder: Path, file: Path) -> str:
    """Return the name of a skill or command, what it runs and which tools it allows, in one line.

    `file` is below `folder`; the text is empty for a file that belongs to a skill.
    """
    parts = file.relative_to(folder).parts
    is_command = folder.match(COMMAND_FOLDER)
    is_skill = file.name == "SKILL.md" and len(parts) == 2  # noqa: PLR2004 (folder and file)
    if not is_skill and (not is_command or file.suffix != ".md"):
        return ""
    name = parts[0] if is_skill else ":".join((*parts[:-1], file.stem))
    facts = describe_skill_runs(file)
    return f"{name}: {facts}" if facts else name


def describe_skill_runs(file: Path) -> str:
    """Return what the file of a skill runs and which tools it allows; empty for nothing."""
    parsed = parse_front_matter(_read_file(file).decode("utf-8", "replace"))
    facts = [f"runs {command}" for command in list_skill_commands(parsed.body)]
    if allowed := parsed.fields.get("allowed-tools"):
        words = allowed if isinstance(allowed, list) else [allowed]
        facts.append(f"allows {' '.join(map(str, words))}")
    return "; ".join(facts)


SKILL_COMMAND = re.compile(
    r"(?<!\S)!`(?P<line>[^`\n]+)`|^```!\s*\n(?P<block>.*?)^```[^\S\n]*$",
    re.DOTALL | re.MULTILINE,
)
"""A command in the text of a skill, which runs while the text is loaded."""


def list_skill_commands(body: str) -> list[str]:
    """Return the commands that the text of a skill has run while it is loaded."""
    commands = SKILL_COMMAND.finditer(body)
    return [(command["line"] or command["block"] or "").strip() for command in commands]


def _walk_values(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every table in a value with the keys that lead to it."""
    if isinstance(value, dict):
        yield path, value
        for key, inner in value.items():
            yield from _walk_values(inner, (*path, str(key)))
    elif isinstance(value, list):
        for inner in value:
            yield from _walk_values(inner, path)


def _describe_runs(value: Any) -> Iterator[str]:
    """Yield the commands and addresses in a settings file; its keys if there are none."""
    has_runs = False
    for path, table in _walk_values(value):
        words = _list_words(table.get("command") or ())
        if not words:
            addresses = (table.get(name) for name in ("url", "python", "base_url"))
            words = [text for text in addresses if isinstance(text, str) and text][:1]
        if not words:
            continue
        has_runs = True
        arguments = table.get("args")
        words += _list_words(arguments) if isinstance(arguments, list) else ()
        names = [table.get("event"), *(part for part in path if part not in _LABEL_NOISE)]
        label = " ".join(str(name) for name in names if name)
        yield f"{label}: {' '.join(words)}" if label else " ".join(words)
    if not has_runs and isinstance(value, dict):
        yield from (f"sets {key}" for key in value)


def _list_words(value: Any) -> list[str]:
    """Return the words of a command, which is a text or an array; none of anything else."""
    if isinstance(value, str):
        return [value]
    return [*map(str, value)] if isinstance(value, list) else []


def _list_named_files(root: Path, value: Any) -> Iterator[Path]:
    """Yield the files of a project that the commands in a value name."""
    for _, table in _walk_values(value):
        arguments = table.get("args")
        texts = _list_words(table.get("command"))
        texts += _list_words(arguments) if isinstance(arguments, list) else ()
        for text in texts:
            plain = _PROJECT_VARIABLE.sub("", text.replace('"', "").replace("'", ""))
            for word in _WORD.findall(plain):
                with suppress(OSError, ValueError):
                    file = root / word
                    if file.is_file() and file.resolve().is_relative_to(root):
                        yield file


def _hash_part(root: Path, content: bytes, files: list[Path]) -> str:
    """Return the hash of bytes and of files with their names, each with its length in front."""
    digest = hashlib.sha256()
    named = sorted({os.path.relpath(file, root): file for file in files}.items())
    for name, data in [("", content), *((name, _read_file(file)) for name, file in named)]:
        digest.update(f"{len(name)} {len(data)} ".encode() + os.fsencode(name))
        digest.update(data)
    return f"sha256:{digest.hexdigest()}"


def _read_file(file: Path) -> bytes:
    """Return the content of a file, empty if it cannot be read."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _read_answers(file: Path) -> _TrustFile:
    try:
        return msgspec.json.decode(file.read_bytes(), type=_TrustFile)
    except FileNotFoundError:
        return _TrustFile()
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeError) as error:
        raise ConfigurationError(f"{file} is damaged: remove it, and trust again") from error


def _write_answers(
    project: Project, states: Mapping[str, str] | None, environ: Mapping[str, str]
) -> None:
    """Replace the answers about these parts of a project; None forgets all of its answers.

    Other parts, which may be those of another of its folders, and other projects stay as they are.
    """
    file = locate_trust_file(environ)
    try:
        with _hold_lock(file):
            before = _read_answers(file)
            projects = {**before.projects}
            old = projects.pop(str(project.root), _Answers())
            if states is not None:
                projects[str(project.root)] = _change_answers(old, project, states)
            data = msgspec.json.encode(replace(before, projects=projects))
            write_private_file(file, msgspec.json.format(data) + b"\n")
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be written: {error.strerror}") from error


def _change_answers(old: _Answers, project: Project, states: Mapping[str, str]) -> _Answers:
    """Return the answers about a project with new ones about some of its parts."""
    digests = {part.path: part.digest for part in project.parts}
    chosen = {
        state: {
            **{path: answer for path, answer in getattr(old, state).items() if path not in states},
            **{path: digests[path] for path in digests if states.get(path) == state},
        }
        for state in ("trusted", "refused")
    }
    return _Answers(**chosen)


@contextmanager
def _hold_lock(file: Path) -> Iterator[None]:
    """Hold the lock of a file, so that two programs do not lose each other's answers."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(file.with_name(f"{file.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
