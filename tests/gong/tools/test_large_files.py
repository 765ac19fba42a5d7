"""Files above the usual size: what is too large says so, what is not is changed within bounds."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gong.tools.builtin import build_registry
from gong.tools.known_files import KnownFiles
from gong.tools.tool import PreparedCall, ToolContext
from tape.model.entries import ToolCall, join_texts
from tests.gong.tools.conftest import encode_arguments

PATCH = "*** Begin Patch\n*** Update File: huge\n@@\n-a\n+b\n*** End Patch\n"
TOO_LARGE = "it has 80.0MB, the limit is 64MB. Use bash to change it, such as sed -i"


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        (
            "edit",
            {"path": "huge", "oldText": "a", "newText": "b"},
            f"Cannot edit huge: {TOO_LARGE}.",
        ),
        (
            "edit_file",
            {"file_path": "huge", "old_string": "a", "new_string": "b"},
            f"Cannot edit huge: {TOO_LARGE}.",
        ),
        ("apply_patch", {"input": PATCH}, f"Failed to read file to update huge: {TOO_LARGE}"),
        (
            "read",
            {"path": "huge"},
            "Cannot read huge: it has 80.0MB, and of what is not plain text in UTF-8 at most 64MB",
        ),
    ],
)
async def test_a_file_that_is_too_large_says_so_with_the_limit(
    use_face, folder, tool, arguments, said
):
    with (folder / "huge").open("wb") as file:
        file.write(b"%PDF-1.7\n")
        file.truncate(80 << 20)
    result = await use_face(tool, **arguments)
    assert join_texts(result.content).startswith(said)
    assert result.is_error
    assert (folder / "huge").stat().st_size == 80 << 20


async def test_a_large_binary_file_is_known_by_its_beginning(use_face, folder):
    with (folder / "huge").open("wb") as file:
        file.truncate(1 << 40)
    result = await use_face("read", path="huge")
    assert "it is a binary file of" in join_texts(result.content)


async def test_a_large_file_is_replaced_only_as_it_was_read(env, folder):
    (folder / "a").write_text("line\n" * 1_200_000)
    registry, known = build_registry(), KnownFiles()

    async def use(name, **arguments):
        prepared = registry.prepare(ToolCall("c1", name, encode_arguments(arguments)))
        assert isinstance(prepared, PreparedCall)
        context = ToolContext(env, "c1", str, files=known)
        return join_texts((await registry.run(prepared, context)).content)

    assert "has not been read in this session" in await use("write", path="a", content="x")
    await use("read", path="a", limit=1)
    (folder / "a").write_text("lime\n" * 1_200_000)
    assert "was changed since it was last read" in await use("write", path="a", content="x")
    await use("read", path="a", limit=1)
    assert "Successfully wrote 1 bytes" in await use("write", path="a", content="x")


_MEASURED = """
import asyncio, json, resource, sys, time
from msgspec import Raw
from gong.env.local import LocalEnvironment
from gong.tools.builtin import build_registry
from gong.tools.known_files import KnownFiles
from gong.tools.tool import ToolContext
from tape.model.entries import ToolCall

async def main():
    env, registry, known = LocalEnvironment(sys.argv[1], {}), build_registry(), KnownFiles()

    async def use(name, **arguments):
        call = ToolCall("c1", name, Raw(json.dumps(arguments).encode()))
        context = ToolContext(env, "c1", str, files=known)
        return (await registry.run(registry.prepare(call), context)).content[0].text

    for path in ("small", "large"):
        await use("read", path=path, limit=1)
    change = dict(oldText="needle", newText="pin")
    await use("edit", path="small", **change)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    editing = asyncio.create_task(use("edit", path="large", **change))
    turns = 0
    while not editing.done():
        await asyncio.sleep(0.005)
        turns += 1
    print(turns, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
    print(await editing)

asyncio.run(main())
"""


def test_a_file_of_49_megabytes_is_edited_in_four_times_its_size(folder):
    line = "2026-01-01 INFO a line of a log, with some words in it\n"
    (folder / "small").write_text("the needle\n")
    (folder / "large").write_text(line * (49_000_000 // len(line)) + "the needle\n")
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, str(folder)], capture_output=True, text=True, check=True
    )
    figures, said = done.stdout.splitlines()
    turns, megabytes = map(int, figures.split())
    assert said == "Successfully replaced text in large."
    assert turns > 5
    assert megabytes <= 4 * 49
    with (folder / "large").open("rb") as file:
        file.seek(-8, 2)
        assert file.read() == b"the pin\n"
