"""Names as they are on disk, whatever they hold: what was listed can be handed back."""

import os
import unicodedata

import pytest

from gong.env.local import LocalEnvironment
from gong.env.wrappers import ConfinedEnvironment
from gong.tools import read
from gong.tools.tool import ToolContext
from tape.model.entries import join_texts
from tests.gong.env.memory import MemoryEnvironment

NAMES = [
    "no\u00a0break.txt",
    "wide\u3000blank.txt",
    "@handle.txt",
    "@types/@odd.txt",
    "a\u00a0folder/b\u00a0c.txt",
    "Shot 9.41\u202fAM.txt",
    "It\u2019s.txt",
    unicodedata.normalize("NFD", "café.txt"),
    unicodedata.normalize("NFC", "café.txt"),
    unicodedata.normalize("NFD", "l\u2019été/") + "It\u2019s\u202fAM.txt",
    "two\nlines.txt",
    "back\\nslash.txt",
    os.fsdecode(b"latin-\xe9.txt"),
    os.fsdecode(b"folder-\xff/\xfe\nx.txt"),
    "trailing blank ",
    "截图\u300012.png.txt",
    "~tilde.txt",
    "[brackets]{a,b}.txt",
]


def listed_names(result):
    return [name for name in join_texts(result.content).split("\n") if not name.endswith("/")]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
async def test_a_listed_name_can_be_read_edited_and_written(use_face, folder, name):
    """M043, M061"""
    place = folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("old needle\n")
    (shown,) = listed_names(await use_face("find", pattern="**"))
    assert listed_names(await use_face("glob", pattern="**")) == [shown]
    for tool, key in (("read", "path"), ("read_file", "file_path")):
        assert "old needle" in join_texts((await use_face(tool, **{key: shown})).content)
    many = join_texts((await use_face("read_many_files", paths=["**"])).content)
    assert many == f"--- {shown} ---\n\nold needle\n"
    found = join_texts((await use_face("grep", pattern="needle", path=shown)).content)
    assert found == f"{shown.rpartition('/')[2]}:1: old needle"
    assert (
        join_texts((await use_face("grep", pattern="needle")).content) == f"{shown}:1: old needle"
    )
    edited = await use_face("edit", path=shown, oldText="old", newText="new")
    assert (edited.is_error, place.read_text()) == (False, "new needle\n")
    patched = await use_face("apply_patch", input=patch_of(shown, "new needle", "patched"))
    if "\\n" not in shown and shown == shown.strip():
        assert (patched.is_error, place.read_text()) == (False, "patched\n")
    assert [one for one in folder.rglob("*") if one.is_file()] == [place]


def patch_of(path, old, new):
    update = f"*** Update File: {path}\n@@\n-{old}\n+{new}\n"
    return f"*** Begin Patch\n{update}*** End Patch\n"


@pytest.mark.parametrize(
    "name", [one for one in NAMES if one.isprintable() and "\n" not in one], ids=ascii
)
async def test_a_file_is_written_where_it_is(use_face, folder, name):
    place = folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("old\n")
    assert not (await use_face("write", path=name, content="new\n")).is_error
    assert not (await use_face("write_file", file_path=name, content="newer\n")).is_error
    assert [(one, one.read_text()) for one in folder.rglob("*") if one.is_file()] == [
        (place, "newer\n")
    ]


@pytest.mark.parametrize(
    ("there", "path", "written"),
    [
        ([], "@a.txt", "a.txt"),
        ([], "a\u00a0b.txt", "a b.txt"),
        (["@types/x"], "@types/new.d.ts", "@types/new.d.ts"),
        (["types/x"], "@types/new.d.ts", "types/new.d.ts"),
        (["@a.txt", "a.txt"], "@a.txt", "@a.txt"),
        (["a.txt"], "@a.txt", "a.txt"),
        (["a\u00a0b/x"], "a\u00a0b/c\u00a0d", "a\u00a0b/c d"),
        (["a b/x"], "a\u00a0b/c", "a b/c"),
    ],
)
async def test_a_new_file_gets_the_name_of_the_rule(use_face, folder, there, path, written):
    """M043"""
    for one in there:
        (folder / one).parent.mkdir(exist_ok=True)
        (folder / one).write_text("old")
    await use_face("write", path=path, content="new")
    assert (folder / written).read_text() == "new"
    patch = f"*** Begin Patch\n*** Add File: {path}\n+patched\n*** End Patch\n"
    await use_face("apply_patch", input=patch)
    assert (folder / written).read_text() == "patched\n"
    names = {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()}
    assert names == {*there, written}


async def test_two_names_that_read_the_same_are_not_guessed_between(use_face, folder):
    for blank in ("\u2000", "\u3000"):
        (folder / f"a{blank}b").write_text(blank)
        assert join_texts((await use_face("read", path=f"a{blank}b")).content) == blank
    assert (await use_face("read", path="a b")).kind == "FileNotFound"


@pytest.mark.parametrize("tool", ["edit", "write"])
@pytest.mark.parametrize("name", ["@link", "no\u00a0break", "It\u2019s", "l\nk"])
async def test_a_link_with_an_odd_name_leads_no_change_out(use_face, folder, tmp_path, tool, name):
    (tmp_path / "outside").write_text("old")
    (folder / name).symlink_to(tmp_path / "outside")
    asked = name.replace("\n", "\\n").replace("\u2019", "'") if tool == "edit" else name
    given = {"oldText": "old", "newText": "new"} if tool == "edit" else {"content": "new"}
    result = await use_face(tool, path=asked, **given)
    assert (result.kind, (tmp_path / "outside").read_text()) == ("PermissionDenied", "old")


@pytest.mark.parametrize("path", ["@../outside", "../outside", "@../out\u00a0side"])
async def test_no_spelling_climbs_out(use_face, folder, tmp_path, path):
    (tmp_path / "outside").write_text("old")
    (tmp_path / "out\u00a0side").write_text("old")
    result = await use_face("edit", path=path, oldText="old", newText="new")
    assert result.kind == "PermissionDenied"


async def test_a_confined_environment_looks_at_nothing_outside(folder, tmp_path):
    (tmp_path / "out\u00a0side").write_text("secret")
    (folder / "in\u00a0side").write_text("open")
    env = ConfinedEnvironment(LocalEnvironment(str(folder), {}), [str(folder)])
    context = ToolContext(env, "c1", print)
    inside = await read.run_read(read.ReadArguments("in side"), context)
    outside = await read.run_read(read.ReadArguments(str(tmp_path / "out side")), context)
    assert (join_texts(inside.content), outside.kind) == ("open", "PermissionDenied")


async def test_files_in_memory_keep_their_names():
    env = MemoryEnvironment({"@a\u00a0b": b"one", "c\u3000d/It\u2019s": b"two"})
    context = ToolContext(env, "c1", print)
    for path, text in (("@a\u00a0b", "one"), ("c d/It's", "two"), ("c\u3000d/It\u2019s", "two")):
        assert join_texts((await read.run_read(read.ReadArguments(path), context)).content) == text
