"""The system prompt: the agent's role, its rules, its environment, and instructions of others.

It has layers, joined by blank lines; where two disagree, the later one applies:

    | layer        | what it says                                  | from                      |
    | ------------ | --------------------------------------------- | ------------------------- |
    | base         | who the agent is, and how it works            | the tools that are offered|
    | environment  | folder, system, date, model; the state of git | `Surroundings`, the model |
    | tools        | each tool in one line                         | the tools that are offered|
    | skills       | names and descriptions, where there are any   | `skills`, the tools       |
    | instructions | AGENTS.md and its relatives                   | `instructions`            |
    | user         | --append-system-prompt                        | `PromptOverride`          |

--system-prompt replaces base and tools; facts and instructions stay.

It must not change between the turns of a session, or the provider's prompt cache is lost: it
contains the date but not the time, the state of git is that of the start, and the tools change only
on request.

The state of the git repository that the session starts in is reported by `git`, which runs no
program that the repository names. If git fails (it is not installed, refuses a folder of another
user, or takes too long), the repository's files still show that there is one, and which branch is
checked out. Where no files show one, git is not started.
"""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from tape.model.entries import Git
from tape.text import shorten_to_width, to_single_line

from ..errors import ConfigurationError
from ..git_programs import GIT
from .instructions import Instructions, render_instructions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..env.protocol import ExecutionEnvironment
    from ..llm.types import ToolSpec


_GIT = f"{shlex.join(GIT)} --no-optional-locks"
_STATUS_MARK = "-- status --"
_FIND_FILTERS = rf"""IFS='
'
set -f
for setting in $({_GIT} config --show-scope --name-only --get-regexp \
  '^filter\..*\.(clean|smudge|process|required)$' 2>/dev/null); do
  name=${{setting#*$'\t'}}
  case $setting in
    global*|system*|command*) continue ;;
    *=*) exit 1 ;;
    *.required) set -- "$@" -c "$name=false" ;;
    *) set -- "$@" -c "$name=" ;;
  esac
done
unset IFS
"""
"""Puts options into the shell's arguments with which no filter of the repository runs."""
_STATUS_COMMAND = (
    f"{_GIT} log -n 8 --format='%h %s' 2>/dev/null; echo '{_STATUS_MARK}';\n{_FIND_FILTERS}"
    f'{_GIT} "$@" status --porcelain=v2 --branch --untracked-files=normal'
    " --ignore-submodules=dirty 2>/dev/null"
)
"""Prints the newest commits, the mark, and the state; the commits first, as they are quick."""
_STATUS_TIMEOUT_MS = 2_000
_COMMIT_COLUMNS = 100
"""Columns of a commit in the prompt."""
_GITDIR_PREFIX = "gitdir: "
_BRANCH_PREFIX = "ref: refs/heads/"
_COMMIT_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BARE_ENTRIES = ("HEAD", "objects", "refs")


class GitRepository(NamedTuple):
    """The state of a git repository."""

    branch: str | None
    """The branch that is checked out; None if none is, or if unknown."""
    commit: str | None
    """The commit that is checked out, in hex; None if there is none yet, or if unknown."""
    dirty: bool | None
    """Whether there are changes since that commit; None if unknown."""
    modified: int | None = None
    """Number of tracked files that differ from that commit; None if unknown."""
    untracked: int | None = None
    """Number of files and folders that git does not know; None if unknown."""
    commits: tuple[str, ...] = ()
    """The newest commits, each as its short hash and its subject."""

    @property
    def recorded(self) -> Git | None:
        """The state as it is recorded; None if too little is known."""
        return None if self.dirty is None else Git(self.branch, self.commit, self.dirty)


async def find_repository(
    env: ExecutionEnvironment, environ: Mapping[str, str]
) -> GitRepository | None:
    """Return the repository that contains the environment's folder; None if there is none.

    Git is started only where the files show a repository, or `environ` names one.
    """
    repository = None
    with suppress(OSError):  # files above the folder may be closed to us, and not to git
        repository = await _read_repository_files(env)
        if repository is None and "GIT_DIR" not in environ:
            return None
    reader = GitStatusReader()
    try:
        result = await env.exec_command(
            _STATUS_COMMAND, timeout_ms=_STATUS_TIMEOUT_MS, on_output=reader.read_chunk
        )
    except (ConfigurationError, OSError):  # such as: there is no shell, which may not be needed
        return repository
    if result.exit_code == 0 and not result.timed_out:
        return reader.build_repository()
    return repository and repository._replace(commits=tuple(reader.commits))


class GitStatusReader:
    """Reads the output of the command above, of any size, as it comes."""

    def __init__(self) -> None:
        self.commits: list[str] = []
        self._facts: dict[str, str] = {}
        self._counts = {"modified": 0, "untracked": 0}
        self._rest = b""
        self._in_status = False

    def read_chunk(self, chunk: bytes) -> None:
        """Read more output; a line may come in pieces."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            text = line.decode("utf-8", "replace")
            if not self._in_status:
                self._in_status = text == _STATUS_MARK
                if not self._in_status:
                    self.commits.append(shorten_to_width(to_single_line(text), _COMMIT_COLUMNS))
            elif text.startswith("# branch."):
                name, _, value = text.removeprefix("# branch.").partition(" ")
                self._facts[name] = value
            elif text and not text.startswith("#"):
                self._counts["untracked" if text.startswith("?") else "modified"] += 1

    def build_repository(self) -> GitRepository:
        """Return the state that the whole output has told."""
        branch, commit = self._facts.get("head"), self._facts.get("oid")
        return GitRepository(
            branch=None if branch == "(detached)" else branch,
            commit=None if commit == "(initial)" else commit,
            dirty=any(self._counts.values()),
            commits=tuple(self.commits),
            **self._counts,
        )


async def _read_repository_files(env: ExecutionEnvironment) -> GitRepository | None:
    folder = PurePosixPath(env.working_directory)
    for place in (folder, *folder.parents):
        git = place / ".git"
        if await env.file_exists(str(git)):
            is_folder = await env.file_exists(str(git / "objects"))
            if is_folder or (await _read_git_line(env, git)).startswith(_GITDIR_PREFIX):
                return await _read_git_head(env, git)
        if all([await env.file_exists(str(place / name)) for name in _BARE_ENTRIES]):
            head = await _read_git_head(env, place)
            return head._replace(dirty=False)  # nothing is checked out, so there are no changes
    return None


async def _read_git_head(env: ExecutionEnvironment, place: PurePosixPath) -> GitRepository:
    """Return the content of HEAD; a `.git` file names the folder that contains it."""
    link = await _read_git_line(env, place)
    if link.startswith(_GITDIR_PREFIX):
        place = place.parent / link.removeprefix(_GITDIR_PREFIX)
    head = await _read_git_line(env, place / "HEAD")
    if head.startswith(_BRANCH_PREFIX):
        branch = head.removeprefix(_BRANCH_PREFIX)
        commit = await _read_git_line(env, place / "refs/heads" / branch)
        return GitRepository(branch, commit if _COMMIT_HASH.fullmatch(commit) else None, None)
    return GitRepository(None, head if _COMMIT_HASH.fullmatch(head) else None, None)


async def _read_git_line(env: ExecutionEnvironment, path: PurePosixPath) -> str:
    try:
        return (await env.read_file(str(path))).decode("utf-8", "replace").strip()
    except OSError:
        return ""


_WHO = """\
You are gong, a coding agent in a terminal. You work in the user's folder with the tools you are \
given; everything you do is recorded. Work until the task is done, or until you need the user."""
_WHO_WITHOUT_TOOLS = """\
You are gong, a coding agent in a terminal. You have no tools in this session: you cannot look at \
the user's folder or change it. Say so when you would need that; everything you say is recorded."""
_CHANGING = (
    "Look before you change: read a file before you change it, and make the smallest change that"
    " does what was asked."
)
_EDIT_FORMATS = {
    "edit": (
        "`edit` replaces `oldText` by `newText`: copy the old text exactly as it is in the file,"
        " with its blanks, and enough lines of it to occur only once."
    ),
    "edit_file": (
        "`edit_file` replaces `old_string` by `new_string`: copy the old text exactly as it is in"
        " the file, with its blanks and without line numbers. It must occur once: add lines around"
        " it, or set `replace_all`."
    ),
    "replace": (
        "`replace` puts `new_string` in place of `old_string`: copy the old text exactly as it is"
        " in the file, with its blanks and without line numbers. It must occur once: add lines"
        " around it, or set `allow_multiple`."
    ),
    "apply_patch": (
        "`apply_patch` takes a patch between `*** Begin Patch` and `*** End Patch`. Each file"
        " begins with `*** Update File: PATH`, `*** Add File: PATH` or `*** Delete File: PATH`. In"
        " an update, `@@` and a line of the file begin a hunk of about three lines of context"
        " around each change; its lines start with a space, `-` or `+`. One patch may change"
        " several files."
    ),
}
"""How each tool that changes a part of a file wants its change."""
_FAILING = "When a tool reports an error, read it, adapt, and say so if you cannot continue."
_CHECKING = "Check your work by running it where that is possible."
_PARALLEL = "Calls that do not need each other's results can be made in one step."
_ANSWERING = (
    "Answer briefly, in the user's language. Say what you did and what you found, not what you are"
    " about to do."
)
_COMMIT_DIGITS = 12

_EDITORS = ("edit", "edit_file", "replace", "apply_patch")
_WRITERS = ("write", "write_file")
_SHELLS = ("bash", "shell")
_SEARCHERS = ("grep", "grep_search", "find", "glob", "ls", "list_dir")
_USES = (
    (_EDITORS, "to change a part of a file"),
    (_WRITERS, "for new files or whole rewrites"),
    (_SHELLS, "to run commands"),
)
"""Names of tools with the same purpose, and that purpose."""
_SENTENCE_END = re.compile(r"(?<=\.)\s")


class Surroundings(NamedTuple):
    """A session's working environment, for the system prompt."""

    folder: str
    platform: str
    os_version: str
    date: str
    """YYYY-MM-DD"""
    repository: GitRepository | None = None
    place: str = ""
    """Where tools act, if that is not the machine of the user."""
    sandbox: str = ""
    """What the border around commands lets them do, if there is one."""


class ModelFacts(NamedTuple):
    """What the prompt tells a model about itself."""

    name: str
    """provider/model."""
    cutoff: str | None = None
    """The month that its knowledge ends with, as YYYY-MM; None if unknown."""


class PromptOverride(NamedTuple):
    """What the user has set of the system prompt."""

    base: str | None = None
    """In place of who the agent is, how it works, and the lines of tools."""
    appended: str = ""
    """The last layer."""


def build_system_prompt(
    where: Surroundings,
    model: ModelFacts,
    tools: Sequence[ToolSpec],
    instructions: Instructions = Instructions(),
    override: PromptOverride = PromptOverride(),
    skills: str = "",
) -> str:
    """Return the whole system prompt of a session that has these tools.

    `skills` is what it says of skills where the tool that loads them is offered.
    """
    base = override.base
    if base is None:
        rules = "\n".join(f"- {rule}" for rule in _list_rules([tool.name for tool in tools]))
        base = f"{_WHO if tools else _WHO_WITHOUT_TOOLS}\n\n{rules}"
    layers = (
        base,
        _render_environment(where, model),
        _render_repository(where.repository),
        _render_tools(tools) if override.base is None else "",
        skills if any(tool.name == "Skill" for tool in tools) else "",
        render_instructions(instructions),
        override.appended,
    )
    return "\n\n".join(layer.strip("\n") for layer in layers if layer.strip())


def _list_rules(tools: Sequence[str]) -> Iterator[str]:
    """Yield the rules, in an order of their own, whatever the order of tools is."""
    if any(name in tools for name in (*_EDITORS, *_WRITERS)):
        yield _CHANGING
    uses = [
        f"{' or '.join(f'`{name}`' for name in there)} {purpose}"
        for names, purpose in _USES
        if (there := [name for name in names if name in tools])
    ]
    if uses:
        yield f"Use {', '.join(uses)}."
    yield from (text for name, text in _EDIT_FORMATS.items() if name in tools)
    editor = next((name for name in _EDITORS if name in tools), None)
    writer = next((name for name in _WRITERS if name in tools), None)
    if editor and writer:
        yield f"Change a file that exists with `{editor}` rather than with `{writer}`."
    searchers = [f"`{name}`" for name in _SEARCHERS if name in tools]
    shell = next((name for name in _SHELLS if name in tools), None)
    if searchers and shell:
        yield f"Search and list with {', '.join(searchers)} rather than with `{shell}`."
    if tools:
        yield _PARALLEL
        yield _FAILING
    if shell:
        yield _CHECKING
    yield _ANSWERING


def _render_environment(where: Surroundings, model: ModelFacts) -> str:
    """Return the block of facts; a name with a line break stays in its line."""
    repository = where.repository
    branch = _describe_checkout(repository) if repository else None
    place = f"{where.place}: commands and files are there, not on the user's machine"
    facts = {
        **({"Place": place} if where.place else {}),
        "Working directory": where.folder,
        **({"Sandbox": where.sandbox} if where.sandbox else {}),
        "Is git repository": "true" if repository else "false",
        **({"Git branch": branch} if branch else {}),
        "Platform": where.platform,
        "OS version": where.os_version,
        "Today's date": where.date,
        "Model": model.name,
        "Knowledge cutoff": model.cutoff or "unknown",
    }
    lines = (
        f"{name}: {fact if fact.isprintable() else to_single_line(fact)}"
        for name, fact in facts.items()
    )
    return "\n".join(["<environment>", *lines, "</environment>"])


def _describe_checkout(repository: GitRepository) -> str | None:
    branch, commit = repository.branch, repository.commit
    if branch is not None:
        is_new = commit is None and repository.dirty is not None
        return f"{branch} (no commit yet)" if is_new else branch
    return None if commit is None else f"none (detached HEAD at {commit[:_COMMIT_DIGITS]})"


def _render_repository(repository: GitRepository | None) -> str:
    """Return the state of git at the start; empty if it is unknown."""
    if repository is None or (repository.modified is None and not repository.commits):
        return ""
    lines = ["The state of git when the session began; it is not updated:"]
    if branch := _describe_checkout(repository):
        lines.append(f"Branch: {to_single_line(branch)}")
    if repository.modified is not None:
        lines.append(f"Modified files: {repository.modified}")
        lines.append(f"Untracked files: {repository.untracked}")
    if repository.commits:
        lines += ["Recent commits:", *(f"  {commit}" for commit in repository.commits)]
    return "\n".join(["<git>", *lines, "</git>"])


def _render_tools(tools: Sequence[ToolSpec]) -> str:
    """Return each tool with the first sentence of its description."""
    lines = (
        f"- `{tool.name}`: {_SENTENCE_END.split(to_single_line(tool.description), 1)[0]}"
        for tool in tools
    )
    return "\n".join(["Your tools:", *lines]) if tools else ""
