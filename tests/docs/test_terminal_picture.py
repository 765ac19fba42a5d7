"""The picture in the README is of what a run really shows."""

from pathlib import Path
from xml.etree import ElementTree as ET

from tests.docs.terminal_picture import FILES, PROMPT, draw_picture

KEPT = Path(__file__).parent.parent.parent / "docs/terminal.svg"


def read_texts(picture):
    return ["".join(one.itertext()) for one in ET.fromstring(picture).iter() if "text" in one.tag]


def test_the_picture_is_of_what_a_run_shows():
    fresh, kept = read_texts(draw_picture()), read_texts(KEPT.read_text())
    for wanted in (PROMPT, *FILES, "FAILED (failures=1)", "OK", "first price", "+ 3"):
        assert any(wanted in text for text in fresh), wanted
        assert any(wanted in text for text in kept), wanted
    assert not any("/tmp" in text for text in kept)
