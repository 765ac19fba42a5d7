import asyncio

import pytest

from gong.errors import StreamError
from gong.llm.wires.connection import HttpReply, IdleTimeout
from gong.llm.wires.failures import ProviderFailures
from gong.llm.wires.http_client import HttpError


@pytest.fixture
async def patience():
    made = IdleTimeout()
    yield made
    made.close()


async def soon(seconds, value="here"):
    await asyncio.sleep(seconds)
    return value


async def test_what_comes_in_time_is_returned(patience):
    assert [await patience.wait(soon(0.01, number), 0.5) for number in range(3)] == [0, 1, 2]


async def test_what_comes_too_late_is_not_waited_for(patience):
    began = asyncio.get_running_loop().time()
    with pytest.raises(TimeoutError):
        await patience.wait(soon(900), 0.05)
    assert asyncio.get_running_loop().time() - began < 600
    assert asyncio.current_task().cancelling() == 0
    assert await patience.wait(soon(0), 60) == "here"


async def test_every_wait_has_its_own_time(patience):
    """A long wait before, waits that together last longer, and time between them do not count."""
    assert await patience.wait(soon(0), 60) == "here"
    for _ in range(4):
        assert await patience.wait(soon(0.4), 1.5) == "here"
    await asyncio.sleep(0.15)
    with pytest.raises(TimeoutError):
        await patience.wait(soon(5), 0.05)


async def test_being_cancelled_is_no_timeout(patience):
    task = asyncio.create_task(patience.wait(soon(5), 5))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


class Response:
    """An answer whose pieces are given; counts those that were read."""

    def __init__(self, *pieces):
        self.pieces, self.read, self.closed, self.headers = pieces, 0, False, {}

    @property
    def received(self):
        return self.read

    async def read_pieces(self):
        for piece in self.pieces:
            if isinstance(piece, HttpError):
                raise piece
            if piece is None:
                await asyncio.sleep(0.01)
                continue
            self.read += 1
            yield piece

    async def close(self):
        self.closed = True


async def chunks_of(patience, *pieces):
    """Return the chunks of an answer, then what its end is: None or an error."""
    response, chunks = Response(*pieces), []
    reply = HttpReply(response, patience, ProviderFailures("test", "sk-x", "http://x"))
    try:
        while (chunk := await reply.read_chunk(60)) is not None:
            chunks.append(chunk)
    except StreamError as error:
        chunks.append(type(error))
    finally:
        await reply.close()
    assert response.closed
    return chunks


async def test_pieces_that_came_together_are_one_chunk(patience):
    assert await chunks_of(patience, b"a", b"b", None, b"", None, b"c", b"d") == [b"ab", b"cd"]
    assert await chunks_of(patience) == []


async def test_what_came_before_an_error_is_read_first(patience):
    assert await chunks_of(patience, b"a", b"b", HttpError("cut")) == [b"ab", StreamError]
    assert await chunks_of(patience, HttpError("cut")) == [StreamError]


async def test_an_answer_is_read_ahead_only_so_far(patience):
    """A reader that is slower than its host does not fill the memory."""
    response = Response(*[b"x" * 1_000] * 1_000)
    reply = HttpReply(response, patience, ProviderFailures("test", "sk-x", "http://x"))
    await asyncio.sleep(0.05)
    assert response.read == 66  # 65,536 bytes, in pieces of 1,000
    sizes = []
    while (chunk := await reply.read_chunk(60)) is not None:
        sizes.append(len(chunk))
    assert (sum(sizes), max(sizes)) == (1_000_000, 66_000)
    await reply.close()


async def test_a_reply_that_is_closed_early_stops_reading(patience):
    response = Response(b"a", *[None] * 100_000)
    reply = HttpReply(response, patience, ProviderFailures("test", "sk-x", "http://x"))
    assert await reply.read_chunk(60) == b"a"
    await reply.close()
    assert response.closed
    assert len(asyncio.all_tasks()) == 1
