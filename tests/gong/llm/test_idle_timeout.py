import asyncio

import pytest

from gong.llm.wires.connection import IdleTimeout


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
