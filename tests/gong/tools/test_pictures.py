import json
import random
import subprocess
import sys
from base64 import b64encode
from importlib import import_module
from io import BytesIO
from pathlib import Path

import pytest

from gong.tools import read
from gong.tools.limits import format_size
from gong.tools.output_storage import FolderStorage, TapeStorage
from gong.tools.picture_resize import (
    MAX_PICTURE_BYTES,
    QUALITIES,
    SCALES,
    PictureSize,
    count_base64_bytes,
    is_small_enough,
    read_picture_size,
)
from gong.tools.tool import ToolContext
from tape.model.entries import Image, Text, ToolResult, join_texts
from tape.store.store import Beginning, Store
from tests.gong.agent.conftest import Stage, call, seen

PNG = b"\x89PNG\r\n\x1a\n\0\0"


def pillow():
    return import_module("PIL.Image")


def picture(size, form="PNG", mode="RGB", *, noise=False, **options):
    """Return the bytes of a picture: a plain one, or one that no form makes small."""
    if noise:
        data = random.Random(1).randbytes(size[0] * size[1] * len(mode))
        made = pillow().frombytes(mode, size, data)
    else:
        made = pillow().new(mode, size, "red" if mode in {"RGB", "RGBA"} else 1)
    out = BytesIO()
    made.save(out, form, **options)
    return out.getvalue()


@pytest.fixture
def show(env, folder, tmp_path):
    """Read a picture of these bytes; return the words, the block, its bytes, and the details."""

    async def show(data):
        (folder / "a.png").write_bytes(data)
        storage = FolderStorage(str(tmp_path / "kept"))
        context = ToolContext(env, "c1", print, storage=storage)
        result = await read.run_read(read.ReadArguments("a.png"), context)
        if result.is_error:
            return join_texts(result.content)
        words, block = result.content
        kept = (tmp_path / "kept" / block.blob.hash).read_bytes()
        assert result.details.kept == str(tmp_path / "kept" / block.blob.hash)
        return words.text, block, kept, result.details

    return show


async def test_in_a_session_a_picture_is_kept_on_the_tape_and_shown(env, folder, tmp_path):
    """M062 M063"""
    (folder / "a.png").write_bytes(PNG)
    with Store(tmp_path / "store").create(Beginning(cwd="/", program="test")) as tape:
        context = ToolContext(env, "c1", print, storage=TapeStorage(tape.blobs))
        result = await read.run_read(read.ReadArguments("a.png"), context)
        words, block = result.content
        assert words == Text("[Picture a.png: image/png, 10B]")
        assert isinstance(block, Image)
        assert (block.mime, block.blob.bytes) == ("image/png", len(PNG))
        assert tape.blobs.read(block.blob.hash) == PNG
        assert Path(result.details.kept).name == block.blob.hash


@pytest.mark.parametrize(
    ("form", "size"), [("PNG", (2000, 1)), ("JPEG", (1, 2000)), ("GIF", (7, 5)), ("WEBP", (9, 8))]
)
async def test_within_the_limits_it_goes_as_it_is(show, form, size):
    """M063"""
    data = picture(size, form)
    words, block, kept, details = await show(data)
    mime = f"image/{form.lower()}"
    assert words == f"[Picture a.png: {mime}, {size[0]}x{size[1]}, {format_size(len(data))}]"
    assert (block.mime, kept) == (mime, data)
    assert (details.width, details.height, details.resized) == (*size, False)


@pytest.mark.parametrize(
    ("form", "size", "shown", "factor"),
    [
        ("PNG", (4000, 3000), (2000, 1500), "2.00"),
        ("JPEG", (1000, 5000), (400, 2000), "2.50"),
        ("WEBP", (2001, 10), (2000, 10), "1.00"),
        ("GIF", (10_000, 2), (2000, 1), "5.00"),
    ],
)
async def test_too_many_pixels_are_made_fewer(show, form, size, shown, factor):
    """M063: the words say how to find a place of the file."""
    data = picture(size, form)
    words, block, kept, details = await show(data)
    opened = pillow().open(BytesIO(kept))
    assert (opened.size, (details.width, details.height)) == (shown, shown)
    assert pillow().MIME[opened.format] == block.mime == details.mime
    assert (details.resized, details.original_size) == (True, len(data))
    assert f"{size[0]}x{size[1]}" in words
    assert f", shown as {block.mime}, {shown[0]}x{shown[1]}, " in words
    assert words.endswith(f". Multiply coordinates by {factor} for those of the file.]")


async def test_too_many_bytes_are_made_fewer_at_the_same_size(show):
    """M063: quality goes before size."""
    words, block, kept, details = await show(picture((1400, 1400), noise=True, compress_level=1))
    assert (block.mime, details.width, details.height) == ("image/jpeg", 1400, 1400)
    assert count_base64_bytes(kept) <= MAX_PICTURE_BYTES
    assert words.endswith(("KB.]", "MB.]"))


async def test_quality_goes_85_70_55_40_and_then_sides_75_50_35_25_percent(show):
    """M063: the first step that fits is shown."""
    assert (QUALITIES, SCALES) == ((85, 70, 55, 40), (1.0, 0.75, 0.5, 0.35, 0.25))
    noise = picture((2000, 2000), noise=True, compress_level=1)
    _, _, kept, details = await show(noise)
    for quality in QUALITIES:
        out = BytesIO()
        pillow().open(BytesIO(noise)).save(out, "JPEG", quality=quality)
        if len(out.getvalue()) * 4 / 3 <= 4.5 * 1024 * 1024:
            break
    assert (details.width, details.height) == (2000, 2000)
    assert pillow().open(BytesIO(kept)).quantization == pillow().open(out).quantization


async def test_what_can_be_seen_through_stays_so_where_that_is_smaller(show):
    """M063: of PNG and JPEG the smaller one."""
    _, block, kept, _ = await show(picture((2500, 2500), mode="RGBA"))
    assert (block.mime, pillow().open(BytesIO(kept)).mode) == ("image/png", "RGBA")


async def test_a_picture_that_lies_on_its_side_is_turned_as_it_is_shown(show):
    """M063"""
    exif = pillow().Exif()
    exif[0x0112] = 6
    words, _, kept, details = await show(picture((3000, 1500), "JPEG", exif=exif))
    assert pillow().open(BytesIO(kept)).size == (details.width, details.height) == (1000, 2000)
    assert words.endswith(" Multiply coordinates by 1.50 for those of the file.]")


async def test_a_damaged_one_that_is_too_large_is_an_error(show):
    """M063"""
    pillow()
    assert await show(PNG + bytes(5_000_000)) == (
        "Cannot show a.png: image/png, 4.8MB: it is damaged."
    )
    cut = picture((3000, 300), noise=True)[:102_400]
    assert (await show(cut)).startswith("Cannot show a.png: image/png, 3000x300, 100.0KB: it is ")


async def test_pixels_without_end_are_not_opened(show):
    """M063"""
    head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (60_000).to_bytes(4, "big") * 2
    assert await show(head) == (
        "Cannot show a.png: image/png, 60000x60000, 24B: 60000x60000 pixels are too many to open."
    )


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_measures_are_read_from_the_first_bytes(form, mode):
    """M063: nothing needs to be installed for it."""
    if form == "JPEG" and mode == "RGBA":
        pytest.skip("a JPEG has no such pixels")
    data = picture((301, 207), form, mode)
    assert read_picture_size(data, f"image/{form.lower()}") == PictureSize(301, 207)
    for options in ({"lossless": True}, {"progressive": True}):
        data = picture((301, 207), form, mode, **options)
        assert read_picture_size(data, f"image/{form.lower()}") == PictureSize(301, 207)


@pytest.mark.parametrize("mime", ["image/png", "image/jpeg", "image/gif", "image/webp"])
def test_a_head_that_is_damaged_tells_no_measures(mime):
    form = mime.removeprefix("image/").upper()
    whole = picture((301, 207), form)
    for end in range(20):
        assert read_picture_size(whole[:end], mime) in {None, PictureSize(301, 207)}
    assert read_picture_size(b"\xff\xd8\xff\xff" + bytes(40), mime) is None or mime != "image/jpeg"


@pytest.mark.parametrize(("size", "does"), [((2000, 2000), True), ((2001, 1), False)])
def test_limits_hold_to_the_pixel_and_to_the_byte(size, does):
    """M063"""
    assert is_small_enough(b"", PictureSize(*size)) is does
    assert is_small_enough(bytes(MAX_PICTURE_BYTES // 4 * 3), None)
    assert not is_small_enough(bytes(MAX_PICTURE_BYTES // 4 * 3 + 1), None)


@pytest.mark.parametrize("source", ["file", "notebook", "server"])
async def test_pictures_of_tools_have_at_most_the_bytes_of_the_setting(
    env, folder, tmp_path, source
):
    """M202: max_image_size, which a person's pictures have to keep, too."""
    data = picture((300, 200), noise=True)
    assert len(data) > 100_000
    storage = FolderStorage(str(tmp_path / "kept"))
    context = ToolContext(env, "c1", print, storage=storage, max_picture_bytes=30_000)
    match source:
        case "file":
            (folder / "a.png").write_bytes(data)
            result = await read.run_read(read.ReadArguments("a.png"), context)
            content = result.content
        case "notebook":
            outputs = [{"data": {"image/png": b64encode(data).decode()}}]
            cells = [{"cell_type": "code", "source": "", "outputs": outputs}]
            (folder / "a.ipynb").write_text(json.dumps({"cells": cells}))
            result = await read.run_read(read.ReadArguments("a.ipynb"), context)
            content = result.content
        case "server":
            types, results = import_module("mcp.types"), import_module("gong.mcp.results")
            blob = {"uri": "a://b", "mimeType": "image/png", "blob": b64encode(data).decode()}
            resource = types.BlobResourceContents.model_validate(blob)
            content = await results.build_resource_blocks(resource, context)
    (block,) = (block for block in content if isinstance(block, Image))
    kept = (tmp_path / "kept" / block.blob.hash).read_bytes()
    assert 3_000 < len(kept) <= 30_000
    assert pillow().open(BytesIO(kept)).size == (300, 200)


async def test_the_setting_reaches_what_a_session_reads(tmp_path):
    """M202"""
    stage = Stage(tmp_path)
    (stage.folder / "a.png").write_bytes(picture((300, 200), noise=True))
    calls = {"tool_calls": [call("read", path="a.png")]}
    session = await stage.session(calls, {"text": "done"}, max_image_size=30_000)
    await seen(session, "go")
    (data,) = (each.data for each in session.recorder.path if isinstance(each.data, ToolResult))
    (block,) = (block for block in data.content if isinstance(block, Image))
    assert block.blob.bytes <= 30_000
    assert ", shown as image/jpeg, 300x200, " in join_texts(data.content)
    for host in stage.hosts:
        await host.close()


def test_without_pillow_the_result_says_how_to_install_it(tmp_path):
    """M063: what is small enough needs it not."""
    (tmp_path / "small.png").write_bytes(PNG)
    head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (3000).to_bytes(4, "big") * 2
    (tmp_path / "large.png").write_bytes(head)
    program = (
        "import asyncio, sys; sys.modules['PIL'] = None\n"
        "from gong.env.local import LocalEnvironment\n"
        "from gong.tools import read, tool\n"
        "from gong.tools.output_storage import FolderStorage\n"
        "env = LocalEnvironment('.', {'PATH': ''})\n"
        "context = tool.ToolContext(env, 'c1', print, FolderStorage('kept'))\n"
        "for name in ('small.png', 'large.png'):\n"
        "    print(asyncio.run(read.run_read(read.ReadArguments(name), context)).content[0].text)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == (
        "[Picture small.png: image/png, 10B]\n"
        "Cannot show large.png: image/png, 3000x3000, 24B: models take 2000x2000 pixels and 4.5MB"
        " in base64. Install what makes it smaller: pip install 'gong[images]'."
        " Or make it smaller with bash, then read that.\n"
    )
