"""The lists of other agents in docs/README.md and docs/import.md, from their rows: `make docs`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tape.formats.sessions.registry import SESSION_FORMATS
from tests.docs.manual import table

if TYPE_CHECKING:
    from tape.formats.sessions.registry import SessionFormat

DOCS = Path(__file__).parents[2] / "docs"
HEAD = ("agent", "name", "where its sessions are", "branches", "sub-agents")
_TABLE = re.compile(r"^\| agent \|(?:.+\n)+", re.MULTILINE)
_CONTENTS = re.compile(r"^(- \[Sessions of other agents\]\(import\.md\)): .*$", re.MULTILINE)


def pages() -> dict[Path, str]:
    """Return both pages, with the lists as the rows have them."""
    contents, page = DOCS / "README.md", DOCS / "import.md"
    titles = ", ".join(row.title for row in SESSION_FORMATS.values())
    rows = table(HEAD, map(_describe_row, SESSION_FORMATS.values()))
    return {
        contents: _CONTENTS.sub(rf"\1: {titles}.", contents.read_text("utf-8")),
        page: _TABLE.sub(lambda _: rows, page.read_text("utf-8")),
    }


def _describe_row(row: SessionFormat) -> str:
    folders = " or ".join(f"`{folder}`" for folder in row.folders)
    files = [f"`{pattern}`" for pattern in row.files]
    beside = " and ".join(f"`{pattern}`" for pattern in row.beside)
    where = ", ".join(filter(None, (folders, *files, beside and f"with {beside}", row.note)))
    return f"| {row.title} | `{row.tool}` | {where} | {row.branches} | {row.sub_agents} |"
