"""A run: tries of tasks side by side, each judged by its tests; what is finished is never repeated.

try      the environment is made, the agent works, the tests judge, the result is written
budget   the limits of tries that run together are at most what is left
end      an error of one try is its result; only a model that cannot be asked at all ends a run
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from msgspec.structs import replace as replace_fields

from tape.clock import format_timestamp, read_clock

from .agent import AgentWork, choose_settings, run_script, run_session
from .attempt import Attempt
from .bubblewrap import BubblewrapPlace, remove_remains
from .containers import ContainerPlace, remove_container
from .places import FolderPlace
from .result import AgentKind, RunChoices, RunFolder, TryResult, UnfinishedTry
from .task import hash_task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..agent.front_end import FrontEnd
    from .places import TaskPlace
    from .task import Task

_SCRIPTS: dict[AgentKind, str] = {"solution": "solve.sh", "spoil": "spoil.sh"}
_MIN_COST = 1e-6
"""USD; with less nothing is begun."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """How much a run may do."""

    tries: int = 1
    """Tries of each task."""
    jobs: int = 1
    """Tries at one time."""
    max_cost: float = 0.0
    """USD of the whole run, with what is finished; 0 is no limit."""
    max_seconds: float = 0.0
    """Seconds of an agent, where its task allows more; 0 is no limit."""
    max_turns: int = 0
    """Model calls of a try; 0 is no limit."""


class Budget:
    """What a run may still spend, shared out among tries that run at one time."""

    def __init__(self, total: float, spent: float, jobs: int) -> None:
        self.total, self.spent, self._free, self._reserved = total, spent, jobs, 0.0

    def take(self) -> float | None:
        """Return the most that the next try may spend, 0 for no limit; None where nothing is left.

        It is held back until `give_back`.
        """
        if not self.total:
            return 0.0
        share = (self.total - self.spent - self._reserved) / self._free
        if share < _MIN_COST:
            return None
        self._free -= 1
        self._reserved += share
        return share

    def give_back(self, share: float, spent: float) -> None:
        """Release the share of a try that spent so much."""
        self.spent += spent
        if self.total:
            self._free += 1
            self._reserved -= share


@dataclass(slots=True)
class EvalRun:
    """One run in its folder."""

    front: FrontEnd
    """The store, and the settings that each try has its own version of."""
    folder: RunFolder
    choices: RunChoices
    tasks: Sequence[Task]
    limits: RunLimits
    tell: Callable[[TryResult], None]
    """Is given each result as it comes."""
    hidden: Sequence[str] = ()
    """Folders that no try may see."""
    is_over_budget: bool = False
    """Whether tries were left out because the budget is spent."""

    async def run_tries(self) -> None:
        """Run every try that is not finished; raises ModelUnusable."""
        for remains in self.folder.take_unfinished():
            await _remove_remains(remains, self.front.environ)
        finished = self.folder.read_results()
        done = {(result.task, result.number) for result in finished}
        waiting = iter(
            [
                (task, number)
                for number in range(1, self.limits.tries + 1)
                for task in self.tasks
                if (task.name, number) not in done
            ]
        )
        jobs = max(1, self.limits.jobs)
        budget = Budget(self.limits.max_cost, sum(r.cost or 0 for r in finished), jobs)
        workers = [asyncio.create_task(self._work(waiting, budget)) for _ in range(jobs)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                if not worker.cancelling():  # a second time would break off how it cleans up
                    worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self, waiting: Iterator[tuple[Task, int]], budget: Budget) -> None:
        while True:
            share = budget.take()
            following = next(waiting, None) if share is not None else None
            if following is None or share is None:
                self.is_over_budget |= share is None and next(waiting, None) is not None
                return
            task, number = following
            result, log = await self._run_try(task, number, share)
            budget.give_back(share, result.cost or 0.0)
            self.folder.write_result(result, log)
            self.tell(result)

    async def _run_try(self, task: Task, number: int, cost: float) -> tuple[TryResult, bytes]:
        """Return the result of a try, whatever happens, and what its tests printed."""
        began = format_timestamp(read_clock())
        blank = TryResult(task.name, number, "bad-task", began=began, digest=hash_task(task))
        if task.fault:
            return replace_fields(blank, detail=task.fault), b""
        remains = _plan_remains(task, number, self.choices)
        self.folder.begin_try(task.name, number, remains)
        place = self._build_place(task, remains)
        attempt = Attempt(task, place, blank)
        try:
            await attempt.run(
                lambda: self._run_agent(task, place, number, cost),
                _SCRIPTS.get(self.choices.agent, ""),
            )
        finally:
            await asyncio.shield(place.remove())
            self.folder.end_try(task.name, number)
        return attempt.result, attempt.log

    def _build_place(self, task: Task, remains: UnfinishedTry) -> TaskPlace:
        folder, environ = Path(remains.folder), self.front.environ
        network = self.choices.network and task.wants_network
        match self.choices.place:
            case "bwrap":
                hidden = (*self.hidden, str(task.folder))
                return BubblewrapPlace(task, folder, environ, hidden=hidden, network=network)
            case "podman":
                return ContainerPlace(
                    task, folder, environ, name=remains.container, network=network
                )
            case "folder":
                return FolderPlace(task, folder, environ)

    async def _run_agent(self, task: Task, place: TaskPlace, number: int, cost: float) -> AgentWork:
        """Let the agent of this run work in a place."""
        seconds = min(task.agent_seconds, self.limits.max_seconds or task.agent_seconds)
        if (script := _SCRIPTS.get(self.choices.agent)) is not None:
            return await run_script(place, task, script, seconds)
        settings = choose_settings(
            self.front.settings,
            seconds=seconds,
            cost=cost,
            turns=self.limits.max_turns,
            network=self.choices.network and task.wants_network,
        )
        front = replace(self.front, settings=settings, folder=str(self.folder.path.resolve()))
        return await run_session(front, place, task, number)


def _plan_remains(task: Task, number: int, choices: RunChoices) -> UnfinishedTry:
    folder = Path(tempfile.gettempdir()).resolve() / f"gong-eval-{token_hex(6)}"
    container = ""
    if choices.place == "podman":
        slug = re.sub(r"[^a-z0-9]+", "-", task.name.lower()).strip("-")[:40]
        container = f"gong-eval-{slug or 'task'}-{number}-{token_hex(4)}"
    return UnfinishedTry(str(folder), container)


async def _remove_remains(remains: UnfinishedTry, environ: Mapping[str, str]) -> None:
    if remains.container.startswith("gong-eval-"):
        await remove_container(remains.container, environ)
    folder = Path(remains.folder)
    if folder.name.startswith("gong-eval-"):
        await asyncio.to_thread(remove_remains, folder)
