"""Somebody swaps a folder for a link that leads out, over and over, while tools work below it."""

import os
from contextlib import contextmanager, suppress
from threading import Event, Thread

import pytest

from gong.env.local import LocalEnvironment
from gong.env.protocol import Search
from gong.env.wrappers import ConfinedEnvironment
from gong.tools import apply_patch, edit
from gong.tools import edit as write
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
async def test_nothing_is_written_outside(outside, tmp_path, way):
    """Whatever the call says, the files outside stay as they were."""
    env = LocalEnvironment(str(tmp_path / "work"), dict(os.environ))
    context = ToolContext(env, "c1", print)
    inside = ConfinedEnvironment(env, [env.working_directory])
    patch = "*** Begin Patch\n*** Update File: sub/a\n@@\n-old\n+new\n*** End Patch"
    with swapping(tmp_path / "work/sub", outside):
        for number in range(ROUNDS):
            with suppress(OSError):
                match way:
                    case "write":
                        await write.run_write(write.WriteArguments("sub/a", "new\n"), context)
                    case "new":
                        await write.run_write(
                            write.WriteArguments(f"sub/deep/{number}", "new\n"), context
                        )
                    case "edit":
                        await edit.run_edit(edit.EditArguments("sub/a", "old", "new"), context)
                    case "patch":
                        await apply_patch.run_apply_patch(
                            apply_patch.ApplyPatchArguments(patch), context
                        )
                    case _:
                        await inside.write_file("sub/a", b"new\n")
    assert [(one.name, one.read_text()) for one in outside.iterdir()] == [("a", "old\n")]


def told(env, way):
    """Return the question, of a folder or file that may lead out meanwhile."""
    return {
        "read": lambda: env.read_file("sub/deep/b"),
        "list": lambda: env.list_directory("sub/deep", 2),
        "list all": lambda: env.list_directory(".", 3),
        "exists": lambda: env.file_exists("sub/deep/secret"),
        "glob": lambda: env.glob("sub", "**"),
        "glob all": lambda: env.glob(".", "**"),
        "grep": lambda: env.grep("sub", Search("secret")),
        "grep all": lambda: env.grep(".", Search("secret")),
    }[way]()


@pytest.mark.parametrize(
    "way", ["read", "list", "list all", "exists", "glob", "glob all", "grep", "grep all"]
)
async def test_nothing_outside_is_reported(tmp_path, way):
    """Neither content nor names, whichever moment the link is there."""
    for name, said in (("outside/deep", "secret"), ("work/sub/deep", "fine")):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "b").write_text(said)
    (tmp_path / "outside/deep/secret").touch()
    env = ConfinedEnvironment(
        LocalEnvironment(str(tmp_path / "work"), dict(os.environ)), [str(tmp_path / "work")]
    )
    answers = []
    with swapping(tmp_path / "work/sub", tmp_path / "outside"):
        for _ in range(50 * ROUNDS):
            with suppress(OSError):
                answers.append(await told(env, way))
            if len(answers) == ROUNDS // 3:
                break
    assert answers
    assert "secret" not in str(answers)
    assert True not in answers


async def test_a_pattern_is_looked_for_without_following_links(tmp_path):
    """By the program that searches for it as well."""
    (tmp_path / "work/sub").mkdir(parents=True)
    (tmp_path / "out").write_text("secret\n")
    (tmp_path / "work/sub/a").write_text("a secret\n")
    (tmp_path / "work/b").symlink_to("../out")
    root = str(tmp_path / "work")
    env = ConfinedEnvironment(LocalEnvironment(root, dict(os.environ)), [root])
    found = await env.grep(".", Search("s.cret"))
    assert [one.path for one in found.found] == ["sub/a"]
    assert await env.grep("sub/a", Search("s.cret")) == found._replace(
        found=(found.found[0]._replace(path="a"),)
    )
    assert [one.path for one in await env.glob(".", "**")] == ["b", "sub", "sub/a"]
    assert [(one.name, one.is_dir, one.size) for one in await env.list_directory(".", 2)] == [
        ("b", False, 6),
        ("sub", True, None),
        ("sub/a", False, 9),
    ]
    with pytest.raises(PermissionError):
        await env.grep("b", Search("s.cret"))
    assert not await env.file_exists("sub/none")
    assert await env.file_exists("sub")
