"""The text of a skill as the model gets it: with its arguments, outputs of commands, and files.

    in the text         becomes
    ------------------  --------------------------------------------------------------
    !`git status`       what the command prints; the policy decides about it as about
    ```! … ```          any other, and a refusal replaces it
    @docs/plan.md       stays, and the file follows at the end, where it may be read
    $ARGUMENTS, $1 …    see `arguments`

Only the text of the skill itself is looked at: a command or a file in an argument, or in an output,
is plain text.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..trust import SKILL_COMMAND
from .arguments import fill_placeholders, has_placeholders

if TYPE_CHECKING:
    from ..env.protocol import ExecutionEnvironment
    from .arguments import ArgumentValues
    from .skill import Skill

MAX_OUTPUT_CHARS = 30_000
"""Characters of the output of one command."""
MAX_FILE_CHARS = 100_000
"""Characters of one file."""
_TIMEOUT_MS = 60_000
_FILE = re.compile(r"(?:^|(?<=[\s(]))@(?P<path>[\w.~/][\w./~-]*[\w/-])", re.MULTILINE)


class CallGate(Protocol):
    """Decides about what the text of a skill runs and reads."""

    async def check_command(self, line: str) -> str:
        """Return why a command may not run; empty if it may."""
        ...

    async def check_file(self, path: str) -> str:
        """Return why a file may not be read; empty if it may."""
        ...


class ExpandedText(NamedTuple):
    """The text of a skill for the model."""

    text: str
    refused: tuple[str, ...] = ()
    """The commands and files that were refused."""


async def expand_skill(
    skill: Skill, values: ArgumentValues, env: ExecutionEnvironment, gate: CallGate
) -> ExpandedText:
    """Return the text of a skill, its commands run in the environment's folder."""
    parts: list[str] = []
    refused: list[str] = []
    end = 0
    for command in SKILL_COMMAND.finditer(skill.body):
        parts.append(fill_placeholders(skill.body[end : command.start()], values))
        line = fill_placeholders((command["line"] or command["block"] or "").strip(), values)
        end = command.end()
        if why := await gate.check_command(line):
            refused.append(line)
            parts.append(f"[not run: `{line}`: {why}]")
        else:
            parts.append(await _run_line(line, env))
    parts.append(fill_placeholders(skill.body[end:], values))
    if values.typed and not has_placeholders(skill):
        parts.append(f"\n\nARGUMENTS: {values.typed}")
    paths = dict.fromkeys(match["path"] for match in _FILE.finditer(skill.body))
    parts += [await _attach_file(path, skill, env, gate, refused) for path in paths]
    return ExpandedText("".join(parts).strip("\n"), tuple(refused))


async def _run_line(line: str, env: ExecutionEnvironment) -> str:
    """Return what a command prints, and how it failed if it did."""
    result = await env.exec_command(line, timeout_ms=_TIMEOUT_MS)
    output = result.output.decode("utf-8", "replace").rstrip("\n")
    if len(output) > MAX_OUTPUT_CHARS:
        output = (
            f"{output[:MAX_OUTPUT_CHARS]}\n[{len(output) - MAX_OUTPUT_CHARS:,} more characters]"
        )
    if result.timed_out:
        return f"{output}\n[`{line}` was stopped after {_TIMEOUT_MS // 1000} s]".lstrip("\n")
    if result.exit_code:
        return f"{output}\n[`{line}` ended with exit code {result.exit_code}]".lstrip("\n")
    return output


async def _attach_file(
    path: str, skill: Skill, env: ExecutionEnvironment, gate: CallGate, refused: list[str]
) -> str:
    """Return a file as it is appended to the text; empty for a word that names none.

    It is looked for in the working folder, then beside the skill.
    """
    for base in (env.working_directory, skill.folder):
        real = posixpath.normpath(posixpath.join(base, path))
        if not await env.file_exists(real):
            continue
        if why := await gate.check_file(real):
            refused.append(f"@{path}")
            return f"\n\n[not read: @{path}: {why}]"
        try:
            text = (await env.read_file(real)).decode("utf-8", "replace")
        except OSError as error:
            return f"\n\n[not read: @{path}: {error.strerror or error}]"
        cut = f"\n[{len(text) - MAX_FILE_CHARS:,} more characters]"
        excerpt = text if len(text) <= MAX_FILE_CHARS else text[:MAX_FILE_CHARS] + cut
        return f'\n\n<file path="{path}">\n{excerpt.rstrip()}\n</file>'
    return ""
