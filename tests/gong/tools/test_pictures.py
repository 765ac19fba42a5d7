from gong.tools import read
from gong.tools.tool import ToolContext
from gong.tools.truncation.storage import TapeStorage
from tape.blocks import Image, Text
from tape.store import Beginning, Store

PNG = b"\x89PNG\r\n\x1a\n\0\0"


async def test_in_a_session_a_picture_is_kept_on_the_tape_and_shown(env, folder, tmp_path):
    """M062 M063"""
    (folder / "a.png").write_bytes(PNG)
    with Store(tmp_path / "store").create(Beginning(cwd="/", program="test")) as tape:
        context = ToolContext(env, "c1", print, storage=TapeStorage(tape.blobs))
        result = await read.run(read.Arguments("a.png"), context)
        words, picture = result.content
        assert words == Text("[Picture a.png: image/png, 10B]")
        assert isinstance(picture, Image)
        assert (picture.mime, picture.blob.bytes) == ("image/png", len(PNG))
        assert tape.blobs.read(picture.blob.hash) == PNG
