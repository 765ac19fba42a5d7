"""One open channel to a place, with the helper at its far end: many requests at once.

A channel is a program of this machine whose standard input and output lead to a shell over there.
What happens to a request:

    | event                         | the request                                           |
    | ----------------------------- | ----------------------------------------------------- |
    | answered to the end           | its answers are in `answers`; `done` is set           |
    | the channel ended, or what    | PlaceLost; the next request opens it once more        |
    | came was no answer            |                                                       |
    | what carried it out over      | RequestKilled, with the next beat; others are not    |
    | there was killed              | affected                                              |
    | it could not be opened        | PlaceLost that says that nothing was started          |

The helper ends everything that it started when the channel ends, also when no beat comes for a
while; so closing the channel is enough.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import time
from base64 import b64decode
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from ...errors import PlaceLost
from .messages import (
    LINE_BYTES,
    AnswerLine,
    BrokenAnswer,
    RequestKilled,
    build_request,
    parse_answer,
)

if TYPE_CHECKING:
    from asyncio import StreamReader
    from asyncio.subprocess import Process
    from collections.abc import Callable, Mapping, Sequence

BEAT_SECONDS = 20.0
"""How often the helper is told that somebody is there, and answers; it waits three times as long,
and a helper that says nothing for four times as long, while nothing of what is sent goes out, is
lost."""
_SILENT_BEATS = 4
GREETING_SECONDS = 60.0
"""How long a place may take to begin."""
_END_SECONDS = 10.0
"""How long the end of everything over there is waited for."""
_COMPLAINT_BYTES = 4096
_MAX_BANNER = 1 << 20
"""What a login may say before the helper begins, such as the text of the day."""


class Greeting(NamedTuple):
    """What the helper says of its place when it begins."""

    system: str
    release: str
    folder: str
    home: str
    temporary: str
    """A folder for files that may go; "" without one."""
    missing: tuple[str, ...]
    """Programs that the helper needs and the place lacks."""
    programs: tuple[str, ...]
    """Programs that are there and make it better."""
    user_id: str
    seconds: int
    """Its clock, in seconds since 1970."""
    user: str
    host: str


def _parse_greeting(encoded: bytes) -> Greeting | None:
    """Return what a greeting says; None where it is none."""
    try:
        facts = b64decode(encoded, validate=True).split(b"\0")[:-1]
        system, release, folder, home, temporary, missing, programs, *others = map(
            os.fsdecode, facts
        )
        user_id, seconds, user, host = others
        lists = tuple(missing.split()), tuple(programs.split())
        return Greeting(
            *(system, release, folder, home, temporary, *lists, user_id, int(seconds or 0)),
            user,
            host,
        )
    except ValueError:
        return None


async def _read_line(stream: StreamReader) -> bytes:
    """Return the next line, nothing at the end and where one is too long."""
    try:
        return await stream.readline()
    except ValueError:
        return b""


@cache
def _read_helper() -> bytes:
    text = files(__package__).joinpath("helper.sh").read_bytes()
    lines = (line for line in text.split(b"\n") if not line.lstrip().startswith(b"# "))
    return b"\n".join(lines)


def build_helper(nonce: str, end: str, beat_seconds: float = BEAT_SECONDS) -> bytes:
    """Return the program of the helper; its answers begin with the line "gong NONCE".

    `end` follows the output of each command: whatever comes behind it is of its children.
    """
    words = nonce.encode(), end.encode(), max(beat_seconds * 3, 1)
    return b"G=%s END='%s' BEATS=%d\n" % words + _read_helper()


def build_shell_command(program: bytes) -> str:
    """Return the shell text with which a shell over there reads the helper and becomes it.

    It has no character that another login shell than a POSIX one reads otherwise.
    """
    return f"""exec sh -c 'eval "$(dd bs=1 count={len(program)} 2>/dev/null)"'"""


class Call:
    """A request that waits for its answers."""

    def __init__(self, number: int, take: Callable[[AnswerLine], None]) -> None:
        self.number, self.take = number, take
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


def _give_error(call: Call, error: PlaceLost) -> None:
    """Give an error to whoever waits for a request; nobody may wait any more."""
    if not call.done.done():
        call.done.set_exception(error)
        call.done.exception()


class PlaceChannel:
    """An open channel; `open` makes one."""

    def __init__(self, name: str, process: Process, nonce: str, end: str) -> None:
        self.name, self.nonce, self.end = name, nonce, end.encode()
        self.greeting: Greeting
        self.greeted_at = 0
        """When the greeting came, by the monotonic clock of this machine, in ns."""
        self.is_lost = False
        self._process = process
        self._calls: dict[int, Call] = {}
        self._numbers = 0
        self._complaint = bytearray()
        self._tasks: list[asyncio.Task[None]] = []
        self._sending = asyncio.Lock()
        self._is_closing = False
        self._why = ""
        """Why it was lost."""
        self._heard_at = 0.0

    @classmethod
    async def open(
        cls,
        name: str,
        build_argv: Callable[[str], Sequence[str]],
        variables: Mapping[str, str],
        beat_seconds: float = BEAT_SECONDS,
    ) -> PlaceChannel:
        """Start the program of the channel, and the helper behind it.

        `build_argv` is given the shell text that is to run over there. Raises PlaceLost, with the
        words of the program.
        """
        nonce, end = secrets.token_hex(8), f"\x1e{secrets.token_hex(16)}"
        program = build_helper(nonce, end, beat_seconds)
        argv = build_argv(build_shell_command(program))
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                env=dict(variables),
                start_new_session=True,
                limit=LINE_BYTES * 16,
            )
        except OSError as error:
            raise PlaceLost(name, f"{argv[0]}: {error.strerror}", has_started=False) from None
        connection = cls(name, process, nonce, end)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        connection._tasks.append(asyncio.create_task(connection._read_errors(process.stderr)))
        try:
            async with asyncio.timeout(GREETING_SECONDS):
                with suppress(OSError):  # what it says of its end is read below
                    process.stdin.write(program)
                    await process.stdin.drain()
                connection.greeting = await connection._read_greeting(process.stdout)
                connection.greeted_at = time.monotonic_ns()
        except TimeoutError:
            await connection.close()
            raise PlaceLost(name, "it did not answer in time", has_started=False) from None
        except BaseException:
            await connection.close()
            raise
        connection._tasks.append(asyncio.create_task(connection._read_answers(process.stdout)))
        connection._tasks.append(asyncio.create_task(connection._beat(beat_seconds)))
        return connection

    @property
    def pid(self) -> int:
        """The process of the channel on this machine, which leads a group of its own."""
        return self._process.pid

    async def _read_greeting(self, stream: StreamReader) -> Greeting:
        start = f"gong {self.nonce} ".encode()
        skipped = 0
        while True:
            line = await _read_line(stream)
            skipped += len(line)
            if not line or skipped > _MAX_BANNER:
                await asyncio.wait(self._tasks, timeout=_END_SECONDS)
                raise PlaceLost(self.name, self._explain_end(), has_started=False)
            if line.startswith(start):
                break
        greeting = _parse_greeting(line[len(start) :].strip())
        if greeting is None:
            raise PlaceLost(self.name, "it answered with no greeting", has_started=False)
        return greeting

    def _explain_end(self) -> str:
        lines = self._complaint.decode("utf-8", "replace").strip().split("\n")
        text = "".join(c if c.isprintable() else "?" for c in lines[-1].strip())
        return text or "the connection ended without a word"

    async def _read_errors(self, stream: StreamReader) -> None:
        while data := await stream.read(_COMPLAINT_BYTES):
            self._complaint += data
            del self._complaint[:-_COMPLAINT_BYTES]

    async def _read_answers(self, stream: StreamReader) -> None:
        why = ""
        try:
            while line := await stream.readline():
                self._heard_at = time.monotonic()
                self._take_line(line)
        except BrokenAnswer as error:
            why = error.why
        except ValueError:
            why = BrokenAnswer("a line without an end").why
        except OSError:
            pass
        # The program's last words come beside its output.
        await asyncio.wait({self._tasks[0]}, timeout=1)
        self._lose(why or self._explain_end())

    def _take_line(self, line: bytes) -> None:
        if not line.endswith(b"\n"):
            raise BrokenAnswer("a line that was cut")
        if line == b"lost\n":
            raise BrokenAnswer("it was ended there")
        answer = parse_answer(line[:-1])
        if answer.id == 0 and answer.kind == "y":  # it answers a beat
            return
        if answer.kind == "d" and 0 < answer.id <= self._numbers:
            if (ended := self._calls.pop(answer.id, None)) is not None:
                _give_error(ended, RequestKilled(self.name, answer.id))
            return
        call = self._calls.get(answer.id)
        if call is None:
            raise BrokenAnswer(f"an answer to no request: {answer.id} {answer.kind}")
        call.take(answer)
        if answer.kind in {"z", "x"}:
            del self._calls[answer.id]
            if not call.done.done():
                call.done.set_result(None)

    def _lose(self, why: str) -> None:
        self.is_lost, self._why = True, why
        if not self._is_closing:
            self._kill()
        calls, self._calls = self._calls, {}
        for call in calls.values():
            _give_error(call, PlaceLost(self.name, why, has_started=None))

    async def _beat(self, seconds: float) -> None:
        """Tell the helper that somebody is there, and give it up when it says nothing any more."""
        stdin = self._process.stdin
        assert stdin is not None
        waiting = 0
        self._heard_at = time.monotonic()
        while not self.is_lost:
            await asyncio.sleep(seconds)
            before, waiting = waiting, stdin.transport.get_write_buffer_size()
            if waiting < before:  # it reads what is sent
                self._heard_at = time.monotonic()
            silent = time.monotonic() - self._heard_at
            if silent > seconds * _SILENT_BEATS:
                self._lose(f"its helper has said nothing for {silent:.0f} s")
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._send(b"beat\n")

    async def send(
        self,
        function: str,
        *words: str | bytes,
        take: Callable[[AnswerLine], None],
        bodies: tuple[bytes, ...] = (),
        prefix: bytes = b"",
    ) -> Call:
        """Send a request; `take` is given each answer as it comes."""
        if self.is_lost:
            raise PlaceLost(self.name, self._why or self._explain_end(), has_started=False)
        self._numbers += 1
        number = self._numbers
        request = build_request(function, number, *words, bodies=bodies, prefix=prefix)
        call = Call(number, take)
        self._calls[number] = call
        await self._send(request)
        return call

    async def _send(self, data: bytes) -> None:
        """Send bytes as a whole, also when the caller is cancelled: half a request is none."""
        stdin = self._process.stdin
        assert stdin is not None
        if self.is_lost or stdin.is_closing():
            return
        stdin.write(data)
        with suppress(ConnectionError, RuntimeError):  # the reader tells of the end
            async with self._sending:
                await stdin.drain()

    async def close(self) -> None:
        """End the helper, and all that it started; wait until the channel has ended."""
        self._is_closing = True
        if not self.is_lost and self._process.stdin is not None:
            with suppress(OSError, RuntimeError):
                self._process.stdin.write(b"quit\n")
                self._process.stdin.close()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._kill()
            await self._process.wait()
        self.is_lost = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _kill(self) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError):  # asyncio collects it
                os.killpg(self._process.pid, signal.SIGKILL)
