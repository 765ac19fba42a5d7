"""Every link from a page to another one, to a heading or to a file leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def anchors(page: str) -> set[str]:
    """Return how GitHub names the headings of a page."""
    words = (re.sub(r"[^\w\s-]", "", heading.lower()) for heading in HEADING.findall(page))
    return {word.replace(" ", "-") for word in words}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    lost = []
    for target, anchor in LINK.findall(page.read_text("utf-8")):
        file = page.parent / target if target else page
        if not file.exists() or (anchor and anchor not in anchors(file.read_text("utf-8"))):
            lost.append(f"{target}#{anchor}")
    assert lost == []


def test_each_page_is_in_the_table_of_contents():
    docs = ROOT / "docs"
    shown = [target for target, _ in LINK.findall((docs / "README.md").read_text("utf-8"))]
    assert {path.name for path in docs.glob("*.md")} - {"README.md"} <= {*shown}
    assert sorted(shown) == sorted({*shown}), "a page is named once"


@pytest.mark.parametrize(
    ("page", "heading"),
    [
        ("extending.md", "## Add a tool"),
        ("extending.md", "## Add a provider"),
        ("embedding.md", "# Embedding gong"),
        ("faq.md", "# Questions"),
    ],
)
def test_extending_gong_has_a_page(page, heading):
    """M223."""
    assert heading in (ROOT / "docs" / page).read_text("utf-8").split("\n")
