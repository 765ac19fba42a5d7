"""Steps of workflows in a queue that several programs share, kept by DBOS in SQLite or PostgreSQL.

A step is one run of an agent. What is next is computed from the workflow's tape; the queue only
says which worker does it, and brings its result back. A step in the queue:

    enqueued    waits for a worker
    pending     a worker carries it out; its event `beat` counts up every two seconds
    success     its result is there
    cancelled   it was stopped, or its worker was silent for `LOST_SECONDS`

A worker whose count stands still is given up: the step is cancelled, and the workflow does it
again. A worker that was only slow holds the branch of the agent as long as it works, so two
never write one history.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import getnode

import msgspec
from msgspec import Struct

from tape.own_program import build_own_words

from ..errors import ConfigurationError
from ..private_files import locate_state_folder
from ..subagents.remote import RemoteEnd, RemoteRun

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from .record import WorkflowOptions

QUEUE_VARIABLE = "GONG_WORKFLOW_QUEUE"
"""The environment variable that names the queue, so that a password is in no command line."""
LOST_SECONDS = 20.0
_BEAT_SECONDS = 2.0
_LOOK_SECONDS = 0.2
_WAIT_SECONDS = 10.0
"""After how long it is said that no worker takes a step."""
_END_SECONDS = 3_600
"""How long a worker that is told to end waits for the steps that it has begun."""
_STARTS = 20
"""How often a worker that ends too early is started again."""
_NAME, _QUEUE, _STEP, _VERSION = "gong", "gong-steps", "run_step", "1"
_MISSING = "a queue of steps needs the package dbos: pip install 'gong[workflow]'"


class QueuedStep(Struct, frozen=True):
    """What a worker is handed."""

    run: RemoteRun
    folder: str
    """The workflow's folder; it is the same one for all workers."""
    options: Any
    """The `WorkflowOptions` that the workflow was started with."""


def choose_queue(option: str | None, environ: Mapping[str, str]) -> str:
    """Return the database of a queue as a URL; empty is none.

    `option` is `sqlite` for a file in gong's state folder, sqlite:///FILE or postgresql://…; None
    is what GONG_WORKFLOW_QUEUE says. Raises ConfigurationError for anything else.
    """
    url = environ.get(QUEUE_VARIABLE, "") if option is None else option
    if url == "sqlite":
        folder = locate_state_folder(environ) / "workflows"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return f"sqlite:///{folder / 'queue.sqlite'}"
    if url and not url.startswith(("sqlite:///", "postgresql://", "postgres://")):
        raise ConfigurationError(
            f"a queue is `sqlite`, sqlite:///FILE or postgresql://USER@HOST/DATABASE, not {url!r}"
        )
    return url


def mask_password(url: str) -> str:
    """Return the URL of a database without its password, to be recorded."""
    scheme, mark, rest = url.partition("://")
    account, at, place = rest.rpartition("@")
    return f"{scheme}{mark}{account.partition(':')[0]}{at}{place}"


def _import_dbos() -> Any:
    try:
        import dbos  # it takes a second, and few workflows have a queue
    except ImportError as error:
        raise ConfigurationError(_MISSING) from error
    logging.getLogger("dbos").setLevel(logging.CRITICAL)
    return dbos


class StepQueue:
    """Hands the steps of one workflow to workers (`gong.subagents.remote.Carrier`)."""

    def __init__(
        self, client: Any, folder: str, options: WorkflowOptions, warn: Callable[[str], None]
    ) -> None:
        self._client, self._folder, self._options, self._warn = client, folder, options, warn
        self._has_warned = False
        self._cancelling: set[asyncio.Future[Any]] = set()

    @classmethod
    async def open(
        cls, url: str, folder: str, options: WorkflowOptions, warn: Callable[[str], None]
    ) -> StepQueue:
        """Open a queue, and make its tables; raises ConfigurationError where that is impossible."""
        dbos = await asyncio.to_thread(_import_dbos)

        def connect() -> Any:
            dbos.run_dbos_database_migrations(system_database_url=url)
            return dbos.DBOSClient(system_database_url=url, application_name=_NAME)

        try:
            return cls(await asyncio.to_thread(connect), folder, options, warn)
        except Exception as error:  # SQLAlchemy's and the driver's, as they please
            reason = str(error).partition("\n")[0]
            raise ConfigurationError(f"no queue at {mask_password(url)}: {reason}") from error

    async def close(self) -> None:
        """Wait for what was cancelled, and close the connections."""
        await asyncio.gather(*self._cancelling, return_exceptions=True)
        await asyncio.to_thread(self._client.destroy)

    async def knows(self, run: str) -> bool:
        """Return whether a run was put into the queue."""
        return bool(await self._client.list_workflows_async(workflow_ids=[run]))

    async def carry(self, run: RemoteRun) -> RemoteEnd:
        """Put a run into the queue, and return how it ended."""
        step = QueuedStep(run, self._folder, self._options)
        options = {
            "queue_name": _QUEUE,
            "workflow_name": _STEP,
            "workflow_id": run.id,
            "app_version": _VERSION,
        }
        await self._client.enqueue_async(options, msgspec.json.encode(step).decode())
        return await self.follow(run.id)

    async def follow(self, run: str) -> RemoteEnd:
        """Return how a run in the queue ended; `interrupted` where its worker is silent."""
        handle = await self._client.retrieve_workflow_async(run)
        began = seen = monotonic()
        beat: Any = None
        while True:
            status = await handle.get_status()
            match status.status:
                case "SUCCESS":
                    return msgspec.json.decode(await handle.get_result(), type=RemoteEnd)
                case "CANCELLED":
                    return RemoteEnd("cancelled", "It was stopped.")
                case "PENDING":
                    now = await self._client.get_event_async(run, "beat", timeout_seconds=0)
                    if now != beat:
                        beat, seen = now, monotonic()
                    elif monotonic() - seen > LOST_SECONDS or _is_gone(status.executor_id):
                        await self._client.cancel_workflow_async(run)
                        return RemoteEnd("interrupted", "Its worker has ended.")
                case "ENQUEUED" | "DELAYED":
                    seen = monotonic()
                    if not self._has_warned and seen - began > _WAIT_SECONDS:
                        self._has_warned = True
                        self._warn("no worker takes the next step: start `gong workflow work`")
                case _:
                    return RemoteEnd("failed", f"its worker failed: {status.error}")
            await asyncio.sleep(_LOOK_SECONDS)

    def cancel(self, run: str) -> None:
        """Stop a run; its worker sees it within two seconds."""
        cancelling = asyncio.ensure_future(self._client.cancel_workflow_async(run))
        self._cancelling.add(cancelling)
        cancelling.add_done_callback(self._cancelling.discard)


_BOOT = Path("/proc/sys/kernel/random/boot_id")
"""On Linux another one for each machine, and for each of its starts."""


def _name_machine() -> str:
    """Return a name that no other machine has, also where both are called localhost."""
    try:
        return f"{socket.gethostname()}/{_BOOT.read_text().strip()}"
    except OSError:
        return f"{socket.gethostname()}/{getnode():x}"


def _is_gone(worker: str | None) -> bool:
    """Return whether a worker was a process of this machine that has ended."""
    machine, _, number = (worker or "").rpartition(":")
    if machine != _name_machine() or not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False


async def serve_steps(
    url: str,
    at_once: int,
    run_one: Callable[[QueuedStep, asyncio.Event], Awaitable[RemoteEnd]],
    ended: asyncio.Event,
) -> None:
    """Carry out steps of a queue, `at_once` in parallel, until `ended`; those begun are finished.

    `run_one` gets a step and what tells it to stop. Raises ConfigurationError.
    """
    dbos = await asyncio.to_thread(_import_dbos)
    loop = asyncio.get_running_loop()

    def launch() -> None:
        dbos.DBOS(
            config={
                "name": _NAME,
                "system_database_url": url,
                "application_version": _VERSION,
                "executor_id": f"{_name_machine()}:{os.getpid()}",
                "log_level": "CRITICAL",
                "use_listen_notify": False,
            }
        )
        dbos.DBOS.workflow(name=_STEP)(run_step)
        dbos.DBOS.launch()
        dbos.DBOS.register_queue(
            _QUEUE, worker_concurrency=at_once, polling_interval_sec=_LOOK_SECONDS
        )

    async def run_step(text: str) -> str:
        """Run in DBOS's loop: the agent works in ours, and this counts for it."""
        stopped = asyncio.Event()
        step = msgspec.json.decode(text, type=QueuedStep)
        carried = asyncio.run_coroutine_threadsafe(_await_end(run_one(step, stopped)), loop)
        waiting = asyncio.wrap_future(carried)
        beat = 0
        try:
            while not (await asyncio.wait({waiting}, timeout=_BEAT_SECONDS))[0]:
                beat += 1
                await dbos.DBOS.set_event_async("beat", beat)
            return msgspec.json.encode(waiting.result()).decode()
        finally:
            loop.call_soon_threadsafe(stopped.set)
            if not waiting.done():
                await asyncio.wait({waiting})

    try:
        await asyncio.to_thread(launch)
    except Exception as error:  # SQLAlchemy's and the driver's, as they please
        reason = str(error).partition("\n")[0]
        raise ConfigurationError(f"no queue at {mask_password(url)}: {reason}") from error
    try:
        await ended.wait()
    finally:
        with suppress(Exception):  # it ends in any case
            await asyncio.to_thread(dbos.DBOS.destroy, workflow_completion_timeout_sec=_END_SECONDS)


async def _await_end(awaited: Awaitable[RemoteEnd]) -> RemoteEnd:
    return await awaited


@asynccontextmanager
async def start_workers(
    count: int, url: str, store: str | None, environ: Mapping[str, str]
) -> AsyncGenerator[None]:
    """Let `count` workers run as processes of their own; one that ends is started again.

    They end with this program, however it ends: their standard input is closed then.
    """
    keeping = [asyncio.create_task(_keep_worker(url, store, environ)) for _ in range(count)]
    try:
        yield
    finally:
        for worker in keeping:
            worker.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)


async def _keep_worker(url: str, store: str | None, environ: Mapping[str, str]) -> None:
    words = build_own_words("gong", "workflow", "work", "--until-eof")
    if store is not None:
        words += ("--store", store)
    for _ in range(_STARTS):
        process = await asyncio.create_subprocess_exec(
            *words,
            env={**environ, QUEUE_VARIABLE: url},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
        )
        try:
            await process.wait()
        finally:
            if process.returncode is None and process.stdin is not None:
                process.stdin.close()
                with suppress(asyncio.CancelledError):
                    await process.wait()
