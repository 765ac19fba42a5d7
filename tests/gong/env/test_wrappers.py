import os

import pytest

from gong.env.local import LocalEnvironment
from gong.env.protocol import DirEntry, FileUpdate, LineMatch, LineMatches, ListedPath, Search
from gong.env.wrappers import ConfinedEnvironment, LoggingEnvironment, ReadOnlyEnvironment
from gong.tools import edit
from gong.tools import edit as write
from gong.tools.tool import ToolContext
from tape.model.entries import join_texts
from tests.gong.env.memory import MemoryEnvironment


@pytest.fixture
def env(tmp_path):
    (tmp_path / "work").mkdir()
    return LocalEnvironment(str(tmp_path / "work"), dict(os.environ))


async def test_a_log_tells_what_ran_and_how_it_ended(env):
    """M127"""
    said = []
    result = await LoggingEnvironment(env, said.append).exec_command("echo hi; exit 3")
    assert result.output == b"hi\n"
    assert said == ["exec: echo hi; exit 3", f"exit: 3 in {result.duration_ms}ms"]


async def test_read_only_refuses_every_way_to_write(env, tmp_path):
    """M127"""
    (tmp_path / "work/a").write_text("old")
    closed = ReadOnlyEnvironment(env)
    said = "Write operations disabled in read-only mode"
    for attempt in (closed.write_file("a", b"x"), closed.change_files((), "/")):
        with pytest.raises(PermissionError, match=said):
            await attempt
    context = ToolContext(closed, "c1", print)
    for result in (
        await write.run_write(write.WriteArguments("a", "x"), context),
        await edit.run_edit(edit.EditArguments("a", "old", "new"), context),
    ):
        assert (result.is_error, join_texts(result.content)) == (True, said)
    assert (tmp_path / "work/a").read_text() == "old"
    assert await closed.read_file("a") == b"old"


async def test_confinement_holds_through_links(env, tmp_path):
    """M127"""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("s")
    (tmp_path / "work/out").symlink_to(tmp_path / "outside")
    (tmp_path / "work/a").write_text("a")
    inside = ConfinedEnvironment(env, [env.working_directory])
    for path in ("out/secret", "../outside/secret", f"{tmp_path}/outside/secret", "out/new"):
        for attempt in (
            inside.read_file(path),
            inside.write_file(path, b"x"),
            inside.file_exists(path),
            inside.list_directory(path),
            inside.grep(path, Search("s")),
            inside.glob(path, "*"),
        ):
            with pytest.raises(PermissionError, match="Outside of the workspace"):
                await attempt
    await inside.write_file("sub/b", b"b")
    assert (await inside.read_file("a"), await inside.read_file("sub/b")) == (b"a", b"b")
    assert [one.name for one in (tmp_path / "outside").iterdir()] == ["secret"]


async def test_a_link_put_there_meanwhile_is_not_followed(env, tmp_path):
    """Between the look at a path and its use."""
    outside, root = tmp_path / "outside", str(tmp_path / "work")
    outside.mkdir()
    (outside / "a").write_text("s")
    (tmp_path / "work/sub").symlink_to(outside)
    (tmp_path / "work/a").symlink_to(outside / "a")
    for path in (f"{root}/sub/a", f"{root}/a"):
        for attempt in (env.read_file(path, root), env.write_file(path, b"x", root)):
            with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
                await attempt
        assert await env.change_files((FileUpdate(path, b"s", b"x"),), root) is not None
    assert (outside / "a").read_text() == "s"
    assert [one.name for one in outside.iterdir()] == ["a"]


async def both(tmp_path, files):
    for name, data in files.items():
        (tmp_path / "work" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "work" / name).write_bytes(data)
    local = LocalEnvironment(str(tmp_path / "work"), {"PATH": "/nonexistent"})
    return local, MemoryEnvironment(files)


async def test_memory_answers_as_a_disk_does(tmp_path):
    """M122: the double that tests of tools may use."""
    files = {
        "a.txt": b"x\nmatch\n",
        "d/b.py": b"match",
        "d/c.log": b"match",
        ".gitignore": b"*.log",
    }
    for env in await both(tmp_path, files):
        assert await env.list_directory(".", 2) == (
            DirEntry(".gitignore", False, 5),
            DirEntry("a.txt", False, 8),
            DirEntry("d", True, None),
            DirEntry("d/b.py", False, 5),
            DirEntry("d/c.log", False, 5),
        )
        assert await env.grep(".", Search("match")) == LineMatches(
            (LineMatch("a.txt", 2), LineMatch("d/b.py", 1)), limited=False
        )
        listed = await env.glob(".", "*[!t]")
        assert [one._replace(changed_ns=0) for one in listed] == [
            *(
                ListedPath(".gitignore", False, 0),
                ListedPath("d", True, 0),
                ListedPath("d/b.py", False, 0),
            ),
        ]
        for gone, error in (("gone", FileNotFoundError), ("d", IsADirectoryError)):
            with pytest.raises(error):
                await env.read_file(gone)
        with pytest.raises(NotADirectoryError):
            await env.write_file("a.txt/x", b"")
        root = await env.real_path(".")
        changes = (
            FileUpdate(f"{root}/a.txt", files["a.txt"], b"new"),
            FileUpdate(f"{root}/d/b.py", b"other", None),
        )
        refused = await env.change_files(changes, root)
        assert (refused.path, await env.read_file("a.txt")) == (f"{root}/d/b.py", b"x\nmatch\n")
        assert await env.change_files(changes[:1], root) is None
        assert await env.read_file("a.txt") == b"new"
