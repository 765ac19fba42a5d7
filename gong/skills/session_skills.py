"""The skills of one session: which one a prompt or a call means, and what using it changes.

    used by            text goes to                grants hold until    model and effort
    -----------------  --------------------------  -------------------  ---------------------
    a person: /name    an entry after the prompt   the run ends         those of the skill
    the model: Skill   the result of its call      the run ends         stay as they are

`allowed-tools` are rules that allow for that run only, `disallowed-tools` rules that refuse;
neither is stronger than the danger floor, plan mode, or a rule of the user that refuses or asks.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Raw, Struct
from msgspec import json as msgspec_json

from tape.model.entries import ToolCall

from ..errors import ConfigurationError
from ..policy.decision import decide_call
from ..policy.rules import HasRunRules, RuleSet
from ..tools.tool import AgentTool, PreparedCall, ToolOutcome
from .arguments import read_arguments
from .expansion import expand_skill
from .file_patterns import select_fitting
from .listing import list_for_model
from .loaded import wrap_text

if TYPE_CHECKING:
    from ..env.protocol import ExecutionEnvironment
    from ..policy.decision import Policy
    from ..tools.tool import ToolContext
    from .arguments import ArgumentValues
    from .skill import Skill, SkillSet


_PROMPT = re.compile(r"/(?P<name>[^\s/]+)\s*(?P<typed>.*)", re.DOTALL)


class SkillUse(NamedTuple):
    """One use of a skill, its arguments checked."""

    skill: Skill
    values: ArgumentValues


class LoadedText(NamedTuple):
    """A skill as the model gets it."""

    name: str
    path: str
    text: str
    refused: tuple[str, ...]
    """Commands and files in it that were refused."""


@dataclass(slots=True)
class SessionSkills:
    """The skills of a session."""

    found: SkillSet
    project: str
    """The root folder of the project."""
    folder: str
    """The working folder."""
    _offered: list[Skill] | None = None

    def list_for_user(self) -> list[Skill]:
        """Return those that a person can type as `/name`."""
        return [skill for skill in self.found.list_active() if skill.for_user]

    def list_for_model(self, window: int | None) -> str:
        """Return what the system prompt says of them, for a context window in tokens."""
        if self._offered is None:
            self._offered = select_fitting(self.found.list_active(), self.folder)
        return list_for_model(self._offered, window)

    def find_prompt(self, prompt: str, session: str = "") -> SkillUse | None:
        """Return the use that a prompt `/name arguments` is; None where it names no skill.

        Raises ConfigurationError for a skill that may not be used, or wrong arguments.
        """
        if (begin := _PROMPT.match(prompt)) is None:
            return None
        name, typed = begin["name"], begin["typed"]
        if (skill := self.found.find(name)) is None:
            return None
        self._require_active(skill)
        if not skill.for_user:
            raise ConfigurationError(f"/{name} is used by the model only: ask for what it does")
        return self._build_use(skill, typed, session)

    def find_call(self, name: str, typed: str, session: str = "") -> SkillUse:
        """Return the use that a call of the model is. Raises ConfigurationError."""
        skill = self.found.find(name)
        if skill is None:
            names = [skill.name for skill in self.found.list_active() if skill.for_model]
            near = get_close_matches(name, names, n=1)
            meant = f"did you mean {near[0]}?" if near else f"there are: {', '.join(names)}"
            raise ConfigurationError(f"no skill is called {name}: {meant}")
        self._require_active(skill)
        if not skill.for_model:
            raise ConfigurationError(f"{name} is used by the user only, as /{name}")
        return self._build_use(skill, typed, session)

    async def load(self, use: SkillUse, env: ExecutionEnvironment, policy: Policy) -> LoadedText:
        """Return the text of a skill, and let its rules hold from now on to the end of the run."""
        skill = use.skill
        add_run_rules(policy, skill)
        expanded = await expand_skill(skill, use.values, env, _PolicyGate(policy))
        lines = [] if skill.is_command else [f"Base directory of this skill: {skill.folder}", ""]
        if skill.forks:
            kind = f" of type {skill.agent}" if skill.agent else ""
            lines += [f"Give this to a sub-agent{kind} if you can start one.", ""]
        text = wrap_text(skill.qualified_name, skill.path, "\n".join([*lines, expanded.text]))
        return LoadedText(skill.qualified_name, skill.path, text, expanded.refused)

    def _build_use(self, skill: Skill, typed: str, session: str) -> SkillUse:
        variables = {
            **dict.fromkeys(("CLAUDE_SKILL_DIR", "GONG_SKILL_DIR", "SKILL_DIR"), skill.folder),
            **dict.fromkeys(("CLAUDE_PROJECT_DIR", "GONG_PROJECT_DIR"), self.project),
            "CLAUDE_SESSION_ID": session,
        }
        if skill.plugin:
            variables["CLAUDE_PLUGIN_ROOT"] = variables["PLUGIN_ROOT"] = skill.plugin
        return SkillUse(skill, read_arguments(skill, typed, variables))

    def _require_active(self, skill: Skill) -> None:
        if not skill.is_active:
            raise ConfigurationError(
                f"/{skill.name} comes from {skill.path}, and this project is not trusted:"
                " gong trust shows and allows it"
            )


def add_run_rules(policy: Policy, skill: Skill) -> None:
    """Let the rules of a skill hold until the run ends; a wrong rule is left out."""
    if isinstance(policy, HasRunRules):
        rules = policy.run_rules
        allow, deny = [*rules.allow], [*rules.deny]
        for texts, lasting in ((skill.allowed_tools, allow), (skill.disallowed_tools, deny)):
            for text in texts:
                with suppress(ConfigurationError):  # `gong skills check` says so
                    lasting.extend(RuleSet.parse([text]).allow)
        policy.run_rules = RuleSet(tuple(allow), tuple(deny))


class _CommandArguments(Struct, frozen=True):
    command: str


class _ReadArguments(Struct, frozen=True):
    path: str


async def _run_nothing(_arguments: Struct, _context: ToolContext) -> ToolOutcome:
    raise AssertionError("only the policy sees this tool")


_COMMAND = AgentTool("bash", "", _CommandArguments, _run_nothing)
_READ = AgentTool("read", "", _ReadArguments, _run_nothing, replay="safe")


class _PolicyGate:
    """Asks the policy of a session about what the text of a skill runs and reads."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._count = 0

    async def check_command(self, line: str) -> str:
        """Return why a command may not run; empty if it may."""
        return await self._check(_COMMAND, _CommandArguments(line))

    async def check_file(self, path: str) -> str:
        """Return why a file may not be read; empty if it may."""
        return await self._check(_READ, _ReadArguments(path))

    async def _check(self, tool: AgentTool, arguments: Struct) -> str:
        self._count += 1
        args = Raw(msgspec_json.encode(arguments))
        call = ToolCall(f"skill_{self._count}", tool.name, args)
        verdict = await decide_call(self._policy, PreparedCall(tool, call, arguments))
        return "" if verdict.allowed else verdict.text or "it was refused"
