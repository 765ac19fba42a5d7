"""The second picture in the README is of what a server really shows."""

import io
from pathlib import Path

import pytest

from tests.tape.serve.test_browser import CHROMIUM

KEPT = Path(__file__).parent.parent.parent / "docs/serve.png"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
]


def test_the_picture_is_of_what_a_server_shows():
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("playwright.sync_api")
    from tests.docs.serve_picture import draw_picture

    drawn = draw_picture()
    for expected in ("use-sum", "Compacted 4 entries", "assert 5 == 6", "for price in prices:"):
        assert expected in drawn.text
    assert "/tmp" not in drawn.text
    kept = KEPT.read_bytes()
    fresh, shown = (image.open(io.BytesIO(data)) for data in (drawn.png, kept))
    assert fresh.size == shown.size
    assert len(kept) < 150_000
