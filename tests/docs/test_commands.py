"""Every command that README.md and docs/ show does what they show (convention: pages.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import complaints

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_shows_what_its_commands_do(page, tmp_path):
    found = complaints(str(page.relative_to(ROOT)), page.read_text("utf-8"), tmp_path / "home")
    assert not found, "\n\n" + "\n\n".join(found)
