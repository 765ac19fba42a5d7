import pytest

from gong.env.local import LocalEnvironment
from gong.tools import edit
from gong.tools.edit import WriteDetails
from gong.tools.tool import ToolContext, ToolOutcome


@pytest.mark.parametrize(
    ("content", "size"), [("hello world", 11), ("", 0), ("你好 🌍\r\n\u2028", 16)]
)
async def test_a_new_file_holds_exactly_the_content(use, folder, content, size):
    """M068"""
    assert await use("write", path="nested/deep/a.txt", content=content) == ToolOutcome.from_text(
        f"Successfully wrote {size} bytes to nested/deep/a.txt",
        WriteDetails("nested/deep/a.txt", size, True),
    )
    assert (folder / "nested/deep/a.txt").read_bytes() == content.encode()


async def test_an_old_file_is_replaced_without_asking(use, folder):
    """M068"""
    (folder / "a.txt").write_text("old and longer")
    assert await use("write", path="a.txt", content="new") == ToolOutcome.from_text(
        "Successfully wrote 3 bytes to a.txt", WriteDetails("a.txt", 3, False)
    )
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("a.txt", "new")]


async def test_a_path_from_home_is_expanded(use, tmp_path):
    """M068"""
    await use("write", path="~/output/result.txt", content="data")
    assert (tmp_path / "home/output/result.txt").read_text() == "data"


async def write_in(folder, path):
    context = ToolContext(LocalEnvironment(str(folder), {}), "c1", lambda text: None)
    return await edit.run_write(edit.WriteArguments(path, "new"), context)


async def test_a_closed_folder_is_eacces(anyone):
    """M068 J4-3.1"""
    (anyone / "closed").mkdir(0o555)
    result = await write_in(anyone, "closed/a.txt")
    assert result == ToolOutcome.error(
        "EACCES: permission denied: closed/a.txt", kind="PermissionDenied"
    )


async def test_a_closed_file_stays_though_its_folder_is_open(anyone):
    """M068"""
    (anyone / "a.txt").write_text("old")
    (anyone / "a.txt").chmod(0o444)
    result = await write_in(anyone, "a.txt")
    assert result == ToolOutcome.error("EACCES: permission denied: a.txt", kind="PermissionDenied")
    assert [(path.name, path.read_text()) for path in anyone.iterdir()] == [("a.txt", "old")]


@pytest.mark.parametrize("path", ["../../etc/crontab", "../a.txt", "sub/../../a.txt", "@../a.txt"])
async def test_a_path_that_climbs_out_is_refused(use, tmp_path, path):
    assert await use("write", path=path, content="x") == ToolOutcome.error(
        f'Path leaves the working directory: {path}. Name a file inside it, without "..".',
        kind="PermissionDenied",
    )
    assert [one.name for one in tmp_path.iterdir()] == ["work"]


async def test_a_folder_in_the_place_is_named(use, folder):
    (folder / "sub").mkdir()
    (folder / "file").touch()
    assert await use("write", path="sub", content="x") == ToolOutcome.error("Is a directory: sub")
    assert await use("write", path="file/a", content="x") == ToolOutcome.error(
        "Not a directory: file/a"
    )
