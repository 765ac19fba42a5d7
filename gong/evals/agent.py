"""The agent of one try: a session of gong, or a script of the task's own."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace as replace_fields

from tape.text import to_single_line

from ..agent import events
from ..agent.recorder import Recorder
from ..assembly import opening
from ..context.agent_calls import add_agent_calls
from ..context.costs import Spend, sum_spend
from ..context.handoff import read_tape_entries
from ..env.places.environment import PlaceEnvironment
from ..errors import GongError
from .places import is_local, name_place, open_phase

if TYPE_CHECKING:
    from ..agent.front_end import FrontEnd
    from ..config import Settings
    from .places import TaskPlace
    from .result import Stop
    from .task import Task

_GRACE_SECONDS = 30.0
"""How long a session may take to end after its limit of time."""
_FATAL = {"AuthenticationError", "AccessDenied", "ModelNotFound", "QuotaExceeded", "UnknownModel"}
"""Failures of a model that each further try would meet, too."""
_STOPS: dict[str, Stop] = {"time": "time", "round": "turns", "total_turns": "turns"}


class ModelUnusable(GongError):
    """The model cannot be asked at all, so that no try makes sense."""

    def __init__(self, why: str, exit_code: int) -> None:
        super().__init__(why)
        self.exit_code = exit_code


class AgentWork(NamedTuple):
    """What the agent of a try did."""

    tape: str = ""
    model: str = ""
    stopped: Stop = ""
    failure: str = ""
    """Why it broke, in one line; "" where it came to an end."""
    turns: int = 0
    spend: Spend = Spend()
    remark: str = ""


def choose_settings(
    settings: Settings, *, seconds: float, cost: float, turns: int, network: bool
) -> Settings:
    """Return the settings of a try: nobody is asked, and the border is that of the place.

    `cost` is in USD; 0 is no limit, and no limit of `turns`.
    """
    permissions = replace_fields(settings.permissions, mode="bypass")
    web = settings.web
    if not network:
        web = replace_fields(web, fetch=False, search=type(web.search)())
    return replace_fields(
        settings,
        permissions=permissions,
        sandbox="off",
        web=web,
        max_seconds=seconds,
        max_cost=cost,
        max_turns=turns or settings.max_turns,
        title_model=settings.title_model or "off",
        review=replace_fields(settings.review, every=0),
        lsp=replace_fields(settings.lsp, enabled=False),
    )


async def run_session(front: FrontEnd, place: TaskPlace, task: Task, number: int) -> AgentWork:
    """Let gong work on a task in a place; `front` has the settings of the try.

    Its folder is that of the run, which the tape names where the place is another one.

    Raises ModelUnusable, and GongError where the session cannot be opened.
    """

    async def enter() -> PlaceEnvironment:
        env = await place.open({})
        assert isinstance(env, PlaceEnvironment), "it is another place"
        return env

    recorded = place.workdir if is_local(place) else front.folder
    front = replace(
        front,
        folder=place.workdir if is_local(place) else str(place.here),
        place=name_place(place, task),
        open_place=None if is_local(place) else enter,
        names_mode=True,
    )
    host = await opening.open_session(front)
    watch = _Watcher()
    try:
        session = host.session

        def begin_tape(prompt: str) -> Recorder:
            title = f"eval {task.name} #{number}"
            beginning = front.build_beginning(recorded, title=title, slug=prompt)
            tape = front.library.store.create(beginning)
            return Recorder.open(tape, durability=front.settings.durability)

        session.setup = replace(session.setup, open=begin_tape)
        session.ask_nobody()
        session.subscribe(watch.take_event, agents=True)
        try:
            async with asyncio.timeout(front.settings.max_seconds + _GRACE_SECONDS):
                async with aclosing(session.submit(task.instruction)) as stream:
                    async for _ in stream:
                        pass
        except TimeoutError:
            watch.stopped = "time"
        tape = session.recorder.tape.id if session.recorder is not None else ""
        spend = Spend() if session.recorder is None else _sum_session(front, session.recorder)
    finally:
        await host.close()
    if watch.error is not None and watch.error.error_class in _FATAL:
        raise ModelUnusable(watch.error.message, watch.error.exit_code)
    failure = "" if watch.error is None else to_single_line(watch.error.message)
    return AgentWork(tape, host.model_name, watch.stopped, failure, watch.turns, spend)


def _sum_session(front: FrontEnd, recorder: Recorder) -> Spend:
    """Return what a session spent, with its sub-agents."""

    def ignore(_: str) -> None:
        """Say nothing of a line that was skipped: the tape is of this moment."""

    tape = recorder.tape
    source = read_tape_entries(tape, ignore)
    calls = add_agent_calls(source, tape, front.library.store.open, ignore, whole=True)
    return sum_spend(entry for _, entry in calls)


class _Watcher:
    """Collects from the events of a session how it went."""

    def __init__(self) -> None:
        self.stopped: Stop = ""
        self.error: events.RunFailure | None = None
        self.turns = 0

    def take_event(self, event: events.Event) -> None:
        """Take an event, also one of a sub-agent."""
        match event:
            case events.MessageEnd():
                self.turns += not event.agent
            case events.RunFailure() if not event.agent:
                self.error = event
            case events.TurnLimit() if not event.agent:
                self.stopped = _STOPS.get(event.limit, "turns")
            case events.CostLimit() if not event.agent:
                self.stopped = "cost"
            case events.LoopDetection(stopped=True) if not event.agent:
                self.stopped = "loop"
            case _:
                pass


async def run_script(place: TaskPlace, task: Task, name: str, seconds: float) -> AgentWork:
    """Run a script of the folder `solution` in place of an agent."""
    async with open_phase(place, {"solution": task.folder / "solution"}) as env:
        script = f"{place.locate('solution')}/{name}"
        done = await env.exec_command(script, timeout_ms=round(seconds * 1000))
    remark = "" if done.exit_code == 0 else f"{name} ended with {done.exit_code}"
    return AgentWork(stopped="time" if done.timed_out else "", remark=remark)
