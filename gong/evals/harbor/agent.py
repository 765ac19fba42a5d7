"""gong as an agent of Harbor: installed in the environment of a task, and read by its tape.

install   the version that Harbor imported, with its dependencies; or a program that is there
run       `gong chat -p`, with the store of its tapes among the logs of the agent
after     trajectory.json, tokens and cost from the tape, also of a run that was cut off
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harbor.agents.capabilities import AgentCapabilities
from harbor.agents.installed.base import BaseInstalledAgent, with_prompt_template
from harbor.agents.options import InstalledAgentOptions
from harbor.models.agent.context import AgentContext, ModelUsage
from pydantic import Field
from typing_extensions import override

import tape
from tape.clock import format_timestamp, read_clock
from tape.errors import TapeError
from tape.sessions.export import export_session
from tape.store.store import Store

from ...context.agent_calls import list_tape_calls
from ...context.costs import Spend
from ...llm.models import load_presets
from ...llm.prices import count_prompt

if TYPE_CHECKING:
    from harbor.environments.base import BaseEnvironment

_GONG = Path(__file__).parents[2]
_PLACE = "/installed-agent"
_LIMIT_EXIT = 8
"""How gong ends where a limit of it was reached: what it did is judged all the same."""


class GongOptions(InstalledAgentOptions):
    """What `--ak NAME=VALUE` may set."""

    program: str | None = Field(
        default=None, description="gong as it is called in the environment; nothing is installed."
    )
    max_turns: int | None = Field(default=None, ge=1, description="Max calls of the model.")
    max_cost: float | None = Field(default=None, gt=0, description="Max cost of a run in USD.")


class GongAgent(BaseInstalledAgent):
    """gong, with a trajectory in ATIF, its cost, and sessions that later steps continue."""

    capabilities = AgentCapabilities(
        atif=True, resume=True, reasoning_effort=True, load_atif_trajectory=True
    )
    options_model = GongOptions
    options: GongOptions

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._counted: set[str] = set()
        """Calls that an earlier step has counted, by their entries."""
        self._since = ""
        """When the session was continued that Harbor loads: what is older cost nothing here."""

    @staticmethod
    @override
    def name() -> str:
        return "gong"

    @override
    def version(self) -> str:
        return importlib.metadata.version("gong")

    @property
    def _program(self) -> str:
        """The words that start gong in the environment."""
        if self.options.program:
            return shlex.quote(self.options.program)
        return f"env PYTHONPATH={_PLACE}/lib python3 -P -m gong"

    @override
    async def install(self, environment: BaseEnvironment) -> None:
        if not self.options.program:
            for folder in (_GONG, Path(tape.__path__[0])):
                await environment.upload_dir(folder, f"{_PLACE}/lib/{folder.name}")
            needed = [
                requirement.partition(";")[0].strip()
                for requirement in importlib.metadata.requires("gong") or ()
                if "extra ==" not in requirement
            ]
            words = shlex.join(["--quiet", "--target", f"{_PLACE}/lib", *needed])
            await self.exec_as_root(environment, f"python3 -m pip install {words}")
        await self.exec_as_agent(environment, f"{self._program} --version")

    @with_prompt_template
    @override
    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        logs = str(self.environment_logs_dir)
        words = ["-p", instruction, "--output-format", "stream-json", "--yolo", "--afk"]
        words += ["--store", f"{logs}/tapes"]
        words += ["-m", self.model_name] if self.model_name else []
        words += ["-e", self.options.reasoning_effort] if self.options.reasoning_effort else []
        words += ["--max-turns", str(self.options.max_turns)] if self.options.max_turns else []
        words += ["--max-cost", str(self.options.max_cost)] if self.options.max_cost else []
        if self._resume:
            words.append("--continue")
        elif self._load:
            words += ["--session", await self._import_trajectory(environment)]
        output, errors = f"{logs}/gong.jsonl", f"{logs}/gong.txt"
        await self.exec_as_agent(
            environment,
            f"{self._program} chat {shlex.join(words)} > {output} 2> {errors}; code=$?;"
            f" tail -c 4000 {errors} >&2; [ $code = {_LIMIT_EXIT} ] && code=0; exit $code",
            env=self._list_variables(),
        )

    def _list_variables(self) -> dict[str, str]:
        """Return the variables of this machine that hold key and address of the provider."""
        provider = (self.model_name or "").partition("/")[0]
        preset = load_presets({}, os.environ).get(provider)
        names = () if preset is None else (*preset.keys, *preset.base_url_variables)
        return {name: os.environ[name] for name in names if name in os.environ}

    async def _import_trajectory(self, environment: BaseEnvironment) -> str:
        """Put the trajectory that is to be continued into the store; return the id of its tape."""
        assert self.load_trajectory is not None, "Harbor asks for one"
        self._since = format_timestamp(read_clock())
        target = f"{_PLACE}/trajectory.json"
        await self._upload_agent_owned_file(environment, self.load_trajectory, target)
        store = shlex.quote(f"{self.environment_logs_dir}/tapes")
        line = f"{self._program} tape --store {store} import {target} --json"
        done = await self.exec_as_agent(environment, line)
        return str(json.loads(done.stdout)["id"])

    @override
    def populate_context_post_run(self, context: AgentContext) -> None:
        identity = self._find_session()
        store = Store(self.logs_dir / "tapes")
        if not identity:
            return
        try:
            with store.open(identity) as recorded:
                calls = [
                    call
                    for call in list_tape_calls(recorded, store.open)
                    if call.entry not in self._counted and call.time >= self._since
                ]
                with suppress(TapeError):
                    session = export_session(
                        recorded, None, "atif", redact=True, skipped=self.logger.warning
                    )
                    (self.logs_dir / "trajectory.json").write_bytes(session.data)
        except (TapeError, OSError) as error:
            self.logger.warning("the tape of the session cannot be read: %s", error)
            return
        spends: dict[str, Spend] = {}
        for call in calls:
            self._counted.add(call.entry)
            spends[call.model] = spends.get(call.model, Spend()) + call.spend
        context.model_usage = {model: _count_usage(spend) for model, spend in spends.items()}
        total = _count_usage(sum(spends.values(), Spend()))
        context.n_input_tokens, context.n_cache_tokens = total.n_input_tokens, total.n_cache_tokens
        context.n_output_tokens, context.cost_usd = total.n_output_tokens, total.cost_usd
        context.metadata = {"tape": identity, "turns": len(calls)}

    def _find_session(self) -> str:
        """Return the tape of the session, as the first line that gong printed says; "" if none."""
        try:
            with (self.logs_dir / "gong.jsonl").open("rb") as file:
                first: Any = json.loads(file.readline())
        except (OSError, ValueError):
            return ""
        return str(first.get("session") or "") if isinstance(first, dict) else ""


def _count_usage(spend: Spend) -> ModelUsage:
    """Return tokens and cost as Harbor counts them: what was cached is input, too."""
    usage = spend.usage
    return ModelUsage(
        n_input_tokens=count_prompt(usage),
        n_cache_tokens=usage.cache_read or 0,
        n_output_tokens=usage.output,
        cost_usd=None if spend.unknown_calls else spend.cost,
    )
