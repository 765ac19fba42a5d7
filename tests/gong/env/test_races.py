"""Somebody swaps a folder for a link that leads out, over and over, while tools write below it."""

import os
from contextlib import contextmanager, suppress
from threading import Event, Thread

import pytest

from gong.env.local import LocalEnvironment
from gong.env.wrappers import Confined
from gong.tools import apply_patch, edit, write
from gong.tools.tool import ToolContext

ROUNDS = 60


@contextmanager
def swapping(folder, link):
    """Put a link in the place of a folder and the folder back, until the end."""
    done = Event()

    def swap():
        number = 0
        while not done.is_set():
            number += 1
            aside = folder.with_name(f"aside-{number}")
            # Where a tool made the folder anew meanwhile, a step cannot be, and the next is.
            for step in (
                lambda: folder.rename(aside),  # noqa: B023 - used at once
                lambda: folder.symlink_to(link),
                folder.unlink,
                lambda: aside.rename(folder),  # noqa: B023 - used at once
            ):
                with suppress(OSError):
                    step()

    thread = Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.fixture
def outside(tmp_path):
    for name in ("outside", "work/sub"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "a").write_text("old\n")
    return tmp_path / "outside"


@pytest.mark.parametrize("way", ["write", "new", "edit", "patch", "confined"])
async def test_nothing_is_written_outside_m044(outside, tmp_path, way):
    """M044: whatever the call says, the files outside stay as they were."""
    env = LocalEnvironment(str(tmp_path / "work"), dict(os.environ))
    context = ToolContext(env, "c1", print)
    inside = Confined(env, [env.working_directory])
    patch = "*** Begin Patch\n*** Update File: sub/a\n@@\n-old\n+new\n*** End Patch"
    with swapping(tmp_path / "work/sub", outside):
        for number in range(ROUNDS):
            with suppress(OSError):
                match way:
                    case "write":
                        await write.run(write.Arguments("sub/a", "new\n"), context)
                    case "new":
                        await write.run(write.Arguments(f"sub/deep/{number}", "new\n"), context)
                    case "edit":
                        await edit.run(edit.Arguments("sub/a", "old", "new"), context)
                    case "patch":
                        await apply_patch.run(apply_patch.Arguments(patch), context)
                    case _:
                        await inside.write_file("sub/a", b"new\n")
    assert [(one.name, one.read_text()) for one in outside.iterdir()] == [("a", "old\n")]
