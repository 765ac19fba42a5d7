import asyncio
import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from gong.env.local import LocalEnvironment
from gong.env.wrappers import ReadOnlyEnvironment
from gong.tools import apply_patch
from gong.tools.apply_patch import ApplyPatchArguments, ApplyPatchDetails, PatchedFileDetails
from gong.tools.builtin import build_registry
from gong.tools.tool import PreparedCall, ToolContext, ToolOutcome
from tape.model.entries import ToolCall, join_texts
from tests.gong.env.memory import MemoryEnvironment

AGAIN = "No file was changed. Read those files again, correct the patch and send all of it."


def patch(*lines):
    return "\n".join(("*** Begin Patch", *lines, "*** End Patch"))


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def fingerprint(folder):
    return {
        (str(p), p.lstat().st_mode, p.lstat().st_ino, p.lstat().st_mtime_ns if p.is_file() else 0)
        for p in folder.rglob("*")
    }


@pytest.fixture
def call(env):
    """Run a call the whole way through a registry that has the tool chosen."""
    registry = build_registry()
    registry.set_active(["apply_patch"])

    async def call(**arguments):
        asked = ToolCall(id="c1", name="apply_patch", args=Raw(json.dumps(arguments).encode()))
        prepared = registry.prepare(asked)
        if not isinstance(prepared, PreparedCall):
            return prepared
        return await registry.run(prepared, ToolContext(env, "c1", lambda text: None))

    return call


@pytest.fixture
def apply(call):
    async def apply(*lines):
        return await call(input=patch(*lines))

    return apply


def test_it_is_there_but_not_chosen():
    """M081: a face for the models that are used to it."""
    assert build_registry().get("apply_patch").run is apply_patch.APPLY_PATCH_TOOL.run
    assert "apply_patch" not in build_registry().active


async def test_every_operation_in_one_call(apply, folder):
    """M081"""
    (folder / "a").write_text("one\ntwo\n")
    (folder / "b").write_text("gone\n")
    (folder / "c").write_text("x\n")
    assert await apply(
        *("*** Delete File: b", "*** Update File: a", "@@", " one", "-two", "+2"),
        *("*** Update File: c", "*** Move to: sub/c", "-x", "+y", "*** Add File: new/n", "+n"),
    ) == ToolOutcome.from_text(
        "Success. Updated the following files:\nA new/n\nM a\nM sub/c\nD b",
        ApplyPatchDetails(
            (
                PatchedFileDetails("delete", "b", None, "- 1 gone", 1),
                PatchedFileDetails("update", "a", None, "  1 one\n- 2 two\n+ 2 2", 2),
                PatchedFileDetails("move", "c", "sub/c", "- 1 x\n+ 1 y", 1),
                PatchedFileDetails("add", "new/n", None, "+ 1 n", 1),
            )
        ),
    )
    assert contents(folder) == {"a": b"one\n2\n", "sub/c": b"y\n", "new/n": b"n\n"}


async def test_a_file_is_moved_as_it_is_with_its_mode(apply, folder):
    """M081"""
    (folder / "run").write_bytes(b"\0binary")
    (folder / "run").chmod(0o755)
    assert await apply("*** Update File: run", "*** Move to: bin/run") == ToolOutcome.from_text(
        "Success. Updated the following files:\nM bin/run",
        ApplyPatchDetails((PatchedFileDetails("move", "run", "bin/run", "", None),)),
    )
    assert contents(folder) == {"bin/run": b"\0binary"}
    assert (folder / "bin/run").stat().st_mode & 0o777 == 0o755


async def test_changes_far_apart_are_one_diff(apply, folder):
    """M081"""
    (folder / "a").write_text("".join(f"{n}\n" for n in range(1, 31)))
    result = await apply("*** Update File: a", "-2", "+two", "@@", " 28", "+more")
    (file,) = result.details.files
    assert file.first_changed_line == 2
    lines = file.diff.split("\n")
    assert lines[:4] == ["   1 1", "-  2 2", "+  2 two", "   3 3"]
    assert lines[6:8] == ["   6 6", "     ..."]
    assert lines[-4:] == ["  28 28", "+ 29 more", "  30 29", "  31 30"]


async def test_what_was_overlooked_is_reported(apply, folder):
    """M082"""
    (folder / "a").write_text("  x\n")
    assert join_texts((await apply("*** Update File: a", "-x", "+  y")).content) == (
        "Success. Updated the following files:\nM a\na:1 matched apart from indentation."
    )


async def test_nothing_changes_when_anything_fails(apply, folder):
    """M081"""
    (folder / "a").write_text("one\n")
    was = fingerprint(folder)
    assert await apply(
        *("*** Add File: new/n", "+n", "*** Delete File: no", "*** Update File: a", "-1", "+2"),
    ) == ToolOutcome.error(
        "Failed to delete file no: no such file\n\n"
        "Failed to find expected lines in a:\n1\nNothing in the file is like them.\n"
        f"Chunk 1 of 1, at line 6 of the patch.\n\n{AGAIN}"
    )
    assert fingerprint(folder) == was


async def test_many_failures_are_counted(apply):
    result = await apply(*(f"*** Delete File: {n}" for n in range(15)))
    said = join_texts(result.content).split("\n\n")
    assert (len(said), said[-2:]) == (12, ["... and 5 more", AGAIN])


async def test_a_disk_that_refuses_is_named(apply, folder):
    assert await apply("*** Add File: x", "*** Add File: x/y") == ToolOutcome.error(
        "Is a directory: x. No file was changed."
    )
    assert contents(folder) == {}


async def test_a_working_directory_that_went_is_not_made_again(apply, folder):
    folder.rmdir()
    assert await apply("*** Add File: x", "+x") == ToolOutcome.error(
        f"ENOENT: no such file or directory: {folder}. No file was changed."
    )
    assert not folder.exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "",
            (
                "Invalid patch: The first line of the patch must be '*** Begin Patch'."
                " No file was changed."
            ),
        ),
        (patch(), "No files were modified. The patch names no file."),
        (
            patch("*** Update File: a"),
            (
                "Invalid patch hunk on line 2: Update file hunk for path 'a' is empty."
                " No file was changed."
            ),
        ),
    ],
)
async def test_a_text_that_is_no_patch_is_refused(call, text, said):
    """M082"""
    assert await call(input=text) == ToolOutcome.error(said)


@pytest.mark.parametrize("key", ["input", "patch"])
async def test_the_patch_comes_under_either_name(call, folder, key):
    """M081"""
    assert not (await call(**{key: patch("*** Add File: a", "+x")})).is_error
    assert contents(folder) == {"a": b"x\n"}


@pytest.mark.parametrize("wrong", [None, 42, ["a"], {"a": 1}])
async def test_wrong_types_are_refused(call, wrong):
    assert (await call(input=wrong)).is_error


async def test_a_command_around_the_patch_is_understood(call, folder):
    """M081"""
    text = patch("*** Add File: a", "+x")
    await call(input=f"cd 'sub dir' && apply_patch <<'EOF'\n{text}\nEOF\n")
    await call(input=f"<<'EOF'\n{text}\nEOF\n")
    assert contents(folder) == {"sub dir/a": b"x\n", "a": b"x\n"}


@pytest.mark.parametrize(
    "path",
    ["../out/x", "{out}/x", "sub/../../out/x", "link/x", "to_file", "~/x", "up", "nul\0", ".", ""],
)
@pytest.mark.parametrize(
    "lines",
    [
        ("*** Add File: {path}", "+x"),
        ("*** Delete File: {path}",),
        ("*** Update File: {path}", "-secret", "+x"),
        ("*** Update File: in", "*** Move to: {path}", "-in", "+x"),
        ("*** Update File: {path}", "*** Move to: y", "-secret", "+x"),
    ],
)
async def test_no_path_leads_out(call, tmp_path, folder, path, lines):
    """M081: only in this throw-away folder."""
    out = tmp_path / "out"
    for place in (out, tmp_path / "home"):
        place.mkdir()
        (place / "x").write_text("secret\n")
    (folder / "link").symlink_to(out)
    (folder / "to_file").symlink_to(out / "x")
    (folder / "up").symlink_to("..")
    (folder / "in").write_text("in\n")
    was = fingerprint(tmp_path)
    named = [line.format(path=path.format(out=out)) for line in lines]
    result = await call(input=patch("*** Add File: good", "+x", *named))
    assert result.is_error
    assert fingerprint(tmp_path) == was


async def test_a_refused_path_is_named(apply, tmp_path):
    """M081"""
    assert await apply("*** Add File: ../x", "*** Add File: ok") == ToolOutcome.error(
        f'Path leaves the working directory: ../x. Name a file inside it, without "..".\n\n{AGAIN}'
    )


async def test_a_folder_named_with_cd_does_not_lead_out(call, tmp_path):
    text = patch("*** Add File: x", "+x")
    result = await call(input=f"cd .. && apply_patch <<'EOF'\n{text}\nEOF\n")
    assert join_texts(result.content).startswith("Path leaves the working directory: ../x.")
    assert not (tmp_path / "x").exists()


async def test_absolute_paths_inside_are_fine(apply, folder):
    """M081"""
    (folder / "a").write_text("1\n")
    result = await apply(
        f"*** Update File: {folder}/a", "-1", "+2", "*** Update File: a", "-2", "+3"
    )
    assert not result.is_error
    assert contents(folder) == {"a": b"3\n"}


async def test_a_link_inside_is_written_through_but_never_goes(apply, folder):
    (folder / "sub").mkdir()
    (folder / "sub/a").write_text("1\n")
    (folder / "link").symlink_to("sub/a")
    assert not (await apply("*** Update File: link", "-1", "+2")).is_error
    assert (folder / "link").is_symlink()
    assert (folder / "sub/a").read_text() == "2\n"
    for lines in (("*** Delete File: link",), ("*** Update File: link", "*** Move to: b")):
        assert await apply(*lines) == ToolOutcome.error(
            f"link is a link. Name the file it leads to, or use a command.\n\n{AGAIN}"
        )
    assert (folder / "sub/a").read_text() == "2\n"


async def test_patches_of_one_file_take_turns(apply, folder):
    """M081"""
    (folder / "a").write_text("".join(f"{n}\n" for n in range(20)))
    patches = (apply("*** Update File: a", f"-{n}", f"+new {n}") for n in range(20))
    assert not any(result.is_error for result in await asyncio.gather(*patches))
    assert (folder / "a").read_text() == "".join(f"new {n}\n" for n in range(20))
    assert contents(folder).keys() == {"a"}


async def test_a_cancelled_patch_is_applied_whole_or_not_at_all(apply, folder):
    names = [f"f{n}" for n in range(40)]
    for delay in (0, 0.001, 0.005, 0.02):
        lines = [line for name in names for line in (f"*** Add File: {delay}/{name}", "+x")]
        task = asyncio.create_task(apply(*lines))
        await asyncio.sleep(delay)
        task.cancel()
        await asyncio.wait({task})
        made = [name for name in contents(folder) if name.startswith(f"{delay}/")]
        assert len(made) in {0, len(names)}


async def test_the_layer_between_the_tool_and_the_files_is_never_bypassed():
    """M127: the environment can be another one."""
    files = {"a": b"1\n", "b": b"2\n"}
    text = patch("*** Update File: a", "-1", "+one", "*** Delete File: b", "*** Add File: c", "+3")
    env = MemoryEnvironment(files)
    refused = await apply_patch.run_apply_patch(
        ApplyPatchArguments(text), ToolContext(ReadOnlyEnvironment(env), "c1", print)
    )
    assert join_texts(refused.content) == (
        "Write operations disabled in read-only mode. No file was changed."
    )
    assert env.files == {"/work/a": b"1\n", "/work/b": b"2\n"}
    result = await apply_patch.run_apply_patch(
        ApplyPatchArguments(text), ToolContext(env, "c1", print)
    )
    assert not result.is_error
    assert env.files == {"/work/a": b"one\n", "/work/c": b"3\n"}


GOOD = [
    ("*** Update File: a", "-1", "+one"),
    ("*** Add File: new/x", "+x"),
    ("*** Delete File: b",),
    ("*** Update File: c", "*** Move to: d/e", " 3", "+4"),
]
BAD = [
    ("*** Update File: z", "-1", "+2"),
    ("*** Update File: g", "-nothing like it", "+2"),
    ("*** Update File: g", "@@ no context", "+2"),
    ("*** Delete File: missing",),
    ("*** Delete File: folder",),
    ("*** Add File: folder", "+x"),
    ("*** Add File: g/below", "+x"),
    ("*** Add File: ../x", "+x"),
    ("*** Update File: g",),
    ("what", "is", "this"),
]


@given(
    good=st.lists(st.sampled_from(GOOD), unique=True), bad=st.sampled_from(BAD), at=st.integers(0)
)
@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_a_patch_that_fails_changes_nothing(tmp_path_factory, good, bad, at):
    """M081"""
    folder = tmp_path_factory.mktemp("work") / "work"
    (folder / "folder").mkdir(parents=True)
    for name, text in {"a": "1\n", "b": "2\n", "c": "3\n", "g": "x\n"}.items():
        (folder / name).write_text(text)
    was = fingerprint(folder.parent)
    place = at % (len(good) + 1)
    hunks = [*good[:place], bad, *good[place:]]
    env = LocalEnvironment(str(folder), dict(os.environ))
    text = patch(*(line for hunk in hunks for line in hunk))
    result = asyncio.run(
        apply_patch.run_apply_patch(ApplyPatchArguments(text), ToolContext(env, "c1", print))
    )
    assert result.is_error
    assert fingerprint(folder.parent) == was
