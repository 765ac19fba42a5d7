"""docs/serve.png: what `tape serve` looks like, drawn by Chromium from a server that runs.

`make picture` runs it. The session is a sample; server, page and browser are real.
"""

from __future__ import annotations

import io
import shutil
import tempfile
from itertools import count
from pathlib import Path
from typing import NamedTuple

from PIL import Image
from playwright.sync_api import sync_playwright

from tape.store.store import Store
from tests.tape import making
from tests.tape.serve.conftest import serving
from tests.tape.serve.sample_store import record_basket

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
WIDTH, HEIGHT, SCALE = 1200, 1180, 1.5
COLOURS = 192
"""As many as the picture keeps, which halves its size."""


class Picture(NamedTuple):
    """A page as it was drawn."""

    png: bytes
    text: str
    """What is written on it, whether it is in sight or below."""


def draw_picture() -> Picture:
    """Return a session as the server shows it, from its head on."""
    ticks = count(making.DAY, 25_000_000)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        store = Store(home / ".tape", clock=lambda: next(ticks), durable=False)
        tape = record_basket(store, home / "basket", "/home/ada/basket")
        with serving(home) as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = browser.new_page(
                viewport={"width": WIDTH, "height": HEIGHT},
                device_scale_factor=SCALE,
                color_scheme="light",
                reduced_motion="reduce",
            )
            page.goto(server.address)
            page.goto(f"{server.base}/session/{tape}")
            page.wait_for_selector("html[data-ready]")
            page.mouse.move(WIDTH - 1, HEIGHT - 1)
            png = page.screenshot()
            text = page.locator("body").inner_text()
            browser.close()
    small = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(COLOURS, dither=0).save(
        small, "png", optimize=True
    )
    return Picture(small.getvalue(), text)


if __name__ == "__main__":
    Path("docs/serve.png").write_bytes(draw_picture().png)
