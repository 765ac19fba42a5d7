"""The link to a place: opened with its first use, opened once more when it was lost.

Requests that only look are sent again after a loss; others are not, because it is not known how far
they came. Environments of one process share the link of their place; the last one closes it.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, NamedTuple

from ...errors import PlaceLost
from .connection import BEAT_SECONDS, PlaceChannel
from .looks import Looks
from .messages import AnswerLine, BrokenAnswer, build_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from .connection import Call, Greeting


class RequestAnswers(NamedTuple):
    """All that came for one request."""

    lines: tuple[AnswerLine, ...]
    output: bytes

    def select(self, kind: str) -> tuple[AnswerLine, ...]:
        """Return those of a kind."""
        return tuple(line for line in self.lines if line.kind == kind)


class Stream:
    """Numbered lines of bytes; one that is missing or came twice is no answer."""

    def __init__(self, take: Callable[[bytes], object]) -> None:
        self._take, self._next = take, 0
        self.is_closed = False

    def take_line(self, answer: AnswerLine) -> None:
        """Take the next line."""
        if self.is_closed or answer.number != self._next:
            raise BrokenAnswer("a part of an output that is doubled, or missing")
        self._next += 1
        self._take(answer.data)

    def close(self, answer: AnswerLine) -> None:
        """Take the end of it."""
        if self.is_closed or answer.number != self._next:
            raise BrokenAnswer("the end of an output, of which a part is missing")
        self.is_closed = True


class CommandStream(Stream):
    """The output of a command, up to the mark that the helper puts at its end."""

    def __init__(self, take: Callable[[bytes], object], end: bytes) -> None:
        super().__init__(self._find_end)
        self._take_output, self._end = take, end
        self._held = b""
        self.is_ended = False

    def _find_end(self, data: bytes) -> None:
        if self.is_ended:
            return
        data = self._held + data
        before, end, _ = data.partition(self._end)
        if end:
            self.is_ended, self._held = True, b""
        else:
            longest = min(len(data), len(self._end) - 1)
            sizes = range(longest, 0, -1)
            held = next((size for size in sizes if data.endswith(self._end[:size])), 0)
            before, self._held = data[: len(data) - held], data[len(data) - held :]
        if before:
            self._take_output(before)

    def close(self, answer: AnswerLine) -> None:
        """Take the end of the pipe."""
        super().close(answer)
        if self._held:
            self._take_output(self._held)
        self.is_ended, self._held = True, b""


class Link:
    """What leads to a place; `name` is its name, `build_argv` as in `PlaceChannel.open`."""

    def __init__(
        self,
        name: str,
        build_argv: Callable[[str], Sequence[str]],
        variables: Mapping[str, str],
        prepare: Callable[[], Awaitable[None]] | None = None,
        release: Callable[[], Awaitable[None]] | None = None,
        *,
        beat_seconds: float = BEAT_SECONDS,
    ) -> None:
        self.name = name
        self.users = 0
        """Environments that use it."""
        self._build_argv, self._variables = build_argv, variables
        self._prepare, self._release = prepare, release
        self._beat_seconds = beat_seconds
        self._connection: PlaceChannel | None = None
        self._opening = asyncio.Lock()
        self.requests = 0
        """How many requests were sent."""
        self.looks = Looks()
        """What was seen there a moment ago, through any link to the place."""

    async def connect(self) -> PlaceChannel:
        """Return the open connection; open it where there is none, or it was lost."""
        async with self._opening:
            if self._connection is not None and not self._connection.is_lost:
                return self._connection
            if self._connection is not None:
                await self._connection.close()
                self._connection = None
            elif self._prepare is not None:
                await self._prepare()
            self._connection = await PlaceChannel.open(
                self.name, self._build_argv, self._variables, self._beat_seconds
            )
            return self._connection

    def copy(self) -> Link:
        """Return another link to the same place."""
        link = Link(self.name, self._build_argv, self._variables)
        link.looks = self.looks
        return link

    @property
    def greeting(self) -> Greeting | None:
        """What the place said of itself when it was opened last."""
        return None if self._connection is None else self._connection.greeting

    async def send(
        self,
        function: str,
        *words: str | bytes,
        take: Callable[[AnswerLine], None],
        bodies: tuple[bytes, ...] = (),
        prefix: bytes = b"",
    ) -> Call:
        """Send a request; what was lost before it is opened once more."""
        self.requests += 1
        for is_last in (False, True):
            connection = await self.connect()
            try:
                return await connection.send(
                    function, *words, take=take, bodies=bodies, prefix=prefix
                )
            except PlaceLost:
                if is_last:
                    raise
        raise AssertionError

    async def ask(
        self,
        function: str,
        *words: str | bytes,
        path: str = "",
        bodies: tuple[bytes, ...] = (),
        changes: bool = False,
    ) -> RequestAnswers:
        """Return all answers to a request; raise the OSError that is the answer.

        One that `changes` nothing is sent again after a loss.
        """
        for is_last in (changes, True):
            lines: list[AnswerLine] = []
            output = bytearray()
            stream = Stream(output.extend)

            def take(
                answer: AnswerLine, lines: list[AnswerLine] = lines, stream: Stream = stream
            ) -> None:
                if answer.kind == "o":
                    stream.take_line(answer)
                elif answer.kind == "zo":
                    stream.close(answer)
                else:
                    lines.append(answer)

            try:
                call = await self.send(function, *words, take=take, bodies=bodies)
                await asyncio.shield(call.done)
            except PlaceLost as error:
                if is_last or error.has_started is False:
                    raise
                continue
            if lines and lines[-1].kind == "x":
                raise PlaceRequestFailed(build_error(lines[-1].data, path), tuple(lines))
            if output and not stream.is_closed:
                raise BrokenAnswer("an output without its end")
            return RequestAnswers(tuple(lines), bytes(output))
        raise AssertionError

    async def close(self) -> None:
        """End the helper, and what it started."""
        async with self._opening:
            connection, self._connection = self._connection, None
            if connection is not None:
                await connection.close()
                if self._release is not None:
                    await self._release()


class PlaceRequestFailed(Exception):
    """The answer is an error; `lines` came before it."""

    def __init__(self, error: OSError, lines: tuple[AnswerLine, ...]) -> None:
        super().__init__(str(error))
        self.error, self.lines = error, lines


def decode_path(answer: AnswerLine) -> str:
    """Return the absolute path that an answer holds; BrokenAnswer for another text."""
    data = answer.data
    if not data.startswith(b"/") or b"\0" in data:
        raise BrokenAnswer("a path that is none")
    return os.fsdecode(data)
