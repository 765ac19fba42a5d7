"""One try: its environment is made, the agent works, the tests judge; whatever goes wrong is named.

Nothing but a reward of 1 that the tests wrote counts as solved.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace as replace_fields

from tape.text import replace_surrogates, to_single_line

from ..errors import (
    AccessDenied,
    AuthenticationError,
    ConfigurationError,
    FolderGone,
    GongError,
    ModelNotFound,
)
from ..llm.prices import count_prompt
from ..tools.paths import measure_file
from .agent import AgentWork, ModelUnusable
from .files import EnvironmentFault
from .places import open_phase
from .reward import MAX_BYTES, RewardFault, parse_reward_json, parse_reward_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..env.protocol import ExecutionEnvironment
    from .places import TaskPlace
    from .result import Outcome, TryResult
    from .task import Task

MAX_OUTPUT = 64 << 20
"""Bytes that tests may print; then they are ended."""

_UNUSABLE = (ConfigurationError, AuthenticationError, AccessDenied, ModelNotFound)
"""What each further try would meet, too."""


class Attempt:
    """One try, from its environment to its result."""

    def __init__(self, task: Task, place: TaskPlace, blank: TryResult) -> None:
        self.task, self.place, self.result = task, place, blank
        self.log = b""

    async def run(self, work: Callable[[], Awaitable[AgentWork]], script: str = "") -> None:
        """Go through all phases, as far as they come; `work` lets the agent work.

        `script` is the file in `solution` that is the agent, "" if none is. Raises ModelUnusable.
        """
        if script and not (self.task.folder / "solution" / script).is_file():
            return self._end("no-solution", f"there is no solution/{script}")
        try:
            await self.place.prepare()
        except (GongError, OSError) as error:
            return self._end("bad-environment", error)
        started = time.monotonic()
        try:
            report = await work()
        except ModelUnusable:
            raise
        except (EnvironmentFault, FolderGone) as error:
            return self._end("bad-environment", error)
        except _UNUSABLE as error:
            raise ModelUnusable(str(error), error.exit_code) from error
        except (GongError, OSError) as error:
            return self._end("agent-error", error)
        self._note(report, time.monotonic() - started)
        if report.failure:
            return self._end("agent-error", report.failure)
        started = time.monotonic()
        try:
            await self._verify()
        except (GongError, OSError) as error:
            self._end("verifier-error", error)
        self._set(verifier_seconds=round(time.monotonic() - started, 3))
        return None

    def _note(self, report: AgentWork, seconds: float) -> None:
        usage, is_script = report.spend.usage, not report.model
        unknown = bool(report.spend.unknown_calls)
        cost = 0.0 if is_script else None if unknown else report.spend.cost or 0.0
        self._set(
            tape=report.tape,
            model=report.model,
            stopped=report.stopped,
            turns=report.turns,
            cost=cost,
            input_tokens=count_prompt(usage),
            output_tokens=usage.output,
            agent_seconds=round(seconds, 3),
            detail=report.remark,
        )

    async def _verify(self) -> None:
        """Let the task's tests judge what is there."""
        empty = self.place.here / "no-logs"
        folders = {"tests": self.task.folder / "tests", "logs": empty}
        async with open_phase(self.place, folders) as env:
            tests, logs = self.place.locate("tests"), self.place.locate("logs")
            flooded, counted = asyncio.Event(), 0

            def count(chunk: bytes) -> None:
                nonlocal counted
                counted += len(chunk)
                if counted > MAX_OUTPUT:
                    flooded.set()

            running = asyncio.ensure_future(
                env.exec_command(
                    f"{tests}/test.sh",
                    timeout_ms=round(self.task.verifier_seconds * 1000),
                    env_vars={**self.task.verifier_env, "VERIFIER_LOGS": logs},
                    on_output=count,
                )
            )
            waiting = asyncio.ensure_future(flooded.wait())
            try:
                both: set[asyncio.Future[Any]] = {running, waiting}
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.cancel()
                if not running.done():
                    running.cancel()
                    await asyncio.wait({running})
            if running.cancelled():
                return self._end("verifier-flood", f"more than {MAX_OUTPUT >> 20} MB")
            done = running.result()
            self.log = done.output
            if done.timed_out:
                return self._end("verifier-timeout", f"after {self.task.verifier_seconds:g} s")
            return await self._judge(env, logs, done.exit_code)

    async def _judge(self, env: ExecutionEnvironment, logs: str, exit_code: int) -> None:
        for name, parse in (("reward.json", parse_reward_json), ("reward.txt", parse_reward_text)):
            path = f"{logs}/{name}"
            if not await env.file_exists(path):
                continue
            try:
                reward = parse(await _read_small(env, path))
            except (RewardFault, OSError) as fault:
                return self._end("bad-reward", f"{name}: {fault}")
            self._set(reward=reward)
            return self._end("solved" if reward == 1 else "failed", self.result.detail)
        return self._end("no-reward", f"its tests ended with {exit_code}")

    def _end(self, outcome: Outcome, why: object) -> None:
        self._set(outcome=outcome, detail=replace_surrogates(to_single_line(str(why)))[:500])

    def _set(self, **values: Any) -> None:
        self.result = replace_fields(self.result, **values)


async def _read_small(env: ExecutionEnvironment, path: str) -> bytes:
    """Return the bytes of a file; raises RewardFault for a long one, which is not fetched."""
    if await measure_file(env, path) > MAX_BYTES:
        raise RewardFault(f"it has more than {MAX_BYTES >> 10} kB")
    return await env.read_file(path)
