"""How many requests the calls of tools are in a place: over a real helper, each is a way there."""

from __future__ import annotations

import os
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from gong.config import PermissionSettings
from gong.env.places.environment import PlaceEnvironment
from gong.env.places.link import Link
from gong.env.places.looks import Looks
from tests.gong.agent.conftest import Stage, call, stage

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["stage"]

MODES = ("bypass", "accept_edits", "default")
CALLS = (
    (call("read", path="a.txt"), 2),
    (call("edit", path="a.txt", oldText="one", newText="two"), 3),
    (call("write", path="a.txt", content="three\n"), 3),
    (call("write", path="new/b.txt", content="four\n"), 3),
    (call("read", path="new/b.txt"), 2),
)


class CountingLink(Link):
    """A link that says what was asked through it."""

    def __init__(self, environ: dict[str, str]) -> None:
        super().__init__("sh:count", lambda text: ("sh", "-c", text), environ)
        self.looks = Looks(seconds=3600)
        self.asked: list[str] = []

    async def send(self, function: str, *words, **options):
        """Send a request."""
        self.asked.append(function)
        return await super().send(function, *words, **options)


async def open_far(tmp_path: Path) -> tuple[PlaceEnvironment, CountingLink]:
    folder = tmp_path / "far"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    link = CountingLink({"PATH": os.environ["PATH"], "HOME": "/"})
    env = PlaceEnvironment(link, str(folder))
    await env.initialize()
    return env, link


@pytest.mark.parametrize("mode", MODES)
async def test_a_call_in_a_place_is_few_requests(stage: Stage, tmp_path: Path, mode: str) -> None:
    """M126: read ≤ 2, write ≤ 3, edit ≤ 3, with judging and recording."""
    env, link = await open_far(tmp_path)
    turns = [{"tool_calls": [one]} for one, _ in CALLS]
    permissions = PermissionSettings(mode=mode, allow=("Read", "Edit", "Write"))
    session = await stage.session(*turns, {"text": "done"}, permissions=permissions)
    session.use_environment(env)
    counts: list[int] = []
    async with aclosing(session.submit("go")) as stream:
        async for event in stream:
            if event.kind == "turn_start":
                link.asked.clear()
            elif event.kind == "turn_end" and len(counts) < len(CALLS):
                counts.append(len(link.asked))
    await env.cleanup()
    assert (tmp_path / "far/a.txt").read_text() == "three\n"
    assert (tmp_path / "far/new/b.txt").read_text() == "four\n"
    assert [few for few, (_, most) in zip(counts, CALLS, strict=True) if few > most] == []


async def test_what_changed_since_a_look_is_not_written_over(tmp_path: Path) -> None:
    env, _ = await open_far(tmp_path)
    file = tmp_path / "far/a.txt"
    assert await env.file_exists("a.txt")
    file.write_text("by hand\n")
    with pytest.raises(OSError, match="has changed since it was read"):
        await env.write_file("a.txt", b"mine\n")
    assert file.read_text() == "by hand\n"
    assert not await env.file_exists("b.txt")
    (tmp_path / "far/b.txt").write_text("by hand\n")
    with pytest.raises(OSError, match="has changed since it was read"):
        await env.write_file("b.txt", b"mine\n")
    await env.write_file("a.txt", b"mine\n")
    assert file.read_text() == "mine\n"
    await env.cleanup()


async def test_nothing_is_kept_over_a_command_or_a_change(tmp_path: Path) -> None:
    env, _ = await open_far(tmp_path)
    assert await env.read_file("a.txt") == b"one\n"
    assert not await env.file_exists("b.txt")
    await env.exec_command("echo two > a.txt; ln -s a.txt b.txt")
    assert await env.read_file("a.txt") == b"two\n"
    assert await env.real_path("b.txt") == str(tmp_path / "far/a.txt")
    await env.write_file("b.txt", b"three\n")
    assert await env.read_file("a.txt") == b"three\n"
    await env.cleanup()
