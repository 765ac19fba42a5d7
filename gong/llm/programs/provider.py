"""A command-line program as a provider: one process for each answer, with nothing of ours to run.

It runs in an empty folder, gets the prompt on its standard input, and says its answer in lines of
JSON. It is ended with everything that it started when its answer has ended, or is not wanted.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing, asynccontextmanager, suppress
from importlib import import_module
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast
from uuid import uuid4

from msgspec.structs import replace

from tape.formats.wire import decode_json

from ...child_programs import kill_group
from ...errors import ConfigurationError, ModelError
from ...private_files import locate_state_folder
from ..model_names import PROGRAMS_MODEL
from ..provider_errors import build_provider_error, remove_keys, shorten_text
from ..types import Finish, StreamFailure
from ..wires.failures import ProviderFailures
from ..wires.json_values import format_size_limit
from .program_call import ProgramCall, list_left_out, render_prompt

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping

    from ..models import Preset
    from ..types import ChoiceMode, Request, StreamEvent
    from ..wires.json_values import WireObject
    from .program_call import Program, ProgramOutput, ProgramStart

_MAX_COMPLAINT = 65_536
"""Most bytes that are kept of what a program says beside its answer."""
_SHOWN_CHARS = 500
_END_SECONDS = 5.0
"""How long a program may take to end by itself."""


class ProgramProvider:
    """Answers by running a program."""

    def __init__(self, preset: Preset, environ: Mapping[str, str]) -> None:
        """Raise ConfigurationError where the program is not installed."""
        self.name = self.endpoint = preset.name
        self.api: str = preset.api
        self._preset, self._environ = preset, environ
        module = import_module(f".{preset.program}", __package__)
        self._program = cast("Program", module)
        self._output: type[ProgramOutput] = getattr(module, f"{preset.program.title()}Output")
        path = which(preset.program, path=environ.get("PATH", os.defpath))
        if path is None:
            raise ConfigurationError(
                f"{preset.name}: there is no program {preset.program!r}: install it, for example "
                f"with npm install -g {self._program.PACKAGE}"
            )
        self._path = path

    def supports_tool_choice(self, mode: ChoiceMode) -> bool:
        """Return whether the provider can be told so."""
        return mode in {"auto", "none"}

    async def close(self) -> None:
        """Do nothing: every answer has a process of its own."""

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of the answer, the last a Finish or a StreamFailure."""
        failures = ProviderFailures(self.name, "", self.endpoint, model=request.model)
        left_out = list_left_out(request, self.name)
        try:
            with TemporaryDirectory(prefix="gong-") as folder:
                call = ProgramCall(
                    "" if request.model == PROGRAMS_MODEL else request.model,
                    request.system,
                    render_prompt(request),
                    request.reasoning_effort,
                    str(uuid4()),
                    Path(folder),
                )
                try:
                    async with aclosing(self._read_events(call, failures)) as events:
                        async for event in events:
                            if isinstance(event, Finish):
                                warnings = (*left_out, *event.warnings)
                                yield replace(event, warnings=warnings)
                            else:
                                yield event
                finally:
                    self._program.remove_session(call, self._environ)
        except ModelError as error:
            yield StreamFailure(error)

    async def _read_events(
        self, call: ProgramCall, failures: ProviderFailures
    ) -> AsyncGenerator[StreamEvent, None]:
        output = self._output(failures, self._preset)
        run = self._program.build_start(call)
        async with self._run_program(run, output, failures) as lines:
            async for line in lines:
                for event in output.feed(line):
                    yield event
                if output.finished:
                    return

    @asynccontextmanager
    async def _run_program(
        self, run: ProgramStart, output: ProgramOutput, failures: ProviderFailures
    ) -> AsyncIterator[AsyncGenerator[WireObject, None]]:
        """Run a program and give its lines; leaving ends it. Raises ModelError."""
        home = locate_state_folder(self._environ) / "programs" / self._preset.program
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            process = await asyncio.create_subprocess_exec(
                *(self._path, *run.arguments),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=home,
                env={**self._environ, **run.variables},
                limit=self._preset.sizes.event,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise failures.build_network_error(f"{self._path} cannot be run: {error}") from None
        assert process.stdin is not None, "it is a pipe"
        assert process.stdout is not None, "it is a pipe"
        assert process.stderr is not None, "it is a pipe"
        writing = asyncio.create_task(_write_text(process.stdin, run.text))
        complaining = asyncio.create_task(_read_complaint(process.stderr))
        try:
            async with aclosing(self._read_lines(process, complaining, failures)) as lines:
                yield lines
        finally:
            writing.cancel()
            with suppress(TimeoutError):  # it may end by itself
                async with asyncio.timeout(_END_SECONDS if output.finished else 0):
                    await process.wait()
            complaining.cancel()
            await asyncio.gather(writing, complaining, return_exceptions=True)
            await kill_group(process)

    async def _read_lines(
        self,
        process: asyncio.subprocess.Process,
        complaining: asyncio.Task[bytes],
        failures: ProviderFailures,
    ) -> AsyncGenerator[WireObject, None]:
        assert process.stdout is not None, "it is a pipe"
        limits, clock = self._preset.timeouts, asyncio.get_running_loop().time
        end, seconds, what = clock() + limits.whole, limits.first_byte, "begin its answer"
        while True:
            try:
                async with asyncio.timeout(max(min(seconds, end - clock()), 0)):
                    line = await process.stdout.readline()
            except TimeoutError:
                raise failures.build_timeout(what, seconds) from None
            except ValueError:
                limit = format_size_limit(self._preset.sizes.event)
                raise failures.build_size_error(f"sent a line of more than {limit}") from None
            if not line:
                break
            seconds, what = limits.idle, "continue its answer"
            try:
                value = decode_json(line)
            except (ValueError, RecursionError):
                continue  # words beside the answer
            if isinstance(value, dict):
                yield value
        raise await self._build_end_error(process, complaining)

    async def _build_end_error(
        self, process: asyncio.subprocess.Process, complaining: asyncio.Task[bytes]
    ) -> ModelError:
        """Return the error of a program that ended before its answer did."""
        code = await process.wait()
        complaint = (await complaining).decode("utf-8", "replace")
        lines = [line for line in complaint.split("\n") if line.strip()]
        text = shorten_text(remove_keys(lines[-1]), _SHOWN_CHARS) if lines else "without a word"
        return build_provider_error(
            self.name, None, f"{self._preset.program} ended with exit code {code}: {text}"
        )


async def _write_text(stdin: asyncio.StreamWriter, text: str) -> None:
    with suppress(ConnectionError):  # it has ended, and its output says why
        stdin.write(text.encode("utf-8", "replace"))
        await stdin.drain()
    with suppress(OSError):
        stdin.close()


async def _read_complaint(stderr: asyncio.StreamReader) -> bytes:
    """Return the end of what a program says on standard error."""
    data = b""
    while piece := await stderr.read(_MAX_COMPLAINT):
        data = (data + piece)[-_MAX_COMPLAINT:]
    return data
